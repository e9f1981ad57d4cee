/*
 * The parts of the embedded store and what they owe each other:
 *
 *   port.c          the port: opening and closing
 *   command.c  commands in, events out, what happens when the file is lost
 *   queue.c    tickets: the transactions of APPEND and REFRESH
 *   leave.c    tickets: the transactions of REMOVE, STOP, and of a death
 *   detach.c   tickets that are nobody's: DETACH, and APPEND that adopts
 *   delay.c    tickets that a dead session leaves behind for a while
 *   list.c     what mortise_list shows
 *   operator.c requests to give up, and tickets taken away
 *   observe.c  who is first in a queue, and telling that it is another
 *   cell.c     cells
 *   session.c  session files, their locks, and who is dead
 *   wake.c     datagrams and file events
 *   schema.c   what the database holds: the table, the counter behind the fences
 *   db.c       the connection: statements, transactions, checkpoints
 *   files.c    where the database lies, and whether that place is safe
 *   fork.c     what a forked child must not keep
 *
 * Threads: calls on one store are serialised by the caller and may come from any
 * thread. Only fork.c has state that stores share, under its own mutex.
 */
#ifndef MRT_STORE_SQLITE_INTERNAL_H
#define MRT_STORE_SQLITE_INTERNAL_H

#include "base/id.h"
#include "base/list.h"
#include "base/owner.h"
#include "base/time.h"
#include "core/store.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ------------------------------------------------------------------ files */

struct mrt_sqlite_file {
    char path[PATH_MAX];     /* canonical, of the database */
    char sessions[PATH_MAX]; /* of the directory of session files */
    int directory_fd;        /* of the database's directory; -1: closed */
    int sessions_fd;
    dev_t device;
    ino_t inode;
};

/* Checks the place, makes what is missing, 0 or a MORTISE code. `path`: "" for the default. */
int mrt_sqlite_file_open(struct mrt_sqlite_file *file, const char *path, bool any_filesystem);
void mrt_sqlite_file_close(struct mrt_sqlite_file *file);
/* Whether the path still leads to the database that was opened. */
bool mrt_sqlite_file_in_place(const struct mrt_sqlite_file *file);
/*
 * Path of the default file; its directory is made, 0700, with its parents. 0; MORTISE_EINVALID (too
 * long, no home), MORTISE_EPERMISSION, MORTISE_EUNREACHABLE.
 */
int mrt_sqlite_default_path(char *path, size_t size);
/* Name of a network or shared file system by its statfs type, else NULL. */
const char *mrt_sqlite_shared_filesystem(unsigned long type);

/* ------------------------------------------------------------------- fork */

/* A descriptor that a forked child closes at once. */
struct mrt_sqlite_fork_fd {
    TAILQ_ENTRY(mrt_sqlite_fork_fd) link;
    int fd; /* -1: none */
};

void mrt_sqlite_fork_guard_fd(struct mrt_sqlite_fork_fd *guard, int fd);
/* Closes it, if it is open in this process. */
void mrt_sqlite_fork_close_fd(struct mrt_sqlite_fork_fd *guard);

/* Notes that this process has the database open; NULL if there is no memory. */
struct mrt_sqlite_fork_database *mrt_sqlite_fork_note_database(dev_t device, ino_t inode);
void mrt_sqlite_fork_forget_database(struct mrt_sqlite_fork_database *database);
/* Whether the parent had it open when it forked this process. */
bool mrt_sqlite_fork_inherited(dev_t device, ino_t inode);

/* --------------------------------------------------------------- database */

