/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options, out of a subcommand's table; options.h says what each function promises.
 *
 * Values from settings and the environment are returned before the command line, one an option,
 * from the place with the highest rank. So a subcommand takes all in one loop, and need not know
 * where a value comes from.
 */
#include "cli/frame/options.h"

#include "cli/frame/cli.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HELP_COLUMN 33
#define HELP_LETTER 'h'
#define DONE_WITH 1 /* an option that needs nobody else */

static const struct mrt_flag common_flags[] = {
    {MRT_OPTION_URL, "url", "URL", "the store", NULL, 0},
    {MRT_OPTION_CONFIG, "config", "FILE", "a file of settings, read before the user's", NULL, 0},
    {MRT_OPTION_HELP, "help", NULL, "this text (or -h)", NULL, MRT_FLAG_ONCE},
};
#define COMMON_COUNT (sizeof common_flags / sizeof common_flags[0])

/* Further options that flock(1) accepts, for options of a letter. */
static const struct alias {
    const char *name; /* NULL: a letter */
    int letter, id;
} aliases[] = {{"nb", 0, 'n'}, {"wait", 0, 'w'}, {NULL, 'e', 'x'}};
#define ALIAS_COUNT (sizeof aliases / sizeof aliases[0])

const struct mrt_flag *mrt_cli_flag(const struct mrt_subcommand *subcommand, size_t i)
{
    if (i < subcommand->count)
        return &subcommand->flags[i];
    i -= subcommand->count;
    if (subcommand->traits & MRT_FLAG_NO_STORE)
        i += COMMON_COUNT - 1; /* --help is the last */
    return i < COMMON_COUNT ? &common_flags[i] : NULL;
}

static const struct mrt_flag *flag_of(const struct mrt_subcommand *subcommand, int id)
{
    const struct mrt_flag *flag;
    for (size_t i = 0; (flag = mrt_cli_flag(subcommand, i)) != NULL; i++)
        if (flag->id == id)
            return flag;
    return NULL;
}

static const struct mrt_flag *find_in(const struct mrt_flag *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct mrt_flag *mrt_cli_find_flag(mrt_subcommands *subcommands, const char *name)
{
    const struct mrt_flag *flag = find_in(common_flags, COMMON_COUNT, name);
    for (; !flag && *subcommands; subcommands++)
        flag = find_in((*subcommands)->flags, (*subcommands)->count, name);
    return flag;
}

void mrt_cli_variable(const char *option, char *text, size_t size)
{
    snprintf(text, size, "MORTISE_%s", option);
    for (char *c = text; *c; c++)
        *c = *c == '-' ? '_' : (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
}

/* ----------------------------------------------- from outside the command line */

/* 1 on, 0 off, -1 neither. */
static int read_switch(const char *text)
{
    static const char *const on[] = {"1", "yes", "true", "on"};
    static const char *const off[] = {"0", "no", "false", "off", ""};
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        if (strcasecmp(text, on[i]) == 0)
            return 1;
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (strcasecmp(text, off[i]) == 0)
            return 0;
    return -1;
}

static int stop(struct mrt_cli *cli, int exit_code)
{
    cli->exit_code = exit_code;
    return MRT_OPTION_STOP;
}

/* The next option that files or environment set; MRT_OPTION_END: none is left. */
static int next_setting(struct mrt_cli *cli)
{
    const struct mrt_flag *flag;
    while ((flag = mrt_cli_flag(cli->subcommand, cli->next_setting)) != NULL) {
        cli->next_setting++;
        if (flag->traits & MRT_FLAG_ONCE || flag->id == MRT_OPTION_CONFIG ||
            !mrt_settings_find(flag->name, &cli->setting))
            continue;
        optarg = (char *)(uintptr_t)cli->setting.value;
        int state = flag->argument ? 1 : read_switch(optarg);
        if (state < 0)
            return stop(cli, mrt_cli_fail_value(cli, "yes or no"));
        if (!flag->argument)
            optarg = NULL;
        if (state > 0)
            return flag->id;
    }
    cli->setting.value = NULL;
    return MRT_OPTION_END;
}

int mrt_cli_fail_value(const struct mrt_cli *cli, const char *what)
{
    if (cli->setting.value)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s: \"%.64s\" is not %s", cli->setting.origin,
                            cli->setting.value, what);
    return mrt_cli_fail(MRT_EXIT_USAGE, "%s: \"%.64s\" is not %s", cli->option_text, optarg, what);
}

/* ------------------------------------------------------- the command line */

/* The nearest option to a word as "--tiemout"; NULL: none is near. */
static const char *option_near(const struct mrt_subcommand *subcommand, const char *word)
{
    const struct mrt_flag *flag;
    struct mrt_suggestion near = {.typed = word + 2};
    for (size_t i = 0; (flag = mrt_cli_flag(subcommand, i)) != NULL; i++)
        mrt_suggest(&near, flag->name);
    return near.name;
}

/* An option that getopt refused: a letter in optopt, or a whole word just passed. */
static int fail_option(const struct mrt_subcommand *subcommand, char **argv, int letter)
{
    const char *word = argv[optind - 1], *name = subcommand->name ? subcommand->name : "";
    const char *space = *name ? " " : "";
    const char *fault = letter == ':' ? "needs an argument" : "is unknown";
    bool is_word = letter == ':' || optopt == 0 || optopt >= MRT_OPTION_URL;
    if (strncmp(word, "--", 2) == 0 && strchr(word, '=') && optopt != 0) {
        is_word = true;
        fault = "takes no argument";
    }
    if (flag_of(subcommand, 'x') && (optopt == 'u' || strcmp(word, "--unlock") == 0))
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "mortise run gives the lock back when the command has ended, and what "
                            "mortise acquire took is given back by mortise release");
    const char *near =
        is_word && letter == '?' && optopt == 0 ? option_near(subcommand, word) : NULL;
    if (near)
        return mrt_cli_fail(MRT_EXIT_USAGE,
                            "option %.64s is unknown: did you mean --%s? see mortise %s%s--help",
                            word, near, name, space);
    if (is_word)
        return mrt_cli_fail(MRT_EXIT_USAGE, "option %.64s %s; see mortise %s%s--help", word, fault,
                            name, space);
    return mrt_cli_fail(MRT_EXIT_USAGE, "option -%c %s; see mortise %s%s--help", optopt, fault,
                        name, space);
}

