/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of Redis locks: what hiredis alone costs. bench_redis_floor SECONDS PORT...
 * One port: SET NX PX, then a compare and delete by EVALSHA, each waited for. Several ports: each
 * of the two is sent to all before the answers are read. Prints one JSON object.
 */
#include "../clock.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVERS_MAX 15
#define TIMES_MAX 4000000
#define SCRIPT                                                                                     \
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return " \
    "0 end"
#define TOKEN "0123456789abcdef0123456789abcdef01234567"

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

int main(int argc, char **argv)
{
    char digest[41] = "";
    count = argc - 2;
    if (count < 1 || count > SERVERS_MAX)
        return 2;
    for (int i = 0; i < count; i++) {
        servers[i] = redisConnect("127.0.0.1", (int)strtol(argv[i + 2], NULL, 10));
        if (!servers[i] || servers[i]->err)
            return 1;
        redisAppendCommand(servers[i], "SCRIPT LOAD %s", SCRIPT);
        redisReply *reply = answer_of(servers[i]);
        snprintf(digest, sizeof digest, "%s", reply->str);
        freeReplyObject(reply);
    }
    int64_t *times = calloc(TIMES_MAX, sizeof *times);
    int64_t begin = now_ns(), end = begin + (int64_t)(strtod(argv[1], NULL) * 1e9), done = begin;
    size_t cycles = 0;
    while (times && done < end && cycles < TIMES_MAX) {
        int64_t from = done;
        for (int i = 0; i < count; i++)
            redisAppendCommand(servers[i], "SET floor " TOKEN " NX PX 10000");
        take_all();
        for (int i = 0; i < count; i++)
            redisAppendCommand(servers[i], "EVALSHA %s 1 floor " TOKEN, digest);
        take_all();
        done = now_ns();
        times[cycles++] = done - from;
    }
    if (cycles == 0)
        return 1;
    print_cycles(times, cycles, begin, done);
    free(times);
    return 0;
}
