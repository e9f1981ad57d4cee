/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a fake Redis server: those that the store and its scripts use. */
#include "redis_server.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EPOCH_MS INT64_C(1700000000000)

int64_t redis_us(const struct redis_server *server)
{
    return (EPOCH_MS + server->step_ms) * 1000 + server->redis->world->now / MRT_MICROSECOND;
}

int64_t redis_ms(const struct redis_server *server)
{
    return redis_us(server) / 1000;
}

static struct redis_key *find(const struct redis_call *call)
{
    return redis_find(&call->server->data, call->words[1], redis_ms(call->server));
}

static struct redis_key *have(const struct redis_call *call, enum redis_type type)
{
    return redis_have(&call->server->data, call->words[1], type, redis_ms(call->server));
}

static void say_number(const struct redis_call *call, int64_t number)
{
    reply_mark(call->reply, ':', number);
}

/* ------------------------------------------------------------------ strings */

static void do_get(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    if (key)
        reply_text(call->reply, key->fields[0].value);
    else
        reply_nothing(call->reply);
}

static void remember_set(const struct redis_call *call)
{
    struct redis_connection *connection = call->connection;
    if (!connection)
        return;
    free((void *)(uintptr_t)connection->last_set.bytes);
    connection->last_set = (struct slice){slice_copy(call->words[1]), call->words[1].size};
}

/* SET key value [NX] [PX ms] */
static void do_set(const struct redis_call *call)
{
    bool only_new = false;
    int64_t lives = 0;
    for (size_t i = 3; i < call->count; i++)
        if (slice_is(call->words[i], "NX"))
            only_new = true;
        else if (slice_is(call->words[i], "PX"))
            lives = (int64_t)slice_number(call->words[++i]);
    remember_set(call);
    if (only_new && find(call)) {
        reply_nothing(call->reply);
        return;
    }
    struct redis_key *key = have(call, REDIS_STRING);
    redis_set(key, slice_of(""), call->words[2]);
    key->ends = lives > 0 ? redis_ms(call->server) + lives : 0;
    key->setter = call->connection ? call->connection->peer : NULL;
    key->first = key->last = 0;
    reply_line(call->reply, '+', "OK");
}

/* The number drawn behind a SET is that key's. */
static void note_number(const struct redis_call *call, uint64_t number)
{
    const struct redis_connection *connection = call->connection;
    if (!connection || !connection->last_set.bytes)
        return;
    struct redis_key *key =
        redis_find(&call->server->data, connection->last_set, redis_ms(call->server));
    if (!key || key->setter != connection->peer)
        return;
    key->first = key->first ? key->first : number;
    key->last = number;
}

static void do_incr(const struct redis_call *call)
{
    char text[32];
    struct redis_key *key = have(call, REDIS_STRING);
    int64_t number = key->count > 0 ? (int64_t)slice_number(key->fields[0].value) : 0;
    snprintf(text, sizeof text, "%lld", (long long)++number);
    redis_set(key, slice_of(""), slice_of(text));
    say_number(call, number);
    note_number(call, (uint64_t)number);
}

static void do_del(const struct redis_call *call)
{
    int64_t deleted = 0;
    for (size_t i = 1; i < call->count; i++) {
        struct redis_key *key =
            redis_find(&call->server->data, call->words[i], redis_ms(call->server));
        deleted += key != NULL;
        if (key)
            redis_delete(&call->server->data, key);
    }
    say_number(call, deleted);
}

static void do_pexpire(const struct redis_call *call)
{
    struct redis_key *key = find(call);
    say_number(call, key != NULL);
    if (key)
        key->ends = redis_ms(call->server) + (int64_t)slice_number(call->words[2]);
}

static void do_pttl(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    say_number(call, !key ? -2 : key->ends == 0 ? -1 : key->ends - redis_ms(call->server));
}

static void do_exists(const struct redis_call *call)
{
    say_number(call, find(call) != NULL);
}

static void do_type(const struct redis_call *call)
{
    static const char *const names[] = {"string", "hash", "zset"};
    const struct redis_key *key = find(call);
    reply_line(call->reply, '+', key ? names[key->type] : "none");
}

/* ------------------------------------------------------------------ hashes */

static void say_field(const struct redis_call *call, const struct redis_key *key, struct slice name)
{
    int index = redis_field(key, name);
    if (index < 0)
        reply_nothing(call->reply);
    else
        reply_text(call->reply, key->fields[index].value);
}

static void do_hget(const struct redis_call *call)
{
    say_field(call, find(call), call->words[2]);
}

