/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL of the PostgreSQL store: constant texts with parameters, in the order of their
 * numbers; sql/request.c has what each letter stands for. Names of tables are found by the
 * connection's search_path, which is the one schema.
 *
 * The rules they keep:
 *  - Only the server tells the time, and by clock_timestamp(): now() stands still in a
 *    transaction, so a transaction that has waited for a lock would judge by a time long past.
 *  - A transaction that changes a queue locks its row first, in a statement of its own. In READ
 *    COMMITTED the next statement then sees everything committed before. A single statement
 *    would see the time before the wait, and two tickets could be let in.
 *  - A ticket counts while its session's row exists. The deletion of the row ends a
 *    session, not the passing of its lease, so a renewal and a death exclude each other.
 *  - Locks are taken in one order: queue rows by name, then session rows, then cells.
 */
#ifndef MRT_STORE_POSTGRES_STATEMENTS_H
#define MRT_STORE_POSTGRES_STATEMENTS_H

/* X(name, parameters, text) */
#define MRT_PG_STATEMENTS(X)                                                     \
    X(PIN, "P", mrt_pg_sql_pin)                                                  \
    X(BRIEF, "diSstY", mrt_pg_sql_brief)                                         \
    X(SETUP, "ihuP", mrt_pg_sql_setup)                                           \
    X(ENTER, "dOP", mrt_pg_sql_enter)                                            \
    X(IDENTIFY, "", mrt_pg_sql_identify)                                         \
    X(ASYNC, "", mrt_pg_sql_async_commit)                                        \
    X(ASYNC_EMPTY, "sD", mrt_pg_sql_async_commit_empty)                          \
    X(START, "sela", mrt_pg_sql_start)                                           \
    X(RESUME, "se", mrt_pg_sql_resume)                                           \
    X(LOCK_SESSION, "s", "SELECT FROM session WHERE id = $1 FOR NO KEY UPDATE")  \
    X(RENEW, "sl", mrt_pg_sql_renew)                                             \
    X(LOCK_ALL, "s", mrt_pg_sql_lock_all)                                        \
    X(LEAVE_BEHIND, "s", mrt_pg_sql_leave_behind)                                \
    X(LEAVE_ALL, "s", mrt_pg_sql_leave_all)                                      \
    X(END_SESSION, "s", "DELETE FROM session WHERE id = $1")                     \
    X(BUMP, "q", mrt_pg_sql_bump)                                                \
    X(APPEND, "qtswkcymevgz", mrt_pg_sql_append)                                 \
    X(NOBODY, "", mrt_pg_sql_nobody)                                             \
    X(DETACH, "stqbe", mrt_pg_sql_detach)                                        \
    X(ADOPT, "stqekcwgz", mrt_pg_sql_adopt)                                      \
    X(VIEW, "st", mrt_pg_sql_view)                                               \
    X(LOCK_QUEUE, "q", "SELECT FROM queue WHERE name = $1 FOR NO KEY UPDATE")    \
    X(REMOVE, "stqH", mrt_pg_sql_remove)                                         \
    X(REMOVE_LAST, "stqHF", mrt_pg_sql_remove_last)                              \
    X(REMOVE_QUIETLY, "st", "DELETE FROM ticket WHERE session = $1 AND id = $2") \
    X(LIGHTEN, "stqw", mrt_pg_sql_lighten)                                       \
    X(SET_VALUE, "stv", mrt_pg_sql_set_value)                                    \
    X(OBSERVE, "q", mrt_pg_sql_observe)                                          \
    X(CELL_MAKE, "qrse", mrt_pg_sql_cell_make)                                   \
    X(CELL_WRITE, "qrsetfv", mrt_pg_sql_cell_write)                              \
    X(CELL, "qst", mrt_pg_sql_cell)                                              \
    X(REAP, "q", mrt_pg_sql_reap)                                                \
    X(CLEAR, "q", mrt_pg_sql_clear)                                              \
    X(SWEEP_SESSIONS, "", mrt_pg_sql_sweep_sessions)                             \
    X(SWEEP_TICKETS, "", mrt_pg_sql_sweep_tickets)                               \
    X(SWEEP_QUEUES, "", mrt_pg_sql_sweep_queues)                                 \
    X(LIST, "np", mrt_pg_sql_list)                                               \
    X(REVOKE, "qo", mrt_pg_sql_revoke)                                           \
    X(BREAK, "qo", mrt_pg_sql_break)                                             \
    X(FORM_SETUP, "JZhP", mrt_pg_sql_form_setup)                                 \
    X(KEY_TRY, "qNX", mrt_pg_sql_key_try)                                        \
    X(KEY_WAIT, "qNX", mrt_pg_sql_key_wait)                                      \
    X(KEY_LEAVE, "qNX", mrt_pg_sql_key_leave)                                    \
    X(KEY_LIGHTEN, "qN", mrt_pg_sql_key_lighten)                                 \
    X(KEY_PROVE, "", "SELECT 1, 0, pg_backend_pid()")                            \
    X(KEY_LOOK, "qNX", mrt_pg_sql_key_look)                                      \
    X(KEY_LIST, "nN", mrt_pg_sql_key_list)                                       \
    X(ROW_TRY, "q", mrt_pg_sql_row_try)                                          \
    X(ROW_WAIT, "q", "SELECT 1 FROM row_lock WHERE name = $1 FOR UPDATE")        \
    X(ROW_MAKE, "q", mrt_pg_sql_row_make)                                        \
    X(ROW_PROVE, "", mrt_pg_sql_row_prove)                                       \
    X(ROW_LIST, "np", mrt_pg_sql_row_list)                                       \
    X(BEGIN, "", "BEGIN")                                                        \
    X(COMMIT, "", "COMMIT")

enum mrt_pg_statement {
#define MRT_PG_STATEMENT_ID(name, parameters, text) MRT_PG_##name,
    MRT_PG_STATEMENTS(MRT_PG_STATEMENT_ID)
#undef MRT_PG_STATEMENT_ID
        MRT_PG_STATEMENT_COUNT
};

#define MRT_PG_PARAMETERS_MAX 12

/* Channels of notifications. One is named by a hash of a session's identity, and carries the events
 * of that session. One is named by a schema, and carries queues that observers may read again. */
#define MRT_PG_TOLD "mortise_"
#define MRT_PG_SEEN "mortise_seen_"

struct mrt_pg_statement_text {
    const char *name; /* as it is prepared */
    const char *parameters;
    const char *text;
};

const struct mrt_pg_statement_text *mrt_pg_statement(enum mrt_pg_statement statement);

#endif
