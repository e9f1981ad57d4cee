/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's first message has no type and is passed as it comes; after it every message is a
 * letter and a length. A flight ends with Sync, and the answer to it with
 * ReadyForQuery; a first ReadyForQuery greets.
 *
 * MySQL's packets are a length of three bytes, a number and the content. A flight is one COM_QUERY.
 * Its answer is, for each statement, OK, or an error, or a count of columns, these, an EOF,
 * rows, and an EOF; what OK and EOF say of the server's state tells whether more follows. An error
 * in place of the last of them is of the last statement.
 */
#include "live/sql_proxy.h"

#include "cmocka_all.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FLIGHTS_MAX 1024

struct state {       /* of a pair */
    bool started;    /* past what has no type */
    size_t whole_up; /* of the whole messages at the buffer's beginning */
    enum sql_fate fates[FLIGHTS_MAX];
    size_t flights;
    int stage;                 /* of an answer of MySQL's: 0 its beginning, 1 columns, 2 rows */
    unsigned char refusal[64]; /* that is kept */
    size_t refusal_size;
};

struct sql_proxy {
    struct proxy proxy;
    bool mysql, done;
    enum sql_fate fate;
    char part[64]; /* a statement's name as Bind has it, or some of its text */
    size_t part_length;
    unsigned flights;
    unsigned refusal; /* the number of an error */
    bool refuses_done;
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

/* Of a packet of the server's, whether it is the last one of its flight's answer. */
static bool ends_answer(struct state *state, const unsigned char *content, size_t size)
{
    unsigned server = 0;
    if (content[0] == 0xff)
        return true;
    if (state->stage == 0 && content[0] != 0) {
        state->stage = 1;
        return false;
    }
    if (state->stage == 0) { /* OK: two numbers, each short or with its size before it */
        const unsigned char *at = content + 1;
        for (int i = 0; i < 2; i++)
            at += *at < 0xfb ? 1 : *at == 0xfc ? 3 : *at == 0xfd ? 4 : 9;
        server = at[0];
    } else if (content[0] == 0xfe && size < 9) {
        server = content[3];
        state->stage = (state->stage + 1) % 3;
    } else {
        return false;
    }
    return state->stage == 0 && !(server & 8);
}

/* As PostgreSQL's message would be called that means the same. */
static int next_packet(struct state *state, const struct proxy_way *way, bool up, size_t *whole)
{
    const unsigned char *head = way->buffer + *whole;
    size_t left = way->length - *whole;
    size_t size = left < 4 ? 0 : (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
    if (left < 4 || left < size + 4)
        return 0;
    *whole += size + 4;
    if (up)
        return head[3] == 0 && head[4] == 3 ? 'S' : 'X';
    if (state->flights > 0)
        return ends_answer(state, head + 4, size) ? 'Z' : 'D';
    state->stage = 0; /* no answer: the greeting */
    return 'D';
}

static int next_up(const struct sql_proxy *proxy, struct proxy_pair *pair)
{
    struct state *state = pair->state;
    return proxy->mysql ? next_packet(state, &pair->up, true, &state->whole_up)
                        : next_message(&pair->up, state->started, &state->whole_up);
}

/* The flight, which is all that is whole, ends its transaction otherwise. */
static void roll_back(struct proxy_way *way, size_t *whole)
{
    static const char commit[] = "COMMIT;", instead[] = "ROLLBACK;";
    const size_t longer = sizeof instead - sizeof commit;
    unsigned char *end = way->buffer + *whole, *at = end - (sizeof commit - 1);
    assert_memory_equal(at, commit, sizeof commit - 1);
    memmove(end + longer, end, way->length - *whole);
    memcpy(at, instead, sizeof instead - 1);
    way->length += longer;
    *whole += longer;
    for (int i = 0; i < 3; i++)
        way->buffer[i] = (unsigned char)((*whole - 4) >> (8 * i));
}

/* A whole flight, which may be held; false: close the pair. */
static bool note_flight(struct sql_proxy *proxy, struct proxy_pair *pair)
{
    struct state *state = pair->state;
    bool ordered = proxy->fate != SQL_PASS && !proxy->done &&
                   memmem(pair->up.buffer, state->whole_up, proxy->part, proxy->part_length);
    enum sql_fate fate = ordered ? proxy->fate : SQL_PASS;
    assert_true(state->flights < FLIGHTS_MAX);
    state->fates[state->flights++] = fate;
    proxy->flights++;
    if (fate == SQL_REFUSE) {
        proxy->fate = SQL_PASS; /* done when the end has come */
        if (!proxy->refuses_done)
            roll_back(&pair->up, &state->whole_up);
        return true;
    }
    proxy->done |= ordered;
    pair->held = fate == SQL_HOLD || fate == SQL_LATE;
    if (fate == SQL_LATE)
        proxy_leave(pair);
    return fate != SQL_DROP;
}

static bool send_up(struct proxy_pair *pair)
{
    struct state *state = pair->state;
    size_t whole = state->whole_up;
    state->whole_up = 0;
    return pass_whole(&pair->up, whole, true);
}

static bool pass_down(struct proxy *base, struct proxy_pair *pair);

/* The end of an answer, which is not passed on, becomes an error. */
static void keep_refusal(struct sql_proxy *proxy, struct proxy_pair *pair)
{
    static const char text[] = "#HY000refused";
    struct state *state = pair->state;
    unsigned char *packet = state->refusal;
    packet[0] = 3 + sizeof text - 1;
    packet[1] = packet[2] = 0;
    packet[3] = pair->down.buffer[3];
    packet[4] = 0xff;
    packet[5] = (unsigned char)(proxy->refusal & 0xff);
    packet[6] = (unsigned char)(proxy->refusal >> 8);
    memcpy(packet + 7, text, sizeof text - 1);
    state->refusal_size = 4 + packet[0];
    state->stage = 0;
    proxy->done = pair->held = true;
}

/* And what is behind it. */
static bool send_refusal(struct proxy *base, struct proxy_pair *pair)
{
    struct state *state = pair->state;
    size_t size = state->refusal_size;
    state->refusal_size = 0;
    return proxy_send(pair->down.to, state->refusal, size) && pass_down(base, pair);
}

static bool pass_up(struct proxy *base, struct proxy_pair *pair)
{
    struct state *state = pair->state;
    int type;
    if (!pair->held && state->refusal_size > 0 && !send_refusal(base, pair))
        return false;
    if (!pair->held && state->whole_up > 0 && !send_up(pair))
        return false; /* what was held */
    while (!pair->held && (type = next_up((struct sql_proxy *)base, pair)) != 0) {
        state->started = true;
        if (type == 'S' && !note_flight((struct sql_proxy *)base, pair))
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
    bool mysql = ((struct sql_proxy *)base)->mysql;
    size_t whole = 0;
    int type;
    while (state->refusal_size == 0 &&
           (type = mysql ? next_packet(state, &pair->down, false, &whole)
                         : next_message(&pair->down, true, &whole)) != 0) {
        enum sql_fate fate = state->flights > 0 ? state->fates[0] : SQL_PASS;
        bool ends = type == 'Z' && state->flights > 0;
        bool refuses = ends && fate == SQL_REFUSE;
        if (refuses)
            keep_refusal((struct sql_proxy *)base, pair);
        if (!pass_whole(&pair->down, whole, fate != SQL_SWALLOW && !refuses) ||
            (ends && fate == SQL_SWALLOW))
            return false;
        if (ends)
            memmove(state->fates, state->fates + 1, --state->flights * sizeof state->fates[0]);
        whole = 0;
    }
    return true;
}

/* A held request is done though its client has left. */
static bool outlives(const struct proxy_pair *pair)
{
    const struct state *state = pair->state;
    return pair->held || state->flights > 0;
}

/* ------------------------------------------------------------------ from outside */

static struct sql_proxy *start(uint16_t port, bool mysql)
{
    static const struct proxy_protocol protocol = {.state_size = sizeof(struct state),
                                                   .pass_up = pass_up,
                                                   .pass_down = pass_down,
                                                   .outlives = outlives};
    struct sql_proxy *proxy = calloc(1, sizeof *proxy);
    assert_non_null(proxy);
    proxy->mysql = mysql;
    proxy_start(&proxy->proxy, &protocol, port);
    return proxy;
}

struct sql_proxy *sql_proxy_start(uint16_t port)
{
    return start(port, false);
}

struct sql_proxy *sql_proxy_start_mysql(uint16_t port)
{
    return start(port, true);
}

void sql_proxy_stop(struct sql_proxy *proxy)
{
    proxy_stop(&proxy->proxy);
    free(proxy);
}

void sql_proxy_order(struct sql_proxy *proxy, enum sql_fate fate, const char *statement)
{
    size_t length = strlen(statement);
    pthread_mutex_lock(&proxy->proxy.mutex);
    bool named = !proxy->mysql && isupper((unsigned char)statement[0]); /* else a part of a text */
    assert_true(length + 2 <= sizeof proxy->part);
    memcpy(proxy->part + named, statement, length + 1);
    if (named)
        proxy->part[0] = '\0'; /* Bind has it between two zeros */
    proxy->part_length = named ? length + 2 : length;
    proxy->fate = fate;
    proxy->done = false;
    pthread_mutex_unlock(&proxy->proxy.mutex);
}

void sql_proxy_refuse(struct sql_proxy *proxy, const char *statement, unsigned number, bool done)
{
    assert_true(proxy->mysql);
    pthread_mutex_lock(&proxy->proxy.mutex);
    proxy->refusal = number;
    proxy->refuses_done = done;
    pthread_mutex_unlock(&proxy->proxy.mutex);
    sql_proxy_order(proxy, SQL_REFUSE, statement);
}

bool sql_proxy_done(struct sql_proxy *proxy)
{
    return proxy_is(&proxy->proxy, &proxy->done);
}

unsigned sql_proxy_flights(struct sql_proxy *proxy)
{
    return proxy_count(&proxy->proxy, &proxy->flights);
}
