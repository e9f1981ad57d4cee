/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's thread: see worker.h. Its store is opened at the first operation, and again after
 * one that could not reach the store.
 *
 * Invariant: the thread touches an operation only between taking it from `begun` and putting it
 * into `done`, and never its peer.
 */
#include "agent/worker.h"

#include "base/uri.h"
#include "store/stores.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OPEN_TIMEOUT (5 * MRT_SECOND)

void mrt_row_free(struct mrt_row *row)
{
    free(row->owner);
    free(row);
}

void mrt_operation_free(struct mrt_operation *operation)
{
    struct mrt_row *row;
    while ((row = STAILQ_FIRST(&operation->rows))) {
        STAILQ_REMOVE_HEAD(&operation->rows, link);
        mrt_row_free(row);
    }
    mrt_access_free(operation->access);
    free(operation);
}

static void ignore_event(void *context, const struct mrt_event *event)
{
    (void)context;
    (void)event;
}

static void ignore_notify(void *context)
{
    (void)context;
}

static int open_store(struct mrt_worker *worker)
{
    const struct mrt_sink sink = {ignore_event, ignore_notify, worker};
    const struct mrt_store_options options = {
        .label = "agent", .timeout = OPEN_TIMEOUT, .find = mrt_store_find};
    return worker->store ? MORTISE_OK
                         : worker->ops->open(worker->uri, &options, sink, &worker->store);
}

/* Copies a text into the row: where it stands. */
static const char *copy_text(char **place, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = *place;
    memcpy(copy, text, size);
    *place += size;
    return copy;
}

struct mrt_row *mrt_row_new(const struct mrt_listed *listed)
{
    const char *label = listed->entry.label ? listed->entry.label : "";
    const char *kind = listed->entry.kind ? listed->entry.kind : "";
    size_t size =
        strlen(listed->entry.name) + strlen(kind) + strlen(label) + strlen(listed->claim) + 4;
    struct mrt_row *row = calloc(1, sizeof *row + size);
    if (!row)
        return NULL;
    char *place = row->texts;
    row->listed = *listed;
    row->listed.entry.name = copy_text(&place, listed->entry.name);
    row->listed.entry.kind = copy_text(&place, kind);
    row->listed.entry.label = copy_text(&place, label);
    row->listed.claim = copy_text(&place, listed->claim);
    return row;
}

static int keep_row(void *argument, const struct mrt_listed *listed)
{
    struct mrt_operation *operation = argument;
    struct mrt_row *row = mrt_row_new(listed);
    if (!row) {
        operation->error = MORTISE_ENOMEM;
        return 1;
    }
    STAILQ_INSERT_TAIL(&operation->rows, row, link);
    return 0;
}

static int call_store(struct mrt_worker *worker, struct mrt_operation *operation)
{
    const struct mrt_store_ops *ops = worker->ops;
    const char *name = operation->name;
    int error = open_store(worker);
    if (error != MORTISE_OK)
        return error;
    if (operation->kind == MRT_OPERATION_LIST) {
        error =
            ops->list(worker->store, operation->by_prefix ? NULL : name, name, keep_row, operation);
        return error ? error : operation->error;
    }
    if (operation->kind == MRT_OPERATION_REVOKE && ops->revoke)
        return ops->revoke(worker->store, name, operation->fence);
    if (operation->kind == MRT_OPERATION_BREAK && ops->break_ticket)
        return ops->break_ticket(worker->store, name, operation->fence);
    if (operation->kind == MRT_OPERATION_SERVER && ops->server)
        return ops->server(worker->store, operation->text, sizeof operation->text);
    return mrt_error(MORTISE_ENOTSUPPORTED, "the store behind the agent does not know this");
}

static void run(struct mrt_worker *worker, struct mrt_operation *operation)
{
    mrt_error_clear();
    int error = operation->kind == MRT_OPERATION_POLICY
                    ? mrt_access_read(operation->name, &operation->access)
                    : call_store(worker, operation);
    operation->error = error;
    if (error != MORTISE_OK)
        mrt_error_copy_detail(operation->text);
    if (worker->store && mortise_error_kind_of(error) == MORTISE_KIND_RETRY) {
        worker->ops->close(worker->store);
        worker->store = NULL;
    }
}

static void *work(void *argument)
{
    struct mrt_worker *worker = argument;
    struct mrt_operation *operation;
    pthread_mutex_lock(&worker->mutex);
    while (!worker->stop) {
        operation = STAILQ_FIRST(&worker->begun);
        if (!operation) {
            pthread_cond_wait(&worker->wake, &worker->mutex);
            continue;
        }
        STAILQ_REMOVE_HEAD(&worker->begun, link);
        pthread_mutex_unlock(&worker->mutex);
        run(worker, operation);
        pthread_mutex_lock(&worker->mutex);
        STAILQ_INSERT_TAIL(&worker->done, operation, link);
        eventfd_write(worker->fd, 1);
    }
    pthread_mutex_unlock(&worker->mutex);
    if (worker->store)
        worker->ops->close(worker->store);
    return NULL;
}

int mrt_worker_open(struct mrt_worker *worker, const char *url, const struct mrt_store_ops *ops)
{
    sigset_t all, before;
    *worker = (struct mrt_worker){.ops = ops, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    STAILQ_INIT(&worker->begun);
    STAILQ_INIT(&worker->done);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->wake, NULL);
    worker->uri = malloc(sizeof *worker->uri);
    if (worker->fd < 0 || !worker->uri)
        return mrt_error(MORTISE_ENOMEM, "nothing left for the agent's worker: %s",
                         strerror(errno));
    int error = mrt_uri_parse(mrt_uri_choose(url), worker->uri);
    if (error != MORTISE_OK)
        return error;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    worker->has_thread = pthread_create(&worker->thread, NULL, work, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return worker->has_thread ? MORTISE_OK
                              : mrt_error(MORTISE_ENOMEM, "cannot start the agent's worker");
}

void mrt_worker_close(struct mrt_worker *worker)
{
    struct mrt_operation *operation;
    if (worker->has_thread) {
        pthread_mutex_lock(&worker->mutex);
        worker->stop = true;
        pthread_cond_signal(&worker->wake);
        pthread_mutex_unlock(&worker->mutex);
        pthread_join(worker->thread, NULL);
    }
    STAILQ_CONCAT(&worker->done, &worker->begun);
    while ((operation = STAILQ_FIRST(&worker->done))) {
        STAILQ_REMOVE_HEAD(&worker->done, link);
        mrt_operation_free(operation);
    }
    if (worker->uri)
        explicit_bzero(worker->uri, sizeof *worker->uri);
    free(worker->uri);
    if (worker->fd >= 0)
        close(worker->fd);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->mutex);
}

void mrt_worker_begin(struct mrt_worker *worker, struct mrt_operation *operation)
{
    pthread_mutex_lock(&worker->mutex);
    STAILQ_INSERT_TAIL(&worker->begun, operation, link);
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
}

struct mrt_operation *mrt_worker_next(struct mrt_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    struct mrt_operation *operation = STAILQ_FIRST(&worker->done);
    eventfd_t count;
    if (operation)
        STAILQ_REMOVE_HEAD(&worker->done, link);
    else
        eventfd_read(worker->fd, &count);
    pthread_mutex_unlock(&worker->mutex);
    return operation;
}
