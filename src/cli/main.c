/*
 * The command: global options, then a subcommand out of one table. A subcommand
 * is a row here, a line in the help, and a small file of its own.
 *
 * Start-up is part of a lock's speed: nothing is set up here that a subcommand
 * might not need.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: mortise [--url URL] SUBCOMMAND [options] ...\n"
    "Distributed locks.\n"
    "\n"
    "  run    run a command while holding a lock\n"
    "  ls     show who holds and who waits\n"
    "  demo   lose updates without a lock, and none with one\n"
    "  bench  measure a lock\n"
    "\n"
    "  --url URL  the store: sqlite:///absolute/path, sqlite:relative/path,\n"
    "             zk://host:port,host:port/chroot, redis://user@host:port/db,\n"
    "             memory:NAME.\n"
    "             Default: $MORTISE_URL, else the file locks.db in\n"
    "             $XDG_STATE_HOME/mortise (~/.local/state/mortise; for root\n"
    "             /var/lib/mortise)\n"
    "  --version  print the version\n"
    "  --help     this text; after a subcommand, its own\n";

static const struct subcommand {
    const char *name;
    int (*function)(struct mrt_cli *cli, int argc, char **argv);
    const char *help;
} subcommands[] = {
    {"run", mrt_cli_run, mrt_cli_run_help},
    {"ls", mrt_cli_ls, mrt_cli_ls_help},
    {"demo", mrt_cli_demo, mrt_cli_demo_help},
    {"bench", mrt_cli_bench, mrt_cli_bench_help},
};

static int print_version(void)
{
    if (printf("mortise %s\n", MORTISE_VERSION) < 0 || fflush(stdout) == EOF)
        return mrt_cli_fail(MRT_EXIT_FAILED, "cannot write to standard output");
    return MRT_EXIT_OK;
}

/* A closed standard descriptor would be taken by the next file opened, and the
   command to run would read or write that. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            _exit(MRT_EXIT_INTERNAL);
}

static int call_subcommand(struct mrt_cli *cli, int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        if (strcmp(argv[0], subcommands[i].name) != 0)
            continue;
        cli->help = subcommands[i].help;
        optind = 0; /* getopt begins anew */
        return subcommands[i].function(cli, argc, argv);
    }
    return mrt_cli_fail(MRT_EXIT_USAGE, "unknown subcommand \"%.64s\"; see mortise --help",
                        argv[0]);
}

int main(int argc, char **argv)
{
    enum { VERSION = 'V' };
    static const struct option options[] = {
        MRT_CLI_OPTIONS, {"version", no_argument, NULL, VERSION}, {NULL, 0, NULL, 0}};
    struct mrt_cli cli = {.help = help};
    fill_standard_descriptors();
    int option = mrt_cli_option(&cli, argc, argv, "+:", options);
    if (option == MRT_OPTION_STOP)
        return cli.exit_code;
    if (option == VERSION)
        return print_version();
    if (optind >= argc)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no subcommand; see mortise --help");
    return call_subcommand(&cli, argc - optind, argv + optind);
}
