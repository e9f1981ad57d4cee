/*
 * The PostgreSQL store under faults of its server, of the way to it and of what stands in
 * between: lost answers, late statements, half-open connections, servers that are killed, frozen
 * or turned read-only, and poolers. The letters in a test's name are the entry it covers.
 */
#include "cmocka_all.h"
#include "live/pg_proxy.h"
#include "live/postgres_place.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OURS "application_name = 'mortise'"
#define TICKETS(name) "SELECT count(*) FROM ticket WHERE queue = 'mortise/" name "'"

static void await_state(mortise_hold hold, mortise_state wanted)
{
    int64_t limit = zk_now_ms() + 20000;
    while (mortise_hold_state(hold) != wanted) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
}

static mortise_client *open_client(const char *parameters)
{
    return pg_open(zk_place_port(), parameters);
}

static uint64_t losses(mortise_client *client)
{
    mortise_stats stats = {.size = sizeof stats};
    assert_int_equal(mortise_get_stats(client, &stats), MORTISE_OK);
    return stats.losses;
}

struct attempt {
    mortise_lock *lock;
    mortise_hold hold;
    int error;
    pthread_t thread;
};

static void *try_for_long(void *argument)
{
    struct attempt *attempt = argument;
    attempt->error = mortise_acquire_for(attempt->lock, 60000, &attempt->hold);
    return NULL;
}

static void begin(struct attempt *attempt, mortise_lock *lock)
{
    *attempt = (struct attempt){.lock = lock};
    assert_int_equal(pthread_create(&attempt->thread, NULL, try_for_long, attempt), 0);
}

static void succeed(struct attempt *attempt)
{
    pthread_join(attempt->thread, NULL);
    assert_int_equal(attempt->error, MORTISE_OK);
}

/* ------------------------------------------------------------------ the way to it */

