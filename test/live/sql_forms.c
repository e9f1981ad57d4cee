/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of the server's own, ?form=, beside another program that takes the same ones by the
 * server's own calls, and under faults. One program for each server; each test is of one form after
 * the other. The letters in a test's name are the entry it covers.
 */
#include "cmocka_all.h"
#include "live/sql_place.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static mortise_client *open_at(uint16_t port, int form, const char *parameters)
{
    char text[128];
    snprintf(text, sizeof text, "form=%s&%s", sql_forms[form], parameters);
    return sql_open(port, text);
}

static mortise_client *open_form(int form, const char *parameters)
{
    return open_at(zk_place_port(), form, parameters);
}

static void end(mortise_client *client)
{
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void await(long (*figure)(void), long wanted)
{
    int64_t limit = zk_now_ms() + 20000;
    while (figure() != wanted) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(2);
    }
}

static void await_free(struct sql_peer *peer, const char *name)
{
    int64_t limit = zk_now_ms() + 20000;
    while (!sql_peer_try(peer, name)) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(2);
    }
    sql_peer_give(peer, name);
}

/* Makes the row, where there are rows. */
static void use_once(mortise_client *client, const char *name)
{
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(client, name))), MORTISE_OK);
}

/* ------------------------------------------------------------------ with others */

#define ROUNDS 150

struct shared {
    volatile long counter;
    _Atomic int inside;
    _Atomic int violations;
};

static void count_one(struct shared *shared)
{
    if (atomic_fetch_add(&shared->inside, 1) != 0)
        shared->violations++;
    long seen = shared->counter;
    sched_yield();
    shared->counter = seen + 1;
    atomic_fetch_sub(&shared->inside, 1);
}

/* Another program, in a process of its own. */
static pid_t start_peer(int form, struct shared *shared)
{
    pid_t process = fork();
    if (process != 0)
        return process;
    struct sql_peer *peer = sql_peer_start(form);
    for (int i = 0; i < ROUNDS; i++) {
        sql_peer_take(peer, "mortise/counter");
        count_one(shared);
        sql_peer_give(peer, "mortise/counter");
    }
    sql_peer_end(peer);
    _exit(0);
}

struct counting {
    int form;
    struct shared *shared;
    pthread_t thread;
};

static void *count_all(void *argument)
{
    const struct counting *self = argument;
    mortise_client *client = open_form(self->form, "lease=10s");
    mortise_lock *lock = zk_mutex(client, "counter");
    for (int i = 0; i < ROUNDS; i++) {
        mortise_hold hold = zk_acquire(lock);
        count_one(self->shared);
        mortise_release(hold);
    }
    mortise_close(client);
    return NULL;
}

static void test_j4_sq_12_one_counter_with_another_program(void **state)
{
    (void)state;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    for (int form = 0; form < SQL_FORMS; form++) {
        struct counting own[2];
        pid_t peers[2];
        mortise_client *client = open_form(form, "lease=10s");
        use_once(client, "counter");
        end(client);
        *shared = (struct shared){.counter = 0};
        for (int i = 0; i < 2; i++)
            peers[i] = start_peer(form, shared);
        for (int i = 0; i < 2; i++) {
            own[i] = (struct counting){form, shared, 0};
            assert_int_equal(pthread_create(&own[i].thread, NULL, count_all, &own[i]), 0);
        }
        for (int i = 0; i < 2; i++) {
            int status = -1;
            pthread_join(own[i].thread, NULL);
            waitpid(peers[i], &status, 0);
            assert_int_equal(status, 0);
        }
        assert_int_equal(shared->violations, 0);
        assert_int_equal(shared->counter, 4 * ROUNDS);
    }
    munmap(shared, sizeof *shared);
}

/* A name is what the manual says it is to others; the first is in the namespace "mortise". */
static void exclude_under(int form, const char *space, const char *name)
{
    char parameters[64], full[1024];
    mortise_hold hold;
    snprintf(parameters, sizeof parameters, "lease=10s&namespace=%s", space);
    snprintf(full, sizeof full, "%s%s%s", space, *space ? "/" : "", name);
    mortise_client *client = open_form(form, parameters);
    mortise_lock *lock = zk_mutex(client, name);
    struct sql_peer *peer = sql_peer_start(form);
    use_once(client, name);
    sql_peer_take(peer, full);
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_EBUSY);
    sql_peer_give(peer, full);
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_OK);
    assert_false(sql_peer_try(peer, full));
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(mortise_hold_fence(hold), 0);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    await_free(peer, full);
    sql_peer_end(peer);
    end(client);
}

