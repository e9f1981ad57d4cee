/* SPDX-License-Identifier: Apache-2.0 */
/* The texts. Their results: sql/columns.h. */
#include "store/mariadb/statements.h"

#include "store/mariadb/trust.h"

#include "store/sql/columns.h"
#include "store/sql/internal.h"

/* Texts laid out as SQL. */
/* clang-format off */

#define NOW "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"
#define NOBODY "x'00000000000000000000000000000000'"
#define SHARE_SESSION "SELECT 1 FROM session WHERE id = $s AND epoch = $e LOCK IN SHARE MODE"

/* The server ends a connection on which nothing comes for a lease and more, or whose transaction is
   left open. Its row locks end with it. */
static const char setup[] =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
    " autocommit = 1, innodb_lock_wait_timeout = $h, wait_timeout = 2 + 3 * $h"
    ", idle_transaction_timeout = 2 + $h, max_statement_time = $i / 1000";
static const char isolation[] = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
static const char identify[] =
    "SELECT CONNECTION_ID(), @@global.read_only + 0, MAX(number),"
    " NOT (@@global.rpl_semi_sync_master_enabled"
    " AND @@global.rpl_semi_sync_master_wait_point = 'AFTER_SYNC'), " MRT_MARIADB_FAULT("DATABASE()")
    " FROM version";

static const char start[] =
    "INSERT INTO session (id, epoch, expires, label) VALUES ($s, $e, " NOW " + $l, $a)"
    " ON DUPLICATE KEY UPDATE epoch = GREATEST(epoch, $e), expires = " NOW " + $l";
/* A user without the right to release a lock gets an error here, before it acquires one. */
static const char may_end[] =
    "DELETE t, s FROM ticket t JOIN session s ON s.id = t.session WHERE t.number = 0";
/* The row of the queue table that belongs to no lock, because no lock has this name: the time
   when all queues were last swept. */
#define SWEPT "''"
static const char old_sessions[] =
    "SELECT EXISTS (SELECT 1 FROM session WHERE expires < " NOW " - 60000000)"
    " OR NOT EXISTS (SELECT 1 FROM queue WHERE name = " SWEPT " AND touched > " NOW
    " - 3600000000)";

/* A late command of an older connection must not lower the epoch. */
static const char resume[] =
    "UPDATE session SET epoch = $e WHERE id = $s AND epoch > 0 AND epoch < $e";
static const char resumed[] = "SELECT 1 FROM session WHERE id = $s AND epoch > 0";

static const char renew[] = "UPDATE session SET expires = " NOW " + $l WHERE id = $s AND epoch > 0";
/* The number that stands for operators' requests changes whenever one is made. A server that has
   become read-only shows it here: it ends no connections, and lets some users write. */
static const char count_tickets[] =
    "SELECT (SELECT COUNT(*) FROM ticket WHERE session = $s),"
    " (SELECT MOD(COALESCE(SUM(CAST(asked AS DECIMAL(30)) * number), 0), 1000000000000000000)"
    " FROM ticket WHERE session = $s), CONNECTION_ID(), @@global.read_only + 0"
    " FROM session WHERE id = $s AND epoch > 0";

/* Whether there was a row to lock. One that is made between two of the statements is not
   locked, and nothing may be put in. */
static const char lock_queue[] =
    "SELECT COUNT(*) INTO @mortise_queue FROM queue WHERE name = $q FOR UPDATE";
static const char share_session[] = "SELECT COUNT(*) INTO @mortise_session FROM session"
                                    " WHERE id = $s AND epoch = $e LOCK IN SHARE MODE";
/* The weight ahead, as it is from now on; tickets that leave meanwhile make it less. Uses
   aggregates only: a derived table would be materialised. */
static const char look_ahead[] =
    "SELECT MIN(IF(x.session = $s AND x.id = $t, x.number, NULL)),"
    " COALESCE(SUM(x.weight), 0), MIN(s.expires) - " NOW ","
    " MIN(IF(x.kind <> $k OR x.capacity <> $c, x.capacity, NULL)),"
    " MIN(IF(x.kind <> $k OR x.capacity <> $c, x.kind, NULL)), COUNT(s.id)"
    " INTO @mortise_old, @mortise_ahead, @mortise_left, @mortise_capacity,"
    " @mortise_kind, @mortise_place FROM ticket x JOIN session s ON s.id = x.session"
    " WHERE x.queue = $q";
