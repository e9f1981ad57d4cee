/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quorum whose members are given one by one: three real Redis servers, each with a password of
 * its own; and what is no quorum.
 *
 *     test_quorum_members URI,URI,...     of servers; memory: without them
 */
#include "api/api_fixture.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMBERS 3

/* ------------------------------------------------------------------ without a server */

static int open_as(const char *one, const char *other, int32_t answer_ms)
{
    const char *const uris[] = {one, other};
    mortise_client *client;
    int error = mortise_open_quorum(uris, other ? 2 : 1, answer_ms, NULL, &client);
    if (error == MORTISE_OK)
        api_close(client);
    return error;
}

static void test_lists_of_members_that_make_no_quorum_are_refused(void **state)
{
    (void)state;
    const char *many[16];
    char names[16][16];
    mortise_client *client;
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "memory:m%d", i);
        many[i] = names[i];
    }
    assert_int_equal(mortise_open_quorum(NULL, 3, 0, NULL, &client), MORTISE_EINVALID);
    assert_int_equal(mortise_open_quorum(many, 0, 0, NULL, &client), MORTISE_EINVALID);
    assert_int_equal(mortise_open_quorum(many, 3, -1, NULL, &client), MORTISE_EINVALID);
    assert_int_equal(mortise_open_quorum(many, 3, 0, NULL, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_open_quorum(many, 16, 0, NULL, &client), MORTISE_EURI);
    assert_int_equal(open_as("memory:a", "memory:a", 0), MORTISE_EURI);
    assert_int_equal(open_as("memory:a", "redlock:memory:b,memory:c", 0), MORTISE_ESCHEME);
    assert_int_equal(open_as("memory:a", "nothing:b", 0), MORTISE_ESCHEME);
    assert_int_equal(open_as("memory:a", "memory:b", 10001), MORTISE_EURI);
    many[1] = NULL;
    assert_int_equal(mortise_open_quorum(many, 3, 0, NULL, &client), MORTISE_EURI);
    assert_int_equal(open_as("memory:a", "memory:b", 0), MORTISE_OK);
    assert_int_equal(open_as("memory:a", NULL, 10000), MORTISE_OK);
}

static void test_members_need_one_namespace(void **state)
{
    (void)state;
    assert_int_equal(open_as("memory:a?namespace=n", "memory:b", 0), MORTISE_EURI);
    assert_int_equal(open_as("memory:a", "memory:b?namespace=n", 0), MORTISE_EURI);
    assert_int_equal(open_as("memory:a?namespace=n", "memory:b?namespace=nn", 0), MORTISE_EURI);
    assert_int_equal(open_as("memory:a?namespace=n", "memory:b?namespace=n", 0), MORTISE_OK);
}

static mortise_lock *exclusive(mortise_client *client)
{
    mortise_lock *lock;
    check(mortise_exclusive_new(client, "members", NULL, &lock) == MORTISE_OK);
    return lock;
}

