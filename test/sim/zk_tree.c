/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of nodes; see zk_tree.h. */
#include "zk_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void zk_tree_init(struct zk_tree *tree, uint32_t first_sequence)
{
    memset(tree, 0, sizeof *tree);
    tree->first_sequence = first_sequence;
    tree->zxid = 100;
}

static void free_past(struct zk_past **link)
{
    struct zk_past *past;
    while ((past = *link)) {
        *link = past->older;
        free(past);
    }
}

static void free_node(struct zk_node *node)
{
    struct zk_node *child;
    while ((child = node->children)) {
        node->children = child->next;
        free_node(child);
    }
    free_past(&node->past);
    free(node);
}

void zk_tree_fini(struct zk_tree *tree)
{
    struct zk_node *child;
    while ((child = tree->root.children)) {
        tree->root.children = child->next;
        free_node(child);
    }
    free_past(&tree->root.past);
    free(tree->changes);
}

bool zk_node_visible(const struct zk_node *node, int64_t zxid)
{
    return node->czxid <= zxid && (node->dzxid == 0 || node->dzxid > zxid);
}

struct zk_node *zk_tree_find(struct zk_tree *tree, const char *path, int64_t zxid)
{
    struct zk_node *node = &tree->root;
    while (node && *path == '/' && path[1]) {
        size_t length = strcspn(++path, "/");
        struct zk_node *child = node->children;
        while (child && (strncmp(child->name, path, length) != 0 || child->name[length] ||
                         !zk_node_visible(child, zxid)))
            child = child->next;
        node = child;
        path += length;
    }
    return node;
}

static void note(struct zk_tree *tree, int type, const char *path, int64_t session)
{
    if (tree->change_count == tree->change_room) {
        tree->change_room = tree->change_room ? tree->change_room * 2 : 256;
        tree->changes = realloc(tree->changes, (size_t)tree->change_room * sizeof *tree->changes);
        if (!tree->changes)
            abort();
    }
    struct zk_change *change = &tree->changes[tree->change_count++];
    change->zxid = tree->zxid;
    change->type = type;
    change->session = session;
    snprintf(change->path, sizeof change->path, "%s", path);
}

/* Data whose end every server has seen. */
static void forget_dead(struct zk_tree *tree, struct zk_node *parent)
{
    struct zk_node **link = &parent->children, *node;
    while ((node = *link)) {
        if (node->dzxid == 0 || node->dzxid > tree->applied_by_all) {
            link = &node->next;
            continue;
        }
        *link = node->next;
        if (parent->forgotten < node->dzxid)
            parent->forgotten = node->dzxid;
        free_node(node);
    }
}

/* Keeps what the newest change has replaced, and what a server may still show. */
static void keep_past(struct zk_tree *tree, struct zk_node *node)
{
    struct zk_past *past = malloc(sizeof *past);
    if (!past)
        abort();
    *past = (struct zk_past){node->past, node->mzxid, node->version, node->data};
    node->past = past;
    while (past && past->mzxid > tree->applied_by_all)
        past = past->older;
    if (past)
        free_past(&past->older);
}

static void restore_past(struct zk_node *node)
{
    struct zk_past *past = node->past;
    node->mzxid = past->mzxid;
    node->version = past->version;
    node->data = past->data;
    node->past = past->older;
    free(past);
}

/* As a server shows it that has applied the changes up to `zxid`. */
static struct zk_past shown(const struct zk_node *node, int64_t zxid)
{
    struct zk_past now = {node->past, node->mzxid, node->version, node->data};
    while (now.mzxid > zxid && now.older)
        now = *now.older;
    return now;
}

/* When a child last came or went, as a server knows it. */
static int64_t pzxid_at(const struct zk_node *node, int64_t zxid)
{
    int64_t newest = node->forgotten > node->czxid ? node->forgotten : node->czxid;
    for (const struct zk_node *child = node->children; child; child = child->next) {
        if (child->czxid <= zxid && child->czxid > newest)
            newest = child->czxid;
        if (child->dzxid <= zxid && child->dzxid > newest)
            newest = child->dzxid;
    }
    return newest;
}

void zk_stat_of(const struct zk_node *node, int64_t zxid, struct Stat *stat)
{
    const struct zk_past past = shown(node, zxid);
    *stat = (struct Stat){.czxid = node->czxid,
                          .mzxid = past.mzxid,
                          .pzxid = pzxid_at(node, zxid),
                          .version = past.version,
                          .cversion = (int32_t)node->counter,
                          .ephemeralOwner = node->owner,
                          .numChildren = node->child_count};
}

/* ------------------------------------------------------------------ writes */

