/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes of the store beside locks: cells, lists, the operator's calls.
 * Each is a job, because it waits for the store's answer.
 */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

/* f(client, name, ...): a job with the name, and the arguments behind it. */
static struct job *begin(napi_env env, napi_callback_info info, size_t count, job_work run,
                         job_done done, struct argument *arguments)
{
    struct client *client;
    if (!read_arguments(env, info, count, arguments) ||
        !read_client(env, arguments->values[0], &client))
        return NULL;
    struct job *job = make_job(client, run, done);
    if (!job) {
        throw_error(env, MORTISE_ENOMEM, "");
        return NULL;
    }
    if (read_text(env, arguments->values[1], &job->text))
        return job;
    free_job(job);
    return NULL;
}

/* ------------------------------------------------------------------- cells */

static int run_get(struct job *job)
{
    job->result = malloc(sizeof(mortise_cell));
    return job->result ? mortise_cell_get(job->library, job->text, job->result) : MORTISE_ENOMEM;
}

static napi_value made_cell(napi_env env, struct job *job)
{
    const mortise_cell *cell = job->result;
    napi_value object = NULL, value = NULL;
    if (!good(env, napi_create_object(env, &object)))
        return NULL;
    set_property(env, object, "version", make_bigint(env, cell->version));
    set_property(env, object, "fence", make_bigint(env, cell->fence));
    good(env, napi_create_buffer_copy(env, cell->size, cell->value, NULL, &value));
    set_property(env, object, "value", value);
    return object;
}

static napi_value cell_get(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct job *job = begin(env, info, 2, run_get, made_cell, &arguments);
    return job ? start_job(env, job) : NULL;
}

static int run_cas(struct job *job)
{
    if (!job->value)
        return mortise_cell_delete(job->library, job->text, job->numbers[0], job->numbers[1]);
    return mortise_cell_cas(job->library, job->text, job->numbers[0], job->value, job->size,
                            job->numbers[1], &job->numbers[2]);
}

static napi_value made_version(napi_env env, struct job *job)
{
    return make_bigint(env, job->numbers[2]);
}

/* cellCas(client, name, version, fence, value): the promise of the new version. Without a value
   the cell is deleted. */
static napi_value cell_cas(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct job *job = begin(env, info, 4, run_cas, made_version, &arguments);
    if (!job)
        return NULL;
    if (read_fence(env, arguments.values[2], &job->numbers[0]) &&
        read_fence(env, arguments.values[3], &job->numbers[1]) &&
        (arguments.count < 5 || read_bytes(env, arguments.values[4], &job->value, &job->size)))
        return start_job(env, job);
    free_job(job);
    return NULL;
}

/* ------------------------------------------------------------------- lists */

/* A row, copied while the list is read. */
struct row {
    char name[MORTISE_NAME_MAX + 1], kind[32], label[MORTISE_LABEL_MAX + 1], host[65];
    uint64_t fence, weight, capacity, id;
    uint32_t place;
    int64_t since_ms, pid;
    int detached;
};

struct rows {
    size_t count, room;
    struct row *rows;
    bool full;
};

static void copy(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);
    memcpy(to, from, length);
    to[length] = 0;
}

static int keep_row(void *argument, const mortise_entry *entry)
{
    struct rows *rows = argument;
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 16;
        struct row *more = realloc(rows->rows, room * sizeof *more);
        if (!more) {
            rows->full = true;
            return 1;
        }
        rows->rows = more;
        rows->room = room;
    }
    struct row *row = &rows->rows[rows->count++];
    *row = (struct row){.fence = entry->fence,
                        .weight = entry->weight,
                        .capacity = entry->capacity,
                        .id = entry->id,
                        .place = entry->place,
                        .since_ms = entry->since_wall_ms,
                        .pid = entry->pid,
                        .detached = entry->detached};
    copy(row->name, sizeof row->name, entry->name);
    copy(row->kind, sizeof row->kind, entry->kind);
    copy(row->label, sizeof row->label, entry->label);
    copy(row->host, sizeof row->host, entry->host);
    return 0;
}

static int run_list(struct job *job)
{
    struct rows rows = {0};
    int error = mortise_list(job->library, job->text, keep_row, &rows);
    if (error == MORTISE_OK && rows.full)
        error = MORTISE_ENOMEM;
    job->result = rows.rows;
    job->size = rows.count;
    return error;
}

static napi_value made_row(napi_env env, const struct row *row)
{
    napi_value object = NULL, detached = NULL;
    if (!good(env, napi_create_object(env, &object)))
        return NULL;
    set_property(env, object, "name", make_text(env, row->name));
    set_property(env, object, "kind", make_text(env, row->kind));
    set_property(env, object, "label", make_text(env, row->label));
    set_property(env, object, "host", make_text(env, row->host));
    set_property(env, object, "fence", make_bigint(env, row->fence));
    set_property(env, object, "id", make_bigint(env, row->id));
    set_number(env, object, "place", row->place);
    set_number(env, object, "pid", (double)row->pid);
    set_number(env, object, "since", (double)row->since_ms);
    set_number(env, object, "weight", (double)row->weight);
    set_number(env, object, "capacity", (double)row->capacity);
    good(env, napi_get_boolean(env, row->detached != 0, &detached));
    set_property(env, object, "detached", detached);
    return object;
}

static napi_value made_list(napi_env env, struct job *job)
{
    const struct row *rows = job->result;
    napi_value array = NULL;
    if (!good(env, napi_create_array_with_length(env, job->size, &array)))
        return NULL;
    for (size_t i = 0; i < job->size; i++) {
        napi_value row = made_row(env, &rows[i]);
        if (!row || !good(env, napi_set_element(env, array, (uint32_t)i, row)))
            return NULL;
    }
    return array;
}

static napi_value list(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct job *job = begin(env, info, 2, run_list, made_list, &arguments);
    return job ? start_job(env, job) : NULL;
}

/* ---------------------------------------------------------------- operators */

static int run_revoke(struct job *job)
{
    return mortise_revoke(job->library, job->text, job->numbers[0]);
}

static int run_break(struct job *job)
{
    return mortise_break(job->library, job->text, job->numbers[0]);
}

static napi_value operate(napi_env env, napi_callback_info info, job_work run)
{
    struct argument arguments;
    struct job *job = begin(env, info, 3, run, NULL, &arguments);
    if (!job)
        return NULL;
    if (read_fence(env, arguments.values[2], &job->numbers[0]))
        return start_job(env, job);
    free_job(job);
    return NULL;
}

static napi_value revoke(napi_env env, napi_callback_info info)
{
    return operate(env, info, run_revoke);
}

static napi_value break_ticket(napi_env env, napi_callback_info info)
{
    return operate(env, info, run_break);
}

const struct exported store_functions[] = {
    {"cellGet", cell_get}, {"cellCas", cell_cas},         {"list", list},
    {"revoke", revoke},    {"breakTicket", break_ticket}, {NULL, NULL}};
