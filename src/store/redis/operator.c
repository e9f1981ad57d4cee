/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_list, mortise_revoke, mortise_break and mortise_server: a script or a command each, so
 * all rows are of one instant. They have a connection of their own, and wait for it within the
 * client's time-out, beside all that the store does meanwhile.
 *
 * Threads: any, at any time. Of the store they read what stays as it was opened; where the server
 * is now they are told by connection.c.
 *
 * They wait on the program's threads, with its signals. A request that was sent and not answered
 * may have been done: an operator that wanted a change hears that its outcome is unknown.
 */
#include "store/redis/operator.h"

#include "base/assert.h"
#include "base/listen.h"
#include "core/rule.h"
#include "store/redis/error.h"
#include "store/redis/referral.h"
#include "store/redis/script.h"
#include "store/redis/seek.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

struct operation {
    const struct mrt_redis_store *store;
    struct mrt_redis_wire wire;
    mrt_time deadline;
    bool outcome_unknown; /* a script was sent, and its outcome is unknown */
    bool leaves;          /* the server is on another machine */
};

/* Receives the next bytes. A server that sends none for connect= is not waited for any longer. */
static bool receive(struct operation *operation)
{
    struct mrt_redis_wire *wire = &operation->wire;
    mrt_time limit = mrt_time_add(mrt_time_now(), operation->store->address.connect);
    size_t unread = wire->unread;
    limit = mrt_time_min(limit, operation->deadline);
    while (wire->unread == unread)
        if (!mrt_redis_wire_wait(wire, limit) || !mrt_redis_wire_receive(wire))
            return false;
    return true;
}

/* Sends the commands written; returns the reply, to be freed, or NULL: none within the time. */
static redisReply *exchange(struct operation *operation)
{
    redisReply *reply = NULL;
    bool sent = mrt_redis_wire_flush(&operation->wire), fine = sent;
    while (fine && !reply)
        fine = mrt_redis_wire_next(&operation->wire, &reply) && (reply || receive(operation));
    /* Nothing leaves before the connection is there. */
    operation->outcome_unknown = sent && operation->wire.state == MRT_REDIS_OPEN;
    return reply;
}

/* The error that a reply reports, and whether it leaves the outcome unknown; 0: it reports none. */
static int error_of(struct operation *operation, const redisReply *reply)
{
    int error;
    const char *advice;
    if (!reply)
        return mrt_error(MORTISE_EUNREACHABLE, "Redis: %s: %s", operation->store->address.shown,
                         mrt_redis_wire_trouble(&operation->wire));
    if (reply->type != REDIS_REPLY_ERROR)
        return MORTISE_OK;
    operation->outcome_unknown =
        mrt_redis_classify(reply->str, &error, &advice) == MRT_REDIS_UNKNOWN;
    return mrt_error(error, "Redis: %.200s%s", reply->str, advice);
}

/* Looks hosts up within the time; NULL: none was found. To be freed. */
static struct mrt_addresses *look_up(const struct operation *operation,
                                     const struct mrt_host *hosts, size_t count)
{
    const struct mrt_redis_address *address = &operation->store->address;
    struct mrt_resolver resolver;
    mrt_resolver_init(&resolver, hosts, count, 0);
    mrt_time left = mrt_time_min(operation->deadline - mrt_time_now(), address->connect);
    struct mrt_addresses *found = mrt_resolver_wait(&resolver, hosts, count, left);
    if (!found || found->count == 0) {
        mrt_error(MORTISE_EUNREACHABLE, "Redis: %s: %s", address->shown,
                  mrt_resolver_fault(&resolver));
        free(found);
        found = NULL;
    }
    mrt_resolver_forget(&resolver);
    return found;
}

static bool is_here(const struct mrt_address *server)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)&server->socket;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&server->socket;
    if (server->socket.ss_family == AF_INET)
        return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return server->socket.ss_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* Connects and logs in. */
static int open_server(struct operation *operation, const struct mrt_address *server,
                       const char *name)
{
    const struct mrt_redis_store *store = operation->store;
    int error = MORTISE_OK;
    operation->leaves = !is_here(server);
    if (!mrt_redis_wire_open(&operation->wire, server, name, -1))
        return error_of(operation, NULL);
    unsigned logins = mrt_redis_wire_login(&operation->wire, &store->address, store->secret);
    for (; logins > 0 && error == MORTISE_OK; logins--) {
        redisReply *reply = exchange(operation);
        error = error_of(operation, reply);
        freeReplyObject(reply);
    }
    return error;
}

/* -------------------------------------------------------- sentinels, nodes */

