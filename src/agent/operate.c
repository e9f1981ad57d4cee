/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator calls of clients: LIST, REVOKE, BREAK, SERVER, which the worker makes.
 *
 * The store shows the agent as the owner of its clients' tickets. The rows of those are told with
 * the client's own owner, found by name and fence, because some stores keep no identity of a
 * ticket. Mutexes that are handed on here have rows of their own, and their revokes and breaks are
 * done here: mutex_list.c.
 *
 * A connection has one operation at a time. Rows are written as the client reads: a long list does
 * not fill the connection's output.
 *
 * A user of the policy sees the rows that he may list, and none of another user's space; he has a
 * few operations at a time, because the worker makes them one by one, and rows take memory until
 * they are read.
 */
#include "agent/mutex.h"
#include "agent/peer.h"
#include "agent/rights.h"
#include "agent/worker.h"
#include "base/error.h"

#include "store/agent/frame.h"

#include <stdlib.h>
#include <string.h>

#define OUTPUT_FULL (UINT64_C(128) << 10)
#define OPERATIONS_MAX 4 /* of a user who has limits */

/* An index of the desk's tickets, for one call. */
struct known {
    const struct mrt_desk_ticket *ticket;
    UT_hash_handle hh; /* by fence; several queues may have the same */
};

static void write_end(struct mrt_reply *output, int error, const char *text)
{
    mrt_reply_array(output, 3);
    mrt_frame_text(output, "END");
    mrt_frame_number(output, error);
    mrt_frame_text(output, text);
}

static void write_row(struct mrt_reply *output, const struct mrt_listed *row)
{
    bool has_id = row->entry.id > 0;
    mrt_reply_array(output, has_id ? 13 : 12);
    mrt_frame_text(output, "ROW");
    mrt_frame_text(output, row->entry.name);
    mrt_frame_text(output, row->entry.kind);
    mrt_frame_text(output, row->entry.label);
    const int64_t numbers[] = {(int64_t)row->entry.fence,  row->entry.place,
                               (int64_t)row->entry.weight, (int64_t)row->entry.capacity,
                               row->entry.detached,        row->entry.delay_ms,
                               row->entry.since_wall_ms};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        mrt_frame_number(output, numbers[i]);
    mrt_frame_text(output, row->claim);
    if (has_id)
        mrt_frame_number(output, (int64_t)row->entry.id);
}

/* The ticket of an entry; NULL: it is none of a client here. */
static struct known *find_known(struct known *all, const mortise_entry *entry)
{
    struct known *known;
    HASH_FIND(hh, all, &entry->fence, sizeof entry->fence, known);
    while (known && (known->ticket->fence != entry->fence ||
                     strcmp(known->ticket->queue, entry->name) != 0)) {
        UT_hash_handle *next = known->hh.hh_next; /* of the bucket */
        known = next ? (struct known *)((char *)next - offsetof(struct known, hh)) : NULL;
    }
    return known;
}

/* The rest of the delay that the client asked for; the clock of the agent may run fast. */
static int64_t left_ms(const struct mrt_desk_ticket *ticket, mrt_time now)
{
    return mrt_time_left_ms(mrt_time_min(ticket->timer.at, mrt_time_add(now, ticket->delay)), now);
}

static struct known *index_tickets(const struct mrt_desk *desk)
{
    const struct mrt_desk_ticket *ticket, *next;
    struct known *known = NULL, *each;
    HASH_ITER (hh, desk->tickets, ticket, next) {
        if (ticket->observes || ticket->mutex || ticket->fence == 0 ||
            !(each = calloc(1, sizeof *each)))
            continue;
        each->ticket = ticket;
        HASH_ADD_KEYPTR(hh, known, &ticket->fence, sizeof ticket->fence, each);
        if (!each->hh.tbl) {
            free(each);
            break; /* no memory: the other rows stay as the store shows them */
        }
    }
    return known;
}

