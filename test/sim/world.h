/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated world: N clients, each with a real engine and simulated threads, a
 * server model, and a link between them, in one process and on virtual time.
 *
 *   actor.c    threads of the clients: they acquire, nest, release, give up
 *   election.c candidates have values, and every client observes
 *   cell.c     and writes a cell
 *   multi.c    threads that acquire several locks at once; multi_library.c, what they call
 *   client.c   the host of an engine: its loop, its clock, its death
 *   link.c     messages between clients and server, and what befalls them
 *   server.c   the models: server_memory.c; server_sqlite.c and server_zookeeper.c, fakes of
 *              those stores
 *   host.c     a real store in a client; ZooKeeper's on zk_library.c, a fake of its client
 *              library, zk_wire.c, connections, and zk_ensemble.c, the servers; Redis's, and a
 *              quorum of five, on stream.c, streams of bytes, and redis_server.c, the servers;
 *              a quorum of members with sessions, on quorum_members.c;
 *              etcd's, on a fake of libcurl (etcd_server.h);
 *              PostgreSQL's, with libpq, on stream.c and pg_wire.c (pg_server.h); agents, and the
 *              store agent: in their clients, on stream.c too (agent_host.h)
 *   lone.c     a lone fault, in worlds without any other
 *   check.c    the invariants; delay.c: of what a dead holder leaves behind; detach.c: of what
 *              is left to whoever adopts it
 *   trace.c    what happened, as a hash and as text
 *   world.c    the phases of a run; runner.c, defects.c, main.c: running many
 *
 * Everything happens in tasks of one agenda, earliest first, and every choice comes
 * from one seeded generator, so a seed replays bit by bit. Nothing may depend on an
 * address. Threads: none.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "core/engine.h"
#include "core/recipe.h"
#include "profile.h"
#include "random.h"

#include <setjmp.h>

#define CLIENTS_MAX 8
#define ACTORS_MAX 8
#define QUEUES_MAX 4
#define GRIPS_MAX 4
#define QUORUM_MAX 3
#define PEERS_MAX 256
#define CHANNELS_MAX 4
#define OUTSTANDING_MAX 256
#define BROKEN_MAX 32
#define REVOKED_MAX 64
#define REFUSED_MAX 16
#define NO_QUEUE (-1)
#define SILENT UINT64_MAX /* serial of a command whose answer nobody waits for */

struct world;
struct host;
struct agent_host;
struct zk_wire;
struct stream;

/* Something to be done at a time; embedded, as the first member, in what it is for. */
struct task {
    struct mrt_timer timer;
    void (*run)(struct world *world, struct task *task);
    bool owned; /* allocated for this alone: freed if the world ends before it runs */
};

/* Disasters befall a client or an agent now and then. */
struct disaster {
    struct task *task;
    int64_t every_us; /* 0: it does not happen */
    void (*run)(struct world *world, struct task *task);
};

/* One life of a client, as the server knows it. */
struct peer {
    struct client *client; /* NULL: that life has ended */
    int index;             /* of the client */
    int follower;          /* the server it is connected to, if followers die */
    bool closed;           /* ended in order, at that time: nothing of it may be left */
    mrt_time closed_at;
};

/* Answers since something became due, see rounds.c. */
struct rounds {
    int count;
    bool waits;     /* for answers, after the round has begun */
    uint64_t cuts;  /* of the client's connections, when the first one began */
    uint64_t asked; /* by the client, when it began */
    mrt_time begins;
};

/* A hold that an actor has. */
struct grip {
    struct mrt_hold *hold; /* NULL: none */
    uint64_t generation;
    int queue;
    uint64_t owner, weight;
    uint32_t count;
    uint64_t fence;
    mortise_state told;
    bool seen_lost;
    bool broken; /* an operator removed its ticket: no promise holds but that it is told */
    mrt_time broken_at;
    mrt_time ends;  /* by itself, on its client's clock; 0: it does not */
    bool listens;   /* to requests to give up */
    mrt_time got;   /* on its client's clock */
    uint64_t value; /* of a leader, what it proclaimed last, and when */
    mrt_time proclaimed_at;
    struct rounds proclaimed;
    mrt_time valid_until; /* as last seen, on its client's clock */
    int revokes, asked;   /* revoke requests that an operator made, and those that it was told of */
    int undue;            /* of them: requests that it need not hear of */
    mrt_time unheard_since; /* when a request met a listener; 0: not yet */
};

