/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies as etcd's JSON gateway writes them, and watches: etcd_server.h. Numbers are
 * texts, and what is zero, empty or false is left out.
 */
#include "etcd_server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Revisions in a line of a watch that has fallen behind; of etcd's, a thousand. */
#define BATCH 1

static struct etcd_member *member_of(const struct etcd_exchange *exchange)
{
    return &exchange->cluster->members[exchange->member];
}

static void add_header(struct mrt_rest_text *text, const struct etcd_exchange *exchange)
{
    mrt_rest_add(text,
                 "\"header\":{\"member_id\":\"%d\",\"revision\":\"%" PRId64
                 "\",\"raft_term\":\"%" PRId64 "\"}",
                 exchange->member + 1, exchange->cluster->revision, member_of(exchange)->term);
}

static void add_kv(struct mrt_rest_text *text, const struct etcd_kv *kv)
{
    mrt_rest_add(text, "{");
    mrt_rest_add_bytes(text, "key", kv->key, strlen(kv->key));
    mrt_rest_add(text,
                 ",\"create_revision\":\"%" PRId64 "\",\"mod_revision\":\"%" PRId64
                 "\",\"version\":\"%" PRId64 "\"",
                 kv->created, kv->modified, kv->version);
    if (kv->value[0])
        mrt_rest_add(text, ",\"value\":\"%s\"", kv->value);
    if (kv->lease != 0)
        mrt_rest_add(text, ",\"lease\":\"%" PRId64 "\"", kv->lease);
    mrt_rest_add(text, "}");
}

/* A range of a request: its key, and its end or NULL; both to be freed. */
static void read_range(struct json_object *request, char **from, char **end)
{
    size_t size;
    *from = mrt_rest_bytes(request, "key", &size);
    *end =
        mrt_rest_member(request, "range_end") ? mrt_rest_bytes(request, "range_end", &size) : NULL;
    if (!*from)
        abort();
}

/* ------------------------------------------------------------------ reading */

/* The key of the range that was made after `after` and before all others. */
static const struct etcd_kv *next_kv(const struct etcd_cluster *cluster, const char *from,
                                     const char *end, const struct etcd_kv *after)
{
    const struct etcd_kv *found = NULL;
    for (int i = 0; i < cluster->kv_count; i++) {
        const struct etcd_kv *kv = &cluster->kvs[i];
        if (etcd_is_in(kv->key, from, end) && (!after || kv->created > after->created) &&
            (!found || kv->created < found->created))
            found = kv;
    }
    return found;
}

static void add_range(struct mrt_rest_text *text, const struct etcd_exchange *exchange,
                      struct json_object *request)
{
    char *from, *end;
    int count = 0;
    bool counts = json_object_get_boolean(mrt_rest_member(request, "count_only"));
    read_range(request, &from, &end);
    mrt_rest_add(text, "{");
    add_header(text, exchange);
    const struct etcd_kv *kv = next_kv(exchange->cluster, from, end, NULL);
    for (; kv; kv = next_kv(exchange->cluster, from, end, kv)) {
        if (!counts) {
            mrt_rest_add(text, count == 0 ? ",\"kvs\":[" : ",");
            add_kv(text, kv);
        }
        count++;
    }
    if (count > 0)
        mrt_rest_add(text, "%s,\"count\":\"%d\"", counts ? "" : "]", count);
    mrt_rest_add(text, "}");
    free(from);
    free(end);
}

/* ------------------------------------------------------------------ transactions */

static int64_t target_of(struct json_object *compare, const struct etcd_kv *kv, int64_t *wanted)
{
    const char *target = mrt_rest_string(compare, "target");
    bool is_created = strcmp(target, "CREATE") == 0, is_modified = strcmp(target, "MOD") == 0;
    *wanted = mrt_rest_number(compare, is_created    ? "create_revision"
                                       : is_modified ? "mod_revision"
                                                     : "lease");
    if (!is_created && !is_modified && strcmp(target, "LEASE") != 0)
        abort();
    return is_created ? kv->created : is_modified ? kv->modified : kv->lease;
}

static bool matches(struct json_object *compare, const struct etcd_kv *kv)
{
    int64_t wanted, number = target_of(compare, kv, &wanted);
    return strcmp(mrt_rest_string(compare, "result"), "LESS") == 0 ? number < wanted
                                                                   : number == wanted;
}

