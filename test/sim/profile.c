/* Drawing a run's configuration, and showing it. */
#include "profile.h"

#include "random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct profile_field profile_fields[] = {
#define PROFILE_ROW(name, kind, text) {#name, kind, text},
    PROFILE_MAP(PROFILE_ROW)
#undef PROFILE_ROW
};
const int profile_field_count = sizeof profile_fields / sizeof profile_fields[0];

/* The struct is a row of int64_t in the table's order. */
int64_t *profile_value(struct profile *profile, int field)
{
    return (int64_t *)(void *)profile + field;
}

/* A value between 1 and limit whose magnitude is even: small ones as likely as large ones. */
static int64_t draw_scale(struct random *random, int64_t limit)
{
    int64_t top = 1;
    int steps = 0;
    while (top < limit) {
        top *= 4;
        steps++;
    }
    for (int64_t down = random_below(random, steps + 1); down > 0; down--)
        limit /= 4;
    return 1 + random_below(random, limit > 0 ? limit : 1);
}

/* Off in half of all runs. */
static int64_t maybe(struct random *random, int64_t limit)
{
    return random_below(random, 2) ? draw_scale(random, limit) : 0;
}

/* About how often something befalls a client, or 0; `one_in` runs have it. */
static int64_t maybe_every(struct random *random, int one_in, int64_t unit)
{
    if (random_below(random, one_in) > 0)
        return 0;
    return unit / 4 + random_below(random, unit * 4);
}

static void draw_sizes(struct profile *p, struct random *random)
{
    p->model = random_below(random, 4) % 3;
    p->clients = random_between(random, 1, 4);
    p->actors = random_between(random, 1, 5);
    p->queues = random_below(random, 3) ? 1 : random_between(random, 1, 3);
    p->operations = random_between(random, 4, 24);
    p->lease_us = p->model == MODEL_LEASE ? random_between(random, 200, 3000) * 1000 : 0;
    p->recheck_us = random_between(random, 20, 2000) * 1000;
    p->capacity = random_below(random, 8) ? 1 : 2;
    p->fence_span = random_below(random, 3) ? 1 << 20 : random_between(random, 1, 8);
    p->strict = random_below(random, 2);
    p->fair_us = random_below(random, 4) ? 1000 : draw_scale(random, 100000);
    p->budget_us = random_below(random, 4) ? 2000 : random_below(random, 20000);
    p->budget_count = random_below(random, 2) ? 16 : random_between(random, 1, 8);
    p->drift_ppm = random_below(random, 2) ? 100000 : maybe(random, 20000);
}

static void draw_actors(struct profile *p, struct random *random)
{
    int64_t unit = p->model == MODEL_LEASE ? p->lease_us : 1000000;
    p->think_us = draw_scale(random, unit / 4);
    p->hold_us = draw_scale(random, unit / 4);
    p->reaction_us = maybe(random, 5000);
    p->nest = maybe(random, 5000);
    p->try = maybe(random, 6000);
    p->timed = maybe(random, 6000);
    p->async = maybe(random, 8000);
    p->cancel = maybe(random, 5000);
    p->wait_us = draw_scale(random, unit * 2);
    p->misuse = maybe(random, 2000);
    p->verify = maybe(random, 2000);
    p->brief_handles = random_below(random, 2);
}

static void draw_link(struct profile *p, struct random *random)
{
    int64_t unit = p->model == MODEL_LEASE ? p->lease_us : 1000000;
    p->synchronous = p->model != MODEL_LEASE && random_below(random, 2);
    p->delay_us =
        p->model == MODEL_SQLITE ? draw_scale(random, 2000) : draw_scale(random, unit / 2);
    p->timer_late_us = maybe(random, unit / 20);
    p->reorder = maybe(random, 3000);
    p->lose_command = maybe(random, 3000);
    p->lose_reply = maybe(random, 3000);
    p->early_unknown = maybe(random, 2000);
    p->late_answer = maybe(random, 10000);
    p->refuse = maybe(random, 2000);
    p->refuse_for_good = random_below(random, 4) ? 0 : maybe(random, 1000);
    p->unknown_us = draw_scale(random, unit * 2);
    p->wake_lost = maybe(random, 10000);
    p->wake_double = maybe(random, 5000);
    p->wake_late_us = maybe(random, unit);
    p->stray_wake = maybe(random, 2000);
}

