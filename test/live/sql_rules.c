/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of stores on SQL servers, on a real server: what they may cost, what rows and names
 * are, and what is done about errors. One program for each server. Errors are the server's own,
 * raised by a trigger as often as a test asks for.
 */
#include "cmocka_all.h"
#include "live/sql_place.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void end(mortise_client *client)
{
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static mortise_client *open_client(const char *parameters)
{
    return sql_open(zk_place_port(), parameters);
}

static void test_a9_k4_held_locks_share_one_connection_and_keep_no_transaction_open(void **state)
{
    (void)state;
    mortise_client *holder = open_client("lease=3s"), *waiter = open_client("lease=3s");
    struct sql_attempt attempts[3];
    mortise_hold holds[3];
    char name[16];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "a9/%d", i);
        holds[i] = zk_acquire(zk_mutex(holder, name));
        sql_begin(&attempts[i], zk_mutex(waiter, name));
    }
    sql_await("SELECT count(*) FROM ticket WHERE queue LIKE 'mortise/a9/%'", 6);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(sql_connections(), 2);
        int64_t limit = zk_now_ms() + 20000;
        while (sql_transactions() > 0) /* a renewal's is over at once */
            assert_true(zk_now_ms() < limit);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mortise_release(holds[i]), MORTISE_OK);
        sql_succeed(&attempts[i]);
    }
    end(holder);
    end(waiter);
}

static uint64_t commands(mortise_client *client)
{
    mortise_stats stats = {.size = sizeof stats};
    assert_int_equal(mortise_get_stats(client, &stats), MORTISE_OK);
    return stats.commands;
}

#define WAITERS_MAX 8

/* Where the server tells who may run, little is asked. Where it does not, who is next asks 46 times
   a second on average (doc/mariadb.md), the second half as often, and so on. */
static double most_a_second(bool told, int waiters)
{
    double most = 0;
    for (int place = 1; place <= waiters; place++)
        most += (told ? 6 : 46.0 / place) + 4; /* and signs of life */
    return most;
}

static void look_how_often_they_ask(int count, const char *name)
{
    mortise_client *holder = open_client("lease=3s"), *waiters[WAITERS_MAX];
    struct sql_attempt attempts[WAITERS_MAX];
    mortise_capabilities can = {.size = sizeof can};
    char query[96];
    uint64_t asked = 0;
    mortise_hold hold = zk_acquire(zk_mutex(holder, name));
    assert_int_equal(mortise_get_capabilities(holder, &can), MORTISE_OK);
    snprintf(query, sizeof query, "SELECT count(*) FROM ticket WHERE queue = 'mortise/%s'", name);
    for (int i = 0; i < count; i++) { /* in this order */
        waiters[i] = open_client("lease=3s");
        sql_begin(&attempts[i], zk_mutex(waiters[i], name));
        sql_await(query, i + 2);
    }
    zk_rest_ms(200);
    for (int i = 0; i < 10 && asked < (uint64_t)count;
         i++) { /* in none if the server stands still */
        int64_t begin = zk_now_ms();
        asked = 0;
        for (int j = 0; j < count; j++)
            asked -= commands(waiters[j]);
        zk_rest_ms(2000);
        for (int j = 0; j < count; j++)
            asked += commands(waiters[j]);
        double seconds = (double)(zk_now_ms() - begin) / 1000;
        assert_in_range(asked, 0, (uint64_t)(most_a_second(can.notify, count) * seconds) + 2);
    }
    assert_true(asked >= (uint64_t)count);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    for (int i = 0; i < count; i++) {
        sql_succeed(&attempts[i]);
        end(waiters[i]);
    }
    end(holder);
}

static void test_j7_a_waiter_polls_at_a_bounded_rate(void **state)
{
    (void)state;
    look_how_often_they_ask(1, "j7");
}

static void test_j7_eight_waiters_poll_at_a_bounded_rate(void **state)
{
    (void)state;
    look_how_often_they_ask(WAITERS_MAX, "j7/8");
}

