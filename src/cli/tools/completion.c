/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise completion: what a shell needs to complete subcommands, options, their values, names of
 * locks and the command of run. It is made from the same tables as all else, so that it cannot be
 * behind: an option whose argument is written "a|b|c" has these values, operands that begin with
 * NAME are names, and what follows a name where a command may stand is a command.
 *
 * Names come from the store by mortise ls, which is given a second. They are data that anybody may
 * have written there: no shell expands them.
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
    .traits = MRT_FLAG_NO_STORE,
};

typedef void print_flag(const struct mrt_subcommand *subcommand, const struct mrt_flag *flag);

static void each_flag(const struct mrt_subcommand *subcommand, print_flag *print)
{
    const struct mrt_flag *flag;
    for (size_t i = 0; (flag = mrt_cli_flag(subcommand, i)) != NULL; i++)
        print(subcommand, flag);
}

static bool is_letter(const struct mrt_flag *flag)
{
    return flag->id < MRT_OPTION_URL;
}

static bool has_values(const char *argument)
{
    return argument && strchr(argument, '|');
}

/* "term|exec:COMMAND" as "term exec:". */
static void print_values(const char *argument)
{
    bool is_name = false;
    for (const char *c = argument; *c; c++) {
        if (*c == '|')
            is_name = false;
        if (!is_name)
            putchar(*c == '|' ? ' ' : *c);
        is_name |= *c == ':';
    }
}

static bool takes_names(const struct mrt_subcommand *subcommand)
{
    return subcommand->operands && strstr(subcommand->operands, "NAME");
}

static bool takes_command(const struct mrt_subcommand *subcommand)
{
    return subcommand->traits & MRT_FLAG_COMMAND;
}

/* ----------------------------------------------------------------- bash */

/* $typed are the words so far as they stand in the line: bash itself would cut them at ":" and "=".
   compgen -W would expand the names of locks. */
static const char bash_names[] =
    "_mortise_offer() {\n"
    "    local word cut=${current%\"${current##*[=:]}\"}\n"
    "    for word; do\n"
    "        [[ $word == \"$current\"* ]] || continue\n"
    "        printf -v word %q \"${word#\"$cut\"}\"\n"
    "        COMPREPLY+=(\"$word\")\n"
    "    done\n"
    "}\n"
    "_mortise_names() {\n"
    "    local name place rest\n"
    "    while read -r name place rest; do\n"
    "        [[ $place == holds || $place == [1-9]* ]] && _mortise_offer \"$name\"\n"
    "    done < <(timeout 1 mortise \"${store[@]}\" ls 2>/dev/null | sort -u -k 1,1)\n"
    "}\n";
static const char bash_begin[] =
    "_mortise() {\n"
    "    local IFS=$' \\t\\n' line=${COMP_LINE:0:COMP_POINT} typed store=() current last i\n"
    "    local subcommand= words= takes=' --url --config ' operands= names= command= count=0 "
    "ended=\n"
    "    read -ra typed <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && typed+=('')\n"
    "    last=$((${#typed[@]} - 1)) current=${typed[-1]}\n"
    "    COMPREPLY=()\n"
    "    for ((i = 1; i < last; i++)); do\n"
    "        if [[ ${typed[i]} == -- ]]; then\n"
    "            ended=yes\n"
    "        elif [[ ${typed[i]} == -* && -z $ended && ( -z $command || $count == 0 ) ]]; then\n"
    "            case ${typed[i]} in\n"
    "            --url=* | --config=*) store+=(\"${typed[i]}\") ;;\n"
    "            --url | --config) store+=(\"${typed[@]:i:2}\") ;;\n"
    "            esac\n"
    "            [[ $takes == *\" ${typed[i]} \"* ]] && ((i++))\n"
    "        elif [[ -n $subcommand ]]; then\n"
    "            ((count++))\n"
    "        else\n"
    "            subcommand=${typed[i]}\n"
    "            case $subcommand in\n";
static const char bash_middle[] = "            esac\n"
                                  "        fi\n"
                                  "    done\n"
                                  "    if ((i > last)); then\n"
                                  "        case \"$subcommand ${typed[last - 1]}\" in\n";
static const char bash_end[] =
    "    elif [[ $current == -* && -z $ended && ( -z $command || $count == 0 ) ]]; then\n"
    "        _mortise_offer $words\n"
    "    elif [[ -n $command && $count == 1 ]]; then\n"
    "        COMPREPLY=($(compgen -c -- \"$current\"))\n"
    "    elif [[ -n $names && ( -z $command || $count == 0 ) ]]; then\n"
    "        _mortise_names\n"
    "    elif ((count == 0)); then\n"
    "        _mortise_offer $operands\n"
    "    fi\n"
    "}\n"
    "complete -o default -F _mortise mortise\n";

