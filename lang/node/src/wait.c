/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that may wait for ever and that the library has only as blocking ones: several locks as
 * one, a change of permits. An adoption stands here too, which waits for the store alone.
 *
 * Each of the first two has a thread of its own while it lasts: on the pool, four of them would
 * keep all that a program reads and resolves from going on, and what they wait for as well.
 * Invariant: a client is closed by a job only when no such thread is inside it (lib/client.js ends
 * them, and waits); when the environment ends, mortise_close ends them, and join_threads waits for
 * the threads, so none is left to use what the environment frees.
 */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ----------------------------------------------------------------- threads */

static void delist(struct job *job)
{
    *job->link = job->next;
    if (job->next)
        job->next->link = job->link;
}

static void enlist(struct environment *environment, struct job *job)
{
    job->link = &environment->threads;
    job->next = environment->threads;
    if (job->next)
        job->next->link = &job->next;
    environment->threads = job;
}

static void *run_thread(void *data)
{
    struct job *job = data;
    job->error = job->run(job);
    if (job->error != MORTISE_OK)
        snprintf(job->detail, sizeof job->detail, "%s", mortise_error_detail());
    napi_call_threadsafe_function(job->end, job, napi_tsfn_nonblocking);
    return NULL;
}

static void end_thread(napi_env env, napi_value function, void *context, void *data)
{
    struct job *job = data;
    (void)function;
    (void)context;
    if (!env)
        return; /* join_threads has it */
    pthread_join(job->thread, NULL);
    delist(job);
    napi_release_threadsafe_function(job->end, napi_tsfn_release);
    settle_job(env, job);
}

napi_value start_thread(napi_env env, struct job *job)
{
    napi_value promise = NULL, name = make_text(env, "mortise");
    if (!name || !good(env, napi_create_promise(env, &job->deferred, &promise)) ||
        !good(env, napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, NULL,
                                                   end_thread, &job->end))) {
        free_job(job);
        return NULL;
    }
    if (pthread_create(&job->thread, NULL, run_thread, job) != 0) {
        napi_release_threadsafe_function(job->end, napi_tsfn_abort);
        free_job(job);
        return throw_error(env, MORTISE_ENOMEM, "no thread for this call: raise ulimit -u");
    }
    enlist(environment_of(env), job);
    return promise;
}

void join_threads(struct environment *environment)
{
    struct job *job;
    while ((job = environment->threads)) {
        pthread_join(job->thread, NULL);
        delist(job);
        free_job(job);
    }
}

/* -------------------------------------------------------- several locks as one */

/* Takes as many as the array has. */
static bool read_locks(napi_env env, napi_value array, struct job *job)
{
    uint32_t count = 0;
    if (!good(env, napi_get_array_length(env, array, &count)))
        return false;
    job->locks = calloc(count + 1, sizeof *job->locks);
    job->result = calloc(count + 1, sizeof(mortise_hold));
    job->size = count;
    if (!job->locks || !job->result) {
        throw_error(env, MORTISE_ENOMEM, "");
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        napi_value value;
        if (!good(env, napi_get_element(env, array, i, &value)) ||
            !read_lock(env, value, &job->locks[i]))
            return false;
    }
    return true;
}

static int run_all(struct job *job)
{
    return mortise_acquire_all(job->locks, job->size, (int64_t)job->numbers[0], job->result);
}

static napi_value made_hold(napi_env env, mortise_hold hold)
{
    napi_value object = NULL;
    if (good(env, napi_create_object(env, &object))) {
        set_property(env, object, "value", make_hold(env, hold));
        set_property(env, object, "fence", make_bigint(env, mortise_hold_fence(hold)));
    }
    return object;
}

static napi_value made_holds(napi_env env, struct job *job)
{
    const mortise_hold *holds = job->result;
    napi_value array = NULL;
    if (!good(env, napi_create_array_with_length(env, job->size, &array)))
        return NULL;
    for (size_t i = 0; i < job->size; i++)
        good(env, napi_set_element(env, array, (uint32_t)i, made_hold(env, holds[i])));
    return array;
}

