/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the files that draw profiles share. */
#ifndef SIM_PROFILE_DRAW_H
#define SIM_PROFILE_DRAW_H

#include "profile.h"
#include "random.h"

/* A value between 1 and limit whose magnitude is even: small ones as likely as large ones. */
int64_t profile_scale(struct random *random, int64_t limit);
/* Off in half of all runs. */
int64_t profile_maybe(struct random *random, int64_t limit);
/* About how often something befalls a client, or 0; `one_in` runs have it. */
int64_t profile_maybe_every(struct random *random, int one_in, int64_t unit);
/* Liberties of the port, which a real store on fake servers takes by itself. */
void profile_no_port_faults(struct profile *profile);
void profile_draw_agent(struct profile *profile, struct random *random);
/* Nothing happens but that locks are taken. */
void profile_make_calm(struct profile *profile);

/* Draws the properties of a store on streams, and of its server. A lease is of whole milliseconds.
 */
void profile_put_behind_streams(struct profile *profile, struct random *random,
                                int64_t lease_min_us);
/* Connections break and are held up all the time, and what the last had sent
   arrives late. */
void profile_make_lossy(struct profile *profile, struct random *random);
/* Locks are held for longer than a lease, and clients are cut off from their server. */
void profile_make_possessive(struct profile *profile, struct random *random);

/* Nothing fails, and no session ends but by its client's will. */
void profile_make_untroubled(struct profile *profile, struct random *random);

/* In the place of locks of one kind. */
void profile_draw_mixed(struct profile *profile, uint64_t seed);
/* And whether they linger, after all else. */
void profile_draw_linger(struct profile *profile, uint64_t seed);
/* And whether threads acquire several at once. */
void profile_draw_several(struct profile *profile, uint64_t seed);

/* Nothing happens but one fault, or two. */
void profile_make_lone(struct profile *profile, uint64_t seed);

/* Of a Redis server, or a quorum of five. */
void profile_draw_redis(struct profile *profile, struct random *random);
void profile_draw_redis_lock(struct profile *profile, struct random *random);
/* Of a quorum whose members have sessions. */
void profile_draw_quorum(struct profile *profile, struct random *random);
void profile_draw_quorum_lock(struct profile *profile, struct random *random);
/* Of PostgreSQL. */
void profile_draw_postgres(struct profile *profile, struct random *random);
/* And whether there is a pooler, after all else. */
void profile_draw_pooler(struct profile *profile, uint64_t seed);
/* Of a cluster of etcd. */
void profile_draw_etcd(struct profile *profile, struct random *random);

#endif