static void bash_flag(const struct mrt_subcommand *subcommand, const struct mrt_flag *flag)
{
    (void)subcommand;
    printf(" --%s", flag->name);
}

static void bash_takes(const struct mrt_subcommand *subcommand, const struct mrt_flag *flag)
{
    (void)subcommand;
    if (flag->argument)
        printf(" --%s", flag->name);
    if (flag->argument && is_letter(flag))
        printf(" -%c", flag->id);
}

static void bash_values(const struct mrt_subcommand *subcommand, const struct mrt_flag *flag)
{
    if (has_values(flag->argument)) {
        printf("        '%s --%s') _mortise_offer ", subcommand->name, flag->name);
        print_values(flag->argument);
        printf(" ;;\n");
    } else if (flag->argument && strcmp(flag->argument, "NAME") == 0 && takes_names(subcommand)) {
        printf("        '%s --%s') _mortise_names ;;\n", subcommand->name, flag->name);
    }
}

static void print_bash_subcommand(const struct mrt_subcommand *subcommand)
{
    printf("            %s) words='", subcommand->name);
    each_flag(subcommand, bash_flag);
    printf("' takes='");
    each_flag(subcommand, bash_takes);
    printf(" ' names=%s command=%s", takes_names(subcommand) ? "yes" : "",
           takes_command(subcommand) ? "yes" : "");
    printf(" operands='");
    if (!takes_names(subcommand) && has_values(subcommand->operands))
        print_values(subcommand->operands);
    printf("' ;;\n");
}

static void print_bash(mrt_subcommands *subcommands)
{
    fputs(bash_names, stdout);
    fputs(bash_begin, stdout);
    for (mrt_subcommands *row = subcommands; *row; row++)
        print_bash_subcommand(*row);
    fputs(bash_middle, stdout);
    for (mrt_subcommands *row = subcommands; *row; row++)
        each_flag(*row, bash_values);
    printf("        esac\n"
           "    elif [[ -z $subcommand ]]; then\n"
           "        _mortise_offer --url --config --help --version help version");
    for (mrt_subcommands *row = subcommands; *row; row++)
        printf(" %s", (*row)->name);
    putchar('\n');
    fputs(bash_end, stdout);
}

/* ------------------------------------------------------------------ zsh */

static const char zsh_names[] =
    "_mortise_names() {\n"
    "    local -a names=(${(f)\"$(timeout 1 mortise $store ls 2>/dev/null |\n"
    "        awk '$2 == \"holds\" || $2 ~ /^[1-9]/ {print $1}' | sort -u)\"})\n"
    "    compadd -a names\n"
    "}\n";

/* The help of an option as one line between single quotes; `marks` are written behind a "\". */
static void print_line(const char *help, const char *marks)
{
    for (const char *c = help; *c; c++) {
        if (strchr(marks, *c))
            putchar('\\');
        putchar(*c == '\n' ? ' ' : *c == '\'' ? '"' : *c);
    }
}

static void zsh_flag(const struct mrt_subcommand *subcommand, const struct mrt_flag *flag)
{
    (void)subcommand;
    if (is_letter(flag))
        printf(" \\\n            '(-%c --%s)'{-%c,--%s}'[", flag->id, flag->name, flag->id,
               flag->name);
    else
        printf(" \\\n            '--%s[", flag->name);
    print_line(flag->help, "[]:");
    if (has_values(flag->argument)) {
        printf("]:value:(");
        print_values(flag->argument);
        printf(")'");
    } else if (flag->argument) {
        bool names = strcmp(flag->argument, "NAME") == 0 && takes_names(subcommand);
        printf("]:%s:%s'", flag->argument, names ? "_mortise_names" : "_default");
    } else {
        printf("]'");
    }
}

static void zsh_operands(const struct mrt_subcommand *subcommand)
{
    printf("        %s) _arguments", subcommand->name);
    each_flag(subcommand, zsh_flag);
    if (takes_command(subcommand) && takes_names(subcommand))
        printf(" \\\n            '1:name:_mortise_names' '*:::command:_normal' ;;\n");
    else if (takes_command(subcommand))
        printf(" \\\n            '*:::command:_normal' ;;\n");
    else if (takes_names(subcommand))
        printf(" \\\n            '*:name:_mortise_names' ;;\n");
    else if (has_values(subcommand->operands)) {
        printf(" \\\n            '1:operand:(");
        print_values(subcommand->operands);
        printf(")' ;;\n");
    } else {
        printf(" ;;\n");
    }
}