/* acquireAll(locks, timeoutMs): the promise of their holds. The handles are no other call's. */
static napi_value acquire_all(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    int64_t timeout;
    if (!read_arguments(env, info, 2, &arguments) ||
        !read_number(env, arguments.values[1], &timeout))
        return NULL;
    struct job *job = make_job(NULL, run_all, made_holds);
    if (!job)
        return throw_error(env, MORTISE_ENOMEM, "");
    job->numbers[0] = (uint64_t)timeout;
    if (read_locks(env, arguments.values[0], job))
        return start_thread(env, job);
    free_job(job);
    return NULL;
}

/* cancelWaiters(lock): ends what waits by this handle now. */
static napi_value cancel_waiters(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    mortise_lock *lock;
    return read_arguments(env, info, 1, &arguments) && read_lock(env, arguments.values[0], &lock)
               ? settle(env, mortise_cancel_waiters(lock))
               : NULL;
}

/* ------------------------------------------------------------------- permits */

/* f(client, lock, ...) */
static struct job *begin(napi_env env, napi_callback_info info, size_t count, job_work run,
                         job_done done, struct argument *arguments)
{
    struct client *client;
    mortise_lock *lock;
    if (!read_arguments(env, info, count, arguments) ||
        !read_client(env, arguments->values[0], &client) ||
        !read_lock(env, arguments->values[1], &lock))
        return NULL;
    struct job *job = make_job(client, run, done);
    if (job)
        job->handle = lock;
    else
        throw_error(env, MORTISE_ENOMEM, "");
    return job;
}

static int run_get_permits(struct job *job)
{
    uint32_t permits = 0;
    int error = mortise_semaphore_get_permits(job->handle, &permits);
    job->numbers[0] = permits;
    return error;
}

static napi_value made_number(napi_env env, struct job *job)
{
    napi_value value = NULL;
    good(env, napi_create_double(env, (double)job->numbers[0], &value));
    return value;
}

static napi_value get_permits(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct job *job = begin(env, info, 2, run_get_permits, made_number, &arguments);
    return job ? start_job(env, job) : NULL;
}

static int run_set_permits(struct job *job)
{
    return mortise_semaphore_set_permits(job->handle, (uint32_t)job->numbers[0],
                                         (int64_t)job->numbers[1]);
}

/* setPermits(client, lock, permits, timeoutMs) */
static napi_value set_permits(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    int64_t permits, timeout;
    struct job *job = begin(env, info, 4, run_set_permits, NULL, &arguments);
    if (!job)
        return NULL;
    if (read_number(env, arguments.values[2], &permits) &&
        read_number(env, arguments.values[3], &timeout)) {
        job->numbers[0] = (uint64_t)permits;
        job->numbers[1] = (uint64_t)timeout;
        return start_thread(env, job);
    }
    free_job(job);
    return NULL;
}

/* interrupt(client): ends the calls in which threads wait on it now. */
static napi_value interrupt(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct client *client;
    if (!read_arguments(env, info, 1, &arguments) ||
        !read_client(env, arguments.values[0], &client))
        return NULL;
    int fd = mortise_interrupt_fd(client->client);
    if (fd < 0)
        return settle(env, fd);
    if (write(fd, "x", 1) < 0) {
        /* The pipe is full: they are being ended. */
    }
    return NULL;
}

/* ----------------------------------------------------------------- adoption */

static int run_adopt(struct job *job)
{
    return mortise_adopt(job->handle, job->text, &job->hold);
}

static napi_value made_adopted(napi_env env, struct job *job)
{
    return made_hold(env, job->hold);
}

/* adopt(client, lock, token): the promise of the hold. */
static napi_value adopt(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    struct job *job = begin(env, info, 3, run_adopt, made_adopted, &arguments);
    if (!job)
        return NULL;
    if (read_text(env, arguments.values[2], &job->text))
        return start_job(env, job);
    free_job(job);
    return NULL;
}

const struct exported wait_functions[] = {{"acquireAll", acquire_all},
                                          {"cancelWaiters", cancel_waiters},
                                          {"getPermits", get_permits},
                                          {"setPermits", set_permits},
                                          {"interrupt", interrupt},
                                          {"adopt", adopt},
                                          {NULL, NULL}};