enum actor_state {
    ACTOR_IDLE,
    ACTOR_WAITING, /* in an acquire or a verify */
    ACTOR_WOKEN,   /* will retry */
    ACTOR_DONE
};

struct actor {
    struct task step;   /* the next thing it does by itself */
    struct task giveup; /* cancel, or a deadline of its own */
    struct client *client;
    int index;
    enum actor_state state;
    struct mrt_waiter waiter;
    int queue;
    uint64_t order; /* when it queued, to compare */
    uint64_t value; /* of a candidate */
    bool verifying, giving_up;
    struct detached *detached; /* that it detaches or, if it inherits, adopts; NULL: none */
    bool inherits;
    bool nested, refused; /* it owns a hold of the lock; one that it may not acquire so again */
    int giveup_error;
    mrt_time deadline; /* of the waiter */
    struct grip grips[GRIPS_MAX];
    struct grip stale;  /* one that was released */
    int64_t operations; /* left in this phase */
    int verify_grip;
};

/* A client's view of an election. */
struct sight {
    struct mrt_request *observer;
    bool seen;
    uint64_t fence, value, last_fence;
    struct rounds rounds; /* since the server knows something else, or the client runs */
};

/* A client reads once who leads. */
struct inquiry {
    struct mrt_waiter waiter;
    struct mrt_answer answer;
    bool asks;
    int queue;
    uint64_t floor; /* who led when it asked */
};

/* The writer of a cell for a client, one write after the other. */
struct writer {
    struct task step;
    struct mrt_waiter waiter;
    struct mrt_answer answer;
    bool asks, writes; /* a read, a write is under way */
    int64_t left;
    uint64_t fence, floor; /* it writes with; the largest that was surely seen when it read */
};

struct channel {
    struct mrt_id session;
    mrt_time down, up; /* nothing may be delivered before */
};

struct client {
    struct world *world;
    int index;
    struct peer *peer;
    struct mrt_engine *engine; /* NULL: not running */
    mrt_time offset;
    int64_t rate_ppm;
    struct task tick, kick;      /* kick: the store has been busy for long enough */
    struct mrt_command *in_hand; /* that it is busy with; NULL: none */
    struct task disaster_crash, disaster_pause, disaster_close, disaster_cut, disaster_kill;
    struct task restart;
    mrt_time paused_until, cut_until;
    mrt_time unreachable_at; /* when its store said so last */
    bool closing, pumping;
    int grip_count; /* of all its actors */
    struct actor actors[ACTORS_MAX];
    struct channel channels[CHANNELS_MAX];
    int next_channel;
    struct mrt_command outstanding[OUTSTANDING_MAX]; /* copies; serial 0: free */
    int outstanding_count;                           /* places that have been used */
    uint64_t last_serial;
    uint64_t renewal;     /* serial of the newest RENEW */
    struct mrt_event old; /* its answer, kept for the session after its own; serial 0: none */
    struct mrt_id refused[REFUSED_MAX]; /* tickets that were refused for good */
    int refused_count;
    uint64_t waiter_order;
    struct sight sights[QUEUES_MAX];
    struct inquiry inquiry;
    struct writer writer;
    mrt_time booted_at;
    struct host *host, *dead_hosts; /* if it runs the real store */
    struct agent_host *agent;       /* it is one, and has no engine here; NULL: it is not */
    struct zk_wire *wires;
    struct stream *streams;
    struct mrt_store *members[QUORUM_MAX]; /* of a quorum with sessions; NULL: not open */
    mrt_time reset_until;                  /* connections are refused */
    uint64_t asked, answered;              /* requests to ZooKeeper */
    uint64_t cuts;                         /* answers of connections that were lost */
    /* The expected count. */
    uint64_t acquisitions, nested, losses, commands;
};

#define GRANTS_MAX 64 /* that are looked at */
#define GRAVES_MAX 64

/* A holder of so much has died: no client gets it until then. */
struct grave {
    int queue;
    mrt_time until;
    uint64_t weight, fence;
};

#define DETACHED_MAX 8