/* Where there is a limit. */
static const char count_waiting[] =
    "SELECT COALESCE(SUM(upto > capacity), 0) INTO @mortise_waiting FROM (SELECT t.capacity,"
    " SUM(t.weight) OVER (ORDER BY t.number) AS upto"
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = $q) line";
#define PUT_IN(session, queue)                                                                    \
    "INSERT INTO ticket (session, id, queue, weight, kind, capacity, since, asked, value, delay)" \
    " SELECT " session ", $t, " queue ", $w, $k, $c, " NOW ", 0, $v, $z FROM "
static const char append[] =
    PUT_IN("$s", "$q") "DUAL WHERE @mortise_queue > 0 AND @mortise_session > 0"
           " AND @mortise_old IS NULL AND @mortise_capacity IS NULL"
           " AND (@mortise_ahead + $w <= $c OR ($y = 0 AND ($m = 0 OR @mortise_waiting < $m)))";
static const char appended[] =
    "SELECT " MRT_APPEND_ROW("IF(ROW_COUNT() > 0, LAST_INSERT_ID(), NULL)", "@mortise_old",
    "@mortise_ahead", "@mortise_left", "@mortise_session", "@mortise_capacity", "@mortise_kind",
    "@mortise_place", "@mortise_queue");
/* Where nobody is ahead, which is all that it looks for; else nothing is done, and written. Tickets
   are looked for by the name in the queue's row, so after it has been locked; and by the first read
   in this statement that locks nothing, which is what sees all that has been committed until then.
   A smallest number is one look into the index; EXISTS would be planned as a query. */
static const char append_alone[] =
    PUT_IN("s.id", "q.name") "queue q STRAIGHT_JOIN session s"
           " WHERE q.name = $q AND s.id = $s AND s.epoch = $e"
           " AND (SELECT MIN(t.number) FROM ticket t WHERE t.queue = q.name) IS NULL FOR UPDATE";

static const char view[] =
    "SELECT " MRT_VIEW_ROW("t.number", "COALESCE(SUM(x.weight), 0)", "MIN(s.expires) - " NOW,
    "EXISTS (SELECT 1 FROM ticket b JOIN session bs ON bs.id = b.session"
    " WHERE b.queue = t.queue AND b.number > t.number)", "t.asked", "COUNT(s.id)",
    NOW " - t.since")
    " FROM ticket t JOIN session me ON me.id = t.session"
    " LEFT JOIN (ticket x JOIN session s ON s.id = x.session)"
    " ON x.queue = t.queue AND x.number < t.number"
    " WHERE t.session = $s AND t.id = $t GROUP BY t.number";

static const char leave[] = "DELETE FROM ticket WHERE session = $s AND id = $t";
static const char lighten[] =
    "UPDATE ticket SET weight = $w WHERE session = $s AND id = $t AND weight > $w";
/* Until the year 9999. */
static const char nobody[] = "INSERT IGNORE INTO session (id, epoch, expires, label)"
                             " VALUES (" NOBODY ", 0, 253370764800000000, '')";
static const char detach[] =
    "UPDATE ticket SET session = " NOBODY ", id = $b, weight = LEAST(weight, $w), delay = 0"
    " WHERE session = $s AND id = $t AND queue = $q"
    " AND EXISTS (SELECT 1 FROM session WHERE id = $s AND epoch = $e)";
/* ROW_COUNT is of the statement before. */
static const char detached[] =
    "SELECT " MRT_MOVED_ROW("(SELECT number FROM ticket WHERE session = " NOBODY
    " AND id = $b AND queue = $q)", "ROW_COUNT()",
    "EXISTS (SELECT 1 FROM session WHERE id = $s AND epoch > 0)", "0");
static const char adopt[] =
    "UPDATE ticket SET session = $s, delay = $z"
    " WHERE session = " NOBODY " AND id = $t AND queue = $q"
    " AND kind = $k AND capacity = $c AND weight = $w"
    " AND EXISTS (SELECT 1 FROM session WHERE id = $s AND epoch = $e)";
static const char adopted[] =
    "SELECT " MRT_MOVED_ROW("(SELECT number FROM ticket WHERE session = $s AND id = $t"
    " AND queue = $q)", "ROW_COUNT()", "EXISTS (SELECT 1 FROM session WHERE id = $s AND epoch > 0)",
    "EXISTS (SELECT 1 FROM ticket WHERE session = " NOBODY " AND id = $t AND queue = $q)");

static const char set_value[] = "UPDATE ticket SET value = $v WHERE session = $s AND id = $t";

