/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of bytes between a store in a client and fake servers: what the store's socket calls
 * meet. Bytes come in order and late, in pieces, or not at all: a cut either resets a stream
 * (what is on its way to the client is lost, what is on its way to the server arrives or
 * not), or holds it up, so that only silence tells. Data that a client sent before it closed a
 * stream still arrives, perhaps long after that sent on the next one.
 *
 * Threads: none, as everywhere here.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "host.h"

/* So long after its server has gone without a word a connection breaks. */
#define STREAM_KEEP_ALIVE (10 * MRT_SECOND)

struct parcel;

struct stream {
    struct host_socket socket; /* first */
    struct stream *next;       /* of the client's */
    struct client *client;
    int server;             /* its number; -1: not connected to any */
    mrt_time up, down;      /* nothing may arrive before */
    mrt_time held_up_until; /* in the net */
    bool refused, broken, ended, closed;
    bool deaf;        /* the server has forgotten it */
    void *connection; /* the server's side; NULL: not accepted, or over */
    struct parcel *travelling;
    char *inbox; /* arrived at the client, not read */
    size_t used, room;
};

/* The server's side: what it says, and that it hangs up, orderly or not. */
void stream_say(struct stream *stream, const char *bytes, size_t size);
void stream_end(struct stream *stream);
void stream_break(struct stream *stream);
/* It says nothing more, and listens. */
void stream_shut(struct stream *stream);
/* A server has gone, and all its streams with it; what it has said still arrives, or not. */
void streams_end_server(struct world *world, int server);
void streams_end_client(struct client *client, int server);
/* All that is under way arrives; false: there is nothing. */
bool stream_hurry(struct stream *stream);
/* The server has gone: nothing under way arrives. The client gets an end, or finds out at its next
 * request; at the latest when the system's keep-alive gives up. */
void stream_forget(struct stream *stream, bool silently);

/* The client's net goes down; one stream of any client is held up. */
void streams_cut(struct world *world, struct client *client);
void streams_hold_up(struct world *world, mrt_time until);
void streams_free(struct client *client);

/* Functions that the servers of a model provide. */
struct stream_server {
    bool (*is_down)(struct world *world, int server);
    void *(*accept)(struct world *world, struct stream *stream);
    void (*receive)(void *connection, const char *bytes, size_t size);
    void (*hang_up)(void *connection);
};

#endif
