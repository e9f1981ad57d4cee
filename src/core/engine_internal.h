/*
 * The parts of an engine, shared by the files of core and by nobody else:
 *   session.c  is the session alive, and until when
 *   ticket.c   one place in one queue of the store: a state machine
 *   queue.c    the local tier: who of this process gets the lock next
 *   shared.c   the same for what several may hold: each waiter has a ticket of its own
 *   hold.c     slots of holds, their states and what is told of them
 *   limit.c    holds that end by themselves
 *   verify.c   asking the store whether a hold is there
 *   detach.c   tickets that outlive their session, and are adopted
 *   request.c  what is asked of the store beside tickets: cells, and who holds a queue
 *   engine.c   commands out, events in, timers, the life of the whole
 */
#ifndef MRT_CORE_ENGINE_INTERNAL_H
#define MRT_CORE_ENGINE_INTERNAL_H

#include "core/engine.h"

/* Memory that runs out makes an insertion fail, not the process. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

TAILQ_HEAD(mrt_command_list, mrt_command);
TAILQ_HEAD(mrt_waiter_list, mrt_waiter);
TAILQ_HEAD(mrt_ticket_list, mrt_ticket);
TAILQ_HEAD(mrt_hold_list, mrt_hold);
TAILQ_HEAD(mrt_queue_list, mrt_queue);
TAILQ_HEAD(mrt_request_list, mrt_request);

/* What a timer is embedded in. */
enum mrt_timer_kind {
    MRT_TIMER_WAITER,
    MRT_TIMER_TICKET,
    MRT_TIMER_HOLD,
    MRT_TIMER_REQUEST,
    MRT_TIMER_SESSION,
    MRT_TIMER_CONTACT
};

enum mrt_session_state {
    MRT_SESSION_NONE,
    MRT_SESSION_STARTING,
    MRT_SESSION_LIVE,
    MRT_SESSION_STOPPING
};

/* A sign of life that was acknowledged. */
struct mrt_sign {
    mrt_time sent, answered;
};
#define MRT_SIGNS 8 /* as many are remembered; three are needed */

struct mrt_session {
    enum mrt_session_state state;
    struct mrt_id id;
    mrt_time lease;       /* 0: needs no proof of life */
    mrt_time proof_lag;   /* how old a sign of life must be to be proven by the next one */
    bool dates;           /* each RENEWED says what is proven */
    mrt_time heard;       /* when the newest acknowledged sign of life was sent */
    mrt_time proof;       /* when the newest proven one was sent */
    mrt_time sent;        /* when the newest START or RENEW was sent */
    mrt_time valid_until; /* MRT_TIME_NEVER without a lease; 0: not live */
    struct mrt_sign signs[MRT_SIGNS]; /* with a proof_lag */
    uint32_t sign_count;
    bool suspended;
    bool unreachable;           /* the newest sign of life came to nothing */
    bool owes;                  /* it was live when the engine was closed */
    uint32_t attempts;          /* failures in a row, for the pause before the next */
    struct mrt_command command; /* START, STOP */
    struct mrt_command renew;
    struct mrt_timer timer;
};

enum mrt_ticket_state {
    MRT_TICKET_FREE,
    MRT_TICKET_NEW,     /* APPEND is not answered */
    MRT_TICKET_WAITING, /* queued, tickets ahead */
    MRT_TICKET_GRANTED,
    MRT_TICKET_LEAVING, /* being removed */
    MRT_TICKET_ORPHAN   /* its session is gone; an answer is still to come */
};

