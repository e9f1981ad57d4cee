/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to programs, as JSON. Names, labels and hosts are what others wrote: strings, whatever
 * is in them.
 */
#include "cli/serve/serve.h"

#include "cli/frame/json.h"

#include <inttypes.h>
#include <string.h>

static const char *boolean(bool value)
{
    return value ? "true" : "false";
}

static double seconds(mrt_time time)
{
    return (double)time / (double)MRT_SECOND;
}

static void print_histogram(FILE *out, const char *name,
                            const struct mrt_watch_histogram *histogram)
{
    fprintf(out, "\"%s\": {\"count\": %" PRIu64 ", \"seconds\": %.3f, \"buckets\": [", name,
            histogram->total, seconds(histogram->sum));
    for (size_t i = 0; i <= MRT_WATCH_BOUNDS; i++)
        fprintf(out, "%s%" PRIu64, i ? ", " : "", histogram->buckets[i]);
    fprintf(out, "]}");
}

static void print_counts(FILE *out, const struct mrt_watch_counts *counts)
{
    fprintf(out,
            "{\"grants\": %" PRIu64 ", \"contended\": %" PRIu64 ", \"handovers\": %" PRIu64
            ", \"deaths\": %" PRIu64 ", \"gone\": %" PRIu64 ", ",
            counts->grants, counts->contended, counts->changes, counts->deaths, counts->gone);
    print_histogram(out, "waits", &counts->waits);
    fprintf(out, ", ");
    print_histogram(out, "holds", &counts->holds);
    fprintf(out, "}");
}

static void print_seen(const struct mrt_serve *serve, FILE *out)
{
    fprintf(out, "\"seen\": ");
    if (serve->table.seen_wall_ms)
        mrt_json_time(out, serve->table.seen_wall_ms);
    else
        fprintf(out, "null");
    fprintf(out, ", \"error\": ");
    if (serve->error[0])
        mrt_json_string(out, serve->error);
    else
        fprintf(out, "null");
}

/* ----------------------------------------------------------------- overview */

static void print_samples(const struct mrt_serve *serve, FILE *out, uint64_t from)
{
    uint64_t end = serve->sample_count;
    uint64_t oldest = end > MRT_SERVE_SAMPLES ? end - MRT_SERVE_SAMPLES : 0;
    int64_t from_ms = mrt_cli_wall_ms() - MRT_SERVE_HISTORY;
    while (oldest < end && serve->samples[oldest % MRT_SERVE_SAMPLES].wall_ms < from_ms)
        oldest++;
    fprintf(out, "\"next\": %" PRIu64 ", \"samples\": [", end);
    for (uint64_t n = from > oldest && from <= end ? from : oldest; n < end; n++) {
        const struct mrt_serve_sample *sample = &serve->samples[n % MRT_SERVE_SAMPLES];
        fprintf(out, "[%" PRId64 ",%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%d]%s", sample->wall_ms,
                sample->held, sample->holders, sample->waiters, sample->grants, sample->changes,
                sample->failed, n + 1 < end ? "," : "");
    }
    fprintf(out, "]");
}

static void print_store(const struct mrt_serve *serve, FILE *out)
{
    const mortise_capabilities *can = &serve->can;
    fprintf(out, "{\"url\": ");
    mrt_json_string(out, mortise_url(serve->client));
    fprintf(out,
            ", \"fair\": %s, \"fence\": %s, \"across_hosts\": %s, \"survives_failover\": %s, "
            "\"lease_ms\": %" PRId64 "}",
            boolean(can->fair), boolean(can->fence), boolean(can->across_hosts),
            boolean(can->survives_failover), can->lease_ms);
}

static void print_extreme(const struct mrt_serve *serve, FILE *out, const char *title,
                          const struct mrt_table_lock *lock, mrt_time since)
{
    fprintf(out, "\"%s\": ", title);
    if (!lock) {
        fprintf(out, "null");
        return;
    }
    fprintf(out,
            "{\"ms\": %" PRId64 ", \"name\": ", (serve->table.seen_at - since) / MRT_MILLISECOND);
    mrt_json_string(out, lock->first->name);
    fprintf(out, "}");
}

