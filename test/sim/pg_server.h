/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake PostgreSQL: a primary and a standby, as libpq itself talks to them, by streams of bytes.
 *
 *   pg_system.c        the system's functions, for libpq, which is shared
 *   pg_wire.c          the protocol: bytes become statements, and results bytes
 *   pg_rows.c          rows, snapshots, locks of rows, transactions
 *   pg_statement.c     what the store's statements do; pg_queue.c: those of queues
 *   server_postgres.c  troubles, an operator, and the truth
 *   pg_host.c          the store in a client
 *
 * Real parts: the store's objects, libpq, and the protocol between them as far as they use it.
 * Faked: there is no SQL here. A statement is known by its name or text, and its text is asked for
 * the clauses that the store's rules hang on: a lock that the text does not ask for is not taken,
 * an epoch that it does not compare is not compared, and whether the clock or the transaction's
 * beginning is meant is what it says.
 *
 * As in PostgreSQL, in READ COMMITTED:
 *  - A flight up to its Sync is one transaction. Each of its statements takes a while, and others
 *    come in between; so does the commit, and only what is committed is seen by others.
 *  - A statement sees the rows as they were when it began, and what its transaction has done. If it
 *    waits for a row's lock, it sees that one row as it is then, and no other.
 *  - A lock lasts until the transaction's end. Those who wait for one get it in the order in which
 *    they came: a real one has a queue of them (its README.tuplock), so that nobody waits for ever.
 *    A transaction that would close a circle of waits ends by 40P01, one that waits too long by
 *    57014, and any statement or commit may fail by chance.
 *  - Requests sent before a connection closed are done, perhaps much later.
 *  - A notification is sent by the commit, and told when its listener is in no transaction. With a
 *    connection goes all that it listened to.
 *  - A commit that does not wait for the disk is lost by a crash, and so is all behind it
 *    that does not wait either; the sequence goes on up to 32 numbers later.
 *  - A standby that is promoted has all commits, or, if it lags, some of them.
 *
 * A pooler may be before them, which greets clients with a number of its own, and gives a
 * transaction another process than the last one had, with what others have left in it.
 * Notifications to a process that serves nobody are lost. Or something that splits transactions, as
 * pgpool may: the first statement is committed, and its locks are free, before the next one comes.
 *
 * Not promised: plans, types, permissions, refusals of an index; anything of statements that the
 * store does not have. Of those it leaves out forms, lists and durable holds.
 */
#ifndef SIM_PG_SERVER_H
#define SIM_PG_SERVER_H

#include "stream.h"

#include "store/postgres/statements.h"

#include <stdarg.h>

#define PG_SERVERS 2
#define PG_POOL 2
#define PG_ID_SIZE 33
#define PG_KEY_SIZE 68
#define PG_CHANNEL_SIZE 80
#define PG_COLUMNS_MAX 12
#define PG_LINE_MAX 256

/* ------------------------------------------------------------------ rows */

enum pg_table { PG_SESSION, PG_QUEUE, PG_TICKET, PG_CELL };

/* Of any table. */
struct pg_row {
    enum pg_table table;
    char key[PG_KEY_SIZE];  /* of a ticket its session and its identity */
    struct peer *peer;      /* SESSION: whose it is, which no server knows */
    int64_t epoch, expires; /* SESSION */
    mrt_time lives_until;   /* SESSION: in true time, whatever is done to the clock */
    char queue[24], kind[24];
    int64_t number; /* QUEUE, TICKET; CELL: its version */
    int64_t weight, capacity, asked, delay, since;
    bool linger;
    char value[2 * sizeof(uint64_t) + 1]; /* in hexadecimal; "": NULL */
    int64_t fence;                        /* CELL */
    char writer[PG_ID_SIZE];              /* CELL; "": NULL */
};

struct pg_rows {
    struct pg_row *at;
    int count, room;
};

struct pg_change {
    struct pg_row row;
    bool gone;
};

struct pg_lock {
    struct pg_lock *next;
    struct pg_backend *backend;
    enum pg_table table;
    char key[PG_KEY_SIZE];
    bool exclusive;
};

struct pg_notice {
    char channel[PG_CHANNEL_SIZE], text[160];
};

/* LISTEN, or UNLISTEN. */
struct pg_ear {
    char channel[PG_CHANNEL_SIZE];
    bool on;
};

struct pg_bytes {
    char *bytes;
    size_t used, room;
};

/* ------------------------------------------------------------------ servers */

enum pg_due { PG_NOTHING, PG_EXECUTE, PG_COMMIT };

/* A process of the server's, as far as it lasts: its own settings, statements and channels. */
struct pg_process {
    int64_t id; /* 0: there is none yet */
    bool prepared[MRT_PG_STATEMENT_COUNT];
    char schema[64];
    int64_t patience_ms; /* statement_timeout, and of an idle transaction */
    struct pg_ear ears[64];
    int ear_count;
};

/* A connection, with the process that serves it; without a stream an operator's. */
struct pg_backend {
    struct task step; /* first */
    struct task post; /* notifications are told */
    struct pg_backend *next;
    struct pg_server *server;
    struct stream *stream; /* NULL: the client has gone */
    struct peer *peer;
    struct pg_process process;
    struct pg_bytes inbox, outbox, mail;
    bool started, over, assigned; /* assigned: the process is this transaction's */
    /* Of the statement under way. */
    enum pg_due due;
    int statement; /* -1: LISTEN, UNLISTEN */
    int unnamed;   /* the same, as it was last parsed without a name */
    struct pg_ear wanted;
    const char *text;
    struct pg_bytes bound; /* its parameters, as they came */
    struct pg_rows view;
    bool has_view, waits;
    struct pg_lock wish; /* that it waits for */
    mrt_time since;      /* it waits, or nothing has come in a transaction */
    int64_t arrival;     /* among those who wait */
    char error[6];
    struct {
        bool null;
        char text[96];
    } columns[PG_COLUMNS_MAX];
    int column_count;
    /* Of the transaction. */
    bool in_transaction, failed, hurries;
    char schema[64]; /* the process's settings, or this transaction's */
    int64_t patience_ms;
    int64_t began;
    struct pg_change *changes;
    int change_count, change_room;
    struct pg_notice *notices;
    int notice_count, notice_room;
    struct pg_ear new_ears[8];
    int new_ear_count;
};

