/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grant rule: the one decision every lock of mortise rests on.
 *
 * A queue holds tickets in the order they came. A ticket is granted when the
 * weights ahead of it and its own together fit the capacity.
 *
 *   mutex        capacity 1, every ticket weighs 1
 *   semaphore    capacity N, a ticket weighs the permits it asks for
 *   read/write   capacity 2^31, a reader weighs 1, a writer 2^31
 *
 * Why it is safe to decide from an old view of the queue: tickets ahead can only
 * leave or get lighter, and new ones go behind. So the weight ahead only
 * falls, and a grant that was true once stays true as long as the ticket lives.
 * An old view can make a waiter wait longer; it can never let one in too many.
 */
#ifndef MRT_CORE_RULE_H
#define MRT_CORE_RULE_H

#include <stdbool.h>
#include <stdint.h>

bool mrt_rule_grants(uint64_t weight_ahead, uint64_t weight, uint64_t capacity);

#endif
