/* SPDX-License-Identifier: Apache-2.0 */
/* The ZooKeeper store's rules without a server: names, order, codes, URIs. */
#include "cmocka_all.h"

#include "base/uri.h"
#include "core/recipe.h"
#include "mortise.h"
#include "store/zookeeper/names.h"
#include "store/zookeeper/uri.h"

#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

static void test_zk_33_g2_only_strict_names_are_contenders(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        enum mrt_zk_family family;
        int32_t sequence;
        enum mrt_zk_layout layout;
    } rows[] = {
        {"_c_6f1ed002-ab5a-8000-8000-000000000001-lock-0000000007", MRT_ZK_MUTEX, 7,
         MRT_ZK_CURATOR},
        {"0123456789abcdef0123456789abcdef-lock-0000000012", MRT_ZK_MUTEX, 12, MRT_ZK_CURATOR},
        {"lock-0000000003", MRT_ZK_MUTEX, 3, MRT_ZK_RECIPE},
        {"x-lock--2147483648", MRT_ZK_MUTEX, INT32_MIN, MRT_ZK_CURATOR},
        {"x-lock-2147483647", MRT_ZK_MUTEX, INT32_MAX, MRT_ZK_CURATOR},
        {"x-lock--000000001", MRT_ZK_MUTEX, -1, MRT_ZK_CURATOR},
        {"0123__lock__0000000004", MRT_ZK_MUTEX, 4, MRT_ZK_KAZOO},
        {"x-lock-2147483648", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"x-lock-000000007", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"x-lock-00000000007", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"x-lock-000000000a", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"x-lock-", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"clock-0000000001", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-__READ__0000000001", MRT_ZK_READER, 1, MRT_ZK_CURATOR},
        {"_c_x-__WRIT__-000000002", MRT_ZK_WRITER, -2, MRT_ZK_CURATOR},
        {"0123__rlock__0000000004", MRT_ZK_READER, 4, MRT_ZK_KAZOO},
        {"0123__rlock__4", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"lock--000000003", MRT_ZK_MUTEX, -3, MRT_ZK_RECIPE},
        {"lock-00000000003", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"a lock-0000000003", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"x-0100000a1b2c3d4e-0000000005", MRT_ZK_MUTEX, 5, MRT_ZK_RECIPE},
        {"x-72057594037927936-0000000006", MRT_ZK_MUTEX, 6, MRT_ZK_RECIPE},
        {"x--9223372036854775807-0000000007", MRT_ZK_MUTEX, 7, MRT_ZK_RECIPE},
        {"x-0100000a1b2c3d4e--000000005", MRT_ZK_MUTEX, -5, MRT_ZK_RECIPE},
        {"x--0000000007", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"x-session-0000000007", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"host1-R-0000000008", MRT_ZK_READER, 8, MRT_ZK_ARTICLE},
        {"host1-W-0000000009", MRT_ZK_WRITER, 9, MRT_ZK_ARTICLE},
        {"read_0000000010", MRT_ZK_READER, 10, MRT_ZK_ARTICLE},
        {"write_0000000011", MRT_ZK_WRITER, 11, MRT_ZK_ARTICLE},
        {"rewrite_0000000011", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"read_11", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-permits-3of5-0000000009", MRT_ZK_SEMAPHORE, 9, MRT_ZK_CURATOR},
        {"_c_x-permits-1of4294967295--000000009", MRT_ZK_SEMAPHORE, -9, MRT_ZK_CURATOR},
        {"_c_x-permits-6of5-0000000009", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-permits-0of5-0000000009", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-permits-1of05-0000000009", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-permits-1of4294967296-0000000009", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-permits-1of-0000000009", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-permits-1of5", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"_c_x-lease-0000000009", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
        {"lock", MRT_ZK_FOREIGN, 0, MRT_ZK_CURATOR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("%s\n", rows[i].node);
        struct mrt_zk_place place = mrt_zk_place_of(rows[i].node);
        assert_int_equal(place.family, rows[i].family);
        assert_int_equal(place.sequence, rows[i].sequence);
        assert_int_equal(place.layout, rows[i].layout);
    }
}

/* A directory is of one layout: programs of another do not see what is called otherwise. */
static void test_g2_g6_which_nodes_are_of_another_layout(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        bool curator, kazoo, recipe; /* misplaced among those of this layout */
    } rows[] = {
        {"_c_x-lock-0000000001", false, true, true},
        {"0123__lock__0000000001", true, false, true},
        {"0123__rlock__0000000001", true, false, true},
        {"lock-0000000001", true, true, false},
        {"x-1f-0000000001", true, true, false},
        {"host-W-0000000001", true, true, true},
        {"read_0000000001", true, true, true},
        {"_c_x-permits-1of2-0000000001", false, false, false},
        {"mortise-cell", false, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mrt_zk_place place = mrt_zk_place_of(rows[i].node);
        print_message("%s\n", rows[i].node);
        assert_int_equal(mrt_zk_misplaced(&place, MRT_ZK_CURATOR), rows[i].curator);
        assert_int_equal(mrt_zk_misplaced(&place, MRT_ZK_KAZOO), rows[i].kazoo);
        assert_int_equal(mrt_zk_misplaced(&place, MRT_ZK_RECIPE), rows[i].recipe);
    }
}

/* The names of our nodes in each layout are read back as the same. */
static void test_g2_names_of_each_layout(void **state)
{
    (void)state;
    static const struct {
        enum mrt_zk_layout layout;
        const char *kind, *node; /* NULL: not kept there */
        uint64_t capacity, weight;
    } rows[] = {
        {MRT_ZK_CURATOR, "mutex", "_c_01234567-89ab-8def-bedc-ba9876543210-lock-0000000007", 1, 1},
        {MRT_ZK_KAZOO, "mutex", "0123456789ab8defbedcba9876543210__lock__0000000007", 1, 1},
        {MRT_ZK_KAZOO, "election", "0123456789ab8defbedcba9876543210__lock__0000000007", 1, 1},
        {MRT_ZK_KAZOO, "read-write", "0123456789ab8defbedcba9876543210__rlock__0000000007",
         MRT_WRITER, MRT_READER},
        {MRT_ZK_KAZOO, "read-write", "0123456789ab8defbedcba9876543210__lock__0000000007",
         MRT_WRITER, MRT_WRITER},
        {MRT_ZK_KAZOO, "semaphore",
         "_c_01234567-89ab-8def-bedc-ba9876543210-permits-2of3-0000000007", 3, 2},
        {MRT_ZK_RECIPE, "mutex", "lock-0000000007", 1, 1},
        {MRT_ZK_RECIPE, "read-write", NULL, MRT_WRITER, MRT_READER},
        {MRT_ZK_RECIPE, "read-write", NULL, MRT_WRITER, MRT_WRITER},
    };
    const struct mrt_id id = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char uuid[MRT_ZK_UUID_SIZE], node[MRT_ZK_NODE_SIZE];
        struct mrt_zk_place place =
            mrt_zk_place_for(rows[i].layout, rows[i].kind, rows[i].capacity, rows[i].weight);
        assert_int_equal(place.family == MRT_ZK_FOREIGN, rows[i].node == NULL);
        if (!rows[i].node)
            continue;
        place.sequence = 7;
        mrt_zk_uuid(id, &place, uuid);
        mrt_zk_node(uuid, &place, node);
        assert_string_equal(node, rows[i].node);
        const struct mrt_zk_place again = mrt_zk_place_beside(node, &place);
        assert_memory_equal(&again, &place, sizeof place);
        assert_int_equal(mrt_zk_is_ours(node), rows[i].layout != MRT_ZK_RECIPE);
    }
    assert_false(
        mrt_zk_is_ours("0123456789ab4defbedcba9876543210__lock__0000000007")); /* kazoo's */
}

static void test_f13_a_nodes_name_has_its_permits(void **state)
{
    (void)state;
    char head[MRT_ZK_NODE_SIZE];
    struct mrt_zk_place asked = mrt_zk_place_for(MRT_ZK_CURATOR, "semaphore", 5, 3);
    mrt_zk_node_head("x", &asked, head);
    assert_string_equal(head, "_c_x-permits-3of5-");
    struct mrt_zk_place place = mrt_zk_place_of("_c_x-permits-3of5-0000000001");
    assert_int_equal(place.weight, 3);
    assert_int_equal(place.capacity, 5);
    assert_true(mrt_zk_same_lock(&asked, &place));
    place = mrt_zk_place_of("_c_x-permits-3of6-0000000001");
    assert_false(mrt_zk_same_lock(&asked, &place));
    assert_int_equal(mrt_zk_place_for(MRT_ZK_CURATOR, "semaphore", 5, 6).family, MRT_ZK_FOREIGN);
    assert_int_equal(mrt_zk_place_for(MRT_ZK_CURATOR, "semaphore", UINT64_C(1) << 32, 1).family,
                     MRT_ZK_FOREIGN);
}

static void test_zk_09_sequences_wrap(void **state)
{
    (void)state;
    assert_true(mrt_zk_before(0, 1));
    assert_false(mrt_zk_before(1, 0));
    assert_false(mrt_zk_before(5, 5));
    assert_true(mrt_zk_before(INT32_MAX, INT32_MIN));
    assert_false(mrt_zk_before(INT32_MIN, INT32_MAX));
    assert_true(mrt_zk_before(INT32_MAX - 3, INT32_MIN + 5));
    assert_true(mrt_zk_before(-1, 0));
}

static void test_zk_11_c8_h10_the_uuid_is_the_tickets_own_and_of_version_8(void **state)
{
    (void)state;
    const struct mrt_zk_place place = {.layout = MRT_ZK_CURATOR};
    char text[MRT_ZK_UUID_SIZE], other[MRT_ZK_UUID_SIZE];
    mrt_zk_uuid((struct mrt_id){UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)}, &place,
                text);
    assert_string_equal(text, "01234567-89ab-8def-bedc-ba9876543210");
    mrt_zk_uuid((struct mrt_id){UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543211)}, &place,
                other);
    assert_string_not_equal(text, other);
}

