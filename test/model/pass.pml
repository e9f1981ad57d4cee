/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pass: the exclusive holder's release wakes its successor with the grant itself.
 *
 * A model of the lock directory on ZooKeeper and of N clients that take turns in it, to be
 * searched exhaustively by Spin (test/model/run). It checks:
 *
 *   - never two holders that exclude each other while both their leases are valid;
 *   - a grant only with a valid lease, an own node, and nothing in the way ahead;
 *   - no waiter is forgotten: a state in which nothing can happen any more, and a client
 *     has not ended, is an invalid end state;
 *   - a release by pass, on an unbroken connection, is never seen as a bare deletion;
 *   - no watch on a marker is left when a client ends.
 *
 * It models this. A ticket is a node that is named by its place in the queue; one that was
 * downgraded lives on under a second name with the same place; in that transaction the first name's
 * data are set before it is deleted, which uses up its watches. A session's requests wait in
 * `req` and are carried out one at a time, in order, with anything of other sessions in
 * between; replies and events reach the client in one order, by `in`. A cut connection loses
 * both, and the server's watches; at the next connection the library sets again those that
 * it knows of, and is told "deleted" at once for what has gone. A marker is created and
 * deleted in one transaction: it is an event, and no state, but for stray ones that someone
 * left. A lease is valid or not; the server ends only sessions whose lease is not valid, which
 * is what the proof by sync is for. A follower that lags carries out a read as of an earlier
 * moment, so that it needs no state of its own.
 *
 * It leaves out: lost replies of a create (a second try finds the first node), rights on
 * nodes, durable tickets, and the number of users of one watch.
 *
 * Sizes: TICKETS nodes in all, FAULTS faults of the KINDS; MUTEX has no readers.
 * KEEP_MARKER_WATCHES never removes a watch, to show what the check of attempts does alone.
 * BREAK_n_* breaks rule n of pass (0: what holds without pass too).
 */
#ifndef TICKETS
#define TICKETS 3
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
/* Kinds of fault */
#define LAPSE 1    /* a lease runs out; the session may then end */
#define CUT 2      /* a connection */
#define CRASH 4    /* of a client */
#define CANCEL 8   /* by a waiter */
#define WRITE 16   /* to a node, by someone else */
#define DELETION 32 /* of a waiter's node, by someone else */
#define ERROR 64   /* in reply to a get */
#ifndef KINDS
#define KINDS 127
#endif
#define may(kind) (faults > 0 && (KINDS & (kind)) != 0)
#define N 3
#define NONE 15

/* Requests and their replies */
#define CREATE 1
#define LIST 2
#define OWN 3    /* get the own node, with a watch */
#define MARKER 4 /* exists, of the marker of the ticket waited for, with a watch */
#define AHEAD 5  /* get the ticket waited for, with a watch */
#define PASS 6   /* the marker created and deleted, and the own node deleted, or nothing */
#define DELETE 7
#define DOWNGRADE 8 /* the node under its second name created, under its first deleted */
#define FORGET 9    /* the watch on a marker; no reply */
/* Events */
#define CREATED 10
#define DELETED 11
#define CHANGED 12
#define EXPIRED 13
/* Results, above the node in a reply */
#define OK 0
#define ABSENT 1
#define FAILED 2
#define result(x) ((x) >> 4)
#define subject(x) ((x) & 15)

/* The states of a client */
#define IDLE 0
#define CREATING 1
#define LISTING 2
#define WAITING 3
#define PROVING 4 /* may run, once the lease is proven */
#define HOLDING 5
#define PASSING 6
#define CANCELLING 7
#define DELETING 8
#define CRASHED 9
#define ENDED 10

#define bit(p) (1 << (p))
#define place(p) ((p) % TICKETS)
#define below(t) ((bit(t) - 1) | ((bit(t) - 1) << TICKETS))
/* Those nodes of `mask` that keep ticket t from running */
#define blocking(mask, t) ((mask) & below(t) & ((writers & bit(t)) -> 4095 : writers))
#define own_node (own[c] + second[c] * TICKETS)
#define has(mask, p) (((mask) & bit(p)) != 0)
/* By the last list nothing else is in the way: its end is waited for, and no marker (rule 12) */
#define is_last_ahead (blocking(view[c] & ~bit(ahead[c]), own[c]) == 0)

