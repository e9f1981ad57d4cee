/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of ZooKeeper's C client library, single-threaded flavour, 3.8.0, at the level of
 * the functions that the store uses. Properties of the real one that matter:
 *
 *  - It opens and closes its socket inside its own calls, often with the same number again.
 *  - Completions and events come inside zookeeper_process, and, when a time-out is
 *    noticed, inside zookeeper_interest. One packet is read a call.
 *  - A connection that ends fails everything under way with one code, in order, after
 *    the session's event; requests made meanwhile are sent at the next connection, or
 *    failed by the next failure.
 *  - Events of the session go to every watcher too. A watch is known only when the answer
 *    to the read that sets it has come; at a reconnect all that are known are set again.
 *  - It pings after a third of the time-out only if nothing is under way, and gives a server
 *    up after two thirds without a word.
 *  - When a request cannot be sent it closes the socket and says nothing, and the next connection
 * gets no answer, because it begins in the middle of a half-sent request.
 *  - Closing completes what is under way with ZCLOSING.
 */
#include "host.h"
#include "store/zookeeper/names.h"
#include "zk_wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* ZooKeeper's constants are variables of the library. */
const int ZOO_PERM_READ = 1, ZOO_PERM_WRITE = 2, ZOO_PERM_CREATE = 4, ZOO_PERM_DELETE = 8,
          ZOO_PERM_ADMIN = 16, ZOO_PERM_ALL = 31;
const int ZOOKEEPER_WRITE = 1, ZOOKEEPER_READ = 2;
const int ZOO_PERSISTENT = 0, ZOO_EPHEMERAL = 1, ZOO_PERSISTENT_SEQUENTIAL = 2,
          ZOO_EPHEMERAL_SEQUENTIAL = 3, ZOO_CONTAINER = 4;
const int ZOO_EXPIRED_SESSION_STATE = -112, ZOO_AUTH_FAILED_STATE = -113, ZOO_CONNECTING_STATE = 1,
          ZOO_ASSOCIATING_STATE = 2, ZOO_CONNECTED_STATE = 3, ZOO_READONLY_STATE = 5,
          ZOO_NOTCONNECTED_STATE = 999;
const int ZOO_CREATED_EVENT = 1, ZOO_DELETED_EVENT = 2, ZOO_CHANGED_EVENT = 3, ZOO_CHILD_EVENT = 4,
          ZOO_SESSION_EVENT = -1, ZOO_NOTWATCHING_EVENT = -2;
struct Id ZOO_ANYONE_ID_UNSAFE = {(char *)(uintptr_t) "world", (char *)(uintptr_t) "anyone"};
struct Id ZOO_AUTH_IDS = {(char *)(uintptr_t) "auth", (char *)(uintptr_t) ""};
struct ACL_vector ZOO_OPEN_ACL_UNSAFE, ZOO_READ_ACL_UNSAFE, ZOO_CREATOR_ALL_ACL;

enum shape { SHAPE_VOID, SHAPE_STRING, SHAPE_STRING_STAT, SHAPE_STAT, SHAPE_DATA, SHAPE_NAMES };
enum kind { KIND_DATA, KIND_EXIST, KIND_CHILDREN };

struct active {
    struct active *next;
    enum kind kind;
    watcher_fn watcher;
    void *context;
    char path[ZK_PATH_SIZE];
};

struct call {
    struct call *next;
    uint64_t tag;
    enum zk_type type;
    enum shape shape;
    union {
        void_completion_t nothing;
        string_completion_t string;
        string_stat_completion_t string_stat;
        stat_completion_t stat;
        data_completion_t data;
        strings_stat_completion_t names;
    } completion;
    const void *data;
    watcher_fn watcher;
    void *watch_context;
    ZooWatcherType dropped;
    zoo_op_result_t *results;
    int part_count;
    struct zk_request *request; /* until it is sent */
    char path[ZK_PATH_SIZE];
};

