/* SPDX-License-Identifier: Apache-2.0 */
/* The library counts its requests in one variable of the process, so the store's mutex is
   taken for all calls into it. A thread keeps the session alive, however long the test is busy
   with something else. */
#include "live/zk_raw.h"

#include "cmocka_all.h"
#include "store/zookeeper/store.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct zk_raw {
    zhandle_t *handle;
    pthread_t thread;
    pthread_cond_t done; /* under the store's mutex, as all the rest */
    bool stop, answered, watched;
    char made[256]; /* path of the newest node */
    int code;
    int64_t owner;
    char (*names)[128];
    int count;
};

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle, (void)type, (void)state, (void)path, (void)context;
}

static void note(const void *context, int code)
{
    struct zk_raw *raw = (struct zk_raw *)context;
    raw->code = code;
    raw->answered = true;
    pthread_cond_signal(&raw->done);
}

static void on_void(int code, const void *context)
{
    note(context, code);
}

static void on_string(int code, const char *text, const void *context)
{
    struct zk_raw *raw = (struct zk_raw *)context;
    snprintf(raw->made, sizeof raw->made, "%s", text ? text : "");
    note(context, code);
}

static void on_change(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct zk_raw *raw = context;
    (void)handle, (void)state, (void)path;
    if (type == ZOO_SESSION_EVENT)
        return;
    raw->watched = false;
    pthread_cond_signal(&raw->done);
}

static void on_stat(int code, const struct Stat *stat, const void *context)
{
    struct zk_raw *raw = (struct zk_raw *)context;
    raw->owner = code == ZOK && stat ? stat->ephemeralOwner : -1;
    note(context, code);
}

static void on_names(int code, const struct String_vector *names, const void *context)
{
    struct zk_raw *raw = (struct zk_raw *)context;
    free(raw->names);
    raw->count = code == ZOK ? names->count : 0;
    raw->names = calloc((size_t)raw->count + 1, sizeof *raw->names);
    for (int i = 0; i < raw->count; i++)
        snprintf(raw->names[i], sizeof *raw->names, "%s", names->data[i]);
    note(context, code);
}