enum detached_state {
    DETACHED_NONE,
    DETACHED_ASKED,    /* the store has not confirmed */
    DETACHED_SURE,     /* nobody's, until somebody adopts it */
    DETACHED_GIVEN_UP, /* or a client's that stopped adopting it and detaches it again */
    DETACHED_UNSURE,   /* or not there any more */
    DETACHED_OVER      /* adopted or broken, and others are still at it */
};

/* A ticket that is nobody's. */
struct detached {
    enum detached_state state;
    uint64_t number; /* of its identity */
    int queue;
    uint64_t weight, fence; /* of its last hold */
    mrt_time since;
    int wanted; /* by so many threads */
    bool broken;
};

/* The fences of a ticket. */
struct span {
    uint64_t fence, length;
};

struct queue_state {
    char name[16];
    int64_t lock; /* its kind */
    struct mrt_recipe recipe;
    uint64_t last_fence, last_alone; /* granted: to anybody; with the whole capacity */
    /* The turn under way: its ticket, and since when others wait; MRT_TIME_NEVER: not. */
    uint64_t turn_fence;
    mrt_time contended_since;
    int idle_count; /* granted tickets without a hold */
    struct idle {
        uint64_t fence;
        mrt_time since,
            wanted; /* since when it has no hold while others wait; MRT_TIME_NEVER: not so */
        bool due;   /* it has to be released */
        struct rounds rounds; /* from then on */
    } idle[GRANTS_MAX];
    uint64_t first_fence, first_value; /* of an election, and since when */
    mrt_time first_since;
    struct span broken[BROKEN_MAX]; /* of tickets that an operator removed */
    int broken_count;
    uint64_t revoked[REVOKED_MAX]; /* tickets whose holder an operator asked to give up */
    bool undue[REVOKED_MAX];       /* and whose next ones need not hear of it */
    int revoked_count;
    uint64_t asked_back;    /* of them, the newest whose holder knows */
    mrt_time overdue_since; /* the first grant beyond the budget: it makes the engine ask */
    mrt_time
        unserved_since; /* since when it is free while a client waits; MRT_TIME_NEVER: not so */
};

/* Lone faults; see lone.c. */
struct lone {
    struct task task;
    int64_t commands;      /* submitted by all clients */
    int64_t next, awaited; /* FAULT_NONE: none */
    bool again;
    int count; /* of those that have come */
    int64_t faults[2];
    const struct client *victims[2];
    mrt_time since, until; /* all of them */
};

enum phase { PHASE_CHAOS, PHASE_HEAL, PHASE_CLOSE };

struct trace;
struct server;
struct resp_world;

struct world {
    uint64_t seed;
    struct profile profile;        /* as it is in this phase */
    struct profile drawn;          /* as it was drawn */
    struct random random, several; /* a thread that acquires several locks, see multi.c */
    enum phase phase;
    mrt_time now, phase_ends;
    struct mrt_heap agenda;
    struct client clients[CLIENTS_MAX];
    struct queue_state queues[QUEUES_MAX];
    struct grave graves[GRAVES_MAX];
    int grave_count; /* places that have been used */
    struct detached detached[DETACHED_MAX];
    uint64_t detached_number;
    struct peer peers[PEERS_MAX];
    int peer_count;
    struct server *server;
    struct resp_world *resp;             /* clients of agents' commands; NULL: there are none */
    bool server_changed, owners_changed; /* by this step; owners: whose a ticket is */
    struct known_truth *truths;          /* of the queues, see check.c */
    struct message *free_messages, *all_messages;
    struct trace *trace;
    uint64_t operations, steps;
    struct task reboot, breakage, revocation, going_about;
    struct lone lone;
    mrt_time healed_at, recovery;     /* until nothing is felt any more of what went wrong before */
    bool has_faults;                  /* of connections, in the chaos */
    mrt_time silent_until;            /* the only server that some client knows stands still */
    uint64_t cell_done, cell_unknown; /* writes of the cell */
    uint64_t cell_fences, cell_floor; /* given out; the largest that a write was done with */
    char failure[400];                /* empty: none */
    int failed_queue, failed_client;
    jmp_buf failed;
};