#ifdef BREAK_3_MARKER_NAMED_AFTER_PROCESS
byte owner[TICKETS]; /* clients 0 and 1 are threads of one process */
#define marker(p) (owner[place(p)] == 2 -> 2 : 0)
#else
#define marker(p) place(p)
#endif

short nodes = 0;   /* that exist; those under a second name are TICKETS higher */
short writers = 0; /* tickets created to exclude all others */
short passed = 0;  /* tickets that were released by pass */
byte next = 0;     /* the next ticket */
byte left = TICKETS;
byte faults = FAULTS;
bool directory, stray; /* the markers' directory is there; ticket 1's marker is too */

bool session[N] = true, connected[N] = true, lease[N] = true;
short data_watch[N], marker_watch[N]; /* at the server */
short knows_data[N], knows_marker[N]; /* in the client's library */
chan req[N] = [6] of {byte, byte};
chan in[N] = [10] of {byte, short};

byte state[N];
byte own[N] = NONE;     /* ticket */
byte ahead[N] = NONE;   /* node that is waited for */
byte awaited[N];        /* replies while WAITING: bits of OWN, MARKER, AHEAD */
short view[N];          /* nodes ahead at the last list */
bool exclusive[N];      /* how it holds */
bool may_pass[N];       /* decided at the grant */
bool second[N];         /* the own node has its second name */
bool downgrading[N];
bool was_cut[N];        /* since the watches were set */

inline clear(channel)
{
    do
    :: nempty(channel) -> channel?_,_
    :: empty(channel) -> break
    od
}

inline send(what, about)
{
    if
    :: connected[c] && session[c] -> req[c]!what,about
    :: else
    fi
}

inline fire_data(p, event)
{
    d = 0;
    do
    :: d < N ->
        if
        :: has(data_watch[d], p) -> data_watch[d] = data_watch[d] & ~bit(p); in[d]!event,p
        :: else
        fi;
        d++
    :: else -> break
    od;
    d = 0
}

inline fire_marker(p, event)
{
    d = 0;
    do
    :: d < N ->
        if
        :: has(marker_watch[d], p) -> marker_watch[d] = marker_watch[d] & ~bit(p); in[d]!event,p
        :: else
        fi;
        d++
    :: else -> break
    od;
    d = 0
}

/* Its owner's own watch would only tell the owner what it did. */
inline remove(p)
{
    data_watch[c] = data_watch[c] & ~bit(p);
    nodes = nodes & ~bit(p);
    fire_data(p, DELETED)
}

inline expire()
{
    if
    :: own[c] != NONE && has(nodes, own[c]) -> remove(own[c])
    :: own[c] != NONE && has(nodes, own[c] + TICKETS) -> remove(own[c] + TICKETS)
    :: else
    fi;
    session[c] = false;
    data_watch[c] = 0;
    marker_watch[c] = 0;
    clear(req[c]);
    if
    :: connected[c] -> in[c]!EXPIRED,0
    :: else
    fi
}

inline disconnect()
{
    connected[c] = false;
    was_cut[c] = true;
    data_watch[c] = 0;
    marker_watch[c] = 0;
    clear(req[c]);
    clear(in[c])
}

inline check_alone()
{
    d = 0;
    do
    :: d < N ->
        assert(d == c || state[d] != HOLDING || !lease[d] || (!exclusive[c] && !exclusive[d]));
        d++
    :: else -> break
    od;
    d = 0
}

inline forget_marker()
{
    if
#ifndef KEEP_MARKER_WATCHES
    :: state[c] == WAITING && !is_last_ahead ->
        knows_marker[c] = knows_marker[c] & ~bit(marker(ahead[c]));
        send(FORGET, marker(ahead[c]))
#endif
    :: else
    fi
}

inline start_list()
{
    state[c] = LISTING;
    view[c] = 0;
    ahead[c] = NONE;
    awaited[c] = 0;
    send(LIST, 0)
}

/* All of an attempt ends here; the next one, if any, is another ticket. */
inline forget_attempt()
{
    own[c] = NONE;
    ahead[c] = NONE;
    awaited[c] = 0;
    view[c] = 0;
    second[c] = false;
    downgrading[c] = false;
    may_pass[c] = false;
    exclusive[c] = false;
    was_cut[c] = false
}

inline requeue()
{
    forget_marker();
    forget_attempt();
    state[c] = IDLE
}