/* The tables for getopt, made from the subcommand's table. */
struct tables {
    char letters[2 + 2 * (MRT_FLAGS_MAX + ALIAS_COUNT) + 2];
    struct option options[MRT_FLAGS_MAX + ALIAS_COUNT + 1];
};

/* Adds the values whose option the subcommand has. */
static void add_aliases(const struct mrt_subcommand *subcommand, char *letter,
                        struct option *option)
{
    for (size_t i = 0; i < ALIAS_COUNT; i++) {
        const struct mrt_flag *flag = flag_of(subcommand, aliases[i].id);
        int takes = flag && flag->argument ? required_argument : no_argument;
        if (flag && aliases[i].name)
            *option++ = (struct option){aliases[i].name, takes, NULL, flag->id};
        else if (flag)
            *letter++ = (char)aliases[i].letter;
    }
}

static int without_alias(int id)
{
    for (size_t i = 0; i < ALIAS_COUNT; i++)
        if (aliases[i].letter != 0 && aliases[i].letter == id)
            return aliases[i].id;
    return id;
}

static void make_tables(const struct mrt_subcommand *subcommand, struct tables *tables)
{
    const struct mrt_flag *flag;
    char *letter = tables->letters;
    if (subcommand->traits & MRT_FLAG_COMMAND)
        *letter++ = '+';
    *letter++ = ':';
    *letter++ = HELP_LETTER; /* of two the later counts */
    struct option *option = tables->options;
    for (size_t i = 0; i < MRT_FLAGS_MAX && (flag = mrt_cli_flag(subcommand, i)) != NULL; i++) {
        int takes = flag->argument ? required_argument : no_argument;
        *option++ = (struct option){flag->name, takes, NULL, flag->id};
        if (flag->id >= MRT_OPTION_URL)
            continue;
        *letter++ = (char)flag->id;
        if (flag->argument)
            *letter++ = ':';
    }
    add_aliases(subcommand, letter, option);
}

static int next_argument(struct mrt_cli *cli, int argc, char **argv)
{
    struct tables tables = {.letters = ""};
    make_tables(cli->subcommand, &tables);
    opterr = 0;
    int id = without_alias(getopt_long(argc, argv, tables.letters, tables.options, NULL));
    if (id == '?' || id == ':')
        return stop(cli, fail_option(cli->subcommand, argv, id));
    if (id == HELP_LETTER && !flag_of(cli->subcommand, id))
        id = MRT_OPTION_HELP;
    const struct mrt_flag *flag = flag_of(cli->subcommand, id);
    if (flag && id < MRT_OPTION_URL)
        snprintf(cli->option_text, sizeof cli->option_text, "-%c", id);
    else if (flag)
        snprintf(cli->option_text, sizeof cli->option_text, "--%s", flag->name);
    return id;
}

/* ------------------------------------------------------------- the common ones */