struct mrt_ticket {
    enum mrt_ticket_state state;
    struct mrt_id id;
    struct mrt_queue *queue;
    uint64_t weight;
    uint32_t holds;            /* GRANTED: how many have it */
    struct mrt_waiter *waiter; /* for whom alone it waits: of a shared recipe, or if it adopts */
    uint64_t fence, fence_span;
    uint64_t granted_serial;   /* the newest command when it was granted */
    uint64_t used;             /* fences handed out */
    mrt_time delay;            /* how long it stays in the store if the session dies */
    bool fresh;                /* GRANTED: nobody has had it yet */
    bool adopts;               /* it was nobody's, and has not become a hold yet */
    uint64_t last_fence;       /* adopts: of its last hold */
    struct mrt_id detached_id; /* LEAVING: what it is called when it is nobody's; none: it goes */
    bool try_only;
    bool waited; /* others were ahead */
    bool others_behind;
    bool may_linger;      /* the store was asked to tell of who queues behind it */
    bool outcome_unknown; /* an APPEND of unknown outcome: it may be in the store */
    bool look_again;      /* REFRESH once the outstanding command is answered */
    bool remove_pending;  /* LEAVING: its REMOVE waits for the answer to an earlier command */
    bool lightening;      /* the store is to be told of its lower weight */
    bool revaluing;       /* the store is to be told of its new value */
    bool unreachable;     /* the newest command came to nothing, for want of a connection */
    bool checking_others; /* a REFRESH sent to learn whether others wait */
    bool watch_closely;   /* a hold wants to hear at once of what others do to it */
    uint64_t revoked;     /* the newest request to give it up that is known; 0: none */
    uint32_t attempts;
    mrt_time recheck;
    mrt_time lingers;       /* GRANTED, nobody has it: kept until then; 0: it is not */
    mrt_time due;           /* a look, or a command that is repeated */
    struct mrt_timer timer; /* the earlier of the two */
    struct mrt_command command;
    void *value, *sent; /* its value, and the one that `command` has, mostly the same */
    size_t value_size;
    struct mrt_waiter_list verifiers;
    TAILQ_ENTRY(mrt_ticket) link; /* of its queue, the free tickets, or the loose ones */
    UT_hash_handle hh;            /* by id, unless it is an ORPHAN */
};

enum mrt_request_state {
    MRT_REQUEST_IDLE,   /* an observer that knows; its timer is the recheck */
    MRT_REQUEST_WANTED, /* to be sent when there is a session */
    MRT_REQUEST_SENT,
    MRT_REQUEST_PAUSED /* before it is sent again */
};

struct mrt_request {
    enum mrt_request_state state;
    struct mrt_engine *engine;
    struct mrt_command command;
    struct mrt_timer timer;
    struct mrt_waiter *waiter; /* NULL: an observer, or given up */
    struct mrt_answer *result; /* the waiter's */
    struct mrt_answer answer;  /* of an observer: the newest */
    bool observer;
    bool ended;           /* to be freed when its command is answered */
    bool outcome_unknown; /* a write of unknown outcome: it may have been done */
    bool again;           /* observer: CHANGED has come while it was SENT */
    bool known;           /* observer: `answer` is one */
    bool telling;
    uint32_t attempts;
    void *host;
    TAILQ_ENTRY(mrt_request) link, observed_link;
    char bytes[]; /* the name, and the value */
};

struct mrt_queue {
    struct mrt_engine *engine;
    struct mrt_recipe recipe;
    uint32_t references; /* handles, waiters, holds and tickets */
    struct mrt_waiter_list waiters;
    struct mrt_hold_list holds;     /* also the lost ones, until they are released */
    struct mrt_ticket_list tickets; /* NEW, WAITING or GRANTED */
    struct mrt_hold *active;        /* not shared: who has the ticket */
    struct mrt_ticket *ticket;      /* not shared: the only one */
    uint32_t removals_pending;      /* tickets that are to go and whose REMOVE has not been sent */
    mrt_time linger;             /* a ticket that nobody here wants is kept so long; 0: it is not */
    mrt_time delay;              /* of its tickets */
    uint64_t floor, floor_alone; /* largest fences of holds: of any; of one with all there is */
    uint64_t floor_serial;       /* a command up to this one may have been answered before them */
    mrt_time turn_began;
    uint64_t turn_count;
    TAILQ_ENTRY(mrt_queue) link; /* of the queues, or of the unused ones */
    UT_hash_handle hh;           /* by name */
    char name[];
};