static void test_c11_a_name_says_that_a_ticket_has_changed_hands(void **state)
{
    (void)state;
    const char *const uuid = "01234567-89ab-8def-bedc-ba9876543210";
    const char *const plain = "0123456789ab8defbedcba9876543210";
    const char *const names[] = {
        "_c_01234567-89ab-8def-bedc-ba9876543210-d-00000000000004d2-lock-0000000007",
        "_c_01234567-89ab-8def-bedc-ba9876543210-a-00000000000004d2-__READ__-000000007",
        "_c_01234567-89ab-8def-bedc-ba9876543210-d-00000000000004d2-permits-3of5-0000000007",
        "0123456789ab8defbedcba9876543210-d-00000000000004d2__lock__0000000007"};
    const char *const none[] = {
        "_c_01234567-89ab-8def-bedc-ba9876543210-lock-0000000007",
        "_c_01234567-89ab-8def-bedc-ba9876543210-e-00000000000004d2-lock-0000000007",
        "_c_01234567-89ab-8def-bedc-ba9876543210-d-0000000000004d2-lock-0000000007",
        "_c_01234567-89ab-8def-bedc-ba9876543210-d-00000000000004d20-lock-0000000007",
        "_c_01234567-89ab-8def-bedc-ba9876543210-d-00000000000004D2-lock-0000000007",
        "x-d-00000000000004d2-lock-0000000007"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char again[MRT_ZK_NODE_SIZE];
        const struct mrt_zk_place place = mrt_zk_place_of(names[i]);
        assert_int_equal(place.hands, i == 1 ? MRT_ZK_ADOPTED : MRT_ZK_DETACHED);
        assert_int_equal(place.czxid, 1234);
        assert_int_equal(place.sequence, i == 1 ? -7 : 7);
        assert_false(mrt_zk_is_ours(names[i])); /* never passed on */
        mrt_zk_node(i == 3 ? plain : uuid, &place, again);
        assert_string_equal(again, names[i]);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const struct mrt_zk_place place = mrt_zk_place_of(none[i]);
        assert_int_equal(place.hands, MRT_ZK_NEVER_DETACHED);
        assert_int_equal(place.czxid, 0);
        assert_int_equal(place.sequence, 7);
    }
}

