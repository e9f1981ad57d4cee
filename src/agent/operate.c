/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator calls of clients: LIST, REVOKE, BREAK, SERVER, which the worker makes.
 *
 * The store shows the agent as the owner of its clients' tickets. The rows of those are told with
 * the client's own owner, found by name and fence, because some stores keep no identity of a
 * ticket.
 *
 * A connection has one operation at a time. Rows are written as the client reads: a long list does
 * not fill the connection's output.
 */
#include "agent/peer.h"
#include "agent/worker.h"

#include "store/agent/frame.h"

#include <stdlib.h>
#include <string.h>

#define OUTPUT_FULL (UINT64_C(128) << 10)

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
    mrt_reply_array(output, 12);
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

/* Makes the rows of clients' tickets say so. */
static void name_owners(const struct mrt_desk *desk, struct mrt_operation *operation)
{
    struct mrt_row *row;
    struct mrt_desk_ticket *ticket, *next;
    struct known *known = NULL, *each, *next_known;
    HASH_ITER (hh, desk->tickets, ticket, next) {
        if (ticket->observes || ticket->fence == 0 || !(each = calloc(1, sizeof *each)))
            continue;
        each->ticket = ticket;
        HASH_ADD_KEYPTR(hh, known, &ticket->fence, sizeof ticket->fence, each);
        if (!each->hh.tbl) {
            free(each);
            break; /* no memory: the other rows stay as the store shows them */
        }
    }
    STAILQ_FOREACH(row, &operation->rows, link)
    {
        struct mrt_listed *listed = &row->listed;
        each = find_known(known, &listed->entry);
        if (!each)
            continue;
        if (each->ticket->session && (row->owner = strdup(each->ticket->session->owner)))
            listed->entry.label = row->owner;
        if (each->ticket->is_kept)
            listed->entry.delay_ms = mrt_time_left_ms(each->ticket->timer.at, mrt_time_now());
    }
    HASH_ITER (hh, known, each, next_known) {
        HASH_DEL(known, each);
        free(each);
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
    mrt_operation_free(operation);
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
            mrt_operation_free(operation);
            continue;
        }
        name_owners(&agent->desk, operation);
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

/* The operation that these words ask for; NULL: no memory, or they are wrong. */
static struct mrt_operation *read_operation(const struct mrt_resp_command *words,
                                            enum mrt_operation_kind kind)
{
    bool is_list = kind == MRT_OPERATION_LIST;
    const struct mrt_resp_word *name = &words->words[is_list ? 2 : 1];
    uint64_t fence = 0;
    if (words->count != 3 || memchr(name->text, '\0', name->size) ||
        ((kind == MRT_OPERATION_REVOKE || kind == MRT_OPERATION_BREAK) &&
         !read_fence(&words->words[2], &fence)))
        return NULL;
    struct mrt_operation *operation = calloc(1, sizeof *operation + name->size + 1);
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
    struct mrt_operation *operation =
        peer->operation ? NULL : read_operation(words, (enum mrt_operation_kind)kind);
    if (!operation) {
        write_end(&peer->output, MORTISE_EINVALID, "the agent cannot do this now");
        return true;
    }
    operation->peer = peer;
    peer->operation = operation;
    mrt_worker_begin(&peer->agent->worker, operation);
    return true;
}

void mrt_desk_forget_operation(struct mrt_peer *peer)
{
    struct mrt_operation *operation = peer->operation;
    peer->operation = NULL;
    if (operation && operation->is_done)
        mrt_operation_free(operation);
    else if (operation)
        operation->peer = NULL;
}