struct _zhandle {
    struct host *host;
    watcher_fn watcher;
    void *context;
    int timeout_ms, state, first_server, server, servers, tried;
    clientid_t identity;
    int64_t seen;
    struct zk_wire *wire;
    int socket;
    mrt_time last_received, last_sent;
    bool delay, half_sent;
    uint64_t tags;
    struct call *first, **last;
    struct active *watches;
};

static mrt_time now_of(const zhandle_t *handle)
{
    return client_now(handle->host->client);
}

/* ------------------------------------------------------------------ watchers */

static void tell_session(zhandle_t *handle, int state)
{
    handle->watcher(handle, ZOO_SESSION_EVENT, state, "", handle->context);
    for (struct active *active = handle->watches; active; active = active->next)
        active->watcher(handle, ZOO_SESSION_EVENT, state, "", active->context);
}

static bool concerns(const struct active *active, int type, const char *path)
{
    bool children = active->kind == KIND_CHILDREN;
    return strcmp(active->path, path) == 0 && (type == ZOO_DELETED_EVENT ? true
                                               : type == ZOO_CHILD_EVENT ? children
                                                                         : !children);
}

static void deliver(zhandle_t *handle, int type, const char *path)
{
    struct active *found = NULL, **last = &found, **link = &handle->watches, *active;
    while ((active = *link)) {
        if (!concerns(active, type, path)) {
            link = &active->next;
            continue;
        }
        *link = active->next;
        active->next = NULL;
        *last = active;
        last = &active->next;
    }
    while ((active = found)) {
        found = active->next;
        active->watcher(handle, type, ZOO_CONNECTED_STATE, path, active->context);
        free(active);
    }
}

static void activate(zhandle_t *handle, const struct call *call, int code)
{
    if (!call->watcher || (code != ZOK && !(call->type == ZK_EXISTS && code == ZNONODE)))
        return;
    struct active *active = calloc(1, sizeof *active);
    if (!active)
        abort();
    active->kind = call->type == ZK_LIST ? KIND_CHILDREN : code == ZOK ? KIND_DATA : KIND_EXIST;
    active->watcher = call->watcher;
    active->context = call->watch_context;
    memcpy(active->path, call->path, sizeof active->path);
    active->next = handle->watches;
    handle->watches = active;
}

static void deactivate(zhandle_t *handle, const struct call *call)
{
    struct active **link = &handle->watches, *active;
    while ((active = *link)) {
        bool children = active->kind == KIND_CHILDREN;
        if (strcmp(active->path, call->path) != 0 ||
            (call->dropped == ZWATCHTYPE_CHILD && !children) ||
            (call->dropped == ZWATCHTYPE_DATA && children)) {
            link = &active->next;
            continue;
        }
        *link = active->next;
        free(active);
    }
}

/* ------------------------------------------------------------------ completions */

static void complete_names(const struct call *call, int code, const struct zk_answer *answer)
{
    struct String_vector names = {.count = answer ? answer->name_count : 0};
    names.data = calloc((size_t)names.count + 1, sizeof *names.data);
    if (!names.data)
        abort();
    for (int i = 0; i < names.count; i++)
        names.data[i] = answer->names[i];
    call->completion.names(code, code == ZOK ? &names : NULL, code == ZOK ? &answer->stat : NULL,
                           call->data);
    free(names.data);
}

static void fill_results(const struct call *call, int code, const struct zk_answer *answer)
{
    for (int i = 0; i < call->part_count; i++)
        call->results[i].err = answer ? answer->part_codes[i] : code;
}

static void complete(const zhandle_t *handle, struct call *call, int code,
                     const struct zk_answer *answer)
{
    const char *path = code == ZOK ? answer->path : NULL;
    const struct Stat *stat = code == ZOK ? &answer->stat : NULL;
    handle->host->client->answered++;
    handle->host->client->cuts += answer == NULL;
    fill_results(call, code, answer);
    switch (call->shape) {
    case SHAPE_VOID:
        call->completion.nothing(code, call->data);
        break;
    case SHAPE_STRING:
        call->completion.string(code, path, call->data);
        break;
    case SHAPE_STRING_STAT:
        call->completion.string_stat(code, path, stat, call->data);
        break;
    case SHAPE_STAT:
        call->completion.stat(code, stat, call->data);
        break;
    case SHAPE_DATA:
        call->completion.data(code, code == ZOK ? answer->data.bytes : NULL,
                              code == ZOK ? answer->data.length : -1, stat, call->data);
        break;
    case SHAPE_NAMES:
        complete_names(call, code, answer);
    }
    if (call->request)
        zk_request_free(call->request);
    free(call);
}

