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

#define EVENT (-1) /* number of what is no answer */
#define PAIRS_MAX 32
#define BUFFER_SIZE (1 << 20)
#define PENDING_MAX 65536
#define TRACE_MAX 256
#define OWNER_AT (16 + 44 + 7) /* last byte of ephemeralOwner in an answer to EXISTS */
#define SESSION_AT 8           /* in the answer to a handshake */

struct way {
    int from, to;
    bool greeted, held;
    size_t length;
    unsigned char *buffer;
};

struct pair {
    struct way up, down;
    struct {
        int32_t number;
        int32_t opcode;
        int32_t code; /* for the reply; 0: as it is */
    } pending[PENDING_MAX];
    size_t pending_count;
};

/* What is to happen to one request, and then no more. */
struct order {
    int opcode; /* -1: nothing */
    const char *part;
    int code;
};

struct zk_proxy {
    int listener;
    uint16_t port, upstream;
    pthread_t thread;
    pthread_mutex_t mutex; /* what follows */
    bool stop, cut, stalled, stalled_up, swallowed, dropped, refused;
    bool falsify_owner, falsify_session, muted;
    int swallow; /* operation; -1: none */
    struct order drop, hold, refuse, rewrite;
    enum zk_opcode trace[TRACE_MAX];
    size_t traced;
    unsigned counts[ZK_OPCODES], events, connections;
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

static void write_int(unsigned char *bytes, int32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)((uint32_t)value >> (24 - 8 * i));
}

static bool applies(struct order *order, const unsigned char *body, size_t size)
{
    if (read_int(body + 4) != order->opcode || order->opcode < 0 ||
        !memmem(body, size, order->part, strlen(order->part)))
        return false;
    order->opcode = -1;
    return true;
}

/* Sends EXISTS of "/" under the number of a request that is to be refused, so that its
   answer comes in its turn. */
static bool send_other(const struct way *way, int32_t number)
{
    unsigned char frame[4 + 8 + 4 + 1 + 1] = {0};
    write_int(frame, sizeof frame - 4);
    write_int(frame + 4, number);
    write_int(frame + 8, ZK_OP_EXISTS);
    write_int(frame + 12, 1);
    frame[16] = '/';
    return send(way->to, frame, sizeof frame, MSG_NOSIGNAL) == sizeof frame;
}

/* True: the request is to be refused. */
static bool note_request(struct zk_proxy *proxy, struct pair *pair, const unsigned char *body,
                         size_t size)
{
    int32_t opcode = read_int(body + 4);
    if (opcode < 0 || opcode >= ZK_OPCODES)
        return false;
    proxy->counts[opcode]++;
    if (proxy->traced < TRACE_MAX && opcode != ZK_OP_PING)
        proxy->trace[proxy->traced++] = (enum zk_opcode)opcode;
    bool refused = applies(&proxy->refuse, body, size);
    bool rewritten = !refused && applies(&proxy->rewrite, body, size);
    assert_true(pair->pending_count < PENDING_MAX);
    pair->pending[pair->pending_count].number = read_int(body);
    pair->pending[pair->pending_count].code = refused     ? proxy->refuse.code
                                              : rewritten ? proxy->rewrite.code
                                                          : 0;
    pair->pending[pair->pending_count++].opcode = opcode;
    proxy->refused |= refused;
    return refused;
}

enum fate { PASS, DROP, CUT };

/* What becomes of it. *code: it is to say this. */
static enum fate note_reply(struct zk_proxy *proxy, struct pair *pair, unsigned char *frame,
                            int32_t *code)
{
    unsigned char *body = frame + 4;
    int32_t number = read_int(body), opcode = -1;
    for (size_t i = 0; i < pair->pending_count; i++)
        if (pair->pending[i].number == number) {
            opcode = pair->pending[i].opcode;
            *code = pair->pending[i].code;
            memmove(&pair->pending[i], &pair->pending[i + 1],
                    (pair->pending_count - i - 1) * sizeof pair->pending[0]);
            pair->pending_count--;
            break;
        }
    if (number == EVENT)
        proxy->events++;
    if (proxy->muted && opcode != ZK_OP_PING)
        return DROP;
    if (opcode == ZK_OP_EXISTS && proxy->falsify_owner && read_int(body + 12) == 0) {
        frame[4 + OWNER_AT] ^= 1;
        proxy->falsify_owner = false;
    }
    if (opcode < 0 || opcode != proxy->swallow)
        return PASS;
    proxy->swallow = -1;
    proxy->swallowed = true;
    return CUT;
}

