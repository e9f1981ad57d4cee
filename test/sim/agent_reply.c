/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a dialogue as bytes, whole or in pieces, as arrays or as lines of words; and the
 * replies, which come in the order of the commands. See agent_command.h.
 */
#include "agent_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define FRAME_MAX 512

/* ------------------------------------------------------------------ to the agent */

/* Nothing more comes, and it has a step to find that out. */
static void end(struct dialogue *dialogue)
{
    dialogue->has_ended = true;
    dialogue->asked_count = 0;
    epoll_ctl(dialogue->client->epoll, EPOLL_CTL_DEL, dialogue->fd, NULL);
    dialogue_step_in(dialogue, 0);
}

void dialogue_send(struct dialogue *dialogue, const char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t sent = send(dialogue->fd, bytes + at, size - at, MSG_NOSIGNAL);
        if (sent < 0) {
            end(dialogue);
            return;
        }
        at += (size_t)sent;
        dialogue->sent += (uint64_t)sent;
    }
}

static size_t write_array(char *frame, const char *const *words)
{
    int count = 0;
    while (words[count])
        count++;
    size_t size = (size_t)snprintf(frame, FRAME_MAX, "*%d\r\n", count);
    for (int i = 0; i < count; i++)
        size += (size_t)snprintf(frame + size, FRAME_MAX - size, "$%zu\r\n%s\r\n", strlen(words[i]),
                                 words[i]);
    return size;
}

static size_t write_line(char *frame, const char *const *words)
{
    size_t size = 0;
    for (int i = 0; words[i]; i++)
        size +=
            (size_t)snprintf(frame + size, FRAME_MAX - size, "%s%s", i > 0 ? " " : "", words[i]);
    return size + (size_t)snprintf(frame + size, FRAME_MAX - size, "\r\n");
}

void dialogue_say(struct dialogue *dialogue, struct asked asked, const char *const *words)
{
    struct client *client = &dialogue->client->client;
    char frame[FRAME_MAX];
    size_t size = random_below(&client->world->random, 4) ? write_array(frame, words)
                                                          : write_line(frame, words);
    if (dialogue->asked_count == ASKED_MAX || size >= FRAME_MAX)
        abort();
    trace_note(client->world, TRACE_SUBMIT, client->index, asked.queue, words[0],
               (int64_t)asked.fence, asked.ms, dialogue->index);
    asked.sent = client_now(client);
    asked.since = client->world->now;
    asked.ends = dialogue->sent + size;
    dialogue->asked[dialogue->asked_count++] = asked;
    dialogue_send(dialogue, frame, size);
}

/* ------------------------------------------------------------------ from the agent */

static const char *end_of_line(const char *text, size_t size)
{
    const char *end = memchr(text, '\n', size);
    return end ? end + 1 : NULL;
}

/* The end of the reply that begins here; NULL: it is not all there. */
static const char *end_of_reply(const char *text, size_t size)
{
    const char *at = end_of_line(text, size), *end = text + size;
    if (!at || (*text != '$' && *text != '*'))
        return at;
    long count = strtol(text + 1, NULL, 10);
    if (*text == '$')
        return count < 0 ? at : end - at >= count + 2 ? at + count + 2 : NULL;
    while (at && count-- > 0)
        at = end_of_reply(at, (size_t)(end - at));
    return at;
}

/* A policy may leave less, and that of no whole number of milliseconds. */
static void take_extended(struct dialogue *dialogue, const struct asked *asked, int64_t number)
{
    struct resp_hold *hold = dialogue_hold(dialogue, asked->queue);
    const struct client *client = &dialogue->client->client;
    bool limited = resp_user(client) > 0;
    if (!hold || (limited ? number > asked->ms : number != asked->ms) ||
        !policy_extends(dialogue, asked, hold, number))
        resp_fail(dialogue, asked->queue, "EXTEND has replied %lld", (long long)number);
    hold->at_least = asked->sent + mrt_time_from_ms(number);
    hold->at_most = client_now(client) + mrt_time_from_ms(number + limited);
}

static void take_integer(struct dialogue *dialogue, const struct asked *asked, int64_t number)
{
    switch (asked->verb) {
    case VERB_LOCK:
        resp_granted(dialogue, asked, (uint64_t)number);
        return;
    case VERB_HELD:
        resp_promised(dialogue, asked, number);
        return;
    case VERB_EXTEND:
        take_extended(dialogue, asked, number);
        return;
    case VERB_CANCEL:
        if (number != dialogue->was_cancelled)
            resp_fail(dialogue, asked->queue, "CANCEL has replied %lld", (long long)number);
        dialogue->was_cancelled = false;
        return;
    default:
        resp_fail(dialogue, asked->queue, "command %d is answered by a number", asked->verb);
    }
}