/* Of all keys in a range; of a key that does not exist all numbers are 0. */
static bool holds(const struct etcd_cluster *cluster, struct json_object *compare)
{
    static const struct etcd_kv none = {.key = NULL};
    char *from, *end;
    bool fine = true, any = false;
    read_range(compare, &from, &end);
    for (int i = 0; i < cluster->kv_count; i++)
        if (etcd_is_in(cluster->kvs[i].key, from, end)) {
            fine &= matches(compare, &cluster->kvs[i]);
            any = true;
        }
    free(from);
    free(end);
    return any ? fine : matches(compare, &none);
}

static struct json_object *item(struct json_object *request, const char *list, size_t i)
{
    struct json_object *array = mrt_rest_member(request, list);
    bool is_there =
        json_object_is_type(array, json_type_array) && i < json_object_array_length(array);
    return is_there ? json_object_array_get_idx(array, i) : NULL;
}

/* The lease of a put; false: it does not exist. */
static bool find_lease(const struct etcd_cluster *cluster, struct json_object *put, int64_t *lease)
{
    size_t size;
    char *key = mrt_rest_bytes(put, "key", &size);
    const struct etcd_kv *kv = etcd_find(cluster, key);
    *lease = mrt_rest_number(put, "lease");
    if (json_object_get_boolean(mrt_rest_member(put, "ignore_lease")))
        *lease = kv ? kv->lease : 0;
    free(key);
    return *lease == 0 || etcd_lease_find(cluster, *lease);
}

static bool may_put(const struct etcd_cluster *cluster, struct json_object *request,
                    const char *list)
{
    int64_t lease;
    struct json_object *one;
    for (size_t i = 0; (one = item(request, list, i)); i++) {
        struct json_object *put = mrt_rest_member(one, "request_put");
        if (put && !find_lease(cluster, put, &lease))
            return false;
    }
    return true;
}

static void do_put(struct etcd_cluster *cluster, struct json_object *put)
{
    size_t size;
    int64_t lease;
    char *key = mrt_rest_bytes(put, "key", &size);
    find_lease(cluster, put, &lease);
    etcd_put(cluster, key, mrt_rest_string(put, "value"), lease);
    free(key);
}

static void do_delete(struct etcd_cluster *cluster, struct json_object *request)
{
    char *from, *end;
    read_range(request, &from, &end);
    etcd_delete(cluster, from, end);
    free(from);
    free(end);
}

static void do_operation(struct mrt_rest_text *text, const struct etcd_exchange *exchange,
                         struct json_object *operation)
{
    struct json_object *put = mrt_rest_member(operation, "request_put");
    struct json_object *range = mrt_rest_member(operation, "request_range");
    if (range) {
        mrt_rest_add(text, "{\"response_range\":");
        add_range(text, exchange, range);
        mrt_rest_add(text, "}");
    } else if (put) {
        do_put(exchange->cluster, put);
        mrt_rest_add(text, "{\"response_put\":{}}");
    } else {
        do_delete(exchange->cluster, mrt_rest_member(operation, "request_delete_range"));
        mrt_rest_add(text, "{\"response_delete_range\":{}}");
    }
}

/* False: it is refused. */
static bool do_txn(struct mrt_rest_text *text, const struct etcd_exchange *exchange)
{
    struct etcd_cluster *cluster = exchange->cluster;
    struct json_object *one;
    struct mrt_rest_text responses = {0};
    bool fine = true;
    for (size_t i = 0; (one = item(exchange->body, "compare", i)); i++)
        fine &= holds(cluster, one);
    const char *list = fine ? "success" : "failure";
    if (!may_put(cluster, exchange->body, list))
        return false;
    for (size_t i = 0; (one = item(exchange->body, list, i)); i++) {
        mrt_rest_add(&responses, "%s", i > 0 ? "," : "");
        do_operation(&responses, exchange, one);
    }
    etcd_commit(cluster);
    mrt_rest_add(text, "{");
    add_header(text, exchange);
    mrt_rest_add(text, "%s,\"responses\":[%s]}", fine ? ",\"succeeded\":true" : "",
                 responses.bytes ? responses.bytes : "");
    mrt_rest_text_free(&responses);
    return true;
}

/* ------------------------------------------------------------------ leases */

