/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace of a run. Every step is mixed into a hash; a run whose hash is the same
 * did the same. Rows are kept only if somebody wants to read them.
 */
#include "world.h"

#include <stdlib.h>

#define ROWS_MAX (1 << 20)
#define ROWS_FIRST 300
#define ROWS_LAST 60

struct row {
    mrt_time at;
    const char *what;
    int64_t a, b, c;
    int8_t kind, client, queue;
};

struct trace {
    uint64_t hash;
    struct row *rows; /* NULL: not kept */
    size_t count;
};

static const char *const kind_names[] = {
    "acquire", "retry",    "cancel", "release", "verify", "done", "woken",  "told",
    "submit",  "unsubmit", "apply",  "event",   "tick",   "link", "client", "phase"};

struct trace *trace_new(bool keep)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace && keep)
        trace->rows = malloc(ROWS_MAX * sizeof *trace->rows);
    if (!trace || (keep && !trace->rows))
        abort();
    return trace;
}

void trace_free(struct trace *trace)
{
    free(trace->rows);
    free(trace);
}

static void mix(struct trace *trace, uint64_t value)
{
    trace->hash = (random_rotate(trace->hash, 23) ^ value) * UINT64_C(0x9fb21c651e98df25);
}

void trace_note(struct world *world, int kind, int client, int queue, const char *what, int64_t a,
                int64_t b, int64_t c)
{
    struct trace *trace = world->trace;
    mix(trace, (uint64_t)world->now);
    mix(trace, (uint64_t)(kind << 16 ^ (client + 1) << 8 ^ (queue + 1)));
    mix(trace, (uint64_t)a ^ random_rotate((uint64_t)b, 21) ^ random_rotate((uint64_t)c, 42));
    if (trace->rows && trace->count < ROWS_MAX)
        trace->rows[trace->count++] = (struct row){.at = world->now,
                                                   .what = what,
                                                   .a = a,
                                                   .b = b,
                                                   .c = c,
                                                   .kind = (int8_t)kind,
                                                   .client = (int8_t)client,
                                                   .queue = (int8_t)queue};
}

uint64_t trace_hash(const struct trace *trace)
{
    return trace->hash;
}

static bool concerns(const struct row *row, int queue, int client)
{
    if (row->kind == TRACE_PHASE || queue == NO_QUEUE)
        return row->kind != TRACE_TICK || row->client == client;
    if (row->queue == queue)
        return true;
    return row->queue == NO_QUEUE && row->kind != TRACE_TICK;
}

static void print_row(const struct row *row, FILE *file)
{
    fprintf(file, "%14.6f ms  ", (double)row->at / 1e6);
    if (row->client >= 0)
        fprintf(file, "client %d  ", row->client);
    else
        fprintf(file, "          ");
    if (row->queue >= 0)
        fprintf(file, "lock %d  ", row->queue);
    else
        fprintf(file, "        ");
    fprintf(file, "%-8s %-14s %lld %lld %lld\n", kind_names[row->kind], row->what ? row->what : "",
            (long long)row->a, (long long)row->b, (long long)row->c);
}

void trace_print(const struct trace *trace, FILE *file, int queue, int client, bool all)
{
    size_t total = 0, index = 0;
    for (size_t i = 0; i < trace->count; i++)
        total += all || concerns(&trace->rows[i], queue, client);
    for (size_t i = 0; i < trace->count; i++) {
        if (!all && !concerns(&trace->rows[i], queue, client))
            continue;
        bool middle = !all && index >= ROWS_FIRST && index + ROWS_LAST < total;
        if (!middle)
            print_row(&trace->rows[i], file);
        else if (index == ROWS_FIRST)
            fprintf(file, "  (%zu rows left out)\n", total - ROWS_FIRST - ROWS_LAST);
        index++;
    }
}
