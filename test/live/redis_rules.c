/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store's rules without a server: URIs, secrets, and what errors mean. */
#include "cmocka_all.h"

#include "base/error.h"
#include "base/uri.h"
#include "mortise.h"
#include "store/redis/error.h"
#include "store/redis/referral.h"
#include "store/redis/resume.h"
#include "store/redis/uri.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "s3cret-mark"

static int parse(const char *text, struct mrt_redis_address *address)
{
    static struct mrt_uri uri;
    mrt_error_clear();
    int error = mrt_uri_parse(text, &uri);
    return error ? error : mrt_redis_uri_parse(&uri, address);
}

static void test_uris_and_their_canonical_form(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *shown, *base;
        int64_t session_ms;
    } rows[] = {
        {"redis://localhost", "redis://localhost:6379/0", "{mortise/}", 10000},
        {"redis://10.0.0.7:7000/3?session=2s", "redis://10.0.0.7:7000/3", "{mortise/}", 2000},
        {"redis://alice@h/?namespace=", "redis://alice@h:6379/0", "{/}", 10000},
        {"redis://[0::1]:6380/15", "redis://[::1]:6380/15", "{mortise/}", 10000},
        {"redis://h?namespace=a/b&connect=200ms", "redis://h:6379/0", "{a/b/}", 10000},
        {"redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock?db=0", "{mortise/}", 10000},
        {"redis+unix://bob@/run/r%20s?db=2", "redis+unix://bob@/run/r s?db=2", "{mortise/}", 10000},
        {"redis+sentinel://a,[::1]:7000,c:26380/my-master_1.x?session=3s",
         "redis+sentinel://a:26379,[::1]:7000,c:26380/my-master_1.x/0", "{mortise/}", 3000},
        {"redis+sentinel://u@s/m/2?namespace=n", "redis+sentinel://u@s:26379/m/2", "{n/}", 10000},
        {"redis+cluster://a,b:7000/", "redis+cluster://a:6379,b:7000", "{mortise/}", 10000},
        {"redis+cluster://u@a/0", "redis+cluster://u@a:6379", "{mortise/}", 10000},
        {"rediss+sentinel://a,b/m", "rediss+sentinel://a:26379,b:26379/m/0", "{mortise/}", 10000},
        {"rediss+cluster://a,b", "rediss+cluster://a:6379,b:6379", "{mortise/}", 10000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mrt_redis_address address;
        assert_int_equal(parse(rows[i].uri, &address), MORTISE_OK);
        assert_string_equal(address.shown, rows[i].shown);
        assert_string_equal(address.base, rows[i].base);
        assert_int_equal(address.session, mrt_time_from_ms(rows[i].session_ms));
    }
}

static void test_uris_of_sentinels_in_parts(void **state)
{
    (void)state;
    struct mrt_redis_address address;
    assert_int_equal(parse("redis+sentinel://alice@s1,s2:5,s3/main/7?sentinel_user=guard"
                           "&sentinel_credentials=/run/s",
                           &address),
                     MORTISE_OK);
    assert_int_equal(address.way, MRT_REDIS_SENTINEL);
    assert_int_equal(address.host_count, 3);
    assert_string_equal(address.hosts[1].name, "s2");
    assert_int_equal(address.hosts[1].port, 5);
    assert_int_equal(address.hosts[2].port, 26379);
    assert_string_equal(address.master, "main");
    assert_int_equal(address.database, 7);
    assert_string_equal(address.user, "alice");
    assert_string_equal(address.sentinel_user, "guard");
}

/* As CLUSTER KEYSLOT has them. */
static void test_rd_16_the_slot_of_a_namespace(void **state)
{
    (void)state;
    assert_int_equal(mrt_redis_slot("{mortise/}"), 13020);
    assert_int_equal(mrt_redis_slot("{123456789}"), 12739);
}