struct mrt_engine {
    struct mrt_engine_config config;
    uint64_t identities, serial;
    struct mrt_heap timers;
    struct mrt_session session;
    struct mrt_queue *queues_by_name;
    struct mrt_queue_list queues;
    struct mrt_queue_list unused; /* without references; freed when no call is under way */
    struct mrt_ticket *tickets_by_id;
    struct mrt_ticket_list free_tickets;
    struct mrt_ticket_list loose_tickets; /* LEAVING and ORPHAN */
    struct mrt_hold_list free_holds;
    struct mrt_command_list outbox, outstanding;
    struct mrt_waiter_list settled, placed;
    struct mrt_hold_list told, asked;
    struct mrt_request_list requests, observed;
    bool closing;
    mrt_time silent_since; /* contact.c; 0: nothing is unanswered */
    bool away, away_told;
    struct mrt_timer contact;
    struct mrt_engine_counters counters;
};

/* engine.c */
/* NULL: it is not there. */
struct mrt_ticket *mrt_engine_ticket(struct mrt_engine *engine, struct mrt_id id);
struct mrt_id mrt_engine_identity(struct mrt_engine *engine);
void mrt_engine_send(struct mrt_engine *engine, struct mrt_command *command,
                     enum mrt_command_type type);
/* Takes a command back that has not been fetched; false if it is not in the outbox. */
bool mrt_engine_unsend(struct mrt_engine *engine, struct mrt_command *command);
/* Pause before the next attempt: config.pause_min doubled up to pause_max, spread by a half. */
mrt_time mrt_engine_pause(struct mrt_engine *engine, uint32_t attempts);
/* After how long to look again, where the store says so; 0: not. */
mrt_time mrt_engine_recheck(const struct mrt_engine *engine, mrt_time told);
/* Its place in the store's queue is this; told if it cares and that is news. */
void mrt_waiter_place(struct mrt_waiter *waiter, uint64_t place);
/* What has not been told of it is not told any more. */
void mrt_waiter_unplace(struct mrt_waiter *waiter);
/* Ends a waiter that has been taken out of its list. */
void mrt_waiter_end(struct mrt_waiter *waiter, int error);

/* session.c */
void mrt_session_need(struct mrt_engine *engine);
void mrt_session_answer(struct mrt_engine *engine, struct mrt_command *command,
                        const struct mrt_event *event, mrt_time now);
/* Loses the session if its lease has run out at `now`. */
void mrt_session_check(struct mrt_engine *engine, mrt_time now);
void mrt_session_lose(struct mrt_engine *engine, mrt_time now);
/* Whether it is not open, or the connection that it lives by is known to be lost. */
bool mrt_session_unreachable(const struct mrt_engine *engine);
void mrt_session_timer(struct mrt_engine *engine, mrt_time now);
void mrt_session_close(struct mrt_engine *engine);

/* contact.c */
/* A command has been fetched. */
void mrt_contact_asked(struct mrt_engine *engine, mrt_time now);
/* A command has been answered, and is not among the outstanding ones. */
void mrt_contact_answered(struct mrt_engine *engine, const struct mrt_event *event, mrt_time now);
void mrt_contact_timer(struct mrt_engine *engine, mrt_time now);
/* No server can be reached just now. */
void mrt_contact_refused(struct mrt_engine *engine, mrt_time now);

