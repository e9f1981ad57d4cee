/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same for Prometheus, in its text format 0.0.4. HELP says of each family what it is and what
 * it cannot be: an observer sees tickets come, hold and go, and not why. An agent counts itself.
 *
 * A lock has series of its own if it is among the first that were seen, so many as was said; all
 * others together are the series with an empty label, so that sums are right, and the number of
 * series is bounded however many names there are.
 */
#include "cli/serve/serve.h"

#include <inttypes.h>

static double seconds(mrt_time time)
{
    return (double)time / (double)MRT_SECOND;
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(FILE *out, const char *name, double value, const char *help)
{
    head(out, name, "gauge", help);
    fprintf(out, "%s %.9g\n", name, value);
}

/* Seconds since 1970: %.9g would round them to ten. */
static void instant(FILE *out, const char *name, int64_t wall_ms, const char *help)
{
    head(out, name, "gauge", help);
    fprintf(out, "%s %" PRId64 ".%03" PRId64 "\n", name, wall_ms / 1000, wall_ms % 1000);
}

static void counter(FILE *out, const char *name, uint64_t value, const char *help)
{
    head(out, name, "counter", help);
    fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void histogram(FILE *out, const char *name, const struct mrt_watch_histogram *histogram,
                      const char *help)
{
    uint64_t sum = 0;
    head(out, name, "histogram", help);
    for (size_t i = 0; i < MRT_WATCH_BOUNDS; i++) {
        sum += histogram->buckets[i];
        fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
                (double)mrt_watch_bounds_ms[i] / 1000, sum);
    }
    fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, histogram->total);
    fprintf(out, "%s_sum %.9f\n", name, seconds(histogram->sum));
    fprintf(out, "%s_count %" PRIu64 "\n", name, histogram->total);
}

/* ---------------------------------------------------------------- this process */

static void print_store(const struct mrt_serve *serve, FILE *out)
{
    static const char *const kinds[MRT_SERVE_KINDS] = {"none",    "busy",    "timeout", "retry",
                                                       "lost",    "denied",  "usage",   "config",
                                                       "unknown", "internal"};
    head(out, "mortise_build_info", "gauge", "The version of mortise that watches.");
    fprintf(out, "mortise_build_info{version=\"%s\"} 1\n", MORTISE_VERSION);
    gauge(out, "mortise_store_up", serve->looks > 0 && !serve->error[0],
          "1 if the newest look at the store succeeded. If not, all about locks is what was seen "
          "last.");
    instant(out, "mortise_last_look_timestamp_seconds", serve->table.seen_wall_ms,
            "When the newest look that succeeded ended, by this host's clock.");
    gauge(out, "mortise_look_duration_seconds", seconds(serve->look_took),
          "How long the newest look took.");
    gauge(out, "mortise_look_interval_seconds", seconds(serve->interval),
          "The time from look to look: what durations here may be wrong by.");
    head(out, "mortise_looks_total", "counter", "Looks at the store by this process.");
    fprintf(out, "mortise_looks_total{result=\"ok\"} %" PRIu64 "\n",
            serve->looks - serve->failed_looks);
    fprintf(out, "mortise_looks_total{result=\"error\"} %" PRIu64 "\n", serve->failed_looks);
    head(out, "mortise_errors_total", "counter",
         "Looks, revokes and breaks of this process that failed, by what can be done about it. "
         "Errors of other clients cannot be seen from outside.");
    for (size_t i = 1; i < MRT_SERVE_KINDS; i++)
        fprintf(out, "mortise_errors_total{kind=\"%s\"} %" PRIu64 "\n", kinds[i], serve->errors[i]);
}

static void print_changes(const struct mrt_serve *serve, FILE *out)
{
    static const char *const names[] = {"revoke", "break"}, *const results[] = {"refused", "done"};
    head(out, "mortise_operator_requests_total", "counter",
         "Requests of operators to this process: to request that a holder gives a lock up, or to "
         "take a ticket away.");
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++)
            fprintf(out,
                    "mortise_operator_requests_total{request=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                    names[i], results[j], serve->changes[i][j]);
    counter(out, "mortise_known_losses_total", serve->losses + serve->table.watch.totals.deaths,
            "Holders that lost a lock for certain: those broken through this process, and those "
            "seen to have died, which only locks with a delay show. Any other who no longer holds "
            "has given the lock back or has lost it, which is the same from outside; holders "
            "themselves know (mortise_get_stats, mortise run --json).");
}

/* ----------------------------------------------------------------- what is seen */

