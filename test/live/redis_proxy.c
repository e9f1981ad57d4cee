/*
 * One thread, one poll. Every connection is a pair of sockets with a buffer for each way;
 * whole requests and replies are taken out of a buffer, looked at and passed on. Each
 * request has a fate for its reply, in order; a request that is answered here goes on as
 * a PING, so that the answer comes in its turn.
 */
#include "live/redis_proxy.h"

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 64
#define BUFFER_SIZE (1 << 18)
#define PENDING_MAX 4096
#define SEEN_SIZE (1 << 20)
#define PING "*1\r\n$4\r\nPING\r\n"

enum fate { PASS, CUT, REPLACE };

struct pair {
    int client, server; /* -1: closed */
    char *up, *down;
    size_t up_length, down_length;
    bool held, pushes;
    enum fate fates[PENDING_MAX];
    size_t first, last;
};

struct redis_proxy {
    int listener;
    uint16_t port, upstream;
    pthread_t thread;
    pthread_mutex_t mutex; /* what follows */
    bool stop, cut, stalled, drop_pushes, go, ordered, done;
    enum redis_order order;
    char part[64], text[128];
    char *seen;
    size_t seen_length;
    struct pair *pairs[PAIRS_MAX];
};

/* ------------------------------------------------------------------- framing */

/* Length of the whole message at `text`; 0: more is to come. */
static size_t message_length(const char *text, size_t length)
{
    const char *end = length ? memmem(text, length, "\r\n", 2) : NULL;
    if (!end)
        return 0;
    size_t size = (size_t)(end - text) + 2;
    long count = strtol(text + 1, NULL, 10);
    if (*text == '$')
        return count < 0 ? size : size + (size_t)count + 2 <= length ? size + (size_t)count + 2 : 0;
    for (long i = 0; *text == '*' && i < count; i++) {
        size_t part = message_length(text + size, length - size);
        if (part == 0)
            return 0;
        size += part;
    }
    return size;
}

static void send_all(int fd, const char *bytes, size_t length)
{
    while (fd >= 0 && length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        bytes += sent;
        length -= (size_t)sent;
    }
}

static void close_side(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ------------------------------------------------------------------ messages */

static void note(struct redis_proxy *proxy, const char *text, size_t length)
{
    if (proxy->seen_length + length + 1 > SEEN_SIZE)
        return;
    memcpy(proxy->seen + proxy->seen_length, text, length);
    proxy->seen_length += length;
    proxy->seen[proxy->seen_length++] = '\0';
}

/* One request; false: it is to wait. */
static bool pass_request(struct redis_proxy *proxy, struct pair *pair, const char *text,
                         size_t length)
{
    enum fate fate = PASS;
    bool meant = proxy->ordered && memmem(text, length, proxy->part, strlen(proxy->part));
    if (meant) {
        proxy->ordered = false;
        proxy->done = true;
        if (proxy->order == REDIS_HOLD) {
            pair->held = true;
            return false;
        }
        fate = proxy->order == REDIS_SWALLOW ? CUT : REPLACE;
    }
    note(proxy, text, length);
    pair->fates[pair->last++ % PENDING_MAX] = fate;
    if (fate == REPLACE)
        send_all(pair->server, PING, sizeof PING - 1);
    else
        send_all(pair->server, text, length);
    return true;
}

static void pass_reply(struct redis_proxy *proxy, struct pair *pair, const char *text,
                       size_t length)
{
    char answer[160];
    if (length > 16 && memcmp(text, "*3\r\n$7\r\nmessage", 15) == 0) {
        if (!proxy->drop_pushes)
            send_all(pair->client, text, length);
        return;
    }
    enum fate fate = pair->first == pair->last ? PASS : pair->fates[pair->first++ % PENDING_MAX];
    if (fate == CUT) {
        close_side(&pair->client);
        close_side(&pair->server);
    } else if (fate == REPLACE) {
        int size = snprintf(answer, sizeof answer, "%s\r\n", proxy->text);
        send_all(pair->client, answer, (size_t)size);
    } else {
        send_all(pair->client, text, length);
    }
}

static void work_up(struct redis_proxy *proxy, struct pair *pair)
{
    size_t at = 0, length;
    while (!pair->held && (length = message_length(pair->up + at, pair->up_length - at)) > 0) {
        if (!pass_request(proxy, pair, pair->up + at, length))
            break;
        at += length;
    }
    memmove(pair->up, pair->up + at, pair->up_length - at);
    pair->up_length -= at;
}

static void work_down(struct redis_proxy *proxy, struct pair *pair)
{
    size_t at = 0, length;
    while ((length = message_length(pair->down + at, pair->down_length - at)) > 0) {
        pass_reply(proxy, pair, pair->down + at, length);
        at += length;
    }
    memmove(pair->down, pair->down + at, pair->down_length - at);
    pair->down_length -= at;
}

static void receive(int *fd, char *buffer, size_t *length)
{
    ssize_t got = recv(*fd, buffer + *length, BUFFER_SIZE - *length, MSG_DONTWAIT);
    if (got > 0)
        *length += (size_t)got;
    else
        close_side(fd);
}

/* --------------------------------------------------------------- connections */

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

static void take_connection(struct redis_proxy *proxy)
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
    *pair = (struct pair){.client = client, .server = server};
    pair->up = malloc(BUFFER_SIZE);
    pair->down = malloc(BUFFER_SIZE);
    proxy->pairs[at] = pair;
}