static const char observe[] =
    "SELECT " MRT_HOLDER_ROW("t.number", "s.expires - " NOW, "HEX(t.value)")
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = $q"
    " ORDER BY t.number LIMIT 1";

static const char write_cell[] =
    "UPDATE cell SET version = version + 1, fence = GREATEST(fence, $f), writer = $t, value = $v"
    " WHERE name = $q AND (writer IS NULL OR writer <> $t)"
    " AND IF(value IS NULL, 0, version) = $r AND ($f = 0 OR fence <= $f)"
    " AND EXISTS (SELECT 1 FROM session WHERE id = $s AND epoch = $e)";
static const char cell[] =
    "SELECT " MRT_CELL_ROW("EXISTS (SELECT 1 FROM session WHERE id = $s AND epoch > 0)",
    "c.version", "c.fence", "c.writer = $t", "HEX(c.value)")
    " FROM (SELECT 1) one LEFT JOIN cell c ON c.name = $q";

/* A dead session cannot be renewed, whether its row is still there or not. */
static const char mark_dead[] = "UPDATE session s JOIN ticket t ON t.session = s.id SET s.epoch = 0"
                                " WHERE t.queue = $q AND s.expires <= " NOW;
static const char die[] =
    "UPDATE session SET epoch = 0, expires = LEAST(expires, " NOW ") WHERE id = $s";
/* Dead sessions leave behind their holds with a delay: each gets a session of its own. */
#define LEAVE_BEHIND(these)                                                                       \
    "INSERT IGNORE INTO session (id, epoch, expires, label)"                                       \
    " SELECT l.id, 0, d.expires + l.delay, d.label FROM"                                          \
    " (SELECT t.session, t.id, t.delay, t.capacity,"                                              \
    " SUM(t.weight) OVER (PARTITION BY t.queue ORDER BY t.number) AS upto"                        \
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue IN"                          \
    " (SELECT x.queue FROM ticket x WHERE x.delay > 0 AND x.session IN (" these "))) l"           \
    " JOIN session d ON d.id = l.session WHERE l.session IN (" these ")"                          \
    " AND l.delay > 0 AND l.upto <= l.capacity AND d.epoch = 0"
#define MOVE_BEHIND(these)                                                                        \
    "UPDATE ticket t JOIN (" these ") these ON these.session = t.session"                         \
    " JOIN session l ON l.id = t.id SET t.session = t.id, t.delay = 0"
#define HERE "SELECT DISTINCT session FROM ticket WHERE queue = $q"
#define THIS "SELECT $s AS session"
static const char reap[] = "DELETE s FROM session s JOIN ticket t ON t.session = s.id"
                           " WHERE t.queue = $q AND s.epoch = 0 AND s.expires <= " NOW;
static const char clear[] = "DELETE t FROM ticket t LEFT JOIN session s ON s.id = t.session"
                            " WHERE t.queue = $q AND s.id IS NULL";

static const char sweep_sessions[] =
    "DELETE FROM session WHERE expires < " NOW " - 60000000 AND NOT EXISTS (SELECT 1 FROM ticket t"
    " WHERE t.session = session.id AND t.delay > 0 AND session.expires + t.delay > " NOW ")"
    " LIMIT 1000";
static const char sweep_tickets[] =
    "DELETE t FROM ticket t LEFT JOIN session s ON s.id = t.session WHERE s.id IS NULL";
static const char sweep_queues[] =
    "DELETE FROM queue WHERE touched < " NOW " - 86400000000"
    " AND name <> " SWEPT
    " AND NOT EXISTS (SELECT 1 FROM ticket t WHERE t.queue = queue.name) LIMIT 1000";
/* If there are more, the next one who starts goes on. */
static const char swept[] = "INSERT INTO queue (name, touched) SELECT " SWEPT ", " NOW
                            " FROM DUAL WHERE ROW_COUNT() < 1000"
                            " ON DUPLICATE KEY UPDATE touched = " NOW;

static const char list[] =
    "SELECT " MRT_LIST_ROW("t.number", "t.weight", "t.capacity", "t.since DIV 1000", "t.queue",
    "t.kind", "s.label", "s.id = " NOBODY, "IF(s.id = t.id OR s.expires <= " NOW ","
    " GREATEST(1 + (s.expires + t.delay - " NOW ") DIV 1000, 1), 0)",
    "LOWER(HEX(SUBSTR(t.id, 11)))")
    " FROM ticket t JOIN session s ON s.id = t.session"
    " WHERE s.expires + t.delay > " NOW " AND ($n IS NULL OR t.queue = $n)"
    " AND LEFT(t.queue, LENGTH($p)) = $p ORDER BY t.queue, t.number";

