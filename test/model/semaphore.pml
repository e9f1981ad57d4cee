/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watches of a semaphore's queue on ZooKeeper: no departure is missed, and each notifies few
 * waiters.
 *
 * Tickets are nodes in order, each with a weight; a ticket fits if the weights ahead and its
 * own are within PERMITS. Each MARK_EVERYth ticket marks its node when it becomes a holder. A
 * waiter watches the data of the nearest of these that is ahead and does not fit; where there is
 * none, it watches the list of children.
 *
 * To list and to watch a node are separate steps of the server, with anything in between; to
 * list and to watch the list is one. A ticket is created by one step and listed by the next.
 * Holders leave or stay for ever, waiters may give up. Where nothing can happen any more no
 * waiter that fits may be left: the process Judge looks then, and only then.
 *
 * One rule more than that is needed, and found here: a ticket that fits at its first list may
 * not have fitted when it was created. A client that listed in between waits for its mark. So the
 * ticket writes one too, unless no child came or went since its creation (the directory's pzxid is
 * the own czxid, in the same reply).
 *
 * BREAK_*: NO_MARK, MARK_ONLY_AFTER_WAITING (the rule without the addition), MARK_NOT_READ (a
 * mark that is there when the watch is set is overlooked), ABSENT_NOT_READ, FIRST_WATCHES_AHEAD
 * (the data of the nearest ticket in place of the list), NO_CHILD_WATCH_AGAIN, ANY_WAITED_FOR (a
 * ticket that will not mark is waited for).
 */
#ifndef TICKETS
#define TICKETS 4
#endif
#ifndef PERMITS
#define PERMITS 2
#endif
#ifndef MARK_EVERY
#define MARK_EVERY 2
#endif
#ifndef MARK_FIRST /* the first place whose ticket marks */
#define MARK_FIRST 1
#endif
#define MARKS(t) ((t + MARK_EVERY - MARK_FIRST) % MARK_EVERY == 0)
#define NONE 15

#define ABSENT 0
#define PRESENT 1
#define MARKED 2

/* The states of a client */
#define NEW 0
#define LISTING 1  /* the first list, without a watch */
#define CHOSEN 2   /* has found whom to watch, and has not yet */
#define FIRST 3    /* is to watch the list, and has not yet listed with a watch */
#define WAITING 4
#define MARKING 5  /* may run, and has not yet written its mark */
#define HOLDING 6
#define STAYING 7  /* a holder that never leaves */
#define ENDED 8

byte node[TICKETS];   /* by place */
byte weight[TICKETS];
byte state[TICKETS];
byte ahead[TICKETS] = NONE; /* data watch: set at the server once WAITING */
bool child_watch[TICKETS];
bool data_watch[TICKETS];
bool woken[TICKETS];
bool changed[TICKETS]; /* a child came or went since the own creation */
byte next = 0;

/* The weights ahead of `t`, as of now */
inline sum_ahead(t)
{
    sum = 0;
    i = 0;
    do
    :: i < t -> sum = sum + (node[i] != ABSENT -> weight[i] : 0); i++
    :: else -> break
    od;
    i = 0
}

