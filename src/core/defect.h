/*
 * Seeded defects: faults that the tests plant to measure themselves. Each is one
 * switch at the place where the mistake would be made. In a build without
 * MRT_DEFECTS, which is every build that ships, a switch is the constant 0.
 */
#ifndef MRT_CORE_DEFECT_H
#define MRT_CORE_DEFECT_H

#ifdef MRT_DEFECTS
/* X(name, what is broken) */
#define MRT_DEFECT_MAP(X)                                                                 \
    X(NONE, "nothing")                                                                    \
    X(GRANT_OFF_BY_ONE, "the grant rule lets one too many in")                            \
    X(LEASE_FROM_ANSWER, "a lease is dated from the answer, not from the sending")        \
    X(HELD_REMEMBERED, "held is remembered, not computed from the clock")                 \
    X(LOSS_NOT_TOLD, "a lost session's holds are not told")                               \
    X(LOSS_KEEPS_TICKET, "a lost session's ticket goes on being granted")                 \
    X(CANCEL_LEAVES_TICKET, "a cancelled acquire leaves its ticket queued")               \
    X(TRY_LEAVES_TICKET, "a failed try leaves its ticket queued")                         \
    X(TRY_WAITS_HERE, "a try waits for who took the lock here before it came")            \
    X(GHOST_APPEND, "an append of unknown outcome is repeated under a new identity")      \
    X(REMOVE_ONCE, "a removal of unknown outcome is not repeated")                        \
    X(NO_RECHECK, "a waiting ticket is never looked at again without a wake")             \
    X(STALE_ANSWER, "an answer is taken for that of any command of its ticket")           \
    X(STALE_RELEASE, "a stale hold releases the newer one in its slot")                   \
    X(NESTED_RELEASE, "an inner release gives the lock back")                             \
    X(FENCE_REPEATS, "the fence does not rise on a hand-over inside the process")         \
    X(SPAN_OVERRUN, "a ticket hands out more fences than it owns")                        \
    X(LOST_WAKE, "a woken waiter that finds the lock taken is never woken again")         \
    X(LOCAL_KEPT, "the local lock stays taken when the store refuses the ticket")         \
    X(BARGE_IN_STRICT, "a newcomer overtakes local waiters in strict mode")               \
    X(STARVE, "a local waiter is never handed the lock directly")                         \
    X(BUDGET_IGNORED, "a turn does not end while others wait")                            \
    X(CLOSE_LEAVES_SESSION, "closing does not stop the session")                          \
    X(GONE_IGNORED, "a holder whose ticket was removed is not told")                      \
    X(STRING_ORDER, "the store sorts tickets by their numbers as text")                   \
    X(EARLY_WAKE_LOST, "a wake that overtakes the answer of an append is forgotten")      \
    X(OLD_VIEW_BELIEVED, "a late word of a ticket that was taken out is of the next one") \
    X(BUSY_FORGOTTEN, "a command that the store did not take is not sent again")          \
    X(TOLD_TWICE, "a state is told again though it has not changed")                      \
    X(UNKNOWN_PROVES, "a renewal of unknown outcome counts as a proof of life")           \
    X(LAG_FROM_SENDING, "the lag of a store's proofs is counted from the sending")        \
    X(NO_MARGIN, "the lease has no margin for clocks that run slow")                      \
    X(UPGRADE_NESTS, "a reader that asks to write nests in its own reading")              \
    X(SEMAPHORE_MUTEX_NESTS, "who has a mutex that does not nest acquires it again")      \
    X(READER_WEIGHS_NOTHING, "who stops writing and goes on reading keeps nobody out")    \
    X(REVOKE_FORGOTTEN, "a request to give up that comes before anyone listens is lost")  \
    X(REVOKED_TURN_LASTS, "a request to give up does not end the turn")                   \
    X(MAX_HOLD_KEPT, "a hold goes on beyond its time")                                    \
    X(BREAK_ANY, "break takes the first ticket out, whatever its fence")                  \
    X(OBSERVER_DEAF, "a change that overtakes the answer of a look is forgotten")         \
    X(OBSERVER_BY_VALUE, "a new leader with the value of the last is not told")           \
    X(OBSERVER_LOST, "after the loss of a session nobody looks any more")                 \
    X(VALUE_FORGOTTEN, "a value that changes while a command is under way is not told")   \
    X(CELL_UNKNOWN_REFUSED, "a write that may have been done is told as refused")         \
    X(CELL_IGNORES_VERSION, "a cell is written whatever its version")                     \
    X(CELL_IGNORES_FENCE, "a cell is written whatever the fence")                         \
    X(DELAY_FORGOTTEN, "a dead session's ticket goes at once")                            \
    X(DELAY_FOR_EVER, "what a dead session left never goes")                              \
    X(ZK_NO_SYNC_BEFORE_ADOPT, "what a lost create made is sought without a sync")        \
    X(ZK_NO_SYNC_BEFORE_PURGE, "what is to be deleted is sought without a sync")          \
    X(ZK_ADOPT_FOREIGN_OWNER, "a node of another session is adopted")                     \
    X(ZK_STRING_SORT, "sequence numbers are compared as text")                            \
    X(ZK_SIGNED_SEQUENCE, "sequence numbers do not wrap when compared")                   \
    X(ZK_UNSIGNED_SEQUENCE, "sequence numbers are compared without a sign")               \
    X(ZK_LEASE_FROM_READ, "a read renews the lease, not a sync")                          \
    X(ZK_NO_PROOF_LAG, "a follower's word is taken for the leader's")                     \
    X(ZK_ERROR_RENEWS, "a renewal that failed counts as a proof of life")                 \
    X(ZK_STALE_ANSWER, "the answer to an earlier attempt is believed")                    \
    X(ZK_WATCH_SWALLOWED, "the event of a watch wakes nobody")                            \
    X(ZK_PREDECESSOR_GONE_IGNORED, "a node gone before it is watched wakes nobody")       \
    X(ZK_OWN_NODE_GONE_IGNORED, "a holder whose node is gone still holds")                \
    X(ZK_STRANGERS_IGNORED, "the nodes of other programs are not counted")                \
    X(ZK_DELETE_ONCE, "a delete of unknown outcome is taken for done")                    \
    X(ZK_UNDO_ONCE, "the undoing of a try is taken for done")                             \
    X(ZK_TRY_LEAVES_NODE, "a try that finds the lock taken after all leaves its node")    \
    X(ZK_GHOST_LEFT, "a create of unknown outcome is forgotten")                          \
    X(ZK_NO_PARENT, "a missing directory is not made")                                    \
    X(ZK_FENCE_FROM_SEQUENCE, "the fence is the sequence number")                         \
    X(ZK_RESET_ON_RECONNECT, "tickets are forgotten when the connection is back")         \
    X(ZK_REQUEST_UNREAD, "what was written into the own node is not read")                \
    X(ZK_REQUEST_OVERWRITTEN, "what others wrote into the own node is written over")      \
    X(ZK_DEAF_SOCKET, "a new socket with an old number is not polled")                    \
    X(ZK_LIGHTER_NAME_LATE, "a lighter node's name is believed only when listed")         \
    X(ZK_SEMAPHORE_N_AHEAD, "who waits for permits watches the one N places ahead")       \
    X(ZK_SEMAPHORE_NEAREST, "who waits for permits watches the one just ahead")           \
    X(ZK_SEMAPHORE_WEIGHT, "how many permits a ticket takes is not counted")              \
    X(ZK_SEMAPHORE_NO_MARK, "who is granted permits does not say so")                     \
    X(ZK_SEMAPHORE_UNMARKED, "who waits for permits waits for a mark that none will set") \
    X(ZK_SEMAPHORE_MARK_NOT_READ, "a mark that is there when watched is overlooked")      \
    X(ZK_OBSERVER_DEAF, "the event of a watch on the first ticket tells no observer")     \
    X(ZK_OBSERVER_STALE, "an observer believes an old list")                              \
    X(ZK_CELL_BLIND_WRITE, "a cell is written whatever has been written since")           \
    X(ZK_CELL_FENCE_FORGOTTEN, "a cell forgets the largest fence")                        \
    X(ZK_CLAIM_ONCE, "a claim that waits does not try again")                             \
    X(ZK_CLAIM_BLIND_DELETE, "a claim's release deletes whatever node is there")          \
    X(ZK_CLAIM_ANY_NODE, "a claim that holds takes whatever node is there for its own")   \
    X(ZK_CLAIM_NO_TOKEN, "a claim takes any node of its session for its own")             \
    X(ZK_CLAIM_COUNT_FENCE, "a claim's fence is the number of claims in the directory")