static void free_pair(struct redis_proxy *proxy, int at)
{
    struct pair *pair = proxy->pairs[at];
    close_side(&pair->client);
    close_side(&pair->server);
    free(pair->up);
    free(pair->down);
    free(pair);
    proxy->pairs[at] = NULL;
}

/* What has been held goes to the server though its client has gone. */
static void work_pair(struct redis_proxy *proxy, int at, short client, short server)
{
    struct pair *pair = proxy->pairs[at];
    if (client && pair->client >= 0)
        receive(&pair->client, pair->up, &pair->up_length);
    if (server && pair->server >= 0)
        receive(&pair->server, pair->down, &pair->down_length);
    if (proxy->go)
        pair->held = false;
    work_up(proxy, pair);
    work_down(proxy, pair);
    if (proxy->cut || pair->server < 0 || (pair->client < 0 && !pair->held))
        free_pair(proxy, at);
}

static void turn(struct redis_proxy *proxy)
{
    struct pollfd polls[1 + 2 * PAIRS_MAX];
    polls[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    for (int i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = proxy->pairs[i];
        bool looks = pair && !proxy->stalled;
        polls[1 + 2 * i] = (struct pollfd){.fd = looks ? pair->client : -1, .events = POLLIN};
        polls[2 + 2 * i] = (struct pollfd){.fd = looks ? pair->server : -1, .events = POLLIN};
    }
    pthread_mutex_unlock(&proxy->mutex);
    poll(polls, 1 + 2 * PAIRS_MAX, 5);
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i] && !proxy->stalled)
            work_pair(proxy, i, polls[1 + 2 * i].revents, polls[2 + 2 * i].revents);
    proxy->cut = proxy->go = false;
    if (polls[0].revents)
        take_connection(proxy);
}

static void *run(void *argument)
{
    struct redis_proxy *proxy = argument;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stop)
        turn(proxy);
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

/* ------------------------------------------------------------------ from outside */

struct redis_proxy *redis_proxy_start(uint16_t port)
{
    struct redis_proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->upstream = port;
    proxy->seen = malloc(SEEN_SIZE);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(proxy->listener, 64), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
    proxy->port = ntohs(address.sin_port);
    pthread_mutex_init(&proxy->mutex, NULL);
    assert_int_equal(pthread_create(&proxy->thread, NULL, run, proxy), 0);
    return proxy;
}

void redis_proxy_stop(struct redis_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->stop = true;
    pthread_mutex_unlock(&proxy->mutex);
    pthread_join(proxy->thread, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i])
            free_pair(proxy, i);
    close(proxy->listener);
    free(proxy->seen);
    free(proxy);
}

uint16_t redis_proxy_port(const struct redis_proxy *proxy)
{
    return proxy->port;
}

void redis_proxy_order(struct redis_proxy *proxy, enum redis_order order, const char *part,
                       const char *text)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->order = order;
    snprintf(proxy->part, sizeof proxy->part, "%s", part);
    snprintf(proxy->text, sizeof proxy->text, "%s", text ? text : "");
    proxy->ordered = true;
    proxy->done = false;
    pthread_mutex_unlock(&proxy->mutex);
}

bool redis_proxy_done(struct redis_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    bool done = proxy->done;
    pthread_mutex_unlock(&proxy->mutex);
    return done;
}

unsigned redis_proxy_seen(struct redis_proxy *proxy, const char *part)
{
    unsigned count = 0;
    pthread_mutex_lock(&proxy->mutex);
    for (size_t at = 0; at < proxy->seen_length;) {
        size_t length = strlen(proxy->seen + at);
        count += memmem(proxy->seen + at, length, part, strlen(part)) != NULL;
        at += length + 1;
    }
    pthread_mutex_unlock(&proxy->mutex);
    return count;
}

static void set(struct redis_proxy *proxy, bool *flag, bool value)
{
    pthread_mutex_lock(&proxy->mutex);
    *flag = value;
    pthread_mutex_unlock(&proxy->mutex);
}

void redis_proxy_forget(struct redis_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->seen_length = 0;
    pthread_mutex_unlock(&proxy->mutex);
}

void redis_proxy_go(struct redis_proxy *proxy)
{
    set(proxy, &proxy->go, true);
}

void redis_proxy_drop_pushes(struct redis_proxy *proxy, bool drop)
{
    set(proxy, &proxy->drop_pushes, drop);
}

void redis_proxy_stall(struct redis_proxy *proxy, bool stalled)
{
    set(proxy, &proxy->stalled, stalled);
}

void redis_proxy_cut(struct redis_proxy *proxy)
{
    set(proxy, &proxy->cut, true);
}