/* Of all that hold, or of the one of this number. */
static const char revoke[] =
    "UPDATE ticket t JOIN (SELECT number FROM (SELECT x.number, x.capacity,"
    " SUM(x.weight) OVER (ORDER BY x.number) AS upto FROM ticket x"
    " JOIN session s ON s.id = x.session WHERE x.queue = $q) line WHERE upto <= capacity"
    " AND ($o = 0 OR number = $o)) holds ON holds.number = t.number SET t.asked = t.asked + 1";
static const char break_ticket[] = "DELETE FROM ticket WHERE queue = $q AND number = $o";

/* ------------------------------------------------------------------ forms */

/* A connection of a form: its lock lasts as long as the connection, which the server ends when
   nothing comes on it. */
static const char form_setup[] =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', time_zone = '+00:00',"
    " autocommit = 1, innodb_lock_wait_timeout = $Z, wait_timeout = $J"
    ", idle_transaction_timeout = $J, idle_readonly_transaction_timeout = $J,"
    " idle_write_transaction_timeout = $J, max_statement_time = 0";
static const char name_identify[] = "SELECT CONNECTION_ID(), @@global.read_only + 0, 0, 0, NULL";
static const char row_identify[] =
    "SELECT CONNECTION_ID(), @@global.read_only + 0, 0, 0, " MRT_MARIADB_FAULT("DATABASE()");

static const char name_try[] = "SELECT GET_LOCK($C, 0), 1";
static const char name_wait[] = "SELECT GET_LOCK($C, $Z), 1";
static const char name_leave[] = "SELECT RELEASE_LOCK($C)";
static const char name_prove[] =
    "SELECT IS_USED_LOCK($C) = CONNECTION_ID(), 0, CONNECTION_ID(), @@global.read_only + 0";
/* The server shows no waiters. */
static const char name_list[] =
    "SELECT " MRT_LIST_ROW("0", "1", "1", "0", "$n", "'get_lock'",
    "CONCAT(IF(p.user IS NULL, '', p.user), ' (connection ', holder, ')')", "0", "0", "''")
    " FROM (SELECT IS_USED_LOCK($C) AS holder) held"
    " LEFT JOIN information_schema.processlist p ON p.id = holder WHERE holder IS NOT NULL";

/* Whether the row is ours now, and whether it is there. */
static const char row_try[] =
    "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM row_lock WHERE name = $q"
    " FOR UPDATE SKIP LOCKED) had), (SELECT COUNT(*) FROM row_lock WHERE name = $q)";
/* Another that is making it, or has it already, is not waited for. */
static const char row_make[] = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR"
                               " INSERT IGNORE INTO row_lock (name) VALUES ($q)";
static const char row_wait[] = "SELECT 1 FROM row_lock WHERE name = $q FOR UPDATE";
/* Somebody has it whose lock is skipped; who, is not to be seen. */
static const char row_list[] =
    "SELECT " MRT_LIST_ROW("0", "1", "1", "0", "$n", "'row'", "''", "0", "0", "''")
    " FROM (SELECT COUNT(*) AS count FROM row_lock WHERE name = $n) rows_there"
    " WHERE count > 0 AND NOT EXISTS (SELECT 1 FROM (SELECT 1 FROM row_lock WHERE name = $n"
    " LOCK IN SHARE MODE SKIP LOCKED) had)";
static const char row_prove[] =
    "SELECT @@in_transaction, 0, CONNECTION_ID(), @@global.read_only + 0";

/* clang-format on */

#define NAME(step) ((int)MRT_SQL_DO_NAMED + (int)MRT_NATIVE_##step)
#define ROW(step) ((int)MRT_SQL_DO_ROW + (int)MRT_NATIVE_##step)
#define NEVER      \
    {              \
        false, -1, \
        {          \
            "DO 0" \
        }          \
    } /* it is not asked for */

