/* SPDX-License-Identifier: Apache-2.0 */
/* The texts. Their results: sql/columns.h. */
#include "store/postgres/statements.h"

#include "store/postgres/trust.h"
#include "store/sql/columns.h"

/* Texts laid out as SQL. */
/* clang-format off */

/* How long from now on, in microseconds; as a number, so that no two clocks' formats meet. */
#define LEFT(time) "(extract(epoch FROM " time " - clock_timestamp()) * 1000000)::bigint"
/* A notification to the session of a row's ticket; sql/notification.c reads it, and sql/sign.h
   explains the signature. */
#define HASH(bytes) "encode(sha256(" bytes "), 'hex')"
#define TELL(what)                                                                      \
    "pg_notify('" MRT_PG_TOLD "' || left(" HASH("uuid_send(session)") ", 32),"           \
    " replace(replace(id::text, '-', ''), left(replace(session::text, '-', ''), 16), '')" \
    " || " what " || ' ' || left(" HASH("uuid_send(session) || uuid_send(id)"             \
    " || convert_to(" what ", 'UTF8')") ", 16))"
#define TELL_PLACE(ahead) TELL("' place ' || number || ' ' || " ahead " || ' ' || behind::int")
/* The session of detached tickets. */
#define NOBODY "'00000000-0000-0000-0000-000000000000'"
/* Notifies all observers in this schema of a queue. */
#define SHOW(queue) "pg_notify('" MRT_PG_SEEN "' || current_schema(), " queue ")"

/* Whether a setting is for this transaction alone. $1 is the process that the server told of when
   it was connected to, or 0 if it is known to be ours. Another one that answers is shared by means of a
   pooler, and nothing may be left in it. */
#define BRIEF(told)                                                    \
    "pg_catalog.int84ne(" told ", 0)"                                  \
    " AND pg_catalog.int84ne(" told ", pg_catalog.pg_backend_pid())"
/* First of all, and without a word that a path of the database's or the role's could lead
   astray. */
static const char mrt_pg_sql_pin[] =
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', " BRIEF("$1") ")";

/* The same for each transaction behind a pooler, where nothing is known of the settings that it
   begins with. $1 schema, $2 milliseconds, $3 whether commits must wait for a standby; the others
   come back, to show whose answer it is. Isolation and encoding, which cannot be set any more, must be right. A
   fault becomes an error, because its text is no number. */
static const char mrt_pg_sql_brief[] =
    "SELECT pg_catalog.textcat($4, pg_catalog.textcat($5, $6)),"
    " pg_catalog.set_config('search_path', pg_catalog.textcat($1, ', pg_temp'), true),"
    " pg_catalog.set_config('statement_timeout', $2, true),"
    " pg_catalog.set_config('lock_timeout', '0', true),"
    " pg_catalog.set_config('idle_in_transaction_session_timeout', $2, true),"
    " CASE WHEN pg_catalog.texteq(pg_catalog.current_setting('synchronous_commit'), 'off')"
    " OR (pg_catalog.texteq(pg_catalog.current_setting('synchronous_commit'), 'local')"
    " AND pg_catalog.texteq($3, '1'))"
    " THEN pg_catalog.set_config('synchronous_commit', 'on', true) END,"
    " CASE WHEN pg_catalog.textne(pg_catalog.current_setting('transaction_isolation'),"
    " 'read committed') THEN pg_catalog.concat('{transactions begin as ',"
    " pg_catalog.current_setting('transaction_isolation'), '; behind a pooler locks need"
    " default_transaction_isolation = read committed for this role and database}')"
    " WHEN pg_catalog.textne(pg_catalog.current_setting('client_encoding'), 'UTF8')"
    " THEN '{the pooler has changed the encoding; locks need client_encoding = UTF8}'"
    " ELSE '0' END::pg_catalog.int4";

/* Plans are by index whatever the tables' size was when they were made. */
static const char mrt_pg_sql_setup[] =
    "SELECT set_config('statement_timeout', $1, brief), set_config('lock_timeout', '0', brief),"
    " set_config('idle_in_transaction_session_timeout', $1, brief),"
    " set_config('tcp_keepalives_idle', $2, brief),"
    " set_config('tcp_keepalives_interval', $3, brief),"
    " set_config('tcp_keepalives_count', '3', brief),"
    " set_config('default_transaction_isolation', 'read committed', brief),"
    " set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'off'"
    " THEN 'on' ELSE current_setting('synchronous_commit') END, brief)"
    " FROM (SELECT " BRIEF("$4") " AS brief) known";

