/*
 * One thread, one poll. The client's first message has no type and is passed as it comes; after
 * it every message is a letter and a length. A flight ends with Sync, and the answer to it with
 * ReadyForQuery; a first ReadyForQuery greets.
 */
#include "live/pg_proxy.h"

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 64
#define BUFFER_SIZE (1 << 20)
#define FLIGHTS_MAX 1024

struct way {
    int from, to;
    bool started;         /* past what has no type */
    size_t length, whole; /* of the whole messages at its beginning */
    unsigned char *buffer;
};

struct pair {
    struct way up, down;
    bool held, left;          /* left: the client has gone, and what is held is still to be done */
    bool marked[FLIGHTS_MAX]; /* whose answer is to be swallowed */
    size_t flights;
};

struct pg_proxy {
    int listener;
    uint16_t port, upstream;
    pthread_t thread;
    pthread_mutex_t mutex; /* what follows */
    bool stop, cut, stalled, done;
    enum pg_fate fate;
    char part[64]; /* a statement's name as Bind has it */
    size_t part_length;
    unsigned flights, connections;
    struct pair *pairs[PAIRS_MAX];
};

static uint32_t read_length(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void close_pair(struct pg_proxy *proxy, int at)
{
    struct pair *pair = proxy->pairs[at];
    close(pair->up.from);
    close(pair->up.to);
    free(pair->up.buffer);
    free(pair->down.buffer);
    free(pair);
    proxy->pairs[at] = NULL;
}

static void take_connection(struct pg_proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(proxy->upstream)};
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC), at = 0;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (at < PAIRS_MAX && proxy->pairs[at])
        at++;
    if (at == PAIRS_MAX || connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        close(client);
        close(server);
        return;
    }
    struct pair *pair = calloc(1, sizeof *pair);
    pair->up = (struct way){.from = client, .to = server, .buffer = malloc(BUFFER_SIZE)};
    pair->down =
        (struct way){.from = server, .to = client, .started = true, .buffer = malloc(BUFFER_SIZE)};
    proxy->pairs[at] = pair;
    proxy->connections++;
}

/* Sends the whole messages, and moves the rest up. */
static bool pass_whole(struct way *way, bool sends)
{
    bool sent =
        !sends || send(way->to, way->buffer, way->whole, MSG_NOSIGNAL) == (ssize_t)way->whole;
    way->length -= way->whole;
    memmove(way->buffer, way->buffer + way->whole, way->length);
    way->whole = 0;
    return sent;
}

/* The type of the next message, which is then among the whole ones; 0: it is not all there. */
static int next_message(struct way *way)
{
    size_t left = way->length - way->whole, head = way->started ? 1 : 0;
    if (left < head + 4)
        return 0;
    size_t size = head + read_length(way->buffer + way->whole + head);
    if (left < size)
        return 0;
    int type = way->started ? way->buffer[way->whole] : 1;
    way->started = true;
    way->whole += size;
    return type;
}

static bool matches(const struct pg_proxy *proxy, const struct way *way)
{
    return proxy->fate != PG_PASS && !proxy->done &&
           memmem(way->buffer, way->whole, proxy->part, proxy->part_length);
}

/* False: the pair is to be closed. */
static bool pass_up(struct pg_proxy *proxy, struct pair *pair)
{
    int type;
    while (!pair->held && (type = next_message(&pair->up)) != 0) {
        if (type == 'S') {
            bool ordered = matches(proxy, &pair->up);
            proxy->done |= ordered;
            assert_true(pair->flights < FLIGHTS_MAX);
            pair->marked[pair->flights++] = ordered && proxy->fate == PG_SWALLOW;
            proxy->flights++;
            if (ordered && proxy->fate == PG_DROP)
                return false;
            pair->held = ordered && proxy->fate == PG_HOLD;
        }
        bool whole = type == 'S' || type == 1 || type == 'X' || type == 'p';
        if (whole && !pair->held && !pass_whole(&pair->up, true))
            return false;
    }
    return true;
}

static bool pass_down(struct pair *pair)
{
    int type;
    while ((type = next_message(&pair->down)) != 0) {
        bool swallows = pair->flights > 0 && pair->marked[0];
        bool ends = type == 'Z' && pair->flights > 0;
        if (!pass_whole(&pair->down, !swallows && !pair->left) || (ends && swallows))
            return false;
        if (ends)
            memmove(pair->marked, pair->marked + 1, --pair->flights * sizeof pair->marked[0]);
    }
    return true;
}