/* It would keep a lock from others for as long as it may, if nobody told it of them. */
static void test_lingering_is_refused_where_the_server_does_not_tell(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=2s");
    mortise_capabilities can = {.size = sizeof can};
    mortise_lock_options options = {.size = sizeof options, .linger_ms = 1000};
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    assert_int_equal(can.linger, can.notify);
    int error = mortise_mutex_new(client, "linger", &options, &lock);
    assert_int_equal(error, can.notify ? MORTISE_OK : MORTISE_ENOTSUPPORTED);
    if (error)
        assert_non_null(strstr(mortise_error_detail(), "cannot report waiters"));
    end(client);
}

static void test_sq_04_z10_fences_rise_whatever_is_deleted(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=2s");
    mortise_lock *lock = zk_mutex(client, "fence");
    uint64_t last = 0;
    for (int i = 0; i < 30; i++) {
        mortise_hold hold = zk_acquire(lock);
        assert_true(mortise_hold_fence(hold) > last);
        last = mortise_hold_fence(hold);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        if (i % 10 == 9) {
            sql_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/fence'", 0);
            sql_run("DELETE FROM queue");
        }
    }
    end(client);
}

static void test_sq_17_names_that_look_alike_are_different(void **state)
{
    static const char *const names[] = {
        "name", "Name", "name ", " name", "näme", "na\xcc\x88me", "name\xc2\xa0", "%",
        "_",    "\\",   "'",     "\"",    "$1"};
    enum { COUNT = sizeof names / sizeof names[0] };
    (void)state;
    char longest[MORTISE_NAME_MAX + 2];
    mortise_client *client = open_client("lease=5s"), *other = open_client("lease=5s");
    mortise_hold hold;
    mortise_lock *lock = NULL;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(mortise_try_acquire(zk_mutex(client, names[i]), &hold), MORTISE_OK);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(mortise_try_acquire(zk_mutex(other, names[i]), &hold), MORTISE_EBUSY);
    memset(longest, 'x', sizeof longest);
    longest[MORTISE_NAME_MAX + 1] = '\0';
    assert_int_equal(mortise_mutex_new(client, longest, NULL, &lock), MORTISE_ENAME);
    longest[MORTISE_NAME_MAX] = '\0';
    zk_acquire(zk_mutex(client, longest));
    assert_int_equal(mortise_try_acquire(zk_mutex(other, longest), &hold), MORTISE_EBUSY);
    longest[MORTISE_NAME_MAX - 1] = '\0';
    zk_acquire(zk_mutex(other, longest));
    end(client);
    end(other);
}

/* Each takes a name that nobody has used before, as soon as the round begins. */
struct comer {
    mortise_client *client;
    pthread_barrier_t *barrier;
    _Atomic int *inside;
    pthread_t thread;
    bool failed;
};
#define ROUNDS 100

static void *come_first(void *argument)
{
    struct comer *self = argument;
    char name[24];
    for (int i = 0; i < ROUNDS; i++) {
        mortise_hold hold;
        snprintf(name, sizeof name, "first/%d", i);
        mortise_lock *lock = zk_mutex(self->client, name);
        pthread_barrier_wait(self->barrier);
        self->failed |= mortise_acquire_for(lock, 60000, &hold) != MORTISE_OK;
        self->failed |= atomic_fetch_add(self->inside, 1) != 0;
        atomic_fetch_sub(self->inside, 1);
        self->failed |= mortise_release(hold) != MORTISE_OK;
        pthread_barrier_wait(self->barrier);
        mortise_lock_free(lock);
    }
    return NULL;
}

static void test_j1_sq_06_clients_that_first_use_a_name_together_exclude_each_other(void **state)
{
    enum { COMERS = 6 };
    (void)state;
    struct comer comers[COMERS];
    pthread_barrier_t barrier;
    _Atomic int inside = 0;
    pthread_barrier_init(&barrier, NULL, COMERS);
    for (int i = 0; i < COMERS; i++) {
        comers[i] = (struct comer){
            .client = open_client("lease=20s"), .barrier = &barrier, .inside = &inside};
        pthread_create(&comers[i].thread, NULL, come_first, &comers[i]);
    }
    for (int i = 0; i < COMERS; i++) {
        pthread_join(comers[i].thread, NULL);
        assert_false(comers[i].failed);
        end(comers[i].client);
    }
    pthread_barrier_destroy(&barrier);
}

enum { WAITERS = 5 };

