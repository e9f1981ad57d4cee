/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_revoke and mortise_break: what an operator does to a ticket's node, whichever
 * program has made it.
 *
 * To ask a holder to give up is Curator's protocol: its Revoker writes the text below into the
 * holder's node, with no regard to what is there, and a holder that cares watches its node's
 * data (watch/pass.c). To break is to delete the node. Both read first whose czxid is that
 * of the fence; a node's name is never used again, so what is written to is what was read.
 * A claim's is: so its directory's version, which counts the claims, is read before and
 * checked by the transaction that deletes. (A request that hits the next one is but a request.)
 */
#include "store/zookeeper/operator/connection.h"

#include "base/error.h"
#include "core/rule.h"
#include "store/zookeeper/operator/operator.h"
#include "store/zookeeper/ticket/view.h"

/* An order for a queue, and its outcome. */
struct operation {
    struct mrt_zk_asker asker;
    enum mrt_zk_question question;
    int64_t czxid; /* of the ticket; 0: of all that hold */
    bool holders;  /* only those */
    bool done, perhaps;
};

/* One ticket's turn. *there: it had not gone meanwhile. */
static int treat(struct operation *operation, const char *node, const struct mrt_zk_place *place,
                 bool *there)
{
    struct mrt_zk_asker *asker = &operation->asker;
    bool claim = place->family == MRT_ZK_EXCLUSIVE;
    enum mrt_zk_question question = operation->question;
    int code = mrt_zk_ask(asker, MRT_ZK_ASK_DATA, node);
    *there = code == ZOK;
    if (code != ZOK)
        return code == ZNONODE ? ZOK : code;
    if (operation->czxid != 0 && operation->czxid != mrt_zk_first_czxid(place, &asker->stat))
        return ZOK;
    if (claim && question == MRT_ZK_ASK_DELETE)
        question = MRT_ZK_ASK_UNCLAIM;
    code = mrt_zk_ask(asker, question, node);
    operation->done |= code == ZOK;
    operation->perhaps |= mrt_zk_code(code)->outcome == MRT_ZK_PERHAPS;
    return code == ZNONODE || (claim && code == ZBADVERSION) ? ZOK : code;
}

static int treat_all(struct operation *operation, const char *path)
{
    char node[MRT_ZK_PATH_MAX + 256];
    uint64_t ahead = 0;
    struct mrt_zk_children children;
    const char *chroot = operation->asker.store->address.chroot;
    int code = mrt_zk_ask(&operation->asker, MRT_ZK_ASK_SYNC, *chroot ? chroot : "/");
    if (code != ZOK)
        return code;
    code = mrt_zk_ask_children(&operation->asker, path, &children);
    for (int i = 0; code == ZOK && i < children.row_count; i++) {
        const struct mrt_zk_place *place = &children.rows[i].place;
        bool there, over = operation->done && operation->czxid != 0;
        if (over || (operation->holders && !mrt_rule_grants(ahead, place->weight, place->capacity)))
            break;
        snprintf(node, sizeof node, "%s/%s", path, children.rows[i].node);
        code = treat(operation, node, place, &there);
        ahead += there ? place->weight : 0;
    }
    mrt_zk_children_free(&children);
    return code == ZNONODE ? ZOK : code;
}

static int operate(struct mrt_store *store, const char *name, struct operation *operation)
{
    char path[MRT_ZK_PATH_MAX];
    const struct mrt_zk_address *address = &store->address;
    int error = mrt_zk_queue_path(address->chroot, address->namespace, name, path);
    if (error == MORTISE_OK)
        error = mrt_zk_asker_open(&operation->asker, store);
    if (error != MORTISE_OK)
        return error;
    int code = treat_all(operation, path);
    mrt_zk_asker_close(&operation->asker);
    const struct mrt_zk_code *why = mrt_zk_code(code);
    if (code != ZOK)
        return mrt_error(operation->perhaps ? MORTISE_EUNKNOWN : why->error, "%s: %s",
                         address->shown, why->text);
    return operation->done ? MORTISE_OK : MORTISE_ENOTHELD;
}

/* Whether it can be a ticket's own fence; its transaction. */
static bool read_fence(uint64_t fence, int64_t *czxid)
{
    *czxid = (int64_t)(fence / MRT_ZK_FENCE_SPAN);
    return fence % MRT_ZK_FENCE_SPAN == 0;
}

int mrt_zk_revoke(struct mrt_store *store, const char *name, uint64_t fence)
{
    struct operation operation = {.question = MRT_ZK_ASK_REVOKE, .holders = true};
    if (!read_fence(fence, &operation.czxid))
        return MORTISE_ENOTHELD;
    return operate(store, name, &operation);
}

int mrt_zk_break(struct mrt_store *store, const char *name, uint64_t fence)
{
    struct operation operation = {.question = MRT_ZK_ASK_DELETE};
    if (!read_fence(fence, &operation.czxid) || fence == 0)
        return MORTISE_ENOTHELD;
    return operate(store, name, &operation);
}