inline finish()
{
    forget_attempt();
    state[c] = ENDED
}

/* Rule 7: only with a valid lease; the right to pass is fixed here (rule 2). */
inline hold()
{
    state[c] = HOLDING;
    ahead[c] = NONE;
    awaited[c] = 0;
    view[c] = 0;
    exclusive[c] = has(writers, own[c]);
    may_pass[c] = exclusive[c];
#ifdef BREAK_2_SHARED_RELEASE_PASSES
    may_pass[c] = true;
#endif
    assert(lease[c]);
    assert(has(nodes, own[c]));
    assert(blocking(nodes, own[c]) == 0);
    check_alone()
}

inline grant()
{
    if
    :: lease[c] -> hold()
    :: else -> state[c] = PROVING; ahead[c] = NONE; awaited[c] = 0; view[c] = 0
    fi
}

/* The nearest of those in the way */
inline choose_ahead(blockers)
{
    d = TICKETS;
    do
    :: d > 0 && has(blockers, d - 1) -> ahead[c] = d - 1; break
    :: d > 0 && has(blockers, d - 1 + TICKETS) -> ahead[c] = d - 1 + TICKETS; break
    :: else -> d--
    od;
    d = 0
}

inline send_marker()
{
    if
    :: is_last_ahead
    :: else -> send(MARKER, ahead[c])
    fi
}

inline wait()
{
    state[c] = WAITING;
    choose_ahead(blocking(view[c], own[c]));
    was_cut[c] = false;
    awaited[c] = bit(OWN) | bit(AHEAD) | (is_last_ahead -> 0 : bit(MARKER));
#ifndef BREAK_4_OWN_NODE_LAST
    send(OWN, own[c]);
#endif
#ifdef BREAK_4_AHEAD_BEFORE_MARKER
    send(AHEAD, ahead[c]);
    send_marker()
#else
    send_marker();
    send(AHEAD, ahead[c])
#endif
#ifdef BREAK_4_OWN_NODE_LAST
    ; send(OWN, own[c])
#endif
}

inline decide()
{
    if
    :: blocking(view[c], own[c]) == 0 -> grant()
    :: else -> wait()
    fi
}

/* Rule 1: all up to the one ahead are gone, and the rule is run again. */
inline handle_passed()
{
#ifdef BREAK_1_ONLY_THE_ONE_AHEAD_DROPPED
    view[c] = view[c] & ~bit(ahead[c]);
#else
    view[c] = view[c] & ~(below(place(ahead[c])) | bit(ahead[c]));
#endif
    if
    :: blocking(view[c], own[c]) == 0 -> grant()
    :: else
    fi
}

/* Between an event on the own node and the new watch's reply nobody tells of its deletion. */
#if defined(BREAK_5_GRANT_WITHOUT_OWN_WATCH) || defined(BREAK_4_OWN_NODE_LAST)
#define is_own_node_watched true
#else
#define is_own_node_watched (!has(awaited[c], OWN))
#endif

#if defined(BREAK_6_ABSENT_GRANTS_WITH_OTHERS_AHEAD)
#define is_absence_trusted is_own_node_watched
#elif defined(BREAK_6_ABSENT_GRANTS_TO_WRITER)
#define is_absence_trusted (is_own_node_watched && blocking(view[c], own[c]) == bit(ahead[c]))
#else
#define is_absence_trusted false
#endif

/* Rule 12: the end of the only one in the way, if the connection is that of the watch */
#if defined(BREAK_12_WITHOUT_OWN_WATCH)
#define is_end_trusted (is_last_ahead && !was_cut[c])
#elif defined(BREAK_12_AFTER_CUT)
#define is_end_trusted (is_last_ahead && is_own_node_watched)
#elif defined(BREAK_12_TWO_AHEAD)
#define is_end_trusted (is_own_node_watched && !was_cut[c])
#else
#define is_end_trusted (is_last_ahead && is_own_node_watched && !was_cut[c])
#endif

/* Rule 6: absent, which says nothing: it may have its second name */
inline handle_absent()
{
    forget_marker();
    if
    :: is_absence_trusted -> grant()
    :: else -> start_list()
    fi
}

