/* SPDX-License-Identifier: Apache-2.0 */
/* See schedule.h. */
#include "schedule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_SIZE (256 * 1024)
#define LOCALS_MAX 4096
#define STEPS_MAX 400000
#define CHANGES_MAX 4
#define LINES_MAX 200
#define LINE_SIZE 160
#define NAME_SIZE 24

#if SCHED_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum state { ENDED, RUNS, WAITS };

struct thread {
    char name[NAME_SIZE];
    enum state state;
    ucontext_t context;
    void *stack; /* NULL: the process's own */
    size_t stack_size;
    void *fake_stack; /* the sanitizer's */
    void *(*run)(void *argument);
    void *argument, *result;
    const char *what; /* WAITS */
    bool (*ready)(const void *subject);
    const void *subject;
    mrt_time until;
    mrt_time paused_until; /* 0: it is not paused */
    int priority;
    int error; /* errno */
    char locals[LOCALS_MAX];
};

enum way { ANY, MOSTLY_ON, BY_PRIORITY, WAYS };

static struct thread threads[THREADS_MAX];
static int thread_count, current;
static bool runs;
static enum sched_trace trace;
static mrt_time now, paused;
static uint64_t steps, hash;
static struct random chance;
static enum way way;
static int64_t stay;                  /* MOSTLY_ON: its chance, of 10,000 */
static int64_t pause_chance;          /* of 10,000 points */
static uint64_t changes[CHANGES_MAX]; /* BY_PRIORITY: at which steps it falls */
static int lowest;
static char lines[LINES_MAX][LINE_SIZE];
static uint64_t line_count;
mrt_time (*sched_watch)(mrt_time now, mrt_time next);

/* ------------------------------------------------------------------ thread-locals */

/* Where this build's compiler puts them (CMakeLists.txt). */
extern char __start_sched_locals[], __stop_sched_locals[];

/* Copies byte by byte: memcpy would touch the sanitizer's bytes between variables. */
__attribute__((no_sanitize("address"))) static void copy_locals(char *to, const char *from)
{
    size_t size = (size_t)(__stop_sched_locals - __start_sched_locals);
    for (size_t i = 0; i < size; i++)
        *(volatile char *)(to + i) = from[i];
}

/* ------------------------------------------------------------------ trace */

void sched_note(const char *format, ...)
{
    va_list arguments;
    char *line = lines[line_count++ % LINES_MAX];
    int length =
        snprintf(line, LINE_SIZE, "%10.3f ms %-12s ", (double)now / 1e6, threads[current].name);
    va_start(arguments, format);
    vsnprintf(line + length, LINE_SIZE - (size_t)length, format, arguments);
    va_end(arguments);
    if (trace)
        printf("%s\n", line);
}

static void print_threads(void)
{
    for (int i = 0; i < thread_count; i++) {
        const struct thread *thread = &threads[i];
        if (thread->state == ENDED)
            continue;
        printf("  %-12s ", thread->name);
        if (thread->state == RUNS)
            printf("could run\n");
        else if (thread->until == MRT_TIME_NEVER)
            printf("waits for %s\n", thread->what);
        else
            printf("waits for %s until %.3f ms\n", thread->what, (double)thread->until / 1e6);
    }
}

void sched_fail(const char *format, ...)
{
    va_list arguments;
    uint64_t first = line_count > LINES_MAX ? line_count - LINES_MAX : 0;
    for (uint64_t i = first; !trace && i < line_count; i++)
        printf("%s\n", lines[i % LINES_MAX]);
    printf("%10.3f ms %s, after %llu steps: ", (double)now / 1e6, threads[current].name,
           (unsigned long long)steps);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    print_threads();
    fflush(stdout);
    _exit(1);
}

/* ------------------------------------------------------------------ choosing */

static bool can_run(const struct thread *thread)
{
    return thread->state == RUNS ||
           (thread->state == WAITS && (thread->until <= now || thread->ready(thread->subject)));
}

/* Goes on to the next instant that somebody waits for. */
static void pass_time(void)
{
    mrt_time next = MRT_TIME_NEVER;
    for (int i = 0; i < thread_count; i++)
        if (threads[i].state == WAITS && threads[i].until < next)
            next = threads[i].until;
    mrt_time watched = sched_watch ? sched_watch(now, next) : next;
    if (next == MRT_TIME_NEVER && watched == MRT_TIME_NEVER)
        sched_fail("all threads wait for ever");
    now = mrt_time_min(next, watched);
}

static int by_priority(const int *able, int count)
{
    int best = able[0];
    for (int i = 0; i < CHANGES_MAX; i++)
        if (changes[i] == steps)
            threads[current].priority = --lowest;
    for (int i = 1; i < count; i++)
        if (threads[able[i]].priority > threads[best].priority)
            best = able[i];
    return best;
}

static int choose(void)
{
    int able[THREADS_MAX], count = 0;
    while (count == 0) {
        for (int i = 0; i < thread_count; i++)
            if (can_run(&threads[i]))
                able[count++] = i;
        if (count == 0)
            pass_time();
    }
    if (way == BY_PRIORITY)
        return by_priority(able, count);
    if (way == MOSTLY_ON && can_run(&threads[current]) && random_chance(&chance, stay))
        return current;
    return able[random_below(&chance, count)];
}

static void mix(uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
}

/* ------------------------------------------------------------------ switching */

/* The process's own stack is learnt when it is left for the first time. */
static void arrived(void)
{
#if SCHED_SANITIZED
    const void *left;
    size_t size;
    __sanitizer_finish_switch_fiber(threads[current].fake_stack, &left, &size);
    if (!threads[0].stack) {
        threads[0].stack = (void *)left;
        threads[0].stack_size = size;
    }
#endif
}