static void exclude_under_repeated(int form, const char *part, int times)
{
    char name[MORTISE_NAME_MAX + 1];
    for (size_t i = 0, size = strlen(part); i < (size_t)times; i++)
        snprintf(name + i * size, size + 1, "%s", part);
    exclude_under(form, "", name);
}

static void test_sq_11_sq_17_a_form_locks_the_name_that_other_programs_lock(void **state)
{
    static const char *const numbers[] = {"0", "42", "-7", "9223372036854775807",
                                          "-9223372036854775808"};
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        exclude_under(form, "mortise", "plain/Name");
        exclude_under(form, "", "n\xc3\xa4me");
        for (int longer = 0; longer < 2; longer++) { /* than what MariaDB takes */
            exclude_under_repeated(form, "x", 64 + longer);
            exclude_under_repeated(form, "\xf0\x9f\x94\x92", 48 + longer);
        }
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            exclude_under(form, "", numbers[i]);
    }
}

static void test_sq_17_names_that_look_alike_are_different(void **state)
{
    static const char *const names[] = {"name", "name ", " name", "n\xc3\xa4me", "007",
                                        "7",    "+7",    "-0",    "%",           "'"};
    enum { COUNT = sizeof names / sizeof names[0] };
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        mortise_client *client = open_form(form, "lease=10s&namespace="),
                       *other = open_form(form, "lease=10s&namespace=");
        mortise_hold hold;
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(mortise_try_acquire(zk_mutex(client, names[i]), &hold), MORTISE_OK);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(mortise_try_acquire(zk_mutex(other, names[i]), &hold), MORTISE_EBUSY);
        end(client);
        end(other);
    }
}

/* ------------------------------------------------------------------ waiting */

static void test_a_waiter_that_gives_up_leaves_nothing(void **state)
{
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        mortise_client *client = open_form(form, "lease=10s");
        mortise_lock *lock = zk_mutex(client, "given-up");
        struct sql_peer *peer = sql_peer_start(form);
        struct sql_attempt attempt;
        mortise_hold hold;
        use_once(client, "given-up");
        sql_peer_take(peer, "mortise/given-up");
        assert_int_equal(mortise_acquire_for(lock, 20, &hold), MORTISE_ETIMEOUT);
        await(sql_form_waits, 0);
        sql_begin(&attempt, lock);
        await(sql_form_waits, 1);
        assert_int_equal(mortise_cancel_waiters(lock), MORTISE_OK);
        pthread_join(attempt.thread, NULL);
        assert_int_equal(attempt.error, MORTISE_ECANCELLED);
        await(sql_form_waits, 0);
        sql_peer_give(peer, "mortise/given-up");
        await_free(peer, "mortise/given-up");
        sql_peer_end(peer);
        end(client);
        await(sql_connections, 0);
    }
}

/* The server ends a wait after ten leases, so that a waiter whose connection has gone deaf is not
   deaf for ever; another wait follows, which has the lock like the first would have. */
static void test_a_wait_longer_than_a_statement_may_take_is_repeated(void **state)
{
    (void)state;
    struct sql_attempt attempts[SQL_FORMS];
    struct sql_peer *peers[SQL_FORMS];
    mortise_client *clients[SQL_FORMS];
    for (int form = 0; form < SQL_FORMS; form++) {
        clients[form] = open_form(form, "lease=500ms");
        peers[form] = sql_peer_start(form);
        use_once(clients[form], "long");
        sql_peer_take(peers[form], "mortise/long");
    }
    for (int form = 0; form < SQL_FORMS; form++) {
        sql_begin(&attempts[form], zk_mutex(clients[form], "long"));
        await(sql_form_waits, form + 1);
    }
    int64_t limit = zk_now_ms() + 40000;
    while (sql_form_wait_age() < 2000)
        assert_true(zk_now_ms() < limit);
    while (sql_form_wait_age() >= 2000)
        assert_true(zk_now_ms() < limit);
    for (int form = 0; form < SQL_FORMS; form++) {
        assert_false(attempts[form].done);
        sql_peer_give(peers[form], "mortise/long");
        sql_succeed(&attempts[form]);
        sql_peer_end(peers[form]);
        end(clients[form]);
    }
}

