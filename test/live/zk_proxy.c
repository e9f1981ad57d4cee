/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first frame each way is the handshake; after it a request begins with its number and
 * operation, a reply with its number.
 */
#include "live/zk_proxy.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#define EVENT (-1) /* number of what is no answer */
#define PENDING_MAX 65536
#define TRACE_MAX 256
#define OWNER_AT (16 + 44 + 7) /* last byte of ephemeralOwner in an answer to EXISTS */
#define SESSION_AT 8           /* in the answer to a handshake */

struct state { /* of a pair */
    bool greeted_up, greeted_down;
    struct {
        int32_t number;
        int32_t opcode;
        int32_t code; /* for the reply; 0: as it is */
    } pending[PENDING_MAX];
    size_t pending_count;
};

/* The order for one request, once. */
struct order {
    int opcode; /* -1: nothing */
    const char *part;
    int code;
    bool always; /* not only to the next one */
};

struct zk_proxy {
    struct proxy proxy;
    bool swallowed, dropped, refused;
    bool falsify_owner, falsify_session, muted;
    int swallow; /* operation; -1: none */
    struct order drop, hold, refuse, rewrite;
    enum zk_opcode trace[TRACE_MAX];
    size_t traced;
    unsigned counts[ZK_OPCODES], events;
};

static int32_t read_int(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
                     bytes[3]);
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
    if (!order->always)
        order->opcode = -1;
    return true;
}

/* Sends EXISTS of "/" under the number of a request that the proxy refuses, so that its answer
 * comes in its turn. */
static bool send_other(const struct proxy_way *way, int32_t number)
{
    unsigned char frame[4 + 8 + 4 + 1 + 1] = {0};
    write_int(frame, sizeof frame - 4);
    write_int(frame + 4, number);
    write_int(frame + 8, ZK_OP_EXISTS);
    write_int(frame + 12, 1);
    frame[16] = '/';
    return proxy_send(way->to, frame, sizeof frame);
}

/* True: refuse the request. */
static bool note_request(struct zk_proxy *proxy, struct state *state, const unsigned char *body,
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
    assert_true(state->pending_count < PENDING_MAX);
    state->pending[state->pending_count].number = read_int(body);
    state->pending[state->pending_count].code = refused     ? proxy->refuse.code
                                                : rewritten ? proxy->rewrite.code
                                                            : 0;
    state->pending[state->pending_count++].opcode = opcode;
    proxy->refused |= refused;
    return refused;
}

enum fate { PASS, DROP, CUT };

