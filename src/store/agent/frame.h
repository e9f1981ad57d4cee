/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands and events of the port (core/store.h) as frames between the store agent: and the
 * agent: what follows MORTISE 1 on a connection (doc/agent.md). Both sides use these functions.
 *
 * A command is an array of words, of which those at the end that are empty are left out:
 *   verb serial session ticket queue fence flags weight capacity kind queue_max delay version
 *   detached_id value
 * An answer is such an array, and an event that answers nothing too, with serial 0:
 *   "answer" type serial session ticket flags fence span ahead recheck place revoked version error
 *   text
 * Of STARTED and RENEWED the words behind the flags are: lease, age of the proof, age of the newest
 * sign that was heard. Identities are 32 hexadecimal digits, numbers decimal digits, times
 * nanoseconds. An empty word is 0, or none.
 *
 * Threads: none; these are functions of their arguments.
 */
#ifndef MRT_STORE_AGENT_FRAME_H
#define MRT_STORE_AGENT_FRAME_H

#include "base/reply.h"
#include "base/resp.h"
#include "core/store.h"

/* A command as read; texts are slices of the input, and the command's own pointers are NULL. */
struct mrt_frame_command {
    struct mrt_command command;
    struct mrt_resp_word queue, kind, value;
    bool has_value;
};
/* `proof_age` and `heard_age` are of STARTED and RENEWED, and nothing dates them in `event`. */
struct mrt_frame_event {
    struct mrt_event event; /* detail and value NULL */
    mrt_time proof_age, heard_age;
    struct mrt_resp_word text;
    bool has_value;
};

void mrt_frame_write_command(struct mrt_reply *output, const struct mrt_command *command);
/* False: the words are no such command. */
bool mrt_frame_read_command(const struct mrt_resp_command *words, struct mrt_frame_command *frame);
void mrt_frame_write_event(struct mrt_reply *output, const struct mrt_event *event,
                           mrt_time proof_age, mrt_time heard_age);
bool mrt_frame_read_event(const struct mrt_resp_command *words, struct mrt_frame_event *frame);

/* Words one by one, for other frames. */
void mrt_frame_number(struct mrt_reply *output, int64_t number);
void mrt_frame_id(struct mrt_reply *output, struct mrt_id id);
void mrt_frame_text(struct mrt_reply *output, const char *text);
bool mrt_frame_read_number(const struct mrt_resp_word *word, int64_t *number);
bool mrt_frame_read_id(const struct mrt_resp_word *word, struct mrt_id *id);

#endif
