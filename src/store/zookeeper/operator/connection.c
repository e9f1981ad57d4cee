/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a server one thing at a time and waits for the answer, on a handle of its own: what
 * mortise_list, mortise_revoke and mortise_break do it by. All is done within the client's
 * time-out, and beside the session that holds locks.
 *
 * Threads: one for each asker, at any time. Of the store it reads what stays as it was opened, and
 * where the servers are under the library's mutex. The library is entered under that; it waits
 * without.
 */
#include "store/zookeeper/operator/connection.h"

#include "base/error.h"
#include "core/recipe.h"
#include "store/zookeeper/connection.h"
#include "store/zookeeper/lease.h"
#include "store/zookeeper/ticket/claim.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct mrt_zk_asker *asking; /* whose callbacks run */

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle, (void)path, (void)context;
    if (asking && type == ZOO_SESSION_EVENT)
        asking->connected = state == ZOO_CONNECTED_STATE;
}

static void note(int code)
{
    if (!asking)
        return;
    asking->code = code;
    asking->answered = true;
}

static void on_string(int code, const char *text, const void *context)
{
    (void)text, (void)context;
    note(code);
}

static void on_nothing(int code, const void *context)
{
    (void)context;
    note(code);
}

static void on_stat(int code, const struct Stat *stat, const void *context)
{
    (void)stat, (void)context;
    note(code);
}

static void on_names(int code, const struct String_vector *names, const struct Stat *stat,
                     const void *context)
{
    (void)stat;
    (void)context;
    note(code);
    if (!asking || code != ZOK)
        return;
    asking->names = calloc((size_t)names->count + 1, sizeof *asking->names);
    asking->count = 0;
    for (int i = 0; asking->names && i < names->count; i++)
        if ((asking->names[asking->count] = strdup(names->data[i])))
            asking->count++;
}

static void on_data(int code, const char *value, int length, const struct Stat *stat,
                    const void *context)
{
    (void)context;
    note(code);
    if (!asking || code != ZOK)
        return;
    size_t size = length < 0 ? 0 : (size_t)length;
    if (size >= sizeof asking->data)
        size = sizeof asking->data - 1;
    memcpy(asking->data, value ? value : "", value ? size : 0);
    asking->data[value ? size : 0] = '\0';
    asking->stat = *stat;
}

static void on_rights(int code, struct ACL_vector *rights, struct Stat *stat, const void *context)
{
    (void)stat, (void)context;
    note(code);
    for (int i = 0; asking && code == ZOK && i < rights->count; i++)
        if (strcmp(rights->data[i].id.scheme, "world") == 0 &&
            (rights->data[i].perms & ~ZOO_PERM_READ) != 0)
            asking->open = true;
}

/* Under the library's mutex: an attempt to connect has failed. */
static void note_failure(struct mrt_zk_asker *asker, int error)
{
    asker->error = error;
    asker->refused += error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH;
}

/* One turn of the library; false: the time is up, or each of the servers has refused. */
static bool drive(struct mrt_zk_asker *asker)
{
    int socket = -1, interest = 0;
    struct timeval wait = {0, 0};
    mrt_time left = asker->deadline - mrt_time_now();
    if (left <= 0 || asker->refused >= asker->servers)
        return false;
    pthread_mutex_lock(&mrt_zk_library);
    asking = asker;
    errno = 0;
    int code = zookeeper_interest(asker->handle, &socket, &interest, &wait);
    if (code == ZCONNECTIONLOSS)
        note_failure(asker, errno);
    pthread_mutex_unlock(&mrt_zk_library);
    struct pollfd ready = {.fd = code == ZOK ? socket : -1};
    ready.events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
                           (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    mrt_time pause = wait.tv_sec * MRT_SECOND + wait.tv_usec * MRT_MICROSECOND;
    if (code != ZOK)
        pause = 20 * MRT_MILLISECOND;
    pause = mrt_time_min(pause, left);
    poll(&ready, 1, (int)(pause / MRT_MILLISECOND) + 1);
    int events = (ready.revents & (POLLIN | POLLERR | POLLHUP) ? ZOOKEEPER_READ : 0) |
                 (ready.revents & (POLLOUT | POLLERR | POLLHUP) ? ZOOKEEPER_WRITE : 0);
    pthread_mutex_lock(&mrt_zk_library);
    errno = 0;
    if (ready.fd >= 0 && zookeeper_process(asker->handle, events) == ZCONNECTIONLOSS)
        note_failure(asker, errno);
    asking = NULL;
    pthread_mutex_unlock(&mrt_zk_library);
    return true;
}

static int post_unclaim(struct mrt_zk_asker *asker, const char *path)
{
    char directory[MRT_ZK_PATH_MAX + 256];
    zoo_op_t operations[2];
    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(path, '/') - path), path);
    zoo_check_op_init(&operations[0], directory, asker->claims);
    zoo_delete_op_init(&operations[1], path, -1);
    return zoo_amulti(asker->handle, 2, operations, asker->results, on_nothing, NULL);
}