/* $1 schema, $2 owner, $3 as above. A fault of the schema becomes an error, because its text is no number. The
   error ends the flight before anything in the schema is touched. */
static const char mrt_pg_sql_enter[] =
    "SELECT ('{' || (" MRT_PG_FAULT("$1", "$2", MRT_PG_DATABASE_OWNER) ") || '}')::integer,"
    " set_config('search_path', $1 || ', pg_temp', brief),"
    " set_config('jit', 'off', brief), set_config('enable_seqscan', 'off', brief),"
    " set_config('enable_bitmapscan', 'off', brief), set_config('enable_hashjoin', 'off', brief),"
    " set_config('enable_mergejoin', 'off', brief)"
    " FROM (SELECT " BRIEF("$3") " AS brief) known";

/* A connection of one's own has neither when it begins. */
#define USED                                                     \
    "(EXISTS (SELECT FROM pg_prepared_statements)"               \
    " OR EXISTS (SELECT FROM pg_listening_channels()))::int"

/* The server and the version of the schema. On a standby all transactions are read-only. */
static const char mrt_pg_sql_identify[] =
    "SELECT number, pg_backend_pid(),"
    " (current_setting('transaction_read_only') = 'on')::int,"
    " (current_setting('synchronous_standby_names') = ''"
    " OR current_setting('synchronous_commit') IN ('off', 'local'))::int, " USED " FROM version";

/* The commit of this transaction does not wait for the disk, nor for a replica. It is used for
    - the start of a session: if the server loses that, it loses all that came after too, tickets
      among it;
    - the end of a session that has no tickets left: if the session comes back, its lease ends it;
    - the removal of a ticket that is the only one in its queue: sql/flush.c. A ticket with others
      behind it is not removed so: a waiter granted by the removal would lose the lock if the ticket
      came back. */
#define NO_WAIT "set_config('synchronous_commit', 'off', true)"
static const char mrt_pg_sql_async_commit[] = "SELECT " NO_WAIT;
/* $1 session, $2 how many tickets were removed so: if there are any, it waits for the disk */
static const char mrt_pg_sql_async_commit_empty[] =
    "SELECT set_config('synchronous_commit',"
    " CASE WHEN $2::int = 0 THEN 'off' ELSE 'local' END, true)"
    " WHERE NOT EXISTS (SELECT FROM ticket WHERE session = $1)";

/* The row of the queue table that belongs to no lock, because no lock has this name: the time
   when all queues were last swept. An index on the queues' times would have to change with each
   acquire. */
#define SWEPT "''"
/* $1 session, $2 epoch, $3 lease, $4 label. A user without the right to release a lock gets an
   error here, before it acquires one. The answer says whether to sweep. */
static const char mrt_pg_sql_start[] =
    "WITH may_lock AS (UPDATE queue SET number = number WHERE false),"
    " may_leave AS (DELETE FROM ticket WHERE false AND number = 0),"
    " may_end AS (DELETE FROM session WHERE false)"
    " INSERT INTO session (id, epoch, expires, label)"
    " VALUES ($1, $2, clock_timestamp() + $3 * interval '1 microsecond', $4)"
    " ON CONFLICT (id) DO UPDATE SET epoch = greatest(session.epoch, excluded.epoch),"
    " expires = clock_timestamp() + $3 * interval '1 microsecond'"
    " RETURNING (EXISTS (SELECT FROM session s"
    " WHERE s.expires < clock_timestamp() - interval '1 minute')"
    " OR NOT EXISTS (SELECT FROM queue q WHERE q.name = " SWEPT
    " AND q.touched > clock_timestamp() - interval '1 hour'))::int";

/* $1 session, $2 epoch. A late command of an older connection must not lower the epoch: the
   commands behind it there would take effect. */
static const char mrt_pg_sql_resume[] =
    "UPDATE session SET epoch = $2 WHERE id = $1 AND epoch < $2 RETURNING 1";

/* $1 session, $2 lease. The row is locked before, so the time is that after any wait. The
   number that stands for operators' requests changes whenever one is made. */
