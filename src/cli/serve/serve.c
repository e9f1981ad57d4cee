/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise serve: a page that shows the locks, the same as JSON, and metrics for Prometheus.
 *
 * Faulty options are refused before anything is opened: an address that others can reach, and
 * changes, need a token of the operator's. Otherwise mortise makes one, since every user of this
 * machine can reach its addresses. It is printed as the part of the page's address that a browser
 * does not send. The server ends at a signal, immediately, whatever the store is doing: it
 * holds nothing.
 */
#include "cli/serve/serve.h"

#include "store/module.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LISTEN_STANDARD "127.0.0.1:7117"
#define CONNECTIONS_MAX 128
#define REQUEST_SECONDS 30
#define STRANGER_SECONDS 5
#define IDLE_SECONDS 10
#define SERIES_STANDARD 50
#define SERIES_MAX 1000
#define END_PATIENCE_MS 200

enum { LISTEN = MRT_OPTION_OWN, INTERVAL, TOKEN_FILE, NO_TOKEN, ALLOW_CHANGES, HOST, METRIC_LOCKS };

static const struct mrt_flag flags[] = {
    {LISTEN, "listen", "ADDRESS:PORT", "the address to listen on; port 0: any", LISTEN_STANDARD, 0},
    {INTERVAL, "interval", "D", "the time between two reads of the store,\nat least 100ms", "1s",
     0},
    {TOKEN_FILE, "token-file", "FILE", "a file with the secret that clients send", NULL, 0},
    {NO_TOKEN, "no-token", NULL, "show the locks to all users of this machine", NULL,
     MRT_FLAG_ONCE},
    {ALLOW_CHANGES, "allow-changes", NULL, "a client with the token may revoke and break", NULL,
     MRT_FLAG_ONCE},
    {HOST, "host", "NAME", "a name of this host in browsers' addresses;\nmay be repeated", NULL,
     MRT_FLAG_ONCE},
    {METRIC_LOCKS, "metric-locks", "N", "give only the first N locks metrics of\ntheir own", "50",
     0},
};

const struct mrt_subcommand mrt_serve_subcommand = {
    .name = "serve",
    .summary = "show the locks in a browser, and metrics",
    .operands = "",
    .about = "Serves a page with all locks, their queues and how they change, the same as JSON\n"
             "under /api/, and metrics for Prometheus under /metrics. Nothing can be changed\n"
             "without --allow-changes. Prints its address, and serves until a signal ends it.\n",
    .notes =
        "Clients send a token with each request, except for the empty page. It is read from\n"
        "--token-file, which only its owner may read, or from MORTISE_SERVE_TOKEN, and has 16\n"
        "to 256 characters. Without either, serve makes a token and prints it in the address.\n"
        "To listen on an address that other hosts reach, or with --allow-changes, give one.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_serve,
};

/* No outside fetch, no script or style but ours, no frame around us. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     "require-trusted-types-for 'script'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
    {NULL, NULL},
};

/* The values of the options. */
struct plan {
    struct mrt_serve_address address;
    const char *listen, *token_file;
    struct mrt_serve *serve;
    bool no_token;
    bool done; /* an option such as --help has ended the command */
};

/* ------------------------------------------------------------------ options */

static int add_host(struct plan *plan)
{
    if (plan->serve->host_count == MRT_SERVE_HOSTS_MAX)
        return mrt_cli_fail(MRT_EXIT_USAGE, "more than %d times --host", MRT_SERVE_HOSTS_MAX);
    plan->serve->hosts[plan->serve->host_count++] = optarg;
    return 0;
}

static int take_option(struct mrt_cli *cli, int option, struct plan *plan)
{
    struct mrt_serve *serve = plan->serve;
    int64_t number;
    if (option == LISTEN) {
        plan->listen = optarg;
        if (!mrt_serve_parse_address(optarg, &plan->address))
            return mrt_cli_fail_value(cli, "ADDRESS:PORT, as 127.0.0.1:80 or [::1]:80");
    } else if (option == INTERVAL) {
        if (!mrt_cli_duration(optarg, &serve->interval) || serve->interval < 100 * MRT_MILLISECOND)
            return mrt_cli_fail_value(cli, "a duration of 100ms or more");
    } else if (option == METRIC_LOCKS) {
        if (!mrt_cli_number(optarg, 0, SERIES_MAX, &number))
            return mrt_cli_fail_value(cli, "a number from 0 to 1000");
        serve->own_series = (size_t)number;
    } else if (option == HOST) {
        return add_host(plan);
    } else if (option == TOKEN_FILE) {
        plan->token_file = optarg;
    } else if (option == NO_TOKEN) {
        plan->no_token = true;
    } else {
        serve->allow_changes = true;
    }
    return 0;
}

static int check_plan(const struct plan *plan)
{
    struct mrt_serve *serve = plan->serve;
    if (*serve->token && plan->no_token)
        return mrt_cli_fail(MRT_EXIT_USAGE, "--no-token beside a token: leave one of them out");
    if (*serve->token)
        return 0;
    if (!plan->address.loopback)
        return mrt_cli_fail(MRT_EXIT_CONFIG,
                            "%s is reached from elsewhere, which needs a token; see --help",
                            plan->listen);
    if (serve->allow_changes)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "--allow-changes needs a token; see --help");
    if (!plan->no_token && !mrt_serve_make_token(serve))
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "no random number for a token: %s", strerror(errno));
    return 0;
}

static int make_plan(struct mrt_cli *cli, int argc, char **argv, struct plan *plan)
{
    int option, code;
    mrt_serve_parse_address(plan->listen, &plan->address);
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        plan->done = option == MRT_OPTION_STOP;
        if (plan->done)
            return cli->exit_code;
        code = take_option(cli, option, plan);
        if (code)
            return code;
    }
    if (optind < argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "serve takes no names; \"%.64s\" is too much",
                            argv[optind]);
    code = mrt_serve_read_token(plan->serve, plan->token_file);
    return code ? code : check_plan(plan);
}