enum mrt_statement {
    MRT_SQLITE_BEGIN,
    MRT_SQLITE_COMMIT,
    MRT_SQLITE_ROLLBACK,
    MRT_SQLITE_COUNTER, /* -> counter, limit, boot id */
    MRT_SQLITE_COUNT,   /* the number given last */
    MRT_SQLITE_AHEAD, /* queue, number -> number, weight, session, id, kind, capacity, linger, until
                       */
    MRT_SQLITE_BEFORE, /* queue, number -> the same of the ticket just ahead */
    MRT_SQLITE_FROM,   /* queue, number -> number, id, session, weight, revoked: it and the next */
    MRT_SQLITE_PLACE,  /* queue, number -> how many are ahead */
    MRT_SQLITE_INSERT,
    MRT_SQLITE_LIGHTEN,
    MRT_SQLITE_REVOKE,     /* queue, number, number: these and all between */
    MRT_SQLITE_DELETE,     /* queue, number, id */
    MRT_SQLITE_SET_VALUE,  /* queue, number, id, value */
    MRT_SQLITE_FIRST,      /* queue -> number, session, value */
    MRT_SQLITE_CELL,       /* name -> version, fence, writer, value */
    MRT_SQLITE_CELL_WRITE, /* the same, and name first */
    MRT_SQLITE_OF_SESSION, /* session, queue, number, least delay -> queue, number, id, weight,
                           valued: the next */
    MRT_SQLITE_DETACHED,   /* queue, no session, id -> number, kind, capacity, weight */
    MRT_SQLITE_MOVE,       /* queue, number, id; session and id from now on; session so far; delay,
                           linger from now on */
    MRT_SQLITE_LEAVE,      /* queue, number, id, now: it is nobody's from now on, if it holds */
    MRT_SQLITE_OVER, /* queue, now -> number, id, weight, valued: one that has stayed enough */
    MRT_SQLITE_LIST, /* queue -> all from there on, in order */
    MRT_SQLITE_STATEMENTS
};

struct mrt_sqlite_db {
    sqlite3 *handle;
    sqlite3 *checkpointer; /* a second connection, opened when first needed */
    sqlite3_stmt *statements[MRT_SQLITE_STATEMENTS];
    mrt_time patience; /* until when to wait for another writer */
    int frames;        /* in the write-ahead log after the commit just done; 0: none done */
    int checkpoint_at; /* do it when there are so many */
    int checkpoint_step;
    int last_error;
    struct mrt_traffic traffic;            /* statements, and transactions for round trips */
    void (*checkpointing)(void *argument); /* for tests: called just before one */
    void *checkpointing_argument;
};

/* What became of a transaction. */
enum mrt_outcome {
    MRT_DONE,
    MRT_BUSY,   /* patience is over; nothing done */
    MRT_FULL,   /* no space or no memory; nothing done */
    MRT_BROKEN, /* an I/O error, damage, a foreign hand: nothing here can be relied on */
};

/* 0 or a MORTISE code. */
int mrt_sqlite_db_open(struct mrt_sqlite_db *db, const struct mrt_sqlite_file *file,
                       bool short_lived, mrt_time patience);
void mrt_sqlite_db_close(struct mrt_sqlite_db *db);

/* One more connection to the file, set up as ours are; an SQLite result. */
int mrt_sqlite_connect(struct mrt_sqlite_db *db, const char *path, sqlite3 **handle);
/* SQLite's busy handler; 0: patience is over. */
int mrt_sqlite_wait(void *db, int count);
/* Runs a cached statement that gives no rows; a text that is not worth caching. */
enum mrt_outcome mrt_sqlite_run(struct mrt_sqlite_db *db, enum mrt_statement which);
enum mrt_outcome mrt_sqlite_execute(struct mrt_sqlite_db *db, const char *text);
/* A write transaction that is on disk when it is done. */
enum mrt_outcome mrt_sqlite_write_durably(struct mrt_sqlite_db *db, mrt_time patience,
                                          enum mrt_outcome (*write)(struct mrt_sqlite_db *db,
                                                                    void *argument),
                                          void *argument);

/* Whether a commit is on disk when it is done. */
enum mrt_outcome mrt_sqlite_sync(struct mrt_sqlite_db *db, bool on);

/* A write transaction: begin, then commit or roll back. */
enum mrt_outcome mrt_sqlite_begin(struct mrt_sqlite_db *db, mrt_time patience);
enum mrt_outcome mrt_sqlite_commit(struct mrt_sqlite_db *db);
/* Undoes what was begun, and passes `outcome` on. */
enum mrt_outcome mrt_sqlite_rollback(struct mrt_sqlite_db *db, enum mrt_outcome outcome);

