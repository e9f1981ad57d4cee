/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a client of sentinels, or of a cluster, sends its commands, and under which key a claim is
 * kept there: rules without a server, each of which a mutant breaks (redis_referral_defects). The
 * suites redis_sentinel, redis_reshard and redis_tls_several have the servers.
 */
#include "cmocka_all.h"
#include "store/redis/claim.h"
#include "store/redis/referral.h"
#include "store/redis/script.h"
#ifdef MRT_DEFECTS
#include "defect_run.h"
#endif

#include <string.h>

static struct mrt_redis_address address_of(const char *text)
{
    static struct mrt_uri uri;
    struct mrt_redis_address address;
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_OK);
    assert_int_equal(mrt_redis_uri_parse(&uri, &address), MORTISE_OK);
    return address;
}

/* To be freed. */
static redisReply *reply_of(const char *bytes)
{
    void *reply = NULL;
    redisReader *reader = redisReaderCreate();
    assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

struct row {
    const char *bytes;
    const char *host; /* with its port, of OTHER_SERVER */
    enum mrt_redis_referral referral;
    int error;
};

static void expect(const struct row *row, enum mrt_redis_referral referral,
                   const struct mrt_host *host, int error)
{
    char text[MRT_HOST_TEXT_SIZE];
    if (referral != row->referral || error != row->error)
        fail_msg("%s: %d, error %d", row->bytes, referral, error);
    if (referral != MRT_REDIS_OTHER_SERVER)
        return;
    mrt_host_format(host, text);
    assert_string_equal(text, row->host);
}

/* The answers of a server that is called "here" about itself. */
static void expect_checked(const char *uri, const struct row *rows, size_t count)
{
    const struct mrt_redis_address address = address_of(uri);
    for (size_t i = 0; i < count; i++) {
        struct mrt_host host;
        char fault[MRT_REDIS_FAULT_SIZE];
        int error = -1;
        redisReply *reply = reply_of(rows[i].bytes);
        enum mrt_redis_referral referral =
            mrt_redis_referral_check(&address, reply, "here", &host, &error, fault);
        expect(&rows[i], referral, &host, error);
        freeReplyObject(reply);
    }
}

static void test_rd_16_a_node_without_the_slot_names_the_one_that_has_it(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"+none\r\n", NULL, MRT_REDIS_THIS_SERVER, 0},
        {"-MOVED 13020 127.0.0.1:7000\r\n", "127.0.0.1:7000", MRT_REDIS_OTHER_SERVER, 0},
        {"-MOVED 13020 ::1:7000\r\n", "[::1]:7000", MRT_REDIS_OTHER_SERVER, 0},
        {"-MOVED 13020 node.example:1\r\n", "node.example:1", MRT_REDIS_OTHER_SERVER, 0},
        {"-MOVED 13020 :7001\r\n", "here:7001", MRT_REDIS_OTHER_SERVER, 0}, /* its own host */
        {"-MOVED 13021 127.0.0.1:7000\r\n", NULL, MRT_REDIS_NO_SERVER, 0},  /* another slot */
        {"-MOVED 13020 127.0.0.1:0\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"-MOVED 13020 a\033b:7000\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"-MOVED 13020\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"-NOPERM this user\r\n", NULL, MRT_REDIS_NO_SERVER, MORTISE_EPERMISSION},
    };
    expect_checked("redis+cluster://here", rows, sizeof rows / sizeof rows[0]);
}

static void test_rd_01_a_server_has_to_say_that_it_is_a_master(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", NULL, MRT_REDIS_THIS_SERVER, 0},
        {"*1\r\n$5\r\nslave\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"*1\r\n$8\r\nsentinel\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"*0\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"+master\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"-NOPERM this user\r\n", NULL, MRT_REDIS_NO_SERVER, MORTISE_EPERMISSION},
    };
    expect_checked("redis+sentinel://here/main", rows, sizeof rows / sizeof rows[0]);
}

