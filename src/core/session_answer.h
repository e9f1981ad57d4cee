/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's beginning and end: session_answer.c.
 */
#ifndef MRT_CORE_SESSION_ANSWER_H
#define MRT_CORE_SESSION_ANSWER_H

#include "base/time.h"

struct mrt_command;
struct mrt_engine;
struct mrt_event;

void mrt_session_answer(struct mrt_engine *engine, struct mrt_command *command,
                        const struct mrt_event *event, mrt_time now);
/* Loses the session if its lease has run out at `now`. */
void mrt_session_check(struct mrt_engine *engine, mrt_time now);
void mrt_session_lose(struct mrt_engine *engine, mrt_time now);
void mrt_session_timer(struct mrt_engine *engine, mrt_time now);
void mrt_session_close(struct mrt_engine *engine, mrt_time now);

#endif