/* The longest wait and the oldest hold, which are most likely to be stuck. */
static void print_extremes(const struct mrt_serve *serve, FILE *out)
{
    const struct mrt_table_lock *waits = NULL, *holds = NULL;
    for (size_t i = 0; i < serve->table.count; i++) {
        const struct mrt_table_lock *lock = &serve->table.locks[i];
        if (lock->waits != MRT_TIME_NEVER && (!waits || lock->waits < waits->waits))
            waits = lock;
        if (lock->watched->holders > 0 && lock->since != MRT_TIME_NEVER &&
            (!holds || lock->since < holds->since))
            holds = lock;
    }
    print_extreme(serve, out, "longest_wait", waits, waits ? waits->waits : 0);
    fprintf(out, ", ");
    print_extreme(serve, out, "oldest_hold", holds, holds ? holds->since : 0);
    fprintf(out, ",\n");
}

/* null: the store is not reached through an agent, or the agent does not answer. */
static void print_agent(const struct mrt_serve *serve, FILE *out)
{
    const struct mrt_counted *counted = &serve->counted;
    if (!serve->agent_up) {
        fprintf(out, "\"agent\": null,\n");
        return;
    }
    fprintf(out,
            "\"agent\": {\"clients\": %" PRIu64 ", \"sessions\": %" PRIu64 ", \"tickets\": %" PRIu64
            ", \"holders\": %" PRIu64 ", \"connections\": %" PRIu64 ", \"refused\": %" PRIu64
            ", \"ended\": %" PRIu64 ", \"commands\": %" PRIu64 ", \"grants\": %" PRIu64 "},\n",
            counted->clients, counted->sessions, counted->tickets, counted->holders,
            counted->connections, counted->refused, counted->ended, counted->commands,
            counted->grants);
}

void mrt_serve_print_overview(const struct mrt_serve *serve, FILE *out, uint64_t from)
{
    const struct mrt_watch *watch = &serve->table.watch;
    fprintf(out,
            "{\"version\": \"%s\", \"changes\": %s, \"interval_ms\": %" PRId64
            ", \"started\": %" PRId64 ", ",
            MORTISE_VERSION, boolean(serve->allow_changes), serve->interval / MRT_MILLISECOND,
            serve->started_wall_ms);
    print_seen(serve, out);
    fprintf(out, ", \"store\": ");
    print_store(serve, out);
    fprintf(out, ", \"locks\": %zu, \"held\": %u, \"holders\": %u, \"waiters\": %u,\n",
            serve->table.count, watch->held, watch->holders, watch->waiters);
    print_extremes(serve, out);
    print_agent(serve, out);
    fprintf(out, "\"bounds_ms\": [");
    for (size_t i = 0; i < MRT_WATCH_BOUNDS; i++)
        fprintf(out, "%s%u", i ? ", " : "", mrt_watch_bounds_ms[i]);
    fprintf(out, "],\n\"counts\": ");
    print_counts(out, &watch->totals);
    fprintf(out, ",\n");
    print_samples(serve, out, from);
    fprintf(out, "}\n");
}

/* -------------------------------------------------------------------- locks */

static void print_row(const struct mrt_serve *serve, FILE *out, const struct mrt_row *row)
{
    char mode[48];
    mrt_time since = mrt_table_since(&serve->table, row);
    mrt_rows_describe_mode(row, mode);
    mrt_rows_print_members(out, row);
    fprintf(out, ", \"mode\": ");
    mrt_json_string(out, mode);
    if (since == MRT_TIME_NEVER)
        fprintf(out, ", \"age_ms\": null");
    else
        fprintf(out, ", \"age_ms\": %" PRId64, (serve->table.seen_at - since) / MRT_MILLISECOND);
}

/* How much of it is held, and how long the longest wait is. */
static void print_state(const struct mrt_serve *serve, FILE *out, const struct mrt_table_lock *lock)
{
    char use[48];
    mrt_rows_describe_use(lock->first, lock->watched->used, use);
    fprintf(out, "\"use\": ");
    mrt_json_string(out, use);
    if (lock->waits == MRT_TIME_NEVER)
        fprintf(out, ", \"wait_ms\": null, ");
    else
        fprintf(out, ", \"wait_ms\": %" PRId64 ", ",
                (serve->table.seen_at - lock->waits) / MRT_MILLISECOND);
}

