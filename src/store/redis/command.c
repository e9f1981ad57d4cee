/*
 * Commands as calls of scripts, one each. A script is called by its digest; a server that
 * does not know it yet, or no more, says NOSCRIPT, and is sent the script itself.
 */
#include "store/redis/internal.h"

#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 12
#define KEYS_MAX 6
#define NUMBER_SIZE 24

struct mrt_redis_text mrt_redis_text_of(const char *text)
{
    return (struct mrt_redis_text){text, strlen(text)};
}

static void put_script(struct mrt_redis_wire *wire, enum mrt_redis_script_name name, bool whole,
                       const struct mrt_redis_text *keys, size_t key_count,
                       const struct mrt_redis_text *arguments, size_t count)
{
    const struct mrt_redis_script *script = &mrt_redis_scripts[name];
    struct mrt_redis_text words[3 + KEYS_MAX + ARGUMENTS_MAX];
    const char digit[] = {(char)('0' + key_count), '\0'};
    words[0] = mrt_redis_text_of(whole ? "EVAL" : "EVALSHA");
    words[1] = whole ? (struct mrt_redis_text){script->text, script->length}
                     : mrt_redis_text_of(script->digest);
    words[2] = mrt_redis_text_of(digit);
    memcpy(words + 3, keys, key_count * sizeof *keys);
    memcpy(words + 3 + key_count, arguments, count * sizeof *arguments);
    mrt_redis_wire_put(wire, words, 3 + key_count + count);
}

void mrt_redis_script_put(struct mrt_redis_wire *wire, enum mrt_redis_script_name name, bool whole,
                          const char *key, const struct mrt_redis_text *arguments, size_t count)
{
    const struct mrt_redis_text only = mrt_redis_text_of(key);
    put_script(wire, name, whole, &only, 1, arguments, count);
}

/* ------------------------------------------------------------------ keys */

/* Keys that a script uses besides the sessions, the queues and the values, and that can be named
   before it runs. It finds the rest in the data: see head.lua. */
enum { OWN = 1, NOBODY = 2, QUEUE = 4, CELL = 8, CLAIM = 16, FENCE = 32 };
static const unsigned char used[] = {
    [MRT_REDIS_SESSION] = OWN | FENCE,
    [MRT_REDIS_STOP] = OWN,
    [MRT_REDIS_APPEND] = OWN | QUEUE,
    [MRT_REDIS_ADOPT] = OWN | QUEUE | NOBODY,
    [MRT_REDIS_REFRESH] = OWN | QUEUE,
    [MRT_REDIS_REMOVE] = OWN | QUEUE,
    [MRT_REDIS_DETACH] = OWN | QUEUE | NOBODY,
    [MRT_REDIS_OBSERVE] = OWN | QUEUE,
    [MRT_REDIS_CELL] = OWN | CELL,
    [MRT_REDIS_LIST] = QUEUE | CLAIM,
    [MRT_REDIS_OPERATE] = QUEUE | CLAIM,
};

struct keys {
    struct mrt_redis_text texts[KEYS_MAX];
    size_t count;
    char room[KEYS_MAX][MRT_REDIS_CHANNEL_MAX];
};

static void add_key(const struct mrt_redis_store *store, struct keys *keys, const char *kind,
                    const char *name)
{
    char *room = keys->room[keys->count], *end = room;
    end = mempcpy(end, store->address.base, strlen(store->address.base));
    end = mempcpy(end, kind, strlen(kind));
    end = mempcpy(end, name, strlen(name));
    keys->texts[keys->count++] = (struct mrt_redis_text){room, (size_t)(end - room)};
}

void mrt_redis_keyed_put(struct mrt_redis_store *store, struct mrt_redis_wire *wire,
                         enum mrt_redis_script_name script, bool whole, const char *session,
                         const char *name, const struct mrt_redis_text *arguments, size_t count)
{
    struct keys keys;
    keys.count = 0;
    add_key(store, &keys, "sessions", "");
    add_key(store, &keys, "queues", "");
    add_key(store, &keys, "values", "");
    if (used[script] & OWN)
        add_key(store, &keys, "s:", session);
    if (used[script] & NOBODY)
        add_key(store, &keys, "s:", "00000000000000000000000000000000");
    if (used[script] & FENCE)
        add_key(store, &keys, "fence", "");
    if (used[script] & QUEUE && *name)
        add_key(store, &keys, "q:", name);
    if (used[script] & CELL)
        add_key(store, &keys, "k:", name);
    if (used[script] & CLAIM && *name)
        add_key(store, &keys, "n:", name);
    put_script(wire, script, whole, keys.texts, keys.count, arguments, count);
}

/* ------------------------------------------------------------------ arguments */

/* The arguments of one call. */
struct call {
    struct mrt_redis_text arguments[ARGUMENTS_MAX];
    size_t count;
    char numbers[5][NUMBER_SIZE];
    size_t number_count;
};

static void add(struct call *call, const char *text)
{
    call->arguments[call->count++] = mrt_redis_text_of(text);
}

