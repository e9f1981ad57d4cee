/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_list, mortise_revoke and mortise_break. A list reads message by message, first the
 * tickets, then their changes, then their sessions, so its rows are not of one instant; tickets of
 * dead sessions are left out. A request to give a lock up is a number in the ticket's change.
 */
#include "store/nats/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REVOKE_TRIES 10

/* ------------------------------------------------------------------ reading */

/* A ticket that was read. */
struct row {
    char *subject; /* behind "q.": the token of its queue, and its name */
    struct mrt_nats_entry entry;
};

struct rows {
    struct row *all;
    size_t count, room, size;
};

static void free_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->all[i].subject);
        free(rows->all[i].entry.value);
    }
    free(rows->all);
    *rows = (struct rows){.all = NULL};
}

/* Gives an entry what a message has, whose bytes it takes. */
static void fill_entry(struct mrt_nats_entry *entry, struct mrt_nats_message *message)
{
    struct mrt_nats_ticket ticket;
    if (!mrt_nats_ticket_parse(message->bytes, message->size, &ticket))
        return;
    entry->ours = true;
    entry->ticket = ticket;
    free(entry->value);
    entry->value_size = message->size - ticket.value_offset;
    memmove(message->bytes, message->bytes + ticket.value_offset, entry->value_size);
    entry->value = message->bytes;
    message->bytes = NULL;
}

static bool add_row(struct rows *rows, struct mrt_nats_message *message, size_t skipped)
{
    if (rows->count == rows->room) {
        size_t room = 2 * rows->room + 64;
        struct row *all = realloc(rows->all, room * sizeof *all);
        if (!all)
            return false;
        rows->all = all;
        rows->room = room;
    }
    struct row *row = &rows->all[rows->count];
    *row = (struct row){.subject = strdup(message->subject + skipped)};
    const char *dot = row->subject ? strrchr(row->subject, '.') : NULL;
    if (!dot) {
        free(row->subject);
        return false;
    }
    row->entry.sequence = message->sequence;
    snprintf(row->entry.name, sizeof row->entry.name, "%s", dot + 1);
    rows->size += sizeof *row + strlen(row->subject) + message->size;
    fill_entry(&row->entry, message);
    rows->count++;
    return true;
}

static int compare_subjects(const void *one, const void *other)
{
    return strcmp(((const struct row *)one)->subject, ((const struct row *)other)->subject);
}

/* A change of a ticket that is among the rows. */
static void take_change(const struct rows *rows, struct mrt_nats_message *message, size_t skipped)
{
    const struct row key = {.subject = message->subject + skipped};
    struct row *row = bsearch(&key, rows->all, rows->count, sizeof rows->all[0], compare_subjects);
    if (!row)
        return;
    row->entry.attribute = message->sequence;
    fill_entry(&row->entry, message);
}

/* All messages of one kind, of one queue or of all. */
static int read_all(struct mrt_nats_operation *operation, char letter, const char *token,
                    struct rows *rows)
{
    char filter[MRT_NATS_SUBJECT_SIZE];
    struct mrt_nats_message message;
    bool for_good;
    mrt_nats_subject(operation->address, letter, token ? token : "*", "*", filter);
    size_t skipped = strlen(operation->address->base) + 3;
    for (uint64_t cursor = 1;;) {
        int error = mrt_nats_read_next(operation, cursor, filter, &message);
        if (error || !message.bytes)
            return error;
        cursor = message.sequence + 1;
        bool fine = strlen(message.subject) > skipped;
        if (fine && letter == 'a')
            take_change(rows, &message, skipped);
        else if (fine && !mrt_nats_is_gone(&message, &for_good))
            fine = add_row(rows, &message, skipped);
        mrt_nats_message_free(&message);
        if (!fine)
            return mrt_error(MORTISE_ENOMEM, "NATS: no memory for a list");
        if (rows->size > MRT_NATS_READ_MAX)
            return mrt_error(MORTISE_ESTORE, "NATS: a list of more than %d MiB",
                             MRT_NATS_READ_MAX >> 20);
    }
}

