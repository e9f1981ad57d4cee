/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL of the MariaDB store. A statement's parameters stand in it as $ and a letter
 * (sql/request.c) and go to the server as literals: numbers in digits, all else in hexadecimal
 * literals, x'...', in which nothing can end a literal or begin a statement. $C is the server's
 * name for the lock of a name (doc/forms.md).
 *
 * The rules they keep:
 *  - Only the server tells the time, in microseconds, and by SYSDATE: NOW stands still in a
 *    statement, so a statement that has waited for a lock would judge by a time long past.
 *  - A transaction that puts a ticket in locks the queue's row first. In READ COMMITTED the next
 *    statement, or a subquery of the same one that begins after that, then sees everything
 *    committed before.
 *  - A row exists before it is locked: it is made once, in a transaction of its own, and has only
 *    the unique key that finds it. So no transaction waits for a gap between rows.
 *  - A ticket counts while its session's row exists. The deletion of the row, or its epoch's
 *    becoming 0, ends a session, not the passing of its lease, so a renewal and a
 *    death exclude each other.
 *  - Tickets are numbered by the table's counter, which the server keeps across restarts,
 *    while the queue's row is locked: so numbers of one queue rise in the order of its tickets.
 */
#ifndef MRT_STORE_MARIADB_STATEMENTS_H
#define MRT_STORE_MARIADB_STATEMENTS_H

#include "store/sql/internal.h"

#define MRT_MARIADB_STATEMENTS_MAX 6

struct mrt_mariadb_plan {
    bool transaction; /* else each statement is a transaction of its own */
    int answer;       /* the statement whose rows, or number of rows, are the result; -1: none */
    const char *statement[MRT_MARIADB_STATEMENTS_MAX + 1];
};

const struct mrt_mariadb_plan *mrt_mariadb_plan(const struct mrt_sql_request *request);

#endif
