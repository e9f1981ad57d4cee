/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes of a store for the log, once each. A fault is noted where it is found, under a lock or in a
 * callback, and logged where the store delivers its events. The log function belongs to the
 * program, and may call back or block.
 */
#ifndef MRT_STORE_KIT_NOTES_H
#define MRT_STORE_KIT_NOTES_H

#include "core/store.h"

#include <stdbool.h>

#define MRT_NOTES_MAX 8

struct mrt_notes {
    const char *from; /* "Redis" */
    mortise_log_callback log;
    void *argument;
    struct {
        bool taken;     /* logged, or waiting for the log */
        char text[256]; /* "": said */
    } each[MRT_NOTES_MAX];
};

void mrt_notes_init(struct mrt_notes *notes, const char *from,
                    const struct mrt_store_options *options);
/* Adds a note, unless it is there already. `which` is a number of the store's own. */
__attribute__((format(printf, 3, 4))) void mrt_note(struct mrt_notes *notes, unsigned which,
                                                    const char *format, ...);
void mrt_notes_say(struct mrt_notes *notes);

#endif
