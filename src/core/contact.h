/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contact with the store: contact.c.
 */
#ifndef MRT_CORE_CONTACT_H
#define MRT_CORE_CONTACT_H

#include "base/time.h"

#include <stdbool.h>

struct mrt_engine;
struct mrt_event;

/* Whether next_contact has something new to tell. */
bool mrt_engine_has_contact(const struct mrt_engine *engine);
/* `away`: the store has been silent for config.notice, and still is. Returns false if nothing
 * changed. */
bool mrt_engine_next_contact(struct mrt_engine *engine, bool *away);

/* ---------------------------------------------------- of core only */

/* A command has been fetched. */
void mrt_contact_asked(struct mrt_engine *engine, mrt_time now);
/* A command has been answered, and is not among the outstanding ones. */
void mrt_contact_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now);
void mrt_contact_timer(struct mrt_engine *engine, mrt_time now);
/* No server can be reached just now. */
void mrt_contact_refused(struct mrt_engine *engine, mrt_time now);

#endif
