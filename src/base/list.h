/* SPDX-License-Identifier: Apache-2.0 */
/* <sys/queue.h>, with the one loop the C library's copy leaves out. */
#ifndef MRT_BASE_LIST_H
#define MRT_BASE_LIST_H

#include <sys/queue.h>

/* Like TAILQ_FOREACH, and the element at hand may be taken out. */
#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(element, head, field, next)                                         \
    for ((element) = TAILQ_FIRST(head); (element) && ((next) = TAILQ_NEXT(element, field), 1); \
         (element) = (next))
#endif

#endif