static void test_a_waiter_whose_connection_is_ended_waits_on(void **state)
{
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        mortise_client *client = open_form(form, "lease=10s");
        struct sql_peer *peer = sql_peer_start(form);
        struct sql_attempt attempt;
        use_once(client, "ended");
        sql_peer_take(peer, "mortise/ended");
        sql_begin(&attempt, zk_mutex(client, "ended"));
        for (int i = 0; i < 3; i++) {
            await(sql_form_waits, 1);
            sql_end_connections();
        }
        await(sql_form_waits, 1);
        assert_false(attempt.done);
        sql_peer_give(peer, "mortise/ended");
        sql_succeed(&attempt);
        assert_true(mortise_is_held(attempt.hold));
        assert_false(sql_peer_try(peer, "mortise/ended"));
        sql_peer_end(peer);
        end(client);
    }
}

/* The cost: a connection for each lock that is held or waited for, and where it is a row's, an open
 * transaction too. */
static void test_a9_k4_each_lock_of_a_form_has_a_connection(void **state)
{
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        mortise_client *client = open_form(form, "lease=3s"), *other = open_form(form, "lease=3s");
        mortise_hold holds[3];
        char name[16];
        struct sql_attempt attempt;
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "a9/%d", i);
            holds[i] = zk_acquire(zk_mutex(client, name));
        }
        assert_int_equal(sql_connections(), 3);
        await(sql_transactions, form == SQL_ROW ? 3 : 0);
        sql_begin(&attempt, zk_mutex(other, "a9/0"));
        await(sql_form_waits, 1);
        assert_int_equal(sql_connections(), 4);
        for (int i = 0; i < 3; i++)
            assert_int_equal(mortise_release(holds[i]), MORTISE_OK);
        sql_succeed(&attempt);
        end(other);
        await(sql_connections, 1); /* what is not used is closed but for one */
        await(sql_transactions, 0);
        use_once(client, "a9/0");
        end(client);
        await(sql_connections, 0);
    }
}

/* ------------------------------------------------------------------ read and write */

static bool runs_true(const char *text)
{
    return strcmp(sql_run(text), "t") == 0;
}

