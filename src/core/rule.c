/* SPDX-License-Identifier: Apache-2.0 */
/* The grant rule, written so that no sum can overflow. */
#include "core/rule.h"

bool mrt_rule_grants(uint64_t weight_ahead, uint64_t weight, uint64_t capacity)
{
    return weight <= capacity && weight_ahead <= capacity - weight;
}
