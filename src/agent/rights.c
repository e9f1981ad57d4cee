/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of users: see rights.h. */
#include "agent/rights.h"
#include "base/error.h"

#include "core/recipe.h"
#include "store/agent/frame.h"

#include <stdio.h>
#include <string.h>

int mrt_peer_check(struct mrt_peer *peer, unsigned verbs, const struct mrt_resp_word *name)
{
    int size = (int)(name->size < 128 ? name->size : 128);
    if (!peer->user->limits ||
        mrt_access_allows(peer->agent->access, &peer->rules, verbs, name->text, name->size))
        return MORTISE_OK;
    const char *verb = mrt_access_verb_name(verbs);
    mrt_user_log(peer->agent, peer->user, peer->pid, MRT_REFUSAL_VERB,
                 "no rule allows what he wants of the name \"%.*s\": %s", size, name->text, verb);
    return mrt_error(MORTISE_EPERMISSION,
                     "the policy of the agent has no rule as: allow user %u %s on %.*s",
                     peer->user->uid, verb, size, name->text);
}

bool mrt_peer_may(struct mrt_peer *peer, unsigned verbs, const struct mrt_resp_word *name,
                  struct mrt_reply *reply)
{
    if (mrt_peer_check(peer, verbs, name) == MORTISE_OK)
        return true;
    mrt_reply_error(reply, "NOPERM %s", mortise_error_detail());
    return false;
}

int mrt_desk_place_name(const struct mrt_peer *peer, struct mrt_resp_word *name,
                        char full[MRT_FULL_NAME_SIZE])
{
    const char *prefix = peer->agent->prefix;
    size_t length = strlen(prefix), space = strlen(peer->space);
    if (name->size < length || memcmp(name->text, prefix, length) != 0)
        return mrt_error(MORTISE_EPERMISSION,
                         "this agent serves the names that begin with \"%s\": give its namespace "
                         "in the URL",
                         prefix);
    if (name->size + space >= MRT_FULL_NAME_SIZE ||
        (space > 0 && name->size + space > length + MORTISE_NAME_MAX))
        return mrt_error(MORTISE_ENAME, "a name has at most %zu bytes", MORTISE_NAME_MAX - space);
    snprintf(full, MRT_FULL_NAME_SIZE, "%s%s", prefix, peer->space);
    memcpy(full + length + space, name->text + length, name->size - length);
    *name = (struct mrt_resp_word){full, name->size + space};
    return MORTISE_OK;
}

/* ---------------------------------------------------------------------- new tickets */

static bool is_of_kind(const struct mrt_frame_command *frame, const char *kind)
{
    return frame->kind.size == strlen(kind) &&
           memcmp(frame->kind.text, kind, frame->kind.size) == 0;
}

bool mrt_desk_reads(const struct mrt_frame_command *frame)
{
    return frame->command.weight == MRT_READER &&
           frame->command.capacity == mrt_read_write.capacity &&
           is_of_kind(frame, mrt_read_write.kind);
}

/* Whether the ticket is one of the recipes'. */
static bool is_of_recipe(const struct mrt_frame_command *frame)
{
    const struct mrt_recipe *const all[] = {&mrt_mutex, &mrt_semaphore_mutex, &mrt_exclusive,
                                            &mrt_read_write, &mrt_election};
    const struct mrt_command *command = &frame->command;
    if (is_of_kind(frame, mrt_semaphore(1).kind))
        return command->capacity <= UINT32_MAX && !command->claim;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (is_of_kind(frame, all[i]->kind))
            return command->capacity == all[i]->capacity && (all[i]->claim || !command->claim) &&
                   (command->weight == command->capacity || mrt_desk_reads(frame));
    return false;
}

static int permit_append(struct mrt_peer *peer, const struct mrt_resp_word *name,
                         const struct mrt_frame_command *frame)
{
    mrt_time hold = peer->user->limits->hold;
    unsigned verbs = frame->command.adopt    ? MRT_ACCESS_ADOPT
                     : mrt_desk_reads(frame) ? MRT_ACCESS_ACQUIRE | MRT_ACCESS_SHARED
                                             : MRT_ACCESS_ACQUIRE;
    if (!is_of_recipe(frame))
        return mrt_error(MORTISE_EINVALID, "no recipe of mortise has such a ticket");
    if (hold > 0 && frame->command.delay > hold)
        return mrt_error(
            MORTISE_EPERMISSION,
            "the policy of the agent lets a hold last %lld ms, and the delay is longer",
            (long long)(hold / MRT_MILLISECOND));
    return mrt_peer_check(peer, verbs, name);
}

/* --------------------------------------------------------------- tickets that are there */

/* An APPEND that is sent again is the same. It may be the first that is done. */
static int permit_again(struct mrt_peer *peer, const struct mrt_desk_ticket *ticket,
                        const struct mrt_resp_word *name, const struct mrt_frame_command *frame)
{
    const struct mrt_command *command = &frame->command;
    if (command->weight != ticket->weight || command->capacity != ticket->capacity ||
        command->claim != ticket->claim || mrt_desk_reads(frame) != ticket->reads)
        return mrt_error(MORTISE_EINVALID, "the ticket is another one");
    return permit_append(peer, name, frame);
}

static int permit_further(struct mrt_desk_session *session, const struct mrt_desk_ticket *ticket,
                          struct mrt_frame_command *frame)
{
    struct mrt_command *command = &frame->command;
    if (command->type == MRT_LIGHTEN && (command->weight == 0 || command->weight > ticket->weight))
        return mrt_error(MORTISE_EINVALID, "a weight becomes lower");
    if (command->type == MRT_DETACH) {
        mrt_user_log(session->agent, session->peer->user, session->peer->pid, MRT_REFUSAL_VERB,
                     "he cannot detach");
        return mrt_error(MORTISE_EPERMISSION,
                         "users of the agent's policy cannot detach: what belongs to nobody would "
                         "outlast their rights and limits");
    }
    command->fence = ticket->fence;
    command->claim = ticket->claim;
    return MORTISE_OK;
}

int mrt_desk_permit(struct mrt_desk_session *session, const struct mrt_desk_ticket *ticket,
                    struct mrt_frame_command *frame)
{
    struct mrt_peer *peer = session->peer;
    size_t before = strlen(peer->agent->prefix) + strlen(peer->space);
    const struct mrt_resp_word name = {frame->queue.text + before, frame->queue.size - before};
    switch (frame->command.type) {
    case MRT_CELL_GET:
    case MRT_CELL_SET:
        return mrt_peer_check(peer, MRT_ACCESS_CELLS, &name);
    case MRT_OBSERVE:
        return mrt_peer_check(peer, MRT_ACCESS_LIST, &name);
    case MRT_APPEND:
        return ticket ? permit_again(peer, ticket, &name, frame)
                      : permit_append(peer, &name, frame);
    default:
        return permit_further(session, ticket, frame);
    }
}