static void do_hmget(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    reply_mark(call->reply, '*', (int64_t)call->count - 2);
    for (size_t i = 2; i < call->count; i++)
        say_field(call, key, call->words[i]);
}

static void do_hgetall(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    reply_mark(call->reply, '*', key ? 2 * key->count : 0);
    for (int i = 0; key && i < key->count; i++) {
        reply_text(call->reply, key->fields[i].name);
        reply_text(call->reply, key->fields[i].value);
    }
}

static void do_hexists(const struct redis_call *call)
{
    say_number(call, redis_field(find(call), call->words[2]) >= 0);
}

static void do_hset(const struct redis_call *call)
{
    struct redis_key *key = have(call, REDIS_HASH);
    int64_t added = 0;
    for (size_t i = 2; i + 1 < call->count; i += 2)
        added += redis_set(key, call->words[i], call->words[i + 1]);
    say_number(call, added);
}

static void do_hincrby(const struct redis_call *call)
{
    char text[32];
    struct redis_key *key = have(call, REDIS_HASH);
    int index = redis_field(key, call->words[2]);
    int64_t number = index >= 0 ? (int64_t)slice_number(key->fields[index].value) : 0;
    number += (int64_t)slice_number(call->words[3]);
    snprintf(text, sizeof text, "%lld", (long long)number);
    redis_set(key, call->words[2], slice_of(text));
    say_number(call, number);
}

/* HDEL and ZREM */
static void do_drop(const struct redis_call *call)
{
    int64_t dropped = 0;
    for (size_t i = 2; i < call->count; i++) {
        struct redis_key *key = find(call);
        int index = redis_field(key, call->words[i]);
        if (index >= 0)
            redis_drop(&call->server->data, key, index);
        dropped += index >= 0;
    }
    say_number(call, dropped);
}

/* ------------------------------------------------------------------ sorted sets */

static void do_zadd(const struct redis_call *call)
{
    struct redis_key *key = have(call, REDIS_ZSET);
    int64_t added = 0;
    for (size_t i = 2; i + 1 < call->count; i += 2)
        added += redis_rank(key, call->words[i + 1], slice_number(call->words[i]));
    say_number(call, added);
}

static void do_zscore(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    int index = redis_field(key, call->words[2]);
    if (index < 0)
        reply_nothing(call->reply);
    else
        reply_number_text(call->reply, key->fields[index].score);
}

static void do_zrank(const struct redis_call *call)
{
    int index = redis_field(find(call), call->words[2]);
    if (index < 0)
        reply_nothing(call->reply);
    else
        say_number(call, index);
}

static void do_zcard(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    say_number(call, key ? key->count : 0);
}

/* "5", "(5", "-inf" */
static bool is_within(double score, struct slice low, struct slice high)
{
    bool above = *low.bytes == '(', below = *high.bytes == '(';
    double least = slice_number((struct slice){low.bytes + above, low.size - above});
    double most = slice_number((struct slice){high.bytes + below, high.size - below});
    return (above ? score > least : score >= least) && (below ? score < most : score <= most);
}

static void do_zcount(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    int64_t count = 0;
    for (int i = 0; key && i < key->count; i++)
        count += is_within(key->fields[i].score, call->words[2], call->words[3]);
    say_number(call, count);
}

static void do_zremrangebyscore(const struct redis_call *call)
{
    struct redis_key *key = find(call);
    int64_t count = 0;
    for (int i = key ? key->count - 1 : -1; i >= 0; i--)
        if (is_within(key->fields[i].score, call->words[2], call->words[3])) {
            bool last = key->count == 1;
            redis_drop(&call->server->data, key, i);
            count++;
            if (last)
                break;
        }
    say_number(call, count);
}

static void say_fields(const struct redis_call *call, const struct redis_key *key, const int *found,
                       int count, bool scores)
{
    reply_mark(call->reply, '*', scores ? 2 * count : count);
    for (int i = 0; i < count; i++) {
        reply_text(call->reply, key->fields[found[i]].name);
        if (scores)
            reply_number_text(call->reply, key->fields[found[i]].score);
    }
}

/* ZRANGE key first last [WITHSCORES]; what is below 0 is counted from the end */
static void do_zrange(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    int total = key ? key->count : 0, found[total + 1], count = 0;
    int first = (int)slice_number(call->words[2]), last = (int)slice_number(call->words[3]);
    if (last < 0)
        last += total;
    if (first < 0)
        first = first + total > 0 ? first + total : 0;
    for (int i = first; i <= last && i < total; i++)
        found[count++] = i;
    say_fields(call, key, found, count, call->count > 4);
}

