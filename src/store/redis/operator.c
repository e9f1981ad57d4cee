/*
 * mortise_list, mortise_revoke, mortise_break and mortise_server: a script or a command each, so
 * all rows are of one instant. They have a connection of their own and wait in a poll of their own,
 * within the client's time-out, beside all that the store does meanwhile.
 *
 * Threads: any, at any time. Of the store they read what stays as it was opened; where the server
 * is now they are told by connection.c.
 *
 * They wait on the program's threads, with its signals. A request that was sent and not answered
 * may have been done: an operator that wanted a change hears that its outcome is unknown.
 */
#include "store/redis/internal.h"

#include "base/assert.h"
#include "base/listen.h"
#include "core/rule.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct lister {
    struct mrt_redis_store *store;
    struct mrt_redis_wire wire;
    mrt_time deadline;
    int epoll;
    bool perhaps; /* a script was sent, and what came of it is not known */
};

static int unreachable(const struct lister *lister)
{
    return mrt_error(MORTISE_EUNREACHABLE, "Redis: %s: %s", lister->store->address.shown,
                     mrt_redis_wire_trouble(&lister->wire));
}

/* The next reply within the time. */
static int receive(struct lister *lister, redisReply **reply)
{
    *reply = NULL;
    for (;;) {
        if (!mrt_redis_wire_next(&lister->wire, reply))
            return unreachable(lister);
        if (*reply)
            return MORTISE_OK;
        mrt_time left = lister->deadline - mrt_time_now();
        struct pollfd poller = {.fd = lister->epoll, .events = POLLIN};
        if (left <= 0 ||
            (poll(&poller, 1, (int)(left / MRT_MILLISECOND) + 1) < 0 && errno != EINTR)) {
            lister->wire.error = left <= 0 ? ETIMEDOUT : errno;
            return unreachable(lister);
        }
        if (!mrt_redis_wire_receive(&lister->wire))
            return unreachable(lister);
    }
}

static int error_of(struct lister *lister, const char *text)
{
    int error;
    const char *advice;
    lister->perhaps = mrt_redis_classify(text, &error, &advice) == MRT_REDIS_UNKNOWN;
    return mrt_error(error, "Redis: %.200s%s", text, advice);
}

static int expect_logins(struct lister *lister, unsigned count)
{
    int error = MORTISE_OK;
    for (; count > 0 && error == MORTISE_OK; count--) {
        redisReply *reply;
        error = receive(lister, &reply);
        if (error == MORTISE_OK && reply->type == REDIS_REPLY_ERROR)
            error = error_of(lister, reply->str);
        freeReplyObject(reply);
    }
    return error;
}

/* Calls a script, in whole if the server does not know it. */
static int ask(struct lister *lister, enum mrt_redis_script_name script,
               const struct mrt_redis_text *arguments, size_t count, redisReply **reply)
{
    const char *name = arguments[script == MRT_REDIS_OPERATE ? 1 : 0].text;
    int error = MORTISE_OK;
    for (int whole = 0; whole < 2; whole++) {
        mrt_redis_keyed_put(lister->store, &lister->wire, script, whole > 0, NULL, name, arguments,
                            count);
        lister->perhaps = mrt_redis_wire_flush(&lister->wire);
        error = lister->perhaps ? receive(lister, reply) : unreachable(lister);
        if (error != MORTISE_OK || !*reply || (*reply)->type == REDIS_REPLY_ARRAY)
            return error;
        error = (*reply)->type == REDIS_REPLY_ERROR ? error_of(lister, (*reply)->str)
                                                    : mrt_error(MORTISE_ESTORE, "Redis: no list");
        bool again =
            (*reply)->type == REDIS_REPLY_ERROR && strncmp((*reply)->str, "NOSCRIPT", 8) == 0;
        freeReplyObject(*reply);
        *reply = NULL;
        if (!again)
            return error;
    }
    return error;
}

/* Connects and logs in. */
static int open_wire(struct lister *lister)
{
    struct mrt_redis_store *store = lister->store;
    struct mrt_address server;
    if (!mrt_redis_link_server(store, &server) ||
        !mrt_redis_wire_open(&lister->wire, &server, lister->epoll))
        return unreachable(lister);
    unsigned logins = mrt_redis_wire_login(&lister->wire, &store->address, store->secret);
    if (!mrt_redis_wire_flush(&lister->wire))
        return unreachable(lister);
    return expect_logins(lister, logins);
}