static const char mrt_pg_sql_renew[] =
    "UPDATE session SET expires = clock_timestamp() + $2 * interval '1 microsecond' WHERE id = $1"
    " RETURNING (SELECT count(*) FROM ticket WHERE session = $1),"
    " (SELECT coalesce(mod(sum(asked::numeric * number), 1000000000000000000), 0)::bigint"
    " FROM ticket WHERE session = $1), pg_backend_pid()";

/* The sessions of `dead` leave behind their holds with a delay: each gets a session of its own. */
#define LEAVE_BEHIND                                                                               \
    " line AS (SELECT t.session, t.id, t.queue, t.number, t.delay, t.capacity,"                    \
    " sum(t.weight) OVER (PARTITION BY t.queue ORDER BY t.number) AS upto"                         \
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue IN (SELECT x.queue"           \
    " FROM ticket x WHERE x.delay > 0 AND x.session IN (SELECT id FROM dead))),"                   \
    " left_behind AS (INSERT INTO session (id, epoch, expires, label) SELECT l.id, 0,"             \
    " least(d.expires, clock_timestamp()) + l.delay * interval '1 microsecond', d.label"           \
    " FROM line l JOIN dead d ON d.id = l.session WHERE l.delay > 0 AND l.upto <= l.capacity"      \
    " ON CONFLICT (id) DO NOTHING RETURNING id),"                                                  \
    " moved AS (UPDATE ticket t SET session = t.id, delay = 0, linger = false FROM left_behind l"  \
    " WHERE t.session IN (SELECT id FROM dead) AND t.id = l.id RETURNING t.queue, t.number)"

/* $1 session, which has died; waiters are told that it takes longer */
static const char mrt_pg_sql_leave_behind[] =
    "WITH dead AS (SELECT id, expires, label FROM session WHERE id = $1 FOR UPDATE),"
    LEAVE_BEHIND
    " SELECT count(" TELL("' look'") ") FROM line l WHERE session <> $1"
    " AND EXISTS (SELECT FROM moved m WHERE m.queue = l.queue AND m.number < l.number)";

/* $1 session: the end of all its tickets */
static const char mrt_pg_sql_lock_all[] =
    "SELECT FROM queue WHERE name IN (SELECT queue FROM ticket WHERE session = $1)"
    " ORDER BY name FOR NO KEY UPDATE";
static const char mrt_pg_sql_leave_all[] =
    "WITH gone AS (DELETE FROM ticket WHERE session = $1 RETURNING queue, value),"
    " line AS (SELECT t.session, t.id, t.number, t.weight, t.capacity,"
    " lead(t.number) OVER w IS NOT NULL AS behind, sum(t.weight) OVER w AS upto,"
    " sum(CASE WHEN t.session = $1 THEN 0 ELSE t.weight END) OVER w AS remains"
    " FROM ticket t JOIN session s ON s.id = t.session"
    " WHERE t.queue IN (SELECT queue FROM ticket WHERE session = $1)"
    " WINDOW w AS (PARTITION BY t.queue ORDER BY t.number))"
    " SELECT (SELECT count(" SHOW("queue") ") FROM gone WHERE value IS NOT NULL),"
    " count(" TELL_PLACE("remains - weight") ") FROM line"
    " WHERE session <> $1 AND remains <= capacity AND upto > capacity";

/* $1 queue: locks its row, makes it if need be, and gives it a number above all before. */
static const char mrt_pg_sql_bump[] =
    "INSERT INTO queue (name, number, touched) VALUES ($1, nextval('fence'), clock_timestamp())"
    " ON CONFLICT (name) DO UPDATE SET number = nextval('fence'), touched = clock_timestamp()";

/* $1 queue, $2 ticket, $3 session, $4 weight, $5 kind, $6 capacity, $7 try only, $8 most that may
  wait or 0, $9 epoch, $10 value, $11 linger, $12 delay. The session's row is locked in share mode
  until the end: so either a reconnection that raises the epoch waits for this, or this sees the new
  epoch. A holder that lingers is notified of a ticket that queues. Each table is read only once:
  starting a scan takes longer than running it. The queue's row must be of this very transaction: if
  something in between has ended that since, the row is not locked any more. */
