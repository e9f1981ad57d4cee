/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host of a real store in a client: the object code that ships, on virtual time. Functions that
 * the linker puts in the place of the system's answer its system calls (clock, entropy, epoll
 * descriptors, sockets, a thread to close on). The other side of a socket is the store's own
 * matter: zk_library.c, stream.c.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "world.h"

#include <sys/epoll.h>

/* A connection, as its descriptor shows it; embedded, as the first member, in what it is. */
struct host_socket {
    mrt_time open_at; /* when the connecting ends, well or badly */
    int64_t uid;      /* of the other side's user; 0: this one's */
    uint32_t (*state)(const struct host_socket *socket); /* EPOLL bits, once it has */
    void (*close)(struct host_socket *socket);
    void (*shut)(struct host_socket *socket);
    /* Of one that is no stream. */
    ssize_t (*send)(struct host_socket *socket, const void *bytes, size_t size);
    ssize_t (*receive)(struct host_socket *socket, void *bytes, size_t size);
};

/* The stores that are simulated as they ship. */
extern const struct mrt_store_ops mrt_zookeeper_store, mrt_redis_store, mrt_quorum_store;

/* A kind of real store. */
struct host_kind {
    const struct mrt_store_ops *ops;
    mrt_store_finder *find; /* of a quorum's members' stores */
    void (*write_uri)(const struct world *world, char *text, size_t size);
    /* The client's net goes down. */
    void (*cut)(struct world *world, struct client *client);
    /* After each call of it; NULL: there is nothing to check. */
    void (*check)(struct world *world, const struct client *client);
    /* At the end of a run: its connections. */
    void (*free)(struct client *client);
};

#define HOST_SOCKETS_MAX 40
#define HOST_EPOLLS_MAX 16
#define HOST_DESCRIPTORS (1 << 20) /* no descriptor of the system's is that high */
#define HOST_FIRST_SOCKET (HOST_DESCRIPTORS + HOST_EPOLLS_MAX)

struct host {
    struct task turn; /* first */
    struct client *client;
    const struct host_kind *kind;
    const struct mrt_store_ops *ops; /* the kind's, or what it has chosen */
    struct mrt_store *store;
    struct host_told { /* by the store, and not yet to the engine */
        struct mrt_event event;
        uint64_t value;
    } * events;
    int event_count, event_room, event_next;
    bool dispatching;
    bool due;   /* its library has something, behind no socket */
    bool dead;  /* the process has died: nothing it does matters */
    int epolls; /* descriptors given out */
    struct {
        int outer; /* that it is polled by; 0: none */
        epoll_data_t data;
    } inner[HOST_EPOLLS_MAX];
    struct host_slot {
        struct host_socket *socket; /* NULL: free */
        int epoll;                  /* that it is polled by; -1: none */
        uint32_t mask;
        epoll_data_t data;
    } slots[HOST_SOCKETS_MAX];
    int slot_count; /* behind the last that was ever used */
    struct host *next_dead;
};

/* The party whose code runs; NULL: the simulator's own. */
extern struct host *host_current;

/* NULL: a client of this model has no real store. */
const struct host_kind *host_kind_of(int64_t model);
/* For how long a store waits for a connection. */
int64_t host_connect_ms(const struct profile *profile);
extern const struct host_kind zk_host_kind, redis_host_kind, redlock_host_kind, quorum_host_kind,
    etcd_host_kind;
const struct host_kind *pg_host_kind(void);

/* False: it cannot reach its server. */
bool host_open(struct world *world, struct client *client, const struct host_kind *kind);
void host_submit(struct world *world, struct client *client, const struct mrt_command *command);
/* Hands over the next event of the command submitted last; false: there is none left. */
bool host_goes_on(struct world *world, struct client *client);
/* Something may be read. */
void host_ready(struct client *client);
/* `died`: without a message to the others. */
void host_close(struct client *client, bool died);
/* Closed ones: kept until the end, because a callback of one may close it. */
void hosts_free(struct client *client);

/* A descriptor, the lowest that is free; what it is; and none any more. */
int host_socket_new(struct host *host, struct host_socket *socket);
/* Whether any that is polled has something. */
bool host_has_more(const struct host *host);
struct host_socket *host_socket_of(const struct host *host, int descriptor);
void host_socket_close(struct host *host, int descriptor);

#endif