/* The error of a server that was of no use. */
static int useless(const struct operation *operation, int error, const char *fault)
{
    return mrt_error(error ? error : MORTISE_EUNREACHABLE, "Redis: %s: %s",
                     operation->store->address.shown, fault);
}

/* Asks this sentinel where the master is. */
static int ask_sentinel(struct operation *operation, const struct mrt_address *sentinel,
                        struct mrt_host *host)
{
    const struct mrt_redis_store *store = operation->store;
    enum mrt_redis_referral referral = MRT_REDIS_NO_SERVER;
    char fault[MRT_REDIS_FAULT_SIZE];
    int error = MORTISE_OK;
    const char *name = store->address.hosts[sentinel->host].name;
    if (!mrt_redis_wire_open(&operation->wire, sentinel, name, -1))
        return useless(operation, MORTISE_OK, mrt_redis_wire_trouble(&operation->wire));
    unsigned logins =
        mrt_redis_referral_put(&operation->wire, &store->address, store->sentinel_secret);
    redisReply *reply = exchange(operation);
    for (; reply && logins > 0 && reply->type != REDIS_REPLY_ERROR; logins--) {
        freeReplyObject(reply);
        reply = exchange(operation);
    }
    if (reply)
        referral = mrt_redis_referral_read(&store->address, reply, host, &error, fault);
    else
        snprintf(fault, sizeof fault, "%s", mrt_redis_wire_trouble(&operation->wire));
    freeReplyObject(reply);
    mrt_redis_wire_close(&operation->wire);
    if (referral == MRT_REDIS_OTHER_SERVER)
        return MORTISE_OK;
    return mrt_error(error ? error : MORTISE_EUNREACHABLE,
                     "Redis: %s: no sentinel names the master %.32s; the last one: %s",
                     store->address.shown, store->address.master, fault);
}

/* Connects to this server, which says whether it is the one; `hops`: or to the one that it names.
 */
static int open_checked(struct operation *operation, const struct mrt_address *server,
                        const char *name, int hops)
{
    const struct mrt_redis_address *address = &operation->store->address;
    struct mrt_host host;
    char fault[MRT_REDIS_FAULT_SIZE] = "its answer is missing";
    int code = MORTISE_OK, error = open_server(operation, server, name);
    if (error != MORTISE_OK)
        return error;
    mrt_redis_referral_check_put(&operation->wire, address);
    redisReply *reply = exchange(operation);
    if (!reply)
        return error_of(operation, NULL);
    enum mrt_redis_referral referral =
        mrt_redis_referral_check(address, reply, name, &host, &code, fault);
    freeReplyObject(reply);
    if (referral == MRT_REDIS_THIS_SERVER)
        return MORTISE_OK;
    mrt_redis_wire_close(&operation->wire);
    if (referral == MRT_REDIS_NO_SERVER || hops == 0)
        return useless(operation, code, hops > 0 ? fault : "the nodes name each other");
    struct mrt_addresses *found = look_up(operation, &host, 1);
    error =
        found ? open_checked(operation, &found->at[0], host.name, hops - 1) : MORTISE_EUNREACHABLE;
    free(found);
    return error;
}

/* By one of the servers that the URI names. */
static int open_by(struct operation *operation, const struct mrt_address *asked)
{
    struct mrt_host host;
    if (operation->store->address.way == MRT_REDIS_CLUSTER)
        return open_checked(operation, asked, operation->store->address.hosts[asked->host].name,
                            MRT_REDIS_HOPS_MAX);
    int error = ask_sentinel(operation, asked, &host);
    struct mrt_addresses *found = error ? NULL : look_up(operation, &host, 1);
    if (!found)
        return error ? error : MORTISE_EUNREACHABLE;
    error = open_checked(operation, &found->at[0], host.name, 0);
    free(found);
    return error;
}

/* Each has a part of the time. In a cluster an error that waiting does not mend ends the search.
   Another sentinel may know better; if none does, the first such error is the one that is shown. */
static int search(struct operation *operation)
{
    const struct mrt_redis_address *address = &operation->store->address;
    char detail[MRT_ERROR_DETAIL_MAX];
    int lasting = MORTISE_OK;
    struct mrt_addresses *asked = look_up(operation, address->hosts, address->host_count);
    mrt_time end = operation->deadline;
    int error = MORTISE_EUNREACHABLE;
    for (size_t i = 0; asked && i < asked->count; i++) {
        mrt_time now = mrt_time_now();
        operation->deadline = now + (end - now) / (mrt_time)(asked->count - i);
        error = open_by(operation, &asked->at[i]);
        bool lasts = error != MORTISE_OK && error != MORTISE_EUNREACHABLE;
        if (error == MORTISE_OK || (lasts && address->way == MRT_REDIS_CLUSTER))
            break;
        if (lasts && !lasting) {
            lasting = error;
            mrt_error_copy_detail(detail);
        }
        mrt_redis_wire_close(&operation->wire);
    }
    operation->deadline = end;
    free(asked);
    return error && lasting ? mrt_error(lasting, "%s", detail) : error;
}