static void test_uris_that_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "redis:",
        "redis:localhost",
        "redis://",
        "redis:///0",
        "redis://h:0",
        "redis://h:65536",
        "redis://h/x",
        "redis://h/65536",
        "redis://h/0/1",
        "redis://a,b",
        "redis://h?session",
        "redis://h?session=10",
        "redis://h?db=1",
        "redis://@h",
        "redis://a b@h",
        "redis+unix://h/s",
        "redis+unix://",
        "redis+unix:///s?db=x",
        "redis://h?acl=x",
        "redis://h?namespace=%7B",
        "redis://h?namespace=a%7Db",
        "redis://h?replicas=",
        "redis://h?replicas=-1",
        "redis://h?replicas=101",
        "redis://h?uptime=10",
        "redis+sentinel://",
        "redis+sentinel://s",
        "redis+sentinel://s/",
        "redis+sentinel://s,/m",
        "redis+sentinel://,s/m",
        "redis+sentinel://s/m/x",
        "redis+sentinel://s/m/0/1",
        "redis+sentinel://s/m%20n",
        "redis+sentinel://s:0/m",
        "redis+sentinel://s/m?db=1",
        "redis+sentinel://s/m?sentinel_user=u",
        "redis+sentinel://s/m?sentinel_user=&sentinel_credentials=/c",
        "redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/m",
        "redis+cluster://",
        "redis+cluster://a,b/1",
        "redis+cluster://a/?db=0",
        "redis://h?sentinel_credentials=/c",
        "redis+cluster://h?sentinel_user=u",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mrt_redis_address address;
        int error = parse(rows[i], &address);
        if (error != MORTISE_EURI)
            fail_msg("%s: %d", rows[i], error);
        assert_true(strlen(mortise_error_detail()) > 0);
    }
    struct mrt_redis_address address;
    assert_int_equal(parse("redis://a%20b@h", &address), MORTISE_EURI);
    assert_non_null(strstr(mortise_error_detail(), "the user \"a b\" has a space"));
}

static void test_tls_is_that_of_the_uri_and_never_left_out_silently(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        enum mrt_redis_tls tls;
    } rows[] = {
        {"redis://h", MRT_REDIS_TLS_OFF},
        {"redis://h?tls=off", MRT_REDIS_TLS_OFF},
        {"redis+unix:///s?tls=off", MRT_REDIS_TLS_OFF},
        {"rediss://h", MRT_REDIS_TLS_VERIFY},
        {"rediss://h:1/2?tls=verify&tls_ca=/a", MRT_REDIS_TLS_VERIFY},
        {"rediss+sentinel://h/m", MRT_REDIS_TLS_VERIFY},
        {"rediss+cluster://h?tls=required", MRT_REDIS_TLS_REQUIRED},
        {"redis+sentinel://h/m?tls=off", MRT_REDIS_TLS_OFF},
        {"rediss://h?tls=required&tls_cert=/b&tls_key=/c", MRT_REDIS_TLS_REQUIRED},
    };
    static const char *const refused[] = {
        "redis://h?tls=verify",
        "redis://h?tls=required",
        "redis://h?tls_ca=/a",
        "redis+unix:///s?tls=verify",
        "redis://h?tls_cert=/b&tls_key=/c",
        "redis+sentinel://h/m?tls=verify",
        "redis+cluster://h?tls_ca=/a",
        "rediss://h?tls=off",
        "rediss+sentinel://h/m?tls=off",
        "rediss://h?tls=yes",
        "rediss://h?tls=",
        "rediss://h?tls_ca=",
        "rediss://h?tls_ca=a",
        "rediss://h?tls_cert=/b",
        "rediss://h?tls_key=/c",
        "rediss://h?tls=required&tls_ca=/a",
    };
    struct mrt_redis_address address;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(rows[i].uri, &address), MORTISE_OK);
        assert_int_equal(address.tls, rows[i].tls);
    }
    assert_string_equal(address.shown, "rediss://h:6379/0");
    assert_string_equal(address.tls_cert, "/b");
    assert_string_equal(address.tls_key, "/c");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (parse(refused[i], &address) != MORTISE_EURI)
            fail_msg("%s", refused[i]);
        assert_true(strlen(mortise_error_detail()) > 0);
    }
}

/* Between their hosts are commas too, and names with a port, which are no schemes. */
static void test_members_of_a_quorum_may_have_several_hosts(void **state)
{
    (void)state;
    mortise_client *client;
    assert_int_equal(mortise_open("redlock:redis+sentinel://localhost:1,localhost:2/m,"
                                  "redis+cluster://localhost:3,localhost:4,"
                                  "redis+cluster://localhost,localhost:5/?session=9s",
                                  NULL, &client),
                     MORTISE_OK);
    mortise_close(client);
}

/* ------------------------------------------------------------------- secrets */

static void test_se_01_no_password_in_a_uri_and_none_is_shown(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "redis://alice:" MARK "@h",
        "redis://:" MARK "@h:6379/0",
        "redis+unix://alice:" MARK "@/run/redis.sock",
        "redis://h:" MARK,
        "redis://h/" MARK,
        "redis://" MARK "%zz@h",
        "redis://alice@h?credentials=" MARK,
        "redis://h?password=" MARK,
        "redis+sentinel://alice:" MARK "@s/m",
        "redis+sentinel://s:" MARK "/m",
        "redis+sentinel://s/m?sentinel_credentials=" MARK,
        "redis+cluster://:" MARK "@a,b",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mortise_client *client = NULL;
        assert_int_equal(mortise_open(rows[i], NULL, &client), MORTISE_EURI);
        assert_null(strstr(mortise_error_detail(), MARK));
        assert_null(client);
    }
}

