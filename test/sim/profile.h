/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of one run: a row of whole numbers, drawn from the seed, each
 * fault on or off and as strong as chance has it ("swarm testing", Groce and others,
 * 2012). One table names them, so that a run can be printed, given on the command
 * line, and made smaller field by field while it still fails.
 *
 * Times are microseconds, chances are of 10,000.
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The kind of field: fixed by the seed; a size that may shrink to 1; something that may be turned
 * off, which is 0. */
enum { FIXED, SIZE, EXTRA };

enum {
    MODEL_LEASE,
    MODEL_KERNEL,
    MODEL_SQLITE,
    MODEL_ZOOKEEPER,
    MODEL_ZK_LIBRARY,
    MODEL_REDIS,
    MODEL_REDLOCK,
    MODEL_QUORUM, /* as REDLOCK, but its members' claims end with their sessions */
    MODEL_POSTGRES,
    MODEL_ETCD,
    MODEL_AGENT, /* its store has a lease or, if lease_us is 0, none */
    MODEL_COUNT
};
enum {
    TROUBLE_ANY,
    TROUBLE_STILL,
    TROUBLE_DOWN,
    TROUBLE_SCRIPTS,
    TROUBLE_CLOCK,
    TROUBLE_STREAM,
    TROUBLE_PROMOTION,
    TROUBLE_COMPACTION,
    TROUBLE_PARTITION
};
#define MODEL_ANY (-1) /* one of those that need no library */
/* Lone faults; those before FAULT_WAKE_LOST are of the next command. */
enum fault {
    FAULT_NONE,
    FAULT_COMMAND_LOST,
    FAULT_REPLY_LOST,
    FAULT_GIVEN_UP,
    FAULT_REFUSED,
    FAULT_WAKE_LOST,
    FAULT_CUT,
    FAULT_CRASH,
    FAULT_PAUSE,
    FAULT_CLOSE,
    FAULT_KILL,
    FAULT_BREAK,
    FAULT_STILL,
    FAULT_DOWN,
    FAULT_SCRIPTS,
    FAULT_STREAM,
    FAULT_PROMOTION
};
enum {
    LOCK_MUTEX,
    LOCK_SEMAPHORE,
    LOCK_READ_WRITE,
    LOCK_ELECTION,
    LOCK_EXCLUSIVE,
    LOCK_SEMAPHORE_MUTEX,
    LOCK_MIXED /* not a kind: each lock has one of its own, see profile_lock */
};