/* PostgreSQL's: another program's shared lock of the same number is a reader among ours. */
static void share(mortise_lock *read, mortise_lock *write)
{
    mortise_hold hold = zk_acquire(read), none;
    assert_true(runs_true("SELECT pg_try_advisory_lock_shared(77)"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_try_acquire(write, &none), MORTISE_EBUSY);
    hold = zk_acquire(read);
    assert_true(runs_true("SELECT pg_advisory_unlock_shared(77)"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    hold = zk_acquire(write);
    assert_false(runs_true("SELECT pg_try_advisory_lock_shared(77)"));
    assert_int_equal(mortise_downgrade(hold), MORTISE_OK);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_true(runs_true("SELECT pg_try_advisory_lock_shared(77)"));
    assert_true(runs_true("SELECT pg_advisory_unlock_shared(77)"));
    assert_false(runs_true("SELECT pg_try_advisory_lock(77)"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    int64_t limit = zk_now_ms() + 20000;
    while (!runs_true("SELECT pg_try_advisory_lock(77)"))
        assert_true(zk_now_ms() < limit);
    assert_true(runs_true("SELECT pg_advisory_unlock(77)"));
}

static void test_d6_readers_share_where_the_server_has_it(void **state)
{
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        mortise_client *client = open_form(form, "lease=10s&namespace=");
        mortise_lock *read, *write;
        mortise_hold none;
        assert_int_equal(mortise_read_write_new(client, "77", NULL, &read, &write), MORTISE_OK);
        if (strcmp(sql_forms[form], "advisory") == 0)
            share(read, write);
        else
            assert_int_equal(mortise_try_acquire(read, &none), MORTISE_ENOTSUPPORTED);
        end(client);
    }
}

/* ------------------------------------------------------------------ unsupported calls */

static void test_options_that_a_form_cannot_keep_are_refused(void **state)
{
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        mortise_client *client = open_form(form, "lease=10s");
        mortise_capabilities can = {.size = sizeof can};
        mortise_lock *lock;
        mortise_hold hold;
        mortise_election *election;
        const mortise_lock_options lingering = {.size = sizeof lingering, .linger_ms = 100};
        assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
        assert_int_equal(can.fair + can.fence + can.durable_fence + can.survives_failover, 0);
        assert_int_equal(can.detach + can.linger, 0);
        assert_int_equal(can.notify, 1);
        assert_int_equal(can.lease_ms, 10000);
        assert_non_null(strstr(mortise_url(client), sql_forms[form]));
        assert_int_equal(mortise_semaphore_new(client, "three", 3, NULL, &lock), MORTISE_OK);
        assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_ENOTSUPPORTED);
        assert_non_null(strstr(mortise_error_detail(), "semaphore of capacity 3"));
        assert_int_equal(mortise_mutex_new(client, "linger", &lingering, &lock),
                         MORTISE_ENOTSUPPORTED);
        assert_int_equal(mortise_election_new(client, "leader", NULL, &election),
                         MORTISE_ENOTSUPPORTED);
        assert_int_equal(mortise_revoke(client, "three", 0), MORTISE_ENOTSUPPORTED);
        assert_int_equal(mortise_break(client, "three", 1), MORTISE_ENOTSUPPORTED);
        end(client);
    }
}

/* ------------------------------------------------------------------ ends of connections */

/* Its row stays locked for longer than ten attempts take that follow each other without a pause. */
static void test_sq_05_j4_an_acquire_refused_for_long_succeeds_in_the_end(void **state)
{
    (void)state;
    mortise_client *client = sql_open_patient("form=row&lease=60s");
    struct sql_attempt attempt;
    use_once(client, "before");
    int64_t begin = zk_now_ms();
    sql_inject("INSERT ON row_lock", SQL_DEADLOCK, SQL_ALWAYS);
    sql_begin_try(&attempt, zk_mutex(client, "refused"));
    zk_rest_ms(600);
    long refused = sql_heal();
    assert_in_range(refused, 1, 10 + (zk_now_ms() - begin) / 64);
    sql_succeed(&attempt);
    end(client);
}

/* It is not taken, so it must not be said to be. */
static void test_sq_05_j4_an_acquire_refused_for_ever_ends_when_its_time_is_up(void **state)
{
    (void)state;
    mortise_client *client = sql_open_patient("form=row&lease=2s&connect=1s");
    mortise_hold hold;
    use_once(client, "well");
    sql_inject("INSERT ON row_lock", SQL_CONFLICT, SQL_ALWAYS);
    int64_t begin = zk_now_ms();
    assert_int_equal(mortise_try_acquire(zk_mutex(client, "never"), &hold), MORTISE_ESTORE);
    assert_true(zk_now_ms() - begin >= 2000);
    sql_heal();
    use_once(client, "never");
    end(client);
}

static void test_a_connection_that_is_ended_is_a_loss(void **state)
{
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        mortise_client *client = open_form(form, "lease=120s");
        struct sql_peer *peer = sql_peer_start(form);
        mortise_hold hold = zk_acquire(zk_mutex(client, "lost")),
                     other = zk_acquire(zk_mutex(client, "lost-too"));
        sql_end_connections();
        sql_await_state(hold, MORTISE_LOST); /* told at once, not at the end of the lease */
        sql_await_state(other, MORTISE_LOST);
        assert_false(mortise_is_held(hold));
        assert_int_equal(mortise_verify(hold, 20000), MORTISE_ELOST);
        assert_int_equal(mortise_release(hold), MORTISE_ELOST);
        assert_int_equal(mortise_release(other), MORTISE_ELOST);
        assert_int_equal(sql_losses(client), 2);
        await_free(peer, "mortise/lost");
        hold = zk_acquire(zk_mutex(client, "lost"));
        assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        sql_peer_end(peer);
        end(client);
    }
}

static void note_loss(void *argument, mortise_hold hold, mortise_state state)
{
    (void)hold;
    if (state == MORTISE_LOST)
        atomic_fetch_add((_Atomic int *)argument, 1);
}

/* A connection that holds a lock is silent between two signs of life, which is longer than an
   administrator may want any to be. A server that ends it all the same ends the lock, and the
   client learns it. */
static void test_sq_12_silent_connections_are_kept_and_their_end_is_told(void **state)
{
    (void)state;
    mortise_client *clients[SQL_FORMS];
    mortise_hold holds[SQL_FORMS];
    _Atomic int losses = 0;
    sql_set_idle_limit(true);
    for (int form = 0; form < SQL_FORMS; form++) {
        clients[form] = open_form(form, "lease=12s");
        holds[form] = zk_acquire(zk_mutex(clients[form], "silent"));
        assert_int_equal(mortise_on_lost(holds[form], note_loss, &losses), MORTISE_OK);
    }
    int64_t limit = zk_now_ms() + 40000;
    while (sql_idle_ms() < 2200)
        assert_true(zk_now_ms() < limit);
    sql_set_idle_limit(false);
    for (int form = 0; form < SQL_FORMS; form++) {
        assert_true(mortise_is_held(holds[form]));
        assert_int_equal(mortise_verify(holds[form], 20000), MORTISE_OK);
    }
    sql_end_connections();
    limit = zk_now_ms() + 20000;
    while (losses < SQL_FORMS)
        assert_true(zk_now_ms() < limit);
    for (int form = 0; form < SQL_FORMS; form++) {
        assert_int_equal(mortise_hold_state(holds[form]), MORTISE_LOST);
        end(clients[form]);
    }
}

/* Of each form one, all at the same time, because they mostly wait. */
struct scene {
    struct sql_proxy *proxy;
    mortise_client *client, *other; /* through the proxy, and not */
};

static void set_scenes(struct scene scenes[SQL_FORMS])
{
    for (int form = 0; form < SQL_FORMS; form++) {
        scenes[form].proxy = sql_proxy();
        scenes[form].client = open_at(sql_proxy_port(scenes[form].proxy), form, "lease=2s");
        scenes[form].other = open_form(form, "lease=2s");
    }
}

static void clear_scenes(struct scene scenes[SQL_FORMS])
{
    for (int form = 0; form < SQL_FORMS; form++) {
        end(scenes[form].other);
        end(scenes[form].client);
        sql_proxy_stop(scenes[form].proxy);
    }
}

/* The next holder has it after the first one knew that it was lost. */
static void test_sq_13_c12_a_half_open_connection_ends_a_hold_in_time(void **state)
{
    (void)state;
    struct scene scenes[SQL_FORMS];
    mortise_hold holds[SQL_FORMS];
    struct sql_attempt attempts[SQL_FORMS];
    set_scenes(scenes);
    for (int form = 0; form < SQL_FORMS; form++) {
        holds[form] = zk_acquire(zk_mutex(scenes[form].client, "half"));
        sql_begin(&attempts[form], zk_mutex(scenes[form].other, "half"));
        await(sql_form_waits, form + 1);
    }
    for (int form = 0; form < SQL_FORMS; form++)
        sql_proxy_stall(scenes[form].proxy, true);
    for (int form = 0; form < SQL_FORMS; form++) {
        int64_t limit = zk_now_ms() + 20000;
        while (!attempts[form].done)
            assert_true(zk_now_ms() < limit);
        assert_int_equal(mortise_hold_state(holds[form]), MORTISE_LOST);
        sql_succeed(&attempts[form]);
    }
    for (int form = 0; form < SQL_FORMS; form++) {
        sql_proxy_stall(scenes[form].proxy, false);
        assert_int_equal(mortise_release(holds[form]), MORTISE_ELOST);
        end(scenes[form].other);
        scenes[form].other = NULL;
        use_once(scenes[form].client, "half");
    }
    clear_scenes(scenes);
}

/* The server grants, nobody hears it, and the server ends the connection and grants the lock to
   another. An answer that comes late is no grant. */
static void test_a_grant_that_comes_too_late_is_none(void **state)
{
    (void)state;
    struct scene scenes[SQL_FORMS];
    struct sql_peer *peers[SQL_FORMS];
    struct sql_attempt late[SQL_FORMS];
    mortise_hold holds[SQL_FORMS];
    set_scenes(scenes);
    for (int form = 0; form < SQL_FORMS; form++) {
        peers[form] = sql_peer_start(form);
        use_once(scenes[form].other, "late");
        sql_peer_take(peers[form], "mortise/late");
        sql_begin(&late[form], zk_mutex(scenes[form].client, "late"));
        await(sql_form_waits, form + 1);
    }
    for (int form = 0; form < SQL_FORMS; form++) {
        sql_proxy_stall(scenes[form].proxy, true);
        sql_peer_give(peers[form],
                      "mortise/late"); /* it is the hold of `late`, which is not told */
    }
    await(sql_form_waits, 0);
    for (int form = 0; form < SQL_FORMS; form++)
        holds[form] = zk_acquire(zk_mutex(scenes[form].other, "late"));
    for (int form = 0; form < SQL_FORMS; form++)
        sql_proxy_stall(scenes[form].proxy, false);
    await(sql_form_waits, SQL_FORMS); /* they wait again */
    for (int form = 0; form < SQL_FORMS; form++) {
        assert_false(late[form].done);
        assert_int_equal(mortise_release(holds[form]), MORTISE_OK);
        sql_succeed(&late[form]);
        assert_int_equal(sql_losses(scenes[form].client), 0);
        sql_peer_end(peers[form]);
    }
    clear_scenes(scenes);
}

static void test_a_frozen_server_is_a_loss(void **state)
{
    (void)state;
    mortise_client *clients[SQL_FORMS];
    mortise_hold holds[SQL_FORMS];
    for (int form = 0; form < SQL_FORMS; form++) {
        clients[form] = open_form(form, "lease=2s");
        holds[form] = zk_acquire(zk_mutex(clients[form], "frozen"));
    }
    zk_place_server("pause", 0);
    for (int form = 0; form < SQL_FORMS; form++)
        sql_await_state(holds[form], MORTISE_LOST);
    zk_place_server("resume", 0);
    for (int form = 0; form < SQL_FORMS; form++) {
        assert_int_equal(mortise_release(holds[form]), MORTISE_ELOST);
        use_once(clients[form], "frozen");
        end(clients[form]);
    }
}

/* On the connection of the last one of its name, which takes them in order. */
static void test_an_acquire_behind_a_release_leaves_before_that_is_answered(void **state)
{
    (void)state;
    for (int form = 0; form < SQL_FORMS; form++) {
        struct sql_proxy *proxy = sql_proxy();
        mortise_client *client = open_at(sql_proxy_port(proxy), form, "lease=60s");
        mortise_lock *lock = zk_mutex(client, "behind");
        struct sql_attempt next;
        use_once(client, "behind");
        mortise_hold hold = zk_acquire(lock);
        unsigned flights = sql_proxy_flights(proxy);
        zk_place_server("pause", 0);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        sql_begin(&next, lock);
        int64_t limit = zk_now_ms() + 20000;
        while (sql_proxy_flights(proxy) < flights + 2 && zk_now_ms() < limit)
            zk_rest_ms(5);
        flights = sql_proxy_flights(proxy) - flights;
        zk_place_server("resume", 0);
        sql_succeed(&next);
        assert_int_equal(flights, 2);
        end(client);
        sql_proxy_stop(proxy);
    }
}

static void test_a_server_that_is_killed_and_comes_back(void **state)
{
    (void)state;
    mortise_client *clients[SQL_FORMS], *others[SQL_FORMS];
    mortise_hold holds[SQL_FORMS];
    struct sql_attempt attempts[SQL_FORMS];
    for (int form = 0; form < SQL_FORMS; form++) {
        clients[form] = open_form(form, "lease=120s&connect=60s");
        others[form] = open_form(form, "lease=120s&connect=60s");
        holds[form] = zk_acquire(zk_mutex(clients[form], "killed"));
        sql_begin(&attempts[form], zk_mutex(others[form], "killed"));
        await(sql_form_waits, form + 1);
    }
    zk_place_server("kill", 0);
    for (int form = 0; form < SQL_FORMS; form++)
        sql_await_state(holds[form], MORTISE_LOST);
    zk_place_server("restart", 0);
    for (int form = 0; form < SQL_FORMS; form++) {
        sql_succeed(&attempts[form]);
        assert_true(mortise_is_held(attempts[form].hold));
        end(others[form]);
        end(clients[form]);
    }
}

/* CockroachDB's functions of these names do nothing; here one of ours is in its place. */
static void test_a_server_that_only_pretends_to_lock_is_refused(void **state)
{
    (void)state;
    mortise_hold hold;
    if (strcmp(sql_forms[0], "advisory") != 0)
        return;
    sql_run("ALTER FUNCTION pg_catalog.pg_try_advisory_lock(bigint) RENAME TO really_try");
    sql_run("CREATE FUNCTION pg_catalog.pg_try_advisory_lock(bigint) RETURNS boolean"
            " LANGUAGE sql AS 'SELECT true'");
    mortise_client *client = open_form(0, "lease=10s");
    int error = mortise_acquire_for(zk_mutex(client, "pretended"), 20000, &hold);
    sql_run("DROP FUNCTION pg_catalog.pg_try_advisory_lock(bigint)");
    sql_run("ALTER FUNCTION pg_catalog.really_try(bigint) RENAME TO pg_try_advisory_lock");
    assert_int_equal(error, MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "pretend"));
    end(client);
    client = open_form(0, "lease=10s");
    use_once(client, "pretended");
    end(client);
}

