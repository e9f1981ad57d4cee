/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease of an agent's client: it never believes that it holds while another client does.
 *
 * The client competes for one lock with a neighbour, another client of its agent, and with a rival,
 * a client of another host that uses the store directly. Neighbour and rival are believed as soon
 * as they have the lock, and for as long. There is one clock, which each process reads at any
 * moment. A step is one process's; messages and processes stand still for any time. A client that
 * is killed is one that releases: the agent reads the end of its connection behind all else.
 *
 * The store counts the agent's session from the newest question that it has received, and ends it
 * once that is LEASE old. The agent dates its proof of life by the sending of the question that the
 * store has answered. The client asks the agent; the answer carries the age of the agent's proof at
 * the moment of answering, and the client dates it: the sending of its own question less that age.
 * A session of the client is bound to the session of the agent in which it began. The agent passes
 * the lock on when its client has said so; a client whose connection the agent has ended keeps its
 * lock until LEASE after the agent received its last question. The agent starts a session after one
 * that it has given up only when the proof of that one is LEASE old, and ends its session only when
 * no client has the lock.
 *
 * LEASELESS: the store has no lease (an embedded file). It frees the lock of an agent that died
 * when LEASE is over (its delay), and the agent's proof is always of this moment.
 *
 * BREAK_*: DATED_BY_RECEIPT (the client dates an answer by its arrival), PROOF_BY_RECEIPT (the
 * agent dates its proof by the arrival of the store's answer), NO_AGE (an answer of the agent
 * carries none), BOUND_TO_NOTHING (a session of the client outlives the agent's), ENDED_RELEASES
 * (the lock of a client whose connection the agent has ended passes at once), START_AT_ONCE (the
 * agent does not wait before its next session), STOP_WHILE_TRUSTED (the agent ends its session
 * while a client has the lock), NO_DELAY (a store without a lease frees the lock when the agent
 * dies), NEVER_HELD (no broken rule: it shows that the client does hold).
 */
#ifndef LEASE
#define LEASE 2
#endif
#ifndef END /* the last instant */
#define END 4
#endif
#ifndef SESSIONS
#define SESSIONS 2
#endif

/* Holders: at the store, and inside the agent. */
#define NONE 0
#define AGENT 1
#define RIVAL 2
#define CLIENT 1
#define NEIGHBOUR 2

/* A question and its answer. */
#define IDLE 0
#define ASKED 1
#define YES 2
#define NO 3

/* A connection. */
#define OPEN 0
#define ENDED 1  /* by the agent */
#define CLOSED 2 /* by the client, and the agent has seen it */

byte now = 1;

/* The store. */
byte holder, live, heard; /* `live`: the agent's session; 0: none */
byte free_at; /* LEASELESS: when the delay of a dead agent's ticket is over; 0: it lives */

/* The agent. */
bool runs = true;
byte mine, begun, proof; /* its session, the newest one begun, and the proof of `mine` */
bool has;                /* the store's ticket, in `mine` */
byte question, question_sent, question_session;
byte owner;
byte connection, last_question;

/* The client. */
bool believes, granted, lost, released; /* all but the first: messages under way */
byte granted_in, released_in, bound, date;
byte asked, asked_at, age, answered_in;

#define TRUSTED (believes && now < date + LEASE)
#ifdef LEASELESS
#define HAS_LEASE false
#else
#define HAS_LEASE true
#endif
#define PROVEN (mine != 0 && (!HAS_LEASE || now < proof + LEASE))

#ifdef BREAK_START_AT_ONCE
#define MAY_START true
#else
#define MAY_START (live == 0 || (HAS_LEASE && now >= proof + LEASE))
#endif
#ifdef BREAK_STOP_WHILE_TRUSTED
#define MAY_STOP true
#else
#define MAY_STOP (owner == NONE)
#endif

inline check()
{
#ifdef BREAK_NEVER_HELD
    assert(!TRUSTED);
#endif
    assert(!(TRUSTED && (owner == NEIGHBOUR || holder == RIVAL)));
}

inline forget_question()
{
    question = IDLE;
    question_sent = 0;
    question_session = 0
}

/* The agent's session is over for it: each client session goes with it. */
inline lose()
{
    mine = 0;
    has = false;
    lost = bound != 0 || asked != IDLE || granted;
    granted = false;
    granted_in = 0;
    owner = NONE
}

inline release()
{
    if
    :: owner == CLIENT ->
        owner = NONE;
        granted = false;
        granted_in = 0
    :: else
    fi
}

inline end_session_at_store()
{
    if
    :: holder == AGENT -> holder = NONE
    :: else
    fi;
    live = 0
}

active proctype Store()
{
end:
    do
    :: atomic { now < END -> now++; check() }
    :: atomic { HAS_LEASE && live != 0 && now >= heard + LEASE -> end_session_at_store(); check() }
    :: atomic { free_at != 0 && now >= free_at -> end_session_at_store(); free_at = 0; check() }
    :: atomic { holder == NONE -> holder = RIVAL; check() }
    :: atomic { holder == RIVAL -> holder = NONE }
    :: atomic {
        question == ASKED ->
        if
        :: live == question_session -> heard = now; question = YES
        :: else -> question = NO
        fi
    }
    od
}

active proctype Agent()
{
end:
    do
    /* its session: begun, proven, lost, given up */
    :: atomic {
        runs && mine == 0 && begun < SESSIONS && free_at == 0 && MAY_START ->
        end_session_at_store(); /* of the one before */
        begun++;
        mine = begun;
        live = begun;
        heard = now;
        proof = now;
        has = false;
        check()
    }
    :: atomic {
        HAS_LEASE && runs && mine != 0 && question == IDLE ->
        question = ASKED;
        question_sent = now;
        question_session = mine
    }
    :: atomic {
        runs && question == YES ->
        if
        :: question_session == mine ->
#ifdef BREAK_PROOF_BY_RECEIPT
            proof = now
#else
            proof = question_sent
#endif
        :: else
        fi;
        forget_question()
    }
    :: atomic {
        runs && question == NO ->
        if
        :: question_session == mine -> lose()
        :: else
        fi;
        forget_question()
    }
    :: atomic { HAS_LEASE && runs && mine != 0 -> lose() } /* by its clock, or by an error */
    /* the store's ticket */
    :: atomic {
        runs && PROVEN && !has && holder == NONE && live == mine ->
        holder = AGENT;
        has = true
    }
    :: atomic {
        runs && has && owner == NONE && live == mine ->
        has = false;
        holder = NONE;
        check()
    }
    /* grants */
    :: atomic { runs && PROVEN && has && owner == NONE -> owner = NEIGHBOUR; check() }
    :: atomic { runs && owner == NEIGHBOUR -> owner = NONE }
    :: atomic {
        runs && PROVEN && has && owner == NONE && connection == OPEN && !released ->
        owner = CLIENT;
        granted = true;
        granted_in = mine
    }
    /* an answer, and the end of a connection */
    :: atomic {
        runs && PROVEN && asked == ASKED && connection == OPEN && !lost ->
        last_question = now;
        answered_in = mine;
#ifndef BREAK_NO_AGE
        age = (HAS_LEASE -> now - proof : 0);
#endif
        asked = YES
    }
    :: atomic {
        runs && connection == OPEN -> /* unread output, a broken frame, a limit */
        connection = ENDED;
#ifdef BREAK_ENDED_RELEASES
        release()
#endif
    }
    :: atomic {
        runs && connection == ENDED && now >= last_question + LEASE ->
        connection = CLOSED;
        release()
    }
    /* the client's word, or the end of its process */
    :: atomic {
        runs && released ->
        released = false;
        if
        :: owner == CLIENT && released_in == mine -> owner = NONE
        :: else
        fi;
        released_in = 0
    }
    /* its end, by a signal or at once */
    :: atomic {
        runs && live != 0 && live == mine && MAY_STOP ->
        lose();
        runs = false;
        end_session_at_store();
        check()
    }
    :: atomic {
        runs ->
        runs = false;
#ifdef LEASELESS
#ifdef BREAK_NO_DELAY
        end_session_at_store();
#else
        free_at = now + LEASE;
#endif
        check()
#endif
    }
    od
}

active proctype Client()
{
end:
    do
    :: atomic { asked == IDLE -> asked = ASKED; asked_at = now }
    :: atomic {
        asked == YES ->
        if
        :: bound == 0 && !lost -> bound = answered_in
        :: else
        fi;
        if
#ifdef BREAK_BOUND_TO_NOTHING
        :: true ->
#else
        :: answered_in == bound ->
#endif
#ifdef BREAK_DATED_BY_RECEIPT
            date = now - age
#else
            if
            :: asked_at - age > date -> date = asked_at - age
            :: else
            fi
#endif
        :: else
        fi;
        asked = IDLE;
        asked_at = 0;
        age = 0;
        answered_in = 0;
        check()
    }
    :: atomic {
        granted ->
        granted = false;
        if
        :: granted_in == bound && !lost -> believes = true
        :: else -> released = true; released_in = granted_in
        fi;
        granted_in = 0;
        check()
    }
    :: atomic {
        believes && !released ->
        believes = false;
        released = true;
        released_in = bound
    }
#ifndef BREAK_BOUND_TO_NOTHING
    :: atomic { lost -> lost = false; believes = false; bound = 0 }
#else
    :: atomic { lost -> lost = false }
#endif
    od
}
