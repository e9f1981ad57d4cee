/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native half of the Node package: the library's calls, one function each, for lib/, which
 * has the classes, the options and the promises of acquires.
 *
 * Threads. JavaScript's thread never waits. Calls of the library that do not wait for a store are
 * made there. Those that do (open, close, cells, lists) are jobs on libuv's pool, each with a
 * promise; all of them end by the client's timeout. An acquire or a campaign may wait for ever, so
 * it takes no thread: the library calls back on the client's thread, which posts a message. Several
 * locks as one and a change of permits may wait for ever too, and the library has only blocking
 * calls for them: each of those has a thread of its own while it lasts (wait.c).
 *
 * Invariant: a client is closed only after its jobs have ended (lib/client.js waits for them), and
 * what points into a closed client is not used: each function takes the client, and checks it.
 * When the environment ends, its clients are closed, so their locks pass: by a hook of a worker's,
 * and by lib/native.js for process.exit(), which runs no hooks.
 */
#include "addon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- arguments */

bool good(napi_env env, napi_status status)
{
    bool pending = false;
    if (status == napi_ok)
        return true;
    napi_is_exception_pending(env, &pending);
    if (!pending)
        napi_throw_type_error(env, NULL, "mortise: an argument of another type");
    return false;
}

bool read_arguments(napi_env env, napi_callback_info info, size_t count, struct argument *arguments)
{
    *arguments = (struct argument){.count = sizeof arguments->values / sizeof arguments->values[0]};
    if (!good(env, napi_get_cb_info(env, info, &arguments->count, arguments->values, NULL, NULL)))
        return false;
    if (arguments->count >= count)
        return true;
    napi_throw_type_error(env, NULL, "mortise: an argument is missing");
    return false;
}

bool read_text(napi_env env, napi_value value, char **text)
{
    size_t size;
    napi_valuetype type;
    *text = NULL;
    if (!good(env, napi_typeof(env, value, &type)))
        return false;
    if (type == napi_undefined || type == napi_null)
        return true;
    if (!good(env, napi_get_value_string_utf8(env, value, NULL, 0, &size)))
        return false;
    *text = malloc(size + 1);
    if (!*text) {
        throw_error(env, MORTISE_ENOMEM, "");
        return false;
    }
    napi_get_value_string_utf8(env, value, *text, size + 1, &size);
    if (strlen(*text) == size)
        return true;
    free(*text);
    *text = NULL;
    throw_error(env, MORTISE_EINVALID, "a text with a NUL in it");
    return false;
}

bool read_number(napi_env env, napi_value value, int64_t *number)
{
    return good(env, napi_get_value_int64(env, value, number));
}

bool read_fence(napi_env env, napi_value value, uint64_t *number)
{
    bool lossless = false;
    if (!good(env, napi_get_value_bigint_uint64(env, value, number, &lossless)))
        return false;
    if (!lossless)
        napi_throw_range_error(env, NULL,
                               "mortise: a fence or version is from 0n to 2n ** 64n - 1n");
    return lossless;
}

bool read_bytes(napi_env env, napi_value value, unsigned char **bytes, size_t *size)
{
    void *data;
    if (!good(env, napi_get_buffer_info(env, value, &data, size)))
        return false;
    *bytes = malloc(*size + 1);
    if (!*bytes) {
        throw_error(env, MORTISE_ENOMEM, "");
        return false;
    }
    if (*size > 0)
        memcpy(*bytes, data, *size);
    return true;
}

bool read_handle(napi_env env, napi_value value, const napi_type_tag *tag, void **handle)
{
    napi_valuetype type;
    bool tagged = false;
    if (!good(env, napi_typeof(env, value, &type)))
        return false;
    if (type == napi_external)
        napi_check_object_type_tag(env, value, tag, &tagged);
    if (!tagged) {
        napi_throw_type_error(env, NULL, "mortise: a handle of another kind");
        return false;
    }
    return good(env, napi_get_value_external(env, value, handle));
}

napi_value make_handle(napi_env env, void *handle, const napi_type_tag *tag, napi_finalize finalize)
{
    napi_value value;
    if (!good(env, napi_create_external(env, handle, finalize, NULL, &value)) ||
        !good(env, napi_type_tag_object(env, value, tag)))
        return NULL;
    return value;
}

int64_t deadline_of(int64_t timeout_ms)
{
    int64_t now = mortise_now_ns();
    return timeout_ms < 0 || timeout_ms > (INT64_MAX - now) / 1000000 ? INT64_MAX
                                                                      : now + timeout_ms * 1000000;
}

/* ----------------------------------------------------------------- results */

napi_value make_text(napi_env env, const char *text)
{
    napi_value value = NULL;
    good(env, napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value));
    return value;
}

napi_value make_bigint(napi_env env, uint64_t number)
{
    napi_value value = NULL;
    good(env, napi_create_bigint_uint64(env, number, &value));
    return value;
}

void set_property(napi_env env, napi_value object, const char *name, napi_value value)
{
    if (value)
        good(env, napi_set_named_property(env, object, name, value));
}

