/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched: runs seeds of the scheduler.
 *
 *   sched --seeds N [--start S] [--jobs J]     runs N seeds; the first that fails is shown, and all
 *                                              end
 *   sched --seeds N --hash                     says of each its order of steps, as a number
 *   sched --seed X [--trace | --waits]         runs one, and shows all of it; and each wait
 *   sched --defects [--seeds N] [--seconds T]  in how many seeds each seeded defect is found
 *                                              (sched_defects)
 *
 *   --defect NAME                              with this seeded defect
 */
#include "runner.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void usage(void)
{
    fprintf(stderr,
            "usage: sched --seeds N [--start S] [--jobs J] [--hash] [--defect NAME]\n"
            "       sched --seed X [--trace | --waits] [--hash] [--defect NAME]\n"
            "       sched --defects [--defect NAME] [--seeds N] [--seconds T] [--jobs J]\n");
    exit(64);
}

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || end == text || text[0] == '-')
        usage();
    return value;
}

static int run(const struct request *request)
{
    struct outcome outcome;
    if (request->defect && !switch_defect(request->defect)) {
        fprintf(stderr, "sched: this build has no defect %s\n", request->defect);
        return 64;
    }
    run_seeds(request, &outcome);
    if (!outcome.failed && !request->hash)
        printf("%llu schedules, %llu steps: no fault\n", (unsigned long long)outcome.schedules,
               (unsigned long long)outcome.steps);
    return outcome.failed;
}

int main(int count, char **arguments)
{
    static const struct option options[] = {{"seeds", required_argument, NULL, 'n'},
                                            {"start", required_argument, NULL, 's'},
                                            {"jobs", required_argument, NULL, 'j'},
                                            {"seed", required_argument, NULL, 'x'},
                                            {"trace", no_argument, NULL, 't'},
                                            {"waits", no_argument, NULL, 'w'},
                                            {"hash", no_argument, NULL, 'h'},
                                            {"defects", no_argument, NULL, 'd'},
                                            {"seconds", required_argument, NULL, 'T'},
                                            {"defect", required_argument, NULL, 'D'},
                                            {NULL, 0, NULL, 0}};
    struct request request = {.start = 1, .jobs = 2};
    bool defects = false;
    int option;
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        if (option == 'n')
            request.seeds = number(optarg);
        else if (option == 's')
            request.start = number(optarg);
        else if (option == 'j')
            request.jobs = (int)number(optarg);
        else if (option == 't')
            request.trace = SCHED_NOTES;
        else if (option == 'w')
            request.trace = SCHED_WAITS;
        else if (option == 'h')
            request.hash = true;
        else if (option == 'd')
            defects = true;
        else if (option == 'T')
            request.seconds = (int)number(optarg);
        else if (option == 'D')
            request.defect = optarg;
        else if (option != 'x')
            usage();
        if (option == 'x') {
            request.start = number(optarg);
            request.seeds = 1;
            request.jobs = 1;
        }
    }
    if (optind < count || request.jobs < 1 || request.jobs > JOBS_MAX ||
        (request.seeds == 0 && !defects))
        usage();
    return defects ? run_defects(&request) != 0 : run(&request);
}
