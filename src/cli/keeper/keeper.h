/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock for a process that is no child of ours. The parts:
 *   keeper.c         the process that holds the lock as long as somebody else lives
 *   owner.c   who that is
 *   socket.c  what others ask of it: release and renew, by a token
 *   token.c          where a token goes, and where it is read
 *   detach.c         the other form: a lock that no process keeps
 * and who uses them: acquire.c, release.c.
 */
#ifndef MRT_CLI_KEEPER_KEEPER_H
#define MRT_CLI_KEEPER_KEEPER_H

#include "cli/run/held.h"
#include "cli/run/run.h"

/* -------------------------------------------------------------- keeper.c */

/* The keeper's report to the process that started it. */
struct mrt_keeper_word {
    int code; /* 0: it holds the locks; else the exit code, after the error was printed */
    char token[MORTISE_TOKEN_SIZE];
    /* Of run -F. */
    bool is_due;    /* false: no run is due, and no keeper is left */
    bool are_outer; /* outer runs hold all locks, and no keeper is left */
    bool outer[MRT_RUN_LOCKS_MAX];
    uint64_t fences[MRT_RUN_LOCKS_MAX];
    char address[1024];
};

/* Starts a keeper of run's locks for the target; `link` is the way to it. 0 or an exit code. */
int mrt_keeper_start(struct mrt_run *run, const struct mrt_target *target, int *link);
/* Waits for its report, or until the target has ended. In the second case, and after a failure, no
 * keeper is left. 0 or an exit code. */
int mrt_keeper_wait(int link, const struct mrt_target *target, struct mrt_keeper_word *word);
/* Confirms that the report has arrived: from now on the keeper goes its own way. False: it has
   lost the lock. If the starter ends without this, or closes the link, the keeper releases the
   lock. */
bool mrt_keeper_commit(int link);
/* The report cannot be delivered: the keeper releases the lock, and is gone. Returns `code`. */
int mrt_keeper_dismiss(int link, int code);

/* -------------------------------------------------------- owner.c */

/* The process that the lock is for: `pid`, or (0) the one that started us, which is the shell
   itself if it has captured our output. It becomes the run's label. 0 or an exit code. */
int mrt_keeper_find_owner(struct mrt_run *run, pid_t pid, bool is_captured,
                          struct mrt_target *owner);
/* Whether `ancestor` is `pid`, or one of the ancestors of `pid`. */
bool mrt_keeper_is_above(pid_t ancestor, pid_t pid);

/* ------------------------------------------------------- socket.c */

#define MRT_KEEPER_ID_SIZE 17
#define MRT_KEEPER_CALLS 4

enum mrt_keeper_demand { MRT_KEEPER_RELEASE, MRT_KEEPER_RENEW, MRT_KEEPER_TELL };

/* Between two processes of one program; both begin with their size, in case it is not one. */
struct mrt_keeper_request {
    uint32_t size;
    enum mrt_keeper_demand demand;
    int64_t max_hold; /* of renew: --max-hold; 0: as it was */
    char secret[33];
    char name[MORTISE_NAME_MAX + 1];
};

struct mrt_keeper_reply {
    uint32_t size;
    int code;                     /* an exit code */
    uint64_t fence;               /* of renew */
    char text[MRT_RUN_HELD_SIZE]; /* the error; of tell the line of MORTISE_HELD; or "" */
};

struct mrt_keeper_socket {
    int listener;
    int calls[MRT_KEEPER_CALLS]; /* connections; -1: none */
    char id[MRT_KEEPER_ID_SIZE], secret[33];
};

/* Listens under an address and a secret of its own; there are no calls yet. False and errno. */
bool mrt_keeper_listen(struct mrt_keeper_socket *socket);
void mrt_keeper_make_token(const struct mrt_keeper_socket *socket, char token[MORTISE_TOKEN_SIZE]);
/* Accepts the next client. */
void mrt_keeper_accept(struct mrt_keeper_socket *socket);
/* Reads a request from a connection that has something to say. False: it is none, and the
   connection is closed. */
bool mrt_keeper_read(struct mrt_keeper_socket *socket, size_t call,
                     struct mrt_keeper_request *request);
void mrt_keeper_answer(int call, const struct mrt_keeper_reply *reply);

/* Whether a token is a keeper's. */
bool mrt_keeper_is_token(const char *token);
/* Asks the keeper that has the token; of a release returns when the keeper is gone. 0 and *reply,
   or an exit code with the error said. */
int mrt_keeper_ask(const char *token, struct mrt_keeper_request *request,
                   struct mrt_keeper_reply *reply);
/* Has the keeper with this ID tell what it holds, if it keeps it for an ancestor of `pid`, which
   needs no secret: true and *reply. Takes at most `patience_ms`, which is more than 0. */
bool mrt_keeper_hear(const char *id, pid_t pid, int64_t patience_ms,
                     struct mrt_keeper_reply *reply);
/* Calls `visit` with the ID of each keeper that listens, until it returns true: that. */
bool mrt_keeper_each(bool (*visit)(void *argument, const char *id), void *argument);

/* ---------------------------------------------------------------- token.c */

#define MRT_TOKEN_VARIABLE "MORTISE_TOKEN"

/* Where acquire writes the token. All zero: to standard output. */
struct mrt_token_place {
    int fd;
    const char *file; /* made anew, for its owner alone */
};

/* 0 or an exit code. */
int mrt_token_write(const struct mrt_token_place *place, const char *token);
/* Reads it from `file`, else MORTISE_TOKEN, else standard input. 0 or an exit code. */
int mrt_token_read(const char *file, char token[MORTISE_TOKEN_SIZE]);

/* --------------------------------------------------------------- detach.c */

/* Acquires run's lock, detaches it and prints the token. Returns the exit code. */
int mrt_detach_acquire(struct mrt_run *run, const struct mrt_token_place *place);
/* Gives it back by the token: the exit code. */
int mrt_detach_release(struct mrt_run *run, const char *token);

#endif
