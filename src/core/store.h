/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store port: everything the engine asks of a store, and everything a store
 * may tell it. No store knows a recipe; it keeps a session alive, keeps tickets
 * in order, says what is ahead of a ticket, removes it, and wakes.
 *
 * Commands go down, each answered once by an event that carries its serial.
 * Other events come by themselves, with serial 0.
 *
 *   START    open the session `session`            -> STARTED
 *   STOP     end it and all its tickets            -> STOPPED
 *   RENEW    prove that the session lives          -> RENEWED
 *   APPEND   put a ticket at the end of its queue  -> VIEW; BLOCKED (try_only)
 *   REFRESH  look again at a ticket                -> VIEW, GONE
 *   LIGHTEN  lower a ticket's weight to `weight`    -> VIEW, GONE
 *   SET_VALUE  change a ticket's value              -> VIEW, GONE
 *   REMOVE   take a ticket out                     -> REMOVED
 *   DETACH   let a granted ticket outlive its session -> VIEW, GONE
 *   OBSERVE  see who is first in a queue            -> HOLDER
 *   CELL_GET read a cell                           -> CELL
 *   CELL_SET write a cell, or delete it             -> CELL
 *   any of them                                    -> FAILED, UNKNOWN
 *   (unasked)                               WAKE, VIEW, REVOKED, CHANGED, SESSION_LOST;
 *                                           FAILED, of no session: why nothing is answered; with
 *                                           EUNREACHABLE: no server of the store can be reached now
 *
 * The contract, each clause a test of the conformance suite:
 *  (a) A VIEW counts every live ticket that will ever be ahead, or at least so
 *      much weight of them that the ticket is not granted.
 *  (b) A dead session's tickets vanish, and never before the session's own
 *      lease has run out.
 *  (c) The fences of a queue rise for ever: across emptying, restart and a
 *      power cut. A ticket owns the numbers fence .. fence + fence_span - 1. A store that
 *      has none says so in its capabilities, and gives 0. The number of a ticket that waits may be
 *      one from MRT_WAITING_NUMBER on, which is no fence and is used once: the VIEW that grants
 *      brings the fence, and lists have that number as `id`. Where a store is wiped all the same,
 *      the engine gives nobody a ticket whose fence is not above those that it has given out.
 *  (d) A departure that makes a ticket grantable is reported by WAKE or by an unsolicited VIEW, or
 *      shows in a REFRESH after at most `recheck`. WAKE and VIEW may be
 *      spurious, doubled, late or early. The REFRESH of a waiting ticket may show the older state
 * of one of several servers, if that state does not grant. An unsolicited VIEW may be that of an
 *      earlier ticket of the same identity, whose fence was another, unless it says `in_order`.
 *  (e) Commands of one queue and one session take effect in the order submitted.
 *  (f) REMOVE of what is not there succeeds, and never removes another's ticket.
 *  (g) Commands of a session that has ended do nothing, and are answered. START of
 *      a session that is there, and STOP of one that is not, succeed.
 *  (h) APPEND of a ticket that is already there is a REFRESH: an APPEND whose
 *      outcome is unknown is simply sent again.
 *  (i) An APPEND with try_only that would have to wait leaves nothing behind. With `expect_free`
 *      others may have seen its ticket for a moment, where that saves a round trip. An APPEND that
 *      finds `queue_max` tickets waiting also leaves nothing behind: FAILED with MORTISE_EFULL.
 *  (j) FAILED means that nothing was done; if it may have been, the event is UNKNOWN. FAILED with
 *      MORTISE_ELOST means that the session has ended.
 *  (k) LIGHTEN changes neither place nor fence; to the tickets behind it is a departure of the
 *      difference. LIGHTEN of a ticket that is as light already is a REFRESH.
 *  (l) An APPEND with `claim` promises no order, so it needs no queue: the first that asks when the
 *      lock is free gets it. A store may take it as any other, in order. Or the VIEW of one that
 *      waits has a weight ahead that does not grant, and the fence 0; each departure WAKEs it, and
 *      the REFRESH that follows requests the lock again. There `queue_max` does not count, and a
 *      VIEW that grants says that others may be behind. A store that is not `fair` by its
 *      capabilities may take every ticket so.
 *  (m) A request to give a ticket up (`revoke`) changes nothing. REVOKED delivers it, or a WAKE and
 *      the VIEW that follows, if the ticket's newest command said `watch_closely`; and a VIEW shows
 *      it after at most `recheck`. Requests are numbered, and the numbers of a ticket rise: a
 *      request may be delivered twice, or not if a later one is. Requests made before any command
 *      said `watch_closely` are delivered when one does.
 *  (n) `break_ticket` removes the ticket of exactly this fence, or none. To the tickets behind it
 *      is a departure. Its session finds it GONE, and is woken to look if its newest command said
 *      `watch_closely`.
 *  (o) HOLDER carries fence and value of the first ticket in a queue whose tickets have values, or
 *      fence 0 if there is none, and nothing older than the OBSERVE. When the first ticket changes,
 *      the store sends CHANGED with the identity of that OBSERVE, or an OBSERVE shows it after
 *      `recheck`; not if it was to look `once`. CHANGED may be spurious, doubled or late, and comes
 *      at least once for each OBSERVE.
 *  (p) A cell has a version, which rises with each write, for ever, also across a deletion.
 *      CELL_SET is done if `version` is the cell's (0: there is none) and `fence` is not smaller
 *      than the largest that it ever came with; else it FAILED with MORTISE_ECONFLICT, or with
 *      MORTISE_ESTALE, which goes before. A fence of 0 is not compared. A CELL_SET whose identity
 *      is that of the cell's newest write has been done: one of unknown outcome is sent again.
 *  (q) DETACH leaves a granted ticket without a session, on disk where the store has one: from then
 *      on it is called `detached_id`, keeps place and fence, and no session's end removes it, but a
 *      break_ticket does. It becomes as light as `weight`, as by LIGHTEN. An APPEND with `adopt`
 *      gives such a ticket to its session, under the APPEND's own identity, and it is granted as it
 *      was; FAILED with MORTISE_ENOTHELD if there is none, and MORTISE_EMISMATCH if kind, capacity
 *      or weight differ. Both are sent again when their outcome is unknown: a DETACH that finds its
 *      detached_id has been done. Only where the capabilities say `detach`.
 *  (r) A ticket that holds, and whose APPEND said `linger`, learns of another that queues behind it
 *      by a WAKE, or by a VIEW that says so; or a REFRESH shows it after `recheck`. Only where the
 *      capabilities say `linger`.
 *  (s) A ticket whose APPEND had a `delay` and that holds when its session ends, in any way except
 *      a STOP without `died`, is not removed. It has no session from then on, and keeps its place,
 *      fence and weight, until the delay after that end is over: after the end of the lease, if
 *      that has run out. Then it goes as by REMOVE. Neither its old identity nor an `adopt` finds
 *      it; a break_ticket removes it. The VIEW of a ticket that waits behind has a `recheck` that
 *      is over no later than the delay, and a ticket that waited already when the delay began is
 *      woken to look, if the store wakes at all (`notify`). All other tickets of the session go
 *      immediately. A DETACH takes the delay off, an `adopt` brings its own. The delay may last
 *      longer than asked, never shorter.
 *      Only where the capabilities say `lock_delay`.
 */
