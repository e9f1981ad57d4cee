/* SPDX-License-Identifier: Apache-2.0 */
/* See defect_run.h. */
#include "defect_run.h"

#include "cmocka_all.h"
#include "mutants.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void run_child(int mutant, const char *pattern, int (*run)(void), int output)
{
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
        _exit(0);
    alarm(60);
    mrt_mutant_on = mutant;
    cmocka_set_test_filter(pattern);
    _exit(run() != 0);
}

/* Whether a test fails; where it does is told. */
static bool is_caught(int mutant, const char *pattern, int (*run)(void))
{
    int status, output[2];
    char line[512];
    if (pipe(output) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        run_child(mutant, pattern, run, output[1]);
    close(output[1]);
    FILE *lines = fdopen(output[0], "r");
    while (lines && fgets(line, sizeof line, lines))
        if (strstr(line, "[   LINE   ]"))
            printf("#   %s", line);
    if (lines)
        fclose(lines);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status != 0;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const struct row {
    int mutant;
    const char *name, *suite, *test, *text;
} rows[] = {
#define MUTANT_ROW(name, suite, test, text) {MRT_MUTANT_##name, #name, suite, test, text},
    MRT_MUTANT_MAP(MUTANT_ROW)
#undef MUTANT_ROW
};

int defect_run(const char *suite, int (*run)(void))
{
    int missed = 0, number = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].suite, suite) != 0)
            continue;
        int64_t begin = now_ms();
        bool caught = is_caught(rows[i].mutant, rows[i].test, run);
        printf("%s %d - %-28s %6.2f s  %s\n", caught ? "ok" : "not ok", ++number, rows[i].name,
               (double)(now_ms() - begin) / 1000, rows[i].text);
        fflush(stdout);
        missed += !caught;
    }
    printf("1..%d\n", number);
    return number == 0 ? 1 : missed;
}
