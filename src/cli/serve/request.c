/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request, and what answers it. Everything but the page's own files, which say nothing of
 * locks, needs the token if there is one; what changes anything needs besides that the server was
 * started for it, and that no other site's page asks.
 */
#include "cli/serve/serve.h"

#include "base/name.h"
#include "cli/frame/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_STANDARD 500
#define LIMIT_MOST 10000
#define FILTER_MAX 255

/* One request on its way. */
struct call {
    struct mrt_serve *serve;
    const struct mrt_http_request *request;
    struct mrt_http_answer *answer;
};

static const char *argument_of(const struct call *call, const char *name)
{
    return call->serve->http_ops->argument(call->request, name);
}

void mrt_serve_refuse(struct mrt_http_answer *answer, unsigned status, const char *text)
{
    FILE *out = open_memstream(&answer->body, &answer->size);
    answer->status = status;
    answer->type = "application/json";
    answer->text = NULL;
    if (!out) {
        answer->body = NULL;
        answer->size = 0;
        return;
    }
    fprintf(out, "{\"error\": ");
    mrt_json_string(out, text);
    fprintf(out, "}\n");
    fclose(out);
}

static void refuse(const struct call *call, unsigned status, const char *text)
{
    mrt_serve_refuse(call->answer, status, text);
}

/* ---------------------------------------------------------------- answers */

static void print_overview(const struct call *call, FILE *out)
{
    int64_t from = 0;
    const char *text = argument_of(call, "from");
    if (text && !mrt_cli_number(text, 0, INT64_MAX, &from))
        from = 0;
    mrt_serve_print_overview(call->serve, out, (uint64_t)from);
}

static void print_locks(const struct call *call, FILE *out)
{
    int64_t limit = LIMIT_STANDARD;
    enum mrt_table_order order = MRT_TABLE_WAIT;
    const char *filter = argument_of(call, "filter");
    const char *sort = argument_of(call, "sort");
    const char *most = argument_of(call, "limit");
    for (size_t i = 0; sort && i < MRT_TABLE_ORDERS; i++)
        if (strcmp(sort, mrt_table_orders[i]) == 0)
            order = (enum mrt_table_order)i;
    if (most && !mrt_cli_number(most, 0, LIMIT_MOST, &limit))
        limit = LIMIT_STANDARD;
    mrt_serve_print_locks(call->serve, out, order, filter ? filter : "", (size_t)limit);
}

static void print_lock(const struct call *call, FILE *out)
{
    mrt_serve_print_lock(call->serve, out, argument_of(call, "name"));
}

static void print_metrics(const struct call *call, FILE *out)
{
    mrt_serve_print_metrics(call->serve, out);
}

struct path {
    const char *path, *type;
    void (*print)(const struct call *call, FILE *out);
    bool needs_name;
};

static const struct path paths[] = {
    {"/api/overview", "application/json", print_overview, false},
    {"/api/locks", "application/json", print_locks, false},
    {"/api/lock", "application/json", print_lock, true},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", print_metrics, false},
};

static bool name_is_good(const struct call *call)
{
    const char *name = argument_of(call, "name");
    if (name && mrt_name_check(name) == MORTISE_OK)
        return true;
    refuse(call, 400, "name: not the name of a lock");
    return false;
}

static void answer_with(const struct call *call, const struct path *path)
{
    struct mrt_http_answer *answer = call->answer;
    if (path->needs_name && !name_is_good(call))
        return;
    FILE *out = open_memstream(&answer->body, &answer->size);
    if (!out) {
        refuse(call, 503, strerror(errno));
        return;
    }
    pthread_mutex_lock(&call->serve->mutex);
    path->print(call, out);
    pthread_mutex_unlock(&call->serve->mutex);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(answer->body);
        refuse(call, 503, "out of memory");
        return;
    }
    answer->status = 200;
    answer->type = path->type;
}

/* ---------------------------------------------------------------- changes */

