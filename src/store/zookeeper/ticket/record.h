/* SPDX-License-Identifier: Apache-2.0 */
/* A ticket as its parts share it, and what is known of its node without a request. */
#ifndef MRT_STORE_ZOOKEEPER_TICKET_RECORD_H
#define MRT_STORE_ZOOKEEPER_TICKET_RECORD_H

#include "store/zookeeper/names.h"
#include "store/zookeeper/request.h"

struct mrt_zk_ticket {
    struct mrt_id id;
    struct mrt_jobs jobs; /* the first is being done */
    /* Begins the first: as a ticket with a place in an order, or as a claim. */
    void (*begin)(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
    uint64_t attempt;       /* answers of an earlier command are dropped */
    unsigned tries;         /* of creating, because the directory was gone, ... */
    unsigned deletes;       /* under way, of a REMOVE */
    bool created;           /* its node is known: `node`, `place`, `czxid` */
    bool outcome_unknown;   /* a create of unknown outcome: there may be a node, or a second one */
    bool held;              /* the newest VIEW granted */
    bool recovering;        /* a node of an earlier create is being sought */
    bool unwatched;         /* the node ahead cannot be watched */
    bool barred;            /* a directory could not be made: the right is missing */
    bool unpassed;          /* its own node cannot be watched, so nothing is passed to it */
    bool behind;            /* the newest view: another is queued behind */
    bool waited;            /* some view did not grant */
    bool lingers;           /* its holder wants to know of tickets that queue behind */
    bool mark_due;          /* its node must be marked, and may not be yet */
    bool own_known;         /* `own_watch` is set, and no event of it was missed */
    uint64_t own_watch;     /* number of the watch on its own node; 0: none */
    uint64_t before, after; /* the newest view: weight before and after the node waited for */
    struct mrt_zk_place place; /* as the command has it, later as its node shows it */
    int64_t czxid;             /* of its first node */
    uint64_t ahead;            /* the newest view: tickets ahead; 0: not known */
    int64_t revoked;           /* the newest change of its data that was a revoke request */
    int32_t data_version;      /* of its data, as read or written last */
    struct mrt_zk_place other; /* another kind that refused it; of a claim: another node */
    int refusal; /* code of the library to answer with once the node is deleted; 0: BLOCKED */
    /* Lists once more, when it is known whether a child with the name of a claim is one. */
    void (*list_again)(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket);
    bool probing;           /* that child was seen before the ticket had a node */
    bool unclaimed;         /* and that child is a directory */
    bool waits;             /* a claim that waits, without a node */
    int listed;             /* code of a claim's newest list */
    int32_t listed_version; /* of the directory's data, by that list */
    int32_t version;        /* the same when the claim was found to be ours */
    struct mrt_zk_watch *watch;
    TAILQ_ENTRY(mrt_zk_ticket) watch_link;
    UT_hash_handle hh;                  /* by id */
    UT_hash_handle by_own;              /* by own_watch */
    const struct mrt_zk_seeker *seeker; /* for which its nodes are sought */
    char (*suspects)[MRT_ZK_NODE_SIZE]; /* nodes that may be its own, until that is known */
    int suspect_count, suspect_at;
    char uuid[MRT_ZK_UUID_SIZE]; /* "": its nodes have no UUID in their names */
    char node[MRT_ZK_NODE_SIZE]; /* name within the directory */
    char path[MRT_ZK_PATH_MAX];
};

struct mrt_zk_ticket *mrt_zk_ticket_find(const struct mrt_zk_session *session, struct mrt_id id);
/* The command that is being done. */
const struct mrt_command *mrt_zk_ticket_command(const struct mrt_zk_ticket *ticket);

/* Keeps the node's name and its place; false: it cannot be one of our nodes. */
bool mrt_zk_ticket_keep(struct mrt_zk_ticket *ticket, const char *node);
/* Whether it is granted with so much weight ahead. */
bool mrt_zk_ticket_fits(const struct mrt_zk_ticket *ticket, uint64_t ahead);
/* Whether by its newest view only the node that it waits for is in its way. */
bool mrt_zk_ticket_waits_for_last(const struct mrt_zk_ticket *ticket);
/* Whether it is woken with all others, as in the oldest form of the recipe. */
bool mrt_zk_ticket_herds(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket);
/* Takes the newest view, with its fence, into an event. */
void mrt_zk_ticket_describe(struct mrt_zk_ticket *ticket, struct mrt_event *event, uint64_t ahead);
/* A VIEW that answers no command. */
void mrt_zk_ticket_report(struct mrt_store *store, struct mrt_zk_ticket *ticket, uint64_t ahead);

/* The ticket's place with the weight of its command. */
struct mrt_zk_place mrt_zk_ticket_lighter_place(const struct mrt_zk_ticket *ticket);
/* Notes the data of its node, from a reply to a read, or to a write (`length` -1, no text). */
void mrt_zk_ticket_data_known(struct mrt_zk_session *session, struct mrt_zk_ticket *ticket,
                              const struct mrt_zk_reply *reply);
/* The version that its node must have for a write. */
int32_t mrt_zk_ticket_data_version(const struct mrt_zk_ticket *ticket);

/* The request carries the data that a node of the ticket is made with, for mortise_list. */
void mrt_zk_ticket_carry(struct mrt_zk_outgoing *request);
/* The request, a multi, makes a node of this name and mode from the one at its path. It is refused
   if the data there have another version. */
void mrt_zk_ticket_carry_rename(struct mrt_zk_outgoing *request, const char *node, int32_t version,
                                int mode);

#endif
