/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of Redis locks: what hiredis alone costs.
 *
 *   bench_redis_floor SECONDS [told|signed] PORT...
 *
 * One port: SET NX PX, then a compare and delete by EVALSHA, each waited for. Several ports: each
 * of the two is sent to all before the answers are read. "told": the script also publishes a
 * message to a session, as a release does to the next holder. "signed": the message has the
 * signature of src/store/redis/sign.h, and it is computed here once more, as its receiver does.
 * Prints one JSON object.
 */
#include "../clock.h"
#include "store/redis/sign.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS_MAX 15
#define TIMES_MAX 4000000
#define TOKEN "0123456789abcdef0123456789abcdef01234567"
#define KEY "89abcdef0123456789abcdef01234567"
#define MESSAGE "0123456789abcdef0123456789abcdef 1234567890123 0 0"
#define TELL(fields, message)                                 \
    "local its = redis.call('hmget', 'session', " fields ") " \
    "redis.call('publish', its[1], " message ") "
#define DELETE                                                                                     \
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return " \
    "0 end"

static const struct {
    const char *name, *text;
} scripts[] = {
    {"alone", DELETE},
    {"told", TELL("'channel'", "'" MESSAGE "'") DELETE},
    {"signed",
     TELL("'channel', 'key'",
          "'" MESSAGE " ' .. string.sub(redis.sha1hex(its[2] .. '" MESSAGE "'), 1, 16)") DELETE},
};
enum { ALONE, SIGNED = 2 };

static redisContext *servers[SERVERS_MAX];
static int count;

static redisReply *answer_of(redisContext *server)
{
    void *reply = NULL;
    if (redisGetReply(server, &reply) != REDIS_OK)
        exit(1);
    redisReply *found = reply;
    if (found->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s\n", found->str);
        exit(1);
    }
    return found;
}

/* Everything appended leaves for all of them, before the first answer is waited for. */
static void take_all(void)
{
    for (int i = 0; i < count; i++)
        for (int done = 0; !done;)
            if (redisBufferWrite(servers[i], &done) != REDIS_OK)
                exit(1);
    for (int i = 0; i < count; i++)
        freeReplyObject(answer_of(servers[i]));
}

/* Gives the script's digest. */
static void prepare(redisContext *server, const char *script, char digest[41])
{
    redisAppendCommand(server, "HSET session channel {mortise/}c:1 key " KEY);
    freeReplyObject(answer_of(server));
    redisAppendCommand(server, "SCRIPT LOAD %s", script);
    redisReply *reply = answer_of(server);
    snprintf(digest, 41, "%s", reply->str);
    freeReplyObject(reply);
}

static void check_message(void)
{
    char sign[MRT_REDIS_SIGN_SIZE];
    mrt_redis_sign(KEY, MESSAGE, strlen(MESSAGE), sign);
    if (strlen(sign) != sizeof sign - 1)
        exit(1);
}

int main(int argc, char **argv)
{
    char digest[41] = "";
    int script = SIGNED;
    while (script > ALONE && (argc < 3 || strcmp(argv[2], scripts[script].name) != 0))
        script--;
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0;
    argv += script > ALONE;
    count = argc - 2 - (script > ALONE);
    if (count < 1 || count > SERVERS_MAX)
        return 2;
    for (int i = 0; i < count; i++) {
        servers[i] = redisConnect("127.0.0.1", (int)strtol(argv[i + 2], NULL, 10));
        if (!servers[i] || servers[i]->err)
            return 1;
        prepare(servers[i], scripts[script].text, digest);
    }
    int64_t *times = calloc(TIMES_MAX, sizeof *times);
    int64_t begin = now_ns(), end = begin + (int64_t)(seconds * 1e9), done = begin;
    size_t cycles = 0;
    while (times && done < end && cycles < TIMES_MAX) {
        int64_t from = done;
        for (int i = 0; i < count; i++)
            redisAppendCommand(servers[i], "SET floor " TOKEN " NX PX 10000");
        take_all();
        for (int i = 0; i < count; i++)
            redisAppendCommand(servers[i], "EVALSHA %s 1 floor " TOKEN, digest);
        take_all();
        if (script == SIGNED)
            check_message();
        done = now_ns();
        times[cycles++] = done - from;
    }
    if (cycles == 0)
        return 1;
    print_cycles(times, cycles, begin, done);
    free(times);
    return 0;
}
