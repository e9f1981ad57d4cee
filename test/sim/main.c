/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim: runs seeds of the simulator.
 *
 *   sim --seeds N [--start S] [--jobs J]   runs N seeds; the first that fails is made
 *                                          smaller and printed, with its trace
 *   sim --seeds N --hash                   prints the hash of each
 *   sim --seed X [--trace] [--set F=V]...  runs one; --trace: prints all of it
 *   sim --seeds N --expect TEXT            one of them has to fail so: what no store stands
 *   sim --seeds N --defect NAME            all of them with a seeded defect; so --seed too
 *   sim --defects [--seconds T]            how long each seeded defect lives, or (--defect)
 *                                          those whose names begin so
 *                                          (only sim_defects has any defects)
 *
 *   --store NAME           zookeeper: the real store on a fake of its client library;
 *                          redis, redlock: the real stores on fake servers, one or five;
 *                          quorum: the real store on three members with sessions;
 *                          postgres: the real store and libpq on a fake primary and standby;
 *                          etcd: the real store on a fake of libcurl and of a cluster;
 *                          agent: the host agent and the store agent: on the memory store's server;
 *                          zookeeper-port, sqlite, lease, memory: models behind the port;
 *                          any: one of the last three, as the seed has it
 *   --mixed                locks of several kinds in a run, or semaphore mutexes
 *   --lone                 nothing goes wrong in a run but one thing, or two in succession
 *
 * A worker is a process of its own, so a failed assertion or a crash in the engine
 * is found like any other failure, and so is an endless loop.
 */
#include "runner.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

static void usage(void)
{
    fprintf(
        stderr,
        "usage: sim --seeds N [--start S] [--jobs J] [--hash] [--store NAME] [--mixed | --lone]\n"
        "           [--expect TEXT] [--defect NAME] [--set field=value]...\n"
        "       sim --seed X [--trace] [--hash] [--store NAME] [--mixed | --lone]\n"
        "           [--defect NAME] [--set field=value]...\n"
        "       sim --defects [--defect BEGIN] [--seconds T] [--jobs J]\n");
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

static int run(struct request *request)
{
    if (request->defects)
        return run_defects(request);
    if (request->defect && !defect_switch_by_name(request->defect)) {
        fprintf(stderr, "sim: this build has no defect %s\n", request->defect);
        return 64;
    }
    if (request->kind == WORLD_LONE && request->model == MODEL_AGENT) {
        fprintf(stderr, "sim: a world with an agent has no lone fault: leave --lone out\n");
        return 64;
    }
    if (request->single)
        return run_single(request);
    return request->hash ? run_hashes(request) : run_seeds(request);
}

int main(int count, char **arguments)
{
    int kind = WORLD_FAULTY, option;
    const struct option options[] = {{"seeds", required_argument, NULL, 'n'},
                                     {"start", required_argument, NULL, 's'},
                                     {"jobs", required_argument, NULL, 'j'},
                                     {"hash", no_argument, NULL, 'h'},
                                     {"seed", required_argument, NULL, 'x'},
                                     {"store", required_argument, NULL, 'S'},
                                     {"trace", no_argument, NULL, 't'},
                                     {"set", required_argument, NULL, 'f'},
                                     {"defects", no_argument, NULL, 'd'},
                                     {"seconds", required_argument, NULL, 'T'},
                                     {"defect", required_argument, NULL, 'D'},
                                     {"expect", required_argument, NULL, 'E'},
                                     {"mixed", no_argument, &kind, WORLD_MIXED},
                                     {"lone", no_argument, &kind, WORLD_LONE},
                                     {NULL, 0, NULL, 0}};
    struct request request = {.start = 1, .jobs = 2, .seconds = 60, .model = MODEL_ANY};
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        switch (option) {
        case 0: /* the kind of world */
            break;
        case 'n':
            request.seeds = number(optarg);
            break;
        case 's':
            request.start = number(optarg);
            break;
        case 'j':
            request.jobs = (int)number(optarg);
            break;
        case 'h':
            request.hash = true;
            break;
        case 'x':
            request.start = number(optarg);
            request.single = true;
            break;
        case 't':
            request.trace = true;
            break;
        case 'f':
            if (request.set_count == SETS_MAX)
                usage();
            request.sets[request.set_count++] = optarg;
            break;
        case 'd':
            request.defects = true;
            break;
        case 'D':
            request.defect = optarg;
            break;
        case 'E':
            request.expect = optarg;
            break;
        case 'S':
            if (!store_by_name(optarg, &request.model))
                usage();
            break;
        case 'T':
            request.seconds = (int)number(optarg);
            break;
        default:
            usage();
        }
    }
    request.kind = (enum world_kind)kind;
    if (optind < count || request.jobs < 1 || request.jobs > JOBS_MAX ||
        (!request.single && !request.defects && request.seeds == 0))
        usage();
    return run(&request);
}
