/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the rows of a list: rows.h says what each function promises. */
#include "cli/observe/rows.h"

#include "cli/frame/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mrt_rows_free(struct mrt_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->rows[i].name);
        free(rows->rows[i].kind);
        free(rows->rows[i].label);
        free(rows->rows[i].host);
        free(rows->rows[i].node);
    }
    free(rows->rows);
    *rows = (struct mrt_rows){.rows = NULL};
}

static bool make_room(struct mrt_rows *rows)
{
    if (rows->count < rows->room)
        return true;
    size_t room = rows->room ? rows->room * 2 : 64;
    struct mrt_row *more = reallocarray(rows->rows, room, sizeof *more);
    if (!more)
        return false;
    rows->rows = more;
    rows->room = room;
    return true;
}

static int add_row(void *argument, const mortise_entry *entry)
{
    struct mrt_rows *rows = argument;
    if (!make_room(rows)) {
        rows->failed = true;
        return 1;
    }
    struct mrt_row *row = &rows->rows[rows->count++];
    row->name = strdup(entry->name);
    row->kind = strdup(entry->kind);
    row->label = strdup(entry->label);
    row->host = strdup(entry->host);
    row->node = strdup(entry->node);
    row->pid = entry->pid;
    row->weight = entry->weight;
    row->capacity = entry->capacity;
    mrt_cli_describe_owner(entry, row->owner);
    row->fence = entry->fence;
    row->id = entry->id;
    row->place = entry->place;
    row->since_wall_ms = entry->since_wall_ms;
    row->detached = entry->detached;
    row->delay_ms = entry->delay_ms;
    rows->failed = !row->name || !row->kind || !row->label || !row->host || !row->node;
    return rows->failed;
}

int mrt_rows_read(mortise_client *client, const char *name, struct mrt_rows *rows)
{
    int error = mortise_list(client, name, add_row, rows);
    return rows->failed ? MORTISE_ENOMEM : error;
}

int mrt_rows_list(mortise_client *client, const char *name, struct mrt_rows *rows)
{
    int error = mrt_rows_read(client, name, rows);
    return error ? mrt_cli_fail_error(name, error) : 0;
}

int mrt_rows_collect(const struct mrt_cli *cli, const char *name, struct mrt_rows *rows)
{
    mortise_client *client;
    int code = mrt_cli_open(cli, MORTISE_FOREIGN_LOOP, &client);
    if (code)
        return code;
    code = mrt_rows_list(client, name, rows);
    mortise_close(client); /* nothing was held */
    return code;
}

void mrt_rows_describe_mode(const struct mrt_row *row, char mode[48])
{
    mrt_rows_describe_use(row, row->weight, mode);
}

void mrt_rows_describe_use(const struct mrt_row *row, uint64_t used, char mode[48])
{
    mode[0] = '\0';
    if (strcmp(row->kind, "read-write") == 0 && row->capacity > 0)
        snprintf(mode, 48, "%s", row->weight == row->capacity ? "write" : "read");
    else if (row->capacity > 1)
        snprintf(mode, 48, "%" PRIu64 "/%" PRIu64, used, row->capacity);
}

void mrt_rows_print_members(FILE *out, const struct mrt_row *row)
{
    fprintf(out,
            "\"place\": %" PRIu32 ", \"holder\": %s, " MRT_JSON_FENCE ", \"since\": ", row->place,
            row->place == 0 ? "true" : "false", row->fence, row->fence);
    mrt_json_time(out, row->since_wall_ms);
    fprintf(out, ", \"label\": ");
    mrt_json_string(out, row->label);
    fprintf(out, ", \"host\": ");
    mrt_json_string(out, row->host);
    fprintf(out,
            ", \"pid\": %" PRId64 ", \"weight\": %" PRIu64 ", \"capacity\": %" PRIu64
            ", \"detached\": %s, \"delay_ms\": %" PRId64 ", \"node\": ",
            row->pid, row->weight, row->capacity, row->detached ? "true" : "false", row->delay_ms);
    mrt_json_string(out, row->node);
}