void set_number(napi_env env, napi_value object, const char *name, double number)
{
    napi_value value = NULL;
    good(env, napi_create_double(env, number, &value));
    set_property(env, object, name, value);
}

/* As "timed out before the lock was granted (held by ...)", with the code's name and number. */
napi_value make_error(napi_env env, int error, const char *detail)
{
    char text[DETAIL_SIZE + 128];
    napi_value value = NULL, code = make_text(env, mortise_error_name(error));
    snprintf(text, sizeof text, *detail ? "%s (%s)" : "%s", mortise_error_text(error), detail);
    good(env, napi_create_error(env, code, make_text(env, text), &value));
    set_number(env, value, "number", error);
    set_number(env, value, "kind", mortise_error_kind_of(error));
    set_property(env, value, "detail", make_text(env, detail));
    return value;
}

napi_value throw_error(napi_env env, int error, const char *detail)
{
    napi_value value = make_error(env, error, detail);
    if (value)
        napi_throw(env, value);
    return NULL;
}

napi_value settle(napi_env env, int error)
{
    return error == MORTISE_OK ? NULL : throw_error(env, error, mortise_error_detail());
}

/* -------------------------------------------------------------------- jobs */

struct job *make_job(struct client *client, job_work run, job_done done)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->client = client;
    job->library = client ? client->client : NULL;
    job->run = run;
    job->done = done;
    return job;
}

void free_job(struct job *job)
{
    if (!job)
        return;
    free(job->text);
    free(job->label);
    free(job->value);
    free(job->locks);
    free(job->result);
    free(job);
}

static void execute(napi_env env, void *data)
{
    struct job *job = data;
    (void)env;
    job->error = job->run(job);
    if (job->error != MORTISE_OK)
        snprintf(job->detail, sizeof job->detail, "%s", mortise_error_detail());
}

/* The token of a detach whose outcome is not known tells what has become of the lock. */
static napi_value made_error(napi_env env, const struct job *job)
{
    napi_value error = make_error(env, job->error, job->detail);
    if (job->error == MORTISE_EUNKNOWN && *job->token)
        set_property(env, error, "token", make_text(env, job->token));
    return error;
}

void settle_job(napi_env env, struct job *job)
{
    napi_value value = NULL;
    if (job->error != MORTISE_OK) {
        napi_reject_deferred(env, job->deferred, made_error(env, job));
    } else {
        if (job->done)
            value = job->done(env, job);
        if (!value)
            napi_get_undefined(env, &value);
        napi_resolve_deferred(env, job->deferred, value);
    }
    free_job(job);
}

static void complete(napi_env env, napi_status status, void *data)
{
    struct job *job = data;
    if (status != napi_ok && job->error == MORTISE_OK)
        job->error = MORTISE_ECANCELLED;
    napi_delete_async_work(env, job->work);
    settle_job(env, job);
}

napi_value start_job(napi_env env, struct job *job)
{
    napi_value promise = NULL, name = make_text(env, "mortise");
    if (name && good(env, napi_create_promise(env, &job->deferred, &promise)) &&
        good(env, napi_create_async_work(env, NULL, name, execute, complete, job, &job->work)) &&
        good(env, napi_queue_async_work(env, job->work)))
        return promise;
    free_job(job);
    return NULL;
}

/* ------------------------------------------------------------------ module */

void export_functions(napi_env env, napi_value exports, const struct exported *table)
{
    for (; table->name; table++) {
        napi_value value = NULL;
        good(env, napi_create_function(env, table->name, NAPI_AUTO_LENGTH, table->function, NULL,
                                       &value));
        set_property(env, exports, table->name, value);
    }
}

static napi_value version(napi_env env, napi_callback_info info)
{
    (void)info;
    return make_text(env, mortise_version());
}

static napi_value error_of(napi_env env, napi_callback_info info)
{
    struct argument arguments;
    int64_t error;
    if (!read_arguments(env, info, 1, &arguments) || !read_number(env, arguments.values[0], &error))
        return NULL;
    return make_error(env, (int)error, "");
}

static const struct exported own_functions[] = {
    {"version", version}, {"errorOf", error_of}, {NULL, NULL}};

struct environment *environment_of(napi_env env)
{
    void *environment = NULL;
    napi_get_instance_data(env, &environment);
    return environment;
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */)
{
    struct environment *environment = calloc(1, sizeof *environment);
    if (!environment || napi_set_instance_data(env, environment, NULL, NULL) != napi_ok ||
        napi_add_async_cleanup_hook(env, close_all, environment, NULL) != napi_ok) {
        free(environment);
        return throw_error(env, MORTISE_ENOMEM, "");
    }
    export_functions(env, exports, own_functions);
    export_functions(env, exports, client_functions);
    export_functions(env, exports, lock_functions);
    export_functions(env, exports, hold_functions);
    export_functions(env, exports, wait_functions);
    export_functions(env, exports, store_functions);
    export_functions(env, exports, election_functions);
    return exports;
}