/* Of the ZooKeeper store, after the rules of store/zookeeper_pass.c; the simulator of the
   port cannot find them, a real server's tests do. */
#define MRT_DEFECT_PASS_MAP(X)                                                              \
    X(PASS_RULE_1_ONE, "a pass is taken to say that one ticket is gone")                    \
    X(PASS_RULE_2_CANCEL, "a waiter that gives up passes the lock on")                      \
    X(PASS_RULE_3_SEQUENCE, "a marker is called after the sequence number alone")           \
    X(PASS_RULE_3_CONTAINER, "the markers' directory is a container")                       \
    X(PASS_RULE_4_ORDER, "what is waited for is watched before its marker")                 \
    X(PASS_RULE_5_OWN, "the end of the own node is not heeded")                             \
    X(PASS_RULE_5_REARM, "a watch on the own node that was used up is taken for set")       \
    X(PASS_RULE_5_EARLY, "such a watch is taken for set before it is known to be")          \
    X(PASS_RULE_5_REPLY, "a watch on the own node that was refused is taken for set")       \
    X(PASS_RULE_6_ABSENT, "what is gone before it is watched is taken for a pass")          \
    X(PASS_RULE_7_LEASE, "a pass is taken for a proof of life")                             \
    X(PASS_RULE_8_CANCELLED, "a pass for a ticket that is to go is taken for the next")     \
    X(PASS_RULE_9_REFUSED, "a pass that was refused is taken for done")                     \
    X(PASS_RULE_9_NO_NODE, "\"no node\" is always taken for a ticket that is gone")         \
    X(PASS_RULE_9_UNKNOWN, "a pass of unknown outcome is taken for done")                   \
    X(PASS_RULE_10_LEAK, "the watch on a marker stays when a node goes without a pass")     \
    X(PASS_RULE_10_FOREIGN, "markers of other programs' nodes are watched")                 \
    X(PASS_RULE_11_EXISTS, "a marker that is there when it is watched is taken for a pass") \
    X(PASS_RULE_12_TWO, "a bare deletion lets in whoever waited for it")                    \
    X(PASS_RULE_12_OWN, "and that while the own node is not known to stand")                \
    X(PASS_RULE_12_CHANGED, "what was changed is taken for gone")                           \
    X(PASS_RULE_12_RENAME, "a node that is called otherwise is merely deleted")