inline handle_event_on_node(p)
{
    knows_data[c] = knows_data[c] & ~bit(p);
    if
    :: what == DELETED && p == own[c] && (state[c] == LISTING || state[c] == WAITING ||
       state[c] == PROVING) ->
#ifndef BREAK_5_OWN_DELETION_IGNORED
        requeue()
#else
        skip
#endif
    :: what == DELETED && state[c] == WAITING && p == ahead[c] && !has(awaited[c], AHEAD) &&
       is_end_trusted -> grant()
    :: what == DELETED && state[c] == WAITING && p == ahead[c] && !has(awaited[c], AHEAD) &&
       !is_end_trusted ->
        assert(was_cut[c] || is_last_ahead || !has(passed, place(p)) || p >= TICKETS);
#ifdef BREAK_0_BARE_DELETION_GRANTS
        forget_marker();
        grant()
#else
#ifndef BREAK_10_MARKER_WATCH_KEPT
        forget_marker();
#endif
        start_list()
#endif
#ifndef BREAK_5_WATCH_NOT_SET_AGAIN
    :: what == CHANGED && state[c] == WAITING && p == own[c] && !has(awaited[c], OWN) ->
        awaited[c] = awaited[c] | bit(OWN);
        send(OWN, p)
    :: what == CHANGED && state[c] == WAITING && p == ahead[c] && !has(awaited[c], AHEAD) ->
        awaited[c] = awaited[c] | bit(AHEAD);
        send(AHEAD, p)
#endif
    :: else
    fi
}

#ifdef BREAK_8_EVENT_OF_EARLIER_ATTEMPT
#define is_of_this_attempt(m) true
#else
#define is_of_this_attempt(m) (m == marker(ahead[c]))
#endif

inline handle_created(m)
{
    knows_marker[c] = knows_marker[c] & ~bit(m);
#ifdef BREAK_7_EVENT_RENEWS_LEASE
    lease[c] = true;
#endif
    if
    :: state[c] == WAITING && is_of_this_attempt(m) && is_own_node_watched -> handle_passed()
    :: state[c] == WAITING && is_of_this_attempt(m) && !is_own_node_watched -> start_list()
#ifdef BREAK_8_GRANT_AFTER_CANCEL
    :: state[c] == CANCELLING -> grant()
#endif
    :: else
    fi
}

inline handle_waiting_reply()
{
    awaited[c] = awaited[c] & ~bit(what);
    if
    :: result(x) == OK && what == MARKER ->
        knows_marker[c] = knows_marker[c] | bit(marker(subject(x)))
    :: result(x) == OK && what != MARKER -> knows_data[c] = knows_data[c] | bit(subject(x))
    :: what == OWN && result(x) == ABSENT ->
#ifndef BREAK_5_OWN_DELETION_IGNORED
        requeue()
#else
        skip
#endif
    :: what == MARKER && result(x) == FAILED -> /* Rule 11: it is there already */
#ifdef BREAK_11_PRESENT_MARKER_GRANTS
        grant()
#else
        skip
#endif
    :: what == AHEAD && result(x) == ABSENT -> handle_absent()
    :: what == AHEAD && result(x) == FAILED ->
#ifndef BREAK_5_FAILED_REPLY_IGNORED
        forget_marker();
        start_list()
#else
        skip
#endif
    fi
}

inline handle_expired()
{
    clear(in[c]);
    clear(req[c]);
    knows_data[c] = 0;
    knows_marker[c] = 0;
    session[c] = true;
    connected[c] = true;
    lease[c] = true;
    if
    :: state[c] == HOLDING || state[c] == PASSING || state[c] == DELETING -> finish()
    :: else -> forget_attempt(); state[c] = IDLE
    fi
}

/* The client takes in one reply or event. */
inline handle()
{
    if
    :: what == CREATE -> if :: state[c] == CREATING -> state[c] = LISTING :: else fi
    :: what == LIST && state[c] == LISTING ->
        if
        :: has(x, own[c]) -> view[c] = x & below(own[c]); decide()
        :: else -> requeue()
        fi
    :: (what == OWN || what == MARKER || what == AHEAD) && state[c] == WAITING ->
        handle_waiting_reply()
    :: what == PASS && state[c] == PASSING && result(x) != FAILED -> finish()
    :: what == PASS && state[c] == PASSING && result(x) == FAILED ->
#ifndef BREAK_9_FAILED_PASS_NOT_DELETED
        state[c] = DELETING;
        send(DELETE, own_node)
#else
        finish()
#endif
    :: what == PASS && state[c] == CANCELLING -> forget_attempt(); state[c] = IDLE
    :: what == DELETE && state[c] == DELETING -> finish()
    :: what == DELETE && state[c] == CANCELLING -> forget_attempt(); state[c] = IDLE
    :: what == DOWNGRADE -> if :: state[c] == HOLDING -> downgrading[c] = false :: else fi
    :: what == CREATED -> handle_created(x)
    :: what == DELETED || what == CHANGED -> handle_event_on_node(x)
    :: what == EXPIRED -> handle_expired()
    :: else /* of an earlier attempt */
    fi;
    what = 0;
    x = 0
}