/* An acquire by each of the clients, none of them by this thread. */
static void all_begin(struct sql_attempt attempts[WAITERS], mortise_client *clients[WAITERS],
                      const char *name)
{
    mortise_lock_options options = {.size = sizeof options, .owner = 1};
    for (int i = 0; i < WAITERS; i++) {
        mortise_lock *lock = NULL;
        assert_int_equal(mortise_mutex_new(clients[i], name, &options, &lock), MORTISE_OK);
        sql_begin(&attempts[i], lock);
    }
    int64_t limit = zk_now_ms() + 20000;
    while (sql_lock_waits() < WAITERS) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
}

/* Each gets the lock, and never two. */
static void all_get_their_turn(struct sql_attempt attempts[WAITERS])
{
    for (int served = 0; served < WAITERS;) {
        int holding = 0, one = 0;
        for (int i = 0; i < WAITERS; i++)
            if (attempts[i].done && attempts[i].lock) {
                holding++;
                one = i;
            }
        assert_true(holding <= 1);
        if (holding == 0)
            continue;
        sql_succeed(&attempts[one]);
        assert_int_equal(mortise_release(attempts[one].hold), MORTISE_OK);
        attempts[one].lock = NULL;
        served++;
    }
}

static void all_open(mortise_client *clients[WAITERS], const char *lock)
{
    char name[32];
    for (int i = 0; i < WAITERS; i++) {
        clients[i] = open_client("lease=60s");
        snprintf(name, sizeof name, "%s/%d", lock, i);
        zk_acquire(zk_mutex(clients[i], name));
    }
}

/* Each has found no row to lock, and then there is one that none of them has locked. */
static void test_sq_06_a_row_that_appears_is_not_a_row_that_is_locked(void **state)
{
    (void)state;
    mortise_client *clients[WAITERS], *other;
    struct sql_attempt attempts[WAITERS];
    if (!sql_makes_rows_first)
        skip();
    all_open(clients, "begun");
    sql_block("session");
    all_begin(attempts, clients, "fresh");
    other = open_client("lease=60s");
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(other, "fresh"))), MORTISE_OK);
    sql_await(SQL_TICKETS("fresh"), 0);
    sql_unblock();
    sql_await(SQL_TICKETS("fresh"), WAITERS);
    zk_rest_ms(200); /* for all answers */
    all_get_their_turn(attempts);
    for (int i = 0; i < WAITERS; i++)
        end(clients[i]);
    end(other);
}

/* Nobody was in the queue when each of them began to wait for its row. */
static void test_sq_06_tickets_that_came_while_the_row_was_waited_for_are_seen(void **state)
{
    (void)state;
    mortise_client *clients[WAITERS];
    struct sql_attempt attempts[WAITERS];
    all_open(clients, "early");
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(clients[0], "seen"))), MORTISE_OK);
    sql_await(SQL_TICKETS("seen"), 0);
    sql_block("queue");
    all_begin(attempts, clients, "seen");
    sql_unblock();
    sql_await(SQL_TICKETS("seen"), WAITERS);
    zk_rest_ms(200); /* for all answers */
    all_get_their_turn(attempts);
    for (int i = 0; i < WAITERS; i++)
        end(clients[i]);
}

