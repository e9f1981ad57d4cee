/*
 * The SQL of the PostgreSQL store: constant texts with parameters, in the order of their
 * numbers. Names of tables are found by the connection's search_path, which is the one schema.
 *
 * The rules they keep:
 *  - Only the server tells the time, and by clock_timestamp(): now() stands still in a
 *    transaction, and one that has waited for a lock would judge by a time long past.
 *  - Who changes a queue locks its row first, in a statement of its own. In READ COMMITTED
 *    the next statement then sees all that those before it have committed; in one statement it
 *    would see the time before the wait, and two could be let in.
 *  - A ticket counts while its session's row is there. It is the row's deletion that ends a
 *    session, not the passing of its lease, so that a renewal and a death exclude each other.
 *  - Locks are taken in one order: queue rows by name, then session rows.
 */
#ifndef MRT_STORE_POSTGRES_STATEMENTS_H
#define MRT_STORE_POSTGRES_STATEMENTS_H

/* X(name, parameters, text) */
#define MRT_PG_STATEMENTS(X)                                                  \
    X(SETUP, 4, mrt_pg_sql_setup)                                             \
    X(VERSION, 0, "SELECT number FROM version")                               \
    X(START, 4, mrt_pg_sql_start)                                             \
    X(RESUME, 2, "UPDATE session SET epoch = $2 WHERE id = $1 RETURNING 1")   \
    X(LOCK_SESSION, 1, "SELECT FROM session WHERE id = $1 FOR NO KEY UPDATE") \
    X(RENEW, 2, mrt_pg_sql_renew)                                             \
    X(LOCK_ALL, 1, mrt_pg_sql_lock_all)                                       \
    X(LEAVE_ALL, 1, mrt_pg_sql_leave_all)                                     \
    X(END_SESSION, 1, "DELETE FROM session WHERE id = $1")                    \
    X(BUMP, 1, mrt_pg_sql_bump)                                               \
    X(APPEND, 9, mrt_pg_sql_append)                                           \
    X(VIEW, 2, mrt_pg_sql_view)                                               \
    X(LOCK_QUEUE, 1, "SELECT FROM queue WHERE name = $1 FOR NO KEY UPDATE")   \
    X(REMOVE, 3, mrt_pg_sql_remove)                                           \
    X(REMOVE_QUIETLY, 2, "DELETE FROM ticket WHERE session = $1 AND id = $2") \
    X(LIGHTEN, 4, mrt_pg_sql_lighten)                                         \
    X(REAP, 1, mrt_pg_sql_reap)                                               \
    X(CLEAR, 1, mrt_pg_sql_clear)                                             \
    X(SWEEP_SESSIONS, 0, mrt_pg_sql_sweep_sessions)                           \
    X(SWEEP_TICKETS, 0, mrt_pg_sql_sweep_tickets)                             \
    X(SWEEP_QUEUES, 0, mrt_pg_sql_sweep_queues)                               \
    X(LIST, 2, mrt_pg_sql_list)

enum mrt_pg_statement {
#define MRT_PG_STATEMENT_ID(name, parameters, text) MRT_PG_##name,
    MRT_PG_STATEMENTS(MRT_PG_STATEMENT_ID)
#undef MRT_PG_STATEMENT_ID
        MRT_PG_STATEMENT_COUNT
};

#define MRT_PG_PARAMETERS_MAX 9

struct mrt_pg_statement_text {
    const char *name; /* as it is prepared */
    int parameters;
    const char *text;
};

const struct mrt_pg_statement_text *mrt_pg_statement(enum mrt_pg_statement statement);

#endif
