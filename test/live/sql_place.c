/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that are the same for all servers. */
#include "live/sql_place.h"

#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

mortise_client *sql_open(uint16_t port, const char *parameters)
{
    return zk_open(sql_uri(port, parameters));
}

void sql_is_refused(uint16_t port, const char *parameters, const char *says, const char *and_says)
{
    mortise_client *client = sql_open(port, parameters);
    mortise_hold none;
    assert_int_equal(mortise_acquire_for(zk_mutex(client, "refused"), 60000, &none),
                     MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), says));
    assert_non_null(strstr(mortise_error_detail(), and_says));
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

mortise_client *sql_open_patient(const char *parameters)
{
    const mortise_client_options options = {.size = sizeof options, .timeout_ms = 120000};
    mortise_client *client = NULL;
    const char *uri = sql_uri(zk_place_port(), parameters);
    assert_int_equal(mortise_open(uri, &options, &client), MORTISE_OK);
    return client;
}

long sql_number(const char *text)
{
    return strtol(sql_run(text), NULL, 10);
}

void sql_await(const char *text, long number)
{
    int64_t end = zk_now_ms() + 20000;
    while (sql_number(text) != number) {
        if (zk_now_ms() > end)
            fail_msg("%s did not become %ld", text, number);
        zk_rest_ms(5);
    }
}

static void *try_for_long(void *argument)
{
    struct sql_attempt *attempt = argument;
    attempt->error = mortise_acquire_for(attempt->lock, 60000, &attempt->hold);
    attempt->done = true;
    return NULL;
}

static void *try_once(void *argument)
{
    struct sql_attempt *attempt = argument;
    attempt->error = mortise_try_acquire(attempt->lock, &attempt->hold);
    attempt->done = true;
    return NULL;
}

static void begin(struct sql_attempt *attempt, mortise_lock *lock, void *(*how)(void *))
{
    *attempt = (struct sql_attempt){.lock = lock};
    assert_int_equal(pthread_create(&attempt->thread, NULL, how, attempt), 0);
}

void sql_begin(struct sql_attempt *attempt, mortise_lock *lock)
{
    begin(attempt, lock, try_for_long);
}

void sql_begin_try(struct sql_attempt *attempt, mortise_lock *lock)
{
    begin(attempt, lock, try_once);
}

void sql_succeed(struct sql_attempt *attempt)
{
    pthread_join(attempt->thread, NULL);
    assert_int_equal(attempt->error, MORTISE_OK);
}

void sql_await_state(mortise_hold hold, mortise_state wanted)
{
    int64_t limit = zk_now_ms() + 20000;
    while (mortise_hold_state(hold) != wanted) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(5);
    }
}

uint64_t sql_losses(mortise_client *client)
{
    mortise_stats stats = {.size = sizeof stats};
    assert_int_equal(mortise_get_stats(client, &stats), MORTISE_OK);
    return stats.losses;
}