static void cycle_under(const char *what, enum sql_refusal refusal, int times)
{
    mortise_client *client = open_client("lease=5s");
    sql_inject(what, refusal, times);
    mortise_hold hold = zk_acquire(zk_mutex(client, "injected"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_await(SQL_TICKETS("injected"), 0);
    assert_true(sql_heal() > times);
    end(client);
}

static void test_sq_05_j8_deadlocks_do_not_reach_the_caller(void **state)
{
    (void)state;
    for (enum sql_refusal refusal = 0; refusal < SQL_REFUSALS; refusal++) {
        cycle_under("INSERT ON ticket", refusal, 3);
        cycle_under("DELETE ON ticket", refusal, 3);
        cycle_under("INSERT ON session", refusal, 3);
    }
}

/* For longer than a hundred attempts take that follow each other at once. The pauses between
   those that there are say how many can be made in a time. */
static void outlast(int requests, int64_t begin)
{
    zk_rest_ms(1200);
    long refused = sql_heal();
    assert_in_range(refused, 1, requests * (10 + (zk_now_ms() - begin) / 64));
}

static void test_sq_05_j8_deadlocks_for_long_are_outlasted(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=60s"), *other = sql_open_patient("lease=60s");
    struct sql_attempt acquires, tries;
    mortise_hold hold = zk_acquire(zk_mutex(client, "released"));
    zk_acquire(zk_mutex(other, "other"));
    int64_t begin = zk_now_ms();
    sql_inject("INSERT ON ticket", SQL_DEADLOCK, SQL_ALWAYS);
    sql_begin(&acquires, zk_mutex(client, "acquired"));
    sql_begin_try(&tries, zk_mutex(other, "tried"));
    outlast(2, begin);
    sql_succeed(&acquires);
    sql_succeed(&tries);
    begin = zk_now_ms();
    sql_inject("DELETE ON ticket", SQL_CONFLICT, SQL_ALWAYS);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    outlast(1, begin);
    sql_await(SQL_TICKETS("released"), 0);
    end(client);
    end(other);
}

/* A release that the server refuses at first comes before the acquire behind it all the same. */
static void test_sq_05_f4_a_try_behind_a_release_that_is_refused(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=60s");
    mortise_lock *lock = zk_mutex(client, "behind");
    mortise_hold hold = zk_acquire(lock);
    for (int i = 0; i < 3; i++) {
        sql_inject("DELETE ON ticket", SQL_DEADLOCK, 3);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_OK);
        assert_true(sql_heal() > 3);
    }
    end(client);
}

/* Somebody asked for the lock meanwhile, and has gone, or waits. */
static void test_f4_a_try_behind_a_release_after_others_have_come(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=60s"), *other = open_client("lease=60s");
    mortise_lock *lock = zk_mutex(client, "asked for"), *theirs = zk_mutex(other, "asked for");
    mortise_hold hold, none;
    struct sql_attempt waits;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_OK);
        assert_int_equal(mortise_try_acquire(theirs, &none), MORTISE_EBUSY);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
    }
    hold = zk_acquire(lock);
    sql_begin(&waits, theirs);
    sql_await(SQL_TICKETS("asked for"), 2);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_try_acquire(lock, &none), MORTISE_EBUSY);
    sql_succeed(&waits);
    end(client);
    end(other);
}

static void test_sq_05_j8_a_deadlock_without_end_ends_when_its_time_is_up(void **state)
{
    (void)state;
    char state_told[16];
    mortise_client *client = sql_open_patient("lease=2s&connect=1s");
    mortise_lock *lock = zk_mutex(client, "refused");
    mortise_hold hold;
    zk_acquire(zk_mutex(client, "before"));
    sql_inject("INSERT ON ticket", SQL_CONFLICT, SQL_ALWAYS);
    int64_t begin = zk_now_ms();
    assert_int_equal(mortise_try_acquire(lock, &hold), MORTISE_ESTORE);
    assert_true(zk_now_ms() - begin >= 2000);
    snprintf(state_told, sizeof state_told, "(%s)", sql_refusals[SQL_CONFLICT]);
    assert_non_null(strstr(mortise_error_detail(), "injected"));
    assert_non_null(strstr(mortise_error_detail(), state_told));
    assert_int_equal(mortise_acquire_for(lock, 100, &hold), MORTISE_ETIMEOUT);
    sql_heal();
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    end(client);
}

struct contender {
    mortise_client *client;
    int *counter;
    pthread_t thread;
    bool failed;
};

static void *contend(void *argument)
{
    struct contender *self = argument;
    mortise_lock *lock = zk_mutex(self->client, "serial");
    mortise_hold hold;
    for (int i = 0; i < 10 && !self->failed; i++) {
        self->failed = mortise_acquire_for(lock, 60000, &hold) != MORTISE_OK;
        ++*self->counter;
        self->failed |= mortise_release(hold) != MORTISE_OK;
    }
    return NULL;
}

static void test_sq_05_the_servers_default_isolation_does_not_matter(void **state)
{
    (void)state;
    struct contender contenders[32];
    int counter = 0;
    sql_set_serializable(true);
    for (int i = 0; i < 32; i++) {
        contenders[i] = (struct contender){.client = open_client("lease=20s"), .counter = &counter};
        pthread_create(&contenders[i].thread, NULL, contend, &contenders[i]);
    }
    for (int i = 0; i < 32; i++) {
        pthread_join(contenders[i].thread, NULL);
        assert_false(contenders[i].failed);
        end(contenders[i].client);
    }
    assert_int_equal(counter, 320);
    sql_set_serializable(false);
}