/* world.c */
struct outcome {
    uint64_t hash, operations, steps;
    char failure[400];
};
/* Runs a seed; `text`: where to print the trace of a run that fails, or of any if
   `all`; NULL for no trace. */
void world_run(uint64_t seed, const struct profile *profile, FILE *text, bool all,
               struct outcome *outcome);
void world_at(struct world *world, struct task *task, mrt_time at,
              void (*run)(struct world *, struct task *));
void world_cancel(struct world *world, struct task *task);
/* Plans the next of each kind of disaster, and cancels those that do not happen. */
void world_arm(struct world *world, const struct disaster *disasters, size_t count);
/* By how much a client's clock is faster than a server's at most, in millionths. */
int64_t world_fastest(const struct world *world);
/* 0 .. limit microseconds. */
mrt_time world_some(struct world *world, int64_t limit_us);
/* Whether there is a lock of this kind. */
bool world_has(const struct world *world, int64_t lock);
/* How long the client lingers on this lock; 0: it does not. */
mrt_time world_linger(const struct world *world, int queue);
/* A length about `every_us`. */
mrt_time world_about(struct world *world, int64_t every_us);

/* client.c */
mrt_time client_now(const struct client *client);
mrt_time client_true(const struct client *client, mrt_time local);
void client_boot(struct world *world, struct client *client, bool new_clock);
int64_t client_draw_rate(struct world *world);
/* A handle, to be given back with mrt_queue_put. */
struct mrt_queue *client_queue(struct world *world, struct client *client, int queue);
void client_die(struct world *world, struct client *client);
void client_close(struct world *world, struct client *client);
bool client_paused(const struct client *client);
/* At the end of a run: what is left of it; then, when nothing is on its way any more, the rest. */
void client_forget(struct client *client);
void client_fini(struct client *client);
void client_event(struct world *world, struct client *client, const struct mrt_event *event);
/* Runs the client's timers that are due. */
void client_catch_up(struct world *world, struct client *client);
/* Fetches the engine's effects; after every call of it. */
void client_pump(struct world *world, struct client *client);
bool client_idle(const struct client *client);
void client_arm_disasters(struct world *world, struct client *client);

/* actor.c */
void actor_begin(struct world *world, struct actor *actor, int64_t operations);
void actor_settled(struct world *world, struct client *client, struct mrt_waiter *waiter);
void actor_told(struct world *world, struct client *client, struct mrt_hold *hold);
void actor_asked(struct world *world, struct client *client, struct mrt_hold *hold);
void actor_forget(struct world *world, struct actor *actor);
void actor_drop_grip(struct actor *actor, struct grip *grip);
/* For multi.c. The next step of its thread by itself, then or after at most so long. */
void actor_step_at(struct world *world, struct actor *actor, mrt_time at);
void actor_step_in(struct world *world, struct actor *actor, int64_t limit_us);
/* It gives up after so long what it waits for. */
void actor_plan_giving_up(struct world *world, struct actor *actor, mrt_time after);
uint64_t actor_draw_weight(struct world *world, struct random *random, int64_t lock);
/* Its waiter, or another of its own, has been granted actor->queue. */
void actor_granted(struct world *world, struct actor *actor, const struct mrt_waiter *waiter);
/* Whether any acquire may end so, by what befalls its client and the store. */
bool actor_may_fail(const struct actor *actor, int error, bool try_only);
void actor_release(struct world *world, struct actor *actor, struct mrt_hold *hold,
                   uint64_t generation);

/* multi.c */
/* Begins to acquire several locks, if it is so drawn; goes on with that, or gives it up, if it
   is at it. */
bool multi_begin(struct world *world, struct actor *actor);
bool multi_step(struct actor *actor);
bool multi_cancel(struct world *world, struct actor *actor);
/* Whether the waiter is that of such a call. */
bool multi_settled(struct world *world, struct client *client, struct mrt_waiter *waiter);
/* Whether one that came before `order` waits for the lock since then or longer. */
bool multi_overtaken(const struct client *client, int queue, uint64_t order, mrt_time since);
/* Whether one that only tries waits for it. */
bool multi_tries(const struct client *client, int queue);
/* Whether a close has to wait for one that is inside the client; then there may be none. */
bool multi_inside(const struct client *client);
void multi_check_closed(const struct client *client);
/* Its engine is about to be gone. */
void multi_died(struct client *client);
/* The client whose call runs now, beside the world; NULL: none does. */
const struct client *multi_client(void);

