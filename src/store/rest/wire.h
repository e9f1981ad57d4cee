/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a server that answers in JSON, by libcurl's multi interface. Its sockets are in one
 * epoll descriptor, and its timer is `next`, so no function here waits. A family says by its hooks
 * what an answer means, and what a call shows of the client's rights.
 *
 * A call goes to the host that answered last. A host that cannot be connected to is followed by the
 * next one in the URI until all have been tried. A host that has been sent a call, and does not
 * answer, leaves the outcome unknown, and the next call goes to the next host. A call that is
 * `once` is sent once: libcurl would send it again if a connection that it kept breaks before an
 * answer, and a refusal of the second would hide that the first was done. At most
 * MRT_REST_CALLS_MAX calls are under way, beside streams and urgent ones; the others wait for their
 * turn.
 *
 * A server is not trusted: a reply, or a line of a stream, has a largest size, and no redirection
 * is followed.
 *
 * Threads: a wire is its owner's. It takes nothing from the environment (proxies, .netrc).
 */
#ifndef MRT_STORE_REST_WIRE_H
#define MRT_STORE_REST_WIRE_H

#include "base/list.h"
#include "base/time.h"
#include "base/traffic.h"
#include "store/kit/address.h"
#include "store/rest/text.h"

#include <curl/curl.h>

#define MRT_REST_REPLY_MAX ((size_t)16 << 20)
#define MRT_REST_SOCKETS_MAX 1024
#define MRT_REST_CALLS_MAX 16
#define MRT_REST_TOKEN_MAX 8192

enum mrt_rest_outcome {
    MRT_REST_DONE,    /* `json` is the reply */
    MRT_REST_REFUSED, /* nothing was done: `error` and `text` */
    MRT_REST_AWAY,    /* no host could be connected to: the same */
    MRT_REST_UNKNOWN  /* it may have been done */
};

/* Valid during the callback. */
struct mrt_rest_reply {
    enum mrt_rest_outcome outcome;
    struct json_object *json;
    int error;        /* of mortise.h */
    const char *text; /* for people */
};
typedef void mrt_rest_done(void *argument, const struct mrt_rest_reply *reply);

struct mrt_rest_wire;
struct mrt_rest_call {
    TAILQ_ENTRY(mrt_rest_call) link;
    struct mrt_rest_wire *wire;
    CURL *easy;
    struct curl_slist *headers;
    const char *method;
    char *path;
    struct mrt_rest_text body, reply;
    mrt_time limit;
    size_t host, tried;
    bool held;           /* until the wire is ready, or until others have ended */
    bool urgent;         /* waits until the wire is ready alone */
    bool apart;          /* goes out although the wire is not ready */
    bool once;           /* is not sent again by libcurl */
    bool again;          /* it has been begun anew, as a verdict had it */
    bool excess;         /* the reply was too large */
    bool begun;          /* libcurl has a connection for it */
    mrt_rest_done *line; /* of a stream: each line but the last */
    mrt_rest_done *done;
    void *argument;
};

/* A family's reading of a whole answer. */
struct mrt_rest_verdict {
    enum mrt_rest_outcome outcome; /* not AWAY */
    int error;
    const char *text, *advice; /* what the server said, and what goes behind it */
    bool again;                /* nothing was done: the call is begun anew, once */
    bool next_host;            /* the next call goes to another host */
};

struct mrt_rest_family {
    const char *name; /* "etcd" */
    /* Whether calls may be sent; if not, it has what lacks fetched, and calls mrt_rest_release
       then. NULL: they may. */
    bool (*ready)(struct mrt_rest_wire *wire);
    /* Writes the text behind "Authorization: "; "": the header is left out. */
    void (*authorize)(const struct mrt_rest_call *call, char text[MRT_REST_TOKEN_MAX]);
    /* Reads an answer; `json` NULL: it is none. The verdict is zero before. */
    void (*judge)(const struct mrt_rest_call *call, long status, struct json_object *json,
                  struct mrt_rest_verdict *verdict);
    /* The part of a stream's line that its owner gets; NULL: the line breaks the stream. */
    struct json_object *(*take_line)(struct json_object *json);
};

/* Where calls go. */
struct mrt_rest_server {
    const struct mrt_rest_family *family;
    const struct mrt_host *hosts;
    size_t host_count;
    mrt_time connect;
    int tls;                                 /* enum mrt_address_tls */
    const char *tls_ca, *tls_cert, *tls_key; /* paths; "" or NULL: none */
};

struct mrt_rest_wire {
    struct mrt_rest_server server;
    void *owner; /* for the hooks */
    CURLM *multi;
    int epoll;
    mrt_time timer; /* libcurl's */
    size_t host;
    TAILQ_HEAD(mrt_rest_calls, mrt_rest_call) calls, held;
    unsigned running; /* that are not urgent */
    struct mrt_traffic traffic;
    bool abandoned;
    unsigned char sockets[MRT_REST_SOCKETS_MAX / 8]; /* of libcurl's: those that are open */
};

/* As a wire that has been closed. */
void mrt_rest_wire_init(struct mrt_rest_wire *wire);
/* MORTISE_OK, ENOMEM. The texts and hosts of the server are the owner's, and stay. */
int mrt_rest_wire_open(struct mrt_rest_wire *wire, const struct mrt_rest_server *server,
                       void *owner);
/* Drops all calls without their callbacks. */
void mrt_rest_wire_close(struct mrt_rest_wire *wire);
/* In a forked child: the connections are the parent's, and lead nowhere here. */
void mrt_rest_wire_abandon(struct mrt_rest_wire *wire);

struct mrt_rest_request {
    const char *method; /* "GET", "PUT", "POST" */
    const char *path;   /* behind the host's slash; copied */
    mrt_time limit;     /* how long its answer may take; unused by a stream */
    bool urgent, apart, once;
    mrt_rest_done *line; /* of a stream: each line; it ends when the server ends it */
    mrt_rest_done *done;
    void *argument;
};
/* Sends a call; takes the text's bytes, NULL: no body. NULL: no memory; the callback is not
   called. */
struct mrt_rest_call *mrt_rest_send(struct mrt_rest_wire *wire,
                                    const struct mrt_rest_request *request,
                                    struct mrt_rest_text *body);
/* Not from a callback of the call itself. */
void mrt_rest_cancel(struct mrt_rest_call *call);
/* Sends calls that were held, as far as they may be. */
void mrt_rest_release(struct mrt_rest_wire *wire);
/* Ends all calls that are held with this reply. */
void mrt_rest_refuse_held(struct mrt_rest_wire *wire, const struct mrt_rest_reply *reply);

void mrt_rest_wire_process(struct mrt_rest_wire *wire, mrt_time now);
/* Sends what was added since; whether a call has ended meanwhile. */
bool mrt_rest_wire_kick(struct mrt_rest_wire *wire);
/* Whether all calls have left. */
bool mrt_rest_wire_is_sent(const struct mrt_rest_wire *wire);
mrt_time mrt_rest_wire_next(const struct mrt_rest_wire *wire);

#endif
