/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with an event loop of its own, epoll's, that waits for a lock and goes on with its
 * other work meanwhile. mortise has no thread here (MORTISE_FOREIGN_LOOP): the loop watches
 * mortise_fd, waits no longer than mortise_next_timeout_ms, and calls mortise_process.
 *
 *   ./patient NAME
 *
 * Prints "tick" ten times a second, whether it waits, holds or neither; "held" with the fence when
 * it has the lock; and releases it when a line, or the end, comes on standard input. Ends with 76
 * if the lock is lost.
 *
 * All calls of a client without a thread are made by one thread. Callbacks run in mortise_process,
 * so they need no mutex; they may not wait.
 */
#include <mortise.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { LOST = 76 };

struct program {
    mortise_hold hold;
    int held;
    int code; /* to end with; negative: go on */
};

static void stop(struct program *program, int code, const char *text)
{
    printf("%s\n", text);
    program->code = code;
}

static void on_state(void *argument, mortise_hold hold, mortise_state state)
{
    (void)hold;
    if (state == MORTISE_LOST)
        stop(argument, LOST, "lost");
}

static void on_acquired(void *argument, int error, mortise_hold hold)
{
    struct program *program = argument;
    if (error) {
        if (error != MORTISE_ECLOSED) /* mortise_close ends an acquire that still waits */
            stop(program, 1, mortise_error_text(error));
        return;
    }
    program->hold = hold;
    program->held = 1;
    printf("held, fence %llu\n", (unsigned long long)mortise_hold_fence(hold));
    if (mortise_on_lost(hold, on_state, program) != MORTISE_OK)
        stop(program, LOST, "lost");
}

/* Something else that this program does. */
static void tick(int timer)
{
    uint64_t times;
    if (read(timer, &times, sizeof times) == (ssize_t)sizeof times)
        printf("tick\n");
}

static void read_input(struct program *program)
{
    char line[64];
    ssize_t length = read(STDIN_FILENO, line, sizeof line);
    int error = length < 0 || !program->held ? MORTISE_OK : mortise_release(program->hold);
    if (error)
        stop(program, error == MORTISE_ELOST ? LOST : 1, mortise_error_text(error));
    else
        stop(program, 0, program->held ? "released" : "given up");
}

static int watch(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

static void run(struct program *program, mortise_client *client, int loop, int timer)
{
    while (program->code < 0) {
        struct epoll_event events[3];
        /* Computed anew each time: every call on the client may have changed it. */
        int count = epoll_wait(loop, events, 3, mortise_next_timeout_ms(client));
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == timer)
                tick(timer);
            else if (events[i].data.fd == STDIN_FILENO)
                read_input(program);
        }
        mortise_process(client); /* also after a timeout; it does not block */
    }
}

int main(int argc, char **argv)
{
    mortise_client_options options = {.size = sizeof options, .flags = MORTISE_FOREIGN_LOOP};
    struct itimerspec often = {{0, 100000000}, {0, 100000000}};
    struct program program = {.code = -1};
    mortise_client *client = NULL;
    mortise_lock *lock;
    int loop = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

    if (argc != 2) {
        fprintf(stderr, "usage: patient NAME\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    int error = mortise_open(NULL, &options, &client);
    if (!error)
        error = mortise_mutex_new(client, argv[1], NULL, &lock);
    if (!error)
        error = mortise_acquire_async(lock, INT64_MAX, on_acquired, &program, NULL);
    if (error)
        fprintf(stderr, "patient: %s: %s\n", mortise_error_text(error), mortise_error_detail());
    else if (watch(loop, mortise_fd(client)) || watch(loop, timer) || watch(loop, STDIN_FILENO) ||
             timerfd_settime(timer, 0, &often, NULL))
        perror("patient");
    else
        run(&program, client, loop, timer);
    mortise_close(client); /* ends what still waits, and runs the client until that is done */
    close(timer);
    close(loop);
    return program.code < 0 ? 1 : program.code;
}