/* ticket.c */
struct mrt_ticket *mrt_ticket_append(struct mrt_queue *queue, const struct mrt_waiter *waiter);
/* 0 or MORTISE_ENOMEM. */
int mrt_ticket_set_value(struct mrt_ticket *ticket, const void *value, size_t size);
void mrt_ticket_free(struct mrt_ticket *ticket);
void mrt_ticket_look(struct mrt_ticket *ticket);
/* Lowers the weight of a granted ticket; no effect if it is not lower. */
void mrt_ticket_lighten(struct mrt_ticket *ticket, uint64_t weight);
void mrt_ticket_remove(struct mrt_ticket *ticket);
/* Its session is gone, and it with it. */
void mrt_ticket_drop(struct mrt_ticket *ticket);
/* From now on the store is to tell at once of what others do to it. */
void mrt_ticket_attend(struct mrt_ticket *ticket);
/* Keeps a granted ticket that nobody here has or wants. */
void mrt_ticket_linger(struct mrt_ticket *ticket, mrt_time until);
void mrt_ticket_timer(struct mrt_ticket *ticket, mrt_time now);
void mrt_ticket_unsubmitted(struct mrt_ticket *ticket, mrt_time now);
/* For ticket_answer.c. */
void mrt_ticket_move(struct mrt_ticket *ticket, enum mrt_ticket_state state);
/* Whether it is NEW, WAITING or GRANTED. */
bool mrt_ticket_in_queue(const struct mrt_ticket *ticket);
/* Whether it has a command that was not answered, or not even fetched. */
bool mrt_ticket_under_way(const struct mrt_ticket *ticket);
void mrt_ticket_send(struct mrt_ticket *ticket, enum mrt_command_type type);
/* How it leaves: for good, or to be nobody's. */
enum mrt_command_type mrt_ticket_way_out(const struct mrt_ticket *ticket);
/* What the next ticket of the queue had to wait for has been sent, or is not needed. */
void mrt_ticket_is_sent(struct mrt_ticket *ticket);
/* For when a command is due, or lingering ends. */
void mrt_ticket_set_timer(struct mrt_ticket *ticket);
/* The removal, or what has to be repeated, after a pause. */
void mrt_ticket_again_later(struct mrt_ticket *ticket, mrt_time now);
/* Back to the free ones. */
void mrt_ticket_put(struct mrt_ticket *ticket);

/* ticket_answer.c */
void mrt_ticket_answer(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now);
/* A view that was not asked for. */
void mrt_ticket_told(struct mrt_ticket *ticket, const struct mrt_event *event, mrt_time now);
/* There is a request to give it up, of this number or 0. */
void mrt_ticket_revoked(struct mrt_ticket *ticket, uint64_t number);

/* queue.c */
/* Begins one that waits for a lock. */
void mrt_waiter_begin(struct mrt_waiter *waiter, struct mrt_engine *engine, struct mrt_queue *queue,
                      mrt_time now);
void mrt_queue_reference(struct mrt_queue *queue);
void mrt_queue_free(struct mrt_queue *queue);
void mrt_queue_serve(struct mrt_queue *queue, mrt_time now);
void mrt_queue_granted(struct mrt_queue *queue, mrt_time now);
/* Whether somebody who waits by this ticket wants to hear of its place, and what it is. */
bool mrt_queue_wants_place(const struct mrt_ticket *ticket);
void mrt_queue_placed(struct mrt_ticket *ticket, uint64_t place);
/* The ticket is no more; whoever held by it has lost. */
void mrt_queue_ticket_gone(struct mrt_ticket *ticket);
/* The store has it, but others are before it though it was granted: it is lost, and taken out. */
void mrt_queue_ticket_overtaken(struct mrt_ticket *ticket);
/* A try was in vain; the ticket is still there. */
void mrt_queue_blocked(struct mrt_ticket *ticket);
/* Fails the waiter for whom the ticket was asked, and drops it; takes it out, if it may be in the
   store. */