/* By the version's text, which names the product, before anything is locked. */
static void test_a_server_whose_locks_are_known_to_be_none_is_refused(void **state)
{
    (void)state;
    if (strcmp(sql_forms[0], "advisory") != 0)
        return;
    sql_run("ALTER FUNCTION pg_catalog.version() RENAME TO true_version");
    sql_run("CREATE FUNCTION pg_catalog.version() RETURNS text LANGUAGE sql"
            " AS $$SELECT 'CockroachDB CCL v23.1.0 (x86_64-pc-linux-gnu)'$$");
    for (int form = 0; form < SQL_FORMS; form++) {
        char parameters[64];
        snprintf(parameters, sizeof parameters, "lease=10s&form=%s", sql_forms[form]);
        sql_is_refused(zk_place_port(), parameters, "CockroachDB", "without form=");
    }
    sql_run("DROP FUNCTION pg_catalog.version()");
    sql_run("ALTER FUNCTION pg_catalog.true_version() RENAME TO version");
}

/* Every form's table, too. */
static int start_place(void **state)
{
    if (sql_place_start(state) != 0)
        return -1;
    mortise_client *client = open_form(SQL_ROW, "lease=10s");
    assert_int_equal(mortise_init(mortise_url(client), NULL, NULL), MORTISE_OK);
    end(client);
    return 0;
}

