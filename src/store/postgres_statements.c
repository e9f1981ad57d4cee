/* The texts. Columns of what they return are read by postgres_answer.c, in this order. */
#include "store/postgres_statements.h"

#include <stddef.h>

/* How long from now on, in microseconds; as a number, so that no two clocks' formats meet. */
#define LEFT(time) "(extract(epoch FROM " time " - clock_timestamp()) * 1000000)::bigint"
#define CHANNEL(session) "'mortise_' || replace(" session "::text, '-', '')"
/* What is told to the session of a ticket whose turn has come: postgres_wake.c reads it. */
#define TELL(ahead)                                                                 \
    "pg_notify(" CHANNEL(                                                           \
        "session") ", replace(id::text, '-', '') || ' ' || number || ' ' || " ahead \
                   " || ' ' || behind::int)"

/* $1 schema, $2 time limit of a statement, $3 and $4 keepalive of the server's side, seconds. Plans
   are by index whatever the tables' size was when they were made. */
static const char mrt_pg_sql_setup[] =
    "SELECT pg_backend_pid(), pg_is_in_recovery()::int,"
    " (current_setting('transaction_read_only') = 'on')::int,"
    " set_config('search_path', $1 || ', pg_temp', false),"
    " set_config('statement_timeout', $2, false), set_config('lock_timeout', '0', false),"
    " set_config('idle_in_transaction_session_timeout', $2, false),"
    " set_config('tcp_keepalives_idle', $3, false), set_config('tcp_keepalives_interval', $4, "
    "false),"
    " set_config('tcp_keepalives_count', '3', false),"
    " set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'off'"
    " THEN 'on' ELSE current_setting('synchronous_commit') END, false),"
    " set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),"
    " set_config('enable_bitmapscan', 'off', false), set_config('enable_hashjoin', 'off', false),"
    " set_config('enable_mergejoin', 'off', false)";

/* $1 session, $2 epoch, $3 lease in microseconds, $4 label */
static const char mrt_pg_sql_start[] =
    "INSERT INTO session (id, epoch, expires, label)"
    " VALUES ($1, $2, clock_timestamp() + $3 * interval '1 microsecond', $4)"
    " ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch,"
    " expires = clock_timestamp() + $3 * interval '1 microsecond'"
    " RETURNING EXISTS (SELECT FROM session s"
    " WHERE s.expires < clock_timestamp() - interval '1 minute')::int";

/* $1 session, $2 lease. The row is locked before, so that the time is that after any wait. */
static const char mrt_pg_sql_renew[] =
    "UPDATE session SET expires = clock_timestamp() + $2 * interval '1 microsecond' WHERE id = $1"
    " RETURNING (SELECT count(*) FROM ticket WHERE session = $1), pg_backend_pid()";

/* $1 session: the end of all its tickets */
static const char mrt_pg_sql_lock_all[] =
    "SELECT FROM queue WHERE name IN (SELECT queue FROM ticket WHERE session = $1)"
    " ORDER BY name FOR NO KEY UPDATE";
static const char mrt_pg_sql_leave_all[] =
    "WITH gone AS (DELETE FROM ticket WHERE session = $1),"
    " line AS (SELECT t.session, t.id, t.number, t.weight, t.capacity,"
    " lead(t.number) OVER w IS NOT NULL AS behind, sum(t.weight) OVER w AS upto,"
    " sum(CASE WHEN t.session = $1 THEN 0 ELSE t.weight END) OVER w AS remains"
    " FROM ticket t JOIN session s ON s.id = t.session"
    " WHERE t.queue IN (SELECT queue FROM ticket WHERE session = $1)"
    " WINDOW w AS (PARTITION BY t.queue ORDER BY t.number))"
    " SELECT count(" TELL(
        "remains - weight") ") FROM line"
                            " WHERE session <> $1 AND remains <= capacity AND upto > capacity";