static void switch_to(int next)
{
    struct thread *from = &threads[current], *to = &threads[next];
    from->error = errno;
    copy_locals(from->locals, __start_sched_locals);
    copy_locals(__start_sched_locals, to->locals);
    current = next;
#if SCHED_SANITIZED
    __sanitizer_start_switch_fiber(from->state == ENDED ? NULL : &from->fake_stack, to->stack,
                                   to->stack_size);
#endif
    swapcontext(&from->context, &to->context);
    arrived();
    errno = threads[current].error;
}

static void go_on(void)
{
    if (++steps > STEPS_MAX)
        sched_fail("the run does not end");
    int next = choose();
    mix((uint64_t)next ^ (uint64_t)now << 8);
    threads[next].state = RUNS;
    if (next != current)
        switch_to(next);
}

static bool never(const void *unused)
{
    (void)unused;
    return false;
}

void sched_point(void)
{
    if (random_chance(&chance, pause_chance)) {
        mrt_time length = random_below(&chance, 5 * MRT_MILLISECOND);
        paused += length;
        threads[current].paused_until = now + length;
        sched_sleep("a pause to end", length);
        threads[current].paused_until = 0;
        return;
    }
    go_on();
}

static void note_wait(const char *how, const char *what)
{
    if (trace == SCHED_WAITS)
        sched_note("- %s %s", how, what);
}

bool sched_wait(const char *what, bool (*ready)(const void *subject), const void *subject,
                mrt_time until)
{
    struct thread *thread = &threads[current];
    thread->state = WAITS;
    thread->what = what;
    thread->ready = ready;
    thread->subject = subject;
    thread->until = until;
    note_wait("waits for", what);
    go_on();
    note_wait("goes on after", what);
    return ready(subject);
}

void sched_sleep(const char *what, mrt_time length)
{
    sched_wait(what, never, NULL, mrt_time_add(now, length));
}

bool sched_waits(int thread, const char *what)
{
    const struct thread *one = &threads[thread];
    return one->state == ENDED || (one->state == WAITS && strcmp(one->what, what) == 0);
}

/* ------------------------------------------------------------------ threads */

static void body(void)
{
    struct thread *thread = &threads[current];
    arrived();
    thread->result = thread->run(thread->argument);
    thread->state = ENDED;
    go_on();
    abort(); /* it is never chosen again */
}

/* Stacks are kept from run to run; the page below each is nobody's. */
static void *stack_of(int number)
{
    static void *stacks[THREADS_MAX];
    if (!stacks[number]) {
        char *memory = mmap(NULL, STACK_SIZE + 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_NONE) != 0)
            abort();
        stacks[number] = memory + 4096;
    }
#if SCHED_SANITIZED
    __asan_unpoison_memory_region(stacks[number], STACK_SIZE);
#endif
    return stacks[number];
}

static int new_thread(const char *name)
{
    if (thread_count == THREADS_MAX)
        sched_fail("more than %d threads", THREADS_MAX);
    struct thread *thread = &threads[thread_count];
    memset(thread, 0, sizeof *thread);
    snprintf(thread->name, sizeof thread->name, "%s", name);
    thread->state = RUNS;
    thread->priority = (int)random_below(&chance, 1000000);
    return thread_count++;
}

int sched_start(const char *name, void *(*run)(void *argument), void *argument)
{
    int number = new_thread(name);
    struct thread *thread = &threads[number];
    thread->run = run;
    thread->argument = argument;
    thread->stack = stack_of(number);
    thread->stack_size = STACK_SIZE;
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&thread->context, body, 0);
    return number;
}

static bool has_ended(const void *subject)
{
    return ((const struct thread *)subject)->state == ENDED;
}

void *sched_join(int thread)
{
    sched_wait("a thread to end", has_ended, &threads[thread], MRT_TIME_NEVER);
    return threads[thread].result;
}

/* ------------------------------------------------------------------ a run */

static void draw_way(void)
{
    static const int64_t stays[] = {5000, 8750, 9700};
    static const int64_t lengths[] = {60, 300, 1500};
    way = (enum way)random_below(&chance, WAYS);
    stay = stays[random_below(&chance, 3)];
    pause_chance = random_below(&chance, 4) == 0 ? random_between(&chance, 1, 100) : 0;
    int64_t length = lengths[random_below(&chance, 3)];
    for (int i = 0; i < CHANGES_MAX; i++)
        changes[i] = 1 + (uint64_t)random_below(&chance, length);
    lowest = 0;
}

void sched_begin(uint64_t seed, enum sched_trace given)
{
    size_t size = (size_t)(__stop_sched_locals - __start_sched_locals);
    if (size > LOCALS_MAX)
        abort();
    random_seed(&chance, seed);
    trace = given;
    thread_count = current = 0;
    now = MRT_SECOND;
    paused = 0;
    steps = hash = line_count = 0;
    draw_way();
    new_thread("main");
    runs = true;
}

void sched_end(void)
{
    for (int i = 1; i < thread_count; i++)
        if (threads[i].state != ENDED)
            sched_fail("thread %s has not ended", threads[i].name);
    runs = false;
}

bool sched_runs(void)
{
    return runs;
}

mrt_time sched_now(void)
{
    return now;
}

int sched_self(void)
{
    return current;
}

int sched_count(void)
{
    return thread_count;
}

const char *sched_name(int thread)
{
    return threads[thread].name;
}

mrt_time sched_paused(void)
{
    mrt_time elapsed = paused;
    for (int i = 0; i < thread_count; i++)
        if (threads[i].paused_until > now)
            elapsed -= threads[i].paused_until - now;
    return elapsed;
}

uint64_t sched_steps(void)
{
    return steps;
}

uint64_t sched_hash(void)
{
    return hash;
}
