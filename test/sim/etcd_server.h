/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of etcd, as the store meets it behind libcurl's functions: one to three members of the
 * JSON gateway and what they keep together, with revisions, leases, transactions and watches.
 *
 *   etcd_library.c    libcurl: calls, streams, connections that are kept, time-outs
 *   etcd_link.c       requests on their way, and answers: late, in pieces, lost
 *   etcd_members.c    which member answers when: a majority, a leader and its terms
 *   etcd_call.c       requests and replies as the gateway writes them
 *   etcd_data.c       keys, their history, leases
 *   server_etcd.c     troubles, an operator, the truth about who has a lock
 *
 * The state of a majority is one here. A member is behind in what it knows of the leader's term,
 * and in what its watches report. Threads: none.
 */
#ifndef SIM_ETCD_SERVER_H
#define SIM_ETCD_SERVER_H

#include "host.h"
#include "store/etcd/text.h"
#include "store/etcd/ticket.h"

#include <curl/curl.h>

#define ETCD_MEMBERS_MAX 3
#define ETCD_FIRST_PORT 2379
#define ETCD_BASE "mortise/.mortise/"

struct etcd_cluster;
struct etcd_easy;
struct etcd_exchange;

struct etcd_ticket {
    struct mrt_etcd_ticket ticket;
    char *bytes; /* of the value, which begins with the candidate's */
};

/* Values are in base64, as they come and go. */
struct etcd_kv {
    char *key, *value;
    int64_t created, modified, version, lease;
    struct etcd_ticket *ticket; /* NULL: it holds none */
};

struct etcd_change {
    int64_t revision;
    bool gone;
    struct etcd_kv kv;
};

struct etcd_lease {
    struct task reap; /* first */
    struct etcd_lease *next;
    struct etcd_cluster *cluster;
    int64_t id, ttl; /* in seconds */
    mrt_time granted, ends;
    struct peer *peer;
};

struct etcd_member {
    struct etcd_cluster *cluster;
    int number;
    int64_t term; /* as it knows it */
    mrt_time down_until, frozen_until, isolated_until;
    mrt_time believes_until; /* that it leads, though another does */
    mrt_time deposed;        /* when it was */
};

struct etcd_cluster {
    struct task trouble; /* first */
    struct task election;
    struct world *world;
    struct etcd_member members[ETCD_MEMBERS_MAX];
    int count, leader;
    int64_t term, revision, compacted;
    bool changed; /* by the transaction under way */
    struct etcd_kv *kvs;
    int kv_count, kv_room;
    struct etcd_change *history; /* after `compacted` */
    int change_count, change_room;
    struct etcd_lease *leases;
    struct etcd_exchange *exchanges;
    struct etcd_multi *multis;
};

struct etcd_cluster *etcd_of(struct world *world);

/* ------------------------------------------------------------------ etcd_data.c */

/* To be freed. */
char *etcd_decode(const char *value, size_t *size);
struct etcd_kv *etcd_find(const struct etcd_cluster *cluster, const char *key);
/* Whether a key is in a range; `end` NULL: of one key. */
bool etcd_is_in(const char *key, const char *from, const char *end);
/* Changes of one transaction have one revision, which `etcd_commit` makes the newest. */
void etcd_put(struct etcd_cluster *cluster, const char *key, const char *value, int64_t lease);
void etcd_delete(struct etcd_cluster *cluster, const char *from, const char *end);
void etcd_commit(struct etcd_cluster *cluster);
void etcd_compact(struct etcd_cluster *cluster, int64_t revision);
struct etcd_lease *etcd_lease_find(const struct etcd_cluster *cluster, int64_t id);
struct etcd_lease *etcd_lease_grant(struct etcd_cluster *cluster, int64_t id, int64_t ttl,
                                    struct peer *peer);
void etcd_lease_renew(struct etcd_lease *lease);
void etcd_lease_revoke(struct etcd_lease *lease);
void etcd_data_free(struct etcd_cluster *cluster);

/* ------------------------------------------------------------------ etcd_link.c */

enum etcd_method {
    ETCD_TXN,
    ETCD_RANGE,
    ETCD_GRANT,
    ETCD_REVOKE,
    ETCD_KEEPALIVE,
    ETCD_WATCH,
    ETCD_METHODS
};

struct etcd_parcel;

/* One request and its answer. */
struct etcd_exchange {
    struct task task; /* first: its next step */
    struct etcd_exchange *next;
    struct etcd_cluster *cluster;
    struct client *client;
    struct peer *peer;
    struct etcd_easy *easy; /* NULL: nobody waits for it any more */
    int member;
    enum etcd_method method;
    struct json_object *body;
    bool arrived;
    mrt_time gives_up;            /* the member, without a majority; 0: not yet */
    mrt_time down, held_up_until; /* nothing may arrive before */
    struct etcd_parcel *parcels;  /* on their way to the client */
    /* Of a watch: */
    bool watches;
    char *from, *end;
    int64_t next_revision;
};

struct etcd_exchange *etcd_exchange_new(struct client *client, struct etcd_easy *easy, int member,
                                        const char *path, const char *body, size_t size);
void etcd_exchange_free(struct etcd_exchange *exchange);
/* When what is sent now arrives. */
mrt_time etcd_later(const struct etcd_exchange *exchange, mrt_time not_before);
/* Sends it to the member. */
void etcd_exchange_send(struct etcd_exchange *exchange);
/* The client waits for it no longer; `lost`: what has not arrived does not. */
void etcd_exchange_leave(struct etcd_exchange *exchange, bool lost);
/* The member's side: a piece of the answer, takes its bytes; the connection breaks. */
void etcd_say(struct etcd_exchange *exchange, long status, struct mrt_rest_text *text, bool last);
void etcd_hang_up(struct etcd_exchange *exchange);

/* ------------------------------------------------------------------ etcd_library.c */

/* A piece of an answer comes to the client's side. */
void etcd_easy_take(struct etcd_easy *easy, long status, const char *bytes, size_t size, bool last);
/* The connection is gone; `lost` as above. */
void etcd_easy_break(struct etcd_easy *easy, bool lost);
void etcd_easy_hold_up(struct etcd_easy *easy, mrt_time until);
/* A member has gone, and the connections with it that are kept. */
void etcd_forget_member(struct etcd_cluster *cluster, int member);
void etcd_cut(struct world *world, struct client *client);
void etcd_hold_up(struct world *world, mrt_time until);

/* ------------------------------------------------------------------ etcd_members.c */

/* The request has come, or its member can go on. */
void etcd_serve(struct world *world, struct task *task);
/* When the next of what keeps members from answering is over. */
mrt_time etcd_next_chance(const struct etcd_cluster *cluster);
bool etcd_has_leader(const struct etcd_cluster *cluster);
/* A member has changed; another leader may be needed. */
void etcd_reconsider(struct etcd_cluster *cluster);
void etcd_elect(struct etcd_cluster *cluster, int member);
bool etcd_is_up(const struct etcd_member *member);
/* Ends what is under way at a member. */
void etcd_hang_up_all(struct etcd_member *member);

/* ------------------------------------------------------------------ etcd_call.c */

void etcd_execute(struct etcd_exchange *exchange);
void etcd_say_error(struct etcd_exchange *exchange, const char *message);
/* Of a member that leads no more, and does not know. */
void etcd_say_stale(struct etcd_exchange *exchange);
/* There are changes, or the member can report them. */
void etcd_notify(struct etcd_cluster *cluster);

#endif