static int post(struct mrt_zk_asker *asker, enum mrt_zk_question question, const char *path)
{
    zhandle_t *handle = asker->handle;
    switch (question) {
    case MRT_ZK_ASK_SYNC:
        return zoo_async(handle, path, on_string, NULL);
    case MRT_ZK_ASK_NAMES:
        return zoo_awget_children2(handle, path, NULL, NULL, on_names, NULL);
    case MRT_ZK_ASK_DATA:
        return zoo_aget(handle, path, 0, on_data, NULL);
    case MRT_ZK_ASK_RIGHTS:
        asker->open = false;
        return zoo_aget_acl(handle, path, on_rights, NULL);
    case MRT_ZK_ASK_REVOKE:
        return zoo_aset(handle, path, MRT_ZK_REVOKE, (int)strlen(MRT_ZK_REVOKE), -1, on_stat, NULL);
    case MRT_ZK_ASK_UNCLAIM:
        return post_unclaim(asker, path);
    default:
        return zoo_adelete(handle, path, -1, on_nothing, NULL);
    }
}

int mrt_zk_ask(struct mrt_zk_asker *asker, enum mrt_zk_question question, const char *path)
{
    asker->answered = false;
    pthread_mutex_lock(&mrt_zk_library);
    asking = asker;
    bool expired = zoo_state(asker->handle) < 0; /* as in request.c */
    int code = expired ? ZINVALIDSTATE : post(asker, question, path);
    asking = NULL;
    pthread_mutex_unlock(&mrt_zk_library);
    if (code != ZOK)
        return code;
    while (!asker->answered)
        if (!drive(asker))
            return ZOPERATIONTIMEOUT;
    return asker->code;
}

/* Where the servers are: as the store knows, or within the asker's time. */
static bool find_servers(const struct mrt_zk_asker *asker, char servers[MRT_ZK_SERVERS_SIZE])
{
    const struct mrt_zk_address *address = &asker->store->address;
    struct mrt_resolver resolver;
    pthread_mutex_lock(&mrt_zk_library);
    memcpy(servers, asker->store->servers, MRT_ZK_SERVERS_SIZE);
    pthread_mutex_unlock(&mrt_zk_library);
    if (servers[0])
        return true;
    mrt_resolver_init(&resolver, address->hosts, address->host_count, 0);
    struct mrt_addresses *found = mrt_resolver_wait(&resolver, address->hosts, address->host_count,
                                                    asker->deadline - mrt_time_now());
    if (found)
        mrt_zk_write_servers(found, servers);
    else
        mrt_resolver_forget(&resolver);
    free(found);
    if (!servers[0])
        mrt_error(MORTISE_EUNREACHABLE, "ZooKeeper: %s: %s", address->shown,
                  mrt_resolver_fault(&resolver));
    return servers[0];
}