const struct mrt_mariadb_plan *mrt_mariadb_plan(const struct mrt_sql_request *request)
{
    static const struct mrt_mariadb_plan alone = {false, 0, {append_alone}};
    static const struct mrt_mariadb_plan limited = {
        true, 5, {lock_queue, share_session, look_ahead, count_waiting, append, appended}};
    static const struct mrt_mariadb_plan plans[MRT_SQL_KINDS] = {
        [MRT_SQL_DO_SETUP] = {false, 2, {setup, isolation, identify}},
        [MRT_SQL_DO_START] = {false, 2, {may_end, start, old_sessions}},
        [MRT_SQL_DO_RESUME] = {false, 1, {resume, resumed}},
        [MRT_SQL_DO_STOP] = {true,
                             -1,
                             {"DELETE FROM ticket WHERE session = $s",
                              "DELETE FROM session WHERE id = $s"}},
        [MRT_SQL_DO_DIE] = {true,
                            -1,
                            {die, LEAVE_BEHIND(THIS), MOVE_BEHIND(THIS),
                             "DELETE FROM ticket WHERE session = $s",
                             "DELETE FROM session WHERE id = $s"}},
        [MRT_SQL_DO_RENEW] = {false, 1, {renew, count_tickets}},
        [MRT_SQL_DO_MAKE] = {false,
                             -1,
                             {"INSERT IGNORE INTO queue (name, touched) VALUES ($q, " NOW ")"}},
        [MRT_SQL_DO_MAKE_CELL] =
            {false, -1, {"INSERT IGNORE INTO cell (name, version, fence) VALUES ($q, 0, 0)"}},
        [MRT_SQL_DO_APPEND] = {true, 4, {lock_queue, share_session, look_ahead, append, appended}},
        [MRT_SQL_DO_ADOPT] = {true, 2, {SHARE_SESSION, adopt, adopted}},
        [MRT_SQL_DO_DETACH] = {true, 3, {nobody, SHARE_SESSION, detach, detached}},
        [MRT_SQL_DO_VIEW] = {false, 0, {view}},
        [MRT_SQL_DO_REMOVE] = {false, 0, {leave}},
        [MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY] = {false, 0, {leave}},
        [MRT_SQL_DO_LIGHTEN] = {false, 1, {lighten, view}},
        [MRT_SQL_DO_SET_VALUE] = {false, 1, {set_value, view}},
        [MRT_SQL_DO_LISTEN] = NEVER,
        [MRT_SQL_DO_OBSERVE] = {false, 0, {observe}},
        [MRT_SQL_DO_CELL_GET] = {false, 0, {cell}},
        [MRT_SQL_DO_CELL_SET] = {true, 2, {SHARE_SESSION, write_cell, cell}},
        [MRT_SQL_DO_REAP] = {true,
                             -1,
                             {mark_dead, LEAVE_BEHIND(HERE), MOVE_BEHIND(HERE), reap, clear}},
        [MRT_SQL_DO_SWEEP] = {false, -1, {sweep_sessions, sweep_tickets, sweep_queues, swept}},
        [MRT_SQL_DO_LIST] = {false, 0, {list}},
        [MRT_SQL_DO_REVOKE] = {true, 1, {lock_queue, revoke}},
        [MRT_SQL_DO_BREAK] = {false, 0, {break_ticket}},
        [NAME(SETUP)] = {false, 2, {form_setup, isolation, name_identify}},
        [NAME(TRY)] = {false, 0, {name_try}},
        [NAME(WAIT)] = {false, 0, {name_wait}},
        [NAME(LEAVE)] = {false, 0, {name_leave}},
        [NAME(PROVE)] = {false, 0, {name_prove}},
        [NAME(LOOK)] = {false, 0, {name_prove}},
        [NAME(LIGHTEN)] = NEVER,
        [NAME(MAKE)] = NEVER,
        [NAME(LIST)] = {false, 0, {name_list}},
        [NAME(KILL)] = {false, -1, {"KILL $o"}},
        [ROW(SETUP)] = {false, 2, {form_setup, isolation, row_identify}},
        [ROW(TRY)] = {false, 1, {"START TRANSACTION", row_try}},
        [ROW(WAIT)] = {false, 0, {row_wait}},
        [ROW(LEAVE)] = {false, -1, {"COMMIT"}},
        [ROW(PROVE)] = {false, 0, {row_prove}},
        [ROW(LOOK)] = {false, 0, {row_prove}},
        [ROW(LIGHTEN)] = NEVER,
        [ROW(MAKE)] = {false, 3, {row_make, "COMMIT", "START TRANSACTION", row_try}},
        [ROW(LIST)] = {false, 0, {row_list}},
        [ROW(KILL)] = {false, -1, {"KILL $o"}},
    };
    if (request->kind != MRT_SQL_DO_APPEND)
        return &plans[request->kind];
    if (!request->whole)
        return &alone;
    return request->command.queue_max > 0 ? &limited : &plans[MRT_SQL_DO_APPEND];
}
