/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One user of a store, for tests: opens it, sends commands one at a time, and keeps the
 * events that come. A failure in it fails the test immediately.
 */
#ifndef TEST_PORT_CLIENT_H
#define TEST_PORT_CLIENT_H

#include "core/store.h"

#include <stdbool.h>
#include <stddef.h>

#define PORT_EVENTS_MAX 256

struct port_client {
    const struct mrt_store_ops *ops;
    struct mrt_store *store;
    struct mrt_id session;
    uint64_t serial;
    struct mrt_event events[PORT_EVENTS_MAX]; /* not yet taken; detail is cleared */
    size_t count;
    mrt_time lease, renewed;           /* 0: needs no signs of life */
    uint64_t renewal;                  /* serial of one under way; 0: none */
    char detail[512];                  /* of the newest FAILED or SESSION_LOST */
    char value[MORTISE_VALUE_MAX + 1]; /* of the newest HOLDER or CELL, as text */
};

/* A URI to work with: "memory:" and "sqlite:" alone get a fresh place each, any other is used as
   it is. NULL: no place left. */
const char *port_place_open(const char *given);
/* Removes what was made for it. */
void port_place_close(void);
/* The kind of lock of port_append's and port_try's tickets: "mutex", or "exclusive", a claim. */
extern const char *port_kind;

/* A new identity that nobody else has. */
struct mrt_id port_id(void);
/* 0 or the code of open. */
int port_try_open(struct port_client *client, const char *uri, const char *label);
void port_open(struct port_client *client, const char *uri, const char *label);
/* The same, and starts a session, which is kept alive while any client waits. */
void port_open_session(struct port_client *client, const char *uri);
/* Closes without STOP: the session dies. */
void port_close(struct port_client *client);

struct mrt_command port_command(struct port_client *client, enum mrt_command_type type);
/* Sends a command and returns its answer. */
struct mrt_event port_send(struct port_client *client, const struct mrt_command *command);
/* The answer to one that has been submitted. */
struct mrt_event port_answer(struct port_client *client, uint64_t serial);
struct mrt_event port_start(struct port_client *client);
struct mrt_event port_stop(struct port_client *client);
/* An APPEND of a new ticket of port_kind that takes all there is, to which more may be added. */
struct mrt_command port_append_command(struct port_client *client, const char *queue);
/* A ticket of port_kind. */
struct mrt_event port_append(struct port_client *client, const char *queue, struct mrt_id ticket);
struct mrt_event port_try(struct port_client *client, const char *queue, struct mrt_id ticket);
struct mrt_event port_append_weight(struct port_client *client, const char *queue,
                                    struct mrt_id ticket, const char *kind, uint64_t capacity,
                                    uint64_t weight);
struct mrt_event port_refresh(struct port_client *client, const char *queue,
                              const struct mrt_event *view);
struct mrt_event port_lighten(struct port_client *client, const char *queue,
                              const struct mrt_event *view, uint64_t weight);
struct mrt_event port_remove(struct port_client *client, const char *queue, struct mrt_id ticket,
                             uint64_t fence);

/* A candidate's ticket; changing its value; a look at who is first. */
struct mrt_event port_append_value(struct port_client *client, const char *queue,
                                   const char *value);
struct mrt_event port_set_value(struct port_client *client, const char *queue,
                                const struct mrt_event *view, const char *value);
struct mrt_event port_observe(struct port_client *client, const char *queue, struct mrt_id id);
/* A cell. `value` NULL: delete. */
struct mrt_event port_cell_get(struct port_client *client, const char *name);
struct mrt_command port_cell_command(struct port_client *client, const char *name, uint64_t version,
                                     uint64_t fence, const char *value);
struct mrt_event port_cell_set(struct port_client *client, const char *name, uint64_t version,
                               uint64_t fence, const char *value);

/* Lets the store work until an event of this kind has come (then it is taken), or the
   time is up. `ticket` none: any. */
bool port_wait(struct port_client *client, enum mrt_event_type type, struct mrt_id ticket,
               mrt_time timeout, struct mrt_event *event);
/* The same for either form in which a store tells a ticket that its place has changed. */
bool port_wait_told(struct port_client *client, struct mrt_id ticket, mrt_time timeout);
/* Looks until exactly so much weight is ahead of it, once or for so long: what one of several
   servers shows of a ticket that waits may be old for a moment (d). */
struct mrt_event port_wait_ahead(struct port_client *client, const char *queue,
                                 struct mrt_event view, uint64_t weight_ahead, mrt_time timeout);
/* Waits for a grant as the engine does: by wakes, and by looking again. The time it took. */
mrt_time port_wait_granted(struct port_client *client, const char *queue, struct mrt_event view,
                           uint64_t weight, uint64_t capacity, mrt_time timeout);

/* A list, with the argument set to 0; it is repeated if a busy server has not answered in time. */
int port_list(struct port_client *client, const char *queue, mrt_listed_callback callback,
              int *count);
/* How many tickets the store shows under exactly this name. */
int port_tickets(struct port_client *client, const char *queue);

#endif