#ifndef MRT_CORE_STORE_H
#define MRT_CORE_STORE_H

#include "base/id.h"
#include "base/list.h"
#include "base/time.h"
#include "base/traffic.h"
#include "mortise.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum mrt_command_type {
    MRT_START,
    MRT_STOP,
    MRT_RENEW,
    MRT_APPEND,
    MRT_REFRESH,
    MRT_LIGHTEN,
    MRT_SET_VALUE,
    MRT_REMOVE,
    MRT_DETACH,
    MRT_OBSERVE,
    MRT_CELL_GET,
    MRT_CELL_SET
};

/* A request. It and its texts stay valid until its answer has been delivered, no longer. */
struct mrt_command {
    TAILQ_ENTRY(mrt_command) link;
    enum mrt_command_type type;
    uint64_t serial; /* never 0; never the same twice in one engine */
    struct mrt_id session;
    struct mrt_id ticket;      /* APPEND and below; of OBSERVE and below an identity of their own */
    struct mrt_id detached_id; /* DETACH */
    uint64_t fence;    /* REFRESH to DETACH: as the VIEW said, or 0 if none has come; CELL_SET */
    const char *queue; /* APPEND and below: full name; CELL_: of the cell */
    const char *kind;  /* APPEND, DETACH: name of the recipe, for people and for comparison */
    uint64_t capacity; /* APPEND */
    uint64_t weight;   /* APPEND; LIGHTEN, DETACH: the lower one */
    bool try_only;     /* APPEND: only if it is granted at once */
    bool expect_free;  /* with try_only: which is likely */
    bool expect_no_waiters; /* REMOVE: nobody is known to be behind, and it has not waited */
    bool adopt;             /* APPEND: it is there, and nobody's */
    uint64_t last_fence;    /* APPEND with `adopt`: of the last hold by it; 0: not known */
    bool claim;             /* APPEND and below: it needs no place in an order; weight = capacity */
    uint64_t queue_max;     /* APPEND: only if not so many are waiting already; 0: no limit */
    bool wants_place;       /* APPEND and below: its VIEW is to say its place, if that can be had */
    bool watch_closely;     /* APPEND, REFRESH, LIGHTEN: tell at once what others do to it */
    bool linger;            /* APPEND to DETACH: tell at once when another queues behind it */
    mrt_time delay;     /* APPEND: how long it stays if its session dies while it holds; 0: not */
    bool delay_is_host; /* that delay protects processes of this host alone: it may end with it */
    bool died;          /* STOP: the session was lost, and its holds with it */
    bool with_process; /* START: it ends when this process has ended, whoever has its descriptors */
    const void *value; /* APPEND, NULL: none; SET_VALUE; CELL_SET, NULL: delete */
    size_t value_size; /* at most MORTISE_VALUE_MAX */
    uint64_t version;  /* CELL_SET: what the cell is to have now; 0: not to be there */
    bool once;         /* OBSERVE: no CHANGED is wanted */
    bool more;         /* another command or a call of `process` follows at once */
    /* The engine's own. */
    bool queued;      /* in the outbox, not fetched yet */
    bool outstanding; /* fetched, not answered yet */
};

