/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake Redis servers, as many as the world has: what their connections say is parsed, and done by
 * commands and by the very scripts that ship, in Lua (redis_script.c). Each has a clock of its
 * own, which may be set; each may stand still, break down, and forget.
 *
 *   redis_data.c     keys, and the bytes of replies
 *   redis_command.c  commands
 *   redis_script.c   EVAL and EVALSHA
 *   redis_server.c   connections: requests in, replies and messages out
 *   server_redis.c   servers of a world: their troubles, and the truth about them
 */
#ifndef SIM_REDIS_SERVER_H
#define SIM_REDIS_SERVER_H

#include "redis_data.h"
#include "stream.h"

#define REDIS_SERVERS_MAX 5
#define REDIS_SCRIPTS 16
#define REDIS_BASE "{mortise/}"

struct redis_world;

struct redis_channel {
    struct redis_channel *next;
    struct slice name; /* owned */
};

struct redis_connection {
    struct redis_connection *next;
    struct redis_server *server;
    struct stream *stream;
    struct peer *peer;
    int64_t id;
    struct redis_channel *channels;
    int channel_count;
    struct reply inbox;    /* received, not done */
    struct reply said;     /* not sent yet */
    struct slice last_set; /* owned: the key of its newest SET */
    bool closing;          /* by a command of another */
};

struct redis_server {
    struct task thaw; /* first */
    struct redis_world *redis;
    int number;
    struct redis_data data;
    struct redis_connection *connections;
    int64_t next_id;
    int64_t step_ms; /* its clock is set so far from the world's */
    int64_t started; /* in ms, by its clock; 0: long ago */
    int64_t forgot;  /* the same, when it has forgotten everything; 0: never */
    mrt_time frozen_until, down_until;
    bool knows[REDIS_SCRIPTS];
};

/* The client that a session belongs to, at each server. */
struct redis_session {
    struct redis_session *next;
    char name[33];
    struct peer *peer;
};

struct redis_world {
    struct task trouble; /* first */
    struct world *world;
    int count;
    struct redis_server servers[REDIS_SERVERS_MAX];
    struct redis_session *sessions;
};

struct redis_world *redis_of(struct world *world);
int64_t redis_us(const struct redis_server *server);
int64_t redis_ms(const struct redis_server *server);

/* redis_command.c: does a command, whose reply is added to what is there. `connection`: NULL for a
   script, or for the simulator's own. */
struct redis_call {
    struct redis_server *server;
    struct redis_connection *connection;
    const struct slice *words;
    size_t count;
    struct reply *reply;
};
void redis_do(const struct redis_call *call);

/* redis_script.c */
void redis_eval(const struct redis_call *call);
/* Runs a script of the store's by its number, as an operator's program does. */
void redis_run(struct redis_server *server, int script, const char *key,
               const char *const *arguments, size_t count, struct reply *reply);

/* redis_server.c */
void *redis_accept(struct world *world, struct stream *stream);
void redis_receive(void *connection, const char *bytes, size_t size);
void redis_hang_up(void *connection);
void redis_publish(struct redis_server *server, struct slice channel, struct slice message,
                   struct reply *reply);
void redis_subscribe(const struct redis_call *call, bool on);
/* Connections are to end: the one of this number, or that peer's; how many. Then they do. */
int redis_kill(struct redis_server *server, int64_t id, const struct peer *peer);
void redis_bury_killed(struct redis_server *server);
/* Ends all; silently, or so that the clients are told. */
void redis_disconnect_all(struct redis_server *server, bool silently);
/* Executes the requests that have gathered while it stood still. */
void redis_catch_up(struct redis_server *server);
/* A session begins. */
void redis_note_session(struct redis_server *server, struct slice name, struct peer *peer);

#endif
