/* See defect_run.h. */
#include "defect_run.h"

#include "cmocka_all.h"

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

int defect_run(const struct defect_row *rows, int total,
               void (*pattern)(const char *defect, char pattern[40]), int (*run)(void))
{
    int missed = 0;
    char tests[40];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%d\n", total);
    for (int i = 0; i < total; i++) {
        pattern(rows[i].name, tests);
        bool caught = is_caught((enum mrt_defect)rows[i].defect, tests, run);
        missed += !caught;
        printf("%s %d - %s: %s\n", caught ? "ok" : "not ok", i + 1, rows[i].name, rows[i].text);
        fflush(stdout);
    }
    return missed;
}