/* The longest time for which a present holder, or waiter, has been seen. */
static mrt_time longest(const struct mrt_serve *serve, enum mrt_watch_phase phase)
{
    mrt_time found = 0;
    const struct mrt_watch_lock *lock;
    const struct mrt_watch_ticket *ticket;
    for (lock = serve->table.watch.locks; lock; lock = lock->hh.next)
        for (ticket = lock->tickets; ticket; ticket = ticket->hh.next)
            if (ticket->phase == phase && serve->table.seen_at - ticket->since > found)
                found = serve->table.seen_at - ticket->since;
    return found;
}

/* Holders that have been seen for longer than a session lives without a renewal. */
static double renewed_holders(const struct mrt_serve *serve)
{
    mrt_time lease = mrt_time_from_ms(serve->can.lease_ms);
    size_t count = 0;
    for (size_t i = 0; i < serve->table.rows.count; i++) {
        const struct mrt_row *row = &serve->table.rows.rows[i];
        const struct mrt_watch_lock *lock = mrt_watch_find(&serve->table.watch, row->name);
        bool alive = row->place == 0 && !row->detached && row->delay_ms == 0;
        const struct mrt_watch_ticket *ticket = alive ? mrt_watch_ticket(lock, row->id) : NULL;
        count += ticket && serve->table.seen_at - ticket->since > lease;
    }
    return (double)count;
}

static void print_now(const struct mrt_serve *serve, FILE *out)
{
    const struct mrt_watch *watch = &serve->table.watch;
    gauge(out, "mortise_locks", (double)serve->table.count,
          "Locks that somebody holds or waits for.");
    gauge(out, "mortise_locks_held", watch->held, "Locks that somebody holds.");
    gauge(out, "mortise_holders", watch->holders,
          "Holders, in all locks; a dead holder's lock counts while it is kept for its delay.");
    gauge(out, "mortise_waiters", watch->waiters, "Waiters, in all locks.");
    gauge(out, "mortise_longest_hold_seconds", seconds(longest(serve, MRT_WATCH_HOLDS)),
          "Of those who hold now, the longest that one has been seen to; at least so long.");
    gauge(out, "mortise_longest_wait_seconds", seconds(longest(serve, MRT_WATCH_WAITS)),
          "Of those who wait now, the longest that one has been seen to; at least so long.");
    if (serve->can.lease_ms <= 0)
        return;
    gauge(out, "mortise_lease_seconds", (double)serve->can.lease_ms / 1000,
          "How long a client of this process's settings keeps its locks without a renewal.");
    gauge(out, "mortise_renewed_holders", renewed_holders(serve),
          "Holders seen to hold for longer than mortise_lease_seconds, so that a client "
          "of the same settings must have renewed. Renewals themselves cannot be seen from "
          "outside.");
}

static void print_counts(const struct mrt_serve *serve, FILE *out)
{
    const struct mrt_watch_counts *totals = &serve->table.watch.totals;
    counter(out, "mortise_grants_seen_total", totals->grants,
            "Holders seen that did not hold at the look before: at least so many, as a holder that "
            "comes and goes between two looks is not seen.");
    counter(out, "mortise_contended_grants_seen_total", totals->contended,
            "Those of them that an earlier look had seen waiting: at least so many.");
    counter(out, "mortise_handovers_seen_total", totals->changes,
            "How often another one was first in a lock's queue than when it was last seen: at "
            "least so often.");
    counter(out, "mortise_waits_gone_total", totals->gone,
            "Waiters that were gone at the next look and had not been seen to hold: they gave up, "
            "or died, or held and were done between two looks.");
    histogram(out, "mortise_wait_seconds", &totals->waits,
              "Waits that ended in a grant, from the first look that saw them to the first that "
              "saw the holder; within one interval of the truth. Waits that no look saw, and those "
              "that began before this process, are not in it.");
    histogram(out, "mortise_hold_seconds", &totals->holds,
              "Holds, from the first look that saw them to the first that did not; within one "
              "interval of the truth. Holds that no look saw, and those that began before this "
              "process, are not in it.");
}

/* -------------------------------------------------------------------- an agent */

/* Its buckets are powers of two of microseconds: 16 us, 64 us, ... 19 h. */
static void exact_histogram(FILE *out, const char *name, const struct mrt_counted_times *times,
                            const char *help)
{
    uint64_t sum = 0;
    head(out, name, "histogram", help);
    for (size_t i = 0; i <= 36; i++) {
        sum += times->below[i];
        if (i >= 4 && i % 2 == 0)
            fprintf(out, "%s_bucket{le=\"%.9g\"} %" PRIu64 "\n", name,
                    (double)(UINT64_C(1) << i) / 1e6, sum);
    }
    fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, times->count);
    fprintf(out, "%s_sum %.6f\n", name, (double)times->sum_us / 1e6);
    fprintf(out, "%s_count %" PRIu64 "\n", name, times->count);
}