/* A cached statement, NULL if it cannot be prepared (last_error says why). */
sqlite3_stmt *mrt_sqlite_statement(struct mrt_sqlite_db *db, enum mrt_statement which);
/* One step: SQLITE_ROW, SQLITE_DONE, or another, which last_error keeps. */
int mrt_sqlite_step(struct mrt_sqlite_db *db, sqlite3_stmt *statement);
/* What last_error means. */
enum mrt_outcome mrt_sqlite_outcome(const struct mrt_sqlite_db *db);

/* The id must stay until the statement is done with. */
void mrt_sqlite_bind_id(sqlite3_stmt *statement, int index, const struct mrt_id *id);
struct mrt_id mrt_sqlite_column_id(sqlite3_stmt *statement, int index);

/* In a transaction: the next number of the store. MRT_SQLITE_LIMIT: roll back, extend, again. */
#define MRT_SQLITE_LIMIT UINT64_MAX
enum mrt_outcome mrt_sqlite_next_number(struct mrt_sqlite_db *db, uint64_t *number);
/* Raises the limit durably; outside of any transaction. */
enum mrt_outcome mrt_sqlite_extend(struct mrt_sqlite_db *db, mrt_time patience);
/* Outside of any transaction: copies the log back if it has grown long. */
void mrt_sqlite_tend(struct mrt_sqlite_db *db);

#define MRT_SQLITE_BLOCK 100000
/* For tests: this machine's boot id from now on; none: the true one. */
void mrt_sqlite_set_boot_id(struct mrt_id id);

/* ------------------------------------------------------------------ store */

/* A full name of any length that the layers above let through. */
#define MRT_SQLITE_QUEUE_MAX 4096
/* The number of a place behind all tickets. */
#define MRT_SQLITE_END ((uint64_t)INT64_MAX)
#define MRT_SQLITE_FENCE_BITS 16
/* A weight ahead that grants nothing: who is told of it looks for itself. */
#define MRT_SQLITE_LOOK UINT64_MAX
/* How long an operator waits for other writers. */
#define MRT_SQLITE_OPERATOR_PATIENCE (5 * MRT_SECOND)

struct mrt_sqlite_session {
    TAILQ_ENTRY(mrt_sqlite_session) link;
    struct mrt_id id;
    struct mrt_sqlite_fork_fd file;   /* locked for as long as the session lives */
    struct mrt_sqlite_fork_fd socket; /* made when a ticket first has to wait */
    bool lost;                        /* SESSION_LOST has been told */
    TAILQ_HEAD(, mrt_sqlite_ticket) tickets;
};

struct mrt_sqlite_ticket {
    TAILQ_ENTRY(mrt_sqlite_ticket) link;
    TAILQ_ENTRY(mrt_sqlite_ticket) bucket_link;
    struct mrt_sqlite_session *session;
    struct mrt_id id;
    uint64_t number, weight, capacity;
    bool valued; /* it has a value, and may be observed */
    char queue[];
};

/* Another process's session that some ticket here waits, or has waited, for. */
struct mrt_sqlite_watch {
    TAILQ_ENTRY(mrt_sqlite_watch) link;
    struct mrt_id session;
    int wd;             /* -1: the kernel has dropped it */
    mrt_time look_at;   /* MRT_TIME_NEVER: no suspicion */
    unsigned int looks; /* under this suspicion */
};

/* Someone here who is to be told, once, when an observed queue may have changed. */
struct mrt_sqlite_observer {
    TAILQ_ENTRY(mrt_sqlite_observer) link;
    struct mrt_id session, id;
};

/* What a ticket's session is told; goes from process to process as it is. */
struct mrt_sqlite_place {
    struct mrt_id ticket;
    uint64_t weight_ahead;  /* if it is not granted by that: it is to look whom to watch now */
    uint64_t others_behind; /* 0 or 1 */
};

struct mrt_sqlite_wake {
    struct mrt_id session;
    struct mrt_sqlite_place place;
};

/* Who is to be told after the commit. */
struct mrt_sqlite_wakes {
    struct mrt_sqlite_wake *items;
    size_t count, room;
};

struct mrt_sqlite_ids {
    struct mrt_id *items;
    size_t count, room;
};

#define MRT_SQLITE_BUCKETS 64

