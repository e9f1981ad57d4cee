/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise doctor: whether the store answers, what it can and cannot promise, each setting and where
 * it came from, and the faults of any of these. The most important finding is first, and the
 * verdict last.
 *
 * The store is used as a lock uses it: a mutex of our own name is acquired, looked at and
 * released. A message that the library logs meanwhile, as of access rights, is a finding. No
 * value that is a secret is shown.
 */
#include "cli/agent/service.h"
#include "cli/frame/cli.h"
#include "cli/observe/rows.h"
#include "cli/run/locks.h"
#include "store/agent/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define FINDINGS_MAX 16
#define CLOCK_TOLERANCE_MS 10000
/* The last part of an SQL server's text. */

const struct mrt_subcommand mrt_doctor_subcommand = {
    .name = "doctor",
    .summary = "check settings, store and clocks",
    .operands = "",
    .about = "Prints whether the store answers, what it promises, each setting that is not at its\n"
             "default and where it came from, and a verdict. Waits for the store no longer than\n"
             "the connect= of its URL. Ends with 0 if all is well, 1 if something is wrong, or\n"
             "what any use of the store would end with: 69, 77, 78.\n",
    .function = mrt_cli_doctor,
};

struct doctor {
    struct mrt_cli *cli;
    mortise_client *client;
    char address[512]; /* of the store */
    char findings[FINDINGS_MAX][512];
    int count;
};

__attribute__((format(printf, 2, 3))) static void find(struct doctor *doctor, const char *format,
                                                       ...)
{
    va_list arguments;
    if (doctor->count == FINDINGS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(doctor->findings[doctor->count++], sizeof doctor->findings[0], format, arguments);
    va_end(arguments);
}

static void on_log(void *argument, const char *message)
{
    find(argument, "%s", message);
}

/* -------------------------------------------------------------- settings */

static void print_setting(const char *name, const char *value, const char *origin)
{
    char shown[512];
    mrt_cli_escape(value, shown, sizeof shown);
    printf("  %-20s %-30s %s\n", name, shown, origin);
}

static void show_setting(const struct mrt_flag *flag)
{
    struct mrt_setting setting;
    if (flag->traits & MRT_FLAG_ONCE || flag->id == MRT_OPTION_URL)
        return;
    if (mrt_settings_find(flag->name, &setting))
        print_setting(flag->name, setting.value, setting.origin);
}

/* Whether an earlier subcommand has an option of that name. */
static bool was_shown(mrt_subcommands *first, mrt_subcommands *row, const char *name)
{
    for (; first < row; first++)
        for (size_t i = 0; i < (*first)->count; i++)
            if (strcmp((*first)->flags[i].name, name) == 0)
                return true;
    return false;
}

static void show_url(const struct mrt_cli *cli)
{
    char clean[512];
    if (!cli->url) {
        print_setting("url", "the file of this user", "default");
        return;
    }
    mrt_cli_redact(cli->url, clean, sizeof clean);
    print_setting("url", clean, cli->url_origin);
}

static void show_file(const char *path)
{
    printf("  %s\n", path);
}

static void show_settings(const struct mrt_cli *cli)
{
    printf("settings (all others are at their defaults)\n");
    show_url(cli);
    for (mrt_subcommands *row = cli->subcommands; *row; row++)
        for (size_t i = 0; i < (*row)->count; i++)
            if (!was_shown(cli->subcommands, row, (*row)->flags[i].name))
                show_setting(&(*row)->flags[i]);
    for (const char *const *secret = mrt_cli_secrets; *secret; secret++)
        if (secure_getenv(*secret))
            print_setting("credentials", "(not shown)", *secret);
    printf("files of settings\n");
    mrt_settings_files(show_file);
}

/* ----------------------------------------------------------------- store */

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND;
}

static int note_since(void *argument, const mortise_entry *entry)
{
    *(int64_t *)argument = entry->since_wall_ms;
    return 1;
}

/* Under our own lock: how far the store's wall clock, if it has one, is from ours. */
static void compare_clocks(struct doctor *doctor, const char *name, int64_t asked_ms)
{
    int64_t since = 0, now = wall_ms();
    if (mortise_list(doctor->client, name, note_since, &since) != MORTISE_OK || since == 0)
        return;
    int64_t off = since < asked_ms ? since - asked_ms : since > now ? since - now : 0;
    printf("  %-20s %" PRId64 " ms\n", "clock ahead of ours", off);
    if (off > CLOCK_TOLERANCE_MS || off < -CLOCK_TOLERANCE_MS)
        find(doctor, "the store's clock is %" PRId64 " s off from ours: ages in lists are wrong",
             off / 1000);
}

/* The text before `end`, which becomes its end; *rest is what follows, or NULL. */
static char *cut_at(char **rest, const char *end)
{
    char *text = *rest, *at = text ? strstr(text, end) : NULL;
    *rest = at ? at + strlen(end) : NULL;
    if (at)
        *at = '\0';
    return text;
}

