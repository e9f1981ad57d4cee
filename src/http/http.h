/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small web server as a module, mortise-http.so: what a program needs of HTTP, and nothing of
 * what this one says by it. The command loads it for `serve` alone, so that nobody else's
 * start pays for a web server's libraries.
 *
 * Limits: so many connections at a time, and a client that comes then waits; a header of
 * MRT_HTTP_HEADER_MAX bytes; no bodies in requests (413); so many seconds for a request from the
 * first byte to the last of its answer, however slowly it trickles, and so many of silence. Where
 * the handler trusts some clients, a stranger has so many seconds for its header, and when seven
 * of eight connections are taken, the oldest of a stranger is closed for each that comes. One
 * thread of its own serves all connections, and waits for none of them.
 *
 * The handler is called on that thread and must not block. It answers at once, or keeps the
 * exchange and has `answer` called later, by any thread, once, and before `stop`.
 */
#ifndef MRT_HTTP_HTTP_H
#define MRT_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define MRT_HTTP_HEADER_MAX 16384

struct mrt_http;
struct mrt_http_exchange;

/* Texts are valid during the call; NULL: there is none. */
struct mrt_http_request {
    const char *method, *path;
    const char *host, *origin, *site, *authorization; /* headers; site: Sec-Fetch-Site */
    struct mrt_http_exchange *exchange;
};

struct mrt_http_answer {
    unsigned status;
    const char *type; /* Content-Type */
    char *body;       /* from malloc, and freed by the server; */
    const void *text; /* or, if that is NULL, static */
    size_t size;
    const char *name, *value; /* an additional header; NULL: none */
};

/* False: the answer comes later. */
typedef bool mrt_http_handler(void *argument, const struct mrt_http_request *request,
                              struct mrt_http_answer *answer);

struct mrt_http_options {
    int listener; /* a socket that listens; the server closes it */
    unsigned connections_max, request_seconds, idle_seconds;
    unsigned stranger_seconds;       /* 0: the handler trusts no connection more than others */
    const char *const (*headers)[2]; /* of every answer, ended by a NULL */
    mrt_http_handler *handler;
    void *argument;
};

struct mrt_http_ops {
    const char *version; /* of mortise: a module goes with the command it was built with */
    /* NULL: errno says why. */
    struct mrt_http *(*start)(const struct mrt_http_options *options);
    /* The value of ?name=value; NULL: none, or it holds a NUL. Inside the handler alone. */
    const char *(*argument)(const struct mrt_http_request *request, const char *name);
    /* The client has shown that it may ask: its connection is kept when there are too many. Inside
       the handler alone. */
    void (*trust)(const struct mrt_http_request *request);
    void (*answer)(struct mrt_http_exchange *exchange, const struct mrt_http_answer *answer);
    /* Closes connections whose time is up; to be called now and then. */
    void (*cut_slow)(struct mrt_http *http);
    /* Ends at once, whatever connections there are. */
    void (*stop)(struct mrt_http *http);
};

#define MRT_HTTP_ENTRY "mortise_http_module"
typedef const struct mrt_http_ops *mrt_http_entry(void);

#endif
