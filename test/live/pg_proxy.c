/*
 * The client's first message has no type and is passed as it comes; after it every message is a
 * letter and a length. A flight ends with Sync, and the answer to it with
 * ReadyForQuery; a first ReadyForQuery greets.
 */
#include "live/pg_proxy.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#define FLIGHTS_MAX 1024

struct state {                /* of a pair */
    bool started;             /* past what has no type */
    size_t whole_up;          /* of the whole messages at the buffer's beginning */
    bool marked[FLIGHTS_MAX]; /* whose answer is to be swallowed */
    size_t flights;
};

struct pg_proxy {
    struct proxy proxy;
    bool done;
    enum pg_fate fate;
    char part[64]; /* a statement's name as Bind has it */
    size_t part_length;
    unsigned flights;
};

static uint32_t read_length(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Sends the whole messages, and moves the rest up. */
static bool pass_whole(struct proxy_way *way, size_t whole, bool sends)
{
    bool sent = !sends || proxy_send(way->to, way->buffer, whole);
    proxy_consume(way, whole);
    return sent;
}

/* The type of the message behind the whole ones, which then is one of them; 0: it is not all
   there. */
static int next_message(const struct proxy_way *way, bool typed, size_t *whole)
{
    size_t left = way->length - *whole, head = typed ? 1 : 0;
    if (left < head + 4)
        return 0;
    size_t size = head + read_length(way->buffer + *whole + head);
    if (left < size)
        return 0;
    int type = typed ? way->buffer[*whole] : 1;
    *whole += size;
    return type;
}

/* A whole flight, which may be held; false: the pair is to be closed. */
static bool note_flight(struct pg_proxy *proxy, struct proxy_pair *pair)
{
    struct state *state = pair->state;
    bool ordered = proxy->fate != PG_PASS && !proxy->done &&
                   memmem(pair->up.buffer, state->whole_up, proxy->part, proxy->part_length);
    proxy->done |= ordered;
    assert_true(state->flights < FLIGHTS_MAX);
    state->marked[state->flights++] = ordered && proxy->fate == PG_SWALLOW;
    proxy->flights++;
    pair->held = ordered && proxy->fate == PG_HOLD;
    return !ordered || proxy->fate != PG_DROP;
}

static bool send_up(struct proxy_pair *pair)
{
    struct state *state = pair->state;
    size_t whole = state->whole_up;
    state->whole_up = 0;
    return pass_whole(&pair->up, whole, true);
}

static bool pass_up(struct proxy *base, struct proxy_pair *pair)
{
    struct state *state = pair->state;
    int type;
    if (!pair->held && state->whole_up > 0 && !send_up(pair))
        return false; /* what was held */
    while (!pair->held && (type = next_message(&pair->up, state->started, &state->whole_up)) != 0) {
        state->started = true;
        if (type == 'S' && !note_flight((struct pg_proxy *)base, pair))
            return false;
        bool whole = type == 'S' || type == 1 || type == 'X' || type == 'p';
        if (whole && !pair->held && !send_up(pair))
            return false;
    }
    return true;
}

static bool pass_down(struct proxy *base, struct proxy_pair *pair)
{
    struct state *state = pair->state;
    size_t whole = 0;
    int type;
    (void)base;
    while ((type = next_message(&pair->down, true, &whole)) != 0) {
        bool swallows = state->flights > 0 && state->marked[0];
        bool ends = type == 'Z' && state->flights > 0;
        if (!pass_whole(&pair->down, whole, !swallows) || (ends && swallows))
            return false;
        if (ends)
            memmove(state->marked, state->marked + 1, --state->flights * sizeof state->marked[0]);
        whole = 0;
    }
    return true;
}

/* What has been held is done though its client has left. */
static bool outlives(const struct proxy_pair *pair)
{
    const struct state *state = pair->state;
    return pair->held || state->flights > 0;
}

/* ------------------------------------------------------------------ from outside */

struct pg_proxy *pg_proxy_start(uint16_t port)
{
    static const struct proxy_protocol protocol = {.state_size = sizeof(struct state),
                                                   .pass_up = pass_up,
                                                   .pass_down = pass_down,
                                                   .outlives = outlives};
    struct pg_proxy *proxy = calloc(1, sizeof *proxy);
    assert_non_null(proxy);
    proxy_start(&proxy->proxy, &protocol, port);
    return proxy;
}

void pg_proxy_stop(struct pg_proxy *proxy)
{
    proxy_stop(&proxy->proxy);
    free(proxy);
}

void pg_proxy_order(struct pg_proxy *proxy, enum pg_fate fate, const char *statement)
{
    size_t length = strlen(statement);
    pthread_mutex_lock(&proxy->proxy.mutex);
    assert_true(length + 2 <= sizeof proxy->part);
    memcpy(proxy->part + 1, statement, length + 1); /* Bind has it between two zeros */
    proxy->part[0] = '\0';
    proxy->part_length = length + 2;
    proxy->fate = fate;
    proxy->done = false;
    pthread_mutex_unlock(&proxy->proxy.mutex);
}

bool pg_proxy_done(struct pg_proxy *proxy)
{
    return proxy_is(&proxy->proxy, &proxy->done);
}

unsigned pg_proxy_flights(struct pg_proxy *proxy)
{
    return proxy_count(&proxy->proxy, &proxy->flights);
}
