/*
 * The host of the real ZooKeeper store: the object code that ships, on virtual time. What
 * it asks of the system (its clock, one epoll descriptor, sockets, a thread to close
 * on) is answered here, by functions that the linker puts in the place of the system's;
 * what it asks of the client library by zk_library.c.
 */
#ifndef SIM_ZK_HOST_H
#define SIM_ZK_HOST_H

#include "world.h"

struct zk_ensemble;
struct zk_wire;

#define ZK_SOCKETS_MAX 8

struct zk_host {
    struct task turn; /* first */
    struct client *client;
    struct mrt_store *store;
    struct zk_told { /* by the store, and not yet to the engine */
        struct mrt_event event;
        uint64_t value;
    } * events;
    int event_count, event_room, event_next;
    bool dispatching;
    bool dead; /* the process has died: nothing it does matters */
    struct zk_wire *sockets[ZK_SOCKETS_MAX];
    uint32_t masks[ZK_SOCKETS_MAX]; /* as the epoll descriptor has them */
    bool polled[ZK_SOCKETS_MAX];
    struct zk_host *next_dead;
};

/* Whose code runs; NULL: the simulator's own. */
extern struct zk_host *zk_host_current;

struct zk_ensemble *zk_ensemble_of(struct world *world);

void zk_host_open(struct world *world, struct client *client);
void zk_host_submit(struct world *world, struct client *client, const struct mrt_command *command);
/* Something may be read. */
void zk_host_ready(struct client *client);
/* `died`: without a word to anybody. */
void zk_host_close(struct client *client, bool died);
/* Those that are closed: kept until the end, for one may be closed by what it tells. */
void zk_hosts_free(struct client *client);

/* zk_wire.c: the client's net goes down; and at the end of a run. */
void zk_wires_cut(struct world *world, struct client *client);
void zk_wires_free(struct client *client);

/* A descriptor for a wire, the lowest that is free; and for none any more. */
int zk_host_socket(struct zk_host *host, struct zk_wire *wire);
void zk_host_close_socket(struct zk_host *host, int socket);

#endif
