/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of the memory store's server, for its own files only. */
#ifndef MRT_STORE_MEMORY_SERVER_PARTS_H
#define MRT_STORE_MEMORY_SERVER_PARTS_H

#include "store/memory/cell.h"
#include "store/memory/server.h"

/* Memory that runs out makes an insertion fail, not the process. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element) = NULL)
#include <uthash.h>

TAILQ_HEAD(ticket_list, ticket);
TAILQ_HEAD(session_list, session);
TAILQ_HEAD(queue_list, queue);
TAILQ_HEAD(observer_list, observer);

struct ticket {
    struct mrt_id id;
    struct session *session;
    struct queue *queue;
    uint64_t fence;
    uint64_t weight;
    uint64_t revoked; /* how many revoke requests its holder has had */
    bool linger;      /* its holder wants to hear of newcomers behind it */
    mrt_time since;
    mrt_time delay; /* how long it stays if its session dies while it holds */
    mrt_time until; /* left behind by a dead session until then; 0: not left behind */
    void *value;    /* NULL: none */
    size_t value_size;
    TAILQ_ENTRY(ticket) link;         /* of the queue */
    TAILQ_ENTRY(ticket) session_link; /* of the session */
    UT_hash_handle hh;
};

struct session {
    struct mrt_id id;
    void *peer;
    mrt_time expires; /* MRT_TIME_NEVER: without a lease */
    struct ticket_list tickets;
    TAILQ_ENTRY(session) link;
    UT_hash_handle hh;
};

/* Exists while it has tickets; the server's one fence counter outlives it. */
struct queue {
    char *name;
    char *kind;
    uint64_t capacity;
    struct ticket_list tickets;
    TAILQ_ENTRY(queue) link;
    UT_hash_handle hh;
};

struct mrt_memory_server {
    struct mrt_memory_config config;
    uint64_t next_fence;
    struct session_list sessions;
    /* Has the tickets that were detached or left behind, never ends, and hears nothing. */
    struct session nobody;
    struct queue_list queues;
    struct session *sessions_by_id;
    struct ticket *tickets_by_id;
    struct queue *queues_by_name;
    struct observer_list observers;
    struct mrt_memory_cells cells;
};

/* NULL: not there. */
struct session *mrt_memory_find_session(const struct mrt_memory_server *server, struct mrt_id id);
struct queue *mrt_memory_find_queue(const struct mrt_memory_server *server, const char *name);
/* A ticket of this session; NULL for a ticket of another one. */
struct ticket *mrt_memory_find_ticket(const struct mrt_memory_server *server,
                                      const struct mrt_command *command);

/* The weight ahead of a ticket, or the first sum on the way to it that exceeds the capacity. */
uint64_t mrt_memory_weight_ahead(const struct ticket *ticket);
/* Whether a ticket would be granted behind two weights; a sum that overflows counts as too much. */
bool mrt_memory_grants_behind(const struct ticket *ticket, uint64_t ahead, uint64_t more);
/* Removes a ticket, frees it, and wakes the tickets that are granted by that. */
void mrt_memory_remove_ticket(struct mrt_memory_server *server, struct ticket *ticket,
                              const struct mrt_memory_sink *sink);

/* detach.c: detached tickets. */
/* DETACH. 0, MORTISE_ENOTHELD: it is not there; MORTISE_ENOMEM. *ticket: the detached ticket. */
int mrt_memory_detach(struct mrt_memory_server *server, const struct mrt_command *command,
                      struct ticket **ticket);
/* APPEND with `adopt`. The same, or MORTISE_EMISMATCH. */
int mrt_memory_adopt(struct mrt_memory_server *server, const struct mrt_command *command,
                     struct session *session, struct ticket **ticket);

/* delay.c: tickets that a dead session leaves behind for a while. */
/* Called before the tickets of a session that died then are removed: a holder with a delay stays.
 */
void mrt_memory_leave_behind(struct mrt_memory_server *server, struct session *session,
                             mrt_time died, const struct mrt_memory_sink *sink);
/* Removes tickets of dead sessions whose delay is over. */
void mrt_memory_end_delays(struct mrt_memory_server *server, mrt_time now,
                           const struct mrt_memory_sink *sink);
/* When the first delayed ticket goes. */
mrt_time mrt_memory_next_delay(const struct mrt_memory_server *server);
/* The recheck of a ticket's view: at the latest when a delayed ticket ahead of it goes. */
mrt_time mrt_memory_recheck(const struct mrt_memory_server *server, const struct ticket *ticket,
                            mrt_time now);

/* observe.c: the first ticket of a queue. */
/* Gives a ticket the command's value; false: no memory. */
bool mrt_memory_set_value(struct ticket *ticket, const struct mrt_command *command);
/* OBSERVE: fills in the answer, and keeps the session as an observer. */
void mrt_memory_observe(struct mrt_memory_server *server, const struct mrt_command *command,
                        struct session *session, struct mrt_event *answer);
/* Notifies the observers of a queue that it has another first ticket, or that ticket another value.
 */
void mrt_memory_tell_observers(struct mrt_memory_server *server, const char *queue,
                               const struct mrt_memory_sink *sink);
void mrt_memory_forget_observers(struct mrt_memory_server *server, const struct session *session);

#endif