/* A sending socket, kept connected: mostly the same neighbours are woken again. */
struct mrt_sqlite_peer {
    int fd; /* -1: none yet */
    struct mrt_id session;
};
#define MRT_SQLITE_PEERS 64

struct mrt_store {
    struct mrt_sink sink;
    char address[PATH_MAX + 8];
    char configured[PATH_MAX]; /* the path as the URI has it */
    char label[MRT_OWNER_SIZE];
    bool any_filesystem;
    bool short_lived;
    mrt_time checked; /* when the file was last seen in its place */
    bool fault;       /* something was found broken just now; the sessions are to be told */
    bool broken;      /* they have been: file and database are to be opened anew */

    struct mrt_sqlite_file file;
    struct mrt_sqlite_fork_database *noted;
    struct mrt_sqlite_db db;

    TAILQ_HEAD(, mrt_sqlite_session) sessions;
    TAILQ_HEAD(mrt_sqlite_bucket, mrt_sqlite_ticket) buckets[MRT_SQLITE_BUCKETS];

    int epoll_fd;
    int inotify_fd; /* -1: none yet, or refused */
    struct mrt_sqlite_peer peers[MRT_SQLITE_PEERS];
    bool no_events, no_socket; /* refused by the system: look more often */
    TAILQ_HEAD(, mrt_sqlite_watch) watches;
    TAILQ_HEAD(, mrt_sqlite_observer) observers;
    int observed_wd;      /* of the file that is touched; -1: not watched */
    bool observed_change; /* it is to be touched */
    struct mrt_sqlite_wakes wakes;
    struct mrt_sqlite_ids blockers;         /* what the last look found in the way */
    struct mrt_sqlite_ids dead;             /* whose files are to go after the commit */
    unsigned char value[MORTISE_VALUE_MAX]; /* that an answer has */
};

/* Sends an event of `session`; serial 0. */
void mrt_sqlite_tell(struct mrt_store *store, enum mrt_event_type type, struct mrt_id session,
                     struct mrt_id ticket);

/* Tells a ticket here of its place, as read when it came to be so. */
void mrt_sqlite_tell_place(struct mrt_store *store, const struct mrt_sqlite_place *place);

/* Opens the file of the URI, or what lies there now; 0 or a MORTISE code. */
int mrt_sqlite_open_file(struct mrt_store *store, mrt_time patience);
void mrt_sqlite_close_file(struct mrt_store *store);
/* False: not done for want of patience. */
bool mrt_sqlite_dispatch(struct mrt_store *store, const struct mrt_command *command,
                         mrt_time patience);
/* Ends all sessions if store->fault is set. */
void mrt_sqlite_tell_of_fault(struct mrt_store *store);

/* ---------------------------------------------------------------- session */

/* 0 or a MORTISE code. */
int mrt_sqlite_session_start(struct mrt_store *store, struct mrt_id id);
/* Removes its files, closes them and frees it, its tickets included. */
void mrt_sqlite_session_end(struct mrt_store *store, struct mrt_sqlite_session *session);
struct mrt_sqlite_session *mrt_sqlite_session_find(struct mrt_store *store, struct mrt_id id);
/* Whether its file is still there for others to see. */
bool mrt_sqlite_session_visible(const struct mrt_sqlite_session *session);
/* Whether the directory of session files is still in the file system. */
bool mrt_sqlite_sessions_visible(const struct mrt_store *store);
/* Whether the session has ended: no file, or nobody has it locked. */
bool mrt_sqlite_session_dead(struct mrt_store *store, struct mrt_id id);
/* Removes the files of a dead session. */
void mrt_sqlite_session_unlink(struct mrt_store *store, struct mrt_id id);
/* Removes what crashed sessions left, at most once a minute. */
void mrt_sqlite_sweep(struct mrt_store *store, mrt_time patience);

/* ------------------------------------------------------------------- wake */