/* ------------------------------------------------------------- start and end */

static int load_server(struct mrt_serve *serve)
{
    union {
        void *symbol;
        mrt_http_entry *call;
    } entry;
    int error = mrt_module_open("mortise-http.so", "web server", MRT_HTTP_ENTRY, &entry.symbol);
    if (!error) {
        serve->http_ops = entry.call();
        if (strcmp(serve->http_ops->version, MORTISE_VERSION) != 0)
            error = mrt_module_other_version("mortise-http.so");
    }
    return error ? mrt_cli_fail_error(NULL, error) : 0;
}

static void init(struct mrt_serve *serve)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&serve->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&serve->mutex, NULL);
    TAILQ_INIT(&serve->jobs);
    mrt_table_init(&serve->table, serve->own_series);
    serve->started_wall_ms = mrt_cli_wall_ms();
    serve->can.size = sizeof serve->can;
    mortise_get_capabilities(serve->client, &serve->can);
}

static void fini(struct mrt_serve *serve)
{
    mrt_table_fini(&serve->table);
    pthread_mutex_destroy(&serve->mutex);
    pthread_cond_destroy(&serve->wake);
    mortise_close(serve->client); /* nothing was held */
}

static void wait_for_signal(const struct mrt_serve *serve, const sigset_t *signals)
{
    const struct timespec second = {.tv_sec = 1};
    while (sigtimedwait(signals, NULL, &second) < 0)
        serve->http_ops->cut_slow(serve->http);
}

/* The looking thread may be waiting for a store that does not answer. */
static bool join(pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += END_PATIENCE_MS * MRT_MILLISECOND;
    until.tv_sec += until.tv_nsec / MRT_SECOND;
    until.tv_nsec %= MRT_SECOND;
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

static void end(struct mrt_serve *serve, pthread_t looking)
{
    pthread_mutex_lock(&serve->mutex);
    serve->ending = true;
    mrt_serve_end_jobs(serve);
    pthread_cond_signal(&serve->wake);
    pthread_mutex_unlock(&serve->mutex);
    serve->http_ops->stop(serve->http);
    if (!join(looking))
        _exit(MRT_EXIT_OK); /* it may leave only a session that holds nothing */
}

/* Serves until a signal, and closes the listener: 0 or an exit code. */
static int run(struct mrt_serve *serve, int listener, const char *url)
{
    pthread_t looking;
    sigset_t signals;
    struct mrt_http_options options = {.listener = listener,
                                       .connections_max = CONNECTIONS_MAX,
                                       .request_seconds = REQUEST_SECONDS,
                                       .stranger_seconds = *serve->token ? STRANGER_SECONDS : 0,
                                       .idle_seconds = IDLE_SECONDS,
                                       .headers = headers,
                                       .handler = mrt_serve_handle,
                                       .argument = serve};
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* of all threads to come */
    serve->http = serve->http_ops->start(&options);
    if (!serve->http) {
        close(listener);
        return mrt_cli_fail(MRT_EXIT_FAILED, "the web server does not start: %s", strerror(errno));
    }
    errno = pthread_create(&looking, NULL, mrt_serve_look, serve);
    if (errno) {
        serve->http_ops->stop(serve->http);
        return mrt_cli_fail(MRT_EXIT_FAILED, "no thread: %s", strerror(errno));
    }
    if (serve->is_token_made)
        printf("%s#token=%s\n", url, serve->token);
    else
        printf("%s\n", url);
    int code = mrt_cli_end_output();
    if (!code)
        wait_for_signal(serve, &signals);
    end(serve, looking);
    return code;
}

/* Opens the store and asks it once, so that a wrong address is said at once: 0 or an exit code. A
   store that is away may come: the page shows until then that it does not answer. */
static int open_store(const struct mrt_cli *cli, mortise_client **client)
{
    struct mrt_rows rows = {.rows = NULL};
    int code = mrt_cli_open(cli, 0, client);
    if (code)
        return code;
    int error = mrt_rows_read(*client, NULL, &rows);
    mrt_rows_free(&rows);
    if (mortise_error_kind_of(error) == MORTISE_KIND_RETRY)
        mrt_cli_say("warning: %s; trying again",
                    *mortise_error_detail() ? mortise_error_detail() : mortise_error_text(error));
    else if (error)
        code = mrt_cli_fail_error(NULL, error);
    if (code)
        mortise_close(*client); /* nothing was held */
    return code;
}

int mrt_cli_serve(struct mrt_cli *cli, int argc, char **argv)
{
    static struct mrt_serve serve = {.interval = MRT_SECOND, .own_series = SERIES_STANDARD};
    struct plan plan = {.listen = LISTEN_STANDARD, .serve = &serve};
    char url[80];
    int listener;
    int code = make_plan(cli, argc, argv, &plan);
    if (code || plan.done)
        return code;
    if (!mrt_counted_socket(cli->url, serve.agent, sizeof serve.agent))
        serve.agent[0] = '\0';
    code = load_server(&serve);
    if (!code)
        code = mrt_serve_listen(&plan.address, plan.listen, &listener, url);
    if (code)
        return code;
    if (!plan.address.loopback)
        mrt_cli_say("warning: %s: the token and all that is shown cross the network unencrypted; "
                    "put a proxy with TLS in front",
                    plan.listen);
    signal(SIGPIPE, SIG_IGN);
    code = open_store(cli, &serve.client);
    if (code) {
        close(listener);
        return code;
    }
    init(&serve);
    code = run(&serve, listener, url);
    fini(&serve);
    return code;
}