enum mrt_event_type {
    MRT_STARTED,
    MRT_STOPPED,
    MRT_RENEWED,
    MRT_VIEW,
    MRT_BLOCKED,
    MRT_REMOVED,
    MRT_GONE,
    MRT_HOLDER,
    MRT_CELL,
    MRT_WAKE,
    MRT_CHANGED,
    MRT_SESSION_LOST,
    MRT_FAILED,
    MRT_UNKNOWN,
    MRT_REVOKED
};

/* No fence of a store is so large. */
#define MRT_WAITING_NUMBER (UINT64_C(1) << 62)

struct mrt_event {
    enum mrt_event_type type;
    uint64_t serial; /* of the command answered; 0: unasked */
    struct mrt_id session;
    struct mrt_id ticket;  /* as the command's; REVOKED, CHANGED, WAKE (none: all there are) */
    uint64_t fence;        /* VIEW; 0: not granted, or the store has no fences; HOLDER, 0:
                              nobody; CELL: the largest seen */
    uint64_t fence_span;   /* VIEW, at least 1 */
    uint64_t number;       /* VIEW that grants: number of the store's ticket, of whose fences these
                              are a part; 0: they are all it has */
    uint64_t weight_ahead; /* VIEW */
    bool others_behind;    /* VIEW: a ticket is, or may be, queued behind this one */
    bool in_order;         /* VIEW, unasked: it is newer than all that was said of this ticket */
    mrt_time recheck;      /* VIEW, HOLDER: look again after this long without a wake */
    uint64_t place;        /* VIEW: how many tickets are ahead of one that waits; 0: not known */
    uint64_t revoked;      /* VIEW, REVOKED: newest request to give it up; 0: none is known */
    uint64_t version;      /* CELL: as it is now; 0: there is none */
    const void *value;     /* HOLDER, and CELL of a CELL_GET; valid during deliver */
    size_t value_size;
    mrt_time lease;     /* STARTED: how long a proof of life lasts; 0: needs none */
    mrt_time proof_lag; /* STARTED: RENEWED proves only a RENEW answered so long before its own */
    mrt_time proven;    /* STARTED, RENEWED: when a sign of life was sent, in this session, that no
                           part of the store lacks by now; 0: STARTED: when the START was sent;
                           RENEWED: none beside the RENEW */
    bool dates;         /* STARTED: a RENEWED proves `proven`, and nothing else */
    mrt_time heard;     /* STARTED, RENEWED, of a store that lends a session of its own: when the
                           newest sign of life of that was sent that has been acknowledged; each
                           proves `proven`, and nothing else. 0: this command is the sign */
    int error;          /* FAILED, SESSION_LOST */
    const char *detail; /* FAILED, SESSION_LOST: particulars or NULL; valid during deliver */
};

