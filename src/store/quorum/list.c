/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_list on a quorum: all members are asked at the same time, each but the last on a thread
 * of its own, so a member that is away costs its own time-out and no other. A claim that a majority
 * shows as held is shown as held. Any other claim is shown as waiting: a claimant's, a holder's
 * whose other members did not answer, and what a member still has of a claim that was given up
 * elsewhere.
 *
 * Rows that do not tell whose they are (those of the forms) count as one claim's.
 */
#include "store/quorum/list.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/thread.h"
#include "store/quorum/internal.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

struct row {
    STAILQ_ENTRY(row) link;
    struct mrt_listed listed; /* its texts are below */
    unsigned member;          /* a bit */
    char texts[];
};
STAILQ_HEAD(rows, row);

struct question {
    const struct mrt_quorum_member *member;
    const char *name, *prefix;
    sem_t *done;
    struct rows rows;
    size_t count;
    int error;
    char detail[MRT_ERROR_DETAIL_MAX];
};

/* ------------------------------------------------------------------ asking */

static const char *copy(char **room, const char *text)
{
    const char *copied = *room;
    *room = stpcpy(*room, text) + 1;
    return copied;
}

static int keep(void *argument, const struct mrt_listed *listed)
{
    struct question *question = argument;
    const mortise_entry *entry = &listed->entry;
    struct row *row = malloc(sizeof *row + strlen(entry->name) + strlen(entry->kind) +
                             strlen(entry->label) + strlen(listed->claim) + 4);
    if (!row) {
        question->error = MORTISE_ENOMEM;
        return 1;
    }
    char *room = row->texts;
    row->listed = *listed;
    row->listed.entry.name = copy(&room, entry->name);
    row->listed.entry.kind = copy(&room, entry->kind);
    row->listed.entry.label = copy(&room, entry->label);
    row->listed.entry.node = NULL;
    row->listed.entry.fence = 0; /* each member's is another */
    row->listed.claim = copy(&room, listed->claim);
    row->member = 1U << question->member->index;
    STAILQ_INSERT_TAIL(&question->rows, row, link);
    question->count++;
    return 0;
}

static void *query(void *argument)
{
    struct question *question = argument;
    const struct mrt_quorum_member *member = question->member;
    mrt_error_clear();
    int error = member->ops->list ? member->ops->list(member->store, question->name,
                                                      question->prefix, keep, question)
                                  : MORTISE_ENOTSUPPORTED;
    question->error = question->error ? question->error : error;
    mrt_error_copy_detail(question->detail);
    sem_post(question->done);
    return NULL;
}

static void query_all(const struct mrt_quorum_store *store, const char *name, const char *prefix,
                      struct question questions[])
{
    sem_t done;
    sem_init(&done, 0, 0);
    for (unsigned i = 0; i < store->count; i++) {
        struct question *question = &questions[i];
        question->member = &store->members[i];
        question->name = name;
        question->prefix = prefix;
        question->done = &done;
        STAILQ_INIT(&question->rows);
        if (i + 1 == store->count || !mrt_thread_begin(query, question))
            query(question);
    }
    for (unsigned i = 0; i < store->count;)
        i += sem_wait(&done) == 0;
    sem_destroy(&done);
}

/* ------------------------------------------------------------------ putting together */

static int compare_claims(const struct row *a, const struct row *b)
{
    int order = strcmp(a->listed.entry.name, b->listed.entry.name);
    return order ? order : strcmp(a->listed.claim, b->listed.claim);
}

/* Sorts the rows of one claim together, the row with most details first. */
static int by_claim(const void *left, const void *right)
{
    const struct row *a = *(struct row *const *)left, *b = *(struct row *const *)right;
    int order = compare_claims(a, b);
    return order ? order : (*b->listed.entry.label != '\0') - (*a->listed.entry.label != '\0');
}

static int by_place(const void *left, const void *right)
{
    const struct row *a = *(struct row *const *)left, *b = *(struct row *const *)right;
    uint32_t one = a->listed.entry.place, other = b->listed.entry.place;
    int order = strcmp(a->listed.entry.name, b->listed.entry.name);
    order = order ? order : (one > other) - (one < other);
    return order ? order : compare_claims(a, b);
}

/* Leaves one row of each claim, with the place 0 if a majority shows it as held; how many. */
static size_t unite(const struct mrt_quorum_store *store, struct row *rows[], size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count;) {
        struct row *first = rows[i];
        unsigned held = 0;
        for (; i < count && compare_claims(rows[i], first) == 0; i++)
            held |= rows[i]->listed.entry.place == 0 ? rows[i]->member : 0;
        if ((unsigned)__builtin_popcount(held) >= store->majority)
            first->listed.entry.place = 0;
        else
            first->listed.entry.place++;
        rows[left++] = first;
    }
    return left;
}

static void show(struct row *rows[], size_t count, mrt_listed_callback callback, void *argument)
{
    uint32_t waiting = 0;
    for (size_t i = 0; i < count; i++) {
        mortise_entry *entry = &rows[i]->listed.entry;
        if (i == 0 || strcmp(rows[i - 1]->listed.entry.name, entry->name) != 0)
            waiting = 0;
        if (entry->place > 0)
            entry->place = ++waiting;
        if (callback(argument, &rows[i]->listed) != 0)
            return;
    }
}

static int show_all(const struct mrt_quorum_store *store, struct question questions[],
                    mrt_listed_callback callback, void *argument)
{
    size_t count = 0;
    struct row *row;
    for (unsigned i = 0; i < store->count; i++)
        count += questions[i].error ? 0 : questions[i].count;
    struct row **rows = malloc((count + 1) * sizeof(struct row *));
    if (!rows)
        return MORTISE_ENOMEM;
    count = 0;
    for (unsigned i = 0; i < store->count; i++)
        if (!questions[i].error)
            for (row = STAILQ_FIRST(&questions[i].rows); row; row = STAILQ_NEXT(row, link))
                rows[count++] = row;
    qsort(rows, count, sizeof(struct row *), by_claim);
    count = unite(store, rows, count);
    qsort(rows, count, sizeof(struct row *), by_place);
    show(rows, count, callback, argument);
    free(rows);
    return MORTISE_OK;
}

int mrt_quorum_list(struct mrt_store *port, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument)
{
    const struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    struct question questions[MRT_QUORUM_MEMBERS_MAX] = {0};
    const struct question *refused = NULL;
    unsigned answered = 0;
    query_all(store, name, prefix, questions);
    for (unsigned i = 0; i < store->count; i++) {
        answered += questions[i].error == MORTISE_OK;
        refused = questions[i].error ? &questions[i] : refused;
    }
    int error = refused && answered < store->majority
                    ? mrt_error(refused->error, "%s", refused->detail)
                    : show_all(store, questions, callback, argument);
    for (unsigned i = 0; i < store->count; i++) {
        struct row *row;
        while ((row = STAILQ_FIRST(&questions[i].rows))) {
            STAILQ_REMOVE_HEAD(&questions[i].rows, link);
            free(row);
        }
    }
    return error;
}