static void test_a_server_without_room_for_prepared_statements_serves(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=20s");
    for (int room = 1; room >= 0; room--) {
        sql_set_room(room);
        mortise_lock *lock = zk_mutex(client, room ? "room" : "no room");
        for (int i = 0; i < 3; i++)
            assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
        sql_end_connections(); /* the next is to prepare anew */
    }
    sql_set_room(true);
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(client, "room"))), MORTISE_OK);
    end(client);
}

static void test_sq_02_the_lease_is_whole_after_a_long_wait(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=2s");
    zk_acquire(zk_mutex(client, "other"));
    mortise_hold hold = zk_acquire(zk_mutex(client, "blocked"));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/blocked'", 0);
    sql_block("queue WHERE name = 'mortise/blocked'");
    struct sql_attempt attempt;
    sql_begin(&attempt, zk_mutex(client, "blocked"));
    zk_rest_ms(4000);
    sql_unblock();
    sql_succeed(&attempt);
    assert_true(sql_number(sql_lease_left) > 700);
    assert_int_equal(sql_losses(client), 0); /* nor was the session lost by the wait */
    end(client);
}

static void test_sq_19_a_row_deleted_by_hand_while_waiting(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=10s"), *other = open_client("lease=2s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "row"));
    struct sql_attempt attempt;
    sql_begin(&attempt, zk_mutex(other, "row"));
    sql_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/row'", 2);
    sql_run("DELETE FROM ticket WHERE number = (SELECT max(number) FROM ticket)");
    sql_await("SELECT count(*) FROM ticket WHERE queue = 'mortise/row'", 2); /* it queues again */
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt);
    end(client);
    end(other);
}

static void test_sq_19_a_row_deleted_by_hand_while_holding(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=1500ms");
    mortise_hold hold = zk_acquire(zk_mutex(client, "row"));
    mortise_hold kept = zk_acquire(zk_mutex(client, "kept"));
    zk_rest_ms(1000); /* a renewal has counted them */
    sql_run("DELETE FROM ticket WHERE queue = 'mortise/row'");
    sql_await_state(hold, MORTISE_LOST);
    assert_true(mortise_is_held(kept));
    sql_run("DELETE FROM session");
    sql_await_state(kept, MORTISE_LOST);
    end(client);
}

static void test_sq_19_a_row_deleted_before_anything_was_renewed(void **state)
{
    (void)state;
    mortise_client *client = open_client("lease=1500ms");
    mortise_hold hold = zk_acquire(zk_mutex(client, "row"));
    sql_run("DELETE FROM ticket WHERE queue = 'mortise/row'");
    sql_await_state(hold, MORTISE_LOST);
    end(client);
}

/* Its session was ended by a session of another queue, so it no longer counted in this one, when
 * its holder, which does not know yet, releases it: that grants nobody. */
static void test_a1_c5_a_release_in_an_ended_session_grants_nobody(void **state)
{
    (void)state;
    mortise_client *paused = open_client("lease=60s"), *holder = open_client("lease=60s");
    mortise_client *waiter = open_client("lease=60s");
    struct sql_attempt attempt;
    mortise_hold ended = zk_acquire(zk_mutex(paused, "row"));
    sql_run("DELETE FROM session");
    mortise_hold hold = zk_acquire(zk_mutex(holder, "row"));
    sql_begin(&attempt, zk_mutex(waiter, "row"));
    sql_await(SQL_TICKETS("row") " AND session IN (SELECT id FROM session)", 2);
    mortise_release(ended);
    sql_await(SQL_TICKETS("row") " AND session NOT IN (SELECT id FROM session)", 0);
    zk_acquire(zk_mutex(waiter, "other")); /* what it has been told by then it knows */
    assert_false(attempt.done);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    sql_succeed(&attempt);
    end(paused);
    end(holder);
    end(waiter);
}

static int note_delay(void *argument, const mortise_entry *entry)
{
    *(mortise_entry *)argument = *entry;
    return 0;
}

