/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command: global options, then a subcommand out of one table. A subcommand
 * is a row here, and a small file of its own.
 *
 * Start-up is part of a lock's speed: nothing is set up here that a subcommand
 * might not need.
 */
#include "cli/frame/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static mrt_subcommands subcommands[] = {
    &mrt_run_subcommand,        &mrt_elect_subcommand,
    &mrt_try_subcommand,        &mrt_acquire_subcommand,
    &mrt_renew_subcommand,      &mrt_release_subcommand,
    &mrt_check_subcommand,      &mrt_status_subcommand,
    &mrt_ls_subcommand,         &mrt_top_subcommand,
    &mrt_serve_subcommand,      &mrt_agent_subcommand,
    &mrt_revoke_subcommand,     &mrt_break_subcommand,
    &mrt_init_subcommand,       &mrt_demo_subcommand,
    &mrt_bench_subcommand,      &mrt_doctor_subcommand,
    &mrt_completion_subcommand, NULL,
};

enum { VERSION = 'V' };

static const struct mrt_flag flags[] = {
    {VERSION, "version", NULL, "print the version", NULL, MRT_FLAG_ONCE}};

static const struct mrt_subcommand global = {
    .about = "Usage: mortise [--url URL] [--config FILE] SUBCOMMAND [options] ...\n"
             "Distributed locks.\n",
    .notes = "URL is sqlite:///absolute/path, sqlite:relative/path,\n"
             "zk://host:port,host:port/chroot, redis://user@host:port/db,\n"
             "redlock:redis://a,redis://b,redis://c, postgresql://user@host/database,\n"
             "mysql://user@host/database, etcd://host:port,host:port,\n"
             "nats://host:port,host:port, k8s://host/namespace, or\n"
             "memory:NAME inside one process. Without --url it is $MORTISE_URL, else the\n"
             "file locks.db in $XDG_STATE_HOME/mortise (~/.local/state/mortise; for root\n"
             "/var/lib/mortise).\n"
             "An option --some-name of a subcommand may also be given as MORTISE_SOME_NAME in\n"
             "the environment, or as \"some-name = value\" in ~/.config/mortise/config or\n"
             "/etc/xdg/mortise/config. The first of these places that has the option counts.\n",
    .flags = flags,
    .count = 1,
    .traits = MRT_FLAG_COMMAND,
};

static int print_version(void)
{
    printf("mortise %s\n", MORTISE_VERSION);
    return mrt_cli_end_output();
}

/* A closed standard descriptor would be taken by the next file opened, and the
   command to run would read or write that. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            _exit(MRT_EXIT_INTERNAL);
}

/* NULL: there is none. */
static const struct mrt_subcommand *find_subcommand(const char *name)
{
    for (mrt_subcommands *row = subcommands; *row; row++)
        if (strcmp(name, (*row)->name) == 0)
            return *row;
    return NULL;
}

static int fail_subcommand(const char *name)
{
    struct mrt_suggestion near = {.typed = name};
    for (mrt_subcommands *row = subcommands; *row; row++)
        mrt_suggest(&near, (*row)->name);
    if (near.name)
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "unknown subcommand \"%.64s\": did you mean \"%s\"? see mortise --help",
                            name, near.name);
    return mrt_cli_fail(MRT_EXIT_USAGE, "unknown subcommand \"%.64s\"; see mortise --help", name);
}

static int call_subcommand(struct mrt_cli *cli, int argc, char **argv)
{
    bool helps = strcmp(argv[0], "help") == 0;
    if (helps && argc == 1)
        return mrt_cli_print_help(cli, &global);
    if (strcmp(argv[0], "version") == 0)
        return print_version();
    const struct mrt_subcommand *found = find_subcommand(argv[helps]);
    if (!found)
        return fail_subcommand(argv[helps]);
    if (helps)
        return mrt_cli_print_help(cli, found);
    cli->subcommand = found;
    return found->function(cli, argc, argv);
}

int main(int argc, char **argv)
{
    struct mrt_cli cli = {.subcommands = subcommands, .subcommand = &global};
    fill_standard_descriptors();
    mrt_cli_allow_no_core();
    int option = mrt_cli_global_option(&cli, argc, argv);
    if (option == MRT_OPTION_STOP)
        return cli.exit_code;
    if (option == VERSION)
        return print_version();
    if (optind >= argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no subcommand; see mortise --help");
    return call_subcommand(&cli, argc - optind, argv + optind);
}