/* "PRODUCT VERSION; KEY: VALUE; KEY: VALUE" */
static void show_facts(char *text)
{
    char *rest = text, *fact = cut_at(&rest, "; ");
    printf("  %-20s %s\n", "server", fact);
    while ((fact = cut_at(&rest, "; "))) {
        const char *key = cut_at(&fact, ": ");
        printf("  %-20s %s\n", key, fact ? fact : "");
    }
}

static void show_server(struct doctor *doctor)
{
    char server[512], shown[1024];
    int error = mortise_server(doctor->client, server, sizeof server);
    const char *text = !error                    ? server
                       : *mortise_error_detail() ? mortise_error_detail()
                                                 : mortise_error_text(error);
    mrt_cli_escape(text, shown, sizeof shown);
    if (error)
        printf("  %-20s not known: %s\n", "server", shown);
    else
        show_facts(shown);
}

/* The error of the store as a finding; its exit code. */
static int fail(struct doctor *doctor, const char *what, int error)
{
    const char *detail = mortise_error_detail();
    find(doctor, "%s: %s", what, *detail ? detail : mortise_error_text(error));
    return mrt_cli_exit_code(error);
}

/* Acquires and gives back: 0 or an exit code. A refusal by all servers ends the acquire. */
static int use_lock(struct doctor *doctor, mortise_lock *lock)
{
    mortise_hold hold;
    mrt_time begin = mrt_time_now();
    int64_t asked_ms = wall_ms();
    int error = mortise_try_acquire(lock, &hold);
    if (error) {
        printf("  %-20s no\n", "answers");
        return fail(doctor, "the store does not give a lock", error);
    }
    mrt_time took = mrt_time_now() - begin;
    printf("  %-20s yes, a lock in %.1f ms\n", "answers", (double)took / 1e6);
    show_server(doctor);
    compare_clocks(doctor, mortise_lock_name(lock), asked_ms);
    error = mortise_release(hold);
    return error ? fail(doctor, "the store does not take a lock back", error) : 0;
}

static int ask_store(struct doctor *doctor)
{
    char name[64];
    mortise_lock *lock;
    snprintf(name, sizeof name, "mortise-doctor/%d", (int)getpid());
    printf("store\n  %-20s %s\n", "address", mortise_url(doctor->client));
    snprintf(doctor->address, sizeof doctor->address, "%s", mortise_url(doctor->client));
    int error = mortise_mutex_new(doctor->client, name, NULL, &lock);
    return error ? fail(doctor, name, error) : use_lock(doctor, lock);
}

static void check_grace(struct doctor *doctor, const mortise_capabilities *can)
{
    struct mrt_setting setting;
    mrt_time grace;
    mrt_time left = mrt_run_longest_grace(can);
    if (!mrt_settings_find("grace", &setting))
        return;
    if (!mrt_cli_duration(setting.value, &grace))
        find(doctor, "%s: \"%.64s\" is not a duration", setting.origin, setting.value);
    else if (can->lease_ms > 0 && grace > left)
        find(doctor, "%s: the grace is too long for the lease: %" PRId64 "ms at most",
             setting.origin, left / MRT_MILLISECOND);
}

static void print_promise(const char *title, int is_kept, const char *else_what)
{
    printf("  %-20s %s\n", title, is_kept ? "yes" : else_what);
}

/* Nothing ends at the API server by itself, and its objects can be deleted. */
static bool is_kubernetes(const struct doctor *doctor)
{
    return strncmp(doctor->address, "k8s:", 4) == 0;
}

static void show_promises(struct doctor *doctor)
{
    char lease[32];
    mortise_capabilities can = {.size = sizeof can};
    if (mortise_get_capabilities(doctor->client, &can) != MORTISE_OK)
        return;
    mrt_cli_format_duration(mrt_time_from_ms(can.lease_ms), lease, sizeof lease);
    printf("  %-20s %s\n", "session granted",
           can.lease_ms ? lease : "none: the operating system tells of death");
    check_grace(doctor, &can);
    printf("promises\n");
    print_promise("in order", can.fair && can.exclusive_fair,
                  can.fair ? "yes, but for exclusive locks"
                           : "no: waiters of other processes may be overtaken");
    print_promise("fences", can.fence, "no: check nothing by them");
    print_promise("waiters are told", can.notify, "no: they ask now and then");
    print_promise("across hosts", can.across_hosts, "no: this machine alone");
    print_promise("survives failover", can.survives_failover,
                  can.across_hosts ? "no: two may hold a lock after a server is replaced"
                                   : "no: there is one machine");
    print_promise("durable holds", can.detach, "no: every lock ends with its holder");
    print_promise("lock delay", can.lock_delay,
                  is_kubernetes(doctor) ? "no: a dead holder's lock is free after its lease of "
                                          "watching"
                                        : "no: a dead holder's lock is free at once");
    print_promise("durable fences", can.durable_fence,
                  is_kubernetes(doctor) ? "as durable as the API server's etcd; deleting the Lease "
                                          "sets them back"
                                        : "no: a power cut may set them back");
}

