/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addon's parts share this. See addon.c for the design.
 */
#ifndef MORTISE_NODE_ADDON_H
#define MORTISE_NODE_ADDON_H

#include <mortise.h>
#define NAPI_VERSION 8
#include <node_api.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#define DETAIL_SIZE 512

struct candidate;
struct job;

/* The main thread of a program, or a worker, with all it has open. */
struct environment {
    struct client *clients;
    struct job *threads;                /* of the jobs that may wait for ever */
    unsigned polls;                     /* that libuv has not closed yet */
    napi_async_cleanup_hook_handle end; /* NULL: it goes on */
};

/* A client. Its parts are used in JavaScript's thread, but for what the library calls back. */
struct client {
    unsigned references;    /* of its own handle, and of those of its locks */
    mortise_client *client; /* NULL: closed, or being closed */
    napi_env env;
    napi_ref receiver;             /* the function that gets the messages, while it polls */
    napi_threadsafe_function post; /* wakes JavaScript's thread for the inbox */
    pthread_mutex_t mutex;         /* of the operations: cancel and callback exclude each other */
    struct poll *poll;             /* NULL: it does not help the library */
    pthread_mutex_t inbox_mutex;
    STAILQ_HEAD(, message) inbox; /* in the order of the library's callbacks */
    bool helps;                   /* JavaScript's thread is in mortise_process, and looks after */
    struct client *next, **link;  /* in the list of this environment's open ones */
    struct candidate *candidates; /* what its callbacks get; they live as long as it */
};

enum message_kind {
    MESSAGE_ACQUIRED,
    MESSAGE_CAMPAIGNED,
    MESSAGE_STATE,  /* of a hold */
    MESSAGE_REVOKE, /* of a hold */
    MESSAGE_ELECTED,
    MESSAGE_DEPOSED,
    MESSAGE_LEADER,
    MESSAGE_CONTACT
};

/* A callback of the library posts it to JavaScript's thread, which frees it. */
struct message {
    STAILQ_ENTRY(message) link;
    enum message_kind kind;
    uint32_t id; /* of the acquire, campaign or election */
    int number;  /* the error, or the state of the hold */
    uint64_t fence;
    mortise_hold hold;
    char detail[DETAIL_SIZE];
    size_t size;
    unsigned char value[]; /* of a leader */
};

/* A blocking call on a thread of libuv's pool, or on one of its own; its promise is settled with
   what `done` makes. */
typedef int (*job_work)(struct job *job);
typedef napi_value (*job_done)(napi_env env, struct job *job);

struct job {
    napi_async_work work;         /* on the pool */
    napi_threadsafe_function end; /* on a thread of its own */
    pthread_t thread;
    struct job *next, **link; /* in the environment's list of threads */
    napi_deferred deferred;
    job_work run;
    job_done done; /* NULL: undefined */
    int error;
    char detail[DETAIL_SIZE];
    struct client *client;
    mortise_client *library; /* the client's at the start of the job */
    void *handle;
    mortise_hold hold;
    char *text; /* a name, or a URL; owned */
    char *label;
    uint64_t numbers[3];
    char token[MORTISE_TOKEN_SIZE];
    unsigned char *value; /* owned */
    mortise_lock **locks; /* owned */
    size_t size;
    void *result; /* owned: freed with the job */
};

struct argument {
    napi_value values[8];
    size_t count;
};

/* A function that the module has; a table of them ends with a name of NULL. */
struct exported {
    const char *name;
    napi_callback function;
};

/* ----------------------------------------------------------------- addon.c */

/* Whether a call of Node's succeeded; else an exception is pending. */
bool good(napi_env env, napi_status status);
bool read_arguments(napi_env env, napi_callback_info info, size_t count,
                    struct argument *arguments);
/* Each answers false, with an exception, where the value is of another type. */
bool read_text(napi_env env, napi_value value, char **text); /* to be freed; NULL: undefined */
bool read_number(napi_env env, napi_value value, int64_t *number);
bool read_fence(napi_env env, napi_value value, uint64_t *number); /* a BigInt */
bool read_bytes(napi_env env, napi_value value, unsigned char **bytes, size_t *size);
/* Reads the pointer in an external of this tag. */
bool read_handle(napi_env env, napi_value value, const napi_type_tag *tag, void **handle);
napi_value make_handle(napi_env env, void *handle, const napi_type_tag *tag,
                       napi_finalize finalize);
napi_value make_error(napi_env env, int error, const char *detail);
napi_value throw_error(napi_env env, int error, const char *detail);
/* undefined, or an exception: of a call of the library in this thread. */
napi_value settle(napi_env env, int error);
napi_value make_bigint(napi_env env, uint64_t number);
napi_value make_text(napi_env env, const char *text);
void set_property(napi_env env, napi_value object, const char *name, napi_value value);
void set_number(napi_env env, napi_value object, const char *name, double number);

/* So many milliseconds from now, by mortise_now_ns; negative: never. */
int64_t deadline_of(int64_t timeout_ms);

struct job *make_job(struct client *client, job_work run, job_done done);
void free_job(struct job *job);
/* Starts it; the promise, or NULL and an exception, and the job is freed. */
napi_value start_job(napi_env env, struct job *job);
/* The same of a job that may wait for ever: it would keep one of the pool's few threads. */
napi_value start_thread(napi_env env, struct job *job);
/* Settles the promise, and frees the job. */
void settle_job(napi_env env, struct job *job);
/* Waits for the threads of an environment that ends; its clients are closed. */
void join_threads(struct environment *environment);
struct environment *environment_of(napi_env env);

/* ---------------------------------------------------------------- client.c */

extern const napi_type_tag client_tag;
/* An open client; else ECLOSED is thrown. */
bool read_client(napi_env env, napi_value value, struct client **client);
void drop_client(struct client *client);
void close_all(napi_async_cleanup_hook_handle handle, void *environment);
extern const struct exported client_functions[];

/* ----------------------------------------------------------------- inbox.c */

struct message *make_message(enum message_kind kind, size_t size);
/* From any thread. */
void post_message(struct client *client, struct message *message);
/* Calls JavaScript with what has been posted; for napi_create_threadsafe_function. */
void receive(napi_env env, napi_value function, void *context, void *data);
void free_inbox(struct client *client);
/* From now on JavaScript's thread reads the store's answers itself, where it can. */
void start_polling(napi_env env, struct client *client);
/* After a call that may end in a callback: makes those that are due, and polls again if it was in
   another thread's way before. */
void look_after(struct client *client);
void stop_polling(struct client *client);
/* The end of an environment, when the last poll is closed. */
void end_environment(struct environment *environment);

extern const struct exported lock_functions[];
napi_value make_hold(napi_env env, mortise_hold hold);
/* By it lib/client.js finds a hold again. */
napi_value make_key(napi_env env, mortise_hold hold);
/* The first two arguments of all calls on holds. */
bool read_held(napi_env env, napi_callback_info info, struct argument *arguments,
               struct client **client, mortise_hold *hold);
/* The lock of a handle, whose client is open; else an exception. */
bool read_lock(napi_env env, napi_value value, mortise_lock **lock);

extern const struct exported hold_functions[];
extern const struct exported wait_functions[];

extern const struct exported store_functions[];
extern const struct exported election_functions[];
void free_candidates(struct candidate *candidate);

void export_functions(napi_env env, napi_value exports, const struct exported *table);

#endif