/* $1 queue: locks its row, makes it if need be, and gives it a number above all before. */
static const char mrt_pg_sql_bump[] =
    "INSERT INTO queue (name, number, touched) VALUES ($1, nextval('fence'), clock_timestamp())"
    " ON CONFLICT (name) DO UPDATE SET number = nextval('fence'), touched = clock_timestamp()";

/* $1 queue, $2 ticket, $3 session, $4 weight, $5 kind, $6 capacity, $7 try only, $8 most that may
   wait or 0, $9 epoch. The session's row is shared until the end, so that a reconnection
   that raises the epoch waits for this, or this sees it. */
static const char mrt_pg_sql_append[] =
    "WITH old AS (SELECT number FROM ticket WHERE session = $3 AND id = $2),"
    " line AS (SELECT t.weight, t.kind, t.capacity, s.expires,"
    " sum(t.weight) OVER (ORDER BY t.number) AS upto"
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = $1),"
    " ahead AS (SELECT coalesce(sum(weight), 0)::bigint AS weight,"
    " count(*) FILTER (WHERE upto > capacity) AS waiting,"
    " min(kind) FILTER (WHERE kind <> $5 OR capacity <> $6) AS kind,"
    " min(capacity) FILTER (WHERE kind <> $5 OR capacity <> $6) AS capacity,"
    " min(expires) AS expires FROM line),"
    " mine AS (INSERT INTO ticket (session, id, queue, number, weight, kind, capacity, since)"
    " SELECT s.id, $2, q.name, q.number, $4, $5, $6, clock_timestamp()"
    " FROM session s, queue q, ahead a"
    " WHERE s.id = $3 AND s.epoch = $9 AND q.name = $1 AND a.kind IS NULL"
    " AND NOT EXISTS (SELECT FROM old)"
    " AND (a.weight + $4 <= $6 OR (NOT $7 AND ($8 = 0 OR a.waiting < $8)))"
    " FOR SHARE OF s RETURNING number)"
    " SELECT (SELECT number FROM mine), (SELECT number FROM old), a.weight, " LEFT(
        "a.expires") ","
                     " EXISTS (SELECT FROM session WHERE id = $3 AND epoch = $9)::int, a.capacity, "
                     "a.kind"
                     " FROM ahead a";

/* $1 session, $2 ticket */
static const char mrt_pg_sql_view[] = "SELECT t.number, coalesce(a.weight, 0)::bigint, " LEFT(
    "a.expires") ","
                 " EXISTS (SELECT FROM ticket b JOIN session s ON s.id = b.session"
                 " WHERE b.queue = t.queue AND b.number > t.number)::int"
                 " FROM ticket t JOIN session me ON me.id = t.session"
                 " CROSS JOIN LATERAL (SELECT sum(x.weight) AS weight, min(s.expires) AS expires"
                 " FROM ticket x JOIN session s ON s.id = x.session"
                 " WHERE x.queue = t.queue AND x.number < t.number) a"
                 " WHERE t.session = $1 AND t.id = $2";

/* The front of the queue as it was before this statement, as long as anybody in it could fit. */
#define FRONT(queue, ticket)                                                                     \
    " front AS (SELECT f.*, lead(f.number) OVER w IS NOT NULL AS behind,"                        \
    " sum(f.weight) OVER w AS upto FROM (SELECT t.session, t.id, t.number, t.weight, t.capacity" \
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = " queue                   \
    " ORDER BY t.number LIMIT 2 + least((SELECT capacity FROM ticket WHERE " ticket              \
    "), 1000000)) f WINDOW w AS (ORDER BY f.number))"