void mrt_queue_refused(struct mrt_ticket *ticket, int error, bool outcome_unknown);
/* The ticket stands for this waiter alone. */
void mrt_queue_attach_waiter(struct mrt_ticket *ticket, struct mrt_waiter *waiter);
/* The ticket stands for its waiter no more; NULL: it stood for nobody in particular. */
struct mrt_waiter *mrt_queue_detach_waiter(struct mrt_ticket *ticket);
/* Puts a waiter into the queue, behind or before all others. */
void mrt_queue_enter(struct mrt_queue *queue, struct mrt_waiter *waiter, bool first);
/* Ends a waiter without the lock, and takes its ticket out. */
void mrt_queue_fail(struct mrt_waiter *waiter, int error);
void mrt_queue_fail_all(struct mrt_queue *queue, int error);
void mrt_queue_unlink_waiter(struct mrt_waiter *waiter);

/* shared.c */
void mrt_shared_serve(struct mrt_queue *queue, mrt_time now);
/* A hold of this ticket has gone or become lighter. */
void mrt_shared_released(struct mrt_ticket *ticket);

/* request.c */
/* Sends what waits for a session. */
void mrt_requests_serve(struct mrt_engine *engine);
/* The session is lost: what has not been sent, and observers, wait for the next one. */
void mrt_requests_recall(struct mrt_engine *engine);
/* Ends them with this error, but for observers, which try again. */
void mrt_requests_fail(struct mrt_engine *engine, int error, mrt_time now);
void mrt_request_answer(struct mrt_engine *engine, struct mrt_command *command,
                        const struct mrt_event *event, mrt_time now);
/* CHANGED. */
void mrt_request_changed(struct mrt_engine *engine, struct mrt_id id);
void mrt_request_timer(struct mrt_request *request);
void mrt_request_unsubmitted(struct mrt_engine *engine, struct mrt_command *command);
void mrt_request_cancel(struct mrt_waiter *waiter, int error);
void mrt_requests_free(struct mrt_engine *engine);

/* hold.c */
struct mrt_hold *mrt_hold_take(struct mrt_engine *engine);
void mrt_hold_put(struct mrt_hold *hold);
/* Before anything is done to a hold: MORTISE_ENOTHELD, MORTISE_ENOTOWNER (`owner` 0: whoever has
   it), or 0, and what time has ended is lost. */
int mrt_hold_use(struct mrt_engine *engine, struct mrt_hold *hold, uint64_t generation,
                 uint64_t owner, mrt_time now);
/* By the ticket that its waiter was given. */
void mrt_hold_begin(const struct mrt_waiter *waiter, struct mrt_ticket *ticket, mrt_time now);
/* A second hold, of less weight, in the ticket that the first has. */
void mrt_hold_join(struct mrt_hold *hold, const struct mrt_hold *first, uint64_t weight);
void mrt_hold_lose(struct mrt_hold *hold);
void mrt_hold_tell(struct mrt_hold *hold, mortise_state state);
/* Somebody wants it back. */
void mrt_hold_ask(struct mrt_hold *hold);
/* An owner's hold; the one of this weight if there are two. */
struct mrt_hold *mrt_hold_of(struct mrt_queue *queue, uint64_t owner, uint64_t weight);
/* verify.c */
/* The waiter is told of the answer to what it asks next, or has begun to ask. */
void mrt_ticket_verify(struct mrt_ticket *ticket, struct mrt_waiter *waiter);
void mrt_ticket_end_verifiers(struct mrt_ticket *ticket, int error);
/* The ticket was there, in answer to a look of this serial: those who asked before know. */
void mrt_ticket_verified(struct mrt_ticket *ticket, uint64_t asked);
/* detach.c */
/* Makes the ticket ready to be granted to who adopts it. */
void mrt_ticket_resume(struct mrt_ticket *ticket);
/* limit.c */
/* It lasts at most so long from now; 0: for ever. */
void mrt_hold_limit(struct mrt_hold *hold, mrt_time longest, mrt_time now);
/* Loses it if its time is over. */
void mrt_hold_check(struct mrt_hold *hold, mrt_time now);
void mrt_hold_timer(struct mrt_hold *hold, mrt_time now);

#endif
