/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads the store. It lists once an interval. It executes operators' requests as
 * soon as they come, then lists again. It stores the results under the mutex, which it never
 * holds during a call to the store.
 */
#include "cli/serve/serve.h"

#include "cli/frame/json.h"

#include <stdlib.h>
#include <time.h>

static const char *describe(int error)
{
    const char *detail = mortise_error_detail();
    return *detail ? detail : mortise_error_text(error);
}

static void count_error(struct mrt_serve *serve, int error)
{
    serve->errors[mortise_error_kind_of(error)]++;
}

/* ------------------------------------------------------------------- looks */

static void add_sample(struct mrt_serve *serve, bool failed, const struct mrt_watch_counts *before)
{
    const struct mrt_watch *watch = &serve->table.watch;
    serve->samples[serve->sample_count++ % MRT_SERVE_SAMPLES] =
        (struct mrt_serve_sample){.wall_ms = mrt_cli_wall_ms(),
                                  .held = watch->held,
                                  .holders = watch->holders,
                                  .waiters = watch->waiters,
                                  .grants = watch->totals.grants - before->grants,
                                  .changes = watch->totals.changes - before->changes,
                                  .failed = failed};
}

static void take_in(struct mrt_serve *serve, struct mrt_rows *rows, int error, mrt_time began)
{
    mrt_time now = mrt_time_now();
    struct mrt_watch_counts before = serve->table.watch.totals;
    if (!error && !mrt_table_update(&serve->table, rows, now))
        error = MORTISE_ENOMEM;
    serve->look_took = now - began;
    serve->looks++;
    snprintf(serve->error, sizeof serve->error, "%s", error ? describe(error) : "");
    if (error) {
        serve->failed_looks++;
        count_error(serve, error);
    }
    add_sample(serve, error != 0, &before);
}

static void look(struct mrt_serve *serve)
{
    struct mrt_rows rows = {.rows = NULL};
    struct mrt_counted counted;
    pthread_mutex_unlock(&serve->mutex);
    bool agent_up = *serve->agent && mrt_counted_read(serve->agent, &counted);
    mrt_time began = mrt_time_now();
    int error = mrt_rows_read(serve->client, NULL, &rows);
    pthread_mutex_lock(&serve->mutex);
    serve->agent_up = agent_up;
    if (agent_up)
        serve->counted = counted;
    take_in(serve, &rows, error, began);
    mrt_rows_free(&rows);
}

/* -------------------------------------------------------------------- jobs */

static unsigned status_of(int error)
{
    switch (mortise_error_kind_of(error)) {
    case MORTISE_KIND_NONE:
        return 200;
    case MORTISE_KIND_DENIED:
        return 403;
    case MORTISE_KIND_CONFIG:
        return 501;
    case MORTISE_KIND_USAGE:
        return error == MORTISE_ENOTHELD ? 409 : 400;
    default:
        return 503;
    }
}

static void answer_job(struct mrt_serve *serve, struct mrt_serve_job *job, unsigned status,
                       const char *text)
{
    static const char done[] = "{\"done\": true}\n";
    struct mrt_http_answer answer = {
        .status = status, .type = "application/json", .text = done, .size = sizeof done - 1};
    if (status != 200)
        mrt_serve_refuse(&answer, status, text);
    if (job->exchange)
        serve->http_ops->answer(job->exchange, &answer);
    job->exchange = NULL;
}

/* Whether the ticket held when it was last seen. */
static bool held(const struct mrt_serve *serve, const struct mrt_serve_job *job)
{
    const struct mrt_watch_lock *lock = mrt_watch_find(&serve->table.watch, job->name);
    const struct mrt_watch_ticket *ticket = lock ? lock->tickets : NULL;
    for (; ticket; ticket = ticket->hh.next)
        if (ticket->fence == job->fence && ticket->phase == MRT_WATCH_HOLDS)
            return true;
    return false;
}

static void do_job(struct mrt_serve *serve, struct mrt_serve_job *job)
{
    serve->running = job;
    pthread_mutex_unlock(&serve->mutex);
    int error =
        (job->breaks ? mortise_break : mortise_revoke)(serve->client, job->name, job->fence);
    char text[512];
    snprintf(text, sizeof text, "%s", error ? describe(error) : "");
    pthread_mutex_lock(&serve->mutex);
    serve->running = NULL;
    serve->changes[job->breaks][!error]++;
    if (error)
        count_error(serve, error);
    else if (job->breaks && held(serve, job))
        serve->losses++;
    answer_job(serve, job, status_of(error), text);
    free(job);
}

void mrt_serve_add_job(struct mrt_serve *serve, struct mrt_serve_job *job)
{
    TAILQ_INSERT_TAIL(&serve->jobs, job, link);
    pthread_cond_signal(&serve->wake);
}

void mrt_serve_end_jobs(struct mrt_serve *serve)
{
    static const char ended[] = "shutting down; the request may or may not have been executed";
    struct mrt_serve_job *job;
    while ((job = TAILQ_FIRST(&serve->jobs)) != NULL) {
        TAILQ_REMOVE(&serve->jobs, job, link);
        answer_job(serve, job, 503, "shutting down; the request was not executed");
        free(job);
    }
    if (serve->running)
        answer_job(serve, serve->running, 503, ended);
}

/* ------------------------------------------------------------------ thread */

static void sleep_until(struct mrt_serve *serve, mrt_time until)
{
    struct timespec at;
    mrt_time left = until - mrt_time_now();
    if (left <= 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &at);
    mrt_time end = mrt_time_add(at.tv_sec * MRT_SECOND + at.tv_nsec, left);
    at.tv_sec = (time_t)(end / MRT_SECOND);
    at.tv_nsec = (long)(end % MRT_SECOND);
    pthread_cond_timedwait(&serve->wake, &serve->mutex, &at);
}

void *mrt_serve_look(void *argument)
{
    struct mrt_serve *serve = argument;
    struct mrt_serve_job *job;
    mrt_time next = mrt_time_now();
    pthread_mutex_lock(&serve->mutex);
    while (!serve->ending) {
        if ((job = TAILQ_FIRST(&serve->jobs)) != NULL) {
            TAILQ_REMOVE(&serve->jobs, job, link);
            do_job(serve, job);
            next = mrt_time_now();
        } else if (mrt_time_now() >= next) {
            next = mrt_time_add(mrt_time_now(), serve->interval);
            look(serve);
        } else {
            sleep_until(serve, next);
        }
    }
    pthread_mutex_unlock(&serve->mutex);
    return NULL;
}