static void test_pass_rule_10_which_nodes_are_ours(void **state)
{
    (void)state;
    assert_true(mrt_zk_is_ours("_c_01234567-89ab-8def-bedc-ba9876543210-lock-0000000001"));
    assert_true(mrt_zk_is_ours("_c_01234567-89ab-8def-bedc-ba9876543210-lock--000000001"));
    assert_false(mrt_zk_is_ours("_c_01234567-89ab-4def-bedc-ba9876543210-lock-0000000001"));
    assert_false(mrt_zk_is_ours("_c_01234567-89ab-8def-bedc-ba9876543210__lock__0000000001"));
    assert_false(mrt_zk_is_ours("0123456789ab8defbedcba9876543210-lock-0000000001"));
    assert_true(mrt_zk_is_ours("0123456789ab8defbedcba9876543210__lock__0000000001"));
    assert_false(mrt_zk_is_ours("0123456789ab4defbedcba9876543210__lock__0000000001"));
    assert_false(mrt_zk_is_ours("lock-0000000001"));
    assert_true(mrt_zk_is_ours("_c_01234567-89ab-8def-bedc-ba9876543210-__WRIT__0000000001"));
    assert_true(mrt_zk_is_ours("_c_01234567-89ab-8def-bedc-ba9876543210-permits-2of3-0000000001"));
}