static const char mrt_pg_sql_append[] =
    "WITH line AS (SELECT t.session, t.id, t.number, t.weight, t.kind, t.capacity, t.linger,"
    " s.expires, sum(t.weight) OVER (ORDER BY t.number) AS upto"
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = $1),"
    " ahead AS (SELECT coalesce(sum(weight), 0)::bigint AS weight,"
    " count(*) FILTER (WHERE upto > capacity) AS waiting, count(*) AS place,"
    " min(kind) FILTER (WHERE kind <> $5 OR capacity <> $6) AS kind,"
    " min(capacity) FILTER (WHERE kind <> $5 OR capacity <> $6) AS capacity,"
    " min(expires) AS expires,"
    " min(number) FILTER (WHERE session = $3 AND id = $2) AS old FROM line),"
    " me AS (SELECT id FROM session WHERE id = $3 AND epoch = $9 FOR SHARE),"
    " row AS (SELECT name, number, CASE WHEN xmin = pg_current_xact_id()::xid THEN 0 ELSE"
    " concat('{something before the server, such as pgpool, splits transactions (', xmin,"
    " '); connect to the server itself, or through pgbouncer}')::int END AS split"
    " FROM queue WHERE name = $1),"
    " mine AS (INSERT INTO ticket"
    " (session, id, queue, number, weight, kind, capacity, since, asked, value, linger, delay)"
    " SELECT me.id, $2, q.name, q.number, $4, $5, $6, clock_timestamp(), 0, $10, $11::int = 1, $12"
    " FROM me, row q, ahead a WHERE q.split = 0 AND a.kind IS NULL AND a.old IS NULL"
    " AND (a.weight + $4 <= $6 OR ($7::int = 0 AND ($8 = 0 OR a.waiting < $8)))"
    " RETURNING number, value)"
    " SELECT " MRT_APPEND_ROW("m.number", "a.old", "a.weight", LEFT("a.expires"),
    "EXISTS (SELECT FROM me)::int", "a.capacity", "a.kind", "a.place", "1")
    ", CASE WHEN m.value IS NOT NULL THEN " SHOW("$1") " END,"
    " (SELECT count(" TELL("' place ' || number || ' 0 1'") ") FROM line"
    " WHERE linger AND upto <= capacity AND m.number IS NOT NULL)"
    " FROM ahead a LEFT JOIN mine m ON true";

/* $1 session, $2 ticket */
static const char mrt_pg_sql_view[] =
    "SELECT " MRT_VIEW_ROW("t.number", "coalesce(a.weight, 0)::bigint", LEFT("a.expires"),
    "EXISTS (SELECT FROM ticket b JOIN session s ON s.id = b.session"
    " WHERE b.queue = t.queue AND b.number > t.number)::int", "t.asked", "a.place",
    "(extract(epoch FROM clock_timestamp() - t.since) * 1000000)::bigint")
    " FROM ticket t JOIN session me ON me.id = t.session"
    " CROSS JOIN LATERAL"
    " (SELECT sum(x.weight) AS weight, min(s.expires) AS expires, count(*) AS place"
    " FROM ticket x JOIN session s ON s.id = x.session"
    " WHERE x.queue = t.queue AND x.number < t.number) a"
    " WHERE t.session = $1 AND t.id = $2";

/* The front of the queue as it was before this statement, as long as anybody in it could fit; and
   what remains of it when `leaver` weighs no more than that. A ticket whose session was ended
   counted nothing, so nobody comes to fit as it goes. */
#define FRONT(queue, capacity, leaver, weighs)                                                     \
    " front AS (SELECT f.*, lead(f.number) OVER w IS NOT NULL AS behind,"                          \
    " sum(f.weight) OVER w AS upto,"                                                               \
    " sum(CASE WHEN " leaver " THEN " weighs " ELSE f.weight END) OVER w AS remains"               \
    " FROM (SELECT t.session, t.id, t.queue, t.number, t.weight, t.capacity"                       \
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = " queue                     \
    " ORDER BY t.number LIMIT 2 + least((" capacity "), 1000000)) f"                               \
    " WINDOW w AS (ORDER BY f.number))"

/* Takes a ticket out of a queue whose row is locked, and notifies waiters that may run now. There
   is a row if it was there. */
