/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quorum (store/quorum*.c) on members whose answers can be held back: memory servers. A
 * member that is in use by another, or silent, is made so by the test; nothing depends on luck.
 * The way to each member is ours (the linker wraps mrt_store_find): commands that it does not
 * take, answers of which nothing is known; and a descriptor on which nothing ever comes, since a
 * member that has one may ask for process as well.
 */
#ifndef TEST_QUORUM_PLACE_H
#define TEST_QUORUM_PLACE_H

#include "conform/port_client.h"

#include <stdbool.h>
#include <stdint.h>

#define PLACE_MEMBERS_MAX 5
#define PLACE_LEASE 3000 /* ms, unless another is asked for */

/* The way to a member. */
struct way {
    struct mrt_store *store;
    int fd;
    struct mrt_sink sink;
    struct mrt_id session; /* of the newest START */
    enum mrt_command_type type;
    uint64_t serial;     /* of the newest command, and its type */
    unsigned not_taken;  /* bits: types of commands that are not taken */
    unsigned taken_next; /* of these: taken after one refusal */
    unsigned unknown;    /* types whose answers become UNKNOWN */
    unsigned failed;     /* and become EUNREACHABLE */
    unsigned parted;     /* REMOVEs, while nothing that the quorum told was left to be taken */
    bool deaf;           /* what is told unasked is lost */
    bool misses; /* a renewal finds that the newest claim is not there, and tells it first */
    struct mrt_id claim; /* of the newest APPEND */
    bool away;           /* it can tell no list */
    bool late;           /* an APPEND is answered when the next one is */
    struct mrt_event kept;
    bool slow; /* an APPEND is taken, and on its way until the next command comes */
    struct mrt_command on_its_way;
};
#define BIT(type) (1U << (type))

extern unsigned place_members;
/* The longest wait for what comes soon: 60 s; a measure of mutants waits in vain, and less. */
extern mrt_time place_soon;
extern char place_uri[512];
extern mrt_time place_lag; /* of the proofs of all members that are started from now on */
extern struct way ways[PLACE_MEMBERS_MAX];
extern struct port_client quorum;
extern struct port_client rivals[PLACE_MEMBERS_MAX]; /* one at each member */

/* `answer` NULL: the default. Without a user of the quorum. */
void place_make(unsigned count, const char *answer, int lease_ms);
/* Opens `quorum` on it, with a session. */
void place_begin(void);
/* Both. */
int place_open(unsigned count, const char *answer, int lease_ms);
/* Set-ups and tear-down of tests. */
int open_three(void **state);   /* members that answer within 100 ms */
int open_patient(void **state); /* three; 10 s */
int open_five(void **state);    /* 100 ms */
int close_place(void **state);
/* True if the test makes the ways to the members of a quorum that is opened. */
void place_take_ways(bool take);

/* Somebody else has it at this member. */
void occupy(unsigned member);
void vacate(unsigned member);
/* It does what it is asked, and nobody hears of it. */
void silence(unsigned member, bool silent);

bool holds(const struct mrt_event *event);
struct mrt_event acquire(void);
enum mrt_event_type renew(void);
/* Lets the quorum work until the member has no ticket. */
bool empties(unsigned member);

/* quorum_time.c, quorum_list.c: run their tests; how many failed. */
int quorum_time(void);
int quorum_list(void);

#endif