static void turn(struct zk_raw *raw)
{
    int socket = -1, interest = 0;
    struct timeval wait;
    pthread_mutex_lock(&mrt_zk_library);
    int code = zookeeper_interest(raw->handle, &socket, &interest, &wait);
    pthread_mutex_unlock(&mrt_zk_library);
    struct pollfd ready = {.fd = code == ZOK ? socket : -1};
    ready.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                           (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    poll(&ready, 1, 20);
    pthread_mutex_lock(&mrt_zk_library);
    zookeeper_process(raw->handle, (ready.revents & POLLOUT ? ZOOKEEPER_WRITE : 0) |
                                       (ready.revents & ~POLLOUT ? ZOOKEEPER_READ : 0));
    pthread_mutex_unlock(&mrt_zk_library);
}

static bool stopped(struct zk_raw *raw)
{
    pthread_mutex_lock(&mrt_zk_library);
    bool stop = raw->stop;
    pthread_mutex_unlock(&mrt_zk_library);
    return stop;
}

static void *keep_alive(void *raw)
{
    while (!stopped(raw))
        turn(raw);
    return NULL;
}

static int finish(struct zk_raw *raw, int sent)
{
    while (sent == ZOK && !raw->answered)
        pthread_cond_wait(&raw->done, &mrt_zk_library);
    pthread_mutex_unlock(&mrt_zk_library);
    assert_int_equal(sent, ZOK);
    return raw->code;
}

static void begin(struct zk_raw *raw)
{
    pthread_mutex_lock(&mrt_zk_library);
    raw->answered = false;
}

struct zk_raw *zk_raw_open(uint16_t port)
{
    struct zk_raw *raw = calloc(1, sizeof *raw);
    char servers[32];
    assert_non_null(raw);
    snprintf(servers, sizeof servers, "127.0.0.1:%u", (unsigned)port);
    pthread_mutex_lock(&mrt_zk_library);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    raw->handle =
        zookeeper_init2(servers, on_session, 10000, NULL, NULL, ZOO_NO_LOG_CLIENTENV, NULL);
    pthread_mutex_unlock(&mrt_zk_library);
    assert_non_null(raw->handle);
    while (zoo_state(raw->handle) != ZOO_CONNECTED_STATE)
        turn(raw);
    pthread_cond_init(&raw->done, NULL);
    assert_int_equal(pthread_create(&raw->thread, NULL, keep_alive, raw), 0);
    return raw;
}

void zk_raw_close(struct zk_raw *raw)
{
    pthread_mutex_lock(&mrt_zk_library);
    raw->stop = true;
    pthread_mutex_unlock(&mrt_zk_library);
    pthread_join(raw->thread, NULL);
    zookeeper_close(raw->handle);
    pthread_cond_destroy(&raw->done);
    free(raw->names);
    free(raw);
}

int zk_raw_create(struct zk_raw *raw, const char *path, bool ephemeral)
{
    begin(raw);
    return finish(raw, zoo_acreate(raw->handle, path, "", 0, &ZOO_OPEN_ACL_UNSAFE,
                                   ephemeral ? ZOO_EPHEMERAL : ZOO_PERSISTENT, on_string, raw));
}

int zk_raw_delete(struct zk_raw *raw, const char *path)
{
    begin(raw);
    return finish(raw, zoo_adelete(raw->handle, path, -1, on_void, raw));
}

int zk_raw_set(struct zk_raw *raw, const char *path)
{
    begin(raw);
    return finish(raw, zoo_aset(raw->handle, path, "x", 1, -1, on_stat, raw));
}

int zk_raw_exists(struct zk_raw *raw, const char *path)
{
    begin(raw);
    return finish(raw, zoo_aexists(raw->handle, path, 0, on_stat, raw));
}

int64_t zk_raw_owner(struct zk_raw *raw, const char *path)
{
    zk_raw_exists(raw, path);
    return raw->owner;
}

int zk_raw_children(struct zk_raw *raw, const char *path)
{
    begin(raw);
    finish(raw, zoo_aget_children(raw->handle, path, 0, on_names, raw));
    return raw->count;
}

const char *zk_raw_name(const struct zk_raw *raw, int index)
{
    return raw->names[index];
}

int zk_raw_protect(struct zk_raw *raw, const char *path, bool protect)
{
    struct ACL entry = {ZOO_PERM_ADMIN, ZOO_ANYONE_ID_UNSAFE};
    struct ACL_vector protected = {1, &entry};
    begin(raw);
    return finish(raw, zoo_aset_acl(raw->handle, path, -1,
                                    protect ? &protected : &ZOO_OPEN_ACL_UNSAFE, on_void, raw));
}

int zk_raw_queue(struct zk_raw *raw, const char *directory, const char *prefix, char node[128])
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, prefix);
    begin(raw);
    int code = finish(raw, zoo_acreate(raw->handle, path, "", 0, &ZOO_OPEN_ACL_UNSAFE,
                                       ZOO_EPHEMERAL_SEQUENTIAL, on_string, raw));
    if (code == ZOK)
        snprintf(node, 128, "%.127s", strrchr(raw->made, '/') + 1);
    return code;
}

bool zk_raw_watch(struct zk_raw *raw, const char *path)
{
    begin(raw);
    raw->watched = true;
    return finish(raw, zoo_awexists(raw->handle, path, on_change, raw, on_stat, raw)) == ZOK;
}

void zk_raw_changed(struct zk_raw *raw)
{
    pthread_mutex_lock(&mrt_zk_library);
    while (raw->watched)
        pthread_cond_wait(&raw->done, &mrt_zk_library);
    pthread_mutex_unlock(&mrt_zk_library);
}

int64_t zk_raw_session(struct zk_raw *raw)
{
    return zoo_client_id(raw->handle)->client_id;
}

static int compare(const void *a, const void *b)
{
    const char *first = a, *second = b;
    return strcmp(first + strlen(first) - 10, second + strlen(second) - 10);
}

bool zk_raw_child(struct zk_raw *raw, const char *path, int place, char child[128])
{
    begin(raw);
    finish(raw, zoo_aget_children(raw->handle, path, 0, on_names, raw));
    qsort(raw->names, (size_t)raw->count, sizeof *raw->names, compare);
    if (place < raw->count)
        memcpy(child, raw->names[place], sizeof *raw->names);
    return place < raw->count;
}