inline carry_out_get()
{
    if
    :: !has(nodes, x) -> in[c]!what,x + 16 * ABSENT
    :: has(nodes, x) && what == AHEAD && may(ERROR) -> faults--; in[c]!what,x + 16 * FAILED
    :: has(nodes, x) -> data_watch[c] = data_watch[c] | bit(x); in[c]!what,x + 16 * OK
    fi
}

inline carry_out_pass()
{
    if
    :: !has(nodes, x) -> in[c]!PASS,16 * ABSENT
    :: has(nodes, x) && (!directory || (stray && x == 1)) -> in[c]!PASS,16 * FAILED
    :: else ->
        passed = passed | bit(place(x));
        fire_marker(marker(x), CREATED);
        remove(x);
        in[c]!PASS,16 * OK
    fi
}

inline carry_out_create()
{
    if
    :: own[c] == NONE ->
        own[c] = next;
#ifdef BREAK_3_MARKER_NAMED_AFTER_PROCESS
        owner[next] = c;
#endif
        nodes = nodes | bit(next);
        if
        :: writers = writers | bit(next)
#ifndef MUTEX
        :: skip
#endif
        fi;
        next++
    :: else
    fi;
    in[c]!CREATE,0
}

inline carry_out_downgrade()
{
    if
    :: has(nodes, own[c]) ->
#ifndef BREAK_12_RENAMED_WITHOUT_SET
        data_watch[c] = data_watch[c] & ~bit(own[c]);
        fire_data(own[c], CHANGED);
#endif
        nodes = nodes | bit(own[c] + TICKETS);
#ifdef BREAK_2_DOWNGRADE_PASSES
        fire_marker(marker(own[c]), CREATED);
#endif
        remove(own[c])
    :: else
    fi;
    in[c]!DOWNGRADE,0
}

/* The server carries out one request. */
inline carry_out()
{
    if
    :: what == CREATE -> carry_out_create()
    :: what == LIST -> in[c]!LIST,nodes
    :: what == OWN || what == AHEAD -> carry_out_get()
    :: what == MARKER && (!stray || place(x) != 1) ->
        marker_watch[c] = marker_watch[c] | bit(marker(x));
        in[c]!MARKER,x + 16 * OK
    :: what == MARKER && stray && place(x) == 1 -> in[c]!MARKER,x + 16 * FAILED
    :: what == PASS -> carry_out_pass()
    :: what == DELETE ->
        if
        :: has(nodes, x) -> remove(x)
        :: else
        fi;
        in[c]!DELETE,0
    :: what == DOWNGRADE -> carry_out_downgrade()
    :: what == FORGET -> marker_watch[c] = marker_watch[c] & ~bit(x)
    fi;
    what = 0;
    x = 0
}

/* Requests without a reply are sent again, and the library sets its watches. */
inline reconnect()
{
    connected[c] = true;
#ifdef BREAK_0_WATCHES_NOT_SET_AGAIN
    data_watch[c] = 0;
#else
    data_watch[c] = knows_data[c] & nodes;
    marker_watch[c] = knows_marker[c];
    d = 0;
    do
    :: d < 2 * TICKETS ->
        if
        :: has(knows_data[c], d) && !has(nodes, d) -> in[c]!DELETED,d
        :: else
        fi;
        d++
    :: else -> break
    od;
    d = 0;
#endif
    if
    :: state[c] == CREATING -> req[c]!CREATE,0; req[c]!LIST,0
    :: state[c] == LISTING -> req[c]!LIST,0
    :: state[c] == WAITING && awaited[c] > 0 -> forget_marker(); start_list()
    :: state[c] == CANCELLING || state[c] == DELETING -> req[c]!DELETE,own_node
    :: state[c] == PASSING ->
#ifndef BREAK_9_UNKNOWN_OUTCOME_NOT_SENT_AGAIN
        req[c]!PASS,own_node
#else
        finish()
#endif
    :: state[c] == HOLDING && downgrading[c] -> req[c]!DOWNGRADE,0
    :: else
    fi
}