/* Makes the rows of clients' tickets say so. */
static void name_owners(const struct mrt_desk *desk, struct mrt_operation *operation)
{
    struct mrt_row *row;
    struct known *known = index_tickets(desk), *each, *next_known;
    STAILQ_FOREACH(row, &operation->rows, link)
    {
        struct mrt_listed *listed = &row->listed;
        each = find_known(known, &listed->entry);
        if (!each)
            continue;
        row->is_known = true;
        if (each->ticket->session && (row->owner = strdup(each->ticket->session->owner)))
            listed->entry.label = row->owner;
        if (each->ticket->is_kept)
            listed->entry.delay_ms = left_ms(each->ticket, mrt_time_now());
    }
    HASH_ITER (hh, known, each, next_known) {
        HASH_DEL(known, each);
        free(each);
    }
}

/* Frees one that is answered, or that nobody waits for. */
static void end_operation(struct mrt_operation *operation)
{
    if (operation->user)
        operation->user->operations--;
    mrt_operation_free(operation);
}

/* Whether the user may list the row. His space is taken out of its name. */
static bool may_see(const struct mrt_peer *peer, struct mrt_row *row)
{
    const char *prefix = peer->agent->prefix;
    size_t length = strlen(prefix), space = strlen(peer->space);
    char *name = row->texts;
    const char *own = name + length + space;
    if (strncmp(name, prefix, length) != 0 || strncmp(name + length, peer->space, space) != 0 ||
        !mrt_access_allows(peer->agent->access, &peer->rules, MRT_ACCESS_LIST, own, strlen(own)))
        return false;
    memmove(name + length, own, strlen(own) + 1);
    row->listed.claim = "";
    return true;
}

static void keep_permitted(const struct mrt_peer *peer, struct mrt_operation *operation)
{
    struct mrt_rows all = STAILQ_HEAD_INITIALIZER(all);
    struct mrt_row *row;
    STAILQ_CONCAT(&all, &operation->rows);
    while ((row = STAILQ_FIRST(&all))) {
        STAILQ_REMOVE_HEAD(&all, link);
        if (may_see(peer, row))
            STAILQ_INSERT_TAIL(&operation->rows, row, link);
        else
            mrt_row_free(row);
    }
}

void mrt_desk_write_rows(struct mrt_peer *peer)
{
    struct mrt_operation *operation = peer->operation;
    struct mrt_row *row;
    if (!operation || !operation->is_done)
        return;
    while (peer->output.size < OUTPUT_FULL && (row = STAILQ_FIRST(&operation->rows))) {
        STAILQ_REMOVE_HEAD(&operation->rows, link);
        write_row(&peer->output, &row->listed);
        mrt_row_free(row);
    }
    if (!STAILQ_EMPTY(&operation->rows))
        return;
    write_end(&peer->output, operation->error, operation->text);
    peer->operation = NULL;
    end_operation(operation);
}

void mrt_desk_operated(struct mrt_agent *agent)
{
    struct mrt_operation *operation;
    while ((operation = mrt_worker_next(&agent->worker))) {
        struct mrt_peer *peer = operation->peer;
        operation->is_done = true;
        if (operation->kind == MRT_OPERATION_POLICY)
            mrt_policy_take(agent, operation);
        if (!peer) {
            end_operation(operation);
            continue;
        }
        if (operation->kind == MRT_OPERATION_LIST && operation->error == MORTISE_OK) {
            name_owners(&agent->desk, operation);
            mrt_desk_mutex_list(agent, operation);
        }
        if (operation->user)
            keep_permitted(peer, operation);
        mrt_desk_write_rows(peer);
        mrt_peer_has_output(peer);
    }
}

