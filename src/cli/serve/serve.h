/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `mortise serve`.
 *   serve.c          options, start and end
 *   access.c   the token, the address to listen on, who may ask
 *   look.c     the one thread that asks the store: looks, and what operators ask for
 *   request.c  a request: is it allowed, and what answers it
 *   json.c     the answers to programs, the page's own among them
 *   metrics.c  the same for Prometheus
 *   page/            the page, files put into the command as they are
 * The web server itself is a module, http/http.h.
 *
 * Threads: the first waits for signals; one looks; the web server's own answers from what the
 * looks have found, under the mutex, and never waits for the store. So a store that hangs
 * keeps nobody from being told that it does.
 */
#ifndef MRT_CLI_SERVE_SERVE_H
#define MRT_CLI_SERVE_SERVE_H

#include "cli/agent/counts.h"
#include "cli/observe/table.h"
#include "http/http.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>

#define MRT_SERVE_HOSTS_MAX 16
#define MRT_SERVE_TOKEN_MIN 16
#define MRT_SERVE_TOKEN_MAX 256
#define MRT_SERVE_HISTORY (600 * INT64_C(1000)) /* so long the page looks back, in milliseconds */
#define MRT_SERVE_SAMPLES 6001 /* so many looks can be remembered: that long at ten a second */
#define MRT_SERVE_KINDS (MORTISE_KIND_INTERNAL + 1)

struct mrt_page_file {
    const char *name;
    const unsigned char *bytes;
    size_t size;
};
extern const struct mrt_page_file mrt_page_files[];
extern const size_t mrt_page_file_count;

/* The result of one look. */
struct mrt_serve_sample {
    int64_t wall_ms;
    uint32_t held, holders, waiters;
    uint64_t grants, changes;
    bool failed;
};

/* A request of an operator. */
struct mrt_serve_job {
    struct mrt_http_exchange *exchange; /* NULL: has been answered */
    bool breaks;                        /* else revokes */
    uint64_t fence;
    char name[MORTISE_NAME_MAX + 1];
    TAILQ_ENTRY(mrt_serve_job) link;
};
TAILQ_HEAD(mrt_serve_job_list, mrt_serve_job);

struct mrt_serve {
    /* As it was started. */
    mortise_client *client;
    mortise_capabilities can;
    const struct mrt_http_ops *http_ops;
    struct mrt_http *http;
    mrt_time interval;
    int64_t started_wall_ms;
    bool allow_changes;
    size_t own_series;                   /* locks with series of their own in metrics */
    char token[MRT_SERVE_TOKEN_MAX + 1]; /* "": none */
    bool is_token_made;                  /* here, and not given */
    const char *hosts[MRT_SERVE_HOSTS_MAX];
    size_t host_count;
    char agent[256]; /* socket of the agent that the store is asked through; "": none */

    pthread_mutex_t mutex; /* for all that follows */
    pthread_cond_t wake;
    struct mrt_table table;
    struct mrt_serve_sample samples[MRT_SERVE_SAMPLES]; /* sample n is in place n % SAMPLES */
    uint64_t sample_count;
    uint64_t looks, failed_looks;
    uint64_t errors[MRT_SERVE_KINDS]; /* of looks and of operators' requests */
    uint64_t changes[2][2];           /* revoke, break; refused, done */
    uint64_t losses;                  /* holders that were broken here */
    mrt_time look_took;               /* of the newest look */
    struct mrt_counted counted;       /* by the agent, when it last answered */
    bool agent_up;                    /* it did so at the newest look */
    char error[512];                  /* the error of the newest look; "": it succeeded */
    struct mrt_serve_job_list jobs;
    struct mrt_serve_job *running;
    bool ending;
};

/* ---------------------------------------------------------- access.c */

struct mrt_serve_address {
    struct sockaddr_storage address;
    socklen_t size;
    bool loopback;
};

/* 0, or an exit code with the error line written. */
int mrt_serve_read_token(struct mrt_serve *serve, const char *path);
/* Makes one; false: the system gives no random number. */
bool mrt_serve_make_token(struct mrt_serve *serve);
/* Of "127.0.0.1:80", "[::1]:80" or "localhost:80"; false: it is none. */
bool mrt_serve_parse_address(const char *text, struct mrt_serve_address *address);
/* Listens, and gives the URL: 0, or an exit code. `text` is for messages. */
int mrt_serve_listen(const struct mrt_serve_address *address, const char *text, int *listener,
                     char url[80]);
/* "Bearer TOKEN", compared in a time that does not depend on how much of it is right. */
bool mrt_serve_has_token(const struct mrt_serve *serve, const char *authorization);
/* Protects against names that their owners point to us: Host must be an address, localhost or ours.
 */
bool mrt_serve_is_our_host(const struct mrt_serve *serve, const char *host);
/* The request comes from a page of the same host, or from no page. */
bool mrt_serve_is_our_page(const struct mrt_http_request *request);

/* ------------------------------------------------------------ look.c */

/* Body of the looking thread; `argument` is the mrt_serve. */
void *mrt_serve_look(void *argument);
/* Hands a request to the looking thread, which then owns it. Under the mutex. */
void mrt_serve_add_job(struct mrt_serve *serve, struct mrt_serve_job *job);
/* Answers all that has not been. Under the mutex. */
void mrt_serve_end_jobs(struct mrt_serve *serve);

/* --------------------------------------------------------- request.c */

bool mrt_serve_handle(void *argument, const struct mrt_http_request *request,
                      struct mrt_http_answer *answer);
/* An answer of JSON: {"error": text}. */
void mrt_serve_refuse(struct mrt_http_answer *answer, unsigned status, const char *text);

/* -------------------------------------- json.c, metrics.c: under the mutex */

/* All but the locks themselves; of the samples those from number `from` on. */
void mrt_serve_print_overview(const struct mrt_serve *serve, FILE *out, uint64_t from);
/* The first `limit` locks, in order, with `filter` in name or owner. */
void mrt_serve_print_locks(struct mrt_serve *serve, FILE *out, enum mrt_table_order order,
                           const char *filter, size_t limit);
void mrt_serve_print_lock(const struct mrt_serve *serve, FILE *out, const char *name);
void mrt_serve_print_metrics(const struct mrt_serve *serve, FILE *out);

#endif