/* One life of a client, in which this statement's flight meets its fate. */
static void live_through(enum pg_fate fate, const char *statement)
{
    struct pg_proxy *proxy = pg_proxy_start(zk_place_port());
    mortise_client *client = pg_open(pg_proxy_port(proxy), "lease=5s");
    pg_proxy_order(proxy, fate, statement);
    mortise_hold hold = zk_acquire(zk_mutex(client, "unknown"));
    assert_int_equal(pg_number(TICKETS("unknown")), 1);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    pg_await(TICKETS("unknown"), 0);
    zk_acquire(zk_mutex(client, "last"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    pg_await("SELECT count(*) FROM ticket", 0);
    pg_await("SELECT count(*) FROM session", 0);
    assert_true(pg_proxy_done(proxy));
    pg_proxy_stop(proxy);
}

static void test_sq_07_f10_an_answer_is_lost_after_the_commit(void **state)
{
    static const char *const statements[] = {"SETUP", "START", "APPEND", "REMOVE", "LEAVE_ALL"};
    (void)state;
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        live_through(PG_SWALLOW, statements[i]);
}

static void test_sq_07_a_request_is_lost_before_the_server(void **state)
{
    static const char *const statements[] = {"SETUP", "START", "APPEND", "REMOVE", "LEAVE_ALL"};
    (void)state;
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        live_through(PG_DROP, statements[i]);
}

/* The old connection's APPEND comes when the ticket has been acquired and released on another. */
static void test_sq_07_what_an_old_connection_left_does_nothing(void **state)
{
    (void)state;
    struct pg_proxy *proxy = pg_proxy_start(zk_place_port());
    mortise_client *client = pg_open(pg_proxy_port(proxy), "lease=4s");
    mortise_hold other = zk_acquire(zk_mutex(client, "kept"));
    pg_proxy_order(proxy, PG_HOLD, "APPEND");
    mortise_hold hold = zk_acquire(zk_mutex(client, "late")); /* on a second connection */
    assert_true(pg_proxy_done(proxy));
    assert_int_equal(pg_proxy_connections(proxy), 2);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    pg_await(TICKETS("late"), 0);
    pg_proxy_go(proxy);
    pg_await("SELECT count(*) FROM pg_stat_activity WHERE " OURS, 1); /* the old one has ended */
    assert_int_equal(pg_number(TICKETS("late")), 0);
    assert_true(mortise_is_held(other));
    assert_int_equal(losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    pg_proxy_stop(proxy);
}

static void test_sq_13_c12_a_half_open_connection(void **state)
{
    (void)state;
    struct pg_proxy *proxy = pg_proxy_start(zk_place_port());
    mortise_client *client = pg_open(pg_proxy_port(proxy), "lease=2s"),
                   *other = open_client("lease=2s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "half"));
    pg_proxy_stall(proxy, true);
    mortise_hold next = zk_acquire(zk_mutex(other, "half"));
    assert_int_equal(mortise_hold_state(hold), MORTISE_LOST);
    assert_true(mortise_hold_fence(next) > mortise_hold_fence(hold));
    pg_proxy_stall(proxy, false);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    zk_acquire(zk_mutex(client, "half-again"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    pg_proxy_stop(proxy);
}

static void test_a_short_break_is_slept_through(void **state)
{
    (void)state;
    struct pg_proxy *proxy = pg_proxy_start(zk_place_port());
    mortise_client *client = pg_open(pg_proxy_port(proxy), "lease=6s"),
                   *other = open_client("lease=6s");
    mortise_hold hold = zk_acquire(zk_mutex(other, "break"));
    struct attempt attempt;
    begin(&attempt, zk_mutex(client, "break"));
    pg_await(TICKETS("break"), 2);
    for (int i = 0; i < 5; i++) {
        unsigned before = pg_proxy_connections(proxy);
        pg_proxy_cut(proxy);
        int64_t limit = zk_now_ms() + 10000;
        while (pg_proxy_connections(proxy) == before && zk_now_ms() < limit)
            zk_rest_ms(5);
    }
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    succeed(&attempt);
    assert_int_equal(losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    pg_proxy_stop(proxy);
}

/* ------------------------------------------------------------------ the server */

static void test_sq_15_the_listener_is_terminated_between_release_and_wake(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s"), *waiting = open_client("lease=5s");
    for (int i = 0; i < 5; i++) {
        mortise_hold hold = zk_acquire(zk_mutex(client, "listen"));
        struct attempt attempt;
        mortise_lock_options options = {.size = sizeof options, .owner = 1};
        mortise_lock *lock = NULL;
        assert_int_equal(mortise_mutex_new(waiting, "listen", &options, &lock), MORTISE_OK);
        begin(&attempt, lock);
        pg_await(TICKETS("listen"), 2);
        pg_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " OURS
               " ORDER BY backend_start DESC LIMIT 1");
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        succeed(&attempt);
        assert_int_equal(mortise_release(attempt.hold), MORTISE_OK);
        pg_await(TICKETS("listen"), 0);
    }
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(waiting), MORTISE_OK);
}

static void test_terminated_backends_lose_nobody_a_lock(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "kept"));
    for (int i = 0; i < 3; i++) {
        pg_sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE " OURS);
        pg_await("SELECT count(*) FROM pg_stat_activity WHERE " OURS, 1);
        assert_int_equal(mortise_verify(hold, 10000), MORTISE_OK);
    }
    assert_int_equal(losses(client), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_a_server_that_is_frozen(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=2s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "frozen"));
    zk_place_server("pause", 0);
    await_state(hold, MORTISE_LOST);
    zk_place_server("resume", 0);
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    hold = zk_acquire(zk_mutex(client, "frozen"));
    assert_true(mortise_hold_fence(hold) > fence);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_sq_04_a_server_that_is_killed_and_comes_back(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=120s"), *other = open_client("lease=120s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "killed"));
    struct attempt attempt;
    begin(&attempt, zk_mutex(other, "killed"));
    pg_await(TICKETS("killed"), 2);
    zk_place_server("kill", 0);
    zk_place_server("restart", 0);
    assert_int_equal(mortise_verify(hold, 60000), MORTISE_OK);
    assert_int_equal(pg_number(TICKETS("killed")), 2);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    succeed(&attempt);
    assert_int_equal(losses(client) + losses(other), 0);
    uint64_t fence = mortise_hold_fence(attempt.hold);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    hold = zk_acquire(zk_mutex(client, "killed"));
    assert_true(mortise_hold_fence(hold) > fence);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void set_read_only(bool on)
{
    pg_sql(on ? "ALTER SYSTEM SET default_transaction_read_only = on"
              : "SET default_transaction_read_only = off");
    if (!on)
        pg_sql("ALTER SYSTEM RESET default_transaction_read_only");
    pg_sql("SELECT pg_reload_conf()");
    PGconn *look = NULL;
    bool is;
    do {
        PQfinish(look);
        look = pg_connect();
        is = strcmp(pg_sql_on(look, "SHOW default_transaction_read_only"), "on") == 0;
    } while (is != on);
    PQfinish(look);
}

static void test_sq_09_j2_a_server_that_turns_read_only(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=3s"), *late = open_client("lease=3s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "role")), none;
    set_read_only(true);
    await_state(hold, MORTISE_LOST); /* at the end of the lease: renewals fail */
    assert_int_equal(mortise_acquire_for(zk_mutex(late, "role"), 20000, &none),
                     MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "read-only"));
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    set_read_only(false);
    zk_acquire(zk_mutex(client, "role"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(late), MORTISE_OK);
}

/* ------------------------------------------------------------------ poolers */

struct pooler {
    pid_t process;
    uint16_t port;
    char file[64];
};

static void start_pooler(struct pooler *pooler, const char *mode)
{
    struct pg_proxy *finder = pg_proxy_start(1); /* for a free port */
    *pooler = (struct pooler){.port = pg_proxy_port(finder), .file = "/tmp/mortise-pooler-XXXXXX"};
    pg_proxy_stop(finder);
    FILE *file = fdopen(mkstemp(pooler->file), "w");
    fprintf(file,
            "[databases]\nmortise = host=127.0.0.1 port=%u user=mortise\n[pgbouncer]\n"
            "listen_addr = 127.0.0.1\nlisten_port = %u\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = %s\nlogfile =\nuser = postgres\nignore_startup_parameters = options\n",
            (unsigned)zk_place_port(), (unsigned)pooler->port, mode);
    fclose(file);
    chmod(pooler->file, 0644);
    pooler->process = fork();
    if (pooler->process == 0) {
        int nowhere = open("/dev/null", O_RDWR);
        for (int fd = 0; fd <= 2; fd++)
            dup2(nowhere, fd);
        execlp("pgbouncer", "pgbouncer", "-q", pooler->file, (char *)NULL);
        _exit(127);
    }
    char text[128];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=mortise dbname=mortise",
             (unsigned)pooler->port);
    int64_t limit = zk_now_ms() + 20000;
    while (PQping(text) != PQPING_OK) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(20);
    }
}