/* Where a store delivers its events. */
struct mrt_sink {
    void (*deliver)(void *context, const struct mrt_event *event);
    /* Asks for a call of process soon; from any thread. */
    void (*notify)(void *context);
    void *context;
};

struct mrt_uri;
struct mrt_store;

/* A row of a list. Every member of a quorum lists the same claim for one ticket. */
struct mrt_listed {
    mortise_entry entry;
    /* mrt_claim_format of our ticket, or another program's own value; not NULL. */
    const char *claim;
};
typedef int (*mrt_listed_callback)(void *argument, const struct mrt_listed *row);
#define MRT_CLAIM_SIZE 13 /* 48 bits in hexadecimal digits, which a UUID has in one piece */
static inline void mrt_claim_format(struct mrt_id ticket, char text[MRT_CLAIM_SIZE])
{
    snprintf(text, MRT_CLAIM_SIZE, "%012llx", (unsigned long long)ticket.low & 0xffffffffffff);
}

/* Finds the operations of a URI's store: store/stores.h. */
struct mrt_store_ops;
typedef int mrt_store_finder(const struct mrt_uri *uri, const struct mrt_store_ops **ops);

struct mrt_store_options {
    const char *label; /* of every ticket, as base/owner.h has it; "" for none */
    bool short_lived;  /* MORTISE_SHORT_LIVED */
    mrt_time timeout;  /* for opening */
    bool unresolved;   /* where its hosts are need not be known yet, if it can do without */
    const char *const *members; /* of a quorum: their URIs; NULL: they stand in its own */
    size_t member_count;
    mrt_store_finder *find; /* for the members' stores; only a quorum needs it */
    mortise_log_callback log;
    void *log_argument;
};

/*
 * One kind of store. Calls on one store are never made at the same time, but for what
 * `asks_apart` says, and never from inside deliver; deliver may be called inside submit, process,
 * revoke and break_ticket only. A store that is not `any_thread` is called on the loop thread
 * alone.
 */
struct mrt_store_ops {
    const char *scheme;
    bool any_thread;
    bool values;     /* tickets may have values, and OBSERVE is known */
    bool cells;      /* CELL_GET and CELL_SET are known */
    bool claims_end; /* with their session in any case: not detached, and without a delay */
    bool is_tied;    /* locks end with the process's connections, before their lease is over */
    mortise_capabilities capabilities;