static void add_lease(struct mrt_rest_text *text, const struct etcd_exchange *exchange, int64_t id,
                      int64_t ttl)
{
    mrt_rest_add(text, "{");
    add_header(text, exchange);
    mrt_rest_add(text, ",\"ID\":\"%" PRId64 "\"", id);
    if (ttl > 0)
        mrt_rest_add(text, ",\"TTL\":\"%" PRId64 "\"", ttl);
    mrt_rest_add(text, "}");
}

static void keep_alive(struct mrt_rest_text *text, const struct etcd_exchange *exchange)
{
    int64_t id = mrt_rest_number(exchange->body, "ID");
    struct etcd_lease *lease = etcd_lease_find(exchange->cluster, id);
    if (lease && lease->ends <= exchange->client->world->now) {
        etcd_lease_revoke(lease); /* the answer waits for that */
        lease = NULL;
    }
    if (lease)
        etcd_lease_renew(lease);
    mrt_rest_add(text, "{\"result\":");
    add_lease(text, exchange, id, lease ? lease->ttl : 0);
    mrt_rest_add(text, "}\n");
}

static const char *do_grant(struct mrt_rest_text *text, const struct etcd_exchange *exchange)
{
    int64_t id = mrt_rest_number(exchange->body, "ID"),
            ttl = mrt_rest_number(exchange->body, "TTL");
    int64_t shortest = exchange->client->world->drawn.etcd_shortest;
    if (etcd_lease_find(exchange->cluster, id))
        return "etcdserver: lease already exists";
    ttl = ttl < shortest ? shortest : ttl;
    etcd_lease_grant(exchange->cluster, id, ttl, exchange->peer);
    add_lease(text, exchange, id, ttl);
    return NULL;
}

static const char *do_revoke(struct mrt_rest_text *text, const struct etcd_exchange *exchange)
{
    struct etcd_lease *lease =
        etcd_lease_find(exchange->cluster, mrt_rest_number(exchange->body, "ID"));
    if (!lease)
        return "etcdserver: requested lease not found";
    etcd_lease_revoke(lease);
    mrt_rest_add(text, "{");
    add_header(text, exchange);
    mrt_rest_add(text, "}");
    return NULL;
}

void etcd_say_stale(struct etcd_exchange *exchange)
{
    int64_t id = mrt_rest_number(exchange->body, "ID");
    const struct etcd_lease *lease = etcd_lease_find(exchange->cluster, id);
    bool is_known = lease && lease->granted < member_of(exchange)->deposed;
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"result\":");
    add_lease(&text, exchange, id, is_known ? lease->ttl : 0);
    mrt_rest_add(&text, "}\n");
    etcd_say(exchange, 200, &text, true);
}

/* ------------------------------------------------------------------ watches */

static void flush_watch(struct world *world, struct task *task);

static bool is_behind(const struct etcd_exchange *exchange)
{
    const struct etcd_member *member = member_of(exchange);
    mrt_time now = exchange->client->world->now;
    return member->frozen_until > now || member->isolated_until > now;
}

static void say_line(struct etcd_exchange *exchange, struct mrt_rest_text *text, const char *rest)
{
    struct mrt_rest_text line = {0};
    mrt_rest_add(&line, "{\"result\":{");
    add_header(&line, exchange);
    mrt_rest_add(&line, "%s%s}}\n", text && text->bytes ? text->bytes : "", rest);
    if (text)
        mrt_rest_text_free(text);
    etcd_say(exchange, 200, &line, false);
}

static void add_event(struct mrt_rest_text *text, const struct etcd_change *change)
{
    mrt_rest_add(text, text->length == 0 ? ",\"events\":[" : ",");
    if (!change->gone) {
        mrt_rest_add(text, "{\"kv\":");
        add_kv(text, &change->kv);
    } else {
        mrt_rest_add(text, "{\"type\":\"DELETE\",\"kv\":{");
        mrt_rest_add_bytes(text, "key", change->kv.key, strlen(change->kv.key));
        mrt_rest_add(text, ",\"mod_revision\":\"%" PRId64 "\"}", change->revision);
    }
    mrt_rest_add(text, "}");
}