/* Whether a ticket's session is dead. One that cannot be read is not. */
static bool is_dead(struct mrt_nats_operation *operation, const struct mrt_nats_ticket *ticket)
{
    struct mrt_nats_grave grave = {.wire = &operation->wire,
                                   .lease = ticket->lease,
                                   .session = ticket->session,
                                   .looks = true};
    return !mrt_id_none(ticket->session) && mrt_nats_judge(operation, &grave);
}

static int compare_sessions(const void *one, const void *other)
{
    const struct mrt_id a = ((const struct row *)one)->entry.ticket.session;
    const struct mrt_id b = ((const struct row *)other)->entry.ticket.session;
    return a.high != b.high ? (a.high < b.high ? -1 : 1)
           : a.low != b.low ? (a.low < b.low ? -1 : 1)
                            : 0;
}

/* Marks tickets of dead sessions. */
static void mark_dead(struct mrt_nats_operation *operation, const struct rows *rows)
{
    qsort(rows->all, rows->count, sizeof rows->all[0], compare_sessions);
    for (size_t i = 0; i < rows->count; i++) {
        struct mrt_nats_entry *entry = &rows->all[i].entry;
        if (i > 0 && compare_sessions(&rows->all[i - 1], &rows->all[i]) == 0)
            entry->doomed = rows->all[i - 1].entry.doomed;
        else
            entry->doomed = entry->ours && is_dead(operation, &entry->ticket);
    }
}

static size_t token_length(const struct row *row)
{
    return (size_t)(strrchr(row->subject, '.') - row->subject);
}

/* By queue, and then in the order of the queue. */
static int compare_places(const void *one, const void *other)
{
    const struct row *a = one, *b = other;
    size_t length = token_length(a), others = token_length(b);
    int order = strncmp(a->subject, b->subject, length < others ? length : others);
    if (order != 0 || length != others)
        return order != 0 ? order : length < others ? -1 : 1;
    return a->entry.sequence < b->entry.sequence ? -1 : a->entry.sequence > b->entry.sequence;
}

/* The tickets of a queue, or of all. */
static int read_rows(struct mrt_nats_operation *operation, const char *token, struct rows *rows)
{
    int error = read_all(operation, 'q', token, rows);
    if (error || rows->count == 0)
        return error;
    qsort(rows->all, rows->count, sizeof rows->all[0], compare_subjects);
    error = read_all(operation, 'a', token, rows);
    if (error)
        return error;
    mark_dead(operation, rows);
    qsort(rows->all, rows->count, sizeof rows->all[0], compare_places);
    return MORTISE_OK;
}

/* The rows from `first` that are of one queue, as a walk has them; their number. The walk's entries
   are the rows' own, and the caller frees the array alone. */
static size_t take_queue(const struct rows *rows, size_t first, struct mrt_nats_walk *walk)
{
    size_t end = first, length = token_length(&rows->all[first]);
    *walk = (struct mrt_nats_walk){.entries = calloc(rows->count - first, sizeof walk->entries[0])};
    for (; end < rows->count && token_length(&rows->all[end]) == length &&
           strncmp(rows->all[end].subject, rows->all[first].subject, length) == 0;
         end++)
        if (walk->entries && !rows->all[end].entry.doomed)
            walk->entries[walk->count++] = rows->all[end].entry;
    return end - first;
}

/* ------------------------------------------------------------------ showing */

static bool show_entry(const char *queue, const struct mrt_nats_entry *entry,
                       const struct mrt_nats_ticket *kind, uint32_t place,
                       mrt_listed_callback callback, void *argument)
{
    char claim[MRT_CLAIM_SIZE] = "";
    if (entry->ours)
        mrt_claim_format(entry->ticket.id, claim);
    const struct mrt_listed listed = {
        .entry = {.size = sizeof(mortise_entry),
                  .name = queue,
                  .kind = entry->ours ? entry->ticket.kind : kind->kind,
                  .label = entry->ours ? entry->ticket.label : "",
                  .fence = mrt_nats_fence(entry->sequence),
                  .place = place,
                  .since_wall_ms = entry->ticket.since,
                  .weight = mrt_nats_weight(entry, kind->capacity),
                  .capacity = kind->capacity,
                  .detached = entry->ours && mrt_id_none(entry->ticket.session)},
        .claim = claim};
    return callback(argument, &listed) == 0;
}

