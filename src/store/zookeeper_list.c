/*
 * mortise_list: reads the queues below a directory, behind a sync, so that it shows no
 * older state than that of the call.
 *
 * It has a handle of its own and asks one thing at a time until it is answered, all
 * within the client's time-out; the session that holds locks is not touched. What is
 * gone between two questions is left out.
 */
#include "store/zookeeper_internal.h"

#include "base/error.h"
#include "base/name.h"
#include "core/rule.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32

struct lister {
    struct mrt_store *store;
    zhandle_t *handle;
    mrt_time deadline;
    const char *prefix;
    mortise_entry_callback callback;
    void *argument;
    bool connected, answered, stop;
    int code;
    struct Stat stat;
    char data[256];
    char **names; /* of the newest answer that had any */
    int count;
};

struct row {
    struct mrt_zk_place place;
    char *node;
};

static _Thread_local struct lister *lister; /* whose callbacks run */

static void free_names(char **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* ------------------------------------------------------------ asking one thing */

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle, (void)path, (void)context;
    if (lister && type == ZOO_SESSION_EVENT)
        lister->connected = state == ZOO_CONNECTED_STATE;
}

static void note(int code)
{
    if (!lister)
        return;
    lister->code = code;
    lister->answered = true;
}

static void on_string(int code, const char *text, const void *context)
{
    (void)text, (void)context;
    note(code);
}

static void on_names(int code, const struct String_vector *names, const void *context)
{
    (void)context;
    note(code);
    if (!lister || code != ZOK)
        return;
    lister->names = calloc((size_t)names->count + 1, sizeof *lister->names);
    lister->count = 0;
    for (int i = 0; lister->names && i < names->count; i++)
        if ((lister->names[lister->count] = strdup(names->data[i])))
            lister->count++;
}

static void on_data(int code, const char *value, int length, const struct Stat *stat,
                    const void *context)
{
    (void)context;
    note(code);
    if (!lister || code != ZOK)
        return;
    size_t size = length < 0 ? 0 : (size_t)length;
    if (size >= sizeof lister->data)
        size = sizeof lister->data - 1;
    memcpy(lister->data, value ? value : "", value ? size : 0);
    lister->data[value ? size : 0] = '\0';
    lister->stat = *stat;
}

/* One turn of the library; false: the time is up. */
static bool drive(struct lister *list)
{
    int socket = -1, interest = 0;
    struct timeval wait = {0, 0};
    mrt_time left = list->deadline - mrt_time_now();
    if (left <= 0)
        return false;
    pthread_mutex_lock(&mrt_zk_library);
    lister = list;
    int code = zookeeper_interest(list->handle, &socket, &interest, &wait);
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
    if (ready.fd >= 0)
        zookeeper_process(list->handle, events);
    lister = NULL;
    pthread_mutex_unlock(&mrt_zk_library);
    return true;
}

enum question { SYNC, NAMES, DATA };

static int ask(struct lister *list, enum question question, const char *path)
{
    list->answered = false;
    pthread_mutex_lock(&mrt_zk_library);
    lister = list;
    int code = question == SYNC    ? zoo_async(list->handle, path, on_string, NULL)
               : question == NAMES ? zoo_aget_children(list->handle, path, 0, on_names, NULL)
                                   : zoo_aget(list->handle, path, 0, on_data, NULL);
    lister = NULL;
    pthread_mutex_unlock(&mrt_zk_library);
    if (code != ZOK)
        return code;
    while (!list->answered)
        if (!drive(list))
            return ZOPERATIONTIMEOUT;
    return list->code;
}

/* ------------------------------------------------------------------ telling */

static int compare(const void *a, const void *b)
{
    const struct row *first = a, *second = b;
    int32_t a_sequence = first->place.sequence, b_sequence = second->place.sequence;
    return mrt_zk_before(b_sequence, a_sequence) - mrt_zk_before(a_sequence, b_sequence);
}

static void tell(struct lister *list, const char *name, const char *kind, uint32_t place)
{
    char *label = list->data;
    size_t length = strlen(kind);
    if (strncmp(label, kind, length) == 0 && label[length] == '\n')
        label += length + 1; /* ours; others keep what they like there */
    if (!mrt_text_is_clean(label, strlen(label)))
        label = "";
    mortise_entry entry = {.size = sizeof entry,
                           .name = name,
                           .kind = kind,
                           .label = label,
                           .fence = (uint64_t)list->stat.czxid * MRT_ZK_FENCE_SPAN,
                           .place = place,
                           .since_wall_ms = list->stat.ctime};
    if (list->callback(list->argument, &entry))
        list->stop = true;
}

