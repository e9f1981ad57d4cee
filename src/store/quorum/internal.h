/*
 * The parts of the quorum store, shared by its files and by nobody else:
 *   port.c          the port: the URI, the members' descriptors, commands in, answers out
 *   member.c   one member: what it is asked, and its session
 *   claim.c    one ticket: a round of claims, and letting them go
 *   session.c  START, RENEW and STOP, by majority
 *   list.c     mortise_list, by majority
 *
 * Threads: calls come one at a time. A member delivers only while it is called, and is never
 * called from inside its deliver: what it says is kept, in what it was asked, until that call has
 * returned. Nothing of it needs memory, so no answer is ever lost.
 */
#ifndef MRT_STORE_QUORUM_INTERNAL_H
#define MRT_STORE_QUORUM_INTERNAL_H

#include "core/store.h"

#include <stdatomic.h>

#define MRT_QUORUM_MEMBERS_MAX 15
#define MRT_QUORUM_SIGNS 8 /* as the engine remembers */

enum mrt_quorum_phase { MRT_QUORUM_DOWN, MRT_QUORUM_STARTING, MRT_QUORUM_UP, MRT_QUORUM_STOPPING };

struct mrt_quorum_member {
    const struct mrt_store_ops *ops;
    struct mrt_store *store;
    struct mrt_quorum_store *quorum;
    unsigned index;
    enum mrt_quorum_phase phase;
    struct mrt_id session; /* of its own; another one after each loss */
    bool lost;             /* it has said so, and that has not been acted upon */
    _Atomic bool notified; /* its process is asked for */
    bool unreachable;      /* it has said so since it last answered */
    mrt_time start_at;     /* DOWN: when to try again */
    mrt_time lease, proof_lag;
    mrt_time starting; /* when its START was sent */
    mrt_time heard;    /* when the newest sign of life was sent that it has answered */
    mrt_time proof; /* the same for the newest that is proven: its own proof_lag is allowed for */
    struct {
        mrt_time sent, answered;
    } signs[MRT_QUORUM_SIGNS];
    unsigned sign_count;
};

/* What a member has been asked, and its answer until it is acted upon. */
struct mrt_quorum_ask {
    TAILQ_ENTRY(mrt_quorum_ask) link;
    struct mrt_quorum_member *member;
    struct mrt_command command;
    struct mrt_id ticket; /* the engine's; none: a claim that has been let go */
    uint64_t round;       /* of the claims, or of the RENEWs */
    mrt_time sent;        /* RENEW: when its round began */
    mrt_time again;       /* unproven: when to ask once more; NEVER: it is under way */
    bool is_answered;
    mrt_time answered; /* when that was heard, or later */
    bool is_forgotten; /* nobody wants the answer; until it comes the member has our texts */
    struct mrt_event answer;
    char detail[160];
    char queue[];
};
TAILQ_HEAD(mrt_quorum_asks, mrt_quorum_ask);

enum mrt_quorum_claim { MRT_CLAIM_NONE, MRT_CLAIM_ASKED, MRT_CLAIM_PERHAPS, MRT_CLAIM_HAS };

enum mrt_quorum_step {
    MRT_QUORUM_IDLE,     /* it has no claim */
    MRT_QUORUM_CLAIMING, /* all are asked */
    MRT_QUORUM_HELD,
    MRT_QUORUM_LOOKING, /* HELD, and those who have the claim are asked whether they do */
    MRT_QUORUM_LEAVING
};

struct mrt_quorum_ticket {
    TAILQ_ENTRY(mrt_quorum_ticket) link;
    enum mrt_quorum_step step;
    struct mrt_command command; /* being done, if `busy`; its texts are the engine's */
    bool busy;
    uint64_t round;
    struct mrt_id token; /* of the round: the claim's identity at the members */
    mrt_time asked_at;   /* when the round began */
    mrt_time decide_at;  /* who has not answered by then does not count */
    unsigned blocked;    /* members where another has it, in this round */
    unsigned failures;   /* rounds in a row */
    unsigned doubted;    /* bits: members that have told of its claim, not acted upon */
    int error;           /* of a member that refused */
    char detail[160];
    enum mrt_quorum_claim claims[MRT_QUORUM_MEMBERS_MAX];
    /* What lets a claim go, made before the claim is asked for: it must not lack memory then. */
    struct mrt_quorum_ask *partings[MRT_QUORUM_MEMBERS_MAX];
    char queue[];
};

