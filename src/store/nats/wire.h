/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a NATS server, each answered once. A message is published with an inbox of the wire's
 * as the address of the reply; the last part of that subject is the request's number.
 *
 * A request that comes while there is no connection waits for one. If none can be had it ends AWAY:
 * it has not been sent. A request that has been sent when the connection breaks, or that has no
 * answer in time, ends UNKNOWN. A server that does not answer is left for the next of the URI.
 *
 * At most MRT_NATS_CALLS_MAX requests are under way, beside urgent ones; the others wait for their
 * turn, since the server answers reads one after another.
 *
 * A request is sent once. A publish that expects the sequence of the subject's newest message
 * (`expected`) is done only if that is still so, whenever it arrives.
 *
 * Threads: a wire is its owner's; link.h has what libnats does.
 */
#ifndef MRT_STORE_NATS_WIRE_H
#define MRT_STORE_NATS_WIRE_H

#include "base/list.h"
#include "base/time.h"
#include "base/traffic.h"
#include "store/nats/link.h"

#include <json-c/json.h>

#define MRT_NATS_CALLS_MAX 64
#define MRT_NATS_ANY (-1) /* whatever the sequence of the subject's newest message */
#define MRT_NATS_WRONG_SEQUENCE 10071
#define MRT_NATS_NO_MESSAGE 10037
#define MRT_NATS_NO_STREAM 10059

enum mrt_nats_outcome {
    MRT_NATS_DONE,    /* `json` is the reply */
    MRT_NATS_REFUSED, /* nothing was done: `error` and `text`, and the server's `code` */
    MRT_NATS_AWAY,    /* there is no connection, or nobody behind it: the same */
    MRT_NATS_UNKNOWN  /* it may have been done */
};

/* Valid during the callback. */
struct mrt_nats_reply {
    enum mrt_nats_outcome outcome;
    struct json_object *json;
    int error;         /* of mortise.h */
    int code;          /* the server's; 0: none */
    uint64_t sequence; /* DONE of a publish: its own; WRONG_SEQUENCE: the newest; 0: none */
    const char *text;  /* for people */
};
typedef void mrt_nats_done(void *argument, const struct mrt_nats_reply *reply);

struct mrt_nats_call {
    TAILQ_ENTRY(mrt_nats_call) link;
    uint64_t number;
    char *subject;
    char *bytes; /* and a zero behind them */
    size_t size;
    int64_t expected;
    mrt_time limit, deadline;
    bool sent, urgent;
    mrt_nats_done *done;
    void *argument;
};

struct mrt_nats_wire {
    const struct mrt_nats_address *address;
    const char *secret;
    int epoll, event;
    char inbox[64]; /* with a dot at the end */
    uint64_t numbers;
    size_t host;
    struct mrt_nats_connecting *connecting;
    struct mrt_nats_link *link; /* NULL: there is no connection */
    bool polls_writes;
    unsigned unanswered; /* reads since the last answer */
    unsigned generation; /* of the connection */
    unsigned failures;
    mrt_time again;    /* no attempt to connect before */
    mrt_time patience; /* with `connecting`, until then */
    uint64_t chance;
    TAILQ_HEAD(mrt_nats_calls, mrt_nats_call) calls, held; /* sent, and not yet */
    unsigned under_way;                                    /* that are not urgent */
    struct mrt_traffic traffic;
};

/* MORTISE_OK, ENOMEM, EINTERNAL. The address and the secret are the owner's. */
int mrt_nats_wire_open(struct mrt_nats_wire *wire, const struct mrt_nats_address *address,
                       const char *secret);
/* Drops all calls without their callbacks. */
void mrt_nats_wire_close(struct mrt_nats_wire *wire);
/* In a forked child: closes descriptors. */
void mrt_nats_wire_abandon(struct mrt_nats_wire *wire);

/* Publishes a copy of these bytes. `limit`: how long its answer may take; negative: so long, and it
   is urgent. False: no memory; the callback is not called. */
bool mrt_nats_publish(struct mrt_nats_wire *wire, const char *subject, int64_t expected,
                      const void *bytes, size_t size, mrt_time limit, mrt_nats_done *done,
                      void *argument);
/* Publishes without an answer, if there is a connection. */
void mrt_nats_tell(struct mrt_nats_wire *wire, const char *subject, const char *text);
/* Subscribes; NULL: there is no connection, or no memory. */
natsSubscription *mrt_nats_listen(struct mrt_nats_wire *wire, const char *subject);

/* Reads what has come, and ends what is too late. */
void mrt_nats_wire_process(struct mrt_nats_wire *wire, mrt_time now);
/* Sends what has been published. */
void mrt_nats_wire_flush(struct mrt_nats_wire *wire);
mrt_time mrt_nats_wire_next(const struct mrt_nats_wire *wire);

#endif