/* election.c */
void election_boot(struct world *world, struct client *client);
void election_candidate(struct world *world, struct actor *actor);
void election_proclaim(struct world *world, struct actor *actor, struct grip *grip);
/* Fetches what the engine's observers see; whether there was anything. */
bool election_observe(struct world *world, struct client *client);
/* Whether the waiter is that of a single read of the leader. */
bool election_settled(struct world *world, struct client *client, const struct mrt_waiter *waiter);
void election_check(struct world *world, bool calm, mrt_time limit);
mrt_time election_patience(const struct world *world);
void election_check_end(struct world *world);

/* cell.c */
void cell_boot(struct world *world, struct client *client);
/* Whether the waiter is the writer's. */
bool cell_settled(struct world *world, struct client *client, const struct mrt_waiter *waiter);
void cell_died(struct world *world, struct client *client);
void cell_check_end(struct world *world);

/* link.c */
void link_submit(struct world *world, struct client *client, const struct mrt_command *command);
/* From the server. */
void link_deliver(struct world *world, struct peer *peer, const struct mrt_event *event);
void link_fini(struct world *world);

/* server.c */
void server_init(struct world *world);
void server_fini(struct world *world);
void server_apply(struct world *world, struct peer *peer, const struct mrt_command *command);
/* A process has died; `dead` before its memory is forgotten. */
void server_died(struct world *world, struct peer *peer);
/* An event leaves the server. */
void server_told(struct world *world, const struct peer *peer, const struct mrt_event *event);
/* The store gives up the sessions of a client that has been notified. */
void server_kill(struct world *world, struct peer *peer);
void server_reboot(struct world *world);
/* An operator removes the ticket of this fence; whether there was one. */
bool server_break(struct world *world, int queue, uint64_t fence);
/* An operator revokes this ticket; 0: all holders. */
bool server_revoke(struct world *world, int queue, uint64_t fence);
/* The truth about a queue: who is granted. */
struct truth {
    const struct server *server;
    int queue;
    struct peer *peer;             /* of the first ticket; NULL: the queue is empty */
    uint64_t fence, span, granted; /* of the first ticket; granted: weight of this peer's */
    bool others;                   /* someone alive waits behind it */
    uint64_t value;                /* of the first ticket */
    bool lawless; /* the server has forgotten, and grants nobody anything until that is harmless */
    int grant_count; /* of all peers' */
    int nobodys_count;
    struct grant {
        const struct peer *peer;
        uint64_t fence;
        bool orphaned; /* its session is dead, and nobody needs to know it yet */
    } grants[GRANTS_MAX];
    uint64_t nobodys[DETACHED_MAX]; /* fences of tickets that were detached; of no peer */
};
/* Empties it, but for the lists' places that do not count. */
void truth_begin(struct truth *truth, const struct server *server, int queue);
/* For the models: the next ticket of the queue, in order; and one that was detached. */
void truth_add(struct truth *truth, const struct peer *asker, struct peer *peer, uint64_t fence,
               uint64_t weight, bool granted);
void truth_add_nobodys(struct truth *truth, uint64_t fence);
void server_truth(struct world *world, int queue, const struct peer *peer, struct truth *truth);
struct known_truth {
    struct truth truth;
    bool is_known;
};
/* How many tickets and sessions are left that no death explains. */
int server_left(struct world *world);
/* How often the cell has been written. */
uint64_t server_cell(struct world *world);

/* rounds.c */
void rounds_begin(const struct world *world, struct rounds *rounds);
/* To be asked after each step; whether the client has had the answers to do what it has to. */
bool rounds_over(const struct world *world, const struct client *client, struct rounds *rounds);

/* lone.c */
/* A client has sent a command. */
void lone_submitted(struct world *world);
/* Whether this fault comes now, and which client it meets. */
bool lone_takes(struct world *world, int64_t fault, const struct client *client);
/* Whether it, or what it leaves behind, goes on. */
bool lone_disturbs(const struct world *world);
/* Whether a client may lose its session by it. */
bool lone_explains(const struct world *world, const struct client *client);
/* `held`: a client holds the lock; else a waiter must get it within the limit. */
void lone_check_served(struct world *world, int queue, bool held, mrt_time limit);