static void add_number(struct call *call, uint64_t value)
{
    char *text = call->numbers[call->number_count++];
    snprintf(text, NUMBER_SIZE, "%llu", (unsigned long long)value);
    add(call, text);
}

static void add_value(struct call *call, const struct mrt_command *command)
{
    if (command->value)
        call->arguments[call->count++] =
            (struct mrt_redis_text){command->value, command->value_size};
}

static void add_session(const struct mrt_redis_store *store, struct call *call, bool starts)
{
    add(call, starts ? "start" : "renew");
    add_number(call, (uint64_t)(store->address.session / MRT_MILLISECOND));
    add(call, store->channel);
    add(call, store->label);
    add(call, store->key);
}

static void add_delay(struct call *call, const struct mrt_command *command)
{
    char *text = call->numbers[call->number_count++];
    if (command->delay > 0)
        snprintf(text, NUMBER_SIZE, "~%lld", (long long)mrt_time_left_ms(command->delay, 0));
    add(call, text);
}

static void add_ticket(struct call *call, const struct mrt_command *command, const char *ticket)
{
    add(call, ticket);
    add(call, command->queue);
    add(call, command->kind);
    add_number(call, command->capacity);
    add_number(call, command->weight);
    add(call, command->try_only ? "1" : "0");
    add_number(call, command->queue_max);
    add(call, command->linger ? "+" : ":");
    add_delay(call, command);
    add_value(call, command);
}

static void add_write(struct call *call, const struct mrt_command *command, const char *writer)
{
    add_number(call, command->version);
    add_number(call, command->fence);
    add(call, writer);
    add_value(call, command);
}

static void add_heir(struct call *call, const struct mrt_command *command, const char *ticket,
                     const char *heir)
{
    add(call, ticket);
    add(call, command->queue);
    add_number(call, command->weight);
    add(call, heir);
}

/* What stands behind the session and the epoch. */
static void add_rest(const struct mrt_redis_store *store, struct call *call,
                     const struct mrt_command *command, const char *ticket, const char *heir)
{
    switch (command->type) {
    case MRT_START:
    case MRT_RENEW:
        add_session(store, call, command->type == MRT_START);
        break;
    case MRT_STOP:
        add(call, command->died ? "1" : "0");
        break;
    case MRT_APPEND:
        add_ticket(call, command, ticket);
        break;
    case MRT_REFRESH:
    case MRT_LIGHTEN:
    case MRT_SET_VALUE:
        add(call, ticket);
        add(call, command->queue);
        add_number(call, command->type == MRT_LIGHTEN ? command->weight : 0);
        if (command->type == MRT_SET_VALUE)
            add_value(call, command);
        break;
    case MRT_DETACH:
        add_heir(call, command, ticket, heir);
        break;
    case MRT_OBSERVE:
    case MRT_CELL_GET:
    case MRT_CELL_SET:
        add(call, command->queue);
        if (command->type == MRT_CELL_SET)
            add_write(call, command, ticket);
        break;
    default: /* REMOVE */
        add(call, ticket);
    }
}

static enum mrt_redis_script_name script_of(const struct mrt_command *command)
{
    static const enum mrt_redis_script_name scripts[] = {
        [MRT_START] = MRT_REDIS_SESSION,     [MRT_STOP] = MRT_REDIS_STOP,
        [MRT_RENEW] = MRT_REDIS_SESSION,     [MRT_APPEND] = MRT_REDIS_APPEND,
        [MRT_REFRESH] = MRT_REDIS_REFRESH,   [MRT_LIGHTEN] = MRT_REDIS_REFRESH,
        [MRT_SET_VALUE] = MRT_REDIS_REFRESH, [MRT_REMOVE] = MRT_REDIS_REMOVE,
        [MRT_DETACH] = MRT_REDIS_DETACH,     [MRT_OBSERVE] = MRT_REDIS_OBSERVE,
        [MRT_CELL_GET] = MRT_REDIS_CELL,     [MRT_CELL_SET] = MRT_REDIS_CELL,
    };
    bool adopts = command->type == MRT_APPEND && command->adopt;
    return adopts ? MRT_REDIS_ADOPT : scripts[command->type];
}

static void put(struct mrt_redis_store *store, const struct mrt_command *command, bool whole)
{
    char session[MRT_ID_TEXT_SIZE], ticket[MRT_ID_TEXT_SIZE], heir[MRT_ID_TEXT_SIZE];
    struct call call = {.count = 0};
    mrt_id_format(command->session, session);
    mrt_id_format(command->ticket, ticket);
    mrt_id_format(command->detached_id, heir);
    add(&call, session);
    add_number(&call, store->epoch);
    add_rest(store, &call, command, ticket, heir);
    mrt_redis_keyed_put(store, &store->wire, script_of(command), whole, session, command->queue,
                        call.arguments, call.count);
}

void mrt_redis_command_put(struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    put(store, &job->command, job->whole);
}

void mrt_redis_remove_put(struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    struct mrt_command command = job->command;
    command.type = MRT_REMOVE;
    put(store, &command, true); /* whole: the server may not know it yet */
}
