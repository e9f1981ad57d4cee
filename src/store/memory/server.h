/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory store's server: sessions and queues of tickets as a plain data
 * structure, one command at a time, at a time that the caller gives.
 *
 * It is the port's contract (core/store.h) in its shortest form, and the
 * reference that the simulator measures everything against: no thread, no clock,
 * no random number, and nothing that depends on where an object lies.
 *
 * Invariant: a queue's tickets stand in the order of their fences, every ticket
 * belongs to a session that is open, or was detached, or left behind by one that has died, and the
 * fence counter never falls.
 */
#ifndef MRT_STORE_MEMORY_SERVER_H
#define MRT_STORE_MEMORY_SERVER_H

#include "core/store.h"

struct mrt_memory_server;

struct mrt_memory_config {
    mrt_time lease;       /* of a session, from its START or newest RENEW; 0: it needs none */
    mrt_time recheck;     /* part of every VIEW */
    uint64_t fence_span;  /* of a ticket, at least 1 */
    uint64_t first_fence; /* at least 1 */
};

/* Where events go. `peer` is what the addressed session's START came with, or for
   an answer what the command came with. Must not call back into the server. */
struct mrt_memory_sink {
    void (*emit)(void *context, void *peer, const struct mrt_event *event);
    void *context;
};

/* NULL: no memory. */
struct mrt_memory_server *mrt_memory_server_new(const struct mrt_memory_config *config);
void mrt_memory_server_free(struct mrt_memory_server *server);

/* Applies a command. Its answer is delivered last, behind the events that it causes for others. */
void mrt_memory_server_apply(struct mrt_memory_server *server, const struct mrt_command *command,
                             void *peer, mrt_time now, const struct mrt_memory_sink *sink);
/* When the earliest lease runs out, or delay ends; MRT_TIME_NEVER: none does. */
mrt_time mrt_memory_server_next(const struct mrt_memory_server *server);
/* Ends the sessions whose lease has run out at `now`: their peers get SESSION_LOST. And ends
   delays. */
void mrt_memory_server_expire(struct mrt_memory_server *server, mrt_time now,
                              const struct mrt_memory_sink *sink);
/* Ends all sessions of a peer that has died, without an event for it. */
void mrt_memory_server_drop(struct mrt_memory_server *server, const void *peer, mrt_time now,
                            const struct mrt_memory_sink *sink);

/* mortise_revoke and mortise_break. 0 or MORTISE_ENOTHELD. */
int mrt_memory_server_revoke(struct mrt_memory_server *server, const char *queue, uint64_t fence,
                             const struct mrt_memory_sink *sink);
int mrt_memory_server_break(struct mrt_memory_server *server, const char *queue, uint64_t fence,
                            const struct mrt_memory_sink *sink);

/* A ticket as it stands in its queue. */
struct mrt_memory_entry {
    const char *queue;
    const char *kind;
    struct mrt_id session, ticket;
    void *peer;
    uint64_t fence;
    uint64_t fence_span;
    uint64_t weight;
    uint64_t weight_ahead;
    uint64_t capacity;
    uint32_t place; /* 0: granted; 1: the first that waits */
    mrt_time since;
    const void *value; /* NULL: none */
    size_t value_size;
    bool detached;  /* nobody's: of no session and no peer */
    mrt_time delay; /* how long it stays if its session dies while it holds */
    mrt_time until; /* left behind by a dead session until then; 0: not left behind */
};
/* Visits every ticket, queue by queue in the order they were made; stops when `visit`
   does not return 0, and returns that. */
int mrt_memory_server_list(const struct mrt_memory_server *server,
                           int (*visit)(void *context, const struct mrt_memory_entry *entry),
                           void *context);
/* The same for one queue. */
int mrt_memory_server_list_queue(const struct mrt_memory_server *server, const char *queue,
                                 int (*visit)(void *context, const struct mrt_memory_entry *entry),
                                 void *context);
/* Whether the session of a command, and its ticket if it names a queue, are there. */
bool mrt_memory_server_has(const struct mrt_memory_server *server,
                           const struct mrt_command *command);
/* The fence that the next ticket will get. */
uint64_t mrt_memory_server_next_fence(const struct mrt_memory_server *server);
/* Reads a cell; the value is the server's, until the next call. */
void mrt_memory_server_cell(struct mrt_memory_server *server, const char *name,
                            struct mrt_event *cell);
size_t mrt_memory_server_sessions(const struct mrt_memory_server *server);

#endif