#define LEAVE(queue, ticket, last)                                                                 \
    "WITH gone AS (DELETE FROM ticket WHERE " ticket " RETURNING session, id,"                     \
    " number AS left_number, capacity, value, delay),"                                             \
    FRONT(queue, "SELECT capacity FROM gone", ticket, "0")                                         \
    " SELECT " MRT_REMOVE_ROW("1", "(SELECT count(" TELL_PLACE("remains - weight")                 \
    ") FROM front WHERE number > left_number AND remains <= capacity AND upto > capacity)",        \
    "CASE WHEN value IS NOT NULL THEN " SHOW(queue) " END", last)                                  \
    " FROM gone"

/* $1 session, $2 ticket, $3 queue, $4 whether the removal may reach the disk later. If the
   ticket has a delay or is observed, it does not. */
static const char mrt_pg_sql_remove[] = LEAVE("$3", "session = $1 AND id = $2",
    "CASE WHEN $4::int = 1 AND value IS NULL AND delay = 0"
    " AND NOT EXISTS (SELECT FROM front WHERE number <> left_number)"
    " THEN (" NO_WAIT " = 'off')::int ELSE 0 END");

/* $1 session, $2 ticket, $3 queue, $4 as above, $5 number: the same in one statement, for a ticket
   that nobody is behind. It is the last one as long as the queue's row has its number, which cannot
   change while the row is locked; else there is no row. A number that changes while the lock is
   waited for is seen, since the row is looked at again. */
static const char mrt_pg_sql_remove_last[] =
    "WITH gone AS (DELETE FROM ticket WHERE session = $1 AND id = $2"
    " AND EXISTS (SELECT FROM queue WHERE name = $3 AND number = $5 FOR NO KEY UPDATE)"
    " RETURNING value, delay)"
    " SELECT " MRT_REMOVE_ROW("1", "0", "CASE WHEN value IS NOT NULL THEN " SHOW("$3") " END",
    "CASE WHEN $4::int = 1 AND value IS NULL AND delay = 0"
    " AND NOT EXISTS (SELECT FROM ticket WHERE queue = $3 AND number <> $5)"
    " THEN (" NO_WAIT " = 'off')::int ELSE 0 END") " FROM gone";

/* $1 queue, $2 number: by somebody else, so its session is told too. */
static const char mrt_pg_sql_break[] =
    LEAVE("$1", "queue = $1 AND number = $2", TELL("' look'"));

/* $1 session, $2 ticket, $3 queue, whose row is locked, $4 weight */
static const char mrt_pg_sql_lighten[] =
    "WITH was AS (SELECT number AS was_number FROM ticket WHERE session = $1 AND id = $2),"
    " now_is AS (UPDATE ticket SET weight = $4 WHERE session = $1 AND id = $2 AND weight > $4),"
    FRONT("$3", "SELECT capacity FROM ticket WHERE session = $1 AND id = $2",
    "session = $1 AND id = $2", "least(f.weight, $4)") ","
    " told AS (SELECT " TELL_PLACE("remains - weight") " FROM front, was"
    " WHERE number > was_number AND remains <= capacity AND upto > capacity)"
    " SELECT (SELECT count(*) FROM told)";

static const char mrt_pg_sql_nobody[] =
    "INSERT INTO session (id, epoch, expires, label)"
    " VALUES (" NOBODY ", 0, '9999-01-01 00:00:00+00', '') ON CONFLICT (id) DO NOTHING";

/* Whether the session may change anything: a reconnection waits for it, or it sees that. */
#define MAY(session, epoch) \
    "EXISTS (SELECT FROM session WHERE id = " session " AND epoch = " epoch " FOR SHARE)"

/* $1 session, $2 ticket, $3 queue, whose row is locked, $4 heir, $5 epoch */
static const char mrt_pg_sql_detach[] =
    "WITH moved AS (UPDATE ticket SET session = " NOBODY ", id = $4, linger = false, delay = 0"
    " WHERE session = $1 AND id = $2 AND queue = $3 AND " MAY("$1", "$5") " RETURNING number)"
    " SELECT " MRT_MOVED_ROW("coalesce((SELECT number FROM moved), (SELECT number FROM ticket"
    " WHERE session = " NOBODY " AND id = $4 AND queue = $3))", "(SELECT count(*) FROM moved)",
    "EXISTS (SELECT FROM session WHERE id = $1)::int", "0");