static int tell_rows(struct lister *list, const char *path, const struct row *rows, int count)
{
    char node[MRT_ZK_PATH_MAX + 256];
    const char *name = path + strlen(list->store->address.chroot) + 1;
    uint32_t place = 0;
    uint64_t ahead = 0;
    for (int i = 0; i < count && !list->stop; i++) {
        const struct mrt_zk_place *own = &rows[i].place;
        snprintf(node, sizeof node, "%s/%s", path, rows[i].node);
        int code = ask(list, DATA, node);
        if (code == ZNONODE)
            continue;
        if (code != ZOK)
            return code;
        place += place > 0 || !mrt_rule_grants(ahead, own->weight, own->capacity);
        tell(list, name, mrt_zk_kind(own->family), place);
        ahead += own->weight;
    }
    return ZOK;
}

static int walk(struct lister *list, const char *path, int depth);

static int walk_children(struct lister *list, const char *path, char **names, int count, int depth)
{
    char child[MRT_ZK_PATH_MAX];
    for (int i = 0; i < count && !list->stop; i++) {
        if (mrt_zk_place_of(names[i]).family != MRT_ZK_FOREIGN)
            continue;
        int size = snprintf(child, sizeof child, "%s/%s", path, names[i]);
        if (size >= (int)sizeof child || strcmp(child, "/zookeeper") == 0)
            continue;
        int code = walk(list, child, depth + 1);
        if (code != ZOK)
            return code;
    }
    return ZOK;
}

/* The queue in `path`; with a depth of 0 and more also those below it. */
static int walk(struct lister *list, const char *path, int depth)
{
    int code = ask(list, NAMES, *path ? path : "/");
    if (code != ZOK)
        return code == ZNONODE ? ZOK : code;
    char **names = list->names;
    int count = list->count, contenders = 0;
    struct row *rows = calloc((size_t)count + 1, sizeof *rows);
    for (int i = 0; rows && names && i < count; i++) {
        struct row *row = &rows[contenders];
        row->place = mrt_zk_place_of(names[i]);
        row->node = names[i];
        contenders += row->place.family != MRT_ZK_FOREIGN;
    }
    if (!rows || !names)
        code = ZSYSTEMERROR;
    const char *name = path + strlen(list->store->address.chroot);
    bool wanted =
        *name && (!list->prefix || strncmp(name + 1, list->prefix, strlen(list->prefix)) == 0);
    if (contenders > 0 && wanted) {
        qsort(rows, (size_t)contenders, sizeof *rows, compare);
        code = tell_rows(list, path, rows, contenders);
    }
    if (code == ZOK && depth >= 0 && depth < DEPTH_MAX)
        code = walk_children(list, path, names, count, depth);
    free(rows);
    free_names(names, count);
    return code;
}

static int walk_wanted(struct lister *list, const char *name)
{
    char path[MRT_ZK_PATH_MAX];
    const struct mrt_zk_address *address = &list->store->address;
    if (name) {
        int error = mrt_zk_queue_path(address->chroot, address->space, name, path);
        if (error != MORTISE_OK)
            return error;
    } else {
        /* From the last directory that all wanted names have in common. */
        const char *slash = strrchr(list->prefix, '/');
        int length = slash ? (int)(slash - list->prefix) : 0;
        int size = snprintf(path, sizeof path, "%s%s%.*s", address->chroot, length ? "/" : "",
                            length, list->prefix);
        if (size < 0 || size >= (int)sizeof path)
            return mrt_error(MORTISE_ENAME, "prefix is too long");
    }
    int code = ask(list, SYNC, *address->chroot ? address->chroot : "/");
    if (code == ZOK)
        code = walk(list, path, name ? -1 : 0);
    if (code == ZOK)
        return MORTISE_OK;
    const struct mrt_zk_code *why = mrt_zk_code(code);
    return mrt_error(why->error, "%s: %s", address->shown, why->text);
}

int mrt_zk_list(struct mrt_store *store, const char *name, const char *prefix,
                mortise_entry_callback callback, void *argument)
{
    struct lister list = {.store = store,
                          .prefix = name     ? NULL
                                    : prefix ? prefix
                                             : "",
                          .callback = callback,
                          .argument = argument,
                          .deadline = mrt_time_add(mrt_time_now(), store->timeout)};
    pthread_mutex_lock(&mrt_zk_library);
    list.handle = mrt_zk_handle(store, on_session);
    pthread_mutex_unlock(&mrt_zk_library);
    if (!list.handle)
        return MORTISE_ENOMEM;
    while (!list.connected && drive(&list))
        ;
    int error = list.connected
                    ? walk_wanted(&list, name)
                    : mrt_error(MORTISE_EUNREACHABLE, "no answer from %s", store->address.shown);
    zookeeper_close(list.handle);
    return error;
}