inline release()
{
    if
    :: may_pass[c] -> state[c] = PASSING; send(PASS, own_node)
    :: else -> state[c] = DELETING; send(DELETE, own_node)
    fi
}

inline cancel()
{
    forget_marker();
    state[c] = CANCELLING;
#ifdef BREAK_2_CANCEL_PASSES
    send(PASS, own[c])
#else
    send(DELETE, own[c])
#endif
}

inline downgrade()
{
    exclusive[c] = false;
    may_pass[c] = false;
    second[c] = true;
    downgrading[c] = true;
    send(DOWNGRADE, 0)
}

inline crash()
{
    disconnect();
    lease[c] = false;
    knows_data[c] = 0;
    knows_marker[c] = 0;
    state[c] = CRASHED
}

/* Clients are alike: only the order of their first tickets in which 0 is first is searched. */
#define is_my_turn_to_begin (c == 0 || next >= c || state[c - 1] >= CRASHED)

proctype Client(byte c)
{
    byte what, d;
    short x;
    do
    :: atomic { state[c] == IDLE && left > 0 && is_my_turn_to_begin ->
        left--;
        state[c] = CREATING;
        send(CREATE, 0);
        send(LIST, 0) }
    :: atomic { state[c] == IDLE && left == 0 -> state[c] = ENDED }
    :: atomic { state[c] == HOLDING && !downgrading[c] -> release() }
#ifndef MUTEX
    :: atomic { state[c] == HOLDING && exclusive[c] -> downgrade() }
#endif
    :: atomic { state[c] == PROVING && lease[c] -> hold() }
    :: atomic { connected[c] && session[c] && !lease[c] && state[c] != ENDED ->
        lease[c] = true;
        if
        :: state[c] == HOLDING -> check_alone()
        :: else
        fi }
    :: atomic { connected[c] && nempty(in[c]) -> in[c]?what,x; handle() }
    :: atomic { connected[c] && session[c] && nempty(req[c]) -> req[c]?what,x; carry_out() }
    :: atomic { !connected[c] && session[c] && state[c] < CRASHED -> reconnect() }
    :: atomic { !connected[c] && !session[c] && state[c] < CRASHED -> handle_expired() }

    /* Faults */
    :: atomic { session[c] && !lease[c] && state[c] != ENDED -> expire() }
    :: atomic { may(LAPSE) && lease[c] && state[c] < CRASHED -> faults--; lease[c] = false }
    :: atomic { may(CUT) && connected[c] && state[c] < CRASHED -> faults--; disconnect() }
    :: atomic { may(CRASH) && state[c] > IDLE && state[c] < CRASHED -> faults--; crash() }
    :: atomic { may(WRITE) && state[c] > CREATING && state[c] < CRASHED && has(nodes, own_node) ->
        faults--; /* someone writes to the node */
        fire_data(own_node, CHANGED) }
    :: atomic { may(CANCEL) && (state[c] == LISTING || state[c] == WAITING || state[c] == PROVING) ->
        faults--;
        cancel() }
    :: atomic { may(DELETION) && (state[c] == LISTING || state[c] == WAITING) &&
        has(nodes, own[c]) && blocking(nodes, own[c]) ->
        faults--; /* someone deletes the node of a waiter */
        nodes = nodes & ~bit(own[c]);
        fire_data(own[c], DELETED) }
    :: atomic { faults > 0 && c == 0 -> faults = 0 } /* no further fault */
    :: state[c] == ENDED -> break
    :: state[c] == CRASHED && !session[c] -> break
    od;
    atomic {
#ifndef KEEP_MARKER_WATCHES
        assert(state[c] == CRASHED || !session[c] || nempty(req[c]) || marker_watch[c] == 0);
#endif
        clear(req[c]);
        clear(in[c]);
        knows_data[c] = 0;
        knows_marker[c] = 0;
        data_watch[c] = 0;
        marker_watch[c] = 0;
        connected[c] = false
    }
}

init
{
    atomic {
        if
        :: directory = true
        :: directory = true; stray = true
        :: directory = false
        fi;
        run Client(0);
        run Client(1);
        run Client(2)
    }
}