static bool show_queue(const char *queue, const struct mrt_nats_walk *walk,
                       mrt_listed_callback callback, void *argument)
{
    static const struct mrt_nats_ticket mutex = {.kind = "mutex", .capacity = 1};
    const struct mrt_nats_ticket *kind = mrt_nats_walk_kind(walk);
    uint32_t waiting = 0;
    kind = kind ? kind : &mutex;
    for (size_t i = 0; i < walk->count; i++) {
        const struct mrt_nats_entry *entry = &walk->entries[i];
        bool holds = waiting == 0 && mrt_nats_holds(walk, entry, kind->capacity);
        if (!show_entry(queue, entry, kind, holds ? 0 : ++waiting, callback, argument))
            return false;
    }
    return true;
}

static int open_operation(struct mrt_nats_operation *operation, struct mrt_store *port)
{
    const struct mrt_nats_store *store = (const struct mrt_nats_store *)port;
    return mrt_nats_operation_open(operation, &store->address, store->secret, store->timeout);
}

static void show_rows(const struct rows *rows, const char *prefix, mrt_listed_callback callback,
                      void *argument)
{
    bool go_on = true;
    for (size_t i = 0, count; i < rows->count && go_on; i += count) {
        char queue[MRT_FULL_NAME_SIZE];
        struct mrt_nats_walk walk;
        const struct row *row = &rows->all[i];
        count = take_queue(rows, i, &walk);
        if (mrt_nats_token_read(row->subject, token_length(row), queue, sizeof queue) &&
            strncmp(queue, prefix, strlen(prefix)) == 0)
            go_on = show_queue(queue, &walk, callback, argument);
        free(walk.entries);
    }
}

int mrt_nats_list(struct mrt_store *port, const char *name, const char *prefix,
                  mrt_listed_callback callback, void *argument)
{
    struct mrt_nats_operation operation;
    struct rows rows = {.all = NULL};
    char token[MRT_NATS_TOKEN_SIZE];
    int error = open_operation(&operation, port);
    mrt_nats_token(name ? name : "", name ? strlen(name) : 0, token, sizeof token);
    if (error == MORTISE_OK)
        error = read_rows(&operation, name ? token : NULL, &rows);
    if (error && operation.code == MRT_NATS_NO_STREAM)
        error = MORTISE_OK; /* nobody has used it yet */
    mrt_nats_operation_close(&operation);
    if (error == MORTISE_OK)
        show_rows(&rows, !name && prefix ? prefix : "", callback, argument);
    free_rows(&rows);
    return error;
}

/* ------------------------------------------------------------ revoke, break */

/* Publishes on condition; `done` says whether it was done. */
static int commit(struct mrt_nats_operation *operation, const char *subject, uint64_t expected,
                  const void *bytes, size_t size, bool *done)
{
    int error = mrt_nats_ask(operation, subject, (int64_t)expected, bytes, size);
    *done = error == MORTISE_OK;
    if (error && operation->code == MRT_NATS_WRONG_SEQUENCE)
        return MORTISE_OK;
    if (error && operation->unknown)
        return mrt_error(MORTISE_EUNKNOWN, "NATS: no answer from %s: it may have been done",
                         operation->address->servers.shown);
    return error;
}

/* Deletes what is left of a ticket. */
static void clean_up(struct mrt_nats_operation *operation, const char *token, const char *name,
                     uint64_t gone)
{
    char subject[MRT_NATS_SUBJECT_SIZE];
    struct mrt_nats_message message;
    const char *stream = operation->address->tickets;
    mrt_nats_delete(&operation->wire, stream, gone);
    mrt_nats_subject(operation->address, 'a', token, name, subject);
    bool begun = mrt_nats_get_last(&operation->wire, stream, subject, mrt_nats_operation_answered,
                                   operation);
    if (mrt_nats_take_message(operation, mrt_nats_operation_wait(operation, begun), &message) ==
            MORTISE_OK &&
        message.bytes)
        mrt_nats_delete(&operation->wire, stream, message.sequence);
    mrt_nats_message_free(&message);
}