static int connect_and_ask(struct lister *lister, enum mrt_redis_script_name script,
                           const struct mrt_redis_text *arguments, size_t count, redisReply **reply)
{
    int error = open_wire(lister);
    lister->perhaps = false;
    return error == MORTISE_OK ? ask(lister, script, arguments, count, reply) : error;
}

static int begin(struct lister *lister, struct mrt_store *port)
{
    struct mrt_redis_store *store = (struct mrt_redis_store *)port;
    *lister = (struct lister){.store = store, .wire = {.fd = -1}};
    lister->deadline = mrt_time_add(mrt_time_now(), store->timeout);
    lister->epoll = epoll_create1(EPOLL_CLOEXEC);
    return lister->epoll < 0 ? MORTISE_ENOMEM : MORTISE_OK;
}

static void end(struct lister *lister)
{
    mrt_redis_wire_close(&lister->wire);
    if (lister->epoll >= 0)
        close(lister->epoll);
}

/* The reply is a list, to be freed. A script that only looks may be said not to have been run. */
static int call(struct mrt_store *port, enum mrt_redis_script_name script,
                const struct mrt_redis_text *arguments, size_t count, redisReply **reply)
{
    struct lister lister;
    *reply = NULL;
    int error = begin(&lister, port);
    if (error == MORTISE_OK)
        error = connect_and_ask(&lister, script, arguments, count, reply);
    end(&lister);
    if (error != MORTISE_OK && lister.perhaps && script == MRT_REDIS_OPERATE)
        return mrt_error(MORTISE_EUNKNOWN, "Redis: no answer from %s: it may have been done",
                         lister.store->address.shown);
    return error;
}

/* -------------------------------------------------------------------- rows */

static const char *text_at(const redisReply *row, size_t index)
{
    const redisReply *text = row->element[index];
    return text->type == REDIS_REPLY_STRING ? text->str : "";
}

static uint64_t number_at(const redisReply *row, size_t index)
{
    return strtoull(text_at(row, index), NULL, 10);
}

/* One queue; false: the callback has had enough. */
static bool show(const redisReply *row, mrt_listed_callback callback, void *argument)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements < 2)
        return true;
    const char *described = text_at(row, 1), *kind = strchr(described, ' ');
    uint64_t capacity = strtoull(described, NULL, 10), ahead = 0;
    uint32_t waiting = 0;
    for (size_t i = 2; i + 5 < row->elements; i += 6) {
        uint64_t weight = number_at(row, i + 1);
        bool granted = waiting == 0 && mrt_rule_grants(ahead, weight, capacity);
        const struct mrt_listed listed = {
            .entry = {.size = sizeof(mortise_entry),
                      .name = text_at(row, 0),
                      .kind = kind ? kind + 1 : "",
                      .label = text_at(row, i + 3),
                      .fence = number_at(row, i) << MRT_REDIS_FENCE_BITS,
                      .place = granted ? 0 : ++waiting,
                      .since_wall_ms = (int64_t)number_at(row, i + 2),
                      .weight = weight,
                      .capacity = capacity,
                      .detached = strcmp(text_at(row, i + 4), "1") == 0,
                      .delay_ms = (int64_t)number_at(row, i + 5)},
            .claim = row->elements % 6 == 3 ? text_at(row, row->elements - 1) : ""};
        ahead += weight;
        if (callback(argument, &listed) != 0)
            return false;
    }
    return true;
}

int mrt_redis_list(struct mrt_store *port, const char *name, const char *prefix,
                   mrt_listed_callback callback, void *argument)
{
    redisReply *reply;
    const struct mrt_redis_text arguments[] = {mrt_redis_text_of(name ? name : ""),
                                               mrt_redis_text_of(prefix ? prefix : "")};
    int error = call(port, MRT_REDIS_LIST, arguments, 2, &reply);
    for (size_t i = 0; error == MORTISE_OK && reply && i < reply->elements; i++)
        if (!show(reply->element[i], callback, argument))
            break;
    freeReplyObject(reply);
    return error;
}

/* ---------------------------------------------------------------- operator */

static int operate(struct mrt_store *port, const char *what, const char *name, uint64_t fence)
{
    char number[24];
    redisReply *reply;
    if (fence % (UINT64_C(1) << MRT_REDIS_FENCE_BITS) != 0)
        return MORTISE_ENOTHELD; /* no ticket's own */
    snprintf(number, sizeof number, "%llu", (unsigned long long)(fence >> MRT_REDIS_FENCE_BITS));
    const struct mrt_redis_text arguments[] = {mrt_redis_text_of(what), mrt_redis_text_of(name),
                                               mrt_redis_text_of(number)};
    int error = call(port, MRT_REDIS_OPERATE, arguments, 3, &reply);
    if (reply && (reply->elements != 1 || strcmp(text_at(reply, 0), "DONE") != 0))
        error = MORTISE_ENOTHELD;
    freeReplyObject(reply);
    return error;
}

