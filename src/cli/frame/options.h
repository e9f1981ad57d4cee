/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of subcommands: each is a row of its subcommand's table, from which all else is
 * made: what getopt reads, the text of --help, the environment's variables, the keys of the
 * configuration files and what a shell completes.
 *
 * A value is looked for, in this order, on the command line, in the environment
 * (MORTISE_NAME for --name, "-" as "_"), and in the configuration files: the one that --config
 * names, the user's, the system's. Options that only make sense for one call (ONCE in
 * their row) are read from the command line alone.
 *
 * Threads: the first of the process alone.
 */
#ifndef MRT_CLI_FRAME_OPTIONS_H
#define MRT_CLI_FRAME_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct mrt_cli;

enum {
    MRT_FLAG_ONCE = 1 << 0,    /* neither environment nor files */
    MRT_FLAG_COMMAND = 1 << 1, /* of a subcommand: a command with options of its own follows */
    MRT_FLAG_NO_STORE = 1 << 2 /* of a subcommand: it uses no store */
};

struct mrt_flag {         // NOLINT(clang-analyzer-optin.performance.Padding): rows are written so
    int id;               /* what mrt_cli_option returns; below 0x100 the letter */
    const char *name;     /* the long name */
    const char *argument; /* what it takes, as "DURATION", or the values that it may have, as
                             "leave|wait|end"; NULL: nothing, it is on or off */
    const char *help;     /* lines */
    const char *standard; /* its default, for --help; NULL: none to show */
    unsigned traits;
};

struct mrt_subcommand {
    const char *name;
    const char *summary;  /* a few words */
    const char *operands; /* "NAME [--] COMMAND..."; several forms a line each */
    const char *about;    /* sentences above the options */
    const char *notes;    /* below them; may be NULL */
    const struct mrt_flag *flags;
    size_t count;
    int (*function)(struct mrt_cli *cli, int argc, char **argv);
    unsigned traits;
};

/* A table of subcommands: pointers to rows, the last one NULL. The program has one, which main.c
   hands down in struct mrt_cli. */
typedef const struct mrt_subcommand *const mrt_subcommands;

/* Results of mrt_cli_option that are no option of a subcommand; ids below are letters. */
enum {
    MRT_OPTION_END = -1,
    MRT_OPTION_STOP = 0,
    MRT_OPTION_URL = 0x100,
    MRT_OPTION_CONFIG,
    MRT_OPTION_HELP,
    MRT_OPTION_OWN = 0x200 /* here begin a subcommand's own that have no letter */
};

#define MRT_FLAGS_MAX 40

/*
 * The next option that has a value: first those of files and environment, then the command
 * line's, so the last one counts. Returns its id, and its value in optarg (NULL if it
 * takes none). Common options are handled here, and so are unknown options and missing
 * arguments. MRT_OPTION_END: none is left, operands from argv[optind]; MRT_OPTION_STOP: return
 * cli->exit_code.
 */
int mrt_cli_option(struct mrt_cli *cli, int argc, char **argv);
/* The same for options before the subcommand; only from the command line. */
int mrt_cli_global_option(struct mrt_cli *cli, int argc, char **argv);
/* Says that the value of the option just returned is not `what`, and where it stands;
   returns the exit code. */
int mrt_cli_fail_value(const struct mrt_cli *cli, const char *what);

/* The subcommand's rows, then the common ones; NULL behind the last. */
const struct mrt_flag *mrt_cli_flag(const struct mrt_subcommand *subcommand, size_t i);
/* The name of the environment's variable for an option. */
void mrt_cli_variable(const char *option, char *text, size_t size);
/* The row of an option of any of the subcommands, or of a common one; NULL: none has it. */
const struct mrt_flag *mrt_cli_find_flag(mrt_subcommands *subcommands, const char *name);
/* Prints the help of a subcommand: 0, or the exit code if it could not. */
int mrt_cli_print_help(const struct mrt_cli *cli, const struct mrt_subcommand *subcommand);

/* --------------------------------------------------------------- secret.c */

/* Whether a store's URL may hold a password; NULL does not. */
bool mrt_cli_has_password(const char *url);
/* Copies a URL; if it may hold a password, copies only its scheme. */
void mrt_cli_redact(const char *url, char *text, size_t size);

/* ------------------------------------------------------------- settings.c */

/* Why a file is not trusted, as "belongs to another user"; NULL: it is a plain file that only this
   user and root can write. */
const char *mrt_cli_find_distrust(const struct stat *status);

/* A value from outside the command line, and where it stands. */
struct mrt_setting {
    const char *value;
    char origin[320]; /* "MORTISE_GRACE", "/etc/xdg/mortise/config:3" */
    bool from_file;
    bool file_is_open; /* others may read the file */
};

/* Reads the configuration files, once; 0 or the exit code. A file may set the options of the
   subcommands. `named`: --config; may be NULL. */
int mrt_settings_read(mrt_subcommands *subcommands, const char *named);
/* The setting of the option `name`; false if there is none. */
bool mrt_settings_find(const char *name, struct mrt_setting *setting);
/* Calls `visit` for each file that was read. */
void mrt_settings_files(void (*visit)(const char *path));

#endif