static struct call *take_call(zhandle_t *handle)
{
    struct call *call = handle->first;
    handle->first = call->next;
    if (!handle->first)
        handle->last = &handle->first;
    return call;
}

static void fail_calls(zhandle_t *handle, int code)
{
    struct call *calls = handle->first;
    handle->first = NULL;
    handle->last = &handle->first;
    while (calls) {
        struct call *call = calls;
        calls = call->next;
        complete(handle, call, code, NULL);
    }
}

/* ------------------------------------------------------------------ the connection */

static void close_socket(zhandle_t *handle)
{
    if (handle->wire)
        host_socket_close(handle->host, handle->socket);
    handle->wire = NULL;
    handle->socket = -1;
}

static int fail(zhandle_t *handle, int code)
{
    bool connected = handle->state == ZOO_CONNECTED_STATE;
    close_socket(handle);
    handle->half_sent = false;
    handle->delay = ++handle->tried % handle->servers == 0;
    if (is_unrecoverable(handle))
        tell_session(handle, handle->state);
    else if (connected)
        tell_session(handle, ZOO_CONNECTING_STATE);
    if (!is_unrecoverable(handle))
        handle->state = ZOO_NOTCONNECTED_STATE;
    fail_calls(handle, code);
    return code;
}

static void transmit(zhandle_t *handle, struct call *call)
{
    zk_wire_send(handle->wire, call->request);
    call->request = NULL;
    handle->last_sent = now_of(handle);
}

static void set_watches_again(zhandle_t *handle)
{
    if (!handle->watches)
        return;
    struct zk_request *request = zk_request_new(ZK_SET_WATCHES, "");
    request->seen = handle->seen;
    for (const struct active *active = handle->watches; active; active = active->next) {
        struct zk_watch *watch = calloc(1, sizeof *watch);
        if (!watch)
            abort();
        watch->children = active->kind == KIND_CHILDREN;
        watch->exists = active->kind == KIND_EXIST;
        memcpy(watch->path, active->path, sizeof watch->path);
        watch->next = request->watches;
        request->watches = watch;
    }
    zk_wire_send(handle->wire, request);
}

static int established(zhandle_t *handle, const struct zk_packet *packet)
{
    if (packet->code != ZOK) {
        handle->state = ZOO_EXPIRED_SESSION_STATE;
        return fail(handle, ZSESSIONEXPIRED);
    }
    handle->identity.client_id = packet->session;
    handle->timeout_ms = packet->timeout_ms;
    handle->state = ZOO_CONNECTED_STATE;
    handle->tried = 0;
    set_watches_again(handle);
    for (struct call *call = handle->first; call; call = call->next)
        if (call->request)
            transmit(handle, call);
    tell_session(handle, ZOO_CONNECTED_STATE);
    return ZOK;
}

static int answered(zhandle_t *handle, const struct zk_answer *answer)
{
    if (answer->zxid > 0)
        handle->seen = answer->zxid;
    if (answer->type == ZK_PING || answer->type == ZK_SET_WATCHES)
        return ZOK;
    if (!handle->first || handle->first->tag != answer->tag)
        return fail(handle, ZRUNTIMEINCONSISTENCY);
    struct call *call = take_call(handle);
    activate(handle, call, answer->code);
    if (call->type == ZK_DROP_WATCHES && answer->code == ZOK)
        deactivate(handle, call);
    complete(handle, call, answer->code, answer);
    return ZOK;
}