/* True: the answer comes later. */
static bool add_job(const struct call *call, bool breaks, uint64_t fence)
{
    struct mrt_serve *serve = call->serve;
    struct mrt_serve_job *job = calloc(1, sizeof *job);
    if (!job) {
        refuse(call, 503, strerror(errno));
        return false;
    }
    job->exchange = call->request->exchange;
    job->breaks = breaks;
    job->fence = fence;
    snprintf(job->name, sizeof job->name, "%s", argument_of(call, "name"));
    pthread_mutex_lock(&serve->mutex);
    bool ending = serve->ending;
    if (!ending)
        mrt_serve_add_job(serve, job);
    pthread_mutex_unlock(&serve->mutex);
    if (!ending)
        return true;
    free(job);
    refuse(call, 503, "the server ends");
    return false;
}

/* True: the answer comes later. */
static bool change(const struct call *call, bool breaks)
{
    int64_t fence;
    const char *text = argument_of(call, "fence");
    if (!call->serve->allow_changes)
        refuse(call, 403, "read-only: not started with --allow-changes");
    else if (!mrt_serve_is_our_page(call->request))
        refuse(call, 403, "asked by a page of another site");
    else if (!name_is_good(call))
        return false;
    else if (!text || !mrt_cli_number(text, 1, INT64_MAX, &fence))
        refuse(call, 400, "fence: not the fence of a ticket");
    else
        return add_job(call, breaks, (uint64_t)fence);
    return false;
}

/* ------------------------------------------------------------------- files */

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {{".html", "text/html; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".js", "text/javascript; charset=utf-8"},
                                           {".svg", "image/svg+xml"}};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(ending, types[i][0]) == 0)
            return types[i][1];
    return "application/octet-stream";
}

/* False: there is no such file. */
static bool answer_file(const struct call *call)
{
    const char *name = call->request->path + 1;
    if (*name == '\0')
        name = "page.html";
    for (size_t i = 0; i < mrt_page_file_count; i++) {
        const struct mrt_page_file *file = &mrt_page_files[i];
        if (strcmp(file->name, name) != 0)
            continue;
        *call->answer = (struct mrt_http_answer){
            .status = 200, .type = type_of(name), .text = file->bytes, .size = file->size};
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ request */

/* Says why not, if not. */
static bool may_ask(const struct call *call)
{
    const struct mrt_http_request *request = call->request;
    if (request->site && strcmp(request->site, "cross-site") == 0) {
        refuse(call, 403, "asked by a page of another site");
        return false;
    }
    if (*call->serve->token && !mrt_serve_has_token(call->serve, request->authorization)) {
        refuse(call, 401, "needs the token: Authorization: Bearer TOKEN");
        call->answer->name = "WWW-Authenticate";
        call->answer->value = "Bearer realm=\"mortise\"";
        return false;
    }
    if (*call->serve->token)
        call->serve->http_ops->trust(request);
    return true;
}

static void refuse_method(const struct call *call, const char *allowed)
{
    refuse(call, 405, "no such method here");
    call->answer->name = "Allow";
    call->answer->value = allowed;
}

/* True: the answer comes later. */
static bool answer_change(const struct call *call, bool breaks)
{
    if (strcmp(call->request->method, "POST") == 0)
        return may_ask(call) && change(call, breaks);
    refuse_method(call, "POST");
    return false;
}

static void answer_read(const struct call *call)
{
    const char *method = call->request->method;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        refuse_method(call, "GET, HEAD");
        return;
    }
    if (answer_file(call))
        return;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(call->request->path, paths[i].path) == 0) {
            if (may_ask(call))
                answer_with(call, &paths[i]);
            return;
        }
    refuse(call, 404, "there is no such thing");
}

bool mrt_serve_handle(void *argument, const struct mrt_http_request *request,
                      struct mrt_http_answer *answer)
{
    struct call call = {argument, request, answer};
    const char *path = request->path;
    if (!mrt_serve_is_our_host(call.serve, request->host)) {
        refuse(&call, 421, "not the name of this host: see --host");
        return true;
    }
    bool breaks = strcmp(path, "/api/break") == 0;
    if (breaks || strcmp(path, "/api/revoke") == 0)
        return !answer_change(&call, breaks);
    answer_read(&call);
    return true;
}