/* $1 session, $2 ticket, $3 queue, whose row is locked, $4 epoch, $5 kind, $6 capacity, $7 weight,
   $8 linger, $9 delay */
static const char mrt_pg_sql_adopt[] =
    "WITH found AS (SELECT kind = $5 AND capacity = $6 AND weight = $7 AS fits FROM ticket"
    " WHERE session = " NOBODY " AND id = $2 AND queue = $3),"
    " moved AS (UPDATE ticket SET session = $1, linger = $8::int = 1, delay = $9"
    " WHERE session = " NOBODY " AND id = $2 AND queue = $3 AND (SELECT fits FROM found)"
    " AND " MAY("$1", "$4") " RETURNING number)"
    " SELECT " MRT_MOVED_ROW("coalesce((SELECT number FROM moved), (SELECT number FROM ticket"
    " WHERE session = $1 AND id = $2 AND queue = $3))", "(SELECT count(*) FROM moved)",
    "EXISTS (SELECT FROM session WHERE id = $1)::int",
    "(SELECT count(*) FROM found WHERE NOT fits)");

/* $1 session, $2 ticket, $3 value */
static const char mrt_pg_sql_set_value[] =
    "WITH done AS (UPDATE ticket SET value = $3 WHERE session = $1 AND id = $2 RETURNING queue)"
    " SELECT " SHOW("queue") " FROM done";

/* $1 queue */
static const char mrt_pg_sql_observe[] =
    "SELECT " MRT_HOLDER_ROW("t.number", LEFT("s.expires"), "encode(t.value, 'hex')")
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = $1"
    " ORDER BY t.number LIMIT 1";

/* $1 queue, whose row is locked, $2 number, 0: all that hold. Returns how many there are. */
static const char mrt_pg_sql_revoke[] =
    "WITH line AS (SELECT t.number, t.capacity, sum(t.weight) OVER (ORDER BY t.number) AS upto"
    " FROM ticket t JOIN session s ON s.id = t.session WHERE t.queue = $1),"
    " wanted AS (UPDATE ticket t SET asked = asked + 1 FROM line l"
    " WHERE t.queue = $1 AND t.number = l.number AND l.upto <= l.capacity"
    " AND ($2::bigint = 0 OR t.number = $2) RETURNING t.session, t.id, t.asked)"
    " SELECT count(" TELL("' asked ' || asked") ") FROM wanted";

/* The row of a cell is made for its first write: $1 cell, $2 version, $3 session, $4 epoch. */
static const char mrt_pg_sql_cell_make[] =
    "INSERT INTO cell (name, version, fence) SELECT $1, 0, 0 FROM session"
    " WHERE id = $3 AND epoch = $4 AND $2::numeric = 0"
    " AND NOT EXISTS (SELECT FROM cell WHERE name = $1) ON CONFLICT (name) DO NOTHING";
/* $1 cell, $2 version, $3 session, $4 epoch, $5 write, $6 fence, $7 value */
static const char mrt_pg_sql_cell_write[] =
    "UPDATE cell SET version = version + 1, fence = greatest(fence, $6), writer = $5, value = $7"
    " WHERE name = $1 AND writer IS DISTINCT FROM $5"
    " AND CASE WHEN value IS NULL THEN 0 ELSE version END = $2::numeric"
    " AND ($6::numeric = 0 OR fence <= $6)"
    " AND " MAY("$3", "$4");
/* $1 cell, $2 session, $3 write */
static const char mrt_pg_sql_cell[] =
    "SELECT " MRT_CELL_ROW("EXISTS (SELECT FROM session WHERE id = $2)::int", "c.version",
    "c.fence", "(c.writer = $3)::int", "encode(c.value, 'hex')")
    " FROM (SELECT) one LEFT JOIN cell c ON c.name = $1";

/* $1 queue: ends the sessions with tickets in it whose lease has run out, unless somebody is
   about to do the same, or to renew it. */
static const char mrt_pg_sql_reap[] =
    "WITH dead AS (SELECT s.id, s.expires, s.label FROM session s"
    " WHERE s.expires <= clock_timestamp()"
    " AND s.id IN (SELECT session FROM ticket WHERE queue = $1)"
    " ORDER BY s.id FOR UPDATE SKIP LOCKED),"
    LEAVE_BEHIND
    " DELETE FROM session WHERE id IN (SELECT id FROM dead)";