static int read_one(zhandle_t *handle)
{
    struct zk_packet *packet = handle->wire->broken ? NULL : zk_wire_read(handle->wire);
    int code = ZOK;
    if (!packet)
        return zk_wire_readable(handle->wire) ? fail(handle, ZCONNECTIONLOSS) : ZNOTHING;
    handle->last_received = now_of(handle);
    if (packet->kind == ZK_PACKET_OPENED)
        code = established(handle, packet);
    else if (packet->kind == ZK_PACKET_EVENT)
        deliver(handle, packet->type, packet->path);
    else
        code = answered(handle, &packet->answer);
    zk_packet_free(packet);
    return code;
}

int zookeeper_process(zhandle_t *handle, int events)
{
    if (is_unrecoverable(handle) || !handle->wire)
        return ZINVALIDSTATE;
    if ((events & ZOOKEEPER_WRITE) && handle->state == ZOO_CONNECTING_STATE) {
        if (handle->wire->refused || handle->wire->broken || handle->wire->shut)
            return fail(handle, ZCONNECTIONLOSS);
        zk_wire_handshake(handle->wire, handle->identity.client_id, handle->timeout_ms,
                          handle->seen);
        handle->state = ZOO_ASSOCIATING_STATE;
        return ZOK;
    }
    return events & ZOOKEEPER_READ ? read_one(handle) : ZOK;
}

static void begin_connecting(zhandle_t *handle)
{
    struct client *client = handle->host->client;
    handle->server = (handle->server + 1) % handle->servers;
    handle->wire = zk_wire_open(client->world, client, handle->first_server + handle->server);
    handle->wire->deaf = handle->half_sent;
    handle->socket = host_socket_new(handle->host, &handle->wire->socket);
    handle->state = ZOO_CONNECTING_STATE;
}

/* It counts in whole milliseconds. */
static int64_t ms_since(mrt_time then, mrt_time now)
{
    return (now - then) / MRT_MILLISECOND;
}