struct pg_server {
    struct task thaw; /* first */
    struct pg_cluster *cluster;
    int number;
    struct pg_rows rows, durable; /* durable: before the commits that did not wait */
    bool hurried;                 /* there are such */
    int64_t sequence;
    struct pg_lock *locks;
    struct pg_backend *backends;
    struct pg_process pool[PG_POOL];
    mrt_time frozen_until, down_until;
};

struct pg_cluster {
    struct task trouble; /* first */
    struct task copy;    /* the standby catches up */
    struct world *world;
    struct pg_server servers[PG_SERVERS];
    int primary;
    int64_t clock_us, set_back_us; /* it is set so far from the world's; so far back in all */
    int64_t next_id, arrivals;
};

struct pg_cluster *pg_of(struct world *world);
int64_t pg_clock(const struct pg_server *server);
bool pg_is_primary(const struct pg_server *server);

/* pg_rows.c */
struct pg_row *pg_find(const struct pg_rows *rows, enum pg_table table, const char *key);
void pg_copy(struct pg_rows *to, const struct pg_rows *from);
void pg_drop(struct pg_rows *rows, enum pg_table table, const char *key);
void pg_see(struct pg_backend *backend); /* a statement begins */
/* Takes a row's lock, whether there is such a row or not, and sees the row as it is; false: it has
   to wait, and the statement is done anew when it may go on. */
bool pg_lock(struct pg_backend *backend, enum pg_table table, const char *key, bool exclusive);
bool pg_is_locked(const struct pg_backend *backend, enum pg_table table, const char *key);
/* Whether this transaction has the row's lock. */
bool pg_holds(const struct pg_backend *backend, enum pg_table table, const char *key);
void pg_write(struct pg_backend *backend, const struct pg_row *row);
void pg_delete(struct pg_backend *backend, enum pg_table table, const char *key);
__attribute__((format(printf, 3, 4))) void pg_notify(struct pg_backend *backend,
                                                     const char *channel, const char *format, ...);
void pg_commit(struct pg_backend *backend);
void pg_abort(struct pg_backend *backend);
/* The tickets of a queue that count, in order. */
struct pg_line {
    struct pg_row *tickets[PG_LINE_MAX];
    const struct pg_row *sessions[PG_LINE_MAX];
    int64_t upto[PG_LINE_MAX]; /* what they weigh, up to and with each */
    int count;
};
void pg_line_up(const struct pg_rows *rows, const char *queue, struct pg_line *line);

/* pg_statement.c: does the statement under way, if it has not to wait. Its answer is in columns,
 * and an error in error. */
enum pg_end { PG_DONE, PG_WAITS };
enum pg_end pg_execute(struct pg_backend *backend);
/* Its parameters; NULL is "". */
const char *pg_text(const struct pg_backend *backend, int parameter);
int64_t pg_number(const struct pg_backend *backend, int parameter);
bool pg_is_null(const struct pg_backend *backend, int parameter);
bool pg_says(const struct pg_backend *backend, const char *clause);
/* The statement's `now`. */
int64_t pg_now(const struct pg_backend *backend);
void pg_column(struct pg_backend *backend, int64_t number);
void pg_column_text(struct pg_backend *backend, const char *text); /* "": NULL */
/* Notifies the observers of the queue. */
void pg_show(struct pg_backend *backend, const char *queue);

/* pg_queue.c */
enum pg_end pg_bump(struct pg_backend *backend);
enum pg_end pg_append(struct pg_backend *backend);
enum pg_end pg_view(struct pg_backend *backend);
enum pg_end pg_leave(struct pg_backend *backend);
enum pg_end pg_leave_last(struct pg_backend *backend);
enum pg_end pg_leave_quietly(struct pg_backend *backend);
enum pg_end pg_lighten(struct pg_backend *backend);
enum pg_end pg_lock_all(struct pg_backend *backend);
enum pg_end pg_leave_all(struct pg_backend *backend);
enum pg_end pg_revoke(struct pg_backend *backend);
enum pg_end pg_observe(struct pg_backend *backend);
enum pg_end pg_set_value(struct pg_backend *backend);

/* pg_wire.c */
void *pg_accept(struct world *world, struct stream *stream);
void pg_receive(void *backend, const char *bytes, size_t size);
void pg_hang_up(void *backend);
/* Requests that wait for row locks try again, in the order in which they came. */
void pg_wake(struct pg_server *server);
/* A notification has come for it. */
void pg_tell(struct pg_backend *backend, const struct pg_notice *notice);
/* The transaction that it is in fails. */
void pg_spoil(struct pg_backend *backend, const char *code);
/* Ends the connection in order, and notifies the client if possible. */
void pg_terminate(struct pg_backend *backend, const char *code);
/* It is gone with its server. */
void pg_vanish(struct pg_backend *backend, bool silently);
/* The operator's: a statement with its parameters, and the first number that it answers. */
int64_t pg_run(struct pg_server *server, enum mrt_pg_statement statement, const char *const *values,
               int count);

#endif