static struct zk_node *parent_of(struct zk_tree *tree, const char *path)
{
    char parent[ZK_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return zk_tree_find(tree, parent, tree->zxid);
}

/* Of a node that takes the place of another: it has the same UUID in front, or, if it has changed
   hands, "d-" or "a-" and the number of the first one behind its own. */
static int64_t origin_of(const struct zk_tree *tree, const struct zk_node *parent, const char *name)
{
    const bool plain = strncmp(name, "_c_", 3) != 0; /* kazoo's */
    const size_t front = strlen(plain ? "01234567012301230123456789abcdef_"
                                      : "_c_01234567-0123-0123-0123-0123456789ab-");
    if (strlen(name) > front + 2 && strchr("da", name[front]) && name[front + 1] == '-')
        return strtoll(name + front + 2, NULL, 16);
    for (const struct zk_node *node = parent->children; node; node = node->next)
        if (node->dzxid == 0 && strncmp(node->name, name, front) == 0)
            return node->origin;
    return tree->zxid;
}

static int create(struct zk_tree *tree, int64_t session, const struct zk_part *part,
                  struct zk_answer *answer)
{
    struct zk_node *parent = parent_of(tree, part->path);
    if (!parent)
        return ZNONODE;
    if (parent->owner)
        return ZNOCHILDRENFOREPHEMERALS;
    snprintf(answer->path, sizeof answer->path, "%s", part->path);
    if (part->sequential) {
        size_t length = strlen(part->path);
        snprintf(answer->path + length, sizeof answer->path - length, "%010" PRId32,
                 (int32_t)(parent->counter + (parent == &tree->root ? 0 : tree->first_sequence)));
    }
    if (zk_tree_find(tree, answer->path, tree->zxid))
        return ZNODEEXISTS;
    struct zk_node *node = calloc(1, sizeof *node);
    if (!node)
        abort();
    snprintf(node->name, sizeof node->name, "%s", strrchr(answer->path, '/') + 1);
    node->parent = parent;
    node->czxid = node->mzxid = node->pzxid = parent->pzxid = tree->zxid;
    node->origin = part->sequential ? tree->zxid : origin_of(tree, parent, node->name);
    node->owner = part->ephemeral ? session : 0;
    node->weight = zk_weight(node->name);
    node->container = part->container;
    node->data = part->data;
    node->next = parent->children;
    parent->children = node;
    parent->counter++;
    parent->child_count++;
    parent->had_children = true;
    zk_stat_of(node, tree->zxid, &answer->stat);
    note(tree, ZOO_CREATED_EVENT, answer->path, session);
    return ZOK;
}

struct zk_data zk_data_of(const void *bytes, int length)
{
    struct zk_data data = {.length = length < ZK_DATA_SIZE ? length : ZK_DATA_SIZE};
    if (length > 0)
        memcpy(data.bytes, bytes, (size_t)data.length);
    return data;
}

static int delete_node(struct zk_tree *tree, int64_t session, const struct zk_part *part)
{
    struct zk_node *node = zk_tree_find(tree, part->path, tree->zxid);
    if (!node)
        return ZNONODE;
    if (part->version >= 0 && part->version != node->version)
        return ZBADVERSION;
    if (node->child_count > 0)
        return ZNOTEMPTY;
    node->dzxid = node->parent->pzxid = tree->zxid;
    node->parent->child_count--;
    note(tree, ZOO_DELETED_EVENT, part->path, session);
    return ZOK;
}

static int change(struct zk_tree *tree, int64_t session, const struct zk_part *part,
                  struct zk_answer *answer)
{
    struct zk_node *node = zk_tree_find(tree, part->path, tree->zxid);
    if (!node)
        return ZNONODE;
    if (part->version >= 0 && part->version != node->version)
        return ZBADVERSION;
    if (part->type == ZK_CHECK)
        return ZOK;
    keep_past(tree, node);
    node->mzxid = tree->zxid;
    node->version++;
    node->data = part->data;
    zk_stat_of(node, tree->zxid, &answer->stat);
    note(tree, ZOO_CHANGED_EVENT, part->path, session);
    return ZOK;
}

static int write_part(struct zk_tree *tree, int64_t session, const struct zk_part *part,
                      struct zk_answer *answer)
{
    switch (part->type) {
    case ZK_CREATE:
        return create(tree, session, part, answer);
    case ZK_DELETE:
        return delete_node(tree, session, part);
    default:
        return change(tree, session, part, answer);
    }
}

/* Undoes the steps of a multi so far; no client has seen them. */
static void undo(struct zk_tree *tree, const struct zk_change *done)
{
    struct zk_node *node = zk_tree_find(tree, done->path, tree->zxid);
    if (done->type == ZOO_CREATED_EVENT) {
        struct zk_node **link = &node->parent->children;
        while (*link != node)
            link = &(*link)->next;
        *link = node->next;
        node->parent->counter--;
        node->parent->child_count--;
        free_node(node);
    } else if (done->type == ZOO_CHANGED_EVENT) {
        restore_past(node);
    } else {
        struct zk_node *parent = parent_of(tree, done->path);
        for (node = parent->children; node; node = node->next)
            if (node->dzxid == tree->zxid && strcmp(node->name, strrchr(done->path, '/') + 1) == 0)
                break;
        node->dzxid = 0;
        parent->child_count++;
    }
}

static int write_all(struct zk_tree *tree, int64_t session, const struct zk_request *request,
                     struct zk_answer *answer)
{
    int before = tree->change_count, code = ZOK, failed = 0;
    for (int i = 0; i < request->part_count && code == ZOK; i++) {
        answer->part_codes[i] = code = write_part(tree, session, &request->parts[i], answer);
        failed = i;
    }
    if (code == ZOK)
        return code;
    while (tree->change_count > before)
        undo(tree, &tree->changes[--tree->change_count]);
    for (int i = 0; i < request->part_count; i++)
        answer->part_codes[i] = i < failed ? 0 : i == failed ? code : ZRUNTIMEINCONSISTENCY;
    return code;
}

void zk_tree_write(struct zk_tree *tree, int64_t session, const struct zk_request *request,
                   struct zk_answer *answer)
{
    tree->zxid++;
    if (request->part.type == ZK_MULTI)
        answer->code = write_all(tree, session, request, answer);
    else
        answer->code = write_part(tree, session, &request->part, answer);
}

/* ------------------------------------------------------------------ reads */

static void list(struct zk_node *node, int64_t zxid, struct zk_answer *answer)
{
    int count = 0;
    for (struct zk_node *child = node->children; child; child = child->next)
        count += zk_node_visible(child, zxid);
    answer->names = calloc((size_t)count + 1, sizeof *answer->names);
    if (!answer->names)
        abort();
    /* In no order that a client may rely on. */
    for (struct zk_node *child = node->children; child; child = child->next)
        if (zk_node_visible(child, zxid))
            memcpy(answer->names[answer->name_count++], child->name, sizeof child->name);
}

void zk_tree_read(struct zk_tree *tree, const struct zk_request *request, int64_t zxid,
                  struct zk_answer *answer)
{
    struct zk_node *node = zk_tree_find(tree, request->part.path, zxid);
    answer->code = node ? ZOK : ZNONODE;
    snprintf(answer->path, sizeof answer->path, "%s", request->part.path);
    if (!node)
        return;
    zk_stat_of(node, zxid, &answer->stat);
    answer->data = shown(node, zxid).data;
    if (request->part.type == ZK_LIST)
        list(node, zxid, answer);
}

/* ------------------------------------------------------------------ sessions, containers */

static void end_below(struct zk_tree *tree, struct zk_node *node, const char *path, int64_t session)
{
    char below[ZK_PATH_SIZE];
    for (struct zk_node *child = node->children; child; child = child->next) {
        if (child->dzxid)
            continue;
        snprintf(below, sizeof below, "%.*s/%s", ZK_PATH_SIZE - ZK_NAME_SIZE - 2, path,
                 child->name);
        end_below(tree, child, below, session);
        if (child->owner != session)
            continue;
        child->dzxid = node->pzxid = tree->zxid;
        node->child_count--;
        note(tree, ZOO_DELETED_EVENT, below, session);
    }
}

void zk_tree_end_session(struct zk_tree *tree, int64_t session)
{
    tree->zxid++;
    end_below(tree, &tree->root, "", session);
    note(tree, ZOO_SESSION_EVENT, "", session);
}

static int reap_below(struct zk_tree *tree, struct zk_node *node, const char *path)
{
    char below[ZK_PATH_SIZE];
    int count = 0;
    forget_dead(tree, node);
    for (struct zk_node *child = node->children; child; child = child->next) {
        if (child->dzxid)
            continue;
        snprintf(below, sizeof below, "%.*s/%s", ZK_PATH_SIZE - ZK_NAME_SIZE - 2, path,
                 child->name);
        bool empty = child->container && child->had_children && child->child_count == 0;
        if (empty && tree->reaps_late && child->found_empty != child->pzxid) {
            child->found_empty = child->pzxid;
        } else if (empty) {
            tree->zxid++;
            child->dzxid = node->pzxid = tree->zxid;
            node->child_count--;
            note(tree, ZOO_DELETED_EVENT, below, 0);
            count++;
        } else {
            count += reap_below(tree, child, below);
        }
    }
    return count;
}

int zk_tree_reap(struct zk_tree *tree)
{
    return reap_below(tree, &tree->root, "");
}