int mrt_nats_break(struct mrt_store *port, const char *name, uint64_t fence)
{
    struct mrt_nats_operation operation;
    struct mrt_nats_message message = {.subject = NULL};
    char token[MRT_NATS_TOKEN_SIZE], filter[MRT_NATS_SUBJECT_SIZE];
    uint64_t sequence = fence >> MRT_NATS_FENCE_BITS;
    bool done = false, for_good;
    mrt_nats_token(name, strlen(name), token, sizeof token);
    int error = open_operation(&operation, port);
    mrt_nats_subject(operation.address, 'q', token, "*", filter);
    if (error == MORTISE_OK)
        error = mrt_nats_read_next(&operation, sequence, filter, &message);
    if (error == MORTISE_OK && message.bytes && message.sequence == sequence &&
        fence == mrt_nats_fence(sequence) && !mrt_nats_is_gone(&message, &for_good))
        error = commit(&operation, message.subject, sequence, MRT_NATS_GONE,
                       sizeof MRT_NATS_GONE - 1, &done);
    if (done) {
        mrt_nats_wake(&operation.wire, token, '-', sequence);
        clean_up(&operation, token, strrchr(message.subject, '.') + 1, operation.sequence);
    }
    mrt_nats_message_free(&message);
    mrt_nats_operation_close(&operation);
    return error == MORTISE_OK && !done ? MORTISE_ENOTHELD : error;
}

/* Raises the number of a holder's request; `done` false: it has changed meanwhile. */
static int revoke_one(struct mrt_nats_operation *operation, const char *token,
                      const struct mrt_nats_entry *entry, bool *done)
{
    char subject[MRT_NATS_SUBJECT_SIZE], *bytes = malloc(MRT_NATS_LINE_SIZE + entry->value_size);
    struct mrt_nats_ticket ticket = entry->ticket;
    if (!bytes)
        return MORTISE_ENOMEM;
    ticket.revoked++;
    size_t size = mrt_nats_ticket_format(&ticket, bytes);
    memcpy(bytes + size, entry->value, entry->value_size);
    mrt_nats_subject(operation->address, 'a', token, entry->name, subject);
    int error = commit(operation, subject, entry->attribute, bytes, size + entry->value_size, done);
    if (*done)
        mrt_nats_wake(&operation->wire, token, '*', entry->sequence);
    free(bytes);
    return error;
}

/* All holders, or that of this fence. `again`: one had changed meanwhile. */
static int revoke_all(struct mrt_nats_operation *operation, const char *token,
                      const struct mrt_nats_walk *walk, uint64_t fence, bool *any, bool *again)
{
    const struct mrt_nats_ticket *kind = mrt_nats_walk_kind(walk);
    for (size_t i = 0; i < walk->count; i++) {
        const struct mrt_nats_entry *entry = &walk->entries[i];
        bool done = false;
        if (!mrt_nats_holds(walk, entry, kind ? kind->capacity : 1))
            break;
        if (!entry->ours || (fence > 0 && mrt_nats_fence(entry->sequence) != fence))
            continue;
        int error = revoke_one(operation, token, entry, &done);
        if (error)
            return error;
        *any |= done;
        *again |= !done;
    }
    return MORTISE_OK;
}

int mrt_nats_revoke(struct mrt_store *port, const char *name, uint64_t fence)
{
    struct mrt_nats_operation operation;
    char token[MRT_NATS_TOKEN_SIZE];
    bool any = false, again = true;
    mrt_nats_token(name, strlen(name), token, sizeof token);
    int error = open_operation(&operation, port);
    for (int i = 0; error == MORTISE_OK && again && i < REVOKE_TRIES; i++) {
        struct rows rows = {.all = NULL};
        struct mrt_nats_walk walk = {.entries = NULL};
        again = false;
        error = read_rows(&operation, token, &rows);
        if (error == MORTISE_OK && rows.count > 0)
            take_queue(&rows, 0, &walk);
        if (error == MORTISE_OK)
            error = revoke_all(&operation, token, &walk, fence, &any, &again);
        free(walk.entries);
        free_rows(&rows);
    }
    mrt_nats_operation_close(&operation);
    return error == MORTISE_OK && !any ? MORTISE_ENOTHELD : error;
}