/* Of the quorum, store/quorum*.c; test/live/quorum.c finds them. */
#define MRT_DEFECT_QUORUM_MAP(X)                                                    \
    X(QUORUM_MINORITY, "one less than a majority will do")                          \
    X(QUORUM_RENEWED_BY_OTHERS, "a lock is renewed by members that do not have it") \
    X(QUORUM_LATE_CLAIM_LEFT, "who has not answered in time is not told to let go") \
    X(QUORUM_UNRENEWED_COUNTS, "a member that missed the newest renewal counts")    \
    X(QUORUM_OLD_START_COUNTS, "a member that an earlier START has started counts") \
    X(QUORUM_ROUND_AGAIN, "rounds of a ticket that comes again have old numbers")   \
    X(QUORUM_EQUAL_PAUSES, "who has lost a round pauses as long as everybody else") \
    X(QUORUM_DEAF, "what a member says of a claim unasked is not heeded")

/* Of stores that the simulator runs as they ship, and of the scripts of Redis; it finds them, and
   those of the quorum and of Redis that others find too. */
#define MRT_DEFECT_SIMULATED_MAP(X)                                               \
    X(REDIS_LUA_OLD_EPOCH, "commands of a connection that was given up are done") \
    X(REDIS_LUA_NO_PUSH, "who may run now is not told")                           \
    X(REDIS_LUA_DEAD_STAY, "a renewal buries nobody")                             \
    X(REDIS_LUA_NUMBER_FORGOTTEN, "numbers begin again when a server forgets")    \
    X(REDIS_LUA_APPEND_TWICE, "a ticket that is there already is appended again") \
    X(REDIS_LUA_VALUE_KEPT, "the value of a ticket that is gone is kept")         \
    X(REDIS_LUA_CHANGE_UNTOLD, "who observes is not told of another leader")      \
    X(REDIS_LUA_FIRST_LEAVES, "whoever gives up, the first in the queue goes")    \
    X(REDIS_LUA_ALL_MUTEXES, "what waits for any lock is taken for a mutex's")

/* Of the stores on SQL servers, store/sql_*.c and postgres_wire.c, and of their statements; the
   simulator finds them. */