/* Makes the session's socket if it has none. */
void mrt_sqlite_listen(struct mrt_store *store, struct mrt_sqlite_session *session);
/* Closes it. */
void mrt_sqlite_deafen(struct mrt_store *store, struct mrt_sqlite_session *session);
/* Watches a file in the directory of session files; -1: not to be had, or (errno) ENOENT. */
int mrt_sqlite_watch_file(struct mrt_store *store, const char *name, uint32_t events);
/* Watches for the end of another session. True: newly armed, so look whether it is dead. */
bool mrt_sqlite_watch(struct mrt_store *store, struct mrt_id session);
void mrt_sqlite_unwatch_all(struct mrt_store *store);
struct mrt_sqlite_wake *mrt_sqlite_wake_later(struct mrt_store *store, struct mrt_id session,
                                              struct mrt_id ticket, uint64_t weight_ahead);
/* Tells all who are to be woken; whoever turns out dead is buried. */
void mrt_sqlite_wake_all(struct mrt_store *store, mrt_time patience);
/* Reads what has come, and looks at sessions under suspicion. */
void mrt_sqlite_hear(struct mrt_store *store, mrt_time now);
mrt_time mrt_sqlite_next_look(const struct mrt_store *store);
/* How long a waiting ticket may go without a look. */
mrt_time mrt_sqlite_recheck(const struct mrt_store *store);

/* ------------------------------------------------------------------ queue */

struct mrt_sqlite_view {
    uint64_t fence, weight_ahead, revoked, place;
    bool others_behind;
    mrt_time recheck;
};

enum mrt_verdict { MRT_IN_QUEUE, MRT_NO_ROOM, MRT_CROWDED, MRT_MISMATCH, MRT_ABSENT };