static void stop_pooler(struct pooler *pooler)
{
    kill(pooler->process, SIGKILL);
    waitpid(pooler->process, NULL, 0);
    unlink(pooler->file);
}

static void is_refused(uint16_t port)
{
    mortise_client *client = pg_open(port, "lease=3s");
    mortise_hold hold;
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "pooled"), 20000, &hold),
                     MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "pooler"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_sq_10_a_pooler_in_session_mode(void **state)
{
    (void)state;
    struct pooler pooler;
    start_pooler(&pooler, "session");
    is_refused(pooler.port); /* it cannot be told from the other kind */
    mortise_client *client = pg_open(pooler.port, "lease=3s&pooler=session");
    mortise_client *other = open_client("lease=3s");
    mortise_hold hold = zk_acquire(zk_mutex(other, "session"));
    struct attempt attempt;
    begin(&attempt, zk_mutex(client, "session"));
    pg_await(TICKETS("session"), 2);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    succeed(&attempt);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(other), MORTISE_OK);
    stop_pooler(&pooler);
}

static void test_sq_10_a_pooler_in_transaction_mode(void **state)
{
    (void)state;
    struct pooler pooler;
    start_pooler(&pooler, "transaction");
    is_refused(pooler.port);
    /* Said to be in session mode, it gives itself away by what others have left behind. */
    mortise_client *client = pg_open(pooler.port, "lease=3s&pooler=session");
    mortise_hold none;
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "lies"), 20000, &none),
                     MORTISE_ENOTSUPPORTED);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    stop_pooler(&pooler);
}

/* An argument chooses tests by their names. */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sq_07_f10_an_answer_is_lost_after_the_commit),
        cmocka_unit_test(test_sq_07_a_request_is_lost_before_the_server),
        cmocka_unit_test(test_sq_07_what_an_old_connection_left_does_nothing),
        cmocka_unit_test(test_sq_13_c12_a_half_open_connection),
        cmocka_unit_test(test_a_short_break_is_slept_through),
        cmocka_unit_test(test_sq_15_the_listener_is_terminated_between_release_and_wake),
        cmocka_unit_test(test_terminated_backends_lose_nobody_a_lock),
        cmocka_unit_test(test_a_server_that_is_frozen),
        cmocka_unit_test(test_sq_04_a_server_that_is_killed_and_comes_back),
        cmocka_unit_test(test_sq_09_j2_a_server_that_turns_read_only),
        cmocka_unit_test(test_sq_10_a_pooler_in_session_mode),
        cmocka_unit_test(test_sq_10_a_pooler_in_transaction_mode),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, pg_place_start, zk_place_stop);
}
