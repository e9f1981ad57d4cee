/*
 * mortise completion: what a shell needs to complete subcommands and options, made from the
 * same tables as all else, so that it cannot be behind.
 *
 * Help texts are the first line of an option's help, without what a shell would take for its
 * own: they are put between single quotes, and have none.
 */
#include "cli/frame/cli.h"

#include <stdio.h>
#include <string.h>

const struct mrt_subcommand mrt_completion_subcommand = {
    .name = "completion",
    .summary = "print what a shell needs to complete mortise",
    .operands = "bash|zsh|fish",
    .about = "Prints a script for the shell, as in\n"
             "  . <(mortise completion bash)\n"
             "  mortise completion zsh >\"${fpath[1]}/_mortise\"\n"
             "  mortise completion fish >~/.config/fish/completions/mortise.fish\n",
    .function = mrt_cli_completion,
};

static void each_flag(const struct mrt_subcommand *subcommand,
                      void (*print)(const char *, const struct mrt_flag *))
{
    for (size_t i = 0; i < subcommand->count; i++)
        print(subcommand->name, &subcommand->flags[i]);
    for (size_t i = 0; i < mrt_common_flag_count; i++)
        print(subcommand->name, &mrt_common_flags[i]);
}

/* The help of an option as one line, for use between single quotes. */
static void print_line(const char *help)
{
    for (const char *c = help; *c; c++)
        putchar(*c == '\n' ? ' ' : *c == '\'' || *c == '[' || *c == ']' || *c == ':' ? ',' : *c);
}

static bool is_letter(const struct mrt_flag *flag)
{
    return flag->id < MRT_OPTION_URL;
}

/* ----------------------------------------------------------------- bash */

static void bash_flag(const char *subcommand, const struct mrt_flag *flag)
{
    (void)subcommand;
    printf(" --%s", flag->name);
}

static void print_bash(void)
{
    printf("_mortise() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} subcommand= words i\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        case ${COMP_WORDS[i]} in\n"
           "        --url | --config) ((i++)) ;;\n"
           "        -*) ;;\n"
           "        *) subcommand=${COMP_WORDS[i]}; break ;;\n"
           "        esac\n"
           "    done\n"
           "    case $subcommand in\n"
           "    '') words='--url --config --help --version");
    for (size_t i = 0; i < mrt_subcommand_count; i++)
        printf(" %s", mrt_subcommands[i]->name);
    printf("' ;;\n");
    for (size_t i = 0; i < mrt_subcommand_count; i++) {
        printf("    %s) words='", mrt_subcommands[i]->name);
        each_flag(mrt_subcommands[i], bash_flag);
        printf("' ;;\n");
    }
    printf("    esac\n"
           "    COMPREPLY=()\n"
           "    if [[ -z $subcommand || $current == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "    fi\n"
           "}\n"
           "complete -o default -F _mortise mortise\n");
}

/* ------------------------------------------------------------------ zsh */

static void zsh_flag(const char *subcommand, const struct mrt_flag *flag)
{
    (void)subcommand;
    if (is_letter(flag))
        printf(" \\\n            '(-%c --%s)'{-%c,--%s}'[", flag->id, flag->name, flag->id,
               flag->name);
    else
        printf(" \\\n            '--%s[", flag->name);
    print_line(flag->help);
    if (flag->argument)
        printf("]:%s:_default'", flag->argument);
    else
        printf("]'");
}

static void print_zsh(void)
{
    printf("#compdef mortise\n"
           "_mortise() {\n"
           "    local state line\n"
           "    local -a subcommands=(\n");
    for (size_t i = 0; i < mrt_subcommand_count; i++)
        printf("        '%s:%s'\n", mrt_subcommands[i]->name, mrt_subcommands[i]->summary);
    printf(
        "    )\n"
        "    _arguments -C '--url[the store]:URL:' '--config[a file of settings]:FILE:_files' \\\n"
        "        '(- *)--help[help]' '(- *)--version[the version]' \\\n"
        "        '1:subcommand:->subcommand' '*::argument:->argument'\n"
        "    case $state in\n"
        "    subcommand) _describe subcommand subcommands ;;\n"
        "    argument)\n"
        "        case $words[1] in\n");
    for (size_t i = 0; i < mrt_subcommand_count; i++) {
        printf("        %s) _arguments", mrt_subcommands[i]->name);
        each_flag(mrt_subcommands[i], zsh_flag);
        printf(" \\\n            '*:argument:_default' ;;\n");
    }
    printf("        esac ;;\n"
           "    esac\n"
           "}\n"
           "compdef _mortise mortise\n");
}

/* ----------------------------------------------------------------- fish */

static void fish_flag(const char *subcommand, const struct mrt_flag *flag)
{
    printf("complete -c mortise -n '__fish_seen_subcommand_from %s' -l %s", subcommand, flag->name);
    if (is_letter(flag))
        printf(" -s %c", flag->id);
    printf("%s -d '", flag->argument ? " -r" : "");
    print_line(flag->help);
    printf("'\n");
}

static void print_fish(void)
{
    for (size_t i = 0; i < mrt_subcommand_count; i++)
        printf("complete -c mortise -n __fish_use_subcommand -f -a %s -d '%s'\n",
               mrt_subcommands[i]->name, mrt_subcommands[i]->summary);
    printf("complete -c mortise -n __fish_use_subcommand -l url -r -d 'the store'\n"
           "complete -c mortise -n __fish_use_subcommand -l config -r -d 'a file of settings'\n"
           "complete -c mortise -n __fish_use_subcommand -l help -d 'help'\n"
           "complete -c mortise -n __fish_use_subcommand -l version -d 'the version'\n");
    for (size_t i = 0; i < mrt_subcommand_count; i++)
        each_flag(mrt_subcommands[i], fish_flag);
}

int mrt_cli_completion(struct mrt_cli *cli, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    int option;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END)
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
    for (size_t i = 0; argc - optind == 1 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(argv[optind], shells[i].name) == 0) {
            shells[i].print();
            return mrt_cli_end_output();
        }
    return mrt_cli_fail(MRT_EXIT_USAGE, "completion is for bash, zsh or fish; see --help");
}
