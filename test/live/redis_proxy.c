/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each request has a fate for its reply, in order; a request that is answered here goes on as a
 * PING, so that the answer comes in its turn.
 */
#include "live/redis_proxy.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PENDING_MAX 4096
#define SEEN_SIZE (1 << 20)
#define PING "*1\r\n$4\r\nPING\r\n"

enum fate { PASS, CUT, REPLACE };

struct state { /* of a pair */
    enum fate fates[PENDING_MAX];
    size_t first, last;
};

struct redis_proxy {
    struct proxy proxy;
    bool drop_pushes, ordered, done;
    enum redis_order order;
    char part[64], text[128];
    char *seen;
    size_t seen_length;
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

/* ------------------------------------------------------------------ messages */

static void note(struct redis_proxy *proxy, const char *text, size_t length)
{
    if (proxy->seen_length + length + 1 > SEEN_SIZE)
        return;
    memcpy(proxy->seen + proxy->seen_length, text, length);
    proxy->seen_length += length;
    proxy->seen[proxy->seen_length++] = '\0';
}

/* One request; false: close the pair. It may be held instead. */
static bool pass_request(struct redis_proxy *proxy, struct proxy_pair *pair, const char *text,
                         size_t length)
{
    struct state *state = pair->state;
    enum fate fate = PASS;
    if (proxy->ordered && memmem(text, length, proxy->part, strlen(proxy->part))) {
        proxy->ordered = false;
        proxy->done = true;
        pair->held = proxy->order == REDIS_HOLD;
        if (pair->held)
            return true;
        fate = proxy->order == REDIS_SWALLOW ? CUT : REPLACE;
    }
    note(proxy, text, length);
    state->fates[state->last++ % PENDING_MAX] = fate;
    if (fate == REPLACE)
        return proxy_send(pair->up.to, PING, sizeof PING - 1);
    return proxy_send(pair->up.to, text, length);
}

static bool pass_reply(struct redis_proxy *proxy, struct proxy_pair *pair, const char *text,
                       size_t length)
{
    struct state *state = pair->state;
    char answer[160];
    if (length > 16 && memcmp(text, "*3\r\n$7\r\nmessage", 15) == 0)
        return proxy->drop_pushes || proxy_send(pair->down.to, text, length);
    enum fate fate =
        state->first == state->last ? PASS : state->fates[state->first++ % PENDING_MAX];
    if (fate == REPLACE) {
        int size = snprintf(answer, sizeof answer, "%s\r\n", proxy->text);
        return proxy_send(pair->down.to, answer, (size_t)size);
    }
    return fate == PASS && proxy_send(pair->down.to, text, length);
}

static bool pass_up(struct proxy *base, struct proxy_pair *pair)
{
    const char *text = (const char *)pair->up.buffer;
    size_t length;
    while (!pair->held && (length = message_length(text, pair->up.length)) > 0) {
        if (!pass_request((struct redis_proxy *)base, pair, text, length))
            return false;
        if (!pair->held)
            proxy_consume(&pair->up, length);
    }
    return true;
}

static bool pass_down(struct proxy *base, struct proxy_pair *pair)
{
    const char *text = (const char *)pair->down.buffer;
    size_t length;
    while ((length = message_length(text, pair->down.length)) > 0) {
        if (!pass_reply((struct redis_proxy *)base, pair, text, length))
            return false;
        proxy_consume(&pair->down, length);
    }
    return true;
}

/* A held request goes to the server though its client has left, and its answer goes to nobody. */
static bool outlives(const struct proxy_pair *pair)
{
    const struct state *state = pair->state;
    return pair->held || state->first != state->last;
}

/* ------------------------------------------------------------------ from outside */

struct redis_proxy *redis_proxy_start(uint16_t port)
{
    static const struct proxy_protocol protocol = {.state_size = sizeof(struct state),
                                                   .pass_up = pass_up,
                                                   .pass_down = pass_down,
                                                   .outlives = outlives};
    struct redis_proxy *proxy = calloc(1, sizeof *proxy);
    assert_non_null(proxy);
    proxy->seen = malloc(SEEN_SIZE);
    proxy_start(&proxy->proxy, &protocol, port);
    return proxy;
}

void redis_proxy_stop(struct redis_proxy *proxy)
{
    proxy_stop(&proxy->proxy);
    free(proxy->seen);
    free(proxy);
}

void redis_proxy_order(struct redis_proxy *proxy, enum redis_order order, const char *part,
                       const char *text)
{
    pthread_mutex_lock(&proxy->proxy.mutex);
    proxy->order = order;
    snprintf(proxy->part, sizeof proxy->part, "%s", part);
    snprintf(proxy->text, sizeof proxy->text, "%s", text ? text : "");
    proxy->ordered = true;
    proxy->done = false;
    pthread_mutex_unlock(&proxy->proxy.mutex);
}

bool redis_proxy_done(struct redis_proxy *proxy)
{
    return proxy_is(&proxy->proxy, &proxy->done);
}

unsigned redis_proxy_seen(struct redis_proxy *proxy, const char *part)
{
    unsigned count = 0;
    pthread_mutex_lock(&proxy->proxy.mutex);
    for (size_t at = 0; at < proxy->seen_length;) {
        size_t length = strlen(proxy->seen + at);
        count += memmem(proxy->seen + at, length, part, strlen(part)) != NULL;
        at += length + 1;
    }
    pthread_mutex_unlock(&proxy->proxy.mutex);
    return count;
}

void redis_proxy_forget(struct redis_proxy *proxy)
{
    pthread_mutex_lock(&proxy->proxy.mutex);
    proxy->seen_length = 0;
    pthread_mutex_unlock(&proxy->proxy.mutex);
}

void redis_proxy_drop_pushes(struct redis_proxy *proxy, bool drop)
{
    proxy_set(&proxy->proxy, &proxy->drop_pushes, drop);
}
