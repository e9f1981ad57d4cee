/*
 * Commands as calls of scripts, one each. A script is called by its digest; a server that
 * does not know it yet, or no more, says NOSCRIPT, and is sent the script itself.
 */
#include "store/redis_internal.h"

#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 12
#define NUMBER_SIZE 24

static struct mrt_redis_text text_of(const char *text)
{
    return (struct mrt_redis_text){text, strlen(text)};
}

void mrt_redis_script_put(struct mrt_redis_wire *wire, enum mrt_redis_script_name name, bool whole,
                          const char *key, const char *const *arguments, size_t count)
{
    const struct mrt_redis_script *script = &mrt_redis_scripts[name];
    struct mrt_redis_text words[4 + ARGUMENTS_MAX];
    words[0] = text_of(whole ? "EVAL" : "EVALSHA");
    words[1] =
        whole ? (struct mrt_redis_text){script->text, script->length} : text_of(script->digest);
    words[2] = text_of("1");
    words[3] = text_of(key);
    for (size_t i = 0; i < count; i++)
        words[4 + i] = text_of(arguments[i]);
    mrt_redis_wire_put(wire, words, 4 + count);
}

static const char *number(uint64_t value, char text[NUMBER_SIZE])
{
    snprintf(text, NUMBER_SIZE, "%llu", (unsigned long long)value);
    return text;
}

/* The arguments of a command's script behind the session and the epoch; how many. */
static size_t arguments_of(const struct mrt_store *store, const struct mrt_command *command,
                           const char *ticket, char numbers[3][NUMBER_SIZE], const char **arguments)
{
    size_t count = 0;
    switch (command->type) {
    case MRT_START:
    case MRT_RENEW:
        arguments[count++] = command->type == MRT_START ? "start" : "renew";
        arguments[count++] =
            number((uint64_t)(store->address.session / MRT_MILLISECOND), numbers[0]);
        arguments[count++] = store->channel;
        arguments[count++] = store->label;
        break;
    case MRT_STOP:
        break;
    case MRT_APPEND:
        arguments[count++] = ticket;
        arguments[count++] = command->queue;
        arguments[count++] = command->kind;
        arguments[count++] = number(command->capacity, numbers[0]);
        arguments[count++] = number(command->weight, numbers[1]);
        arguments[count++] = command->try_only ? "1" : "0";
        arguments[count++] = number(command->queue_max, numbers[2]);
        break;
    case MRT_REFRESH:
    case MRT_LIGHTEN:
        arguments[count++] = ticket;
        arguments[count++] = command->queue;
        arguments[count++] = number(command->type == MRT_LIGHTEN ? command->weight : 0, numbers[0]);
        break;
    default: /* REMOVE: values and cells are not for here */
        arguments[count++] = ticket;
    }
    return count;
}

static enum mrt_redis_script_name script_of(enum mrt_command_type type)
{
    static const enum mrt_redis_script_name scripts[] = {
        [MRT_START] = MRT_REDIS_SESSION,   [MRT_STOP] = MRT_REDIS_STOP,
        [MRT_RENEW] = MRT_REDIS_SESSION,   [MRT_APPEND] = MRT_REDIS_APPEND,
        [MRT_REFRESH] = MRT_REDIS_REFRESH, [MRT_LIGHTEN] = MRT_REDIS_REFRESH,
        [MRT_REMOVE] = MRT_REDIS_REMOVE,
    };
    return scripts[type];
}

static void put(struct mrt_store *store, const struct mrt_command *command, bool whole)
{
    char session[MRT_ID_TEXT_SIZE], ticket[MRT_ID_TEXT_SIZE], epoch[NUMBER_SIZE];
    char numbers[3][NUMBER_SIZE];
    const char *arguments[ARGUMENTS_MAX] = {session, epoch};
    mrt_id_format(command->session, session);
    mrt_id_format(command->ticket, ticket);
    number(store->epoch, epoch);
    size_t count = arguments_of(store, command, ticket, numbers, arguments + 2);
    mrt_redis_script_put(&store->wire, script_of(command->type), whole, store->sessions_key,
                         arguments, 2 + count);
}

void mrt_redis_command_put(struct mrt_store *store, const struct mrt_redis_job *job)
{
    put(store, &job->command, job->whole);
}

void mrt_redis_remove_put(struct mrt_store *store, const struct mrt_redis_job *job)
{
    struct mrt_command command = job->command;
    command.type = MRT_REMOVE;
    put(store, &command, true); /* whole: the server may not know it yet */
}