int mrt_redis_revoke(struct mrt_store *port, const char *name, uint64_t fence)
{
    return operate(port, "revoke", name, fence);
}

int mrt_redis_break(struct mrt_store *port, const char *name, uint64_t fence)
{
    return fence > 0 ? operate(port, "break", name, fence) : MORTISE_ENOTHELD;
}

/* ------------------------------------------------------------------ server */

/* What the server says to a command; NULL: nothing in time. To be freed. */
static redisReply *say(struct lister *lister, const char *const *texts, size_t count)
{
    struct mrt_redis_text words[3];
    redisReply *reply = NULL;
    for (size_t i = 0; i < count; i++)
        words[i] = mrt_redis_text_of(texts[i]);
    mrt_redis_wire_put(&lister->wire, words, count);
    if (mrt_redis_wire_flush(&lister->wire))
        receive(lister, &reply);
    return reply;
}

/* A setting of the server's; "": it is not told. */
static void read_setting(struct lister *lister, const char *setting, char *text, size_t size)
{
    redisReply *reply = say(lister, (const char *const[]){"CONFIG", "GET", setting}, 3);
    bool told = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    snprintf(text, size, "%s", told ? text_at(reply, 1) : "");
    freeReplyObject(reply);
}

static bool is_open(struct lister *lister)
{
    char mode[8], addresses[1024];
    read_setting(lister, "protected-mode", mode, sizeof mode);
    read_setting(lister, "bind", addresses, sizeof addresses);
    return strcmp(mode, "no") == 0 && mrt_listens_for_others(addresses);
}

/* Whether a command that changes nothing is let through. */
static bool is_allowed(struct lister *lister, const char *const *texts, size_t count)
{
    redisReply *reply = say(lister, texts, count);
    bool allowed = reply && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return allowed;
}

/* Who may more than take locks can take everything from everybody. */
static void check_access(struct lister *lister)
{
    const struct mrt_redis_store *store = lister->store;
    struct mrt_notes notes = {
        .from = store->notes.from, .log = store->notes.log, .argument = store->notes.argument};
    static const char *const configure[] = {"CONFIG", "GET", "maxmemory"};
    static const char *const foreign[] = {"TYPE", "a key of somebody else's"};
    if (!*store->secret) {
        if (is_open(lister))
            mrt_note(&notes, MRT_REDIS_NOTE_ACCESS,
                     "no password: anyone who reaches the server may break these locks");
    } else if (is_allowed(lister, configure, 3)) {
        mrt_note(&notes, MRT_REDIS_NOTE_ACCESS,
                 "this user may configure the server, which locks do not need; doc/redis.md has "
                 "the ACL that is enough");
    } else if (*store->address.base == '{' && is_allowed(lister, foreign, 2)) {
        mrt_note(&notes, MRT_REDIS_NOTE_ACCESS,
                 "this user may use keys that are not of these locks; doc/redis.md has the ACL "
                 "that is enough");
    }
    mrt_notes_say(&notes);
}

static int ask_version(struct lister *lister, char *text, size_t size)
{
    static const char name[] = "redis_version:";
    const struct mrt_redis_text words[] = {mrt_redis_text_of("INFO"), mrt_redis_text_of("server")};
    redisReply *reply = NULL;
    mrt_redis_wire_put(&lister->wire, words, 2);
    int error = mrt_redis_wire_flush(&lister->wire) ? receive(lister, &reply) : unreachable(lister);
    if (error != MORTISE_OK)
        return error;
    MRT_ASSERT(reply);
    const char *found = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;
    if (found) {
        found += sizeof name - 1;
        snprintf(text, size, "Redis %.*s", (int)strcspn(found, "\r\n"), found);
    } else {
        error = reply->type == REDIS_REPLY_ERROR
                    ? error_of(lister, reply->str)
                    : mrt_error(MORTISE_ENOTSUPPORTED, "the server does not tell its version");
    }
    freeReplyObject(reply);
    return error;
}

int mrt_redis_server(struct mrt_store *port, char *text, size_t size)
{
    struct lister lister;
    int error = begin(&lister, port);
    if (error == MORTISE_OK)
        error = open_wire(&lister);
    if (error == MORTISE_OK)
        error = ask_version(&lister, text, size);
    if (lister.wire.fd >= 0)
        check_access(&lister); /* also where the user may not ask for the version */
    end(&lister);
    return error;
}
