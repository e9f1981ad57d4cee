/*
 * The PostgreSQL store under faults of its server, of the way to it and of what stands in
 * between: lost answers, late statements, half-open connections, servers that are killed, frozen
 * or turned read-only, and poolers. The letters in a test's name are the entry it covers.
 */
#include "cmocka_all.h"
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

static mortise_client *open_client(const char *parameters)
{
    return sql_open(zk_place_port(), parameters);
}

/* ------------------------------------------------------------------ the way to it */

/* ------------------------------------------------------------------ the server */

static void test_sq_15_the_listener_is_terminated_between_release_and_wake(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=5s"), *waiting = open_client("lease=5s");
    for (int i = 0; i < 5; i++) {
        mortise_hold hold = zk_acquire(zk_mutex(client, "listen"));
        struct sql_attempt attempt;
        mortise_lock_options options = {.size = sizeof options, .owner = 1};
        mortise_lock *lock = NULL;
        assert_int_equal(mortise_mutex_new(waiting, "listen", &options, &lock), MORTISE_OK);
        sql_begin(&attempt, lock);
        sql_await(SQL_TICKETS("listen"), 2);
        sql_run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " OURS
                " ORDER BY backend_start DESC LIMIT 1");
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        sql_succeed(&attempt);
        assert_int_equal(mortise_release(attempt.hold), MORTISE_OK);
        sql_await(SQL_TICKETS("listen"), 0);
    }
    assert_int_equal(mortise_close(client), MORTISE_OK);
    assert_int_equal(mortise_close(waiting), MORTISE_OK);
}

/* ------------------------------------------------------------------ poolers */

struct pooler {
    pid_t process;
    uint16_t port;
    char file[64];
};

static void start_pooler(struct pooler *pooler, const char *mode)
{
    struct sql_proxy *finder = sql_proxy_start(1); /* for a free port */
    *pooler = (struct pooler){.port = sql_proxy_port(finder), .file = "/tmp/mortise-pooler-XXXXXX"};
    sql_proxy_stop(finder);
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

static void is_refused_with(uint16_t port, const char *parameters)
{
    mortise_client *client = sql_open(port, parameters);
    mortise_hold hold;
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "pooled"), 20000, &hold),
                     MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "pooler"));
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void is_refused(uint16_t port)
{
    is_refused_with(port, "lease=3s");
    is_refused_with(port, "lease=3s&form=advisory");
    is_refused_with(port, "lease=3s&form=row");
}

static void test_sq_10_a_pooler_in_session_mode(void **state)
{
    (void)state;
    struct pooler pooler;
    start_pooler(&pooler, "session");
    is_refused(pooler.port); /* it cannot be told from the other kind */
    mortise_client *client = sql_open(pooler.port, "lease=3s&pooler=session");
    mortise_client *other = open_client("lease=3s");
    mortise_hold hold = zk_acquire(zk_mutex(other, "session"));
    struct sql_attempt attempt;
    sql_begin(&attempt, zk_mutex(client, "session"));
    sql_await(SQL_TICKETS("session"), 2);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt);
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
    mortise_client *client = sql_open(pooler.port, "lease=3s&pooler=session");
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
        cmocka_unit_test(test_sq_15_the_listener_is_terminated_between_release_and_wake),
        cmocka_unit_test(test_sq_10_a_pooler_in_session_mode),
        cmocka_unit_test(test_sq_10_a_pooler_in_transaction_mode),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, sql_place_start, zk_place_stop);
}