/* X(name, kind, meaning) */
#define PROFILE_MAP(X)                                                                            \
    X(model, FIXED, "see --store")                                                                \
    X(clients, SIZE, "engines")                                                                   \
    X(actors, SIZE, "threads of each")                                                            \
    X(queues, SIZE, "locks")                                                                      \
    X(operations, SIZE, "acquires of each thread in the chaos phase")                             \
    X(lease_us, FIXED, "of a session")                                                            \
    X(recheck_us, FIXED, "told in every view")                                                    \
    X(lock, FIXED,                                                                                \
      "0 mutexes, 1 semaphores, 2 read/write, 3 elections, 4 exclusive, 5 semaphore mutexes, "    \
      "6 mixed")                                                                                  \
    X(capacity, FIXED, "of mutexes and semaphores")                                               \
    X(fence_span, FIXED, "fences of a ticket")                                                    \
    X(strict, FIXED, "local order is strict")                                                     \
    X(fair_us, FIXED, "handed over directly after waiting so long")                               \
    X(budget_us, FIXED, "of a turn")                                                              \
    X(budget_count, FIXED, "of a turn")                                                           \
    X(trusted, EXTRA, "who was told how long a hold lasts trusts it, whatever comes")             \
    X(drift_ppm, EXTRA, "clocks of clients and servers run faster or slower by up to, each")      \
    X(think_us, FIXED, "between acquires, at most")                                               \
    X(hold_us, FIXED, "holding, at most")                                                         \
    X(reaction_us, EXTRA, "until a woken thread runs, at most")                                   \
    X(nest, EXTRA, "chance to acquire while holding")                                             \
    X(try, EXTRA, "chance of a try")                                                              \
    X(timed, EXTRA, "chance of a deadline")                                                       \
    X(async, EXTRA, "chance of an asynchronous acquire")                                          \
    X(cancel, EXTRA, "chance of a cancel")                                                        \
    X(wait_us, FIXED, "deadline or cancel come after, at most")                                   \
    X(misuse, EXTRA, "chance of a double, stale or foreign release")                              \
    X(cells, EXTRA, "writes of a cell by each client")                                            \
    X(inquire, EXTRA, "chance that who is told of a leader asks who it is")                       \
    X(verify, EXTRA, "chance to ask the store about a hold")                                      \
    X(brief_handles, EXTRA, "a lock's handle lives no longer than the call")                      \
    X(synchronous, FIXED, "the store answers inside submit")                                      \
    X(delay_us, EXTRA, "of a message, at most")                                                   \
    X(timer_late_us, EXTRA, "timers act late by at most")                                         \
    X(reorder, EXTRA, "chance that an answer overtakes others")                                   \
    X(lose_command, EXTRA, "chance that a command is lost")                                       \
    X(lose_reply, EXTRA, "chance that an answer is lost")                                         \
    X(early_unknown, EXTRA, "chance to give an outcome up before the command arrives")            \
    X(late_answer, EXTRA, "chance that the answer comes after all, when it was given up")         \
    X(refuse, EXTRA, "chance that a command fails, not done")                                     \
    X(refuse_for_good, EXTRA, "chance that a command fails for good, not done")                   \
    X(unknown_us, FIXED, "until an outcome is given up, at most")                                 \
    X(wake_lost, EXTRA, "chance")                                                                 \
    X(wake_double, EXTRA, "chance")                                                               \
    X(wake_late_us, EXTRA, "at most")                                                             \
    X(stray_wake, EXTRA, "chance, with every answer")                                             \
    X(cut_every_us, EXTRA, "connection cut about each")                                           \
    X(cut_us, FIXED, "for at most")                                                               \
    X(crash_every_us, EXTRA, "a client dies about each")                                          \
    X(restart_us, FIXED, "and is back after at most")                                             \
    X(pause_every_us, EXTRA, "a client stands still about each")                                  \
    X(pause_us, FIXED, "for at most")                                                             \
    X(close_every_us, EXTRA, "a client is closed about each")                                     \
    X(kill_every_us, EXTRA, "a store gives a session up about each")                              \
    X(break_every_us, EXTRA, "an operator removes the first ticket of a lock about each")         \
    X(revoke_every_us, EXTRA, "an operator asks a holder to give up about each")                  \
    X(hold_max_us, EXTRA, "a hold ends by itself after at most; in half of all acquires")         \
    X(lock_delay_us, EXTRA, "nobody has a lock for so long after its holder has died")            \
    X(linger_us, EXTRA, "a lock that nobody in a client wants is kept for at most")               \
    X(listen, EXTRA, "chance that a holder listens to that")                                      \
    X(detach, EXTRA, "chance that a hold is detached, and that what is detached is adopted")      \
    X(detach_us, FIXED, "an operator breaks what has been nobody's for so long")                  \
    X(reboot_every_us, EXTRA, "the machine loses power about each")                               \
    X(busy, EXTRA, "chance that a store has a command in hand before it takes or returns it")     \
    X(busy_us, FIXED, "for about")                                                                \
    X(notices_refused, EXTRA, "chance that a death is not noticed by an event")                   \
    X(push, EXTRA, "chance that a wake comes as a view, in order")                                \
    X(proof_lag_us, EXTRA, "until the server's leader knows of a renewal, at most")               \
    X(follower_every_us, EXTRA, "a follower dies with what the leader does not know, about each") \
    X(reap_us, EXTRA, "the server ends sessions late by at most")                                 \
    X(zk_servers, SIZE, "ZooKeeper servers")                                                      \
    X(zk_tick_us, FIXED, "of the ensemble")                                                       \
    X(zk_lag_us, EXTRA, "between leader and follower, at most")                                   \
    X(zk_behind_us, EXTRA, "a follower applies what it knows late by at most")                    \
    X(zk_sequence, FIXED, "first number of a directory")                                          \
    X(zk_trouble_every_us, EXTRA, "a server breaks down, stands still or is cut off about each")  \
    X(zk_trouble_us, FIXED, "for at most")                                                        \
    X(zk_alone, EXTRA, "a client knows one server, and followers are cut off, no more")           \
    X(zk_still_every_us, EXTRA, "a follower stands still about each, one at a time")              \
    X(zk_still_us, FIXED, "for at most")                                                          \
    X(zk_outsider_every_us, EXTRA, "another program queues about each")                           \
    X(zk_visit_us, FIXED, "for at most")                                                          \
    X(zk_impostor, EXTRA, "chance of a node with the same identity in another session")           \
    X(zk_gap_us, EXTRA, "a read is done later than what was sent before it by at most")           \
    X(zk_wake_all, EXTRA, "who waits watches the whole list")                                     \
    X(zk_layout, EXTRA, "names as 0 Curator, 1 kazoo, 2 ZooKeeper's recipe have them")            \
    X(zk_reap_us, FIXED, "empty containers are deleted about each")                               \
    X(trouble_every_us, EXTRA, "a server has one of its troubles about each")                     \
    X(trouble_us, FIXED, "for at most")                                                           \
    X(trouble_kind, FIXED,                                                                        \
      "0 any, 1 still, 2 down, 3 no scripts, 4 clock, 5 a stream late, 6 promotion, "             \
      "7 compaction, 8 partition")                                                                \
    X(redis_amnesia, EXTRA, "chance that a restart forgets everything")                           \
    X(redis_uptime_us, FIXED, "a server that has been up for less is not used")                   \
    X(clock_back_us, EXTRA, "a server's clock is set back by at most")                            \
    X(clock_step_us, EXTRA, "or ahead by at most, which no lease stands")                         \
    X(split, EXTRA, "chance that bytes come in two pieces")                                       \
    X(redis_replicas, EXTRA, "replicas that are to have what was written")                        \
    X(redis_copyless, EXTRA, "chance that they do not")                                           \
    X(late, EXTRA, "chance that what a broken connection has left comes up to a lease late")      \
    X(pg_work_us, FIXED, "a statement, or a commit, of PostgreSQL takes at most")                 \
    X(pg_conflict, EXTRA, "chance that it fails, and may be done again")                          \
    X(pg_full, EXTRA, "chance that there is no room for notifications")                           \
    X(pg_notify_late_us, EXTRA, "notifications are late by at most")                              \
    X(pg_lag_us, EXTRA, "the standby is behind by at most, which no lock stands")                 \
    X(pg_pooled, EXTRA, "chance that a pooler gives a transaction another process")               \
    X(pg_split, EXTRA, "chance that something splits the transaction of an acquire")              \
    X(etcd_members, FIXED, "of a cluster of etcd, 1 or 3")                                        \
    X(etcd_shortest, FIXED, "lease that it grants, in seconds")                                   \
    X(etcd_election_us, FIXED, "without a leader, or until an old one knows, at most")            \
    X(etcd_watch_late_us, EXTRA, "watches report late by at most")                                \
    X(etcd_error, EXTRA, "chance that a member answers with an error, whatever was done")         \
    X(several, EXTRA, "chance to acquire several locks at once")                                  \
    X(zk_ambush, EXTRA, "chance that the next waiter's node is taken away just as one leaves")    \
    X(old_answers, EXTRA, "chance that a renewal is answered in the session after its own")       \
    X(zk_sync_early, EXTRA, "chance that a sync of a lock's directory waits for nothing")         \
    X(lone, EXTRA, "the one fault there is, see profile_lone.c")                                  \
    X(lone_next, EXTRA, "and another one, soon after it")                                         \
    X(lone_after, FIXED, "commands, it comes")                                                    \
    X(lone_within_us, FIXED, "it, and the other one after it, come within")                       \
    X(lone_us, EXTRA, "such a fault lasts for at most")                                           \
    X(agents, SIZE, "hosts with one")                                                             \
    X(agent_crash_every_us, EXTRA, "an agent dies about each")                                    \
    X(agent_restart_us, FIXED, "and is back after at most")                                       \
    X(agent_pause_every_us, EXTRA, "an agent stands still about each")                            \
    X(agent_pause_us, FIXED, "for at most")                                                       \
    X(agent_cut_every_us, EXTRA, "an agent is cut off from its store about each")                 \
    X(agent_signal_every_us, EXTRA, "a signal ends an agent about each")                          \
    X(agent_drain_us, FIXED, "and holds go on for so long")                                       \
    X(agent_room, FIXED, "connections that an agent has descriptors for")                         \
    X(resp_clients, EXTRA, "clients of the agents' commands")                                     \
    X(users, EXTRA, "users whose processes those are, beside the agents' own, with a policy")     \
    X(user_hold_us, EXTRA, "clients with the library are of users whose holds last at most")

struct profile {
#define PROFILE_FIELD(name, kind, text) int64_t name;
    PROFILE_MAP(PROFILE_FIELD)
#undef PROFILE_FIELD
};

struct profile_field {
    const char *name;
    int kind;
    const char *text;
};
extern const struct profile_field profile_fields[];
extern const int profile_field_count;

int64_t *profile_value(struct profile *profile, int field);
/* Worlds with all kinds of faults; and with locks of several kinds, or semaphore mutexes, see
   profile_mixed.c; or with a lone fault. */
enum world_kind { WORLD_FAULTY, WORLD_MIXED, WORLD_LONE };
void profile_draw(struct profile *profile, uint64_t seed, int model, enum world_kind kind);
/* Of which kind a lock is. */
int64_t profile_lock(const struct profile *profile, uint64_t seed, int queue);
/* The same without its faults: the heal phase. */
void profile_heal(struct profile *profile);
/* "name=value"; false if there is no such field. */
bool profile_set(struct profile *profile, const char *text);
void profile_print(const struct profile *profile, FILE *file);

#endif