#define MRT_DEFECT_SQL_MAP(X)                                                              \
    X(SQL_LOST_REPLY_FAILED, "what was sent when a connection broke has failed")           \
    X(SQL_BEFORE_COMMIT, "what a statement answered is believed before its commit")        \
    X(SQL_CONFLICT_DONE, "a removal that conflicts with another is taken for done")        \
    X(SQL_DEMOTED_KEPT, "a connection to a server that is read-only now is kept")          \
    X(SQL_PG_NO_LISTEN, "a new connection does not listen")                                \
    X(SQL_PG_HURRIED, "a ticket is told before it is on disk")                             \
    X(SQL_PG_HURRIED_PAST, "a ticket that others wait behind goes before it is on disk")   \
    X(SQL_PG_FORGOTTEN, "what a server has lost is not taken out again")                   \
    X(SQL_PG_NO_NOTIFY, "who may run now is not told")                                     \
    X(SQL_PG_CHANGE_UNTOLD, "who observes is not told of a leader's end")                  \
    X(SQL_PG_UNLOCKED, "who leaves does not lock the queue")                               \
    X(SQL_PG_ONE_STATEMENT, "who comes does not lock the queue before he looks")           \
    X(SQL_PG_FROZEN_NOW, "a lease begins with the transaction, not after its waits")       \
    X(SQL_PG_OLD_EPOCH, "tickets of a connection that was given up are put in")            \
    X(SQL_PG_REAP_ALL, "with the dead the living are ended")                               \
    X(SQL_PG_CELL_BLIND, "a cell is written whatever its version")                         \
    X(SQL_PG_GONE_COUNTS, "a ticket whose session was ended makes room as it goes")        \
    X(SQL_PG_LAST_UNLOCKED, "who comes while the last one goes is not told of it")         \
    X(SQL_PG_LAST_UNCHECKED, "a ticket goes as the last one, though others are behind")    \
    X(SQL_PG_LAST_KEPT, "a ticket that was not the last one, as was thought, does not go") \
    X(SQL_PG_LINGER_UNTOLD, "who lingers is not told of who queues")

/* Of durable holds; test/model finds them, and the simulator. */
#define MRT_DEFECT_DETACH_MAP(X)                                             \
    X(DETACH_ONCE, "a detach of unknown outcome is taken for done")          \
    X(DETACH_NOT_LOST, "a detach that nobody can tell of is told as a loss") \
    X(DETACHED_DIES, "what was detached ends with the session that had it")  \
    X(ADOPTED_TWICE, "what one has adopted can be adopted by another")       \
    X(ADOPTED_REMOVED, "who gives up adopting a ticket takes it out")        \
    X(ADOPTED_FENCE, "an adopted ticket begins again with its first fence")

/* Of lingering; the simulator finds them, and test/model the first. */
#define MRT_DEFECT_LINGER_MAP(X)                                                     \
    X(LINGER_CONTENDED, "a ticket lingers though another waits")                     \
    X(LINGER_FOR_EVER, "a ticket lingers beyond its time")                           \
    X(LINGER_REMOVED_ONCE, "what has lingered is not removed again when that fails") \
    X(LINGER_BY_HEARSAY, "what is told unasked goes before what was answered")       \
    X(LINGER_UNASKED, "a ticket lingers whose store was not asked to tell")          \
    X(LINGER_UNTOLD, "the store does not tell who lingers of who queues")            \
    X(LINGER_OUTLIVES_SESSION, "what lingers is kept when its session is lost")      \
    X(ZK_LINGER_UNWATCHED, "who lingers does not watch who comes")                   \
    X(REDIS_LUA_LINGER_UNTOLD, "who queues does not tell who lingers")

/* Of the delay after a crash; test/model finds them. */
#define MRT_DEFECT_DELAY_MAP(X)                                         \
    X(DELAY_NOT_ASKED, "a ticket without a delay serves who wants one") \
    X(DELAY_FROM_START, "a delay begins with the ticket")               \
    X(DELAY_FOR_WAITERS, "a dead session's waiting tickets stay too")   \
    X(LOSS_NOT_A_DEATH, "a lost session is stopped as if it had ended well")

/* Of the Redis store, store/redis*.c; test/live/redis_faults.c and redis_claim.c find them, on
   real servers. */
#define MRT_DEFECT_REDIS_MAP(X)                                                    \
    X(REDIS_EPOCH_STAYS, "a new connection has no higher number than the last")    \
    X(REDIS_LOST_REPLY_FAILED, "what was sent when a connection broke has failed") \
    X(REDIS_LEASE_TOO_LONG, "a lease lasts longer here than at the server")        \
    X(REDIS_EVICTION_UNTOLD, "nobody is told of a server that may drop locks")     \
    X(REDIS_ERROR_UNKNOWN, "what the server refused may have been done")