/* A dead session that nobody has found yet, and one without a delay, which goes. */
static void test_gn06_a_starting_client_sweeps_no_delay_away(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=60s"),
                   *without = sql_open(sql_proxy_port(proxy), "lease=60s"),
                   *other = open_client("lease=60s");
    mortise_lock_options options = {.size = sizeof options, .lock_delay_ms = 3600000};
    mortise_lock *lock = NULL;
    mortise_hold hold;
    mortise_entry entry = {0};
    assert_int_equal(mortise_mutex_new(client, "swept", &options, &lock), MORTISE_OK);
    zk_acquire(lock);
    zk_acquire(zk_mutex(without, "without"));
    sql_proxy_stall(proxy, true);
    sql_run(sql_end_leases);
    zk_acquire(zk_mutex(other, "starts"));
    sql_await("SELECT count(*) FROM session WHERE epoch > 0", 2);
    for (int i = 0; i < 2; i++) { /* found by nobody, and by a try */
        assert_int_equal(mortise_list(other, "swept", note_delay, &entry), MORTISE_OK);
        assert_in_range(entry.delay_ms, 1, 3600000);
        assert_int_equal(mortise_try_acquire(zk_mutex(other, "swept"), &hold), MORTISE_EBUSY);
    }
    assert_int_equal(mortise_break(other, "swept", entry.fence), MORTISE_OK);
    assert_int_equal(mortise_try_acquire(zk_mutex(other, "swept"), &hold), MORTISE_OK);
    sql_proxy_stall(proxy, false);
    end(client);
    end(without);
    end(other);
    sql_proxy_stop(proxy);
}

static uint64_t acquire_once(mortise_client *client, const char *name)
{
    mortise_hold hold = zk_acquire(zk_mutex(client, name));
    uint64_t fence = mortise_hold_fence(hold);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    return fence;
}

#define QUEUES(name) "SELECT count(*) FROM queue WHERE name = 'mortise/" name "'"

/* One that died two minutes ago, and that nobody has found since. */
static void leave_dead(const char *name)
{
    char text[256];
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=60s");
    zk_acquire(zk_mutex(client, name));
    sql_proxy_stall(proxy, true);
    snprintf(text, sizeof text,
             "%s AND id IN (SELECT session FROM ticket WHERE queue = 'mortise/%s')", sql_end_leases,
             name);
    sql_run(text);
    mortise_client *other = open_client("lease=60s"); /* it sweeps for that one's sake */
    zk_acquire(zk_mutex(other, "after"));
    end(other);
    sql_proxy_stall(proxy, false);
    end(client);
    sql_proxy_stop(proxy);
}

static void test_sq_16_sq_04_a_starting_client_sweeps_old_queues_away(void **state)
{
    (void)state;
    char text[160];
    mortise_client *client = open_client("lease=60s");
    mortise_hold held = zk_acquire(zk_mutex(client, "old/held")), none;
    uint64_t fence = acquire_once(client, "old/empty");
    acquire_once(client, "recent");
    sql_await(SQL_TICKETS("old/empty"), 0);
    snprintf(text, sizeof text, "UPDATE queue SET touched = %s WHERE name LIKE 'mortise/old/%%'",
             sql_days_ago);
    sql_run(text);
    leave_dead("dead");
    sql_await(QUEUES("old/empty"), 0);
    assert_int_equal(sql_number(QUEUES("recent")), 1);
    assert_int_equal(sql_number(QUEUES("old/held")), 1);
    mortise_client *other = open_client("lease=60s");
    assert_int_equal(mortise_try_acquire(zk_mutex(other, "old/held"), &none), MORTISE_EBUSY);
    assert_true(mortise_is_held(held));
    assert_true(acquire_once(other, "old/empty") > fence); /* the row is a new one */
    fence = mortise_hold_fence(held);
    assert_int_equal(mortise_release(held), MORTISE_OK);
    assert_true(acquire_once(other, "old/held") > fence);
    end(client);
    end(other);
}

#define UNUSED "SELECT count(*) FROM queue WHERE name LIKE 'mortise/unused/%'"

static void leave_unused(int count)
{
    char text[320];
    snprintf(text, sizeof text, sql_unused_queues, count);
    sql_run(text);
}

/* Its sweep, if it makes one, goes before its acquire. */
static void start_one(void)
{
    mortise_client *client = open_client("lease=60s");
    zk_acquire(zk_mutex(client, "starts"));
    end(client);
}