void mrt_serve_print_locks(struct mrt_serve *serve, FILE *out, enum mrt_table_order order,
                           const char *filter, size_t limit)
{
    struct mrt_table *table = &serve->table;
    mrt_time now = mrt_time_now();
    size_t count = mrt_table_arrange(table, order, filter, now);
    fprintf(out, "{");
    print_seen(serve, out);
    fprintf(out, ", \"all\": %zu, \"found\": %zu, \"locks\": [", table->count, count);
    for (size_t i = 0; i < count && i < limit; i++) {
        const struct mrt_table_lock *lock = &table->locks[i];
        fprintf(out, "%s{\"name\": ", i ? ",\n" : "\n");
        mrt_json_string(out, lock->first->name);
        fprintf(out, ", \"kind\": ");
        mrt_json_string(out, lock->first->kind);
        fprintf(out, ", \"holders\": %u, \"waiters\": %u, \"handovers_per_second\": %.3f, ",
                lock->watched->holders, lock->watched->waiters, mrt_table_rate(lock, now));
        print_state(serve, out, lock);
        fprintf(out, "\"first\": {");
        print_row(serve, out, lock->first);
        fprintf(out, "}}");
    }
    fprintf(out, "]}\n");
}

/* ----------------------------------------------------------------- one lock */

static void print_tickets(const struct mrt_serve *serve, FILE *out, const char *name, bool holders)
{
    const char *separator = "";
    for (size_t i = 0; i < serve->table.rows.count; i++) {
        const struct mrt_row *row = &serve->table.rows.rows[i];
        if ((row->place == 0) != holders || strcmp(row->name, name) != 0)
            continue;
        fprintf(out, "%s{", separator);
        print_row(serve, out, row);
        fprintf(out, "}");
        separator = ",\n";
    }
}

/* The newest first. */
static void print_past(const struct mrt_serve *serve, FILE *out, const struct mrt_watch_lock *lock)
{
    const struct mrt_watch_past *past;
    fprintf(out, "\"previous\": [");
    for (uint64_t back = 0; (past = mrt_watch_past(lock, back)) != NULL; back++) {
        fprintf(out, "%s{" MRT_JSON_FENCE ", \"owner\": ", back ? ",\n" : "", past->fence,
                past->fence);
        mrt_json_string(out, past->owner ? past->owner : "");
        fprintf(out, ", \"held_ms\": %" PRId64 ", \"ended_ms\": %" PRId64 "}",
                past->held / MRT_MILLISECOND,
                (serve->table.seen_at - past->ended) / MRT_MILLISECOND);
    }
    fprintf(out, "],\n");
}

static const char *kind_of(const struct mrt_serve *serve, const char *name)
{
    const struct mrt_watch_lock *lock = mrt_watch_find(&serve->table.watch, name);
    bool is_there = lock && lock->tickets && lock->first < serve->table.rows.count &&
                    strcmp(serve->table.rows.rows[lock->first].name, name) == 0;
    return is_there ? serve->table.rows.rows[lock->first].kind : NULL;
}

void mrt_serve_print_lock(const struct mrt_serve *serve, FILE *out, const char *name)
{
    static const struct mrt_watch_counts none;
    const struct mrt_watch_lock *lock = mrt_watch_find(&serve->table.watch, name);
    const char *kind = kind_of(serve, name);
    fprintf(out, "{");
    print_seen(serve, out);
    fprintf(out, ", \"name\": ");
    mrt_json_string(out, name);
    fprintf(out, ", \"state\": \"%s\", \"kind\": ", lock && lock->holders ? "held" : "free");
    if (kind)
        mrt_json_string(out, kind);
    else
        fprintf(out, "null");
    fprintf(out, ", \"holders\": [");
    print_tickets(serve, out, name, true);
    fprintf(out, "], \"waiters\": [");
    print_tickets(serve, out, name, false);
    fprintf(out, "],\n");
    print_past(serve, out, lock);
    fprintf(out, "\"counts\": ");
    print_counts(out, lock ? &lock->counts : &none);
    fprintf(out, "}\n");
}
