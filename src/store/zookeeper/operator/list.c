/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_list: reads the queues below a directory, behind a sync, so that it shows no
 * older state than that of the call. A node that goes between two questions is left out.
 */
#include "store/zookeeper/operator/connection.h"

#include "base/error.h"
#include "core/rule.h"
#include "store/zookeeper/operator/operator.h"
#include "store/zookeeper/ticket/view.h"

#include <string.h>

#define DEPTH_MAX 32

struct lister {
    struct mrt_zk_asker asker; /* first */
    const char *prefix;
    mrt_listed_callback callback;
    void *argument;
    bool stop;
};

static void tell(struct lister *list, const char *name, const char *node,
                 const struct mrt_zk_place *own, uint32_t place)
{
    const char *kind = mrt_zk_kind(own->family);
    const char *label = list->asker.data, *line = strchr(label, '\n');
    if (line && strncmp(label, kind, strlen(kind)) == 0)
        label = line + 1; /* ours; others keep what they like there */
    char claim[MRT_CLAIM_SIZE] = "";
    if (own->family == MRT_ZK_EXCLUSIVE && line && line - list->asker.data >= MRT_CLAIM_SIZE)
        snprintf(claim, sizeof claim, "%.*s", MRT_CLAIM_SIZE - 1, line - (MRT_CLAIM_SIZE - 1));
    const struct mrt_listed listed = {
        .entry = {.size = sizeof(mortise_entry),
                  .name = name,
                  .kind = kind,
                  .label = label,
                  .fence = (uint64_t)mrt_zk_first_czxid(own, &list->asker.stat) * MRT_ZK_FENCE_SPAN,
                  .place = place,
                  .since_wall_ms = list->asker.stat.ctime,
                  .weight = own->weight,
                  .capacity = own->capacity,
                  .detached = own->hands == MRT_ZK_DETACHED,
                  .node = node},
        .claim = claim};
    if (list->callback(list->argument, &listed))
        list->stop = true;
}

/* Of the node that was read last: ours say in their data that they are writers, where their names
   leave it open. */
static struct mrt_zk_place place_said(const struct lister *list, const struct mrt_zk_row *row)
{
    const char *kind = mrt_zk_kind(MRT_ZK_WRITER);
    const struct mrt_zk_place writer = {.family = MRT_ZK_WRITER};
    return strncmp(list->asker.data, kind, strlen(kind)) == 0
               ? mrt_zk_place_beside(row->node, &writer)
               : row->place;
}

static int tell_rows(struct lister *list, const char *path, const struct mrt_zk_row *rows,
                     int count)
{
    char node[MRT_ZK_PATH_MAX + 256], name[MRT_ZK_PATH_MAX];
    const struct mrt_zk_address *address = &list->asker.store->address;
    uint32_t place = 0;
    uint64_t ahead = 0;
    mrt_zk_queue_name(address->namespace, path + strlen(address->chroot) + 1, name);
    for (int i = 0; i < count && !list->stop; i++) {
        snprintf(node, sizeof node, "%s/%s", path, rows[i].node);
        int code = mrt_zk_ask(&list->asker, MRT_ZK_ASK_DATA, node);
        if (code == ZNONODE)
            continue;
        if (code != ZOK)
            return code;
        const struct mrt_zk_place own = place_said(list, &rows[i]);
        place += place > 0 || !mrt_rule_grants(ahead, own.weight, own.capacity);
        tell(list, name, node, &own, place);
        ahead += own.weight;
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
    struct mrt_zk_children children;
    int code = mrt_zk_ask_children(&list->asker, *path ? path : "/", &children);
    const char *name = path + strlen(list->asker.store->address.chroot);
    bool wanted =
        *name && (!list->prefix || strncmp(name + 1, list->prefix, strlen(list->prefix)) == 0);
    if (code == ZOK && wanted)
        code = tell_rows(list, path, children.rows, children.row_count);
    if (code == ZOK && depth >= 0 && depth < DEPTH_MAX)
        code = walk_children(list, path, children.names, children.count, depth);
    mrt_zk_children_free(&children);
    return code == ZNONODE ? ZOK : code;
}

static int walk_wanted(struct lister *list, const char *name)
{
    char path[MRT_ZK_PATH_MAX];
    const struct mrt_zk_address *address = &list->asker.store->address;
    if (name) {
        int error = mrt_zk_queue_path(address->chroot, address->namespace, name, path);
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
    int code = mrt_zk_ask(&list->asker, MRT_ZK_ASK_SYNC, *address->chroot ? address->chroot : "/");
    if (code == ZOK)
        code = walk(list, path, name ? -1 : 0);
    if (code == ZOK)
        return MORTISE_OK;
    const struct mrt_zk_code *why = mrt_zk_code(code);
    return mrt_error(why->error, "%s: %s", address->shown, why->text);
}

int mrt_zk_list(struct mrt_store *store, const char *name, const char *prefix,
                mrt_listed_callback callback, void *argument)
{
    struct lister list = {.prefix = name     ? NULL
                                    : prefix ? prefix
                                             : "",
                          .callback = callback,
                          .argument = argument};
    int error = mrt_zk_asker_open(&list.asker, store);
    if (error != MORTISE_OK)
        return error;
    error = walk_wanted(&list, name);
    mrt_zk_asker_close(&list.asker);
    return error;
}