    /* Finds the form that this URI means, if a store of this scheme has several: 0 and its ops, or
       MORTISE_EURI; NULL: there is only one. */
    int (*choose)(const struct mrt_uri *uri, const struct mrt_store_ops **ops);
    /* Opens; connects or creates what is needed, but no session. 0 and *store, or a
       code with its particulars. */
    int (*open)(const struct mrt_uri *uri, const struct mrt_store_options *options,
                struct mrt_sink sink, struct mrt_store **store);
    /* mortise_init; NULL: nothing need be made before the first use. */
    int (*init)(const struct mrt_uri *uri, mortise_text_callback print, void *argument);
    /* Prints the commands that give the user whom the URI names the rights that locks need, and no
       others; contacts no server. NULL: the store has no such commands, or `init` prints them. */
    int (*print_rights)(const struct mrt_uri *uri, mortise_text_callback print, void *argument);
    /* Takes a command (it is copied) and true; or, if it could not be taken
       by `patience`, does nothing and returns false. */
    bool (*submit)(struct mrt_store *store, const struct mrt_command *command, mrt_time patience);
    /* Descriptor to poll for reading; -1: none, process is asked for by notify. */
    int (*fd)(struct mrt_store *store);
    /* When process wants to be called at the latest. */
    mrt_time (*next)(struct mrt_store *store);
    void (*process)(struct mrt_store *store, mrt_time now);
    /* True if nothing that was submitted is delayed when process is not called for some
       milliseconds. NULL counts as false: a delay is possible. A command that the server may refuse
       now and then, and that is then repeated, does not count. Called as the others are. */
    bool (*answers_may_wait)(const struct mrt_store *store);
    /* True if the next four may be called while other calls are under way, these too, since they
       have a connection of their own and read nothing that changes. NULL counts as false. No
       renewal may wait for a slow answer. */
    bool (*asks_apart)(const struct mrt_store *store);
    /* mortise_list, with full names; NULL: all that begin with `prefix`. Labels as they were
       given, whatever others may have written there. The callback takes a copy, and is quick. */
    int (*list)(struct mrt_store *store, const char *name, const char *prefix,
                mrt_listed_callback callback, void *argument);
    /* mortise_revoke and mortise_break, of a full name; NULL: not supported. 0,
       MORTISE_ENOTHELD, MORTISE_EUNKNOWN if it may have been done, or a code with its
       particulars, and nothing was. */
    int (*revoke)(struct mrt_store *store, const char *name, uint64_t fence);
    int (*break_ticket)(struct mrt_store *store, const char *name, uint64_t fence);
    /* mortise_hold_node of a ticket that is granted: false: it is not there; NULL: its queue and
       number are all there is to know. */
    bool (*node)(struct mrt_store *store, struct mrt_id ticket, char text[MORTISE_NODE_SIZE]);
    /* mortise_server; NULL: there is none. */
    int (*server)(struct mrt_store *store, char *text, size_t size);
    /* Its traffic, added up, for mortise_stats; from any thread. NULL: it sends nothing. */
    void (*traffic)(const struct mrt_store *store, struct mrt_traffic *sum);
    /* Changes the `capabilities` to what has shown of the server so far; from any thread. NULL:
       they do not change. */
    void (*adapt)(const struct mrt_store *store, mortise_capabilities *capabilities);
    /* The lease its sessions will have; NULL: as `capabilities` says. */
    mrt_time (*lease)(const struct mrt_store *store);
    /* Their proof_lag; NULL: 0. */
    mrt_time (*lag)(const struct mrt_store *store);
    /* Address without secrets; the store's. */
    const char *(*address)(const struct mrt_store *store);
    /* Frees everything; a session still open dies. */
    void (*close)(struct mrt_store *store);
    /* In a forked child: closes its copies of descriptors, and wipes what is secret. A thread of
       the parent may have been in a call at the fork, so what calls change is not touched. */
    void (*abandon)(struct mrt_store *store);
};

#endif