static void test_opening_by_members_and_by_one_uri_is_the_same_quorum(void **state)
{
    (void)state;
    static const char *const uris[] = {"memory:a?namespace=%6e", "memory:b?namespace=%6e",
                                       "memory:c?namespace=%6e"};
    mortise_client *client, *other, *elsewhere;
    mortise_hold hold, none;
    assert_int_equal(mortise_open_quorum(uris, 3, 0, NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_open("redlock:memory:a,memory:b,memory:c?namespace=n", NULL, &other),
                     MORTISE_OK);
    assert_int_equal(mortise_open("redlock:memory:a,memory:b,memory:c", NULL, &elsewhere),
                     MORTISE_OK);
    hold = api_acquire(exclusive(client));
    assert_int_equal(mortise_try_acquire(exclusive(other), &none), MORTISE_EBUSY);
    api_release(api_acquire(exclusive(elsewhere)));
    api_release(hold);
    api_release(api_acquire(exclusive(other)));
    api_close(client);
    api_close(other);
    api_close(elsewhere);
}

/* ------------------------------------------------------------------ with servers */

static char directory[] = "/tmp/mortise-members-XXXXXX";
static uint16_t ports[MEMBERS];
static char uris[MEMBERS][256];

static void write_secret(const char *path, const char *secret)
{
    FILE *file = fopen(path, "w");
    check(file && fchmod(fileno(file), 0600) == 0);
    fprintf(file, "%s\n", secret);
    fclose(file);
}

static long long ask(int member, const char *command)
{
    redisContext *server = redisConnect("127.0.0.1", ports[member]);
    check(server && !server->err);
    freeReplyObject(redisCommand(server, "AUTH secret%d", member)); /* no matter if none is set */
    redisReply *reply = redisCommand(server, command);
    check(reply && reply->type != REDIS_REPLY_ERROR);
    long long number = reply->integer;
    freeReplyObject(reply);
    redisFree(server);
    return number;
}

static int give_passwords(void **state)
{
    (void)state;
    check(mkdtemp(directory) != NULL);
    for (int i = 0; i < MEMBERS; i++) {
        char path[64], secret[16], command[64];
        snprintf(path, sizeof path, "%s/%d", directory, i);
        snprintf(secret, sizeof secret, "secret%d", i);
        snprintf(command, sizeof command, "CONFIG SET requirepass %s", secret);
        write_secret(path, secret);
        ask(i, command);
        snprintf(uris[i], sizeof uris[i], "redis://127.0.0.1:%d?credentials=%s&session=20s",
                 ports[i], path);
    }
    return 0;
}

static int take_passwords(void **state)
{
    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        ask(i, "CONFIG SET requirepass \"\"");
    api_remove_tree(directory);
    return 0;
}

/* A claim that a slow moment has kept from one of them is made anew. */
static void test_m1_each_member_has_a_password_of_its_own(void **state)
{
    (void)state;
    const char *const members[] = {uris[0], uris[1], uris[2]};
    mortise_client *client;
    assert_int_equal(mortise_open_quorum(members, MEMBERS, 1000, NULL, &client), MORTISE_OK);
    int64_t began = mortise_now_ns();
    for (long long having = 0; having < MEMBERS;) {
        check(api_ms_since(began) < 20000);
        mortise_hold hold = api_acquire(exclusive(client));
        having = 0;
        for (int i = 0; i < MEMBERS; i++)
            having += ask(i, "EXISTS mortise/members");
        api_release(hold);
    }
    api_close(client);
}

static void test_one_password_for_all_opens_no_majority(void **state)
{
    (void)state;
    char uri[512];
    mortise_client *client;
    mortise_hold none;
    snprintf(uri, sizeof uri,
             "redlock:redis://127.0.0.1:%d,redis://127.0.0.1:%d,redis://127.0.0.1:%d"
             "?credentials=%s/0&answer=1s",
             ports[0], ports[1], ports[2], directory);
    assert_int_equal(mortise_open(uri, NULL, &client), MORTISE_OK);
    assert_int_equal(mortise_try_acquire(exclusive(client), &none), MORTISE_EPERMISSION);
    api_close(client);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(test_lists_of_members_that_make_no_quorum_are_refused),
        cmocka_unit_test(test_members_need_one_namespace),
        cmocka_unit_test(test_opening_by_members_and_by_one_uri_is_the_same_quorum),
    };
    const struct CMUnitTest servers[] = {
        cmocka_unit_test(test_m1_each_member_has_a_password_of_its_own),
        cmocka_unit_test(test_one_password_for_all_opens_no_majority),
    };
    int error = api_begin(argc, argv);
    if (error)
        return error;
    int count = api_ports(ports, MEMBERS);
    return api_end(count > 0 ? cmocka_run_group_tests(servers, give_passwords, take_passwords)
                             : cmocka_run_group_tests(alone, NULL, NULL));
}