/* $1 queue: removes tickets whose session has ended */
static const char mrt_pg_sql_clear[] =
    "WITH gone AS (DELETE FROM ticket t WHERE t.queue = $1"
    " AND NOT EXISTS (SELECT FROM session s WHERE s.id = t.session) RETURNING value)"
    " SELECT count(" SHOW("$1") ") FROM gone WHERE value IS NOT NULL";

static const char mrt_pg_sql_sweep_sessions[] =
    "DELETE FROM session WHERE id IN (SELECT s.id FROM session s"
    " WHERE s.expires < clock_timestamp() - interval '1 minute'"
    " AND NOT EXISTS (SELECT FROM ticket t WHERE t.session = s.id AND t.delay > 0"
    " AND s.expires + t.delay * interval '1 microsecond' > clock_timestamp())"
    " ORDER BY s.id LIMIT 1000 FOR UPDATE SKIP LOCKED)";
static const char mrt_pg_sql_sweep_tickets[] =
    "DELETE FROM ticket t WHERE NOT EXISTS (SELECT FROM session s WHERE s.id = t.session)";
/* Numbers come from a sequence, so that a queue that is made again does not begin again. If there
   are more, the next one who starts goes on. */
static const char mrt_pg_sql_sweep_queues[] =
    "WITH gone AS (DELETE FROM queue WHERE name IN (SELECT q.name FROM queue q"
    " WHERE q.touched < clock_timestamp() - interval '1 day' AND q.name <> " SWEPT
    " AND NOT EXISTS (SELECT FROM ticket t WHERE t.queue = q.name)"
    " ORDER BY q.name LIMIT 1000 FOR UPDATE SKIP LOCKED) RETURNING name)"
    " INSERT INTO queue (name, number, touched) SELECT " SWEPT ", 0, clock_timestamp()"
    " FROM gone HAVING count(*) < 1000"
    " ON CONFLICT (name) DO UPDATE SET touched = clock_timestamp()";

/* $1 name or NULL, $2 prefix */
static const char mrt_pg_sql_list[] =
    "SELECT " MRT_LIST_ROW("number", "weight", "capacity",
    "(extract(epoch FROM since) * 1000)::bigint", "queue", "kind", "label",
    "(session = " NOBODY ")::int", "CASE WHEN session = id OR expires <= clock_timestamp()"
    " THEN ceil(" LEFT("until") " / 1000.0)::bigint ELSE 0 END",
    "right(row.id::text, 12)") " FROM (SELECT t.*, s.label,"
    " s.expires, s.expires + t.delay * interval '1 microsecond' AS until"
    " FROM ticket t JOIN session s ON s.id = t.session"
    " WHERE (t.queue = $1 OR $1 IS NULL) AND starts_with(t.queue, $2)) row"
    " WHERE until > clock_timestamp() ORDER BY queue, number";

/* ------------------------------------------------------------------ forms */

/* A connection of a form: its locks last as long as it does, and the server ends it when nothing
   comes on it for a while. Nothing that is written must be durable. */
static const char mrt_pg_sql_form_setup[] =
    "SELECT 0, pg_backend_pid(), (current_setting('transaction_read_only') = 'on')::int, 0, " USED ","
    " (strpos(version(), 'CockroachDB') > 0)::int,"
    " set_config('statement_timeout', '0', brief),"
    " set_config('idle_session_timeout', $1 || 's', brief),"
    " set_config('idle_in_transaction_session_timeout', $1 || 's', brief),"
    " set_config('lock_timeout', $2 || 's', brief),"
    " set_config('tcp_keepalives_idle', $3, brief),"
    " set_config('tcp_keepalives_interval', '1', brief),"
    " set_config('tcp_keepalives_count', $1, brief),"
    " set_config('client_connection_check_interval',"
    " CASE WHEN strpos(version(), 'linux') > 0 THEN '1s' ELSE '0' END, brief),"
    " set_config('default_transaction_isolation', 'read committed', brief),"
    " set_config('synchronous_commit', 'off', brief), set_config('jit', 'off', brief)"
    " FROM (SELECT " BRIEF("$4") " AS brief) known";