/* ZRANGEBYSCORE key low high [LIMIT offset count] */
static void do_zrangebyscore(const struct redis_call *call)
{
    const struct redis_key *key = find(call);
    int total = key ? key->count : 0, found[total + 1], count = 0;
    int limit = call->count > 6 ? (int)slice_number(call->words[6]) : total;
    for (int i = 0; i < total && count < limit; i++)
        if (is_within(key->fields[i].score, call->words[2], call->words[3]))
            found[count++] = i;
    say_fields(call, key, found, count, false);
}

/* ------------------------------------------------------------------ the rest */

static void do_time(const struct redis_call *call)
{
    int64_t now = redis_us(call->server);
    reply_mark(call->reply, '*', 2);
    reply_number_text(call->reply, (double)(now / 1000000));
    reply_number_text(call->reply, (double)(now % 1000000));
}

static void do_publish(const struct redis_call *call)
{
    redis_publish(call->server, call->words[1], call->words[2], call->reply);
}

static void do_subscribe(const struct redis_call *call)
{
    redis_subscribe(call, true);
}

static void do_unsubscribe(const struct redis_call *call)
{
    redis_subscribe(call, false);
}

/* CLIENT ID, CLIENT KILL ID n */
static void do_client(const struct redis_call *call)
{
    if (slice_is(call->words[1], "ID"))
        say_number(call, call->connection->id);
    else
        say_number(call, redis_kill(call->server, (int64_t)slice_number(call->words[3]), NULL));
}

/* Its time counts whole seconds; a run is known by when it began. */
static void do_info(const struct redis_call *call)
{
    char text[192];
    int64_t up = redis_ms(call->server) / 1000 - call->server->started / 1000;
    snprintf(text, sizeof text,
             "# Server\r\nrun_id:%d-%lld\r\nuptime_in_seconds:%lld\r\nmaxmemory:0\r\n"
             "maxmemory_policy:noeviction\r\n",
             call->server->number, (long long)call->server->started, (long long)up);
    reply_text(call->reply, slice_of(text));
}

/* WAIT replicas ms */
static void do_wait(const struct redis_call *call)
{
    struct world *world = call->server->redis->world;
    bool lacks = random_chance(&world->random, world->profile.redis_copyless);
    say_number(call, lacks ? 0 : (int64_t)slice_number(call->words[1]));
}

static const struct {
    const char *name;
    size_t words; /* at least */
    void (*run)(const struct redis_call *call);
} commands[] = {
    {"EVALSHA", 4, redis_eval},
    {"EVAL", 4, redis_eval},
    {"HMGET", 3, do_hmget},
    {"HGET", 3, do_hget},
    {"HSET", 4, do_hset},
    {"HDEL", 3, do_drop},
    {"ZSCORE", 3, do_zscore},
    {"ZRANGE", 4, do_zrange},
    {"ZADD", 4, do_zadd},
    {"ZREM", 3, do_drop},
    {"ZCOUNT", 4, do_zcount},
    {"TIME", 1, do_time},
    {"GET", 2, do_get},
    {"SET", 3, do_set},
    {"DEL", 2, do_del},
    {"INCR", 2, do_incr},
    {"PEXPIRE", 3, do_pexpire},
    {"PUBLISH", 3, do_publish},
    {"HGETALL", 2, do_hgetall},
    {"HINCRBY", 4, do_hincrby},
    {"HEXISTS", 3, do_hexists},
    {"ZRANGEBYSCORE", 4, do_zrangebyscore},
    {"ZREMRANGEBYSCORE", 4, do_zremrangebyscore},
    {"ZCARD", 2, do_zcard},
    {"ZRANK", 3, do_zrank},
    {"EXISTS", 2, do_exists},
    {"PTTL", 2, do_pttl},
    {"TYPE", 2, do_type},
    {"SUBSCRIBE", 2, do_subscribe},
    {"UNSUBSCRIBE", 2, do_unsubscribe},
    {"CLIENT", 2, do_client},
    {"INFO", 2, do_info},
    {"WAIT", 3, do_wait},
};

void redis_do(const struct redis_call *call)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strlen(commands[i].name) == call->words[0].size &&
            strncasecmp(commands[i].name, call->words[0].bytes, call->words[0].size) == 0 &&
            call->count >= commands[i].words) {
            if (call->connection)
                trace_note(call->server->redis->world, TRACE_APPLY, call->connection->peer->index,
                           NO_QUEUE, commands[i].name, call->server->number, call->connection->id,
                           (int64_t)call->count);
            commands[i].run(call);
            return;
        }
    fprintf(stderr, "sim: the fake Redis knows no %.*s of %zu words\n", (int)call->words[0].size,
            call->words[0].bytes, call->count);
    abort();
}
