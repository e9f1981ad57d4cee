/* SPDX-License-Identifier: Apache-2.0 */
/* The proxies' common part; see proxy.h. */
#include "live/proxy.h"

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_SIZE (1 << 20)

static struct sockaddr_in place(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* ------------------------------------------------------------------ pairs */

static int dial(uint16_t port)
{
    struct sockaddr_in address = place(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Data that comes in parts goes on in parts, and none waits until the one before has been
 * acknowledged. */
static void send_at_once(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void take_connection(struct proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC), at = 0;
    int server = client < 0 ? -1 : dial(proxy->upstream);
    while (at < PROXY_PAIRS_MAX && proxy->pairs[at])
        at++;
    if (server < 0 || at == PROXY_PAIRS_MAX) {
        close(client);
        close(server);
        return;
    }
    send_at_once(client);
    send_at_once(server);
    struct proxy_pair *pair = calloc(1, sizeof *pair);
    pair->up = (struct proxy_way){.from = client, .to = server, .buffer = malloc(BUFFER_SIZE)};
    pair->down = (struct proxy_way){.from = server, .to = client, .buffer = malloc(BUFFER_SIZE)};
    pair->state = calloc(1, proxy->protocol->state_size);
    proxy->pairs[at] = pair;
    proxy->connections++;
}

void proxy_leave(struct proxy_pair *pair)
{
    if (pair->up.from >= 0)
        close(pair->up.from);
    pair->up.from = pair->down.to = -1;
}

static void close_pair(struct proxy *proxy, int at)
{
    struct proxy_pair *pair = proxy->pairs[at];
    proxy_leave(pair);
    close(pair->up.to);
    free(pair->up.buffer);
    free(pair->down.buffer);
    free(pair->state);
    free(pair);
    proxy->pairs[at] = NULL;
}

bool proxy_send(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (fd >= 0 && size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

void proxy_consume(struct proxy_way *way, size_t size)
{
    way->length -= size;
    memmove(way->buffer, way->buffer + size, way->length);
}

static bool fill(struct proxy_way *way)
{
    ssize_t got = read(way->from, way->buffer + way->length, BUFFER_SIZE - way->length);
    way->length += got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* ------------------------------------------------------------------ the thread */

/* False: close the pair. */
static bool turn_pair(struct proxy *proxy, struct proxy_pair *pair, bool up, bool down)
{
    const struct proxy_protocol *protocol = proxy->protocol;
    if (up && !fill(&pair->up)) {
        if (!pair->held || !protocol->outlives)
            return false;
        proxy_leave(pair);
    }
    if (!proxy->stalled_up && !protocol->pass_up(proxy, pair)) /* what was held, too */
        return false;
    if (down && (!fill(&pair->down) || !protocol->pass_down(proxy, pair)))
        return false;
    return pair->up.from >= 0 || protocol->outlives(pair);
}

static void turn(struct proxy *proxy)
{
    struct pollfd polled[1 + 2 * PROXY_PAIRS_MAX] = {{proxy->listener, POLLIN, 0}};
    for (int i = 0; i < PROXY_PAIRS_MAX; i++) {
        const struct proxy_pair *pair = proxy->pairs[i];
        bool listens = pair && !proxy->stalled;
        bool listens_up = listens && !proxy->stalled_up;
        polled[1 + 2 * i] = (struct pollfd){listens_up ? pair->up.from : -1, POLLIN, 0};
        polled[2 + 2 * i] = (struct pollfd){listens ? pair->down.from : -1, POLLIN, 0};
    }
    pthread_mutex_unlock(&proxy->mutex);
    poll(polled, 1 + 2 * PROXY_PAIRS_MAX, 5);
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PROXY_PAIRS_MAX; i++) {
        bool up = polled[1 + 2 * i].revents && !proxy->stalled_up;
        if (proxy->pairs[i] &&
            (proxy->cut || (!proxy->stalled &&
                            !turn_pair(proxy, proxy->pairs[i], up, polled[2 + 2 * i].revents))))
            close_pair(proxy, i);
    }
    proxy->cut = false;
    if (polled[0].revents)
        take_connection(proxy);
}

static void *run(void *argument)
{
    struct proxy *proxy = argument;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stop)
        turn(proxy);
    for (int i = 0; i < PROXY_PAIRS_MAX; i++)
        if (proxy->pairs[i])
            close_pair(proxy, i);
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

void proxy_start(struct proxy *proxy, const struct proxy_protocol *protocol, uint16_t port)
{
    struct sockaddr_in address = place(0);
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + proxy->above);
    proxy->protocol = protocol;
    proxy->upstream = port;
    pthread_mutex_init(&proxy->mutex, NULL);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(proxy->listener, 64), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
    proxy->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
}

void proxy_stop(struct proxy *proxy)
{
    proxy_set(proxy, &proxy->stop, true);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    pthread_mutex_destroy(&proxy->mutex);
}

/* ------------------------------------------------------------------ from outside */

uint16_t proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

void proxy_set(struct proxy *proxy, bool *flag, bool value)
{
    pthread_mutex_lock(&proxy->mutex);
    *flag = value;
    pthread_mutex_unlock(&proxy->mutex);
}

bool proxy_is(struct proxy *proxy, const bool *flag)
{
    pthread_mutex_lock(&proxy->mutex);
    bool value = *flag;
    pthread_mutex_unlock(&proxy->mutex);
    return value;
}

unsigned proxy_count(struct proxy *proxy, const unsigned *count)
{
    pthread_mutex_lock(&proxy->mutex);
    unsigned value = *count;
    pthread_mutex_unlock(&proxy->mutex);
    return value;
}

unsigned proxy_connections(struct proxy *proxy)
{
    return proxy_count(proxy, &proxy->connections);
}

void proxy_move(struct proxy *proxy, uint16_t port)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->upstream = port;
    proxy->cut = true;
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_cut(struct proxy *proxy)
{
    proxy_set(proxy, &proxy->cut, true);
}

void proxy_stall(struct proxy *proxy, bool stalled)
{
    proxy_set(proxy, &proxy->stalled, stalled);
}

void proxy_go(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PROXY_PAIRS_MAX; i++)
        if (proxy->pairs[i])
            proxy->pairs[i]->held = false;
    pthread_mutex_unlock(&proxy->mutex);
}