struct mrt_quorum_store {
    struct mrt_sink sink;
    struct mrt_quorum_member members[MRT_QUORUM_MEMBERS_MAX];
    unsigned count, majority;
    unsigned unresolved; /* members of which it was not known at opening where they are */
    mrt_time limit;      /* for a member's answer; 0: see mrt_quorum_limit */
    mrt_time timeout;    /* for START and STOP */
    int epoll;
    mrt_time worked_at;    /* when it last looked at what is due */
    struct mrt_id session; /* the engine's; none: not open */
    bool wanted;           /* members that are down are to be started */
    bool started;          /* STARTED was answered */
    uint64_t rounds; /* of claims, of all tickets: one that comes again begins no number again */
    uint64_t identities, serial;
    struct mrt_id seed;
    TAILQ_HEAD(, mrt_quorum_ticket) tickets;
    struct mrt_quorum_asks asks;
    struct {
        uint64_t serial; /* of the engine's command; 0: none is under way */
        enum mrt_command_type type;
        mrt_time enough_at; /* STOP: from then on a majority will do */
        mrt_time decide_at;
        int error;
        char detail[160];
    } session_command;
    uint64_t renewals;   /* rounds of RENEW that have been sent */
    mrt_time renewed_at; /* when the newest of them was; 0: none was */
    mrt_time proven;     /* the newest date that the engine has been told */
    mrt_time lease;
    char address[MORTISE_NAME_MAX * 4];
};

/* port.c */
/* Answers a command of the engine's. */
void mrt_quorum_tell(struct mrt_quorum_store *store, struct mrt_event event);
struct mrt_id mrt_quorum_identity(struct mrt_quorum_store *store);
/* How long a member may take for an answer. */
mrt_time mrt_quorum_limit(const struct mrt_quorum_store *store);

/* member.c */
/* What may be asked, now or later; NULL: no memory. To be freed if it is not. */
struct mrt_quorum_ask *mrt_quorum_new_ask(struct mrt_quorum_member *member, const char *queue);
/* Asks its member this; false: that did not take it, and `ask` is freed. */
bool mrt_quorum_ask(struct mrt_quorum_ask *ask, const struct mrt_command *command,
                    struct mrt_id ticket, uint64_t round);
void mrt_quorum_start_member(struct mrt_quorum_member *member, mrt_time now);
/* Ends its session. */
void mrt_quorum_stop_member(struct mrt_quorum_member *member);
/* It is let go there: until that is proven, or its session is no more. */
void mrt_quorum_part(struct mrt_quorum_member *member, struct mrt_quorum_ticket *ticket);
/* Whether it is still being let go at that member. */
bool mrt_quorum_is_parting(const struct mrt_quorum_member *member, struct mrt_id token);
/* Keeps what a member says, while it is called. */
void mrt_quorum_hear(struct mrt_quorum_member *member, const struct mrt_event *event);
/* Acts upon what members have said since; whether there was anything. */
bool mrt_quorum_hear_all(struct mrt_quorum_store *store, mrt_time now);
/* Asks it for a sign of life, of the newest round. */
void mrt_quorum_renew_member(struct mrt_quorum_member *member);
/* Starts that are due, and what is to be asked once more. */
void mrt_quorum_members_due(struct mrt_quorum_store *store, mrt_time now);
mrt_time mrt_quorum_members_next(const struct mrt_quorum_store *store);
/* Forgets what a member was asked. */
void mrt_quorum_forget_asks(struct mrt_quorum_store *store, const struct mrt_quorum_member *member);
/* Frees all; the members are closed. */
void mrt_quorum_free_asks(struct mrt_quorum_store *store);

/* claim.c */
void mrt_quorum_ticket_submit(struct mrt_quorum_store *store, const struct mrt_command *command,
                              mrt_time now);
void mrt_quorum_ticket_answer(struct mrt_quorum_store *store, const struct mrt_quorum_ask *ask);
/* Decides what is ready to be decided; also after a member has gone. */
void mrt_quorum_tickets_due(struct mrt_quorum_store *store, mrt_time now);
mrt_time mrt_quorum_tickets_next(const struct mrt_quorum_store *store);
/* Who holds it is to look at it. */
void mrt_quorum_ticket_wake(struct mrt_quorum_store *store, const struct mrt_quorum_ticket *ticket);
/* Keeps that a member has told of a claim unasked; none: of all, which are looked at in time. */
void mrt_quorum_ticket_told(const struct mrt_quorum_member *member, struct mrt_id token);
/* Acts upon that; whether there was anything. */
bool mrt_quorum_tickets_doubt(struct mrt_quorum_store *store);
/* A member's session has ended, and its claims with it. */
void mrt_quorum_tickets_lose(struct mrt_quorum_store *store,
                             const struct mrt_quorum_member *member);
/* Ends all; a command under way has an unknown outcome. */
void mrt_quorum_tickets_free(struct mrt_quorum_store *store);
/* The same, and tells nobody. */
void mrt_quorum_tickets_drop(struct mrt_quorum_store *store);

/* session.c */
void mrt_quorum_session_submit(struct mrt_quorum_store *store, const struct mrt_command *command,
                               mrt_time now);
void mrt_quorum_session_due(struct mrt_quorum_store *store, mrt_time now);
void mrt_quorum_session_refused(struct mrt_quorum_store *store, const struct mrt_event *event);

/* list.c: by majority; also while members work, where they are asked apart. */
int mrt_quorum_list(struct mrt_store *port, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument);

#endif