/* delay.c */
/* Notes until when a hold is valid, or that it has just been lost. */
mrt_time delay_of(const struct world *world, int queue);
void delay_note(struct world *world, const struct client *client, const struct actor *actor,
                struct grip *grip);
/* A client is about to die. */
void delay_died(struct world *world, struct client *client);
/* An operator removes the ticket of this fence. */
void delay_broken(struct world *world, int queue, uint64_t fence);
/* The part of a lock that no client may hold now. */
uint64_t delay_weight(const struct world *world, int queue);

/* detach.c */
/* The actor's waiter is ready; whether it waits now. */
bool detach_begin(struct world *world, struct actor *actor, struct grip *grip);
/* The adoption to ask for; true if there is anything to adopt. */
bool detach_adopt(struct world *world, struct actor *actor);
/* It has been granted the ticket that it adopts; the wait has ended; it has ended. */
void detach_adopted(struct world *world, struct actor *actor, const struct grip *grip);
void detach_settled(struct world *world, struct actor *actor, int error);
void detach_forget(struct actor *actor);
/* An operator removes the ticket of this fence. */
void detach_broken(struct world *world, int queue, uint64_t ticket);
/* The part of a lock that must be detached now. */
uint64_t detach_weight(struct world *world, int queue);
void detach_check(struct world *world, int queue, const struct truth *truth);
void detach_populate(struct world *world);
/* The operator breaks detached tickets that no client will adopt any more. */
void detach_end(struct world *world);

/* check.c */
/* Within check_step: what the server knows. */
const struct truth *check_truth(struct world *world, int queue);
/* Before anything else of a run. */
void check_begin(struct world *world);
/* No session ends but by its client's will, and what was begun at that time is done. */
bool check_keeps_sessions(const struct world *world, mrt_time begun);
/* Whether a heavier hold in the same ticket stands for this one too. */
bool check_covered(const struct actor *actor, const struct grip *grip);
/* Whether an operator removed its ticket. */
bool check_was_broken(const struct world *world, const struct grip *grip);
__attribute__((format(printf, 4, 5))) _Noreturn void check_fail(struct world *world, int client,
                                                                int queue, const char *format, ...);
void check_step(struct world *world);
void check_submitted(struct world *world, struct client *client, const struct mrt_command *command);
void check_answered(struct world *world, struct client *client, const struct mrt_event *event);
/* The command is refused for good: a ticket is not asked for again. */
void check_refused(struct client *client, const struct mrt_command *command);
void check_released(struct world *world, int queue, uint64_t fence);
/* A hold was told of its loss. */
void check_lost(struct world *world, const struct client *client, const struct grip *grip);
void check_granted(struct world *world, struct actor *actor, struct grip *grip);
/* Losses that a close finds, and does not report. */
void check_closing(struct client *client);
void check_broken(struct world *world, int queue, struct span span);
/* A hold was told of a request. */
void check_asked(struct world *world, const struct client *client, struct grip *grip);
void check_revoked(struct world *world, int queue, uint64_t fence);
void check_ticked(struct world *world, struct client *client);
void check_counters(struct world *world, struct client *client);

/* trace.c */
enum {
    TRACE_ACQUIRE,
    TRACE_RETRY,
    TRACE_CANCEL,
    TRACE_RELEASE,
    TRACE_VERIFY,
    TRACE_DONE,
    TRACE_WOKEN,
    TRACE_TOLD,
    TRACE_SUBMIT,
    TRACE_UNSUBMIT,
    TRACE_APPLY,
    TRACE_EVENT,
    TRACE_TICK,
    TRACE_LINK,
    TRACE_CLIENT,
    TRACE_PHASE
};
struct trace *trace_new(bool keep);
void trace_free(struct trace *trace);
/* `what` is a static text and is not hashed. */
void trace_note(struct world *world, int kind, int client, int queue, const char *what, int64_t a,
                int64_t b, int64_t c);
uint64_t trace_hash(const struct trace *trace);
/* Events of a queue and a client, or of all. */
void trace_print(const struct trace *trace, FILE *file, int queue, int client, bool all);

#endif