/* A password among the arguments is there for all to see. */
static int take_url(struct mrt_cli *cli)
{
    const struct mrt_setting *setting = &cli->setting;
    if (!setting->value && mrt_cli_has_password(optarg))
        return mrt_cli_fail(MRT_EXIT_USAGE, "--url with a password is seen by everybody; put it "
                                            "into MORTISE_URL or a file of settings");
    if (setting->value && setting->file_is_open && mrt_cli_has_password(optarg))
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s: a password in a file that others may read",
                            setting->origin);
    if (setting->value && cli->url)
        return 0; /* --url stood before the subcommand */
    cli->url = optarg;
    snprintf(cli->url_origin, sizeof cli->url_origin, "%s",
             setting->value ? setting->origin : "--url");
    return 0;
}

/* `id`, or MRT_OPTION_STOP, or DONE_WITH. */
static int take_common(struct mrt_cli *cli, int id)
{
    int code = 0;
    if (id == MRT_OPTION_URL)
        code = take_url(cli);
    else if (id == MRT_OPTION_CONFIG)
        cli->config = optarg;
    else if (id == MRT_OPTION_HELP)
        return stop(cli, mrt_cli_print_help(cli, cli->subcommand));
    else
        return id;
    return code ? stop(cli, code) : DONE_WITH;
}

int mrt_cli_global_option(struct mrt_cli *cli, int argc, char **argv)
{
    int id;
    while ((id = take_common(cli, next_argument(cli, argc, argv))) == DONE_WITH)
        continue;
    return id;
}

/* --config and --help count before any file is read. */
static int read_configuration(struct mrt_cli *cli, int argc, char **argv)
{
    int id;
    cli->begun = true;
    optind = 0; /* getopt begins anew */
    while ((id = next_argument(cli, argc, argv)) != MRT_OPTION_END) {
        if (id == MRT_OPTION_STOP)
            return id;
        if (id == MRT_OPTION_CONFIG || id == MRT_OPTION_HELP)
            id = take_common(cli, id);
        if (id == MRT_OPTION_STOP)
            return id;
    }
    optind = 0;
    int code = mrt_settings_read(cli->subcommands, cli->config);
    return code ? stop(cli, code) : DONE_WITH;
}

int mrt_cli_option(struct mrt_cli *cli, int argc, char **argv)
{
    int id;
    if (!cli->begun && read_configuration(cli, argc, argv) == MRT_OPTION_STOP)
        return MRT_OPTION_STOP;
    do {
        id = next_setting(cli);
        if (id == MRT_OPTION_END)
            id = next_argument(cli, argc, argv);
        id = take_common(cli, id);
    } while (id == DONE_WITH);
    return id;
}

/* ----------------------------------------------------------------- help */

static void print_flag(const struct mrt_flag *flag)
{
    char letter[8] = "    ", left[80];
    if (flag->id < MRT_OPTION_URL)
        snprintf(letter, sizeof letter, "-%c, ", flag->id);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, flag->name, flag->argument ? " " : "",
             flag->argument ? flag->argument : "");
    printf("%-*s", HELP_COLUMN, left);
    if (strlen(left) > HELP_COLUMN - 2)
        printf("\n%*s", HELP_COLUMN, "");
    for (const char *c = flag->help; *c; c++)
        *c == '\n' ? printf("\n%*s", HELP_COLUMN, "") : putchar(*c);
    if (flag->standard)
        printf(" (default %s)", flag->standard);
    putchar('\n');
}

static void print_forms(const struct mrt_subcommand *subcommand)
{
    const char *lead = "Usage:";
    for (const char *form = subcommand->operands; form; lead = "      ") {
        const char *end = strchr(form, '\n');
        int length = end ? (int)(end - form) : (int)strlen(form);
        printf("%s mortise %s [options]%s%.*s\n", lead, subcommand->name, length ? " " : "", length,
               form);
        form = end ? end + 1 : NULL;
    }
}

static void print_subcommands(mrt_subcommands *subcommands)
{
    for (; *subcommands; subcommands++)
        printf("  %-11s %s\n", (*subcommands)->name, (*subcommands)->summary);
    putchar('\n');
}

int mrt_cli_print_help(const struct mrt_cli *cli, const struct mrt_subcommand *subcommand)
{
    const struct mrt_flag *flag;
    if (subcommand->operands)
        print_forms(subcommand);
    printf("%s\n", subcommand->about);
    if (!subcommand->operands)
        print_subcommands(cli->subcommands);
    for (size_t i = 0; (flag = mrt_cli_flag(subcommand, i)) != NULL; i++)
        print_flag(flag);
    if (subcommand->notes)
        printf("\n%s", subcommand->notes);
    return mrt_cli_end_output();
}