static void print_zsh(mrt_subcommands *subcommands)
{
    printf("#compdef mortise\n%s"
           "_mortise() {\n"
           "    local state line i\n"
           "    local -a store=() subcommands=(\n",
           zsh_names);
    for (mrt_subcommands *row = subcommands; *row; row++)
        printf("        '%s:%s'\n", (*row)->name, (*row)->summary);
    printf(
        "    )\n"
        "    for ((i = 2; i < CURRENT; i++)); do\n"
        "        case $words[i] in\n"
        "        --url=* | --config=*) store+=(\"$words[i]\") ;;\n"
        "        --url | --config) store+=(\"$words[i]\" \"$words[i+1]\") ;;\n"
        "        esac\n"
        "    done\n"
        "    _arguments -C '--url[the store]:URL:' '--config[a file of settings]:FILE:_files' \\\n"
        "        '(- *)--help[help]' '(- *)--version[the version]' \\\n"
        "        '1:subcommand:->subcommand' '*::argument:->argument'\n"
        "    case $state in\n"
        "    subcommand) _describe subcommand subcommands ;;\n"
        "    argument)\n"
        "        case $words[1] in\n");
    for (mrt_subcommands *row = subcommands; *row; row++)
        zsh_operands(*row);
    printf("        esac ;;\n"
           "    esac\n"
           "}\n"
           "compdef _mortise mortise\n");
}

/* ----------------------------------------------------------------- fish */

/* Words from the subcommand on that are no options: the first is the name. */
static const char fish_names[] =
    "function __mortise_names\n"
    "    set -l store\n"
    "    set -l words (commandline -opc)\n"
    "    for i in (seq (count $words))\n"
    "        switch $words[$i]\n"
    "            case '--url=*' '--config=*'\n"
    "                set -a store $words[$i]\n"
    "            case --url --config\n"
    "                set -a store $words[$i] $words[(math $i + 1)]\n"
    "        end\n"
    "    end\n"
    "    timeout 1 mortise $store ls 2>/dev/null |\n"
    "        awk '$2 == \"holds\" || $2 ~ /^[1-9]/ {print $1}' | sort -u\n"
    "end\n";

static void fish_flag(const struct mrt_subcommand *subcommand, const struct mrt_flag *flag)
{
    printf("complete -c mortise -n '__fish_seen_subcommand_from %s' -l %s", subcommand->name,
           flag->name);
    if (is_letter(flag))
        printf(" -s %c", flag->id);
    if (has_values(flag->argument)) {
        printf(" -x -a '");
        print_values(flag->argument);
        putchar('\'');
    } else if (flag->argument) {
        bool names = strcmp(flag->argument, "NAME") == 0 && takes_names(subcommand);
        printf("%s", names ? " -x -a '(__mortise_names)'" : " -r");
    }
    printf(" -d '");
    print_line(flag->help, "");
    printf("'\n");
}

static void fish_operands(const struct mrt_subcommand *subcommand)
{
    const char *name = subcommand->name;
    if (takes_command(subcommand))
        printf("complete -c mortise -n '__fish_seen_subcommand_from %s; and contains -- -- "
               "(commandline -opc)' -x -a '(__fish_complete_command)'\n",
               name);
    if (takes_names(subcommand))
        printf("complete -c mortise -n '__fish_seen_subcommand_from %s; and not contains -- -- "
               "(commandline -opc)' -f -a '(__mortise_names)'\n",
               name);
    if (takes_names(subcommand) || !has_values(subcommand->operands))
        return;
    printf("complete -c mortise -n '__fish_seen_subcommand_from %s' -f -a '", name);
    print_values(subcommand->operands);
    printf("'\n");
}

static void print_fish(mrt_subcommands *subcommands)
{
    fputs(fish_names, stdout);
    for (mrt_subcommands *row = subcommands; *row; row++)
        printf("complete -c mortise -n __fish_use_subcommand -f -a %s -d '%s'\n", (*row)->name,
               (*row)->summary);
    printf("complete -c mortise -n __fish_use_subcommand -l url -r -d 'the store'\n"
           "complete -c mortise -n __fish_use_subcommand -l config -r -d 'a file of settings'\n"
           "complete -c mortise -n __fish_use_subcommand -l help -d 'help'\n"
           "complete -c mortise -n __fish_use_subcommand -l version -d 'the version'\n");
    for (mrt_subcommands *row = subcommands; *row; row++) {
        each_flag(*row, fish_flag);
        fish_operands(*row);
    }
}

int mrt_cli_completion(struct mrt_cli *cli, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(mrt_subcommands *subcommands);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    int option;
    while ((option = mrt_cli_option(cli, argc, argv)) != MRT_OPTION_END)
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
    for (size_t i = 0; argc - optind == 1 && i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(argv[optind], shells[i].name) == 0) {
            shells[i].print(cli->subcommands);
            return mrt_cli_end_output();
        }
    return mrt_cli_fail(MRT_EXIT_USAGE, "completion is for bash, zsh or fish; see --help");
}
