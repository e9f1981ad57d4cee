/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that are called by names. The test is the resolver: it says where a name leads, which is to
 * a server or a proxy, that it leads nowhere, or nothing for as long as the test likes.
 *
 *     test_names URI     of a server, or of five with commas between; memory: without a store
 */
#include "api/api_fixture.h"
#include "live/proxy.h"
#include "store/kit/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

#define NAMES 5
#define LONG_MS 60000

/* ------------------------------------------------------------------ the resolver */

static struct {
    _Atomic int port[NAMES];  /* of "host0.test" and its kin; 0: nobody knows */
    _Atomic int above[NAMES]; /* how far its address is above 127.0.0.1 */
    _Atomic int asked, answered;
    _Atomic bool hangs;
} resolver;

int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);

int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found)
{
    int number, port;
    char text[12], address[24];
    if (sscanf(name, "host%d.test", &number) != 1)
        return __real_getaddrinfo(name, service, hints, found);
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    resolver.asked++;
    while (resolver.hangs)
        api_sleep_ms(1);
    port = resolver.port[number];
    snprintf(text, sizeof text, "%d", port);
    snprintf(address, sizeof address, "127.0.0.%d", 1 + resolver.above[number]);
    int error = port ? __real_getaddrinfo(address, text, hints, found) : EAI_AGAIN;
    resolver.answered++;
    return error;
}

static void await_count(const _Atomic int *count, int wanted)
{
    int64_t began = mortise_now_ns();
    while (*count < wanted) {
        check(api_ms_since(began) < LONG_MS);
        api_sleep_ms(1);
    }
}

/* ------------------------------------------------------------------ in front of a server */

static bool pass(struct proxy_way *way)
{
    bool sent = way->length == 0 || proxy_send(way->to, way->buffer, way->length);
    proxy_consume(way, way->length);
    return sent;
}

static bool pass_up(struct proxy *proxy, struct proxy_pair *pair)
{
    (void)proxy;
    return pass(&pair->up);
}

static bool pass_down(struct proxy *proxy, struct proxy_pair *pair)
{
    (void)proxy;
    return pass(&pair->down);
}

static const struct proxy_protocol plain = {
    .state_size = 1, .pass_up = pass_up, .pass_down = pass_down};

static uint16_t ports[NAMES]; /* of the servers */

/* The server's URI by its name; the port in it leads nowhere. */
static const char *by_name(void)
{
    static char uri[256];
    const char *host = strstr(api_url, "127.0.0.1:");
    const char *rest = host + strcspn(host, "/?");
    snprintf(uri, sizeof uri, "%.*shost0.test:1%s%csession=20s", (int)(host - api_url), api_url,
             rest, strchr(rest, '?') ? '&' : '?');
    return uri;
}

static mortise_client *open_by_name(void)
{
    mortise_client *client;
    check(mortise_open(by_name(), NULL, &client) == MORTISE_OK);
    return client;
}

/* ------------------------------------------------------------------ one server */

static int set_up(void **state)
{
    (void)state;
    resolver.asked = resolver.answered = 0;
    resolver.hangs = false;
    for (int i = 0; i < NAMES; i++)
        resolver.above[i] = 0;
    return 0;
}

/* A look-up under way when its client ends goes on alone. */
static int await_answers(void **state)
{
    (void)state;
    resolver.hangs = false;
    await_count(&resolver.answered, resolver.asked);
    return 0;
}

static void lead_to(const struct proxy *proxy)
{
    resolver.port[0] = proxy_port(proxy);
    resolver.above[0] = proxy->above;
}

static void test_zk_39_rd_17_the_server_is_found_where_it_comes_up(void **state)
{
    (void)state;
    resolver.port[0] = ports[0];
    resolver.above[0] = 8; /* where nobody listens */
    mortise_client *client = open_by_name();
    mortise_lock *lock = api_lock(client, "names/1");
    mortise_hold hold;
    assert_int_not_equal(mortise_acquire_for(lock, 100, &hold), MORTISE_OK);
    resolver.above[0] = 0;
    assert_int_equal(mortise_acquire_for(lock, LONG_MS, &hold), MORTISE_OK);
    api_release(hold);
    api_close(client);
}

static void test_zk_39_a_hold_outlives_the_servers_move(void **state)
{
    (void)state;
    struct proxy here = {.above = 1}, there = {.above = 2};
    proxy_start(&here, &plain, ports[0]);
    proxy_start(&there, &plain, ports[0]);
    lead_to(&here);
    mortise_client *client = open_by_name();
    mortise_hold hold = api_acquire(api_lock(client, "names/2"));
    assert_true(proxy_connections(&here) > 0);
    lead_to(&there);
    proxy_stop(&here);
    assert_int_equal(mortise_verify(hold, LONG_MS), MORTISE_OK);
    assert_true(proxy_connections(&there) > 0);
    api_release(hold);
    api_close(client);
    proxy_stop(&there);
}

