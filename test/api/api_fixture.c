/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the suites of the public interface; see api_fixture.h. */
#include "api_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *api_url;
static char url[128];
static char directory[] = "/tmp/mortise-api-XXXXXX";
static bool made;

void api_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: not true: %s (%s)\n", file, line, condition, mortise_error_detail());
    abort();
}

/* Lays out what the store needs, in a process of its own: a client library may keep threads, and
   the first test forks. A child of a process whose other thread is just allocating would wait for
   that thread for ever under the address sanitizer. */
static bool initialise(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int error = mortise_init(api_url, NULL, NULL);
        if (error != MORTISE_OK)
            fprintf(stderr, "%s: %s\n", api_url, mortise_error_detail());
        exit(error != MORTISE_OK); /* leaks are looked for */
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

int api_begin(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : getenv("MORTISE_TEST_URL");
    if (!wanted || strcmp(wanted, "memory") == 0) {
        wanted = "memory:api";
    } else if (strcmp(wanted, "sqlite") == 0) {
        made = mkdtemp(directory) != NULL;
        if (!made)
            return 99;
        snprintf(url, sizeof url, "sqlite:%s/locks.db", directory);
        wanted = url;
    }
    api_url = wanted;
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return initialise() ? 0 : 99;
}

void api_remove_tree(const char *path)
{
    DIR *files = opendir(path);
    struct dirent *entry;
    while (files && (entry = readdir(files))) {
        char name[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            api_remove_tree(name);
        else
            unlink(name);
    }
    if (files)
        closedir(files);
    rmdir(path);
}

int api_end(int failed)
{
    if (made)
        api_remove_tree(directory);
    return failed;
}

bool api_spans_processes(void)
{
    return strncmp(api_url, "memory:", 7) != 0;
}

static mortise_capabilities capabilities(void)
{
    mortise_capabilities can = {.size = sizeof can};
    mortise_client *client = api_open(0);
    check(mortise_get_capabilities(client, &can) == MORTISE_OK);
    api_close(client);
    return can;
}

int64_t api_lease_ms(void)
{
    return capabilities().lease_ms;
}

bool api_has_fences(void)
{
    return capabilities().fence;
}

bool api_queues(void)
{
    return capabilities().fair;
}

bool api_commits_to_disk(void)
{
    return strncmp(api_url, "postgresql:", 11) == 0 || strncmp(api_url, "mysql:", 6) == 0;
}

int api_ports(uint16_t *ports, int most)
{
    static const char here[] = "127.0.0.1:";
    const char *at = api_url;
    int count = 0;
    while (count < most && (at = strstr(at, here))) {
        at += strlen(here);
        ports[count++] = (uint16_t)strtoul(at, NULL, 10);
    }
    return count;
}

const char *api_url_with(const char *parameter)
{
    static char longer[512];
    snprintf(longer, sizeof longer, "%s%c%s", api_url, strchr(api_url, '?') ? '&' : '?', parameter);
    return longer;
}

bool api_full(void)
{
    return getenv("MORTISE_TEST_FULL") != NULL;
}

mortise_client *api_open_with(const mortise_client_options *options)
{
    mortise_client *client = NULL;
    check(mortise_open(api_url, options, &client) == MORTISE_OK);
    check(client != NULL);
    return client;
}

mortise_client *api_open(uint32_t flags)
{
    mortise_client_options options = {.size = sizeof options, .flags = flags, .timeout_ms = 30000};
    return api_open_with(&options);
}

void api_close(mortise_client *client)
{
    check(mortise_close(client) == MORTISE_OK);
}

mortise_lock *api_lock(mortise_client *client, const char *name)
{
    return api_lock_of(client, name, MORTISE_OWNER_THREAD);
}

mortise_lock *api_lock_of(mortise_client *client, const char *name, uint64_t owner)
{
    mortise_lock_options options = {.size = sizeof options, .owner = owner};
    mortise_lock *lock = NULL;
    check(mortise_mutex_new(client, name, &options, &lock) == MORTISE_OK);
    return lock;
}

mortise_lock *api_delaying_lock(mortise_client *client, const char *name, int64_t delay_ms)
{
    const mortise_lock_options options = {.size = sizeof options, .lock_delay_ms = delay_ms};
    mortise_lock *lock = NULL;
    check(mortise_mutex_new(client, name, &options, &lock) == MORTISE_OK);
    return lock;
}

mortise_hold api_acquire(mortise_lock *lock)
{
    mortise_hold hold = {NULL, 0};
    check(mortise_acquire(lock, &hold) == MORTISE_OK);
    return hold;
}

void api_release(mortise_hold hold)
{
    check(mortise_release(hold) == MORTISE_OK);
}

mortise_stats api_stats(mortise_client *client)
{
    mortise_stats stats = {.size = sizeof stats};
    check(mortise_get_stats(client, &stats) == MORTISE_OK);
    return stats;
}

static int count_entry(void *argument, const mortise_entry *entry)
{
    int *count = argument;
    (void)entry;
    ++*count;
    return 0;
}

int64_t api_await_ms = 60000;

/* A server may be too busy to answer in time: it is asked again. */
int api_tickets(mortise_client *client, const char *name)
{
    int count, error;
    int64_t begin = mortise_now_ns();
    do {
        count = 0;
        error = mortise_list(client, name, count_entry, &count);
    } while (mortise_error_kind_of(error) == MORTISE_KIND_RETRY &&
             api_ms_since(begin) < api_await_ms);
    check(error == MORTISE_OK);
    return count;
}

#define UNSEEN_MS 100 /* in which one that no list shows begins to wait */

void api_await_tickets(mortise_client *client, const char *name, int count)
{
    mortise_capabilities can = {.size = sizeof can};
    int64_t begin = mortise_now_ns();
    check(mortise_get_capabilities(client, &can) == MORTISE_OK);
    while (api_tickets(client, name) != count) {
        if (count > 0 && !can.fair && api_ms_since(begin) >= UNSEEN_MS)
            return;
        check(api_ms_since(begin) < api_await_ms);
        api_sleep_ms(2);
    }
}

void api_sleep_ms(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

int64_t api_ms_since(int64_t begin_ns)
{
    return (mortise_now_ns() - begin_ns) / MS_IN_NS;
}

uint64_t api_commands_since(int64_t begin_ns)
{
    return 1 + (uint64_t)api_ms_since(begin_ns) / 200;
}

pthread_t api_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    check(pthread_create(&thread, NULL, body, argument) == 0);
    return thread;
}

void api_join(pthread_t thread)
{
    check(pthread_join(thread, NULL) == 0);
}

pid_t api_child_to_be_killed(void (*hold)(const void *), const void *argument)
{
    int ready[2];
    char byte = 0;
    check(pipe(ready) == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        hold(argument);
        check(write(ready[1], &byte, 1) == 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    check(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return child;
}

struct delaying {
    const char *name;
    int64_t delay_ms;
};

static void hold_delaying(const void *argument)
{
    const struct delaying *delaying = argument;
    api_acquire(api_delaying_lock(api_open(0), delaying->name, delaying->delay_ms));
}

pid_t api_holder_to_be_killed(const char *name, int64_t delay_ms)
{
    const struct delaying delaying = {name, delay_ms};
    return api_child_to_be_killed(hold_delaying, &delaying);
}

void api_kill(pid_t child)
{
    int status;
    check(kill(child, SIGKILL) == 0);
    check(waitpid(child, &status, 0) == child);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ------------------------------------------------------------------ history */

static size_t size_of(size_t limit)
{
    return sizeof(struct api_history) + limit * sizeof(struct api_period);
}

struct api_history *api_history_new(size_t limit)
{
    struct api_history *history =
        mmap(NULL, size_of(limit), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(history != MAP_FAILED);
    history->limit = limit;
    return history;
}

void api_history_hold(struct api_history *history, mortise_hold hold, int64_t ms)
{
    struct api_period period = {.fence = mortise_hold_fence(hold), .begin = mortise_now_ns()};
    check(mortise_is_held(hold));
    if (ms > 0)
        api_sleep_ms(ms);
    check(mortise_is_held(hold));
    period.end = mortise_now_ns();
    size_t place = atomic_fetch_add(&history->count, 1);
    check(place < history->limit);
    history->periods[place] = period;
}

static int by_begin(const void *a, const void *b)
{
    const struct api_period *left = a, *right = b;
    return left->begin < right->begin ? -1 : left->begin > right->begin;
}

void api_history_check(struct api_history *history, size_t expected)
{
    size_t count = history->count;
    bool fences = api_has_fences();
    check(count == expected);
    qsort(history->periods, count, sizeof history->periods[0], by_begin);
    for (size_t i = 0; i < count; i++) {
        check((history->periods[i].fence > 0) == fences);
        if (i == 0)
            continue;
        check(history->periods[i].begin >= history->periods[i - 1].end);
        check(!fences || history->periods[i].fence > history->periods[i - 1].fence);
    }
    munmap(history, size_of(history->limit));
}