static void test_cc_13_codes_that_leave_the_outcome_open(void **state)
{
    (void)state;
    static const int open[] = {ZCONNECTIONLOSS, ZOPERATIONTIMEOUT, ZCLOSING, ZMARSHALLINGERROR,
                               ZSYSTEMERROR, ZRUNTIMEINCONSISTENCY, ZDATAINCONSISTENCY,
                               /* a proxy may say so of what has been done */
                               ZSESSIONMOVED, ZTHROTTLEDOP};
    static const int over[] = {ZSESSIONEXPIRED, ZINVALIDSTATE, ZAUTHFAILED};
    static const int refused[] = {ZNOAUTH,       ZNODEEXISTS, ZUNIMPLEMENTED, ZNOTREADONLY,
                                  ZBADARGUMENTS, -125,        -126,           -4711};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        assert_int_equal(mrt_zk_code(open[i])->outcome, MRT_ZK_PERHAPS);
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++)
        assert_int_equal(mrt_zk_code(over[i])->outcome, MRT_ZK_SESSION_OVER);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(mrt_zk_code(refused[i])->outcome, MRT_ZK_NOT_DONE);
    assert_int_equal(mrt_zk_code(ZOK)->outcome, MRT_ZK_DONE);
    assert_int_equal(mrt_zk_code(ZNONODE)->outcome, MRT_ZK_NO_NODE);
    assert_int_equal(mrt_zk_code(ZNOAUTH)->error, MORTISE_EPERMISSION);
}

static int parse(const char *text, struct mrt_zk_address *address)
{
    static struct mrt_uri uri;
    int error = mrt_uri_parse(text, &uri);
    return error ? error : mrt_zk_uri_parse(&uri, address);
}