static int open_direct(struct operation *operation)
{
    const struct mrt_redis_address *address = &operation->store->address;
    struct mrt_address server;
    struct mrt_host host;
    if (mrt_redis_seek_known(operation->store, &server, &host))
        return open_server(operation, &server, host.name);
    struct mrt_addresses *found = look_up(operation, address->hosts, 1);
    int error = found ? open_server(operation, &found->at[0], address->hosts[0].name)
                      : MORTISE_EUNREACHABLE;
    free(found);
    return error;
}

/* Where the server is: as the store knows, or within the time. */
static int open_operation(struct operation *operation, const struct mrt_store *port)
{
    const struct mrt_redis_store *store = (const struct mrt_redis_store *)port;
    struct mrt_address server;
    struct mrt_host host;
    int error;
    *operation = (struct operation){.store = store, .wire = {.fd = -1}};
    operation->wire.security = (struct mrt_redis_security *)&store->security; /* has a mutex */
    operation->deadline = mrt_time_add(mrt_time_now(), store->timeout);
    if (store->address.way == MRT_REDIS_DIRECT) {
        error = open_direct(operation);
    } else {
        bool known = mrt_redis_seek_known(store, &server, &host);
        error = known ? open_checked(operation, &server, host.name, MRT_REDIS_HOPS_MAX)
                      : MORTISE_EUNREACHABLE;
        if (error == MORTISE_EUNREACHABLE) {
            mrt_redis_wire_close(&operation->wire);
            error = search(operation);
        }
    }
    operation->outcome_unknown = false;
    return error;
}

/* Calls a script, in whole if the server does not know it. Its reply is a list. */
static int call_script(struct operation *operation, enum mrt_redis_script_name script,
                       const struct mrt_redis_text *arguments, size_t count, redisReply **reply)
{
    const char *name = arguments[script == MRT_REDIS_OPERATE ? 1 : 0].text;
    for (bool whole = false;; whole = true) {
        mrt_redis_script_put(operation->store, &operation->wire, script, whole, NULL, name,
                             arguments, count);
        *reply = exchange(operation);
        int error = error_of(operation, *reply);
        if (error == MORTISE_OK && *reply && (*reply)->type == REDIS_REPLY_ARRAY)
            return MORTISE_OK;
        bool again = !whole && *reply && (*reply)->type == REDIS_REPLY_ERROR &&
                     strncmp((*reply)->str, "NOSCRIPT", 8) == 0;
        freeReplyObject(*reply);
        *reply = NULL;
        if (!again)
            return error ? error : mrt_error(MORTISE_ESTORE, "Redis: no list");
    }
}

/* The reply is a list, to be freed. A script that only looks may be said not to have been run. */
static int run_script(const struct mrt_store *port, enum mrt_redis_script_name script,
                      const struct mrt_redis_text *arguments, size_t count, redisReply **reply)
{
    struct operation operation;
    *reply = NULL;
    int error = open_operation(&operation, port);
    if (error == MORTISE_OK)
        error = call_script(&operation, script, arguments, count, reply);
    mrt_redis_wire_close(&operation.wire);
    if (error != MORTISE_OK && operation.outcome_unknown && script == MRT_REDIS_OPERATE)
        return mrt_error(MORTISE_EUNKNOWN, "Redis: no answer from %s: it may have been done",
                         operation.store->address.shown);
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
static bool show_queue(const redisReply *row, mrt_listed_callback callback, void *argument)
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
    char claim[MRT_REDIS_KEY_MAX];
    mrt_redis_claim_key((const struct mrt_redis_store *)port, name ? name : "", claim);
    const struct mrt_redis_text arguments[] = {mrt_redis_text_of(name ? name : ""),
                                               mrt_redis_text_of(prefix ? prefix : ""),
                                               mrt_redis_text_of(claim)};
    int error = run_script(port, MRT_REDIS_LIST, arguments, 3, &reply);
    for (size_t i = 0; error == MORTISE_OK && reply && i < reply->elements; i++)
        if (!show_queue(reply->element[i], callback, argument))
            break;
    freeReplyObject(reply);
    return error;
}