static void test_a_sentinel_names_the_master_or_none(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"*2\r\n$1\r\nh\r\n$4\r\n6379\r\n", "h:6379", MRT_REDIS_OTHER_SERVER, 0},
        {"*2\r\n$1\r\nh\r\n$5\r\n65536\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"*1\r\n$1\r\nh\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
        {"*-1\r\n", NULL, MRT_REDIS_NO_SERVER, MORTISE_EURI}, /* it knows no such master */
        {"-NOAUTH log in\r\n", NULL, MRT_REDIS_NO_SERVER, MORTISE_EPERMISSION},
        {"-ERR unknown command 'SENTINEL'\r\n", NULL, MRT_REDIS_NO_SERVER, 0},
    };
    const struct mrt_redis_address address = address_of("redis+sentinel://here/main");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mrt_host host;
        char fault[MRT_REDIS_FAULT_SIZE];
        int error = -1;
        redisReply *reply = reply_of(rows[i].bytes);
        enum mrt_redis_referral referral =
            mrt_redis_referral_read(&address, reply, &host, &error, fault);
        expect(&rows[i], referral, &host, error);
        freeReplyObject(reply);
    }
}

static void test_rd_01_a_master_that_was_demoted_is_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool replica;
    } rows[] = {
        {"-READONLY You can't write against a read only replica.\r\n", true},
        {"-ERR Error running script: @user_script:9: -READONLY You can't write against a read only "
         "replica.\r\n",
         true},
        {"-LOADING Redis is loading\r\n", false},
        {"+READONLY You can't write\r\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        redisReply *reply = reply_of(rows[i].bytes);
        assert_int_equal(mrt_redis_referral_is_replica(reply), rows[i].replica);
        freeReplyObject(reply);
    }
}

static void test_rd_16_a_claim_is_in_the_slot_of_its_namespace(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *name, *key;
        bool refused; /* where redis: names a node */
    } rows[] = {
        {"redis+cluster://h", "mortise/a", "mortise/a{mortise/}", false},
        {"rediss+cluster://h?namespace=n", "n/a", "n/a{n/}", false},
        {"redis+cluster://h", "mortise/{mortise/}a", "mortise/{mortise/}a", false},
        {"redis+cluster://h?namespace=", "a", "a", false},
        {"redis+sentinel://h/m", "mortise/a", "mortise/a", false},
        {"redis://h", "mortise/a", "mortise/a", true},
        {"redis://h", "mortise/{mortise/}a", "mortise/{mortise/}a", false},
        {"redis://h?namespace=", "a", "a", false},
    };
    static struct mrt_redis_store store;
    char key[MRT_REDIS_KEY_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        store.address = address_of(rows[i].uri);
        assert_int_equal(mrt_redis_claim_key(&store, rows[i].name, key), strlen(rows[i].key));
        assert_string_equal(key, rows[i].key);
        store.connection.clustered = true;
        assert_int_equal(mrt_redis_claim_is_refused(&store, rows[i].name), rows[i].refused);
        store.connection.clustered = false;
        assert_false(mrt_redis_claim_is_refused(&store, rows[i].name));
    }
}

static void test_tls_is_not_left_out_behind_sentinels_and_in_a_cluster(void **state)
{
    (void)state;
    assert_int_equal(address_of("rediss+sentinel://h/m").tls, MRT_REDIS_TLS_VERIFY);
    assert_int_equal(address_of("rediss+cluster://h").tls, MRT_REDIS_TLS_VERIFY);
    assert_int_equal(address_of("redis+cluster://h").tls, MRT_REDIS_TLS_OFF);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rd_16_a_node_without_the_slot_names_the_one_that_has_it),
    cmocka_unit_test(test_rd_01_a_server_has_to_say_that_it_is_a_master),
    cmocka_unit_test(test_a_sentinel_names_the_master_or_none),
    cmocka_unit_test(test_rd_01_a_master_that_was_demoted_is_recognised),
    cmocka_unit_test(test_rd_16_a_claim_is_in_the_slot_of_its_namespace),
    cmocka_unit_test(test_tls_is_not_left_out_behind_sentinels_and_in_a_cluster),
};

static int run(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
#ifdef MRT_DEFECTS
    return defect_run("redis_referral", run);
#else
    return run();
#endif
}