static void print_agent(const struct mrt_serve *serve, FILE *out)
{
    const struct mrt_counted *counted = &serve->counted;
    gauge(
        out, "mortise_agent_up", serve->agent_up,
        "1 if the agent answered at the newest look; if not, its other values are the last ones.");
    gauge(out, "mortise_agent_clients", (double)counted->clients,
          "Connections and bound processes of the agent.");
    gauge(out, "mortise_agent_sessions", (double)counted->sessions,
          "Sessions of programs with the library at the agent.");
    gauge(out, "mortise_agent_tickets", (double)counted->tickets,
          "Locks that the agent's clients have or wait for.");
    gauge(out, "mortise_agent_holders", (double)counted->holders, "Those of them that are held.");
    counter(out, "mortise_agent_connections_total", counted->connections,
            "Connections that the agent has accepted.");
    counter(out, "mortise_agent_refused_total", counted->refused,
            "Connections that the agent has refused.");
    counter(out, "mortise_agent_ended_total", counted->ended,
            "Connections that the agent has ended.");
    counter(out, "mortise_agent_commands_total", counted->commands, "Commands to the agent.");
    counter(out, "mortise_agent_grants_total", counted->grants,
            "Locks that the agent's clients have got.");
    exact_histogram(out, "mortise_agent_wait_seconds", &counted->waits,
                    "Waits of LOCK, from its receipt to its grant, each of them.");
    exact_histogram(out, "mortise_agent_hold_seconds", &counted->holds,
                    "Holds of LOCK that have ended, each of them.");
}

/* --------------------------------------------------------------------- by lock */

static void print_label(FILE *out, const char *name)
{
    char clean[4 * MORTISE_NAME_MAX + 1];
    mrt_cli_escape(name, clean, sizeof clean); /* what is not UTF-8, and control bytes */
    for (const char *c = clean; *c; c++) {
        if (*c == '"' || *c == '\\')
            putc('\\', out);
        putc(*c, out);
    }
}

struct family {
    const char *name, *type, *help;
    uint64_t (*value)(const struct mrt_watch_lock *lock);
    uint64_t (*total)(const struct mrt_watch *watch);
};

#define VALUES(name, of_lock, of_all)                            \
    static uint64_t name##_of(const struct mrt_watch_lock *lock) \
    {                                                            \
        return lock->of_lock;                                    \
    }                                                            \
    static uint64_t all_##name(const struct mrt_watch *watch)    \
    {                                                            \
        return watch->of_all;                                    \
    }
VALUES(holders, holders, holders)
VALUES(waiters, waiters, waiters)
VALUES(grants, counts.grants, totals.grants)
VALUES(handovers, counts.changes, totals.changes)

static void print_family(const struct mrt_watch *watch, FILE *out, const struct family *family)
{
    const struct mrt_watch_lock *lock;
    uint64_t rest = family->total(watch);
    head(out, family->name, family->type, family->help);
    for (lock = watch->locks; lock; lock = lock->hh.next) {
        if (!lock->own)
            continue;
        fprintf(out, "%s{lock=\"", family->name);
        print_label(out, lock->name);
        fprintf(out, "\"} %" PRIu64 "\n", family->value(lock));
        rest -= family->value(lock);
    }
    fprintf(out, "%s{lock=\"\"} %" PRIu64 "\n", family->name, rest);
}

static void print_by_lock(const struct mrt_serve *serve, FILE *out)
{
    static const struct family families[] = {
        {"mortise_lock_holders", "gauge",
         "Holders, by lock; an empty label: all locks without series of their own.", holders_of,
         all_holders},
        {"mortise_lock_waiters", "gauge", "Waiters, by lock.", waiters_of, all_waiters},
        {"mortise_lock_grants_seen_total", "counter", "As mortise_grants_seen_total, by lock.",
         grants_of, all_grants},
        {"mortise_lock_handovers_seen_total", "counter",
         "As mortise_handovers_seen_total, by lock.", handovers_of, all_handovers},
    };
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        print_family(&serve->table.watch, out, &families[i]);
}

void mrt_serve_print_metrics(const struct mrt_serve *serve, FILE *out)
{
    print_store(serve, out);
    print_changes(serve, out);
    print_now(serve, out);
    print_counts(serve, out);
    if (*serve->agent)
        print_agent(serve, out);
    if (serve->own_series > 0)
        print_by_lock(serve, out);
}
