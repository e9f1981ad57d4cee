/* See defect_run.h. */
#include "defect_run.h"

#include "cmocka_all.h"
#include "mutants.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_child(enum mrt_defect defect, const char *pattern, int (*run)(void), int output)
{
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
        _exit(0);
    alarm(60);
    mrt_defect_on = defect;
    cmocka_set_test_filter(pattern);
    _exit(run() != 0);
}

/* Whether a test fails; where it does is told. */
static bool is_caught(enum mrt_defect defect, const char *pattern, int (*run)(void))
{
    int status, output[2];
    char line[512];
    if (pipe(output) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        run_child(defect, pattern, run, output[1]);
    close(output[1]);
    FILE *lines = fdopen(output[0], "r");
    while (lines && fgets(line, sizeof line, lines))
        if (strstr(line, "[   LINE   ]"))
            printf("#   %s", line);
    if (lines)
        fclose(lines);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status != 0;
}

/* Tests fail under this defect, as they should; says so as TAP. */
static bool is_found(int number, const struct defect_row *row, const char *pattern,
                     int (*run)(void))
{
    bool caught = is_caught((enum mrt_defect)row->defect, pattern, run);
    printf("%s %d - %s: %s\n", caught ? "ok" : "not ok", number, row->name, row->text);
    fflush(stdout);
    return caught;
}

static const struct mutant_row {
    struct defect_row row;
    const char *suite, *test;
} mutants[] = {
#define MUTANT_ROW(name, suite, test, text) {{MRT_MUTANT_##name, #name, text}, suite, test},
    MRT_MUTANT_MAP(MUTANT_ROW)
#undef MUTANT_ROW
};

int defect_run(const char *suite, const struct defect_row *rows, int total,
               void (*pattern)(const char *defect, char pattern[40]), int (*run)(void))
{
    int missed = 0, number = total;
    char tests[40];
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < total; i++) {
        pattern(rows[i].name, tests);
        missed += !is_found(i + 1, &rows[i], tests, run);
    }
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++)
        if (strcmp(mutants[i].suite, suite) == 0)
            missed += !is_found(++number, &mutants[i].row, mutants[i].test, run);
    printf("1..%d\n", number);
    return missed;
}
