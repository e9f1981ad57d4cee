/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor under an acquire on ZooKeeper: one create of an ephemeral sequential node by
 * the bare C client, single-threaded, in a program that does nothing else.
 *
 *   bench_zookeeper_floor SERVERS PATH COUNT PAUSE-MS
 *
 * Each node is deleted right after, and that is waited for but not measured; then a pause,
 * as in the measurement that it stands beside.
 */
#include "../clock.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define COUNT_MAX 100000

struct answer {
    int ready, error;
    char path[512];
};

static void on_path(int error, const char *path, const void *data)
{
    struct answer *answer = (struct answer *)(uintptr_t)data;
    answer->ready = 1;
    answer->error = error;
    if (error == ZOK)
        snprintf(answer->path, sizeof answer->path, "%s", path);
}

static void on_done(int error, const void *data)
{
    on_path(error, "", data);
}

static void step(zhandle_t *handle)
{
    int fd = -1, interest = 0;
    struct timeval limit = {0, 0};
    int error = zookeeper_interest(handle, &fd, &interest, &limit);
    struct pollfd polled = {.fd = fd, .events = 0};
    if (error != ZOK && error != ZCONNECTIONLOSS)
        return;
    polled.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                            (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    if (poll(&polled, 1, (int)(limit.tv_sec * 1000 + limit.tv_usec / 1000)) < 0)
        return;
    zookeeper_process(handle, (polled.revents & POLLIN ? ZOOKEEPER_READ : 0) |
                                  (polled.revents & POLLOUT ? ZOOKEEPER_WRITE : 0));
}

/* Until the answer is there; its error. */
static int await(zhandle_t *handle, struct answer *answer)
{
    while (!answer->ready)
        step(handle);
    return answer->error;
}

static int create(zhandle_t *handle, const char *path, int mode, struct answer *answer)
{
    answer->ready = 0;
    int error = zoo_acreate(handle, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, mode, on_path, answer);
    return error != ZOK ? error : await(handle, answer);
}

static int delete (zhandle_t *handle, const char *path)
{
    struct answer answer = {.ready = 0};
    int error = zoo_adelete(handle, path, -1, on_done, &answer);
    return error != ZOK ? error : await(handle, &answer);
}

static int measure(zhandle_t *handle, const char *path, int64_t *times, long count, long pause_ms)
{
    struct answer answer;
    int error = create(handle, path, 0, &answer);
    char place[256];
    snprintf(place, sizeof place, "%s/n", path);
    for (long i = 0; i < count && (error == ZOK || error == ZNODEEXISTS); i++) {
        int64_t begin = now_ns();
        error = create(handle, place, ZOO_EPHEMERAL | ZOO_SEQUENCE, &answer);
        times[i] = now_ns() - begin;
        if (error == ZOK)
            error = delete (handle, answer.path);
        usleep((useconds_t)(pause_ms * 1000));
    }
    return error;
}

int main(int argc, char **argv)
{
    static int64_t times[COUNT_MAX];
    long count = argc == 5 ? strtol(argv[3], NULL, 10) : 0;
    if (count < 1 || count > COUNT_MAX)
        return 64;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *handle = zookeeper_init(argv[1], NULL, 10000, NULL, NULL, 0);
    if (!handle)
        return 1;
    zoo_set_servers_resolution_delay(handle, -1);
    while (zoo_state(handle) != ZOO_CONNECTED_STATE)
        step(handle);
    int error = measure(handle, argv[2], times, count, strtol(argv[4], NULL, 10));
    zookeeper_close(handle);
    if (error != ZOK)
        return 1;
    printf("{\"create_us\": %.1f}\n", median_us(times, (size_t)count));
    return 0;
}
