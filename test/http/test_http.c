/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web server by itself: limits of time that no client can stretch, answers that come later
 * and from elsewhere, and an end that waits for nobody. The path of the module is the argument.
 *
 * The clock of the module and of its library is ours, and goes on when a test says so: nobody is
 * cut off because the machine was slow.
 */
#include "http/http.h"

#include "cmocka_all.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REQUEST "GET /now HTTP/1.1\r\nHost: here\r\n\r\n"
#define LATER "GET /later HTTP/1.1\r\nHost: here\r\n\r\n"

static const struct mrt_http_ops *ops;

static _Atomic time_t steady = 1000;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE && clock != CLOCK_MONOTONIC_RAW)
        return (int)syscall(SYS_clock_gettime, clock, time);
    *time = (struct timespec){.tv_sec = atomic_load(&steady)};
    return 0;
}

struct world {
    struct mrt_http *http;
    struct sockaddr_in address;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct mrt_http_exchange *kept; /* of /later */
};

static bool handle(void *argument, const struct mrt_http_request *request,
                   struct mrt_http_answer *answer)
{
    struct world *world = argument;
    if (strcmp(request->path, "/later") != 0) {
        *answer = (struct mrt_http_answer){.status = 200, .text = "now", .size = 3};
        return true;
    }
    pthread_mutex_lock(&world->mutex);
    world->kept = request->exchange;
    pthread_cond_signal(&world->changed);
    pthread_mutex_unlock(&world->mutex);
    return false;
}

static int set_up(void **state)
{
    static const char *const headers[][2] = {{"X-Ours", "yes"}, {NULL, NULL}};
    struct world *world = calloc(1, sizeof *world);
    socklen_t size = sizeof world->address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    world->address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(listener, (struct sockaddr *)&world->address, size), 0);
    assert_int_equal(listen(listener, 16), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&world->address, &size), 0);
    pthread_mutex_init(&world->mutex, NULL);
    pthread_cond_init(&world->changed, NULL);
    struct mrt_http_options options = {.listener = listener,
                                       .connections_max = 8,
                                       .request_seconds = 30,
                                       .idle_seconds = 10,
                                       .headers = headers,
                                       .handler = handle,
                                       .argument = world};
    world->http = ops->start(&options);
    *state = world;
    return world->http ? 0 : -1;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ops->stop(world->http);
    pthread_cond_destroy(&world->changed);
    pthread_mutex_destroy(&world->mutex);
    free(world);
    return 0;
}

static int enter(const struct world *world)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&world->address, sizeof world->address),
                     0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Whether an answer that ends with `end` comes. */
static bool hears(int fd, const char *end)
{
    char text[4096] = "";
    size_t size = 0, length = strlen(end);
    while (size < sizeof text - 1) {
        ssize_t got = recv(fd, text + size, sizeof text - 1 - size, 0);
        if (got <= 0)
            return false;
        size += (size_t)got;
        if (size >= length && strcmp(text + size - length, end) == 0 && strstr(text, "X-Ours: yes"))
            return true;
    }
    return false;
}

static void ask_now(int fd)
{
    say(fd, REQUEST);
    assert_true(hears(fd, "now"));
}

static struct mrt_http_exchange *wait_for_kept(struct world *world)
{
    pthread_mutex_lock(&world->mutex);
    while (!world->kept)
        pthread_cond_wait(&world->changed, &world->mutex);
    struct mrt_http_exchange *kept = world->kept;
    world->kept = NULL;
    pthread_mutex_unlock(&world->mutex);
    return kept;
}

static void answer_later(struct mrt_http_exchange *exchange)
{
    struct mrt_http_answer answer = {.status = 200, .body = strdup("then"), .size = 4};
    ops->answer(exchange, &answer);
}

