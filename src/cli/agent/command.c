/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise agent: takes locks for all processes of a host by one session, and gives them to clients
 * over a local socket (src/agent).
 *
 * The socket's path is the host's for root, and the user's for others; there is no order of search,
 * because a client and an agent that disagree about the place would be two lock spaces.
 *
 * Threads: one, and those of the store.
 */
#include "agent/agent.h"
#include "cli/agent/service.h"
#include "cli/frame/cli.h"
#include "store/agent/wire.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DRAIN_STANDARD (10 * MRT_SECOND)
#define OPEN_TIMEOUT (5 * MRT_SECOND)

enum { STORE = MRT_OPTION_OWN, SOCKET, POLICY, DRAIN };

static const struct mrt_flag flags[] = {
    {STORE, "store", "URL", "where the locks are; the same as --url", NULL, 0},
    {SOCKET, "socket", "PATH", "where clients connect", NULL, 0},
    {POLICY, "policy", "FILE", "which other users may do what", NULL, 0},
    {DRAIN, "drain", "D", "at a signal: how long holds may go on", "10s", 0},
};

const struct mrt_subcommand mrt_agent_subcommand = {
    .name = "agent",
    .summary = "serve the locks of a store to the processes of this host",
    .operands = "",
    .about = "Takes locks at the store for all processes of this host, by one session, and gives\n"
             "them to clients of its socket, which speak the protocol of Redis. A lock lives as\n"
             "long as its connection: when a process is killed, its locks are free immediately.\n",
    .notes = "The socket is " MRT_AGENT_HOST_SOCKET " for root, and mortise/agent.sock in\n"
             "$XDG_RUNTIME_DIR for others. Its own user and root may connect, and those\n"
             "whom the policy names, as: allow user www acquire on www/\n"
             "    $ redis-cli -s $XDG_RUNTIME_DIR/mortise/agent.sock\n"
             "    > LOCK deploy 5000        waits at most 5,000 ms (-1: for ever, 0: not)\n"
             "    (integer) 4711            the fence\n"
             "    > HELD deploy             milliseconds left; 0: lost\n"
             "    > UNLOCK deploy 4711\n"
             "Prints the store and the socket once it serves, and serves until SIGTERM or SIGINT.\n"
             "At SIGHUP it reads the policy again.\n",
    .flags = flags,
    .count = sizeof flags / sizeof flags[0],
    .function = mrt_cli_agent,
};

static int take_option(struct mrt_cli *cli, int option, struct mrt_agent_options *options)
{
    if (option == STORE) {
        cli->url = optarg;
        snprintf(cli->url_origin, sizeof cli->url_origin, "--store");
    } else if (option == SOCKET) {
        options->socket = optarg;
    } else if (option == POLICY) {
        options->policy = optarg;
    } else if (!mrt_cli_duration(optarg, &options->drain)) {
        return mrt_cli_fail_value(cli, "a duration, as 10s or 5m");
    }
    return 0;
}

static void print_ready(void *argument, const char *store)
{
    const struct mrt_agent_options *options = argument;
    printf("%s at %s\n", store, options->socket);
    fflush(stdout);
    mrt_service_ready();
}

static void log_line(void *argument, const char *text)
{
    (void)argument;
    mrt_cli_say("agent: %s", text);
}

/* Each client is a descriptor: as many as the system gives. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A descriptor that is readable once a signal has come; `second` may be the same one. */
static int open_signals(int first, int second)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, first);
    sigaddset(&signals, second);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* of all threads to come */
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int serve(struct mrt_agent_options *options)
{
    options->stop = open_signals(SIGINT, SIGTERM);
    options->renew = open_signals(SIGHUP, SIGHUP);
    if (options->stop < 0 || options->renew < 0)
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "no descriptor for signals: %s", strerror(errno));
    raise_limit();
    options->ready = print_ready;
    options->log = log_line;
    options->argument = options;
    int error = mrt_agent_run(options);
    close(options->stop);
    close(options->renew);
    return error ? mrt_cli_fail_error(NULL, error) : MRT_EXIT_OK;
}

/* The agent's place, without an order of search; false: none is known. */
static bool standard_socket(char *path, size_t size)
{
    if (geteuid() != 0)
        return mrt_agent_user_socket(path, size);
    snprintf(path, size, MRT_AGENT_HOST_SOCKET);
    return true;
}

/* The socket that systemd has opened, or the one that was named, or this user's: 0 or an exit code.
 */
static int choose_socket(struct mrt_agent_options *options, char *path, size_t size)
{
    const char *named = options->socket;
    options->listener = mrt_service_listener();
    if (options->listener == -2)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "systemd gives several sockets; an agent has one");
    if (!named || options->listener >= 0)
        options->socket = path;
    if (options->listener >= 0 && !mrt_service_path(options->listener, path, size))
        return mrt_cli_fail(MRT_EXIT_CONFIG,
                            "the socket of systemd has no path in the file system");
    if (options->listener >= 0 && named && strcmp(named, path) != 0)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "the socket of systemd is %s, and --socket %s", path,
                            named);
    if (options->listener < 0 && !named && !standard_socket(path, size))
        return mrt_cli_fail(MRT_EXIT_CONFIG,
                            "no place for the socket: set XDG_RUNTIME_DIR, or give --socket PATH");
    return 0;
}

int mrt_cli_agent(struct mrt_cli *cli, int argc, char **argv)
{
    struct mrt_agent_options options = {.drain = DRAIN_STANDARD, .timeout = OPEN_TIMEOUT};
    char path[256];
    int option, code = 0;
    while (!code && (option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        code = take_option(cli, option, &options);
    }
    if (code)
        return code;
    if (optind < argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "agent takes no names; \"%.64s\" is too much",
                            argv[optind]);
    if (cli->url && !*cli->url)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s is empty", cli->url_origin);
    code = choose_socket(&options, path, sizeof path);
    options.url = cli->url;
    return code ? code : serve(&options);
}