static int secret(const char *text, char found[MRT_REDIS_SECRET_MAX])
{
    static struct mrt_uri uri;
    struct mrt_redis_address address;
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_OK);
    assert_int_equal(mrt_redis_uri_parse(&uri, &address), MORTISE_OK);
    return mrt_redis_secret_read(&uri, &address, found);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_se_02_the_password_is_a_line_in_a_safe_file(void **state)
{
    (void)state;
    char path[64], uri[128], found[MRT_REDIS_SECRET_MAX];
    snprintf(path, sizeof path, "/tmp/mortise-redis-secret-%d", (int)getpid());
    snprintf(uri, sizeof uri, "redis://alice@h?credentials=%s", path);
    write_file(path, "a:b c" MARK "\n", 0600);
    assert_int_equal(secret(uri, found), MORTISE_OK);
    assert_string_equal(found, "a:b c" MARK);
    static const struct {
        const char *text;
        mode_t mode;
        int error;
    } rows[] = {
        {MARK, 0640, MORTISE_EUNSAFE},
        {"", 0600, MORTISE_EURI},
        {MARK "\nmore\n", 0600, MORTISE_EURI},
        {MARK "\r\n", 0600, MORTISE_EURI},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_file(path, rows[i].text, rows[i].mode);
        assert_int_equal(secret(uri, found), rows[i].error);
        assert_null(strstr(mortise_error_detail(), MARK));
    }
    unlink(path);
}

static void test_se_02_a_password_of_redis_may_stand_in_the_environment(void **state)
{
    (void)state;
    char found[MRT_REDIS_SECRET_MAX];
    assert_int_equal(secret("redis://alice@h", found), MORTISE_EURI); /* a user without one */
    assert_int_equal(secret("redis://h", found), MORTISE_OK);
    assert_string_equal(found, "");
    setenv("MORTISE_REDIS_AUTH", MARK, 1);
    assert_int_equal(secret("redis://alice@h", found), MORTISE_OK);
    assert_string_equal(found, MARK);
    unsetenv("MORTISE_REDIS_AUTH");
}

/* -------------------------------------------------------------------- errors */

static void test_rd_15_rd_16_rd_22_errors_of_the_server_have_these_codes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum mrt_redis_outcome outcome;
        int error;
    } rows[] = {
        {"NOSCRIPT No matching script. Please use EVAL.", MRT_REDIS_NO_SCRIPT, MORTISE_ESTORE},
        {"LOADING Redis is loading the dataset in memory", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"BUSY Redis is busy running a script.", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"READONLY You can't write against a read only replica.", MRT_REDIS_NOT_DONE,
         MORTISE_ESTORE},
        {"MISCONF Redis is configured to save RDB snapshots", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"OOM command not allowed when used memory > 'maxmemory'.", MRT_REDIS_NOT_DONE,
         MORTISE_ESTORE},
        {"NOREPLICAS Not enough good replicas to write.", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"MASTERDOWN Link with MASTER is down", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"CLUSTERDOWN Hash slot not served", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"TRYAGAIN Multiple keys request during rehashing of slot", MRT_REDIS_NOT_DONE,
         MORTISE_ESTORE},
        {"ASK 3999 127.0.0.1:6381", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"MOVED 3999 127.0.0.1:6381", MRT_REDIS_REFUSED, MORTISE_ENOTSUPPORTED},
        {"NOAUTH Authentication required.", MRT_REDIS_REFUSED, MORTISE_EPERMISSION},
        {"WRONGPASS invalid username-password pair", MRT_REDIS_REFUSED, MORTISE_EPERMISSION},
        {"NOPERM this user has no permissions", MRT_REDIS_REFUSED, MORTISE_EPERMISSION},
        {"ERR invalid password", MRT_REDIS_REFUSED, MORTISE_EPERMISSION},
        {"ERR AUTH <password> called without any password configured", MRT_REDIS_REFUSED,
         MORTISE_EPERMISSION},
        {"ERR DB index is out of range", MRT_REDIS_REFUSED, MORTISE_EURI},
        {"ERR unknown command 'EVALSHA'", MRT_REDIS_REFUSED, MORTISE_ENOTSUPPORTED},
        {"ERR max number of clients reached", MRT_REDIS_NOT_DONE, MORTISE_ESTORE},
        {"WRONGTYPE Operation against a key holding the wrong kind", MRT_REDIS_REFUSED,
         MORTISE_EMISMATCH},
        {"ERR user_script:12: something", MRT_REDIS_UNKNOWN, MORTISE_ESTORE},
        {"BUSYKEY Target key name already exists.", MRT_REDIS_UNKNOWN, MORTISE_ESTORE},
        {"", MRT_REDIS_UNKNOWN, MORTISE_ESTORE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int error = 0;
        const char *advice;
        if (mrt_redis_classify(rows[i].text, &error, &advice) != rows[i].outcome ||
            error != rows[i].error)
            fail_msg("%s: %d", rows[i].text, error);
        assert_non_null(advice);
    }
}

