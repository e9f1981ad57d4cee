/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of each command's script, in the order that the script documents. */
#include "store/redis/command.h"

#include "base/assert.h"
#include "store/redis/internal.h"
#include "store/redis/script.h"

#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 12
#define NUMBER_SIZE 24

/* The arguments of one call. */
struct call {
    struct mrt_redis_text arguments[ARGUMENTS_MAX];
    size_t count;
    char numbers[5][NUMBER_SIZE];
    size_t number_count;
};

static void add(struct call *call, const char *text)
{
    MRT_ASSERT(call->count < ARGUMENTS_MAX);
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
    add(call, store->lease);
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

/* Adds the arguments behind the session and the epoch. */
static void add_rest(const struct mrt_redis_store *store, struct call *call,
                     const struct mrt_command *command, const char *ticket, const char *detached)
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
        add(call, ticket);
        add(call, command->queue);
        add_number(call, command->weight);
        add(call, detached);
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

static void put_command(struct mrt_redis_store *store, const struct mrt_command *command,
                        bool whole)
{
    char session[MRT_ID_TEXT_SIZE], ticket[MRT_ID_TEXT_SIZE], detached[MRT_ID_TEXT_SIZE];
    struct call call = {.count = 0};
    mrt_id_format(command->session, session);
    mrt_id_format(command->ticket, ticket);
    mrt_id_format(command->detached_id, detached);
    add(&call, session);
    add_number(&call, store->epoch);
    add_rest(store, &call, command, ticket, detached);
    mrt_redis_script_put(store, &store->wire, script_of(command), whole, session, command->queue,
                         call.arguments, call.count);
}

void mrt_redis_command_put(struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    put_command(store, &job->command, job->whole);
}

void mrt_redis_remove_put(struct mrt_redis_store *store, const struct mrt_redis_job *job)
{
    struct mrt_command command = job->command;
    command.type = MRT_REMOVE;
    put_command(store, &command, true); /* whole: the server may not know it yet */
}