/* An argument chooses tests by their names. */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_j4_sq_12_one_counter_with_another_program),
        cmocka_unit_test(test_sq_11_sq_17_a_form_locks_the_name_that_other_programs_lock),
        cmocka_unit_test(test_sq_17_names_that_look_alike_are_different),
        cmocka_unit_test(test_a_waiter_that_gives_up_leaves_nothing),
        cmocka_unit_test(test_a_wait_longer_than_a_statement_may_take_is_repeated),
        cmocka_unit_test(test_a_waiter_whose_connection_is_ended_waits_on),
        cmocka_unit_test(test_a9_k4_each_lock_of_a_form_has_a_connection),
        cmocka_unit_test(test_d6_readers_share_where_the_server_has_it),
        cmocka_unit_test(test_options_that_a_form_cannot_keep_are_refused),
        cmocka_unit_test(test_sq_05_j4_an_acquire_refused_for_long_succeeds_in_the_end),
        cmocka_unit_test(test_sq_05_j4_an_acquire_refused_for_ever_ends_when_its_time_is_up),
        cmocka_unit_test(test_a_connection_that_is_ended_is_a_loss),
        cmocka_unit_test(test_sq_12_silent_connections_are_kept_and_their_end_is_told),
        cmocka_unit_test(test_sq_13_c12_a_half_open_connection_ends_a_hold_in_time),
        cmocka_unit_test(test_a_grant_that_comes_too_late_is_none),
        cmocka_unit_test(test_a_frozen_server_is_a_loss),
        cmocka_unit_test(test_an_acquire_behind_a_release_leaves_before_that_is_answered),
        cmocka_unit_test(test_a_server_that_only_pretends_to_lock_is_refused),
        cmocka_unit_test(test_a_server_whose_locks_are_known_to_be_none_is_refused),
        cmocka_unit_test(test_a_server_that_is_killed_and_comes_back),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, start_place, zk_place_stop);
}
