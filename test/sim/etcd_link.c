/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests on their way to a member, and answers on theirs: etcd_server.h. A request outlives the
 * call that it is of: what a client has sent by a connection that it gave up arrives all the same,
 * perhaps long after its next request.
 */
#include "etcd_server.h"

#include <stdlib.h>
#include <string.h>

/* A piece of an answer, or the end of its connection. */
struct etcd_parcel {
    struct task task; /* first */
    struct etcd_parcel *next;
    struct etcd_exchange *exchange;
    long status;
    bool last, breaks;
    size_t size;
    char bytes[];
};

static enum etcd_method method_of(const char *path)
{
    static const char *const paths[ETCD_METHODS] = {[ETCD_TXN] = "kv/txn",
                                                    [ETCD_RANGE] = "kv/range",
                                                    [ETCD_GRANT] = "lease/grant",
                                                    [ETCD_REVOKE] = "lease/revoke",
                                                    [ETCD_KEEPALIVE] = "lease/keepalive",
                                                    [ETCD_WATCH] = "watch"};
    for (int i = 0; i < ETCD_METHODS; i++)
        if (strcmp(paths[i], path) == 0)
            return (enum etcd_method)i;
    abort();
}

struct etcd_exchange *etcd_exchange_new(struct client *client, struct etcd_easy *easy, int member,
                                        const char *path, const char *body, size_t size)
{
    struct etcd_cluster *cluster = etcd_of(client->world);
    struct etcd_exchange *exchange = calloc(1, sizeof *exchange), **link = &cluster->exchanges;
    struct json_tokener *parser = json_tokener_new();
    if (!exchange || !parser)
        abort();
    exchange->cluster = cluster;
    exchange->client = client;
    exchange->peer = client->peer;
    exchange->easy = easy;
    exchange->member = member;
    exchange->method = method_of(path);
    exchange->body = json_tokener_parse_ex(parser, body, (int)size);
    json_tokener_free(parser);
    if (!exchange->body)
        abort();  /* the store sends what is no JSON */
    while (*link) /* the oldest first */
        link = &(*link)->next;
    *link = exchange;
    return exchange;
}

static void drop(struct etcd_parcel *parcel)
{
    struct etcd_parcel **link = &parcel->exchange->parcels;
    while (*link != parcel)
        link = &(*link)->next;
    *link = parcel->next;
    world_cancel(parcel->exchange->client->world, &parcel->task);
    free(parcel);
}

void etcd_exchange_free(struct etcd_exchange *exchange)
{
    struct etcd_exchange **link = &exchange->cluster->exchanges;
    while (*link != exchange)
        link = &(*link)->next;
    *link = exchange->next;
    while (exchange->parcels)
        drop(exchange->parcels);
    world_cancel(exchange->client->world, &exchange->task);
    json_object_put(exchange->body);
    free(exchange->from);
    free(exchange->end);
    free(exchange);
}

mrt_time etcd_later(const struct etcd_exchange *exchange, mrt_time not_before)
{
    struct world *world = exchange->client->world;
    mrt_time at = world->now + MRT_MICROSECOND + world_some(world, world->profile.delay_us);
    if (exchange->client->cut_until > at)
        at = exchange->client->cut_until; /* it is sent again and again until then */
    if (exchange->held_up_until > at)
        at = exchange->held_up_until;
    return at < not_before ? not_before : at;
}

void etcd_exchange_send(struct etcd_exchange *exchange)
{
    world_at(exchange->client->world, &exchange->task, etcd_later(exchange, 0), etcd_serve);
}

void etcd_exchange_leave(struct etcd_exchange *exchange, bool lost)
{
    struct world *world = exchange->client->world;
    exchange->easy = NULL;
    while (exchange->parcels)
        drop(exchange->parcels);
    if (exchange->watches || !exchange->task.timer.armed || (lost && !exchange->arrived)) {
        etcd_exchange_free(exchange);
        return;
    }
    if (!exchange->arrived && random_chance(&world->random, world->profile.late))
        world_at(world, &exchange->task,
                 exchange->task.timer.at + world_some(world, world->drawn.lease_us), etcd_serve);
}

/* ------------------------------------------------------------------ answers */

static void arrive(struct world *world, struct task *task)
{
    struct etcd_parcel *parcel = (struct etcd_parcel *)task;
    struct etcd_exchange *exchange = parcel->exchange;
    (void)world;
    if (parcel->breaks) {
        etcd_easy_break(exchange->easy, true);
        return;
    }
    struct etcd_easy *easy = exchange->easy;
    etcd_easy_take(easy, parcel->status, parcel->bytes, parcel->size, parcel->last);
    if (parcel->last)
        etcd_exchange_free(exchange);
    else
        drop(parcel);
}

static void post(struct etcd_exchange *exchange, const struct etcd_parcel *made, const char *bytes)
{
    struct etcd_parcel *parcel = calloc(1, sizeof *parcel + made->size), **link;
    if (!parcel)
        abort();
    *parcel = *made;
    if (made->size > 0)
        memcpy(parcel->bytes, bytes, made->size);
    parcel->exchange = exchange;
    for (link = &exchange->parcels; *link;)
        link = &(*link)->next;
    *link = parcel;
    exchange->down = etcd_later(exchange, exchange->down);
    world_at(exchange->client->world, &parcel->task, exchange->down, arrive);
    exchange->down += 1; /* the next one comes after it */
}

void etcd_say(struct etcd_exchange *exchange, long status, struct mrt_rest_text *text, bool last)
{
    struct world *world = exchange->client->world;
    size_t first = text->length;
    if (text->failed)
        abort();
    if (!exchange->easy) {
        mrt_rest_text_free(text);
        if (last)
            etcd_exchange_free(exchange);
        return;
    }
    if (text->length > 1 && random_chance(&world->random, world->profile.split))
        first = 1 + (size_t)random_below(&world->random, (int64_t)text->length - 1);
    post(exchange,
         &(struct etcd_parcel){
             .status = status, .last = last && first == text->length, .size = first},
         text->bytes);
    if (first < text->length)
        post(exchange,
             &(struct etcd_parcel){.status = status, .last = last, .size = text->length - first},
             text->bytes + first);
    mrt_rest_text_free(text);
}

/* Its answers arrive before that, or not. */
void etcd_hang_up(struct etcd_exchange *exchange)
{
    world_cancel(exchange->client->world, &exchange->task);
    if (!exchange->easy) {
        etcd_exchange_free(exchange);
        return;
    }
    if (random_below(&exchange->client->world->random, 2))
        while (exchange->parcels)
            drop(exchange->parcels);
    exchange->watches = false;
    post(exchange, &(struct etcd_parcel){.breaks = true}, NULL);
}