static void test_an_answer_may_come_later_while_others_are_served(void **state)
{
    struct world *world = *state;
    int patient = enter(world), other = enter(world);
    for (int i = 0; i < 3; i++) {
        say(patient, LATER);
        struct mrt_http_exchange *exchange = wait_for_kept(world);
        ask_now(other);
        answer_later(exchange);
        assert_true(hears(patient, "then"));
    }
    close(patient);
    close(other);
}

/* Nothing that it was given is lost, which the sanitizer sees. */
static void test_an_answer_for_a_closed_connection_is_dropped(void **state)
{
    struct world *world = *state;
    int fd = enter(world);
    say(fd, LATER);
    struct mrt_http_exchange *exchange = wait_for_kept(world);
    struct linger reset = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    answer_later(exchange);
    fd = enter(world);
    ask_now(fd);
    close(fd);
}

/* Whether the connection is open and has nothing to say. */
static bool is_open(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

/* A byte now and then does not stretch the time, and nobody else is cut. */
static void test_a_client_that_sends_too_slowly_is_cut_off(void **state)
{
    struct world *world = *state;
    int slow = enter(world), other = enter(world);
    char byte;
    say(slow, "GET /now HTTP/1.1\r\nX: ");
    for (int i = 0; i < 6; i++) { /* 30 seconds */
        ask_now(other);
        ops->cut_slow(world->http);
        assert_true(is_open(slow));
        say(slow, "x");
        atomic_fetch_add(&steady, 5);
    }
    ask_now(other);
    ops->cut_slow(world->http);
    assert_true(is_open(slow));
    atomic_fetch_add(&steady, 1);
    ops->cut_slow(world->http);
    assert_true(recv(slow, &byte, 1, 0) <= 0);
    assert_true(is_open(other));
    ask_now(other);
    close(slow);
    close(other);
}

static void test_a_silent_client_is_cut_off(void **state)
{
    struct world *world = *state;
    int silent = enter(world), other = enter(world);
    char byte;
    ask_now(other); /* an earlier connection has been accepted, too */
    atomic_fetch_add(&steady, 9);
    ask_now(other); /* which has the server look at its clock */
    assert_true(is_open(silent));
    atomic_fetch_add(&steady, 2);
    ask_now(other);
    assert_true(recv(silent, &byte, 1, 0) <= 0);
    assert_true(is_open(other));
    close(silent);
    close(other);
}

static void test_a_connection_too_many_waits_until_there_is_room(void **state)
{
    struct world *world = *state;
    int fds[8];
    for (size_t i = 0; i < 8; i++) {
        fds[i] = enter(world);
        ask_now(fds[i]);
    }
    int more = enter(world);
    say(more, REQUEST);
    struct pollfd answered = {.fd = more, .events = POLLIN};
    assert_int_equal(poll(&answered, 1, 200), 0);
    close(fds[0]);
    assert_true(hears(more, "now"));
    close(more);
    for (size_t i = 1; i < 8; i++)
        close(fds[i]);
}

/* tear_down ends the server under connections that are idle, half way and answered late. */
static void test_a_server_ends_without_waiting_for_clients(void **state)
{
    struct world *world = *state;
    enter(world);
    say(enter(world), "GET /now HTTP/1.1\r\nHo");
    int fd = enter(world);
    say(fd, LATER);
    answer_later(wait_for_kept(world));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_an_answer_may_come_later_while_others_are_served),
        TEST(test_an_answer_for_a_closed_connection_is_dropped),
        TEST(test_a_client_that_sends_too_slowly_is_cut_off),
        TEST(test_a_silent_client_is_cut_off),
        TEST(test_a_connection_too_many_waits_until_there_is_room),
        TEST(test_a_server_ends_without_waiting_for_clients),
    };
    void *module = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    union {
        void *symbol;
        mrt_http_entry *call;
    } entry = {module ? dlsym(module, MRT_HTTP_ENTRY) : NULL};
    if (!entry.symbol) {
        print_error("%s\n", dlerror());
        return 1;
    }
    ops = entry.call();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