/* $1 session, $2 ticket, $3 queue, whose row is locked. Returns how many are gone, 0 or 1. */
static const char mrt_pg_sql_remove[] =
    "WITH gone AS (DELETE FROM ticket WHERE session = $1 AND id = $2 RETURNING number, "
    "weight)," FRONT(
        "$3",
        "session = $1 AND id = $2") ","
                                    " told AS (SELECT " TELL(
                                        "f.upto - f.weight - g.weight") " FROM"
                                                                        " (SELECT front.session, "
                                                                        "front.id, front.number, "
                                                                        "front.behind, front.upto, "
                                                                        "front.weight,"
                                                                        " front.capacity FROM "
                                                                        "front) f, (SELECT number "
                                                                        "AS gone_number, weight "
                                                                        "FROM gone) g"
                                                                        " WHERE f.number > "
                                                                        "g.gone_number AND f.upto "
                                                                        "- g.weight <= f.capacity "
                                                                        "AND f.upto > f.capacity)"
                                                                        " SELECT (SELECT count(*) "
                                                                        "FROM gone), (SELECT "
                                                                        "count(*) FROM told)";

/* $1 session, $2 ticket, $3 queue, whose row is locked, $4 weight */
static const char mrt_pg_sql_lighten[] =
    "WITH was AS (SELECT number AS was_number, weight - least(weight, $4) AS less FROM ticket"
    " WHERE session = $1 AND id = $2),"
    " now_is AS (UPDATE ticket SET weight = $4 WHERE session = $1 AND id = $2 AND weight > "
    "$4)," FRONT(
        "$3", "session = $1 AND id = $2") ","
                                          " told AS (SELECT " TELL(
                                              "upto - weight - less") " FROM front, was"
                                                                      " WHERE number > was_number "
                                                                      "AND upto - less <= capacity "
                                                                      "AND upto > capacity)"
                                                                      " SELECT (SELECT count(*) "
                                                                      "FROM told)";

/* $1 queue: ends the sessions with tickets in it whose lease has run out, unless somebody is
   about to do the same, or to renew it. */
static const char mrt_pg_sql_reap[] = "DELETE FROM session WHERE id IN (SELECT s.id FROM session s"
                                      " WHERE s.expires <= clock_timestamp() AND s.id IN (SELECT "
                                      "session FROM ticket WHERE queue = $1)"
                                      " ORDER BY s.id FOR UPDATE SKIP LOCKED)";
/* $1 queue: tickets that count no more */
static const char mrt_pg_sql_clear[] =
    "DELETE FROM ticket t WHERE t.queue = $1"
    " AND NOT EXISTS (SELECT FROM session s WHERE s.id = t.session)";

static const char mrt_pg_sql_sweep_sessions[] =
    "DELETE FROM session WHERE id IN (SELECT s.id FROM session s"
    " WHERE s.expires < clock_timestamp() - interval '1 minute'"
    " ORDER BY s.id LIMIT 1000 FOR UPDATE SKIP LOCKED)";
static const char mrt_pg_sql_sweep_tickets[] =
    "DELETE FROM ticket t WHERE NOT EXISTS (SELECT FROM session s WHERE s.id = t.session)";
/* Numbers come from a sequence, so that a queue that is made again does not begin again. */
static const char mrt_pg_sql_sweep_queues[] =
    "DELETE FROM queue WHERE name IN (SELECT q.name FROM queue q"
    " WHERE q.touched < clock_timestamp() - interval '1 day'"
    " AND NOT EXISTS (SELECT FROM ticket t WHERE t.queue = q.name)"
    " ORDER BY q.name LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/* $1 name or NULL, $2 prefix */
static const char mrt_pg_sql_list[] =
    "SELECT t.number, t.weight, t.capacity, (extract(epoch FROM t.since) * 1000)::bigint,"
    " t.queue, t.kind, s.label FROM ticket t JOIN session s ON s.id = t.session"
    " WHERE s.expires > clock_timestamp() AND (t.queue = $1 OR $1 IS NULL)"
    " AND starts_with(t.queue, $2) ORDER BY t.queue, t.number";

const struct mrt_pg_statement_text *mrt_pg_statement(enum mrt_pg_statement statement)
{
    static const struct mrt_pg_statement_text table[] = {
#define ROW(name, parameters, text) {#name, parameters, text},
        MRT_PG_STATEMENTS(ROW)
#undef ROW
    };
    return &table[statement];
}
