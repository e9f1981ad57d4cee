/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake of the ZooKeeper store behind the port: tickets that are claims. As the store
 * does it, each step after the answer to the one before:
 *
 *   claim    set the directory's data and create `lock`, in one transaction
 *   look     the directory's version, then `lock`
 *   release  check that version and delete `lock`, in one transaction
 */
#include "zk_port.h"

#include <inttypes.h>
#include <string.h>

static void ask_two(struct session *session, const struct mrt_command *command,
                    struct ticket *ticket, bool release)
{
    char path[ZK_PATH_SIZE];
    struct zk_request *request = zk_request_new(ZK_MULTI, "/");
    struct zk_part *directory = &request->parts[0], *node = &request->parts[1];
    request->part_count = 2;
    directory->type = release ? ZK_CHECK : ZK_SET;
    directory->version = release ? ticket->version : -1;
    node->type = release ? ZK_DELETE : ZK_CREATE;
    node->version = -1;
    node->ephemeral = true;
    memcpy(directory->path, zk_port_path(session, ticket, "", path), sizeof directory->path);
    memcpy(node->path, zk_port_path(session, ticket, ZK_CLAIM, path), sizeof node->path);
    node->data = zk_data_of(&ticket->id, sizeof ticket->id);
    ticket->outcome_unknown |= !release;
    zk_port_ask(session, command, ticket, request)->undo = release;
}

static void look(struct session *session, const struct mrt_command *command, struct ticket *ticket)
{
    char path[ZK_PATH_SIZE];
    zk_port_ask(session, command, ticket, zk_request_new(ZK_SYNC, "/"));
    zk_port_path(session, ticket, "", path);
    zk_port_ask(session, command, ticket, zk_request_new(ZK_EXISTS, path))->aside = true;
    zk_port_path(session, ticket, ZK_CLAIM, path);
    zk_port_ask(session, command, ticket, zk_request_new(ZK_GET, path));
}

void zk_port_claim(struct session *session, const struct mrt_command *command,
                   struct ticket *ticket)
{
    if (ticket->created || ticket->outcome_unknown)
        look(session, command, ticket);
    else if (command->type == MRT_REMOVE)
        zk_port_tell(session, command, MRT_REMOVED, 0);
    else
        ask_two(session, command, ticket, false);
}

static bool is_ours(const struct session *session, const struct ticket *ticket,
                    const struct zk_answer *answer)
{
    return answer->code == ZOK && answer->stat.ephemeralOwner == session->server_id &&
           answer->data.length == sizeof ticket->id &&
           memcmp(answer->data.bytes, &ticket->id, sizeof ticket->id) == 0;
}

static void show(struct session *session, const struct work *work, uint64_t ahead)
{
    const struct mrt_event event = {.type = MRT_VIEW,
                                    .serial = work->command.serial,
                                    .session = session->id,
                                    .ticket = work->ticket->id,
                                    .fence = ahead ? 0 : (uint64_t)work->ticket->czxid << 12,
                                    .fence_span = 1 << 12,
                                    .weight_ahead = ahead,
                                    .others_behind = true,
                                    .recheck =
                                        session->port->world->drawn.recheck_us * MRT_MICROSECOND};
    if (ahead)
        zk_port_watch(session, work, ZK_CLAIM);
    link_deliver(session->port->world, session->peer, &event);
}

static void seen(struct session *session, const struct work *work, const struct zk_answer *answer)
{
    struct ticket *ticket = work->ticket;
    const struct mrt_command *command = &work->command;
    bool was_created = ticket->created, removes = command->type == MRT_REMOVE;
    ticket->outcome_unknown = false;
    ticket->created = is_ours(session, ticket, answer);
    if (ticket->created)
        ticket->czxid = answer->stat.czxid;
    if (removes && ticket->created)
        ask_two(session, command, ticket, true);
    else if (removes)
        zk_port_tell(session, command, MRT_REMOVED, 0);
    else if (ticket->created)
        show(session, work, 0);
    else if (was_created)
        zk_port_tell(session, command, MRT_GONE, 0);
    else if (answer->code == ZNONODE)
        ask_two(session, command, ticket, false);
    else if (command->try_only && command->type == MRT_APPEND)
        zk_port_tell(session, command, MRT_BLOCKED, 0);
    else
        show(session, work, 1);
}

static void wrote(struct session *session, const struct work *work, int code)
{
    struct ticket *ticket = work->ticket;
    if (!work->undo && code == ZNONODE) {
        ticket->outcome_unknown = false;
        zk_port_ask_parents(session, &work->command, ticket);
        ask_two(session, &work->command, ticket, false);
    } else if (!work->undo || (code != ZOK && code != ZNONODE)) {
        look(session, &work->command, ticket); /* whose it is, or what else has been claimed */
    } else {
        ticket->created = false;
        zk_port_tell(session, &work->command, MRT_REMOVED, 0);
    }
}

void zk_port_claim_answer(struct session *session, const struct work *work,
                          const struct zk_answer *answer)
{
    if (work->type == ZK_MULTI)
        wrote(session, work, answer->code);
    else if (work->type == ZK_EXISTS)
        work->ticket->version = answer->code == ZOK ? answer->stat.version : -1;
    else if (work->type == ZK_GET)
        seen(session, work, answer);
}