static void draw_disasters(struct profile *p, struct random *random)
{
    int64_t unit = p->model == MODEL_LEASE ? p->lease_us : 1000000;
    p->cut_every_us = p->model == MODEL_LEASE ? maybe_every(random, 3, unit * 2) : 0;
    p->cut_us = draw_scale(random, unit * 3);
    p->crash_every_us = maybe_every(random, 3, unit * 2);
    p->restart_us = draw_scale(random, unit * 2);
    p->pause_every_us = maybe_every(random, 3, unit * 2);
    p->pause_us = draw_scale(random, unit * 3);
    p->close_every_us = maybe_every(random, 4, unit * 3);
    p->kill_every_us = p->model != MODEL_LEASE ? maybe_every(random, 4, unit * 2) : 0;
    p->break_every_us = maybe_every(random, 8, unit * 2);
    p->reboot_every_us = p->model == MODEL_SQLITE ? maybe_every(random, 4, unit * 6) : 0;
    p->busy = p->model == MODEL_SQLITE ? maybe(random, 3000) : 0;
    p->notices_refused = p->model == MODEL_SQLITE ? maybe(random, 10000) : 0;
    p->push = maybe(random, 10000);
    if (p->push > 0)
        p->reorder = 0; /* views of one ticket come in the order they were made */
    p->proof_lag_us = p->model == MODEL_LEASE && random_below(random, 4) == 0
                          ? random_between(random, unit / 20, unit * 2 / 5)
                          : 0;
    p->follower_every_us = p->proof_lag_us > 0 ? random_between(random, unit / 4, unit * 2) : 0;
    p->reap_us = p->model == MODEL_LEASE ? maybe(random, unit / 2) : 0;
}

/* A slow link, followers that die and clients that are then cut off: what a proof of
   life must stand that its server acknowledged and then forgot. */
static void make_forgetful(struct profile *p, struct random *random)
{
    int64_t unit = p->lease_us;
    p->clients = random_between(random, 2, 4);
    p->operations = random_between(random, 20, 40);
    p->proof_lag_us = unit * random_between(random, 31, 36) / 100;
    p->follower_every_us = unit * 3 / 10;
    p->cut_every_us = unit * 6 / 10;
    p->cut_us = unit * 3;
    p->delay_us = unit / 5;
    p->hold_us = unit;
    p->think_us = unit / 100;
    p->drift_ppm = p->crash_every_us = p->wake_lost = p->break_every_us = p->reap_us = 0;
    p->lose_command = p->lose_reply = p->refuse = p->pause_every_us = p->close_every_us = 0;
    p->try = p->timed = p->cancel = 0;
}

/* A link and machines without faults, so that times can be held to their bounds. */
static void make_quiet(struct profile *p, struct random *random)
{
    int64_t *const faults[] = {&p->lose_command,   &p->lose_reply,  &p->early_unknown,
                               &p->break_every_us, &p->refuse,      &p->refuse_for_good,
                               &p->break_every_us, &p->late_answer, &p->cut_every_us,
                               &p->pause_every_us, &p->busy,        &p->timer_late_us,
                               &p->wake_lost,      &p->wake_late_us};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        *faults[i] = 0;
    p->delay_us = draw_scale(random, 5000);
    p->clients = random_between(random, 2, 4);
}

/* By a draw of its own, so that the rest of a run with mutexes is as it was. */
static void draw_lock(struct profile *p, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x6c6f636b));
    int64_t kind = random_below(&random, 6);
    if (kind == LOCK_SEMAPHORE)
        p->capacity = random_between(&random, 2, 4);
    if (kind == LOCK_SEMAPHORE || kind == LOCK_READ_WRITE)
        p->lock = kind;
}

void profile_draw(struct profile *profile, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed ^ UINT64_C(0x70726f66696c65));
    memset(profile, 0, sizeof *profile);
    draw_sizes(profile, &random);
    draw_actors(profile, &random);
    draw_link(profile, &random);
    draw_disasters(profile, &random);
    if (profile->model == MODEL_LEASE && random_below(&random, 12) == 0)
        make_forgetful(profile, &random);
    else if (random_below(&random, 6) == 0)
        make_quiet(profile, &random);
    draw_lock(profile, seed);
}

void profile_heal(struct profile *p)
{
    int64_t *const faults[] = {&p->reorder,         &p->lose_command,   &p->lose_reply,
                               &p->early_unknown,   &p->refuse,         &p->refuse_for_good,
                               &p->wake_lost,       &p->wake_double,    &p->wake_late_us,
                               &p->stray_wake,      &p->cut_every_us,   &p->crash_every_us,
                               &p->pause_every_us,  &p->close_every_us, &p->kill_every_us,
                               &p->reboot_every_us, &p->busy,           &p->misuse,
                               &p->cancel,          &p->timed,          &p->try};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        *faults[i] = 0;
    /* A lease can be kept only if a round trip takes less than a third of it. */
    if (p->model == MODEL_LEASE && p->delay_us > p->lease_us / 20)
        p->delay_us = p->lease_us / 20;
}

bool profile_set(struct profile *profile, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(equals + 1, &end, 10);
    if (errno || *end || end == equals + 1)
        return false;
    for (int i = 0; i < profile_field_count; i++)
        if (strlen(profile_fields[i].name) == (size_t)(equals - text) &&
            strncmp(profile_fields[i].name, text, (size_t)(equals - text)) == 0) {
            *profile_value(profile, i) = value;
            return true;
        }
    return false;
}

void profile_print(const struct profile *profile, FILE *file)
{
    struct profile copy = *profile;
    for (int i = 0; i < profile_field_count; i++)
        fprintf(file, "  %-16s %10lld  %s\n", profile_fields[i].name,
                (long long)*profile_value(&copy, i), profile_fields[i].text);
}
