/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of requests to a SQL server. A dialect has one row of statements for each kind, in the
 * order of this list. The steps of a native lock stand in it twice: for locks by name, and for
 * locks by row.
 */
#ifndef MRT_STORE_SQL_KINDS_H
#define MRT_STORE_SQL_KINDS_H

/* The steps on a lock of the server's own: native/native.h. */
enum mrt_native_step {
    MRT_NATIVE_SETUP,
    MRT_NATIVE_TRY,
    MRT_NATIVE_WAIT,
    MRT_NATIVE_LEAVE,
    MRT_NATIVE_PROVE, /* that the connection lives, and is the same */
    MRT_NATIVE_LOOK,  /* proves the lock, too */
    MRT_NATIVE_LIGHTEN,
    MRT_NATIVE_MAKE, /* the row, and try again */
    MRT_NATIVE_LIST,
    MRT_NATIVE_KILL, /* another connection, which waits */
    MRT_NATIVE_STEPS
};

enum mrt_sql_kind {
    MRT_SQL_DO_SETUP,
    MRT_SQL_DO_START,
    MRT_SQL_DO_RESUME,
    MRT_SQL_DO_STOP,
    MRT_SQL_DO_DIE, /* a STOP that leaves tickets with a delay behind */
    MRT_SQL_DO_RENEW,
    MRT_SQL_DO_MAKE, /* the row of a queue */
    MRT_SQL_DO_MAKE_CELL,
    MRT_SQL_DO_APPEND,
    MRT_SQL_DO_ADOPT,
    MRT_SQL_DO_DETACH,
    MRT_SQL_DO_VIEW,
    MRT_SQL_DO_REMOVE,
    MRT_SQL_DO_REMOVE_LAST, /* if nobody is behind; else there is no row, and nothing is done */
    MRT_SQL_DO_REMOVE_WITHOUT_NOTIFY,
    MRT_SQL_DO_LIGHTEN,
    MRT_SQL_DO_SET_VALUE,
    MRT_SQL_DO_LISTEN, /* for observers */
    MRT_SQL_DO_OBSERVE,
    MRT_SQL_DO_CELL_GET,
    MRT_SQL_DO_CELL_SET,
    MRT_SQL_DO_REAP,
    MRT_SQL_DO_SWEEP,
    MRT_SQL_DO_LIST,
    MRT_SQL_DO_REVOKE,
    MRT_SQL_DO_BREAK,
    MRT_SQL_DO_NAMED, /* and the steps of a form */
    MRT_SQL_DO_ROW = MRT_SQL_DO_NAMED + (int)MRT_NATIVE_STEPS,
    MRT_SQL_KINDS = MRT_SQL_DO_ROW + (int)MRT_NATIVE_STEPS
};

/* A step of the form whose first one is `first`. */
static inline enum mrt_sql_kind mrt_native_kind(enum mrt_sql_kind first, enum mrt_native_step step)
{
    return (enum mrt_sql_kind)((int)first + (int)step);
}

#endif