static void test_cc_18_uris(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *shown; /* NULL: refused */
    } rows[] = {
        {"zk://a:2181", "zk://a:2181"},
        {"zk://a", "zk://a:2181"},
        {"zk://a/", "zk://a:2181"},
        {"zk://a:1,b:2,c:65535/x/y", "zk://a:1,b:2,c:65535/x/y"},
        {"zk://[::1]:2181", "zk://[::1]:2181"},
        {"zk://[0:0:0:0:0:0:0:1]:2181/x", "zk://[::1]:2181/x"},
        {"zk://[::1]", "zk://[::1]:2181"},
        {"zk://127.0.0.1:2181/caf%C3%A9", "zk://127.0.0.1:2181/caf\xc3\xa9"},
        {"zk://a:2181?session=4s&connect=500ms&namespace=", "zk://a:2181"},
        {"zk:a:2181", NULL},
        {"zk:/a:2181", NULL},
        {"zk://", NULL},
        {"zk:///x", NULL},
        {"zk://a:0", NULL},
        {"zk://a:65536", NULL},
        {"zk://a:99999", NULL},
        {"zk://a:-1", NULL},
        {"zk://a:2181x", NULL},
        {"zk://a:", NULL},
        {"zk://a,", NULL},
        {"zk://,a", NULL},
        {"zk://a,,b", NULL},
        {"zk://a,/x", NULL},
        {"zk://::1:2181", NULL},
        {"zk://[::1", NULL},
        {"zk://[x]:1", NULL},
        {"zk://[127.0.0.1]:1", NULL},
        {"zk://user:secret@a:2181", NULL},
        {"zk://a b:1", NULL},
        {"zk://a:2181//x", NULL},
        {"zk://a:2181/x/", NULL},
        {"zk://a:2181/x//y", NULL},
        {"zk://a:2181/./x", NULL},
        {"zk://a:2181/../x", NULL},
        {"zk://a:2181/zookeeper/x", NULL},
        {"zk://a:2181/x%2", NULL},
        {"zk://a:2181/x%01", NULL},
        {"zk://a:2181?session=0", NULL},
        {"zk://a:2181?session=5", NULL},
        {"zk://a:2181?session=5m", NULL},
        {"zk://a:2181?session=-5s", NULL},
        {"zk://a:2181?session=99999999999999999999s", NULL},
        {"zk://a:2181?sesion=5s", NULL},
        {"zk://a:2181?wake=all", "zk://a:2181"},
        {"zk://a:2181?wake=one", "zk://a:2181"},
        {"zk://a:2181?wake=", NULL},
        {"zk://a:2181?wake=ALL", NULL},
        {"zk://a:2181?layout=curator", "zk://a:2181"},
        {"zk://a:2181?layout=kazoo", "zk://a:2181"},
        {"zk://a:2181?layout=recipe", "zk://a:2181"},
        {"zk://a:2181?layout=", NULL},
        {"zk://a:2181?layout=Kazoo", NULL},
        {"zk://a:2181?layout=article", NULL},
    };
    static struct mrt_zk_address address;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("%s\n", rows[i].uri);
        int error = parse(rows[i].uri, &address);
        assert_int_equal(error, rows[i].shown ? MORTISE_OK : MORTISE_EURI);
        if (rows[i].shown)
            assert_string_equal(address.shown, rows[i].shown);
    }
}

static void test_cc_02_tls_that_the_build_lacks_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {"zks://a:2281",   "zks://a?tls=no", "zk://a?tls=required",
                                          "zk://a?tls=yes", "zk://a?tls=",    "zk://a?sasl=gssapi"};
    static struct mrt_zk_address address;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        mortise_client *client;
        assert_int_equal(parse(refused[i], &address), MORTISE_ENOTSUPPORTED);
        assert_int_equal(mortise_open(refused[i], NULL, &client), MORTISE_ENOTSUPPORTED);
        assert_non_null(strstr(mortise_error_detail(), i < 5 ? "no TLS" : "no SASL"));
    }
    assert_int_equal(parse("zk://a?tls=no&sasl=no", &address), MORTISE_OK);
}

static void test_cc_18_durations_and_literal_servers(void **state)
{
    (void)state;
    static struct mrt_zk_address address;
    char servers[MRT_ZK_SERVERS_SIZE];
    assert_int_equal(parse("zk://127.0.0.1:2181,[::1]:2182?session=4s&connect=250ms", &address), 0);
    assert_int_equal(address.session, 4 * MRT_SECOND);
    assert_int_equal(address.connect, 250 * MRT_MILLISECOND);
    assert_int_equal(mrt_zk_resolve(&address, servers), MORTISE_OK);
    assert_string_equal(servers, "127.0.0.1:2181,::1:2182");
    assert_int_equal(parse("zk://a:2181", &address), 0);
    assert_int_equal(address.session, 10 * MRT_SECOND);
}