static bool fill(struct way *way)
{
    ssize_t got = read(way->from, way->buffer + way->length, BUFFER_SIZE - way->length);
    way->length += got > 0 ? (size_t)got : 0;
    return got > 0;
}

static bool turn_pair(struct pg_proxy *proxy, struct pair *pair, bool up, bool down)
{
    if (up && !fill(&pair->up)) {
        pair->left = true;
        if (!pair->held)
            return false;
    }
    if (!pair->held && pair->up.whole > 0 && !pass_whole(&pair->up, true))
        return false; /* what was held */
    if (!pass_up(proxy, pair) || (down && (!fill(&pair->down) || !pass_down(pair))))
        return false;
    return !pair->left || pair->held || pair->flights > 0;
}

static void turn(struct pg_proxy *proxy)
{
    struct pollfd polled[1 + 2 * PAIRS_MAX] = {{proxy->listener, POLLIN, 0}};
    for (int i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = proxy->pairs[i];
        bool listens = pair && !proxy->stalled;
        polled[1 + 2 * i] = (struct pollfd){listens && !pair->left ? pair->up.from : -1, POLLIN, 0};
        polled[2 + 2 * i] = (struct pollfd){listens ? pair->down.from : -1, POLLIN, 0};
    }
    pthread_mutex_unlock(&proxy->mutex);
    poll(polled, 1 + 2 * PAIRS_MAX, 5);
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i] && !proxy->stalled &&
            (proxy->cut || !turn_pair(proxy, proxy->pairs[i], polled[1 + 2 * i].revents,
                                      polled[2 + 2 * i].revents)))
            close_pair(proxy, i);
    proxy->cut = false;
    if (polled[0].revents)
        take_connection(proxy);
}

static void *run(void *argument)
{
    struct pg_proxy *proxy = argument;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stop)
        turn(proxy);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i])
            close_pair(proxy, i);
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

struct pg_proxy *pg_proxy_start(uint16_t port)
{
    struct pg_proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    assert_non_null(proxy);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->upstream = port;
    pthread_mutex_init(&proxy->mutex, NULL);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(proxy->listener, 16), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
    proxy->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
    return proxy;
}

uint16_t pg_proxy_port(const struct pg_proxy *proxy)
{
    return proxy->port;
}

void pg_proxy_order(struct pg_proxy *proxy, enum pg_fate fate, const char *statement)
{
    size_t length = strlen(statement);
    pthread_mutex_lock(&proxy->mutex);
    assert_true(length + 2 <= sizeof proxy->part);
    memcpy(proxy->part + 1, statement, length + 1); /* Bind has it between two zeros */
    proxy->part[0] = '\0';
    proxy->part_length = length + 2;
    proxy->fate = fate;
    proxy->done = false;
    pthread_mutex_unlock(&proxy->mutex);
}

bool pg_proxy_done(struct pg_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    bool done = proxy->done;
    pthread_mutex_unlock(&proxy->mutex);
    return done;
}

void pg_proxy_go(struct pg_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i])
            proxy->pairs[i]->held = false;
    pthread_mutex_unlock(&proxy->mutex);
}

static unsigned read_count(struct pg_proxy *proxy, const unsigned *count)
{
    pthread_mutex_lock(&proxy->mutex);
    unsigned value = *count;
    pthread_mutex_unlock(&proxy->mutex);
    return value;
}

unsigned pg_proxy_flights(struct pg_proxy *proxy)
{
    return read_count(proxy, &proxy->flights);
}

unsigned pg_proxy_connections(struct pg_proxy *proxy)
{
    return read_count(proxy, &proxy->connections);
}

static void set(struct pg_proxy *proxy, bool *flag, bool value)
{
    pthread_mutex_lock(&proxy->mutex);
    *flag = value;
    pthread_mutex_unlock(&proxy->mutex);
}

void pg_proxy_cut(struct pg_proxy *proxy)
{
    set(proxy, &proxy->cut, true);
}

void pg_proxy_stall(struct pg_proxy *proxy, bool stalled)
{
    set(proxy, &proxy->stalled, stalled);
}

void pg_proxy_stop(struct pg_proxy *proxy)
{
    set(proxy, &proxy->stop, true);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}