/* The text of a PING comes back. */
static void take_bulk(struct dialogue *dialogue, const struct asked *asked, const char *text)
{
    long long number = -1;
    if (asked->verb == VERB_INFO || asked->verb == VERB_LIST)
        return;
    sscanf(text, "%*[^\n]\n%lld", &number);
    if (asked->verb != VERB_PING || number != asked->ms)
        resp_fail(dialogue, asked->queue, "command %d is answered by %lld", asked->verb, number);
}

static void take_done(struct dialogue *dialogue, const struct asked *asked)
{
    struct resp_hold *hold = dialogue_hold(dialogue, asked->queue);
    if (asked->verb == VERB_QUIT)
        return;
    if (asked->verb != VERB_UNLOCK || !hold || hold->fence != asked->fence)
        resp_fail(dialogue, asked->queue, "command %d is answered by OK", asked->verb);
    hold->is_there = false;
}

static void take_error(struct dialogue *dialogue, const struct asked *asked, const char *line)
{
    struct resp_hold *hold = dialogue_hold(dialogue, asked->queue);
    resp_check_error(dialogue, asked, line);
    if (asked->verb == VERB_LOCK)
        dialogue->was_cancelled = strncmp(line, "CANCELLED", 9) == 0;
    if (asked->verb == VERB_UNLOCK && hold && hold->fence == asked->fence)
        hold->is_there = false;
}

/* The agent does not serve the connection: so its only line says, and its end. */
static bool is_turned_away(struct dialogue *dialogue, const char *text)
{
    bool limited = resp_user(&dialogue->client->client) > 0 && !dialogue->has_reply;
    if (!limited || (strncmp(text, "-FULL you have all the connections", 34) != 0 &&
                     strncmp(text, "-NOPERM this agent's policy has no rule", 39) != 0))
        return false;
    dialogue->asked_count = 0;
    dialogue->has_babbled = true; /* it is ended */
    return true;
}

/* Takes a whole reply: that of the first command. */
static void take(struct dialogue *dialogue, const char *text)
{
    struct client *client = &dialogue->client->client;
    if (dialogue->has_babbled && strncmp(text, "-ERR Protocol", 13) == 0) {
        dialogue->asked_count = 0;
        return;
    }
    if (is_turned_away(dialogue, text))
        return;
    dialogue->has_reply = true;
    if (dialogue->asked_count == 0)
        resp_fail(dialogue, NO_QUEUE, "the agent has answered what nobody has sent");
    struct asked asked = dialogue->asked[0];
    dialogue->asked_count--;
    dialogue->first_since = client->world->now;
    memmove(dialogue->asked, dialogue->asked + 1,
            (size_t)dialogue->asked_count * sizeof dialogue->asked[0]);
    int64_t number = strtoll(text + 1, NULL, 10);
    trace_note(client->world, TRACE_EVENT, client->index, asked.queue,
               *text == '-' ? "an error" : NULL, *text, number, asked.verb);
    if (*text == ':')
        take_integer(dialogue, &asked, number);
    else if (*text == '+')
        take_done(dialogue, &asked);
    else if (*text == '-')
        take_error(dialogue, &asked, text + 1);
    else
        take_bulk(dialogue, &asked, text);
}

static void take_replies(struct dialogue *dialogue)
{
    const char *at = dialogue->inbox, *end = at + dialogue->used, *next;
    while (at < end && (next = end_of_reply(at, (size_t)(end - at)))) {
        take(dialogue, at);
        at = next;
    }
    dialogue->used = (size_t)(end - at);
    memmove(dialogue->inbox, at, dialogue->used);
}

void dialogue_read(struct dialogue *dialogue)
{
    ssize_t got;
    bool any = false;
    while (!dialogue->has_ended) {
        got = recv(dialogue->fd, dialogue->inbox + dialogue->used, INBOX_SIZE - 1 - dialogue->used,
                   MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            break;
        any = true;
        if (got <= 0) {
            end(dialogue);
            return;
        }
        dialogue->used += (size_t)got;
        dialogue->inbox[dialogue->used] = '\0';
        take_replies(dialogue);
    }
    if (any)
        dialogue_continue(dialogue);
}