/* The fate of the request. *code: the error that its reply says instead. */
static enum fate note_reply(struct zk_proxy *proxy, struct state *state, unsigned char *frame,
                            int32_t *code)
{
    unsigned char *body = frame + 4;
    int32_t number = read_int(body), opcode = -1;
    for (size_t i = 0; i < state->pending_count; i++)
        if (state->pending[i].number == number) {
            opcode = state->pending[i].opcode;
            *code = state->pending[i].code;
            memmove(&state->pending[i], &state->pending[i + 1],
                    (state->pending_count - i - 1) * sizeof state->pending[0]);
            state->pending_count--;
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
static bool send_code(struct proxy_way *way, int32_t code)
{
    write_int(way->buffer, 16);
    write_int(way->buffer + 16, code);
    return proxy_send(way->to, way->buffer, 20);
}

/* A whole request; false: close the pair. */
static bool pass_request(struct zk_proxy *proxy, struct proxy_pair *pair, size_t size)
{
    const struct proxy_way *way = &pair->up;
    const unsigned char *body = way->buffer + 4;
    if (applies(&proxy->drop, body, size - 4)) {
        proxy->dropped = true;
        return false;
    }
    if (note_request(proxy, pair->state, body, size - 4))
        return send_other(way, read_int(body));
    return proxy_send(way->to, way->buffer, size);
}

static bool pass_reply(struct zk_proxy *proxy, struct proxy_pair *pair, size_t size)
{
    struct proxy_way *way = &pair->down;
    int32_t code = 0;
    enum fate fate = note_reply(proxy, pair->state, way->buffer, &code);
    if (fate != PASS)
        return fate == DROP;
    return code ? send_code(way, code) : proxy_send(way->to, way->buffer, size);
}

/* The size of the whole frame `at` bytes behind a buffer's beginning; 0: more is to come. */
static size_t frame_size(const struct proxy_way *way, size_t at)
{
    size_t left = way->length - at;
    size_t size = left < 4 ? 0 : 4 + (size_t)read_int(way->buffer + at);
    return left < size ? 0 : size;
}

static bool pass_up(struct proxy *base, struct proxy_pair *pair)
{
    struct zk_proxy *proxy = (struct zk_proxy *)base;
    struct state *state = pair->state;
    size_t size;
    while (!pair->held && (size = frame_size(&pair->up, 0)) > 0) {
        pair->held = state->greeted_up && applies(&proxy->hold, pair->up.buffer + 4, size - 4);
        if (pair->held)
            return true;
        bool passed = state->greeted_up ? pass_request(proxy, pair, size)
                                        : proxy_send(pair->up.to, pair->up.buffer, size);
        if (!passed)
            return false;
        state->greeted_up = true;
        proxy_consume(&pair->up, size);
    }
    return true;
}

static bool pass_down(struct proxy *base, struct proxy_pair *pair)
{
    struct zk_proxy *proxy = (struct zk_proxy *)base;
    struct state *state = pair->state;
    size_t size;
    while ((size = frame_size(&pair->down, 0)) > 0) {
        if (!state->greeted_down)
            note_greeting(proxy, pair->down.buffer);
        bool passed = state->greeted_down ? pass_reply(proxy, pair, size)
                                          : proxy_send(pair->down.to, pair->down.buffer, size);
        if (!passed)
            return false;
        state->greeted_down = true;
        proxy_consume(&pair->down, size);
    }
    return true;
}

/* ------------------------------------------------------------------ from outside */

struct zk_proxy *zk_proxy_start(uint16_t port)
{
    static const struct proxy_protocol protocol = {
        .state_size = sizeof(struct state), .pass_up = pass_up, .pass_down = pass_down};
    struct zk_proxy *proxy = calloc(1, sizeof *proxy);
    assert_non_null(proxy);
    proxy->swallow = proxy->drop.opcode = proxy->hold.opcode = -1;
    proxy->refuse.opcode = proxy->rewrite.opcode = -1;
    proxy_start(&proxy->proxy, &protocol, port);
    return proxy;
}

void zk_proxy_stop(struct zk_proxy *proxy)
{
    proxy_stop(&proxy->proxy);
    free(proxy);
}

unsigned zk_proxy_count(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    return proxy_count(&proxy->proxy, &proxy->counts[opcode]);
}

unsigned zk_proxy_events(struct zk_proxy *proxy)
{
    return proxy_count(&proxy->proxy, &proxy->events);
}

void zk_proxy_reset_counts(struct zk_proxy *proxy)
{
    pthread_mutex_lock(&proxy->proxy.mutex);
    memset(proxy->counts, 0, sizeof proxy->counts);
    proxy->events = 0;
    proxy->traced = 0;
    pthread_mutex_unlock(&proxy->proxy.mutex);
}

void zk_proxy_swallow(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    pthread_mutex_lock(&proxy->proxy.mutex);
    proxy->swallow = (int)opcode;
    proxy->swallowed = false;
    pthread_mutex_unlock(&proxy->proxy.mutex);
}

static void give_order(struct zk_proxy *proxy, struct order *order, struct order what, bool *done)
{
    pthread_mutex_lock(&proxy->proxy.mutex);
    *order = what;
    if (done)
        *done = false;
    pthread_mutex_unlock(&proxy->proxy.mutex);
}

bool zk_proxy_swallowed(struct zk_proxy *proxy)
{
    return proxy_is(&proxy->proxy, &proxy->swallowed);
}

void zk_proxy_refuse(struct zk_proxy *proxy, enum zk_opcode opcode, int code)
{
    struct order order = {.opcode = (int)opcode, .part = "", .code = code};
    give_order(proxy, &proxy->refuse, order, &proxy->refused);
}

void zk_proxy_refuse_all(struct zk_proxy *proxy, enum zk_opcode opcode, int code)
{
    struct order order = {.opcode = (int)opcode, .part = "", .code = code, .always = true};
    give_order(proxy, &proxy->refuse, order, &proxy->refused);
}

bool zk_proxy_refused(struct zk_proxy *proxy)
{
    return proxy_is(&proxy->proxy, &proxy->refused);
}

void zk_proxy_drop(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    struct order order = {.opcode = (int)opcode, .part = ""};
    give_order(proxy, &proxy->drop, order, &proxy->dropped);
}

bool zk_proxy_dropped(struct zk_proxy *proxy)
{
    return proxy_is(&proxy->proxy, &proxy->dropped);
}

void zk_proxy_hold(struct zk_proxy *proxy, enum zk_opcode opcode, const char *part)
{
    struct order order = {.opcode = (int)opcode, .part = part};
    give_order(proxy, &proxy->hold, order, NULL);
}

bool zk_proxy_holds(struct zk_proxy *proxy)
{
    bool holds = false;
    pthread_mutex_lock(&proxy->proxy.mutex);
    for (int i = 0; i < PROXY_PAIRS_MAX; i++)
        holds |= proxy->proxy.pairs[i] && proxy->proxy.pairs[i]->held;
    pthread_mutex_unlock(&proxy->proxy.mutex);
    return holds;
}

/* Whether an operation is among what is held. */
static bool keeps(const struct proxy_pair *pair, enum zk_opcode opcode)
{
    size_t size;
    for (size_t at = 0; pair->held && (size = frame_size(&pair->up, at)) > 0; at += size)
        if (read_int(pair->up.buffer + at + 8) == (int32_t)opcode)
            return true;
    return false;
}

bool zk_proxy_keeps(struct zk_proxy *proxy, enum zk_opcode opcode)
{
    bool kept = false;
    pthread_mutex_lock(&proxy->proxy.mutex);
    for (int i = 0; i < PROXY_PAIRS_MAX; i++)
        kept |= proxy->proxy.pairs[i] && keeps(proxy->proxy.pairs[i], opcode);
    pthread_mutex_unlock(&proxy->proxy.mutex);
    return kept;
}

void zk_proxy_rewrite(struct zk_proxy *proxy, enum zk_opcode opcode, const char *part, int code)
{
    struct order order = {.opcode = (int)opcode, .part = part, .code = code};
    give_order(proxy, &proxy->rewrite, order, NULL);
}

bool zk_proxy_is_idle(struct zk_proxy *proxy)
{
    bool idle = true;
    pthread_mutex_lock(&proxy->proxy.mutex);
    for (int i = 0; i < PROXY_PAIRS_MAX; i++) {
        const struct state *state = proxy->proxy.pairs[i] ? proxy->proxy.pairs[i]->state : NULL;
        for (size_t j = 0; state && j < state->pending_count; j++)
            idle &=
                state->pending[j].opcode == ZK_OP_SYNC || state->pending[j].opcode == ZK_OP_PING;
    }
    pthread_mutex_unlock(&proxy->proxy.mutex);
    return idle;
}

void zk_proxy_stall_up(struct zk_proxy *proxy, bool stalled)
{
    proxy_set(&proxy->proxy, &proxy->proxy.stalled_up, stalled);
}

void zk_proxy_falsify_owner(struct zk_proxy *proxy)
{
    proxy_set(&proxy->proxy, &proxy->falsify_owner, true);
}

void zk_proxy_falsify_session(struct zk_proxy *proxy)
{
    proxy_set(&proxy->proxy, &proxy->falsify_session, true);
}

void zk_proxy_mute(struct zk_proxy *proxy, bool muted)
{
    proxy_set(&proxy->proxy, &proxy->muted, muted);
}

size_t zk_proxy_trace(struct zk_proxy *proxy, enum zk_opcode *operations, size_t most)
{
    pthread_mutex_lock(&proxy->proxy.mutex);
    size_t count = proxy->traced < most ? proxy->traced : most;
    memcpy(operations, proxy->trace, count * sizeof *operations);
    pthread_mutex_unlock(&proxy->proxy.mutex);
    return count;
}