/* The memory of a store behind sentinels does not grow by what is refused. */
static void test_rd_02_a_ticket_that_was_refused_is_forgotten(void **state)
{
    (void)state;
    static struct mrt_redis_store store;
    struct mrt_command append = {.type = MRT_APPEND, .session = {1, 1}, .ticket = {2, 2}};
    struct mrt_event refused = {
        .type = MRT_FAILED, .error = MORTISE_EMISMATCH, .session = {1, 1}, .ticket = {2, 2}};
    store.address.way = MRT_REDIS_SENTINEL;
    mrt_redis_resume_submitted(&store, &append);
    assert_non_null(store.tickets);
    mrt_redis_resume_delivered(&store, &append, &refused);
    assert_null(store.tickets);
    append.adopt = true;
    mrt_redis_resume_submitted(&store, &append);
    mrt_redis_resume_delivered(&store, &append, &refused);
    assert_non_null(store.tickets); /* it may be here */
    struct mrt_command stop = {.type = MRT_STOP};
    struct mrt_event failed = {.type = MRT_FAILED, .session = {1, 1}};
    mrt_redis_resume_delivered(&store, &stop, &failed);
    assert_null(store.tickets);
}

/* Whether this stands in the memory of malloc, also where that is free. It allocates nothing. */
static bool heap_has(const char *part)
{
    static char maps[65536];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, maps, sizeof maps - 1) > 0);
    close(fd);
    char *heap = strstr(maps, "[heap]"), *end;
    if (!heap)
        skip(); /* a sanitizer's own allocator */
    *heap = '\0';
    uintptr_t first = strtoul(strrchr(maps, '\n') + 1, &end, 16), last = strtoul(end + 1, NULL, 16);
    return memmem((const void *)first, last - first, part, strlen(part));
}

static void test_se_01_a_password_that_was_sent_does_not_stay_in_memory(void **state)
{
    (void)state;
    static const struct mrt_redis_address address;
    for (int more = 0; more <= 40; more += 40) { /* then the buffer grows */
        int ends[2];
        struct mrt_redis_wire wire = {.state = MRT_REDIS_OPEN, .epoll = -1};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        wire.fd = ends[0];
        mrt_redis_wire_login(&wire, &address, "begin " MARK " end");
        void *behind = malloc(100000); /* so that it moves */
        for (int i = 0; i < more; i++)
            mrt_redis_wire_words(&wire, "PING", "a word of forty bytes or of about so many", NULL);
        assert_true(mrt_redis_wire_flush(&wire));
        mrt_redis_wire_close(&wire);
        free(behind);
        close(ends[1]);
        assert_false(heap_has(MARK));
    }
}

int main(void)
{
    unsetenv("MORTISE_REDIS_AUTH");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uris_and_their_canonical_form),
        cmocka_unit_test(test_uris_of_sentinels_in_parts),
        cmocka_unit_test(test_rd_16_the_slot_of_a_namespace),
        cmocka_unit_test(test_uris_that_are_refused),
        cmocka_unit_test(test_tls_is_that_of_the_uri_and_never_left_out_silently),
        cmocka_unit_test(test_members_of_a_quorum_may_have_several_hosts),
        cmocka_unit_test(test_se_01_no_password_in_a_uri_and_none_is_shown),
        cmocka_unit_test(test_se_01_a_password_that_was_sent_does_not_stay_in_memory),
        cmocka_unit_test(test_se_02_the_password_is_a_line_in_a_safe_file),
        cmocka_unit_test(test_se_02_a_password_of_redis_may_stand_in_the_environment),
        cmocka_unit_test(test_rd_02_a_ticket_that_was_refused_is_forgotten),
        cmocka_unit_test(test_rd_15_rd_16_rd_22_errors_of_the_server_have_these_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