/* Meanwhile the server is tried where it was. */
static void test_zk_39_nobody_waits_for_the_resolver(void **state)
{
    (void)state;
    struct proxy proxy = {0};
    proxy_start(&proxy, &plain, ports[0]);
    lead_to(&proxy);
    mortise_client *client = open_by_name();
    mortise_hold hold = api_acquire(api_lock(client, "names/3"));
    resolver.hangs = true;
    int64_t began = mortise_now_ns();
    while (resolver.asked < 2) { /* not at once: it has just been asked */
        check(api_ms_since(began) < LONG_MS);
        proxy_cut(&proxy);
        assert_int_equal(mortise_verify(hold, LONG_MS), MORTISE_OK);
    }
    assert_int_equal(resolver.answered, 1);
    assert_int_equal(mortise_verify(hold, LONG_MS), MORTISE_OK);
    api_release(hold);
    api_close(client);
    assert_int_equal(resolver.answered, 1);
    resolver.hangs = false;
    proxy_stop(&proxy);
}

static void test_zk_39_an_unknown_host_ends_the_opening(void **state)
{
    (void)state;
    mortise_client *client;
    resolver.port[0] = 0;
    assert_int_equal(mortise_open(by_name(), NULL, &client), MORTISE_EUNREACHABLE);
    assert_non_null(strstr(mortise_error_detail(), "host0.test"));
}

/* ------------------------------------------------------------------ a quorum */

static mortise_client *open_quorum(int known)
{
    mortise_client *client = NULL;
    for (int i = 0; i < NAMES; i++)
        resolver.port[i] = i < known ? ports[i] : 0;
    int error = mortise_open("redlock:redis://host0.test,redis://host1.test,redis://host2.test,"
                             "redis://host3.test,redis://host4.test?session=20s&answer=1s",
                             NULL, &client);
    assert_int_equal(error, known > NAMES / 2 ? MORTISE_OK : MORTISE_EUNREACHABLE);
    return client;
}

static int tickets_at(int server, const char *name)
{
    char uri[64];
    mortise_client *client;
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%u", (unsigned)ports[server]);
    check(mortise_open(uri, NULL, &client) == MORTISE_OK);
    int count = api_tickets(client, name);
    api_close(client);
    return count;
}

static void test_rd_17_a_minority_may_be_unknown_and_is_found_later(void **state)
{
    (void)state;
    mortise_client *client = open_quorum(3);
    mortise_lock *lock;
    check(mortise_exclusive_new(client, "names/4", NULL, &lock) == MORTISE_OK);
    api_release(api_acquire(lock));
    resolver.port[3] = ports[3];
    resolver.port[4] = ports[4];
    int64_t began = mortise_now_ns();
    for (int found = 0; found < NAMES;) {
        check(api_ms_since(began) < LONG_MS);
        mortise_hold hold = api_acquire(lock);
        found = 0;
        for (int i = 0; i < NAMES; i++)
            found += tickets_at(i, "names/4");
        api_release(hold);
    }
    api_close(client);
}

/* Its session would be shorter than the promised one. */
static void test_m2_a_member_that_answers_late_with_a_shorter_lease_does_not_count(void **state)
{
    (void)state;
    static const char *const uris[] = {
        "redis://host0.test?session=20s", "redis://host1.test?session=20s",
        "redis://host2.test?session=20s", "redis://host3.test?session=20s",
        "redis://host4.test?session=19s"};
    mortise_client *client;
    mortise_lock *lock;
    for (int i = 0; i < NAMES; i++)
        resolver.port[i] = i < 3 ? ports[i] : 0;
    assert_int_equal(mortise_open_quorum(uris, NAMES, 1000, NULL, &client), MORTISE_OK);
    check(mortise_exclusive_new(client, "names/5", NULL, &lock) == MORTISE_OK);
    api_release(api_acquire(lock));
    resolver.port[3] = ports[3];
    resolver.port[4] = ports[4];
    int64_t began = mortise_now_ns();
    for (int after = 0; after < 20;) {
        check(api_ms_since(began) < LONG_MS);
        mortise_hold hold = api_acquire(lock);
        after += after > 0 || tickets_at(3, "names/5") > 0;
        assert_int_equal(tickets_at(4, "names/5"), 0);
        api_release(hold);
        api_sleep_ms(50);
    }
    api_close(client);
}

static void test_rd_17_an_unknown_majority_ends_the_opening(void **state)
{
    (void)state;
    open_quorum(2);
    assert_non_null(strstr(mortise_error_detail(), "host4.test"));
}

/* ------------------------------------------------------------------ without a store */

static const struct mrt_host names[] = {{"host0.test", 7}, {"127.0.0.1", 8}, {"host1.test", 9}};