/* Whole revisions, at most so many; the header has the newest revision in any case. */
static void say_events(struct etcd_exchange *exchange)
{
    const struct etcd_cluster *cluster = exchange->cluster;
    struct mrt_rest_text events = {0};
    int64_t newest = exchange->next_revision - 1;
    int revisions = 0, i;
    for (i = 0; i < cluster->change_count; i++) {
        const struct etcd_change *change = &cluster->history[i];
        if (change->revision < exchange->next_revision ||
            !etcd_is_in(change->kv.key, exchange->from, exchange->end))
            continue;
        revisions += change->revision > newest;
        if (revisions > BATCH)
            break;
        add_event(&events, change);
        newest = change->revision;
    }
    bool rest = i < cluster->change_count;
    exchange->next_revision = rest ? newest + 1 : cluster->revision + 1;
    if (events.length > 0)
        say_line(exchange, &events, "]");
    if (rest)
        world_at(cluster->world, &exchange->task, cluster->world->now + MRT_MICROSECOND,
                 flush_watch);
}

static void flush_watch(struct world *world, struct task *task)
{
    struct etcd_exchange *exchange = (struct etcd_exchange *)task;
    const struct etcd_cluster *cluster = exchange->cluster;
    char rest[64];
    if (is_behind(exchange)) {
        world_at(world, task, etcd_next_chance(cluster), flush_watch);
    } else if (exchange->next_revision <= cluster->compacted) {
        snprintf(rest, sizeof rest, ",\"canceled\":true,\"compact_revision\":\"%" PRId64 "\"",
                 cluster->compacted);
        exchange->next_revision = INT64_MAX; /* nothing more comes of it */
        say_line(exchange, NULL, rest);
    } else if (exchange->next_revision <= cluster->revision) {
        say_events(exchange);
    }
}

void etcd_notify(struct etcd_cluster *cluster)
{
    struct world *world = cluster->world;
    for (struct etcd_exchange *watch = cluster->exchanges; watch; watch = watch->next)
        if (watch->watches && !watch->task.timer.armed)
            world_at(world, &watch->task,
                     world->now + world_some(world, world->profile.etcd_watch_late_us),
                     flush_watch);
}

static void begin_watch(struct etcd_exchange *exchange)
{
    struct json_object *request = mrt_rest_member(exchange->body, "create_request");
    struct world *world = exchange->client->world;
    if (!exchange->easy) {
        etcd_exchange_free(exchange);
        return;
    }
    read_range(request, &exchange->from, &exchange->end);
    exchange->next_revision = mrt_rest_number(request, "start_revision");
    if (exchange->next_revision == 0)
        exchange->next_revision = exchange->cluster->revision + 1;
    exchange->watches = true;
    say_line(exchange, NULL, ",\"created\":true");
    world_at(world, &exchange->task, world->now, flush_watch);
}

/* ------------------------------------------------------------------ all of them */

void etcd_say_error(struct etcd_exchange *exchange, const char *message)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"error\":\"%s\",\"message\":\"%s\",\"code\":2}", message, message);
    etcd_say(exchange, 500, &text, true);
}

static const char *do_it(struct mrt_rest_text *text, const struct etcd_exchange *exchange)
{
    switch (exchange->method) {
    case ETCD_TXN:
        return do_txn(text, exchange) ? NULL : "etcdserver: requested lease not found";
    case ETCD_RANGE:
        add_range(text, exchange, exchange->body);
        return NULL;
    case ETCD_GRANT:
        return do_grant(text, exchange);
    case ETCD_REVOKE:
        return do_revoke(text, exchange);
    default:
        keep_alive(text, exchange);
        return NULL;
    }
}

void etcd_execute(struct etcd_exchange *exchange)
{
    struct world *world = exchange->client->world;
    struct mrt_rest_text text = {0};
    bool is_garbled = random_chance(&world->random, world->profile.etcd_error);
    bool is_refused = lone_takes(world, FAULT_REFUSED, exchange->client);
    if (exchange->method == ETCD_WATCH) {
        begin_watch(exchange);
        return;
    }
    if (is_refused || (is_garbled && random_below(&world->random, 2))) {
        etcd_say_error(exchange, "etcdserver: too many requests");
        return;
    }
    const char *error = do_it(&text, exchange);
    if (is_garbled) /* it has been done, and only the gateway's own way there and back failed */
        error = "transport is closing";
    if (error) {
        mrt_rest_text_free(&text);
        etcd_say_error(exchange, error);
    } else {
        etcd_say(exchange, 200, &text, true);
    }
}