/* Any fence, also one that no store gives. */
static bool read_fence(const struct mrt_resp_word *word, uint64_t *fence)
{
    *fence = 0;
    for (size_t i = 0; i < word->size; i++) {
        unsigned digit = (unsigned)(word->text[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(*fence, 10, fence) ||
            __builtin_add_overflow(*fence, digit, fence))
            return false;
    }
    return word->size > 0;
}

/* Whether the policy lets the user do this. The name then has his space. 0, or an error with
   particulars. */
static int permit(struct mrt_peer *peer, enum mrt_operation_kind kind, struct mrt_resp_word *name,
                  char full[MRT_FULL_NAME_SIZE])
{
    const struct mrt_resp_word given = *name;
    size_t length = strlen(peer->agent->prefix);
    int error = MORTISE_OK;
    if (peer->user->operations >= OPERATIONS_MAX)
        return mrt_error(MORTISE_EFULL, "user %u has %d lists and the like under way",
                         peer->user->uid, OPERATIONS_MAX);
    if (kind != MRT_OPERATION_SERVER)
        error = mrt_desk_place_name(peer, name, full);
    if (error != MORTISE_OK || (kind != MRT_OPERATION_REVOKE && kind != MRT_OPERATION_BREAK))
        return error;
    const struct mrt_resp_word own = {given.text + length, given.size - length};
    return mrt_peer_check(peer, kind == MRT_OPERATION_REVOKE ? MRT_ACCESS_REVOKE : MRT_ACCESS_BREAK,
                          &own);
}

/* The operation that these words ask for; NULL: an error, whose particulars may be noted. */
static struct mrt_operation *read_operation(struct mrt_peer *peer,
                                            const struct mrt_resp_command *words,
                                            enum mrt_operation_kind kind, int *error)
{
    bool is_list = kind == MRT_OPERATION_LIST;
    char full[MRT_FULL_NAME_SIZE];
    struct mrt_resp_word given = words->words[is_list ? 2 : 1], *name = &given;
    uint64_t fence = 0;
    *error = MORTISE_EINVALID;
    if (words->count != 3 || memchr(name->text, '\0', name->size) ||
        ((kind == MRT_OPERATION_REVOKE || kind == MRT_OPERATION_BREAK) &&
         !read_fence(&words->words[2], &fence))) {
        mrt_error(*error, "the agent cannot do this");
        return NULL;
    }
    *error = peer->user->limits ? permit(peer, kind, name, full) : MORTISE_OK;
    if (*error != MORTISE_OK)
        return NULL;
    struct mrt_operation *operation = calloc(1, sizeof *operation + name->size + 1);
    *error = MORTISE_ENOMEM;
    if (!operation)
        return NULL;
    operation->kind = kind;
    operation->by_prefix = is_list && mrt_resp_is(&words->words[1], "PREFIX");
    operation->fence = fence;
    STAILQ_INIT(&operation->rows);
    memcpy(operation->name, name->text, name->size);
    return operation;
}

bool mrt_desk_operate(struct mrt_peer *peer, const struct mrt_resp_command *words)
{
    static const char *const verbs[] = {"LIST", "REVOKE", "BREAK", "SERVER"};
    size_t kind = 0, count = sizeof verbs / sizeof verbs[0];
    while (kind < count && !mrt_resp_is(&words->words[0], verbs[kind]))
        kind++;
    if (kind == count)
        return false;
    int error = MORTISE_EINVALID;
    mrt_error_clear();
    if (peer->operation)
        mrt_error(error, "a connection does one of these at a time");
    struct mrt_operation *operation =
        peer->operation ? NULL : read_operation(peer, words, (enum mrt_operation_kind)kind, &error);
    if (!operation) {
        write_end(&peer->output, error, mortise_error_detail());
        return true;
    }
    if (mrt_desk_mutex_operate(peer->agent, operation)) {
        write_end(&peer->output, operation->error, "");
        mrt_operation_free(operation);
        return true;
    }
    operation->peer = peer;
    operation->user = peer->user->limits ? peer->user : NULL;
    if (operation->user)
        operation->user->operations++;
    peer->operation = operation;
    mrt_worker_begin(&peer->agent->worker, operation);
    return true;
}

void mrt_desk_forget_operation(struct mrt_peer *peer)
{
    struct mrt_operation *operation = peer->operation;
    peer->operation = NULL;
    if (operation && operation->is_done)
        end_operation(operation);
    else if (operation)
        operation->peer = NULL;
}
