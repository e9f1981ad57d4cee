/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows for mortise_list, as of one moment, each with its place by the grant rule. Rows of dead
 * sessions are left out, and those whose delay is over. All rows are copied before the first is
 * shown, because a callback may take its time and a reader holds the log back.
 *
 * A list buries no session. So a dead session's hold with a delay is shown as it will be when a
 * waiter finds the session dead: it belongs to nobody, with the whole delay still to come.
 */
#include "store/sqlite/operator.h"

#include "core/rule.h"
#include "store/sqlite/session.h"
#include "store/sqlite/ticket.h"

#include <stdlib.h>
#include <string.h>

struct row {
    TAILQ_ENTRY(row) link;
    struct mrt_id session, ticket;
    uint64_t number, weight, capacity;
    int64_t since;
    mrt_time until;                   /* it goes then; 0: not so */
    mrt_time delay;                   /* it stays for so long when its session has died */
    const char *queue, *kind, *label; /* in texts */
    char texts[];
};
TAILQ_HEAD(row_list, row);

/* One of the sessions that have been asked about. */
struct asked {
    TAILQ_ENTRY(asked) link;
    struct mrt_id session;
    bool dead;
};
TAILQ_HEAD(asked_list, asked);

static const char *copy_text(char **room, const unsigned char *text)
{
    const char *copy = *room;
    size_t size = strlen((const char *)text) + 1;
    memcpy(*room, text, size);
    *room += size;
    return copy;
}

/* Columns as MRT_SQLITE_LIST has them. NULL: no memory. */
static struct row *copy_row(sqlite3_stmt *statement)
{
    const unsigned char *queue = sqlite3_column_text(statement, 0);
    const unsigned char *kind = sqlite3_column_text(statement, 3);
    const unsigned char *label = sqlite3_column_text(statement, 6);
    if (!queue || !kind || !label)
        return NULL;
    size_t texts =
        strlen((const char *)queue) + strlen((const char *)kind) + strlen((const char *)label) + 3;
    struct row *row = malloc(sizeof *row + texts);
    if (!row)
        return NULL;
    char *room = row->texts;
    row->queue = copy_text(&room, queue);
    row->kind = copy_text(&room, kind);
    row->label = copy_text(&room, label);
    row->number = (uint64_t)sqlite3_column_int64(statement, 1);
    row->session = mrt_sqlite_column_id(statement, 2);
    row->capacity = (uint64_t)sqlite3_column_int64(statement, 4);
    row->weight = (uint64_t)sqlite3_column_int64(statement, 5);
    row->since = sqlite3_column_int64(statement, 7);
    row->until = sqlite3_column_int64(statement, 8);
    row->delay = sqlite3_column_int64(statement, 9);
    row->ticket = mrt_sqlite_column_id(statement, 10);
    return row;
}

/* Rows are sorted, and begin at the first that can be wanted: stop at the first that is not. */
static bool wanted(const char *queue, const char *name, const char *prefix)
{
    return name ? strcmp(queue, name) == 0 : strncmp(queue, prefix, strlen(prefix)) == 0;
}

static int read_rows(struct mrt_sqlite_store *store, const char *name, const char *prefix,
                     struct row_list *rows)
{
    struct mrt_sqlite_db *db = &store->db;
    sqlite3_stmt *statement = mrt_sqlite_statement(db, MRT_SQLITE_LIST);
    struct row *row = NULL;
    if (statement) {
        db->patience = mrt_time_add(mrt_time_now(), MRT_SQLITE_OPERATOR_PATIENCE);
        sqlite3_bind_text(statement, 1, name ? name : prefix, -1, SQLITE_STATIC);
        while (mrt_sqlite_step(db, statement) == SQLITE_ROW && (row = copy_row(statement)) &&
               wanted(row->queue, name, prefix)) {
            TAILQ_INSERT_TAIL(rows, row, link);
            row = NULL;
        }
        int last = db->last_error;
        sqlite3_reset(statement);
        db->last_error = last == SQLITE_ROW && !row ? SQLITE_NOMEM : last;
        free(row);
    }
    return mrt_sqlite_outcome(db) == MRT_DONE ? 0 : mrt_sqlite_operator_error(store);
}

/* Asks once for each session. */
static bool is_dead(struct mrt_sqlite_store *store, struct asked_list *asked, struct mrt_id session)
{
    struct asked *known;
    TAILQ_FOREACH (known, asked, link)
        if (mrt_id_equal(known->session, session))
            return known->dead;
    bool dead = mrt_sqlite_session_dead(store, session);
    known = malloc(sizeof *known);
    if (known) {
        known->session = session;
        known->dead = dead;
        TAILQ_INSERT_HEAD(asked, known, link);
    }
    return dead;
}

static void show(struct mrt_sqlite_store *store, struct row_list *rows,
                 mrt_listed_callback callback, void *argument)
{
    struct asked_list asked = TAILQ_HEAD_INITIALIZER(asked);
    mrt_time now = mrt_time_now();
    const char *queue = "";
    uint64_t ahead = 0;
    uint32_t waiting = 0;
    struct row *row;
    TAILQ_FOREACH (row, rows, link) {
        if (strcmp(queue, row->queue) != 0) {
            queue = row->queue;
            ahead = 0;
            waiting = 0;
        }
        bool granted = mrt_rule_grants(ahead, row->weight, row->capacity);
        bool dead = is_dead(store, &asked, row->session);
        if (dead && granted && row->delay > 0)
            row->until = mrt_time_add(now, row->delay);
        else if (dead || (row->until > 0 && row->until <= now))
            continue;
        ahead = mrt_sqlite_add_weight(ahead, row->weight);
        char claim[MRT_CLAIM_SIZE];
        mrt_claim_format(row->ticket, claim);
        const struct mrt_listed listed = {
            .entry = {.size = sizeof(mortise_entry),
                      .name = row->queue,
                      .kind = row->kind,
                      .label = row->label,
                      .fence = row->number << MRT_SQLITE_FENCE_BITS,
                      .place = granted ? 0 : ++waiting,
                      .since_wall_ms = row->since,
                      .weight = row->weight,
                      .capacity = row->capacity,
                      .detached = mrt_id_none(row->session) && row->until == 0,
                      .delay_ms = mrt_time_left_ms(row->until, now)},
            .claim = claim};
        if (callback(argument, &listed) != 0)
            break;
    }
    struct asked *known;
    while ((known = TAILQ_FIRST(&asked))) {
        TAILQ_REMOVE(&asked, known, link);
        free(known);
    }
}

int mrt_sqlite_list(struct mrt_sqlite_store *store, const char *name, const char *prefix,
                    mrt_listed_callback callback, void *argument)
{
    struct row_list rows = TAILQ_HEAD_INITIALIZER(rows);
    int error = read_rows(store, name, prefix ? prefix : "", &rows);
    if (!error)
        show(store, &rows, callback, argument);
    struct row *row;
    while ((row = TAILQ_FIRST(&rows))) {
        TAILQ_REMOVE(&rows, row, link);
        free(row);
    }
    return error;
}
