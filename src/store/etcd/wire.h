/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of etcd's JSON gateway, by libcurl's multi interface. Its sockets are in one epoll
 * descriptor, and its timer is `next`, so no function here waits.
 *
 * A call goes to the host that answered last. A host that cannot be connected to is followed by the
 * next one in the URI until all have been tried. A host that has been sent a call, and does not
 * answer, leaves the outcome unknown, and the next call goes to the next host. A transaction is
 * sent once: libcurl would send it again if a connection that it kept breaks before an answer, and
 * a refusal of the second would hide that the first was done. With a user, calls wait until a token
 * has been fetched by the password; a token that is refused is fetched anew, once a call. A server
 * computes long for a password: with many clients that log in at once none might have its answer in
 * time, so each gives the next attempt twice as long. At most MRT_ETCD_CALLS_MAX calls are under
 * way, beside streams and urgent ones; the others wait for their turn.
 *
 * A server is not trusted: a reply, or a line of a stream, has a largest size.
 *
 * Threads: a wire is its owner's. It takes nothing from the environment (proxies, .netrc).
 */
#ifndef MRT_STORE_ETCD_WIRE_H
#define MRT_STORE_ETCD_WIRE_H

#include "base/list.h"
#include "base/time.h"
#include "base/traffic.h"
#include "store/etcd/text.h"
#include "store/etcd/uri.h"

#include <curl/curl.h>

#define MRT_ETCD_REPLY_MAX ((size_t)16 << 20)
#define MRT_ETCD_SOCKETS_MAX 1024
#define MRT_ETCD_CALLS_MAX 16

enum mrt_etcd_outcome {
    MRT_ETCD_DONE,    /* `json` is the reply */
    MRT_ETCD_REFUSED, /* nothing was done: `error` and `text` */
    MRT_ETCD_AWAY,    /* no host could be connected to: the same */
    MRT_ETCD_UNKNOWN  /* it may have been done */
};

/* Valid during the callback. */
struct mrt_etcd_reply {
    enum mrt_etcd_outcome outcome;
    struct json_object *json;
    int error;        /* of mortise.h */
    const char *text; /* for people */
};
typedef void mrt_etcd_done(void *argument, const struct mrt_etcd_reply *reply);

struct mrt_etcd_wire;
struct mrt_etcd_call {
    TAILQ_ENTRY(mrt_etcd_call) link;
    struct mrt_etcd_wire *wire;
    CURL *easy;
    struct curl_slist *headers;
    const char *path;
    struct mrt_etcd_text body, reply;
    mrt_time limit;
    size_t host, tried;
    bool held;           /* until there is a token, or until others have ended */
    bool urgent;         /* waits for a token alone */
    bool again;          /* with a new token */
    bool excess;         /* the reply was too large */
    bool begun;          /* libcurl has a connection for it */
    mrt_etcd_done *line; /* of a stream: each line but the last */
    mrt_etcd_done *done;
    void *argument;
};

struct mrt_etcd_wire {
    const struct mrt_etcd_address *address;
    const char *secret;
    CURLM *multi;
    int epoll;
    mrt_time timer; /* libcurl's */
    size_t host;
    char token[1024]; /* "": none */
    bool open;        /* the server knows no users */
    struct mrt_etcd_call *login;
    unsigned late_logins; /* one after another that got no answer in time */
    TAILQ_HEAD(mrt_etcd_calls, mrt_etcd_call) calls, held;
    unsigned running; /* that are not urgent */
    struct mrt_traffic traffic;
    bool abandoned;
    unsigned char sockets[MRT_ETCD_SOCKETS_MAX / 8]; /* of libcurl's: those that are open */
};

/* MORTISE_OK, ENOMEM, EINTERNAL. The address and the secret are the owner's. */
int mrt_etcd_wire_open(struct mrt_etcd_wire *wire, const struct mrt_etcd_address *address,
                       const char *secret);
/* Drops all calls without their callbacks. */
void mrt_etcd_wire_close(struct mrt_etcd_wire *wire);
/* In a forked child: the connections are the parent's, and lead nowhere here. */
void mrt_etcd_wire_abandon(struct mrt_etcd_wire *wire);

/* Sends a call; takes the text's bytes. `limit`: how long its answer may take; negative: so long,
   and it is urgent. NULL: no memory; the callback is not called. */
struct mrt_etcd_call *mrt_etcd_send(struct mrt_etcd_wire *wire, const char *path,
                                    struct mrt_etcd_text *body, mrt_time limit, mrt_etcd_done *done,
                                    void *argument);
/* The same for a stream of lines, which ends when the server ends it: then `done` is called. */
struct mrt_etcd_call *mrt_etcd_stream(struct mrt_etcd_wire *wire, const char *path,
                                      struct mrt_etcd_text *body, mrt_etcd_done *line,
                                      mrt_etcd_done *done, void *argument);
/* Not from a callback of the call itself. */
void mrt_etcd_cancel(struct mrt_etcd_call *call);

void mrt_etcd_wire_process(struct mrt_etcd_wire *wire, mrt_time now);
/* Sends what was added since; whether a call has ended meanwhile. */
bool mrt_etcd_wire_kick(struct mrt_etcd_wire *wire);
/* Whether all calls have left. */
bool mrt_etcd_wire_is_sent(const struct mrt_etcd_wire *wire);
mrt_time mrt_etcd_wire_next(const struct mrt_etcd_wire *wire);

#endif