int mrt_zk_asker_open(struct mrt_zk_asker *asker, struct mrt_store *store)
{
    char servers[MRT_ZK_SERVERS_SIZE];
    mrt_time now = mrt_time_now(), end = mrt_time_add(now, store->timeout);
    *asker = (struct mrt_zk_asker){
        .store = store, .deadline = mrt_time_min(end, mrt_time_add(now, store->address.connect))};
    if (!find_servers(asker, servers))
        return MORTISE_EUNREACHABLE;
    pthread_mutex_lock(&mrt_zk_library);
    asker->error = ETIMEDOUT;
    asker->servers = mrt_zk_count_servers(servers);
    asker->handle = mrt_zk_handle(store, servers, on_session);
    pthread_mutex_unlock(&mrt_zk_library);
    if (!asker->handle)
        return MORTISE_ENOMEM;
    while (!asker->connected && drive(asker))
        ;
    asker->deadline = end;
    if (asker->connected)
        return MORTISE_OK;
    mrt_zk_asker_close(asker);
    return mrt_error(MORTISE_EUNREACHABLE, "ZooKeeper: %s: %s", store->address.shown,
                     mrt_zk_trouble(asker->error));
}

void mrt_zk_asker_close(struct mrt_zk_asker *asker)
{
    zookeeper_close(asker->handle);
}

/* ------------------------------------------------------------------ a directory */

static int compare(const void *a, const void *b)
{
    const struct mrt_zk_row *first = a, *second = b;
    int32_t a_sequence = first->place.sequence, b_sequence = second->place.sequence;
    return mrt_zk_before(b_sequence, a_sequence) - mrt_zk_before(a_sequence, b_sequence);
}

/* Adds the child called as a claim, if it is one. */
static int add_claim(struct mrt_zk_asker *asker, const char *path, const char *name,
                     struct mrt_zk_children *children)
{
    char node[MRT_ZK_PATH_MAX + 8];
    int code = mrt_zk_ask(asker, MRT_ZK_ASK_DATA, path);
    if (code != ZOK)
        return code;
    asker->claims = asker->stat.version;
    snprintf(node, sizeof node, "%s/%s", path, name);
    code = mrt_zk_ask(asker, MRT_ZK_ASK_DATA, node);
    if (code == ZOK && mrt_zk_is_claim(&asker->stat))
        children->rows[children->row_count++] =
            (struct mrt_zk_row){mrt_zk_place_for(MRT_ZK_CURATOR, mrt_exclusive.kind, 1, 1), name};
    return code == ZNONODE ? ZOK : code;
}

/* A node beside a reader is a writer, if its name leaves that open. */
static void settle_sides(struct mrt_zk_children *children)
{
    const struct mrt_zk_place *reader = NULL;
    for (int i = 0; i < children->row_count; i++)
        if (children->rows[i].place.family == MRT_ZK_READER)
            reader = &children->rows[i].place;
    for (int i = 0; reader && i < children->row_count; i++)
        if (children->rows[i].place.family == MRT_ZK_MUTEX)
            children->rows[i].place = mrt_zk_place_beside(children->rows[i].node, reader);
}

int mrt_zk_ask_children(struct mrt_zk_asker *asker, const char *path,
                        struct mrt_zk_children *children)
{
    *children = (struct mrt_zk_children){0};
    int code = mrt_zk_ask(asker, MRT_ZK_ASK_NAMES, path);
    if (code != ZOK)
        return code;
    children->names = asker->names;
    children->count = asker->count;
    children->rows = calloc((size_t)asker->count + 1, sizeof *children->rows);
    if (!children->rows || !children->names)
        return ZSYSTEMERROR;
    for (int i = 0; i < children->count; i++) {
        struct mrt_zk_row *row = &children->rows[children->row_count];
        row->place = mrt_zk_place_of(children->names[i]);
        row->node = children->names[i];
        children->row_count += row->place.family != MRT_ZK_FOREIGN;
    }
    qsort(children->rows, (size_t)children->row_count, sizeof *children->rows, compare);
    settle_sides(children);
    for (int i = 0; code == ZOK && i < children->count; i++)
        if (strcmp(children->names[i], MRT_ZK_CLAIM_NODE) == 0)
            code = add_claim(asker, path, children->names[i], children);
    return code;
}

void mrt_zk_children_free(struct mrt_zk_children *children)
{
    for (int i = 0; children->names && i < children->count; i++)
        free(children->names[i]);
    free(children->names);
    free(children->rows);
}
