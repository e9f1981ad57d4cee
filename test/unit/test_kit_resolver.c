/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up hosts beside the caller, with a name server that takes its time. */
#include "cmocka_all.h"

#include "store/kit/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define WAKES_MAX 40 /* of a wait for the whole look-up; one that polls has hundreds */

static const struct mrt_host host = {.name = "slow.example", .port = 7};
static _Atomic long delay_ms;
static _Atomic int answers; /* of look-ups that have ended */

/* ------------------------------------------------- in the place of the system's */

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);
void __wrap_freeaddrinfo(struct addrinfo *found);

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found)
{
    static struct sockaddr_in address = {.sin_family = AF_INET};
    (void)name, (void)service;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    sleep_ms(delay_ms);
    *found = calloc(1, sizeof **found);
    if (!*found)
        return EAI_MEMORY;
    (*found)->ai_addr = (struct sockaddr *)(void *)&address;
    (*found)->ai_addrlen = sizeof address;
    answers++;
    return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *found)
{
    free(found);
}

/* ------------------------------------------------------------------------ tests */

static long wakes(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

static void test_a_wait_sleeps_until_the_look_up_ends(void **state)
{
    struct mrt_resolver resolver;
    (void)state;
    delay_ms = 300;
    mrt_resolver_init(&resolver, &host, 1, mrt_time_now());
    long before = wakes();
    mrt_time begun = mrt_time_now();
    struct mrt_addresses *found = mrt_resolver_wait(&resolver, &host, 1, 60 * MRT_SECOND);
    assert_true(mrt_time_now() - begun >= 300 * MRT_MILLISECOND);
    assert_true(wakes() - before < WAKES_MAX);
    assert_non_null(found);
    assert_int_equal(found->count, 1);
    assert_false(mrt_resolver_is_busy(&resolver));
    free(found);
    mrt_resolver_forget(&resolver);
}

static void test_a_wait_ends_at_its_limit_and_the_look_up_goes_on(void **state)
{
    struct mrt_resolver resolver;
    (void)state;
    delay_ms = 500;
    mrt_resolver_init(&resolver, &host, 1, mrt_time_now());
    mrt_time begun = mrt_time_now();
    assert_null(mrt_resolver_wait(&resolver, &host, 1, 20 * MRT_MILLISECOND));
    assert_true(mrt_time_now() - begun >= 20 * MRT_MILLISECOND);
    assert_null(mrt_resolver_wait(&resolver, &host, 1, 0));
    struct mrt_addresses *found = mrt_resolver_wait(&resolver, &host, 1, 60 * MRT_SECOND);
    assert_non_null(found);
    free(found);
    assert_null(mrt_resolver_take(&resolver));
    mrt_resolver_forget(&resolver);
}

static void test_a_forgotten_look_up_ends_by_itself(void **state)
{
    struct mrt_resolver resolver;
    (void)state;
    delay_ms = 50;
    int before = answers;
    mrt_resolver_init(&resolver, &host, 1, 0);
    mrt_resolver_begin(&resolver, &host, 1, 2 * MRT_SECOND);
    assert_true(mrt_resolver_is_busy(&resolver));
    mrt_resolver_forget(&resolver);
    assert_false(mrt_resolver_is_busy(&resolver));
    while (answers == before)
        sleep_ms(5);
    sleep_ms(20); /* the thread frees what it shared */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_sleeps_until_the_look_up_ends),
        cmocka_unit_test(test_a_wait_ends_at_its_limit_and_the_look_up_goes_on),
        cmocka_unit_test(test_a_forgotten_look_up_ends_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