/* ------------------------------------------------------------------ agent */

/* The line of INFO that begins so, without that; "": there is none. */
static void find_fact(const char *info, const char *key, char *shown, size_t size)
{
    char fact[512] = "";
    const char *at = strstr(info, key);
    if (at)
        snprintf(fact, sizeof fact, "%.*s", (int)strcspn(at + strlen(key), "\r\n"),
                 at + strlen(key));
    mrt_cli_escape(fact, shown, size);
}

/* The agent at this socket, if there is one, and whether it is on the store that was asked. That
   the host's agent serves others alone is no fault. */
static void show_agent(struct doctor *doctor, const char *path, bool is_hosts)
{
    char info[8192], version[64], clients[64], store[1024];
    if (access(path, F_OK) != 0)
        return;
    printf("agent\n  %-20s %s\n", "socket", path);
    int error = mrt_agent_ask(path, info, sizeof info);
    if (is_hosts && (error == EACCES || (!error && info[0] == '-'))) {
        printf("  %-20s not this user\n", "serves");
        return;
    }
    if (error || info[0] == '-') {
        printf("  %-20s no\n", "answers");
        find(doctor, "the agent at %s does not answer: %s", path,
             error ? strerror(error) : "it does not serve this user");
        return;
    }
    find_fact(info, "\nmortise_version:", version, sizeof version);
    find_fact(info, "\nconnected_clients:", clients, sizeof clients);
    find_fact(info, "\nstore:", store, sizeof store);
    printf("  %-20s yes, version %s, %s clients\n  %-20s %s%s\n", "answers", version, clients,
           "store", store,
           doctor->address[0] && strcmp(store, doctor->address) != 0
               ? ": another one, and their locks do not exclude each other"
               : "");
}

static void show_agents(struct doctor *doctor)
{
    char path[256];
    if (mrt_agent_user_socket(path, sizeof path))
        show_agent(doctor, path, false);
    show_agent(doctor, MRT_AGENT_HOST_SOCKET, true);
}

/* ----------------------------------------------------------------- clocks */

static void check_clocks(struct doctor *doctor)
{
    struct timespec boot, running;
    struct timex state = {.modes = 0};
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_MONOTONIC, &running);
    int synchronised = adjtimex(&state) >= 0 && !(state.status & STA_UNSYNC);
    printf("clocks\n  %-20s %s\n", "wall clock",
           synchronised ? "synchronised"
                        : "not known to be synchronised; only ages in lists need it");
    printf("  %-20s %lld s of %lld since the start\n", "suspended for",
           (long long)(boot.tv_sec - running.tv_sec), (long long)boot.tv_sec);
    if (wall_ms() < INT64_C(1577836800000)) /* 2020 */
        find(doctor, "the wall clock is years behind");
}

/* 0, or the exit code of what is wrong. */
static int report(const struct doctor *doctor, int code)
{
    fflush(stdout); /* a warning stands behind its subject */
    for (int i = 0; i < doctor->count; i++)
        mrt_cli_say("warning: %s", doctor->findings[i]);
    if (doctor->count > 0)
        printf("%d warning%s: see above\n", doctor->count, doctor->count > 1 ? "s" : "");
    else if (!code)
        printf("all is well\n");
    return code ? code : doctor->count > 0 ? MRT_EXIT_FAILED : MRT_EXIT_OK;
}

/* 0 or an exit code. */
static int check_store(struct doctor *doctor)
{
    int code = mrt_cli_open(doctor->cli, MORTISE_FOREIGN_LOOP, &doctor->client);
    if (code)
        return code;
    code = ask_store(doctor);
    if (!code)
        show_promises(doctor);
    int error = mortise_close(doctor->client);
    if (error && !code)
        find(doctor, "the session was not ended in time");
    return code;
}

int mrt_cli_doctor(struct mrt_cli *cli, int argc, char **argv)
{
    struct doctor doctor = {.cli = cli};
    if (mrt_cli_option(cli, argc, argv) == MRT_OPTION_STOP)
        return cli->exit_code;
    if (optind < argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "doctor takes no argument; \"%.64s\" is too much",
                            argv[optind]);
    cli->log = on_log;
    cli->log_argument = &doctor;
    int code = check_store(&doctor);
    show_agents(&doctor);
    check_clocks(&doctor);
    show_settings(cli);
    code = report(&doctor, code);
    int output = mrt_cli_end_output();
    return code ? code : output;
}
