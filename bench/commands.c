/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole commands, from spawn to reaped: true, flock FILE true, and
 * mortise run NAME -- true on the store of $MORTISE_URL. The three take turns,
 * so that what else the machine does hits all alike.
 *
 *   bench_commands ROUNDS MORTISE FILE
 */
#include "clock.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

#define ROUNDS_MAX 100000

static int64_t time_command(char *const *arguments)
{
    pid_t pid;
    int status;
    int64_t begin = now_ns();
    if (posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ) != 0 ||
        waitpid(pid, &status, 0) != pid)
        return -1;
    int64_t end = now_ns();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? end - begin : -1;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 64;
    long rounds = strtol(argv[1], NULL, 10);
    if (rounds < 1 || rounds > ROUNDS_MAX)
        return 64;
    char *const commands[3][6] = {
        {"true", NULL},
        {"flock", argv[3], "true", NULL},
        {argv[2], "run", "bench", "--", "true", NULL},
    };
    static int64_t times[3][ROUNDS_MAX];
    for (int i = 0; i < 3; i++)
        time_command(commands[i]); /* what only the first run pays */
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 3; i++) {
            times[i][round] = time_command(commands[i]);
            if (times[i][round] < 0) {
                fprintf(stderr, "bench_commands: %s failed\n", commands[i][0]);
                return 1;
            }
        }
    }
    printf("{\"true_us\": %.1f, ", median_us(times[0], (size_t)rounds));
    printf("\"flock_us\": %.1f, ", median_us(times[1], (size_t)rounds));
    printf("\"mortise_us\": %.1f}\n", median_us(times[2], (size_t)rounds));
    return 0;
}
