/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that the subcommands share: global options, exit codes, error lines, parsing
 * of arguments and the way a client is opened. A subcommand is one function
 *     int mrt_cli_NAME(struct mrt_cli *cli, int argc, char **argv)
 * with argv[0] its own name, that returns the exit code, and a struct mrt_subcommand
 * (options.h) that main.c's table names.
 *
 * Errors are one line on standard error, "mortise: ...", in which whatever came
 * from outside has its control bytes escaped. Nothing is created on disk before
 * all arguments have been checked.
 *
 * Threads: the command has one; a subcommand may start more, but only the first
 * calls these functions.
 */
#ifndef MRT_CLI_FRAME_CLI_H
#define MRT_CLI_FRAME_CLI_H

#include "base/time.h"
#include "cli/frame/options.h"
#include "mortise.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in sysexits.h, where that has a code. */
enum mrt_exit {
    MRT_EXIT_OK = 0,
    MRT_EXIT_FAILED = 1,       /* it ran, and the answer is no */
    MRT_EXIT_USAGE = 64,       /* wrong arguments */
    MRT_EXIT_UNREACHABLE = 69, /* the store cannot be reached */
    MRT_EXIT_INTERNAL = 70,
    MRT_EXIT_BUSY = 75, /* not acquired */
    MRT_EXIT_LOST = 76, /* lost while held */
    MRT_EXIT_DENIED = 77,
    MRT_EXIT_CONFIG = 78,
    MRT_EXIT_NOT_STOPPED = 79, /* lost while held, and the command could not be stopped */
    MRT_EXIT_TIME_IS_UP = 124, /* as timeout(1) has it */
    MRT_EXIT_CANNOT_RUN = 126,
    MRT_EXIT_NOT_FOUND = 127,
    MRT_EXIT_SIGNAL = 128 /* and the signal's number */
};

struct mrt_cli {
    const char *url; /* NULL: the library's default */
    char url_origin[320];
    const char *config;       /* --config */
    const char *label;        /* what lists show beside what we hold; NULL: none */
    mortise_log_callback log; /* for mrt_cli_open; may be NULL */
    void *log_argument;
    mortise_contact_callback contact; /* and this */
    void *contact_argument;
    mrt_time give_up; /* of mrt_cli_open; 0: not */
    int exit_code;    /* after mrt_cli_option returned MRT_OPTION_STOP */

    mrt_subcommands *subcommands; /* all that there are */

    /* Of mrt_cli_option. */
    const struct mrt_subcommand *subcommand;
    bool begun;
    size_t next_setting;
    struct mrt_setting setting; /* value NULL: the option stood on the command line, as */
    char option_text[64];       /* this */
};

/* ----------------------------------------------------------- suggest.c */

/* The offered name that is nearest to the typed one; NULL: none is near. */
struct mrt_suggestion {
    const char *typed, *name;
    size_t away;
};
void mrt_suggest(struct mrt_suggestion *suggestion, const char *name);

/* ------------------------------------------------------------- arguments */

/* A duration: "10" and "0.5" (seconds), "500ms", "10s", "5m", "1h", "1m30s", with
   or without a fraction. False if it is none, or more than 100 years. */
bool mrt_cli_duration(const char *text, mrt_time *duration);
/* A decimal number between the two, no sign but "-", no space. */
bool mrt_cli_number(const char *text, int64_t least, int64_t most, int64_t *number);
/* Returns 0; or MRT_EXIT_USAGE, after printing the error. */
int mrt_cli_check_name(const char *name);
/* A duration for people: "3.2s", "5m10s", "2h05m", "4d3h". */
void mrt_cli_format_duration(mrt_time duration, char *text, size_t size);
/* The same for the time since an instant, milliseconds since 1970; "?" if that is 0, not known. */
void mrt_cli_format_age(int64_t since_wall_ms, char *text, size_t size);
/* Milliseconds since 1970. */
int64_t mrt_cli_wall_ms(void);

/* ---------------------------------------------------------------- errors */