/* $1 name, $2 the number that it is, or NULL. doc/forms.md tells it to other programs. */
#define KEY                                                                            \
    "coalesce($2::bigint, ('x' || left(encode(sha256(convert_to($1, 'UTF8')), 'hex')," \
    " 16))::bit(64)::bigint)"
/* $3: whether it is exclusive. */
#define EITHER(before, after)                                                       \
    "CASE WHEN $3::int = 1 THEN " before after "(" KEY ") ELSE " before after "_shared(" \
    KEY ") END"

static const char mrt_pg_sql_key_try[] =
    "SELECT (" EITHER("pg_try_advisory_", "lock") ")::int, 1";
static const char mrt_pg_sql_key_wait[] = "SELECT 1, " EITHER("pg_advisory_", "lock");
static const char mrt_pg_sql_key_leave[] =
    "SELECT (" EITHER("pg_advisory_", "unlock") ")::int, 0, pg_backend_pid()";
/* A session that has a lock gets the shared one immediately, although others wait. */
static const char mrt_pg_sql_key_lighten[] =
    "SELECT pg_advisory_unlock(" KEY ")::int, 0, pg_backend_pid()"
    " FROM (SELECT pg_advisory_lock_shared(" KEY ") OFFSET 0) had";
#define OF_KEY                                                                           \
    "l.locktype = 'advisory' AND l.objsubid = 1"                                         \
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())" \
    " AND l.classid::bigint = (" KEY " >> 32) & 4294967295"                              \
    " AND l.objid::bigint = " KEY " & 4294967295"
static const char mrt_pg_sql_key_look[] =
    "SELECT count(*), 0, pg_backend_pid() FROM pg_locks l WHERE l.pid = pg_backend_pid()"
    " AND l.granted AND l.mode = CASE WHEN $3::int = 1 THEN 'ExclusiveLock' ELSE 'ShareLock' END"
    " AND " OF_KEY;
/* Since when a holder holds is not known; its identity is shown as far as the server shows it. */
static const char mrt_pg_sql_key_list[] =
    "SELECT " MRT_LIST_ROW("0", "CASE WHEN l.mode = 'ShareLock' THEN 1 ELSE 2147483648 END",
    "2147483648", "coalesce((extract(epoch FROM l.waitstart) * 1000)::bigint, 0)", "$1",
    "'advisory'", "coalesce(a.application_name, '') || ' (process ' || l.pid || ')'", "0", "0", "''")
    " FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE " OF_KEY
    " ORDER BY l.granted DESC, l.waitstart";

/* $1 name. Whether the row is ours now, and whether it is there. */
static const char mrt_pg_sql_row_try[] =
    "SELECT (SELECT count(*) FROM (SELECT FROM row_lock WHERE name = $1"
    " FOR UPDATE SKIP LOCKED) had), (SELECT count(*) FROM row_lock WHERE name = $1)";
static const char mrt_pg_sql_row_make[] =
    "INSERT INTO row_lock (name) VALUES ($1) ON CONFLICT DO NOTHING";
/* A transaction that has locked a row has a number. */
static const char mrt_pg_sql_row_prove[] =
    "SELECT (pg_current_xact_id_if_assigned() IS NOT NULL)::int, 0, pg_backend_pid()";
static const char mrt_pg_sql_row_list[] =
    "SELECT " MRT_LIST_ROW("0", "1", "1",
    "coalesce((extract(epoch FROM a.xact_start) * 1000)::bigint, 0)", "r.name", "'row'",
    "coalesce(a.application_name, '') || ' (process ' || a.pid || ')'", "0", "0", "''")
    " FROM row_lock r JOIN pg_stat_activity a ON a.backend_xid = r.xmax"
    " WHERE (r.name = $1 OR $1 IS NULL) AND starts_with(r.name, $2) ORDER BY r.name";

/* clang-format on */

const struct mrt_pg_statement_text *mrt_pg_statement(enum mrt_pg_statement statement)
{
    static const struct mrt_pg_statement_text table[] = {
#define ROW(name, parameters, text) {#name, parameters, text},
        MRT_PG_STATEMENTS(ROW)
#undef ROW
    };
    return &table[statement];
}