static void test_of_several_hosts_the_known_are_used_and_a_fault_is_kept(void **state)
{
    (void)state;
    resolver.port[0] = 0;
    resolver.port[1] = 1009;
    struct mrt_addresses *found = mrt_resolve(names, 3);
    assert_int_equal(found->count, 2);
    assert_int_equal(found->fault, EAI_AGAIN);
    static const int wanted[] = {8, 1009};
    for (int i = 0; i < 2; i++) {
        const struct sockaddr_in *address = (const struct sockaddr_in *)&found->at[i].socket;
        assert_int_equal(found->at[i].length, sizeof *address);
        assert_int_equal(ntohs(address->sin_port), wanted[i]);
    }
    free(found);
}

static struct mrt_addresses *take(struct mrt_resolver *from)
{
    struct mrt_addresses *found = NULL;
    await_count(&resolver.answered, resolver.asked);
    for (int i = 0; i < 100 && !found; i++) {
        found = mrt_resolver_take(from);
        api_sleep_ms(1);
    }
    return found;
}

static void test_names_are_looked_up_once_a_second_at_most(void **state)
{
    (void)state;
    struct mrt_resolver names_of = {0};
    mrt_time now = 5 * MRT_SECOND;
    resolver.port[0] = resolver.port[1] = 1;
    mrt_resolver_init(&names_of, names, 3, now);
    assert_int_equal(mrt_resolver_next(&names_of, now), now + MRT_SECOND);
    mrt_resolver_begin(&names_of, names, 3, now + MRT_SECOND - 1);
    assert_int_equal(resolver.asked, 0);
    assert_null(mrt_resolver_take(&names_of));
    resolver.hangs = true;
    mrt_resolver_begin(&names_of, names, 3, now + MRT_SECOND);
    await_count(&resolver.asked, 1);
    mrt_resolver_begin(&names_of, names, 3, now + 9 * MRT_SECOND); /* one is under way */
    assert_null(mrt_resolver_take(&names_of));
    assert_true(mrt_resolver_next(&names_of, now) < now + MRT_SECOND);
    resolver.hangs = false;
    await_count(&resolver.answered, 2);
    struct mrt_addresses *found = take(&names_of);
    assert_int_equal(found->count, 3);
    free(found);
    assert_int_equal(resolver.asked, 2);
    mrt_resolver_begin(&names_of, names, 3, now + 2 * MRT_SECOND - 1);
    assert_int_equal(resolver.asked, 2);
}

static void test_a_look_up_that_finds_nothing_changes_nothing(void **state)
{
    (void)state;
    struct mrt_resolver names_of = {0};
    resolver.port[0] = 0;
    mrt_resolver_begin(&names_of, names, 1, 0);
    await_count(&resolver.answered, 1);
    assert_null(take(&names_of));
    assert_null(names_of.under_way);
}

static void test_literal_addresses_are_never_looked_up(void **state)
{
    (void)state;
    static const struct mrt_host literal[] = {{"127.0.0.1", 1}, {"::1", 2}};
    struct mrt_resolver names_of = {0};
    mrt_resolver_init(&names_of, literal, 2, 0);
    assert_int_equal(mrt_resolver_next(&names_of, 0), MRT_TIME_NEVER);
    mrt_resolver_begin(&names_of, literal, 2, 100 * MRT_SECOND);
    assert_null(names_of.under_way);
}

static void test_a_look_up_outlives_the_client_that_began_it(void **state)
{
    (void)state;
    struct mrt_resolver names_of = {0};
    resolver.port[0] = 1;
    resolver.hangs = true;
    mrt_resolver_begin(&names_of, names, 1, 0);
    await_count(&resolver.asked, 1);
    mrt_resolver_forget(&names_of);
    mrt_resolver_forget(&names_of);
    assert_null(mrt_resolver_take(&names_of));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, await_answers)

int main(int argc, char **argv)
{
    const struct CMUnitTest one[] = {
        TEST(test_zk_39_rd_17_the_server_is_found_where_it_comes_up),
        TEST(test_zk_39_a_hold_outlives_the_servers_move),
        TEST(test_zk_39_nobody_waits_for_the_resolver),
        TEST(test_zk_39_an_unknown_host_ends_the_opening),
    };
    const struct CMUnitTest several[] = {
        TEST(test_rd_17_a_minority_may_be_unknown_and_is_found_later),
        TEST(test_m2_a_member_that_answers_late_with_a_shorter_lease_does_not_count),
        TEST(test_rd_17_an_unknown_majority_ends_the_opening),
    };
    const struct CMUnitTest alone[] = {
        TEST(test_of_several_hosts_the_known_are_used_and_a_fault_is_kept),
        TEST(test_names_are_looked_up_once_a_second_at_most),
        TEST(test_a_look_up_that_finds_nothing_changes_nothing),
        TEST(test_literal_addresses_are_never_looked_up),
        TEST(test_a_look_up_outlives_the_client_that_began_it),
    };
    int error = api_begin(argc, argv);
    if (error)
        return error;
    int count = api_ports(ports, NAMES);
    if (count == 0)
        return api_end(cmocka_run_group_tests(alone, NULL, NULL));
    return api_end(count > 1 ? cmocka_run_group_tests(several, NULL, NULL)
                             : cmocka_run_group_tests(one, NULL, NULL));
}