/* Writes "mortise: ", the message and a line end, in one piece; returns `exit_code`. */
__attribute__((format(printf, 2, 3))) int mrt_cli_fail(int exit_code, const char *format, ...);
/* The same for information on standard error. */
__attribute__((format(printf, 1, 2))) void mrt_cli_say(const char *format, ...);
/* Writes "mortise: SUBJECT: " and what the library said of its last call; SUBJECT
   may be NULL. Returns the exit code of the error's kind. */
int mrt_cli_fail_error(const char *subject, int error);
/* Flushes standard output: 0, or the exit code if not all could be written. */
int mrt_cli_end_output(void);
/* The exit code of an error's kind. */
int mrt_cli_exit_code(int error);
/* Copies text with control bytes and what is not UTF-8 as \xHH; cut at the end of the buffer. */
void mrt_cli_escape(const char *text, char *buffer, size_t size);
/* Columns a text takes, counting one a character. */
size_t mrt_cli_columns(const char *text);
/* The same as mrt_cli_escape, with "…" in the place of its middle if it is longer than so many
   columns, of which there is one at least. It keeps more of its end, where names differ. */
void mrt_cli_fit(const char *text, size_t columns, char *buffer, size_t size);

/* ------------------------------------------------------------------ core */

/* Variables of the environment that are secrets, one for each store that takes one there; NULL
   behind the last. A command does not get them. */
extern const char *const mrt_cli_secrets[];
/* This process writes no core file, where secrets would be read; the limit that it was started with
   is for what it starts, and is set again before that: by system calls alone. */
void mrt_cli_allow_no_core(void);
void mrt_cli_restore_core(void);

/* ---------------------------------------------------------------- client */

#define MRT_OWNER_TEXT_SIZE (MORTISE_LABEL_MAX + 128)
/* Describes an entry's client as "label host web pid 12", or says that no client has it; "" if the
   client does not describe itself. */
void mrt_cli_describe_owner(const mortise_entry *entry, char text[MRT_OWNER_TEXT_SIZE]);
/* Opens the client of a command: it is short-lived and names its process. 0, or the exit
 * code with the error line written. */
int mrt_cli_open(const struct mrt_cli *cli, uint32_t flags, mortise_client **client);
/* The same with a loop of ours, of a store where commands see each other's locks. */
int mrt_cli_open_shared(const struct mrt_cli *cli, mortise_client **client);

/* ----------------------------------------------------------- subcommands */

int mrt_cli_run(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_elect(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_try(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_acquire(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_renew(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_release(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_check(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_status(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_ls(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_top(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_serve(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_agent(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_init(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_demo(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_bench(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_revoke(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_break(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_doctor(struct mrt_cli *cli, int argc, char **argv);
int mrt_cli_completion(struct mrt_cli *cli, int argc, char **argv);

extern const struct mrt_subcommand mrt_run_subcommand;
extern const struct mrt_subcommand mrt_elect_subcommand;
extern const struct mrt_subcommand mrt_try_subcommand;
extern const struct mrt_subcommand mrt_acquire_subcommand;
extern const struct mrt_subcommand mrt_renew_subcommand;
extern const struct mrt_subcommand mrt_release_subcommand;
extern const struct mrt_subcommand mrt_check_subcommand;
extern const struct mrt_subcommand mrt_status_subcommand;
extern const struct mrt_subcommand mrt_ls_subcommand;
extern const struct mrt_subcommand mrt_top_subcommand;
extern const struct mrt_subcommand mrt_serve_subcommand;
extern const struct mrt_subcommand mrt_agent_subcommand;
extern const struct mrt_subcommand mrt_init_subcommand;
extern const struct mrt_subcommand mrt_demo_subcommand;
extern const struct mrt_subcommand mrt_bench_subcommand;
extern const struct mrt_subcommand mrt_revoke_subcommand;
extern const struct mrt_subcommand mrt_break_subcommand;
extern const struct mrt_subcommand mrt_doctor_subcommand;
extern const struct mrt_subcommand mrt_completion_subcommand;

#endif