static void touch_all(const char *when)
{
    char text[160];
    snprintf(text, sizeof text, "UPDATE queue SET touched = %s", when);
    sql_run(text);
}

/* A thousand at a time, and then none for an hour. */
static void test_sq_16_old_queues_go_where_nobody_dies(void **state)
{
    (void)state;
    sql_run("DELETE FROM session");
    touch_all(sql_hour_ago);
    leave_unused(1500);
    start_one();
    assert_int_equal(sql_number(UNUSED), 500);
    start_one();
    assert_int_equal(sql_number(UNUSED), 0);
    leave_unused(5);
    start_one();
    assert_int_equal(sql_number(UNUSED), 5);
    touch_all(sql_days_ago);
    start_one();
    assert_int_equal(sql_number("SELECT count(*) FROM queue WHERE name <> 'mortise/starts'"), 1);
}

static void test_j3_a_late_renewal_and_a_takeover_exclude_each_other(void **state)
{
    (void)state;
    struct sql_proxy *proxy = sql_proxy();
    mortise_client *client = sql_open(sql_proxy_port(proxy), "lease=1s"),
                   *other = open_client("lease=5s");
    mortise_hold hold = zk_acquire(zk_mutex(client, "late"));
    sql_proxy_stall(proxy, true);
    mortise_hold next = zk_acquire(zk_mutex(other, "late"));
    assert_false(mortise_is_held(hold)); /* it knew before */
    assert_true(mortise_hold_fence(next) > mortise_hold_fence(hold));
    sql_proxy_stall(proxy, false);
    hold = (mortise_hold){0};
    zk_acquire(zk_mutex(client, "again")); /* a new session of the same client */
    assert_true(mortise_is_held(next));
    end(client);
    end(other);
    sql_proxy_stop(proxy);
}

/* An argument chooses tests by their names, "*sq_14*". */
int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a9_k4_held_locks_share_one_connection_and_keep_no_transaction_open),
        cmocka_unit_test(test_j7_a_waiter_polls_at_a_bounded_rate),
        cmocka_unit_test(test_j7_eight_waiters_poll_at_a_bounded_rate),
        cmocka_unit_test(test_lingering_is_refused_where_the_server_does_not_tell),
        cmocka_unit_test(test_sq_04_z10_fences_rise_whatever_is_deleted),
        cmocka_unit_test(test_sq_17_names_that_look_alike_are_different),
        cmocka_unit_test(test_j1_sq_06_clients_that_first_use_a_name_together_exclude_each_other),
        cmocka_unit_test(test_sq_06_a_row_that_appears_is_not_a_row_that_is_locked),
        cmocka_unit_test(test_sq_06_tickets_that_came_while_the_row_was_waited_for_are_seen),
        cmocka_unit_test(test_sq_05_j8_deadlocks_do_not_reach_the_caller),
        cmocka_unit_test(test_sq_05_j8_deadlocks_for_long_are_outlasted),
        cmocka_unit_test(test_sq_05_j8_a_deadlock_without_end_ends_when_its_time_is_up),
        cmocka_unit_test(test_sq_05_f4_a_try_behind_a_release_that_is_refused),
        cmocka_unit_test(test_f4_a_try_behind_a_release_after_others_have_come),
        cmocka_unit_test(test_sq_05_the_servers_default_isolation_does_not_matter),
        cmocka_unit_test(test_a_server_without_room_for_prepared_statements_serves),
        cmocka_unit_test(test_sq_02_the_lease_is_whole_after_a_long_wait),
        cmocka_unit_test(test_sq_19_a_row_deleted_by_hand_while_waiting),
        cmocka_unit_test(test_sq_19_a_row_deleted_by_hand_while_holding),
        cmocka_unit_test(test_sq_19_a_row_deleted_before_anything_was_renewed),
        cmocka_unit_test(test_a1_c5_a_release_in_an_ended_session_grants_nobody),
        cmocka_unit_test(test_gn06_a_starting_client_sweeps_no_delay_away),
        cmocka_unit_test(test_sq_16_sq_04_a_starting_client_sweeps_old_queues_away),
        cmocka_unit_test(test_sq_16_old_queues_go_where_nobody_dies),
        cmocka_unit_test(test_j3_a_late_renewal_and_a_takeover_exclude_each_other),
    };
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, sql_place_start, zk_place_stop);
}