/* False: no memory. */
bool mrt_sqlite_ids_add(struct mrt_sqlite_ids *ids, struct mrt_id id);
/* Saturates. */
static inline uint64_t mrt_sqlite_add_weight(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
/* Binds the first two parameters; `queue` must stay until the statement is done with. */
void mrt_sqlite_bind_place(sqlite3_stmt *statement, const char *queue, uint64_t number);

struct mrt_sqlite_ticket *mrt_sqlite_ticket_find(struct mrt_store *store, struct mrt_id id);
void mrt_sqlite_ticket_free(struct mrt_store *store, struct mrt_sqlite_ticket *ticket);
/* NULL: no memory. One whose row is there is to be entered. */
struct mrt_sqlite_ticket *mrt_sqlite_ticket_new(struct mrt_sqlite_session *session,
                                                const struct mrt_command *command);
void mrt_sqlite_ticket_enter(struct mrt_store *store, struct mrt_sqlite_ticket *ticket);

/* Of MRT_MISMATCH the thread's error detail tells. */
enum mrt_outcome mrt_sqlite_append(struct mrt_store *store, struct mrt_sqlite_session *session,
                                   const struct mrt_command *command, mrt_time patience,
                                   enum mrt_verdict *verdict, struct mrt_sqlite_view *view);
/* DETACH: MRT_IN_QUEUE, also if that was done before, or MRT_ABSENT. */
enum mrt_outcome mrt_sqlite_detach(struct mrt_store *store, const struct mrt_command *command,
                                   mrt_time patience, enum mrt_verdict *verdict);
/* An APPEND that adopts: MRT_IN_QUEUE, MRT_ABSENT or MRT_MISMATCH. */
enum mrt_outcome mrt_sqlite_adopt(struct mrt_store *store, struct mrt_sqlite_session *session,
                                  const struct mrt_command *command, mrt_time patience,
                                  enum mrt_verdict *verdict);
/* `watch_closely`: its session is to be told of what others do to it. */
enum mrt_outcome mrt_sqlite_refresh(struct mrt_store *store, struct mrt_sqlite_ticket *ticket,
                                    bool watch_closely, mrt_time patience,
                                    enum mrt_verdict *verdict, struct mrt_sqlite_view *view);
/* How many tickets are ahead of it now, the dead included; 0 also if that cannot be read. */
uint64_t mrt_sqlite_place(struct mrt_store *store, const struct mrt_sqlite_ticket *ticket);
/* Lowers its weight; no effect if it is not heavier. Wakes are left in store->wakes. */
enum mrt_outcome mrt_sqlite_lighten(struct mrt_store *store, struct mrt_sqlite_ticket *ticket,
                                    uint64_t weight, mrt_time patience);
/* Takes out one ticket, or all of the session; wakes are left in store->wakes. */
enum mrt_outcome mrt_sqlite_remove(struct mrt_store *store, struct mrt_sqlite_ticket *ticket,
                                   mrt_time patience);
enum mrt_outcome mrt_sqlite_remove_all(struct mrt_store *store, struct mrt_sqlite_session *session,
                                       mrt_time patience);
/* Takes out the ticket of this number, whoever has it. *found: it was there. */
enum mrt_outcome mrt_sqlite_break_number(struct mrt_store *store, const char *queue,
                                         uint64_t number, mrt_time patience, bool *found);
/* In a transaction: takes out the tickets of a session that has died, but for those that it leaves
   behind; *count: how many they were. */
enum mrt_outcome mrt_sqlite_delete_session(struct mrt_store *store, struct mrt_id session,
                                           size_t *count);
/* Ends a transaction; if it does not come about, what has been noted since is forgotten. */
enum mrt_outcome mrt_sqlite_end(struct mrt_store *store, enum mrt_outcome outcome,
                                size_t noted_before);
/* In a transaction: takes a row out and notes who can be granted by that. */
enum mrt_outcome mrt_sqlite_delete_row(struct mrt_store *store, const char *queue, uint64_t number,
                                       struct mrt_id id, uint64_t weight);
/* The session's first row after (queue, number), copied, of those with at least such a delay; no
   row: *number is 0. */
enum mrt_outcome mrt_sqlite_next_of_session(struct mrt_store *store, struct mrt_id session,
                                            mrt_time delay, char queue[MRT_SQLITE_QUEUE_MAX],
                                            uint64_t *number, struct mrt_id *id, uint64_t *weight);
/* In a transaction: notes the first that waits in the queue for waking. */
enum mrt_outcome mrt_sqlite_note_first_waiting(struct mrt_store *store, const char *queue);
/* Takes out the tickets of a dead session and its files; sets store->fault if it must. */
enum mrt_outcome mrt_sqlite_bury(struct mrt_store *store, struct mrt_id session, mrt_time patience);
/* In a transaction: what holds of a dead session and has a delay is left behind. */
enum mrt_outcome mrt_sqlite_leave_behind(struct mrt_store *store, struct mrt_id session,
                                         size_t *count);
/* Takes out of a queue what has stayed long enough; in a transaction, or in one of its own. */
enum mrt_outcome mrt_sqlite_delete_over(struct mrt_store *store, const char *queue, bool *any);
enum mrt_outcome mrt_sqlite_end_delays(struct mrt_store *store, const char *queue,
                                       mrt_time patience);
/* What kept an operator's call from being done, as a code with its particulars. */
int mrt_sqlite_operator_error(const struct mrt_store *store);
int mrt_sqlite_revoke(struct mrt_store *store, const char *name, uint64_t fence);
int mrt_sqlite_break(struct mrt_store *store, const char *name, uint64_t fence);
/* Changes the value of a ticket. */
enum mrt_outcome mrt_sqlite_set_value(struct mrt_store *store,
                                      const struct mrt_sqlite_ticket *ticket, const void *value,
                                      size_t size, mrt_time patience);

/* ---------------------------------------------------------------- observe */

/* Fills in the answer; its value is the store's, until the next call. */
enum mrt_outcome mrt_sqlite_observe(struct mrt_store *store, const struct mrt_command *command,
                                    mrt_time patience, struct mrt_event *answer);
/* Tells all processes that observe, if what is observed was changed. */
void mrt_sqlite_tell_change(struct mrt_store *store);
/* The file was touched: tells the observers here. */
void mrt_sqlite_changed(struct mrt_store *store);
void mrt_sqlite_observers_free(struct mrt_store *store, const struct mrt_sqlite_session *session);

/* ------------------------------------------------------------------- cell */

/* CELL_GET, CELL_SET. Fills in the answer, which may be FAILED. */
enum mrt_outcome mrt_sqlite_cell(struct mrt_store *store, const struct mrt_command *command,
                                 mrt_time patience, struct mrt_event *answer);

int mrt_sqlite_list(struct mrt_store *store, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument);

#endif