#define MRT_DEFECT_REDIS_CLAIM_MAP(X)                                              \
    X(REDIS_SCRIPT_SENT_ONCE, "a script that the server lost is not sent again")   \
    X(REDIS_LOST_RENEWS, "a session that has ended is renewed")                    \
    X(REDIS_CLAIM_ONE_TOKEN, "all claims have the same token")                     \
    X(REDIS_CLAIM_FOR_EVER, "a claim has no lease")                                \
    X(REDIS_CLAIM_BLIND_DELETE, "a release deletes whoever's key it is")           \
    X(REDIS_CLAIM_BLIND_EXTEND, "an extension that was refused is taken for done") \
    X(REDIS_CLAIM_NO_READ_BACK, "a claim of unknown outcome is not looked for")    \
    X(REDIS_CLAIM_LATE_SET, "the connection before the last may still claim")      \
    X(REDIS_CLAIM_NOT_EXTENDED, "a renewal does not extend the claims")            \
    X(REDIS_CLAIM_LEAVING_EXTENDED, "a renewal extends what is being released")    \
    X(REDIS_CLAIM_UNPROVEN, "a renewal is proven whatever became of the claims")   \
    X(REDIS_CLAIM_PHANTOM, "what is not sent again is waited for")                 \
    X(REDIS_CLAIM_LOST_KEPT, "the claims of a session that was lost are left")     \
    X(REDIS_SIGPIPE, "a write to a server that has gone ends the process")

/* Of elections, api/election.c; test/api/test_api_election.c finds them. */
#define MRT_DEFECT_ELECTION_MAP(X)                                                              \
    X(ELECTION_DEPOSED_UNTOLD, "who leads no more is not told")                                 \
    X(ELECTION_ELECTED_UNTOLD, "who leads from now on is not told")                             \
    X(ELECTION_RESIGNED_LEADS, "who has resigned keeps the lock, and is told that it does not " \
                               "lead")

/* Of several locks at once, api/multi.c; test/api/test_api_multi.c and test/sim find them. */
#define MRT_DEFECT_MULTI_MAP(X)                                                            \
    X(MULTI_LEAKS, "what was acquired before one that fails is kept")                      \
    X(MULTI_LEAKS_TRIED, "what was tried behind one that fails is kept")                   \
    X(MULTI_WAITS_WITH_MORE, "what was tried behind one is held while that is waited for") \
    X(MULTI_LIST_ORDER, "locks are acquired in the order in which they are given")         \
    X(MULTI_OUTSIDE, "a client is freed under a call that gives its locks back")

/* Of leading, io/lead.c; test/api/test_io_lead.c finds them. */
#define MRT_DEFECT_LEAD_MAP(X)                                                     \
    X(LEADER_SLEEPS_ON, "who leads is not woken by other threads")                 \
    X(LEAD_LOOP_STAYS_AWAY, "the loop does not come back to the store by itself")  \
    X(LEAD_OTHERS_LEFT, "others are blocked when a leader goes, and nobody reads") \
    X(LEAD_ANSWERS_LEFT, "an answer that must be read is left unread")             \
    X(LEAD_RECALL_UNDONE, "the loop goes away again before what it is to tell")    \
    X(LEADER_CALLS_BACK, "callbacks run on the thread of who leads")

enum mrt_defect {
#define MRT_DEFECT_NAME(name, text) MRT_DEFECT_##name,
    MRT_DEFECT_MAP(MRT_DEFECT_NAME) MRT_DEFECT_COUNT,
    MRT_DEFECT_PASS_MAP(MRT_DEFECT_NAME) MRT_DEFECT_QUORUM_MAP(MRT_DEFECT_NAME)
        MRT_DEFECT_ELECTION_MAP(MRT_DEFECT_NAME) MRT_DEFECT_REDIS_MAP(MRT_DEFECT_NAME)
            MRT_DEFECT_REDIS_CLAIM_MAP(MRT_DEFECT_NAME) MRT_DEFECT_DETACH_MAP(MRT_DEFECT_NAME)
                MRT_DEFECT_LINGER_MAP(MRT_DEFECT_NAME) MRT_DEFECT_DELAY_MAP(MRT_DEFECT_NAME)
                    MRT_DEFECT_SIMULATED_MAP(MRT_DEFECT_NAME) MRT_DEFECT_SQL_MAP(MRT_DEFECT_NAME)
                        MRT_DEFECT_MULTI_MAP(MRT_DEFECT_NAME) MRT_DEFECT_LEAD_MAP(MRT_DEFECT_NAME)
#undef MRT_DEFECT_NAME
                            MRT_DEFECT_END
};
extern enum mrt_defect mrt_defect_on;
#define MRT_DEFECT(name) (mrt_defect_on == MRT_DEFECT_##name)
#else
#define MRT_DEFECT(name) 0
#endif

#endif