/* Names that ZooKeeper would refuse, or read otherwise, are refused here. */
static void test_cc_19_paths(void **state)
{
    (void)state;
    static const char *const good[] = {"x",   "x/y", "/x",           ".x",
                                       "x..", "...", "zookeeper",    "caf\xc3\xa9",
                                       " ",   "x ",  "\xef\xbf\xaf", "\xed\x9f\xbf"};
    static const char *const bad[] = {".",
                                      "..",
                                      "x/.",
                                      "x/..",
                                      "x/../y",
                                      "x/",
                                      "x//y",
                                      "//x/",
                                      "\xee\x80\x80",
                                      "\xef\xa3\xbf",
                                      "\xef\xbf\xb0",
                                      "\xf0\x9f\x94\x92",
                                      "x/lock-0000000001",
                                      "x/_c_1-lock-0000000001/y",
                                      "a__lock__0000000001"};
    static const char *const marks[] = {"mortise-markers", "mortise-markers/x", "/mortise-markers"};
    char path[MRT_ZK_PATH_MAX], full[64];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(full, sizeof full, "mortise/%s", good[i]);
        assert_int_equal(mrt_zk_queue_path("/root", "mortise", full, path), MORTISE_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(full, sizeof full, "mortise/%s", bad[i]);
        assert_int_equal(mrt_zk_queue_path("/root", "mortise", full, path), MORTISE_ENAME);
    }
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        assert_int_equal(mrt_zk_queue_path("/root", "", marks[i], path), MORTISE_ENAME);
    assert_int_equal(mrt_zk_queue_path("", "", "mortise-markers-x", path), MORTISE_OK);
    assert_int_equal(mrt_zk_queue_path("", "", "x/mortise-markers", path), MORTISE_OK);
    assert_int_equal(mrt_zk_queue_path("", "", "zookeeper/x", path), MORTISE_ENAME);
    assert_int_equal(mrt_zk_queue_path("", "", "/a/b", path), MORTISE_OK);
    assert_string_equal(path, "/a/b");
}

/* Each name has a path of its own, which says the name. */
static void test_se_03_a_leading_slash_makes_another_name(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"mortise//x", "/root/mortise/%2fx"},     {"mortise/x", "/root/mortise/x"},
        {"mortise/%2fx", "/root/mortise/%252fx"}, {"mortise/%252fx", "/root/mortise/%25252fx"},
        {"mortise/%25", "/root/mortise/%2525"},   {"mortise/%", "/root/mortise/%"},
        {"mortise/%2Fx", "/root/mortise/%2Fx"},   {"mortise/a%2fb", "/root/mortise/a%2fb"},
        {"mortise//", "/root/mortise/%2f"},       {"mortise///x", "/root/mortise/%2f/x"}};
    char path[MRT_ZK_PATH_MAX], name[MRT_ZK_PATH_MAX];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *full = pairs[i][0];
        assert_int_equal(mrt_zk_queue_path("/root", "mortise", full, path), MORTISE_OK);
        assert_string_equal(path, pairs[i][1]);
        mrt_zk_queue_name("mortise", path + strlen("/root/"), name);
        assert_string_equal(name, full);
    }
}

static void test_cc_19_which_single_bytes_are_names_of_nodes(void **state)
{
    (void)state;
    char path[MRT_ZK_PATH_MAX];
    for (int byte = 1; byte < 256; byte++) {
        char name[2] = {(char)byte, '\0'};
        bool good = byte >= 0x20 && byte < 0x7f && byte != '.' && byte != '/';
        assert_int_equal(mrt_zk_queue_path("", "", name, path), good ? MORTISE_OK : MORTISE_ENAME);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zk_33_g2_only_strict_names_are_contenders),
        cmocka_unit_test(test_g2_g6_which_nodes_are_of_another_layout),
        cmocka_unit_test(test_g2_names_of_each_layout),
        cmocka_unit_test(test_f13_a_nodes_name_has_its_permits),
        cmocka_unit_test(test_zk_09_sequences_wrap),
        cmocka_unit_test(test_zk_11_c8_h10_the_uuid_is_the_tickets_own_and_of_version_8),
        cmocka_unit_test(test_c11_a_name_says_that_a_ticket_has_changed_hands),
        cmocka_unit_test(test_pass_rule_10_which_nodes_are_ours),
        cmocka_unit_test(test_cc_13_codes_that_leave_the_outcome_open),
        cmocka_unit_test(test_cc_18_uris),
        cmocka_unit_test(test_cc_02_tls_that_the_build_lacks_is_refused),
        cmocka_unit_test(test_cc_18_durations_and_literal_servers),
        cmocka_unit_test(test_cc_19_paths),
        cmocka_unit_test(test_se_03_a_leading_slash_makes_another_name),
        cmocka_unit_test(test_cc_19_which_single_bytes_are_names_of_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