inline children_changed(t)
{
    i = 0;
    do
    :: i < TICKETS ->
        if
        :: i != t -> changed[i] = true
        :: else
        fi;
        if
        :: child_watch[i] -> child_watch[i] = false; woken[i] = true
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline data_changed(t)
{
    i = 0;
    do
    :: i < TICKETS ->
        if
        :: data_watch[i] && ahead[i] == t -> data_watch[i] = false; woken[i] = true
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline leave()
{
    node[me] = ABSENT;
    child_watch[me] = false;
    data_watch[me] = false;
    children_changed(me);
    data_changed(me);
    ahead[me] = NONE;
    woken[me] = false;
    state[me] = ENDED
}

/* The nearest ticket ahead that does not fit and will mark, or NONE */
inline choose_ahead()
{
    sum = 0;
    i = 0;
    ahead[me] = NONE;
    do
    :: i < me ->
        sum = sum + (node[i] != ABSENT -> weight[i] : 0);
        if
#ifdef BREAK_ANY_WAITED_FOR
        :: node[i] != ABSENT && sum > PERMITS -> ahead[me] = i
#else
        :: node[i] != ABSENT && sum > PERMITS && MARKS(i) -> ahead[me] = i
#endif
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

/* Reads a list; `watched`: the list of children was watched by the same request. */
inline decide(watched)
{
    choose_ahead();
    if
    :: sum + weight[me] <= PERMITS ->
        child_watch[me] = false;
        ahead[me] = NONE;
        state[me] = MARKING
    :: sum + weight[me] > PERMITS && ahead[me] != NONE ->
        child_watch[me] = false;
        state[me] = CHOSEN
    :: else ->
#ifdef BREAK_FIRST_WATCHES_AHEAD
        ahead[me] = me - 1;
        do
        :: node[ahead[me]] == ABSENT -> ahead[me] = ahead[me] - 1
        :: else -> break
        od;
        state[me] = CHOSEN
#else
        state[me] = (watched -> WAITING : FIRST)
#endif
    fi;
    sum = 0
}

proctype Client(byte me)
{
    byte i, sum;
    bool may_be_waited_for = false;
    do
    /* Creation, in order of the places */
    :: atomic { state[me] == NEW && next == me ->
        next++;
        node[me] = PRESENT;
        changed[me] = false;
        if
        :: weight[me] = 1
        :: weight[me] = PERMITS
        fi;
        state[me] = LISTING;
        children_changed(me) }
    :: atomic { state[me] == LISTING ->
        decide(false);
        may_be_waited_for = state[me] != MARKING;
#ifndef BREAK_MARK_ONLY_AFTER_WAITING
        may_be_waited_for = may_be_waited_for || changed[me];
#endif
        }
    :: atomic { state[me] == FIRST ->
        child_watch[me] = true;
        woken[me] = false;
        decide(true) }
    :: atomic { state[me] == CHOSEN ->
        woken[me] = false;
        if
#ifndef BREAK_ABSENT_NOT_READ
        :: node[ahead[me]] == ABSENT -> state[me] = FIRST
#endif
#ifndef BREAK_MARK_NOT_READ
        :: node[ahead[me]] == MARKED -> state[me] = FIRST
#endif
        :: else -> data_watch[me] = true; state[me] = WAITING
        fi }
    :: atomic { state[me] == WAITING && woken[me] ->
        woken[me] = false;
#ifdef BREAK_NO_CHILD_WATCH_AGAIN
        decide(true)
#else
        state[me] = FIRST /* list with a watch; it may turn out not to be first */
#endif
        }
    :: atomic { state[me] == MARKING ->
#ifndef BREAK_NO_MARK
        if
        :: may_be_waited_for && MARKS(me) -> node[me] = MARKED; data_changed(me)
        :: else
        fi;
#endif
        sum_ahead(me);
        assert(sum + weight[me] <= PERMITS);
        sum = 0;
        state[me] = HOLDING }
    :: atomic { state[me] == HOLDING -> leave() }
    :: atomic { state[me] == HOLDING -> state[me] = STAYING }
    :: atomic { state[me] > NEW && state[me] < MARKING -> leave() } /* gives up */
    :: state[me] == ENDED || state[me] == STAYING -> break
    od
}

/* Waiters may give up at any moment, so it looks at each state in which none has cause to. */
proctype Judge()
{
    byte t = 0, i, sum;
    bool quiet = true;
    atomic {
        do
        :: t < TICKETS ->
            if
            :: state[t] == STAYING || state[t] == ENDED || (state[t] == WAITING && !woken[t])
            :: else -> quiet = false
            fi;
            t++
        :: else -> break
        od;
        t = 0;
        do
        :: quiet && t < TICKETS ->
            sum_ahead(t);
            assert(state[t] != WAITING || sum + weight[t] > PERMITS);
            t++
        :: else -> break
        od
    }
}

init
{
    byte n = 0;
    atomic {
        do
        :: n < TICKETS -> run Client(n); n++
        :: else -> break
        od;
        run Judge()
    }
}
