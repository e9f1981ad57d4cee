/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with libuv's event loop that waits for a lock and goes on with its other work
 * meanwhile. mortise has no thread here (MORTISE_FOREIGN_LOOP): a poll handle watches mortise_fd, a
 * timer waits no longer than mortise_next_timeout_ms, and both call mortise_process. The timer is
 * set in a prepare handle, just before the loop sleeps, since every call on the client may change
 * it.
 *
 *   ./patient NAME
 *
 * Prints "tick" ten times a second, whether it waits, holds or neither; "held" with the fence when
 * it has the lock; and releases it when a line, or the end, comes on standard input. Ends with 76
 * if the lock is lost.
 *
 * All calls of a client without a thread are made by one thread, here the loop's. Callbacks of
 * mortise run in mortise_process, so they may use the loop; they may not wait.
 */
#include <mortise.h>
#include <stdio.h>
#include <unistd.h>
#include <uv.h>

enum { LOST = 76 };

struct program {
    mortise_client *client;
    mortise_hold hold;
    int held;
    int code;
    uv_poll_t store, input;
    uv_timer_t due, ticks;
    uv_prepare_t before_sleep;
};

static void stop(struct program *program, int code, const char *text)
{
    printf("%s\n", text);
    program->code = code;
    uv_stop(program->store.loop);
}

/* ---------------------------------------------------------------- mortise's callbacks */

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

/* ---------------------------------------------------------------- mortise in the loop */

static void on_store(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    mortise_process(((struct program *)handle->data)->client);
}

static void on_due(uv_timer_t *handle)
{
    mortise_process(((struct program *)handle->data)->client);
}

static void before_sleep(uv_prepare_t *handle)
{
    struct program *program = handle->data;
    int timeout = mortise_next_timeout_ms(program->client);
    if (timeout < 0)
        uv_timer_stop(&program->due);
    else
        uv_timer_start(&program->due, on_due, (uint64_t)timeout, 0);
}

static int add_client(uv_loop_t *loop, struct program *program)
{
    int error = uv_poll_init(loop, &program->store, mortise_fd(program->client));
    program->store.data = program->due.data = program->before_sleep.data = program;
    if (!error)
        error = uv_timer_init(loop, &program->due);
    if (!error)
        error = uv_prepare_init(loop, &program->before_sleep);
    if (!error)
        error = uv_prepare_start(&program->before_sleep, before_sleep);
    return error ? error : uv_poll_start(&program->store, UV_READABLE, on_store);
}

/* ---------------------------------------------------------------- the program's other work */

static void on_tick(uv_timer_t *handle)
{
    (void)handle;
    printf("tick\n");
}

static void on_input(uv_poll_t *handle, int status, int events)
{
    struct program *program = handle->data;
    (void)status, (void)events;
    int error = program->held ? mortise_release(program->hold) : MORTISE_OK;
    if (error)
        stop(program, error == MORTISE_ELOST ? LOST : 1, mortise_error_text(error));
    else
        stop(program, 0, program->held ? "released" : "given up");
}

static int add_work(uv_loop_t *loop, struct program *program)
{
    int error = uv_timer_init(loop, &program->ticks);
    if (!error)
        error = uv_timer_start(&program->ticks, on_tick, 100, 100);
    if (!error)
        error = uv_poll_init(loop, &program->input, STDIN_FILENO);
    program->input.data = program;
    return error ? error : uv_poll_start(&program->input, UV_READABLE | UV_DISCONNECT, on_input);
}

static void close_handle(uv_handle_t *handle, void *argument)
{
    (void)argument;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void run(uv_loop_t *loop, struct program *program)
{
    int error = add_client(loop, program);
    if (!error)
        error = add_work(loop, program);
    if (error) {
        fprintf(stderr, "patient: %s\n", uv_strerror(error));
        program->code = 1;
    } else {
        uv_run(loop, UV_RUN_DEFAULT);
    }
    /* The handles go before the client, whose descriptor mortise_close closes. */
    uv_walk(loop, close_handle, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
}

int main(int argc, char **argv)
{
    mortise_client_options options = {.size = sizeof options, .flags = MORTISE_FOREIGN_LOOP};
    struct program program = {.code = 1};
    mortise_lock *lock;

    if (argc != 2) {
        fprintf(stderr, "usage: patient NAME\n");
        return 64;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    int error = mortise_open(NULL, &options, &program.client);
    if (!error)
        error = mortise_mutex_new(program.client, argv[1], NULL, &lock);
    if (!error)
        error = mortise_acquire_async(lock, INT64_MAX, on_acquired, &program, NULL);
    if (error)
        fprintf(stderr, "patient: %s: %s\n", mortise_error_text(error), mortise_error_detail());
    else
        run(uv_default_loop(), &program);
    mortise_close(
        program.client); /* ends what still waits, and runs the client until that is done */
    return program.code;
}
