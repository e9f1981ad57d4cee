/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code with a stack of its own, which the world lets run until it waits. Its first entry is by
 * makecontext. All others are jumps: swapcontext sets the signal mask, which nobody changes here,
 * by a system call each time, and an agent waits in every turn. The address sanitizer knows
 * swapcontext, and takes a jump for the end of all that is between.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SIM_SWAPS 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SIM_SWAPS 1
#endif

struct fiber {
    ucontext_t first, back; /* back: of swapcontext */
    jmp_buf inside, outside;
    bool has_left;
};

/* `body` ends with fiber_leave, and does not return from it. */
static inline void fiber_make(struct fiber *fiber, char *stack, size_t size, void (*body)(void))
{
    fiber->has_left = false;
    getcontext(&fiber->first);
    fiber->first.uc_stack.ss_sp = stack;
    fiber->first.uc_stack.ss_size = size;
    fiber->first.uc_link = NULL;
    makecontext(&fiber->first, body, 0);
}

#ifdef SIM_SWAPS
static inline void fiber_enter(struct fiber *fiber)
{
    swapcontext(&fiber->back, &fiber->first);
}

static inline void fiber_leave(struct fiber *fiber)
{
    swapcontext(&fiber->first, &fiber->back);
}
#else
/* Goes on with it until it leaves. */
static inline void fiber_enter(struct fiber *fiber)
{
    if (_setjmp(fiber->outside) != 0)
        return;
    if (fiber->has_left)
        _longjmp(fiber->inside, 1);
    setcontext(&fiber->first);
}

/* From inside; returns when it is entered again. */
static inline void fiber_leave(struct fiber *fiber)
{
    fiber->has_left = true;
    if (_setjmp(fiber->inside) == 0)
        _longjmp(fiber->outside, 1);
}
#endif

#endif
