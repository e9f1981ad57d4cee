/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real SQL server for a test program that is one for all of them, with the schema in it.
 * postgres_place.c and mariadb_place.c have the parts that differ from server to server. Starting,
 * stopping and freezing it, and what is done with locks, are zookeeper_place.h's, which knows no
 * store.
 */
#ifndef TEST_SQL_PLACE_H
#define TEST_SQL_PLACE_H

#include "live/sql_proxy.h"
#include "live/zookeeper_place.h"

#include <pthread.h>

/* cmocka's group set-up: starts the server and makes the schema. */
int sql_place_start(void **state);
/* A client at this port, with parameters such as "lease=2s". */
mortise_client *sql_open(uint16_t port, const char *parameters);
/* A new client gets no lock there, and its error has both texts in it. */
void sql_is_refused(uint16_t port, const char *parameters, const char *says, const char *and_says);
/* One whose tries may take two minutes. */
mortise_client *sql_open_patient(const char *parameters);
/* The same as a URI, until some calls later. */
const char *sql_uri(uint16_t port, const char *parameters);
/* A proxy before the server. */
struct sql_proxy *sql_proxy(void);

/* A mark of requests of this sort on the wire. */
enum sql_part {
    SQL_SETUP,
    SQL_START,
    SQL_APPEND,
    SQL_DETACH,
    SQL_ADOPT,
    SQL_REMOVE, /* of a ticket that others have come behind */
    SQL_REMOVE_LAST,
    SQL_STOP,
    SQL_PARTS, /* that every client's life has */
    SQL_RESUME = SQL_PARTS,
    SQL_ALONE, /* an acquire of a lock that nobody had last time */
    SQL_BREAK,
    SQL_ALL_PARTS
};
extern const char *const sql_parts[SQL_ALL_PARTS];

/* Runs statements, which are both servers', on a connection of the test's own; the first value of
   the last one's first row, or "", until the next call. */
const char *sql_run(const char *text);
long sql_number(const char *text);
/* Waits, at most 20 s, until the query's value is `number`. */
void sql_await(const char *text, long number);
#define SQL_TICKETS(name) "SELECT count(*) FROM ticket WHERE queue = 'mortise/" name "'"

/* Those that are nobody's: the one session that no connection has. */
#define SQL_NOBODYS(name) \
    SQL_TICKETS(name) " AND session IN (SELECT id FROM session WHERE epoch = 0)"

/* The query of the shortest time that a session's lease has left, in ms. */
extern const char sql_lease_left[];

/* The statement that makes the leases of all clients end two minutes ago. */
extern const char sql_end_leases[];

/* A time of the queues' rows, two days ago. */
extern const char sql_days_ago[];
/* One more than an hour ago. */
extern const char sql_hour_ago[];
/* Makes %d queues "mortise/unused/..." that were last used two days ago. */
extern const char sql_unused_queues[];

/* Connections of the store's clients, and how many of them are in a transaction. */
long sql_connections(void);
long sql_transactions(void);
/* Transactions, of anybody, that wait for a lock. */
long sql_lock_waits(void);
/* A queue's row is made in a transaction before that which uses it. */
extern const bool sql_makes_rows_first;
void sql_end_connections(void);
void sql_set_read_only(bool on);
/* Whether a server can become a replica, which is read-only, without ending its connections. */
extern const bool sql_demotes_in_place;
/* Whether who connects from now on may write to a read-only server, if there is such a right. */
void sql_set_privileged(bool on);
/* Whether the administrator has connections ended on which nothing came for a second, inside
   transactions and outside; how long nothing has come on any of the store's, in ms. */
void sql_set_idle_limit(bool on);
long sql_idle_ms(void);
/* The default of transactions. */
void sql_set_serializable(bool on);
/* Whether there is room on the server for prepared statements, if it has a limit of them. */
void sql_set_room(bool on);
/* The next `times` inserts or deletes ("INSERT ON ticket", ...) are refused with this error; the
 * server's code for it. */
#define SQL_ALWAYS 1000000000
enum sql_refusal { SQL_DEADLOCK, SQL_CONFLICT, SQL_REFUSALS };
extern const char *const sql_refusals[SQL_REFUSALS];
void sql_inject(const char *what, enum sql_refusal refusal, int times);
/* How many of them have come; ends it. */
long sql_heal(void);
/* Locks the rows of a SELECT, in a connection of its own, until sql_unblock. */
void sql_block(const char *rows);
void sql_unblock(void);

/* The forms of its locks (?form=): by name, and by row. */
enum { SQL_NAMED, SQL_ROW, SQL_FORMS };
extern const char *const sql_forms[SQL_FORMS];
/* Another program that uses the same locks by the server's own calls, on a connection of its
   own: takes the lock, tries to, gives it back. `name` is the whole name, as the store has it. */
struct sql_peer;
struct sql_peer *sql_peer_start(int form);
void sql_peer_take(struct sql_peer *peer, const char *name);
bool sql_peer_try(struct sql_peer *peer, const char *name);
void sql_peer_give(struct sql_peer *peer, const char *name);
void sql_peer_end(struct sql_peer *peer);
/* How many of the store's connections wait for a lock of any form. */
long sql_form_waits(void);
/* For how long the longest of them has been under way, in ms. */
long sql_form_wait_age(void);

/* An acquire, or a try, in a thread of its own. */
struct sql_attempt {
    mortise_lock *lock;
    mortise_hold hold;
    int error;
    _Atomic bool done;
    pthread_t thread;
};
void sql_begin(struct sql_attempt *attempt, mortise_lock *lock);
void sql_begin_try(struct sql_attempt *attempt, mortise_lock *lock);
void sql_succeed(struct sql_attempt *attempt);
void sql_await_state(mortise_hold hold, mortise_state wanted);
uint64_t sql_losses(mortise_client *client);

#endif