static void note_greeting(struct zk_proxy *proxy, unsigned char *frame)
{
    if (proxy->falsify_session)
        frame[4 + SESSION_AT + 7] ^= 1;
    proxy->falsify_session = false;
}

/* Sends a reply's header with another code, and nothing behind it. */
static bool send_code(struct way *way, int32_t code)
{
    write_int(way->buffer, 16);
    write_int(way->buffer + 16, code);
    return send(way->to, way->buffer, 20, MSG_NOSIGNAL) == 20;
}

/* A whole request; false: the pair is to be closed. */
static bool pass_request(struct zk_proxy *proxy, struct pair *pair, size_t size)
{
    struct way *way = &pair->up;
    const unsigned char *body = way->buffer + 4;
    if (applies(&proxy->drop, body, size - 4)) {
        proxy->dropped = true;
        return false;
    }
    if (note_request(proxy, pair, body, size - 4))
        return send_other(way, read_int(body));
    return send(way->to, way->buffer, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* One whole frame; false: the pair is to be closed. */
static bool pass_frame(struct zk_proxy *proxy, struct pair *pair, struct way *way, size_t size)
{
    enum fate fate = PASS;
    int32_t code = 0;
    if (way->greeted && way == &pair->up)
        return pass_request(proxy, pair, size);
    if (way->greeted)
        fate = note_reply(proxy, pair, way->buffer, &code);
    else if (way == &pair->down)
        note_greeting(proxy, way->buffer);
    way->greeted = true;
    if (fate != PASS)
        return fate == DROP;
    return code ? send_code(way, code)
                : send(way->to, way->buffer, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Passes what frames are whole; false: the pair is to be closed. */
static bool pass_frames(struct zk_proxy *proxy, struct pair *pair, struct way *way)
{
    while (way->length >= 4 && !way->held) {
        size_t size = 4 + (size_t)read_int(way->buffer);
        if (way->length < size)
            break;
        if (way->greeted && way == &pair->up && applies(&proxy->hold, way->buffer + 4, size - 4)) {
            way->held = true;
            break;
        }
        if (!pass_frame(proxy, pair, way, size))
            return false;
        way->length -= size;
        memmove(way->buffer, way->buffer + size, way->length);
    }
    return true;
}

static bool pass(struct zk_proxy *proxy, struct pair *pair, struct way *way)
{
    ssize_t got = read(way->from, way->buffer + way->length, BUFFER_SIZE - way->length);
    if (got <= 0)
        return false;
    way->length += (size_t)got;
    return pass_frames(proxy, pair, way);
}

static void turn(struct zk_proxy *proxy)
{
    struct pollfd polled[1 + 2 * PAIRS_MAX] = {{proxy->listener, POLLIN, 0}};
    for (int i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = proxy->pairs[i];
        bool listens = pair && !proxy->stalled;
        bool listens_up = listens && !proxy->stalled_up;
        polled[1 + 2 * i] = (struct pollfd){listens_up ? pair->up.from : -1, POLLIN, 0};
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
        if (lives && polled[1 + 2 * i].revents && !proxy->stalled && !proxy->stalled_up)
            lives = pass(proxy, pair, &pair->up);
        else if (lives && !proxy->stalled && !proxy->stalled_up)
            lives = pass_frames(proxy, pair, &pair->up); /* what was held */
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
    proxy->swallow = proxy->drop.opcode = proxy->hold.opcode = -1;
    proxy->refuse.opcode = proxy->rewrite.opcode = -1;
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

unsigned zk_proxy_events(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    unsigned events = proxy->events;
    pthread_mutex_unlock(&proxy->mutex);
    return events;
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
    proxy->events = 0;
    proxy->traced = 0;
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_swallow(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->swallow = (int)opcode;
    proxy->swallowed = false;
    pthread_mutex_unlock(&proxy->mutex);
}

static void give_order(struct zk_proxy *proxy, struct order *order, struct order what, bool *done)
{
    pthread_mutex_lock(&proxy->mutex);
    *order = what;
    if (done)
        *done = false;
    pthread_mutex_unlock(&proxy->mutex);
}

static bool is_done(struct zk_proxy *proxy, const bool *done)
{
    pthread_mutex_lock(&proxy->mutex);
    bool result = *done;
    pthread_mutex_unlock(&proxy->mutex);
    return result;
}

bool zk_proxy_swallowed(struct zk_proxy *proxy)
{
    return is_done(proxy, &proxy->swallowed);
}

void zk_proxy_refuse(struct zk_proxy *proxy, enum zk_opcode opcode, int code)
{
    struct order order = {.opcode = (int)opcode, .part = "", .code = code};
    give_order(proxy, &proxy->refuse, order, &proxy->refused);
}

bool zk_proxy_refused(struct zk_proxy *proxy)
{
    return is_done(proxy, &proxy->refused);
}

void zk_proxy_drop(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    struct order order = {.opcode = (int)opcode, .part = ""};
    give_order(proxy, &proxy->drop, order, &proxy->dropped);
}

bool zk_proxy_dropped(struct zk_proxy *proxy)
{
    return is_done(proxy, &proxy->dropped);
}

void zk_proxy_hold(struct zk_proxy *proxy, enum zk_opcode opcode, const char *part)
{
    struct order order = {.opcode = (int)opcode, .part = part};
    give_order(proxy, &proxy->hold, order, NULL);
}

bool zk_proxy_holds(struct zk_proxy *proxy)
{
    bool holds = false;
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX; i++)
        holds |= proxy->pairs[i] && proxy->pairs[i]->up.held;
    pthread_mutex_unlock(&proxy->mutex);
    return holds;
}

void zk_proxy_go(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i])
            proxy->pairs[i]->up.held = false;
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_rewrite(struct zk_proxy *proxy, enum zk_opcode opcode, const char *part, int code)
{
    struct order order = {.opcode = (int)opcode, .part = part, .code = code};
    give_order(proxy, &proxy->rewrite, order, NULL);
}

bool zk_proxy_is_idle(struct zk_proxy *proxy)
{
    bool idle = true;
    pthread_mutex_lock(&proxy->mutex);
    for (int i = 0; i < PAIRS_MAX; i++)
        for (size_t j = 0; proxy->pairs[i] && j < proxy->pairs[i]->pending_count; j++) {
            int32_t opcode = proxy->pairs[i]->pending[j].opcode;
            idle &= opcode == ZK_OP_SYNC || opcode == ZK_OP_PING;
        }
    pthread_mutex_unlock(&proxy->mutex);
    return idle;
}

void zk_proxy_stall_up(struct zk_proxy *proxy, bool stalled)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->stalled_up = stalled;
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_falsify_owner(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->falsify_owner = true;
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_falsify_session(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->falsify_session = true;
    pthread_mutex_unlock(&proxy->mutex);
}

void zk_proxy_mute(struct zk_proxy *proxy, bool muted)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->muted = muted;
    pthread_mutex_unlock(&proxy->mutex);
}

size_t zk_proxy_trace(struct zk_proxy *proxy, enum zk_opcode *operations, size_t most)
{
    pthread_mutex_lock(&proxy->mutex);
    size_t count = proxy->traced < most ? proxy->traced : most;
    memcpy(operations, proxy->trace, count * sizeof *operations);
    pthread_mutex_unlock(&proxy->mutex);
    return count;
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