/* ---------------------------------------------------------------- operator */

static int operate(struct mrt_store *port, const char *what, const char *name, uint64_t fence)
{
    char number[24], claim[MRT_REDIS_KEY_MAX];
    redisReply *reply;
    if (fence % (UINT64_C(1) << MRT_REDIS_FENCE_BITS) != 0)
        return MORTISE_ENOTHELD; /* no ticket's own */
    snprintf(number, sizeof number, "%llu", (unsigned long long)(fence >> MRT_REDIS_FENCE_BITS));
    mrt_redis_claim_key((const struct mrt_redis_store *)port, name, claim);
    const struct mrt_redis_text arguments[] = {mrt_redis_text_of(what), mrt_redis_text_of(name),
                                               mrt_redis_text_of(number), mrt_redis_text_of(claim)};
    int error = run_script(port, MRT_REDIS_OPERATE, arguments, 4, &reply);
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

/* A setting of the server's; "": it is not told. */
static void read_setting(struct operation *operation, const char *setting, char *text, size_t size)
{
    mrt_redis_wire_words(&operation->wire, "CONFIG", "GET", setting, NULL);
    redisReply *reply = exchange(operation);
    bool told = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    snprintf(text, size, "%s", told ? text_at(reply, 1) : "");
    freeReplyObject(reply);
}

static bool is_open(struct operation *operation)
{
    char mode[8], addresses[1024];
    read_setting(operation, "protected-mode", mode, sizeof mode);
    read_setting(operation, "bind", addresses, sizeof addresses);
    return strcmp(mode, "no") == 0 && mrt_listens_for_others(addresses);
}

/* Whether a command that changes nothing is let through; `third` may be NULL. */
static bool is_allowed(struct operation *operation, const char *first, const char *second,
                       const char *third)
{
    mrt_redis_wire_words(&operation->wire, first, second, third, NULL);
    redisReply *reply = exchange(operation);
    bool allowed = reply && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return allowed;
}

/* A user that may more than take locks can take everything from everybody. */
static void check_access(struct operation *operation)
{
    const struct mrt_redis_store *store = operation->store;
    struct mrt_notes notes = {
        .from = store->notes.from, .log = store->notes.log, .argument = store->notes.argument};
    const char *text = NULL;
    if (!*store->secret) {
        if (is_open(operation))
            text = "no password: anyone who reaches the server may break these locks";
    } else if (operation->leaves && store->address.tls == MRT_REDIS_TLS_OFF) {
        text = "the password is sent in the clear to another machine; rediss:// encrypts it";
    } else if (is_allowed(operation, "CONFIG", "GET", "maxmemory")) {
        text = "this user may configure the server, which locks do not need; doc/redis.md has "
               "the ACL that is enough";
    } else if (*store->address.base == '{' &&
               is_allowed(operation, "TYPE", "a key of somebody else's", NULL)) {
        text = "this user may use keys that are not of these locks; doc/redis.md has the ACL "
               "that is enough";
    }
    if (text)
        mrt_note(&notes, MRT_REDIS_NOTE_ACCESS, "%s", text);
    mrt_notes_say(&notes);
}

static int read_version(struct operation *operation, char *text, size_t size)
{
    static const char name[] = "redis_version:";
    enum mrt_redis_tls tls = operation->store->address.tls;
    mrt_redis_wire_words(&operation->wire, "INFO", "server", NULL);
    redisReply *reply = exchange(operation);
    int error = error_of(operation, reply);
    bool is_text = reply && reply->type == REDIS_REPLY_STRING;
    const char *found = is_text ? strstr(reply->str, name) : NULL;
    if (found) {
        found += sizeof name - 1;
        snprintf(text, size, "Redis %.*s%s", (int)strcspn(found, "\r\n"), found,
                 mrt_address_encrypted(tls != MRT_REDIS_TLS_OFF, tls == MRT_REDIS_TLS_VERIFY));
    } else if (error == MORTISE_OK) {
        error = mrt_error(MORTISE_ENOTSUPPORTED, "the server does not tell its version");
    }
    freeReplyObject(reply);
    return error;
}

int mrt_redis_server(struct mrt_store *port, char *text, size_t size)
{
    struct operation operation;
    int error = open_operation(&operation, port);
    if (error == MORTISE_OK)
        error = read_version(&operation, text, size);
    if (operation.wire.fd >= 0)
        check_access(&operation); /* also where the user may not ask for the version */
    mrt_redis_wire_close(&operation.wire);
    return error;
}