static struct timeval as_timeval(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

static int64_t until_ping(zhandle_t *handle, mrt_time now)
{
    int64_t third = handle->timeout_ms / 3;
    int64_t left = third - ms_since(handle->last_sent, now);
    if (handle->state != ZOO_CONNECTED_STATE)
        return third;
    if (left > 0)
        return left;
    if (!handle->first && !handle->wire->broken) {
        zk_wire_send(handle->wire, zk_request_new(ZK_PING, ""));
        handle->last_sent = now;
    }
    return third;
}

int zookeeper_interest(zhandle_t *handle, int *socket, int *interest, struct timeval *wait)
{
    mrt_time now = now_of(handle);
    if (is_unrecoverable(handle))
        return ZINVALIDSTATE;
    *socket = handle->socket;
    *interest = 0;
    *wait = (struct timeval){0, 0};
    if (!handle->wire && handle->delay) {
        *wait = as_timeval(handle->timeout_ms / 60);
        handle->delay = false;
        return ZOK;
    }
    if (!handle->wire) {
        begin_connecting(handle);
        handle->last_received = handle->last_sent = now;
    }
    *socket = handle->socket;
    int64_t patience = handle->timeout_ms * 2 / 3 - ms_since(handle->last_received, now);
    if (patience <= 0)
        return fail(handle, ZOPERATIONTIMEOUT);
    *wait = as_timeval(mrt_time_min(patience, until_ping(handle, now)));
    *interest = ZOOKEEPER_READ | (handle->state == ZOO_CONNECTING_STATE ? ZOOKEEPER_WRITE : 0);
    return ZOK;
}

/* ------------------------------------------------------------------ its life */

zhandle_t *zookeeper_init2(const char *hosts, watcher_fn watcher, int timeout_ms,
                           const clientid_t *identity, void *context, int flags,
                           log_callback_fn log)
{
    (void)identity, (void)flags, (void)log;
    zhandle_t *handle = calloc(1, sizeof *handle);
    if (!handle)
        abort();
    handle->host = host_current;
    handle->watcher = watcher;
    handle->context = context;
    handle->timeout_ms = timeout_ms;
    handle->state = ZOO_NOTCONNECTED_STATE;
    handle->socket = -1;
    handle->last = &handle->first;
    handle->servers = 1;
    handle->first_server = (int)strtol(strrchr(hosts, ':') + 1, NULL, 10) - 2181;
    for (const char *at = hosts; (at = strchr(at, ',')); at++)
        handle->servers++;
    handle->first_server -= handle->servers - 1; /* the list is in order */
    struct world *world = handle->host->client->world;
    handle->server = (int)random_below(&world->random, handle->servers);
    return handle;
}

int zookeeper_close(zhandle_t *handle)
{
    struct active *active;
    if (handle->wire && handle->state == ZOO_CONNECTED_STATE && !handle->host->dead &&
        !handle->wire->broken && !handle->wire->shut)
        zk_wire_send(handle->wire, zk_request_new(ZK_CLOSE, ""));
    close_socket(handle);
    handle->state = 0;
    fail_calls(handle, ZCLOSING);
    while ((active = handle->watches)) {
        handle->watches = active->next;
        free(active);
    }
    free(handle);
    return ZOK;
}

int zoo_state(zhandle_t *handle)
{
    return handle->state;
}

int is_unrecoverable(zhandle_t *handle)
{
    return handle->state < 0 ? ZINVALIDSTATE : ZOK;
}

const clientid_t *zoo_client_id(zhandle_t *handle)
{
    return &handle->identity;
}

int zoo_recv_timeout(zhandle_t *handle)
{
    return handle->timeout_ms;
}

void zoo_set_debug_level(ZooLogLevel level)
{
    (void)level;
}

/* Addresses are literal here, and so never looked up again. */
int zoo_set_servers(zhandle_t *handle, const char *servers)
{
    (void)handle, (void)servers;
    return ZBADARGUMENTS;
}

int zoo_set_servers_resolution_delay(zhandle_t *handle, int delay_ms)
{
    (void)handle, (void)delay_ms;
    return ZOK;
}

/* ------------------------------------------------------------------ requests */

/* Sent at once if there is a connection; else when there is. */
static int put(zhandle_t *handle, const struct call *wanted, struct zk_request *request)
{
    if (is_unrecoverable(handle) || request->part.path[0] != '/') {
        zk_request_free(request);
        return is_unrecoverable(handle) ? ZINVALIDSTATE : ZBADARGUMENTS;
    }
    struct call *call = malloc(sizeof *call);
    if (!call)
        abort();
    *call = *wanted;
    call->tag = request->tag = ++handle->tags;
    handle->host->client->asked++;
    call->type = request->part.type;
    call->request = request;
    request->watch = call->watcher != NULL;
    memcpy(call->path, request->part.path, sizeof call->path);
    call->next = NULL;
    *handle->last = call;
    handle->last = &call->next;
    if (handle->state != ZOO_CONNECTED_STATE)
        return ZOK;
    if (!handle->wire->broken) {
        transmit(handle, call);
        return ZOK;
    }
    close_socket(handle);
    handle->state = ZOO_NOTCONNECTED_STATE;
    handle->half_sent = true;
    return ZOK;
}

static void set_mode(struct zk_part *part, int mode)
{
    part->ephemeral = mode == ZOO_EPHEMERAL || mode == ZOO_EPHEMERAL_SEQUENTIAL;
    part->sequential = mode == ZOO_PERSISTENT_SEQUENTIAL || mode == ZOO_EPHEMERAL_SEQUENTIAL;
    part->container = mode == ZOO_CONTAINER;
}

int zoo_acreate(zhandle_t *handle, const char *path, const char *value, int length,
                const struct ACL_vector *acl, int mode, string_completion_t completion,
                const void *data)
{
    (void)acl;
    struct zk_request *request = zk_request_new(ZK_CREATE, path);
    set_mode(&request->part, mode);
    request->part.data = zk_data_of(value, length);
    return put(handle,
               &(struct call){.shape = SHAPE_STRING, .completion.string = completion, .data = data},
               request);
}

int zoo_acreate2(zhandle_t *handle, const char *path, const char *value, int length,
                 const struct ACL_vector *acl, int mode, string_stat_completion_t completion,
                 const void *data)
{
    (void)acl;
    struct zk_request *request = zk_request_new(ZK_CREATE, path);
    set_mode(&request->part, mode);
    request->part.data = zk_data_of(value, length);
    return put(handle,
               &(struct call){
                   .shape = SHAPE_STRING_STAT, .completion.string_stat = completion, .data = data},
               request);
}

int zoo_adelete(zhandle_t *handle, const char *path, int version, void_completion_t completion,
                const void *data)
{
    struct zk_request *request = zk_request_new(ZK_DELETE, path);
    request->part.version = version;
    return put(handle,
               &(struct call){.shape = SHAPE_VOID, .completion.nothing = completion, .data = data},
               request);
}

int zoo_aset(zhandle_t *handle, const char *path, const char *value, int length, int version,
             stat_completion_t completion, const void *data)
{
    struct zk_request *request = zk_request_new(ZK_SET, path);
    request->part.version = version;
    request->part.data = zk_data_of(value, length);
    return put(handle,
               &(struct call){.shape = SHAPE_STAT, .completion.stat = completion, .data = data},
               request);
}

/* The worlds' locks are open to all. */
int zoo_aget_acl(zhandle_t *handle, const char *path, acl_completion_t completion, const void *data)
{
    (void)handle, (void)path, (void)completion, (void)data;
    return ZUNIMPLEMENTED;
}

int zoo_aexists(zhandle_t *handle, const char *path, int watch, stat_completion_t completion,
                const void *data)
{
    return zoo_awexists(handle, path, watch ? handle->watcher : NULL, handle->context, completion,
                        data);
}

static bool is_own_watch(const char *path, const char *marker)
{
    return !strstr(path, MRT_ZK_MARKERS_NAME) && strcmp(strrchr(path, '/'), marker) != 0;
}

/* A waiter watches its own node before it watches a marker: a pass that comes in between is not
   believed otherwise. The marker is called as the node ahead. */
static void check_order(const zhandle_t *handle, const char *path)
{
    static const char markers[] = ZK_CHROOT "/" MRT_ZK_MARKERS_NAME;
    const char *marker = path + sizeof markers - 1;
    if (strncmp(path, markers, sizeof markers - 1) != 0 || *marker != '/')
        return;
    for (const struct active *active = handle->watches; active; active = active->next)
        if (active->kind != KIND_CHILDREN && is_own_watch(active->path, marker))
            return;
    for (const struct call *call = handle->first; call; call = call->next)
        if (call->watcher && is_own_watch(call->path, marker))
            return;
    check_fail(handle->host->client->world, -1, NO_QUEUE, "%s is watched before the own node",
               path);
}

int zoo_awexists(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                 stat_completion_t completion, const void *data)
{
    check_order(handle, path);
    return put(handle,
               &(struct call){.shape = SHAPE_STAT,
                              .completion.stat = completion,
                              .data = data,
                              .watcher = watcher,
                              .watch_context = context},
               zk_request_new(ZK_EXISTS, path));
}

int zoo_aget(zhandle_t *handle, const char *path, int watch, data_completion_t completion,
             const void *data)
{
    return zoo_awget(handle, path, watch ? handle->watcher : NULL, handle->context, completion,
                     data);
}

int zoo_awget(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
              data_completion_t completion, const void *data)
{
    return put(handle,
               &(struct call){.shape = SHAPE_DATA,
                              .completion.data = completion,
                              .data = data,
                              .watcher = watcher,
                              .watch_context = context},
               zk_request_new(ZK_GET, path));
}

int zoo_awget_children2(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                        strings_stat_completion_t completion, const void *data)
{
    return put(handle,
               &(struct call){.shape = SHAPE_NAMES,
                              .completion.names = completion,
                              .data = data,
                              .watcher = watcher,
                              .watch_context = context},
               zk_request_new(ZK_LIST, path));
}

int zoo_async(zhandle_t *handle, const char *path, string_completion_t completion, const void *data)
{
    return put(handle,
               &(struct call){.shape = SHAPE_STRING, .completion.string = completion, .data = data},
               zk_request_new(ZK_SYNC, path));
}

int zoo_aremove_all_watches(zhandle_t *handle, const char *path, ZooWatcherType type, int local,
                            void_completion_t *completion, const void *data)
{
    if (local) { /* in the library alone, and at once */
        struct call forget = {.dropped = type};
        snprintf(forget.path, sizeof forget.path, "%s", path);
        deactivate(handle, &forget);
        return ZOK;
    }
    return put(handle,
               &(struct call){.shape = SHAPE_VOID,
                              .completion.nothing = (void_completion_t)completion,
                              .data = data,
                              .dropped = type},
               zk_request_new(ZK_DROP_WATCHES, path));
}

/* ------------------------------------------------------------------ multi */

enum { OP_CREATE = 1, OP_DELETE = 2, OP_SET = 5, OP_CHECK = 13 };

void zoo_create_op_init(zoo_op_t *op, const char *path, const char *value, int length,
                        const struct ACL_vector *acl, int mode, char *buffer, int size)
{
    *op = (zoo_op_t){.type = OP_CREATE};
    op->create_op.path = path;
    op->create_op.data = value;
    op->create_op.datalen = length;
    op->create_op.acl = acl;
    op->create_op.flags = mode;
    op->create_op.buf = buffer;
    op->create_op.buflen = size;
}

void zoo_delete_op_init(zoo_op_t *op, const char *path, int version)
{
    *op = (zoo_op_t){.type = OP_DELETE};
    op->delete_op.path = path;
    op->delete_op.version = version;
}

void zoo_set_op_init(zoo_op_t *op, const char *path, const char *value, int length, int version,
                     struct Stat *stat)
{
    *op = (zoo_op_t){.type = OP_SET};
    op->set_op.path = path;
    op->set_op.data = value;
    op->set_op.datalen = length;
    op->set_op.version = version;
    op->set_op.stat = stat;
}

void zoo_check_op_init(zoo_op_t *op, const char *path, int version)
{
    *op = (zoo_op_t){.type = OP_CHECK};
    op->check_op.path = path;
    op->check_op.version = version;
}

int zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *operations, zoo_op_result_t *results,
               void_completion_t completion, const void *data)
{
    struct zk_request *request = zk_request_new(ZK_MULTI, "/");
    if (count > ZK_PARTS_MAX)
        abort();
    request->part_count = count;
    for (int i = 0; i < count; i++) {
        const zoo_op_t *operation = &operations[i];
        struct zk_part *part = &request->parts[i];
        const char *path = operation->create_op.path; /* first in each of them */
        snprintf(part->path, sizeof part->path, "%s", path);
        part->version = -1;
        part->type = operation->type == OP_CREATE   ? ZK_CREATE
                     : operation->type == OP_DELETE ? ZK_DELETE
                     : operation->type == OP_CHECK  ? ZK_CHECK
                                                    : ZK_SET;
        if (operation->type == OP_CREATE) {
            set_mode(part, operation->create_op.flags);
            part->data = zk_data_of(operation->create_op.data, operation->create_op.datalen);
        } else if (operation->type == OP_DELETE) {
            part->version = operation->delete_op.version;
        } else if (operation->type == OP_SET) {
            part->version = operation->set_op.version;
        } else {
            part->version = operation->check_op.version;
        }
        results[i] = (zoo_op_result_t){0};
    }
    return put(handle,
               &(struct call){.shape = SHAPE_VOID,
                              .completion.nothing = completion,
                              .data = data,
                              .results = results,
                              .part_count = count},
               request);
}

/* The simulated servers know no credentials, and no run gives any. */
int zoo_add_auth(zhandle_t *handle, const char *scheme, const char *credentials, int length,
                 void_completion_t completion, const void *context)
{
    (void)handle, (void)scheme, (void)credentials, (void)length, (void)completion, (void)context;
    return ZUNIMPLEMENTED;
}
