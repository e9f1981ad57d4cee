/*
 * One thread, one poll. Every connection is a pair of sockets with a buffer for each
 * way; whole frames are taken out of a buffer, looked at and passed on. The first frame
 * each way is the handshake; after it a request begins with its number and operation, a
 * reply with its number.
 */
#include "live/zk_proxy.h"

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 32
#define BUFFER_SIZE (1 << 20)
#define PENDING_MAX 65536

struct way {
    int from, to;
    bool greeted;
    size_t length;
    unsigned char *buffer;
};

struct pair {
    struct way up, down;
    struct {
        int32_t number;
        int32_t opcode;
    } pending[PENDING_MAX];
    size_t pending_count;
};

struct zk_proxy {
    int listener;
    uint16_t port, upstream;
    pthread_t thread;
    pthread_mutex_t mutex; /* what follows */
    bool stop, cut, stalled, swallowed;
    int swallow; /* operation; -1: none */
    unsigned counts[ZK_OPCODES], connections;
    struct pair *pairs[PAIRS_MAX];
};

static int32_t read_int(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
                     bytes[3]);
}

static void close_pair(struct zk_proxy *proxy, int at)
{
    struct pair *pair = proxy->pairs[at];
    close(pair->up.from);
    close(pair->up.to);
    free(pair->up.buffer);
    free(pair->down.buffer);
    free(pair);
    proxy->pairs[at] = NULL;
}

static int dial(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void take_connection(struct zk_proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC), at = 0;
    int server = client < 0 ? -1 : dial(proxy->upstream);
    while (at < PAIRS_MAX && proxy->pairs[at])
        at++;
    if (server < 0 || at == PAIRS_MAX) {
        close(client);
        return;
    }
    struct pair *pair = calloc(1, sizeof *pair);
    pair->up = (struct way){.from = client, .to = server, .buffer = malloc(BUFFER_SIZE)};
    pair->down = (struct way){.from = server, .to = client, .buffer = malloc(BUFFER_SIZE)};
    proxy->pairs[at] = pair;
    proxy->connections++;
}

static void note_request(struct zk_proxy *proxy, struct pair *pair, const unsigned char *body)
{
    int32_t opcode = read_int(body + 4);
    if (opcode < 0 || opcode >= ZK_OPCODES)
        return;
    proxy->counts[opcode]++;
    assert_true(pair->pending_count < PENDING_MAX);
    pair->pending[pair->pending_count].number = read_int(body);
    pair->pending[pair->pending_count++].opcode = opcode;
}

/* False: this reply is to be swallowed. */
static bool note_reply(struct zk_proxy *proxy, struct pair *pair, const unsigned char *body)
{
    int32_t number = read_int(body), opcode = -1;
    for (size_t i = 0; i < pair->pending_count; i++)
        if (pair->pending[i].number == number) {
            opcode = pair->pending[i].opcode;
            memmove(&pair->pending[i], &pair->pending[i + 1],
                    (pair->pending_count - i - 1) * sizeof pair->pending[0]);
            pair->pending_count--;
            break;
        }
    if (opcode < 0 || opcode != proxy->swallow)
        return true;
    proxy->swallow = -1;
    proxy->swallowed = true;
    return false;
}

/* Passes what frames are whole; false: the pair is to be closed. */
static bool pass(struct zk_proxy *proxy, struct pair *pair, struct way *way)
{
    ssize_t got = read(way->from, way->buffer + way->length, BUFFER_SIZE - way->length);
    if (got <= 0)
        return false;
    way->length += (size_t)got;
    while (way->length >= 4) {
        size_t size = 4 + (size_t)read_int(way->buffer);
        if (way->length < size)
            break;
        if (way->greeted && way == &pair->up)
            note_request(proxy, pair, way->buffer + 4);
        if (way->greeted && way == &pair->down && !note_reply(proxy, pair, way->buffer + 4))
            return false;
        way->greeted = true;
        if (send(way->to, way->buffer, size, MSG_NOSIGNAL) != (ssize_t)size)
            return false;
        way->length -= size;
        memmove(way->buffer, way->buffer + size, way->length);
    }
    return true;
}

static void turn(struct zk_proxy *proxy)
{
    struct pollfd polled[1 + 2 * PAIRS_MAX] = {{proxy->listener, POLLIN, 0}};
    for (int i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = proxy->pairs[i];
        bool listens = pair && !proxy->stalled;
        polled[1 + 2 * i] = (struct pollfd){listens ? pair->up.from : -1, POLLIN, 0};
        polled[2 + 2 * i] = (struct pollfd){listens ? pair->down.from : -1, POLLIN, 0};
    }
    pthread_mutex_unlock(&proxy->mutex);
    poll(polled, 1 + 2 * PAIRS_MAX, 5);
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = proxy->pairs[i];
        if (!pair)
            continue;
        bool lives = !proxy->cut;
        if (lives && polled[1 + 2 * i].revents && !proxy->stalled)
            lives = pass(proxy, pair, &pair->up);
        if (lives && polled[2 + 2 * i].revents && !proxy->stalled)
            lives = pass(proxy, pair, &pair->down);
        if (!lives)
            close_pair(proxy, i);
    }
    proxy->cut = false;
    if (polled[0].revents)
        take_connection(proxy);
}

static void *run(void *argument)
{
    struct zk_proxy *proxy = argument;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stop)
        turn(proxy);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i])
            close_pair(proxy, i);
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

struct zk_proxy *zk_proxy_start(uint16_t port)
{
    struct zk_proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    assert_non_null(proxy);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->upstream = port;
    proxy->swallow = -1;
    pthread_mutex_init(&proxy->mutex, NULL);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(proxy->listener, 16), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
    proxy->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
    return proxy;
}

uint16_t zk_proxy_port(const struct zk_proxy *proxy)
{
    return proxy->port;
}

unsigned zk_proxy_count(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    pthread_mutex_lock(&proxy->mutex);
    unsigned count = proxy->counts[opcode];
    pthread_mutex_unlock(&proxy->mutex);
    return count;
}

unsigned zk_proxy_connections(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    unsigned connections = proxy->connections;
    pthread_mutex_unlock(&proxy->mutex);
    return connections;
}

void zk_proxy_reset_counts(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    memset(proxy->counts, 0, sizeof proxy->counts);
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_swallow(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->swallow = (int)opcode;
    proxy->swallowed = false;
    pthread_mutex_unlock(&proxy->mutex);
}

bool zk_proxy_swallowed(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    bool swallowed = proxy->swallowed;
    pthread_mutex_unlock(&proxy->mutex);
    return swallowed;
}

void zk_proxy_cut(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->cut = true;
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_stall(struct zk_proxy *proxy, bool stalled)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->stalled = stalled;
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_stop(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->stop = true;
    pthread_mutex_unlock(&proxy->mutex);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}
