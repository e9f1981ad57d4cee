/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout= on a real server: mortise beside clients that follow the recipes of other programs to the
 * letter, and what becomes of nodes of a layout that is not the lock's (G2, G6, D5).
 *
 * The other clients are the test's own (zk_raw.h): the algorithm of ZooKeeper's documentation,
 *   1 create an ephemeral sequential node   2 list   3 the lowest sequence holds
 *   4 else watch the next lower one; if it is gone, 2   5 at its event, 2
 * under the names of that documentation, of its C and Java recipes, and of kazoo. Real kazoo and
 * Curator are in test/interop.
 */
#include "cmocka_all.h"

#include "live/zk_proxy.h"
#include "live/zk_raw.h"
#include "live/zookeeper_place.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT "/test/root/mortise"
#define SOON 4000 /* before the recheck that every wait has, every 5 s */

static struct zk_raw *raw;
static struct zk_proxy *proxy;
static char name[32]; /* of the test's lock */
static char directory[64];

static int begin(void **state)
{
    static int number;
    (void)state;
    snprintf(name, sizeof name, "layouts-%d", number++);
    snprintf(directory, sizeof directory, ROOT "/%s", name);
    zk_said[0] = '\0';
    raw = zk_raw_open(zk_place_port());
    proxy = zk_proxy_start(zk_place_port());
    return 0;
}

static int end(void **state)
{
    (void)state;
    zk_raw_close(raw);
    zk_proxy_stop(proxy);
    return 0;
}

static mortise_client *open_at(uint16_t port, const char *layout)
{
    const mortise_client_options options = {
        .size = sizeof options, .budget_ms = -1, .log = zk_hear};
    mortise_client *client;
    char uri[256];
    snprintf(uri, sizeof uri, "%s&layout=%s", zk_place_uri(port, "10s"), layout);
    assert_int_equal(mortise_open(uri, &options, &client), MORTISE_OK);
    return client;
}

static const char *at(const char *node)
{
    static char path[384];
    snprintf(path, sizeof path, "%s/%.200s", directory, node);
    return path;
}

/* The directory, as a plain one, which stays. */
static void make_directory(void)
{
    const char *const parents[] = {"/test", "/test/root", ROOT, directory};
    for (int i = 0; i < 4; i++)
        zk_raw_create(raw, parents[i], false);
}

static void await_children(int count)
{
    int64_t last = zk_now_ms() + SOON;
    while (zk_raw_children(raw, directory) != count) {
        if (zk_now_ms() > last)
            fail_msg("%d children, not %d", zk_raw_children(raw, directory), count);
        zk_rest_ms(5);
    }
}

/* ------------------------------------------------------------ by the letter */

struct textbook {
    struct zk_raw *raw;
    const char *mark; /* contenders' names have it */
    char prefix[64], node[128];
    bool by_text; /* orders names as text, as many programs do; else by their sequence */
};

/* NULL: it holds. */
static const char *lower(const struct textbook *book, char other[128])
{
    bool found = false;
    int count = zk_raw_children(book->raw, directory);
    for (int i = 0; i < count; i++) {
        const char *child = zk_raw_name(book->raw, i);
        size_t skip = book->by_text ? 0 : strlen(child) - 10;
        size_t own = book->by_text ? 0 : strlen(book->node) - 10;
        if (!strstr(child, book->mark) || strcmp(child + skip, book->node + own) >= 0)
            continue;
        size_t nearest = book->by_text ? 0 : strlen(other) - 10;
        if (!found || strcmp(child + skip, other + nearest) > 0)
            snprintf(other, 128, "%s", child);
        found = true;
    }
    return found ? other : NULL;
}

/* Of threads, whose failures cmocka does not show. */
static void check_zero(int code, const char *what)
{
    if (code == 0)
        return;
    fprintf(stderr, "%s: %d %s\n", what, code, mortise_error_detail());
    abort();
}

static void textbook_lock(struct textbook *book)
{
    char other[128] = "", path[256];
    check_zero(zk_raw_queue(book->raw, directory, book->prefix, book->node), "create");
    while (lower(book, other)) {
        snprintf(path, sizeof path, "%s/%s", directory, other);
        if (zk_raw_watch(book->raw, path))
            zk_raw_changed(book->raw);
    }
}

static void textbook_unlock(struct textbook *book)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, book->node);
    check_zero(zk_raw_delete(book->raw, path), "delete");
}

/* How the clients of a program call their nodes. */
enum program { TEXTBOOK, C_RECIPE, JAVA_RECIPE, KAZOO };

static struct textbook textbook_of(struct zk_raw *session, enum program program)
{
    struct textbook book = {.raw = session, .mark = "", .by_text = program == TEXTBOOK};
    int64_t id = zk_raw_session(session);
    if (program == TEXTBOOK)
        snprintf(book.prefix, sizeof book.prefix, "lock-");
    else if (program == C_RECIPE)
        snprintf(book.prefix, sizeof book.prefix, "x-%016" PRIx64 "-", (uint64_t)id);
    else if (program == JAVA_RECIPE)
        snprintf(book.prefix, sizeof book.prefix, "x-%" PRId64 "-", id);
    else
        snprintf(book.prefix, sizeof book.prefix, "%016" PRIx64 "4000800000000000__lock__",
                 (uint64_t)id);
    if (program == KAZOO)
        book.mark = "__lock__";
    return book;
}

/* ------------------------------------------------------------ taking turns */

#define TURNS 60

static struct {
    enum program program;
    const char *layout;
    atomic_int inside, overlaps;
    int count; /* by who is inside alone */
} contest;

static void work(void)
{
    contest.overlaps += atomic_fetch_add(&contest.inside, 1) != 0;
    contest.count++;
    contest.overlaps += atomic_fetch_sub(&contest.inside, 1) != 1;
}

static void *follow(void *unused)
{
    struct zk_raw *session = zk_raw_open(zk_place_port());
    struct textbook book = textbook_of(session, contest.program);
    for (int i = 0; i < TURNS; i++) {
        textbook_lock(&book);
        work();
        textbook_unlock(&book);
    }
    zk_raw_close(session);
    return unused;
}

static void *take_part(void *unused)
{
    mortise_client *client = open_at(zk_place_port(), contest.layout);
    mortise_lock *lock = zk_mutex(client, name);
    for (int i = 0; i < TURNS; i++) {
        mortise_hold hold;
        check_zero(mortise_acquire_for(lock, 20000, &hold), "acquire");
        work();
        check_zero(mortise_release(hold), "release");
    }
    check_zero(mortise_close(client), "close");
    return unused;
}

/* Three of ours and three of the program's, all at once. */
static void compete(enum program program, const char *layout)
{
    pthread_t threads[6];
    contest.program = program;
    contest.layout = layout;
    contest.count = 0;
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? follow : take_part, NULL), 0);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(contest.overlaps, 0);
    assert_int_equal(contest.count, 6 * TURNS);
    assert_int_equal(zk_raw_children(raw, directory), 0);
}

static void *wait_for_it(void *book)
{
    textbook_lock(book);
    contest.count = 1;
    return NULL;
}

/* One waits for the other, both ways. */
static void wait_for_each_other(enum program program, const char *layout)
{
    pthread_t thread;
    struct textbook book = textbook_of(raw, program);
    mortise_client *client = open_at(zk_place_port(), layout);
    mortise_lock *lock = zk_mutex(client, name);
    mortise_hold hold;
    make_directory();
    textbook_lock(&book);
    assert_int_equal(mortise_acquire_for(lock, 0, &hold), MORTISE_EBUSY);
    assert_int_equal(mortise_acquire_for(lock, 100, &hold), MORTISE_ETIMEOUT);
    textbook_unlock(&book);
    hold = zk_acquire(lock);
    contest.count = 0;
    book.raw = zk_raw_open(zk_place_port());
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &book), 0);
    await_children(2);
    zk_rest_ms(50);
    assert_int_equal(contest.count, 0);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    pthread_join(thread, NULL);
    textbook_unlock(&book);
    zk_raw_close(book.raw);
    assert_int_equal(mortise_close(client), MORTISE_OK);
    compete(program, layout);
}

static void test_g2_turns_with_the_documented_recipe(void **state)
{
    (void)state;
    wait_for_each_other(TEXTBOOK, "recipe");
}

static void test_g6_turns_with_the_recipe_in_c(void **state)
{
    (void)state;
    wait_for_each_other(C_RECIPE, "recipe");
}

static void test_g6_turns_with_the_recipe_in_java(void **state)
{
    (void)state;
    wait_for_each_other(JAVA_RECIPE, "recipe");
}

static void test_d5_readers_and_writers_take_turns_with_kazoos_names(void **state)
{
    (void)state;
    wait_for_each_other(KAZOO, "kazoo");
}

/* ------------------------------------------------------------ other layouts */

static const struct {
    const char *node, *layout; /* the one that sees it; NULL: none */
} strangers[] = {
    {"_c_6f1ed002-ab5a-4000-8000-000000000001-lock-0000000009", "layout=curator"},
    {"0123456789abcdef0123456789abcdef-lock-0000000009", "layout=curator"},
    {"_c_6f1ed002-ab5a-4000-8000-000000000001-__READ__0000000009", "layout=curator"},
    {"0123456789ab4def0123456789abcdef__lock__0000000009", "layout=kazoo"},
    {"0123456789ab4def0123456789abcdef__rlock__0000000009", "layout=kazoo"},
    {"lock-0000000009", "layout=recipe"},
    {"x-0100000a1b2c3d4e-0000000009", "layout=recipe"},
    {"host-R-0000000009", "another name"},
    {"host-W-0000000009", "another name"},
    {"read_0000000009", "another name"},
    {"write_0000000009", "another name"},
};

static const char *const layouts[] = {"curator", "kazoo", "recipe"};

static void check_refused(int error, const char *node, const char *way_out)
{
    print_message("%s\n", mortise_error_detail());
    assert_int_equal(error, MORTISE_EMISMATCH);
    assert_non_null(strstr(mortise_error_detail(), node));
    assert_non_null(strstr(mortise_error_detail(), way_out));
}

/* Their programs would not see our node, and both would hold. */
static void test_g2_g6_a_node_of_another_layout_is_refused_by_its_name(void **state)
{
    (void)state;
    mortise_hold hold;
    make_directory();
    for (int i = 0; i < 3; i++) {
        mortise_client *client = open_at(zk_place_port(), layouts[i]);
        mortise_lock *lock = zk_mutex(client, name);
        for (size_t k = 0; k < sizeof strangers / sizeof *strangers; k++) {
            const char *node = strangers[k].node;
            if (strstr(strangers[k].layout, layouts[i]))
                continue;
            assert_int_equal(zk_raw_create(raw, at(node), true), 0);
            check_refused(mortise_acquire_for(lock, 5000, &hold), node, strangers[k].layout);
            check_refused(mortise_acquire_for(lock, 0, &hold), node, strangers[k].layout);
            assert_int_equal(zk_raw_children(raw, directory), 1); /* nothing of ours is left */
            assert_int_equal(zk_raw_delete(raw, at(node)), 0);
            assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
        }
        assert_int_equal(mortise_close(client), MORTISE_OK);
    }
}

static void test_g2_children_with_foreign_names_do_not_count(void **state)
{
    (void)state;
    static const char *const others[] = {"keeper", "lock-x", "read_1", "host-R-", "x-1f"};
    make_directory();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(zk_raw_create(raw, at(others[i]), true), 0);
    for (int i = 0; i < 3; i++) {
        mortise_client *client = open_at(zk_place_port(), layouts[i]);
        assert_int_equal(mortise_release(zk_acquire(zk_mutex(client, name))), MORTISE_OK);
        assert_int_equal(mortise_close(client), MORTISE_OK);
    }
}

struct told {
    atomic_bool done;
    int error;
    mortise_hold hold;
    char detail[256];
};

static void tell(void *argument, int error, mortise_hold hold)
{
    struct told *told = argument;
    told->error = error;
    told->hold = hold;
    snprintf(told->detail, sizeof told->detail, "%s", mortise_error_detail());
    told->done = true;
}

static void await(struct told *told)
{
    for (int64_t last = zk_now_ms() + 15000; !told->done; zk_rest_ms(5))
        assert_true(zk_now_ms() < last);
}

/* It comes while one of ours holds and two wait: the waiter that looks gives up with the reason;
   what is held stays held, and the log says that there is another. */
static void test_g6_a_node_of_another_layout_comes_while_we_wait_and_hold(void **state)
{
    (void)state;
    mortise_client *clients[3];
    mortise_lock *locks[3];
    struct told middle = {.done = false}, last = {.done = false};
    for (int i = 0; i < 3; i++) {
        clients[i] = open_at(zk_place_port(), "curator");
        locks[i] = zk_mutex(clients[i], name);
    }
    mortise_hold hold = zk_acquire(locks[0]);
    int64_t until = mortise_now_ns() + INT64_C(1000000000);
    assert_int_equal(mortise_acquire_async(locks[1], until, tell, &middle, NULL), MORTISE_OK);
    await_children(2);
    assert_int_equal(mortise_acquire_async(locks[2], INT64_MAX, tell, &last, NULL), MORTISE_OK);
    await_children(3);
    assert_int_equal(zk_raw_create(raw, at("x-1f-0000000077"), true), 0);
    await(&middle);
    assert_int_equal(middle.error, MORTISE_ETIMEOUT);
    await(&last); /* it was woken by the middle one's end */
    assert_int_equal(last.error, MORTISE_EMISMATCH);
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    assert_true(mortise_is_held(hold));
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
    const char *first = strstr(zk_said, "x-1f-0000000077");
    assert_non_null(first);
    assert_null(strstr(first + 1, "x-1f-0000000077")); /* once */
    await_children(2);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    await_children(1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mortise_close(clients[i]), MORTISE_OK);
}

/* ------------------------------------------------------------ what recipe carries */

static void test_g2_the_recipe_refuses_locks_that_its_names_cannot_express(void **state)
{
    (void)state;
    mortise_client *client = open_at(zk_place_port(), "recipe");
    mortise_capabilities can = {.size = sizeof can};
    mortise_lock *read, *write;
    mortise_hold hold;
    char token[MORTISE_TOKEN_SIZE], sides[64];
    snprintf(sides, sizeof sides, "%s-sides", name);
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    assert_false(can.detach);
    assert_int_equal(mortise_read_write_new(client, sides, NULL, &read, &write), MORTISE_OK);
    assert_int_equal(mortise_acquire_for(read, 5000, &hold), MORTISE_ENOTSUPPORTED);
    assert_non_null(strstr(mortise_error_detail(), "layout=recipe"));
    assert_int_equal(mortise_acquire_for(write, 5000, &hold), MORTISE_ENOTSUPPORTED);
    hold = zk_acquire(zk_mutex(client, name));
    assert_int_equal(mortise_detach(hold, token), MORTISE_ENOTSUPPORTED);
    assert_true(mortise_is_held(hold));
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

/* Nodes of mortise's own recipes have the same names in each layout. */
static void test_f13_clients_of_all_layouts_share_a_semaphore(void **state)
{
    (void)state;
    mortise_client *clients[3];
    mortise_hold holds[3];
    for (int i = 0; i < 3; i++) {
        mortise_lock *lock;
        clients[i] = open_at(zk_place_port(), layouts[i]);
        assert_int_equal(mortise_semaphore_new(clients[i], name, 2, NULL, &lock), MORTISE_OK);
        assert_int_equal(mortise_acquire_for(lock, i < 2 ? 5000 : 0, &holds[i]),
                         i < 2 ? MORTISE_OK : MORTISE_EBUSY);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(mortise_close(clients[i]), MORTISE_OK);
}

/* ------------------------------------------------------------ lost creates */

/* The reply to a create is lost among nodes of others that are called alike: the one that this
   session owns is found, and no second one is made. */
static void test_f10_a_lost_create_is_found_by_its_owner(void **state)
{
    (void)state;
    mortise_client *client = open_at(zk_proxy_port(proxy), "recipe");
    mortise_lock *lock = zk_mutex(client, name);
    struct told told = {.done = false};
    char nodes[3][128];
    make_directory();
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    await_children(0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(zk_raw_queue(raw, directory, "lock-", nodes[i]), 0);
    zk_proxy_reset_counts(proxy);
    zk_proxy_swallow(proxy, ZK_OP_CREATE2);
    assert_int_equal(mortise_acquire_async(lock, INT64_MAX, tell, &told, NULL), MORTISE_OK);
    for (int64_t last = zk_now_ms() + SOON; !zk_proxy_swallowed(proxy); zk_rest_ms(5))
        assert_true(zk_now_ms() < last);
    assert_int_equal(zk_raw_queue(raw, directory, "lock-", nodes[2]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(zk_raw_delete(raw, at(nodes[i])), 0);
    await(&told); /* it was ahead of the third */
    assert_int_equal(told.error, MORTISE_OK);
    assert_int_equal(zk_proxy_count(proxy, ZK_OP_CREATE2), 1);
    assert_int_equal(zk_raw_children(raw, directory), 2);
    assert_int_equal(mortise_release(told.hold), MORTISE_OK);
    await_children(1);
    assert_int_equal(zk_raw_exists(raw, at(nodes[2])), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void test_f10_a_lost_create_that_is_given_up_leaves_nothing(void **state)
{
    (void)state;
    mortise_client *client = open_at(zk_proxy_port(proxy), "recipe");
    mortise_lock *lock = zk_mutex(client, name);
    mortise_hold none;
    char node[128];
    make_directory();
    assert_int_equal(mortise_release(zk_acquire(lock)), MORTISE_OK);
    await_children(0);
    assert_int_equal(zk_raw_queue(raw, directory, "lock-", node), 0);
    zk_proxy_swallow(proxy, ZK_OP_CREATE2);
    assert_int_not_equal(mortise_acquire_for(lock, 1, &none), MORTISE_OK);
    for (int64_t last = zk_now_ms() + SOON; !zk_proxy_swallowed(proxy); zk_rest_ms(5))
        assert_true(zk_now_ms() < last);
    await_children(1);
    assert_int_equal(zk_raw_exists(raw, at(node)), 0); /* which is not ours */
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

static void tell_leader(void *argument, int error)
{
    tell(argument, error, (mortise_hold){0});
}

/* Two candidates of one session, the creates of both of unknown outcome: each gets a node. */
static void test_f10_two_lost_creates_of_one_session(void **state)
{
    (void)state;
    mortise_client *client = open_at(zk_proxy_port(proxy), "recipe");
    mortise_election *elections[2];
    make_directory();
    assert_int_equal(mortise_release(zk_acquire(zk_mutex(client, "warm"))), MORTISE_OK);
    char holder[128];
    struct told told[2] = {{.done = false}, {.done = false}};
    assert_int_equal(zk_raw_queue(raw, directory, "lock-", holder), 0);
    zk_proxy_hold(proxy, ZK_OP_CREATE2, directory);
    for (int i = 0; i < 2; i++) {
        const char *const values[] = {"first", "second"};
        const mortise_election_options options = {
            .size = sizeof options, .value = values[i], .value_size = strlen(values[i])};
        assert_int_equal(mortise_election_new(client, name, &options, &elections[i]), MORTISE_OK);
        assert_int_equal(
            mortise_election_campaign_async(elections[i], INT64_MAX, tell_leader, &told[i]), 0);
    }
    for (int64_t last = zk_now_ms() + SOON; !zk_proxy_holds(proxy); zk_rest_ms(5))
        assert_true(zk_now_ms() < last);
    zk_rest_ms(50); /* the second one's, behind it */
    zk_proxy_swallow(proxy, ZK_OP_CREATE2);
    zk_proxy_go(proxy);
    for (int64_t last = zk_now_ms() + SOON; !zk_proxy_swallowed(proxy); zk_rest_ms(5))
        assert_true(zk_now_ms() < last);
    await_children(3);
    assert_int_equal(zk_raw_delete(raw, at(holder)), 0);
    for (int64_t last = zk_now_ms() + 15000; !told[0].done && !told[1].done; zk_rest_ms(5))
        assert_true(zk_now_ms() < last);
    int first = told[1].done;
    assert_false(told[!first].done);
    await_children(2);
    assert_int_equal(mortise_election_resign(elections[first]), MORTISE_OK);
    await(&told[!first]);
    await_children(1);
    assert_int_equal(mortise_election_resign(elections[!first]), MORTISE_OK);
    await_children(0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

struct seen {
    int count;
    bool sides[4], labelled[4];
};

static int see(void *argument, const mortise_entry *entry)
{
    struct seen *seen = argument;
    seen->sides[seen->count] = strcmp(entry->kind, "read-write") == 0;
    seen->labelled[seen->count++] = entry->label[0] != '\0';
    return 0;
}

/* kazoo calls writers as it calls a mutex. */
static void test_e3_writers_among_kazoos_names_are_listed_as_such(void **state)
{
    (void)state;
    mortise_client *client = open_at(zk_place_port(), "kazoo");
    mortise_lock *read, *write;
    mortise_hold hold;
    struct seen seen = {.count = 0};
    assert_int_equal(mortise_read_write_new(client, name, NULL, &read, &write), MORTISE_OK);
    assert_int_equal(mortise_acquire_for(write, 5000, &hold), MORTISE_OK);
    assert_int_equal(mortise_list(client, name, see, &seen), MORTISE_OK);
    assert_int_equal(seen.count, 1);
    assert_true(seen.sides[0]);
    assert_false(seen.labelled[0]);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    await_children(0);
    make_directory();
    assert_int_equal(mortise_acquire_for(read, 5000, &hold), MORTISE_OK);
    char theirs[128];
    assert_int_equal(
        zk_raw_queue(raw, directory, "0123456789ab4def0123456789abcdef__lock__", theirs), 0);
    seen = (struct seen){.count = 0};
    assert_int_equal(mortise_list(client, name, see, &seen), MORTISE_OK);
    assert_int_equal(seen.count, 2);
    assert_true(seen.sides[0] && seen.sides[1]);
    assert_int_equal(mortise_release(hold), MORTISE_OK);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

/* A program without mortise finds the node that it is told of, and its sequence. */
static void test_h8_another_program_finds_the_node_of_a_hold(void **state)
{
    (void)state;
    char node[MORTISE_NODE_SIZE], other[MORTISE_NODE_SIZE];
    char sides[64];
    mortise_hold hold;
    snprintf(sides, sizeof sides, "%s-sides", name);
    for (int i = 0; i < 3; i++) {
        mortise_client *client = open_at(zk_place_port(), layouts[i]);
        hold = zk_acquire(zk_mutex(client, name));
        assert_int_equal(mortise_hold_node(hold, node, sizeof node), MORTISE_OK);
        assert_memory_equal(node, directory, strlen(directory));
        assert_true(zk_raw_owner(raw, node) > 0);
        assert_true(zk_raw_child(raw, directory, 0, other));
        assert_string_equal(strrchr(node, '/') + 1, other);
        assert_int_equal(mortise_release(hold), MORTISE_OK);
        await_children(0);
        if (i < 2) { /* a writer that goes on as a reader has another node */
            mortise_lock *read, *write;
            assert_int_equal(mortise_read_write_new(client, sides, NULL, &read, &write),
                             MORTISE_OK);
            assert_int_equal(mortise_acquire_for(write, 5000, &hold), MORTISE_OK);
            assert_int_equal(mortise_hold_node(hold, node, sizeof node), MORTISE_OK);
            assert_int_equal(mortise_downgrade(hold), MORTISE_OK);
            assert_int_equal(mortise_verify(hold, 5000), MORTISE_OK);
            assert_int_equal(mortise_hold_node(hold, other, sizeof other), MORTISE_OK);
            assert_string_not_equal(node, other);
            assert_true(zk_raw_owner(raw, other) > 0);
            assert_int_equal(mortise_release(hold), MORTISE_OK);
            for (int64_t last = zk_now_ms() + SOON; zk_raw_exists(raw, other) == 0; zk_rest_ms(5))
                assert_true(zk_now_ms() < last);
            snprintf(sides, sizeof sides, "%s-sides-2", name); /* a directory is of one layout */
        }
        assert_int_equal(mortise_close(client), MORTISE_OK);
    }
}

/* The directory is deleted under a holder and made anew: its numbers begin again, and another's
   node is called as the holder's was. */
static void test_zk_13_anothers_node_with_our_former_name_is_not_ours(void **state)
{
    (void)state;
    mortise_client *client = open_at(zk_place_port(), "recipe");
    char ours[128], other[128];
    make_directory();
    mortise_hold hold = zk_acquire(zk_mutex(client, name));
    assert_true(zk_raw_child(raw, directory, 0, ours));
    assert_int_equal(zk_raw_delete(raw, at(ours)), 0);
    assert_int_equal(zk_raw_delete(raw, directory), 0);
    make_directory();
    assert_int_equal(zk_raw_queue(raw, directory, "lock-", other), 0);
    assert_string_equal(ours, other);
    assert_int_equal(mortise_verify(hold, 5000), MORTISE_ELOST);
    assert_int_equal(mortise_release(hold), MORTISE_ELOST);
    assert_int_equal(zk_raw_exists(raw, at(other)), 0);
    assert_int_equal(mortise_close(client), MORTISE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_g2_turns_with_the_documented_recipe, begin, end),
        cmocka_unit_test_setup_teardown(test_g6_turns_with_the_recipe_in_c, begin, end),
        cmocka_unit_test_setup_teardown(test_g6_turns_with_the_recipe_in_java, begin, end),
        cmocka_unit_test_setup_teardown(test_d5_readers_and_writers_take_turns_with_kazoos_names,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_g2_g6_a_node_of_another_layout_is_refused_by_its_name,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_g2_children_with_foreign_names_do_not_count, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            test_g6_a_node_of_another_layout_comes_while_we_wait_and_hold, begin, end),
        cmocka_unit_test_setup_teardown(
            test_g2_the_recipe_refuses_locks_that_its_names_cannot_express, begin, end),
        cmocka_unit_test_setup_teardown(test_f13_clients_of_all_layouts_share_a_semaphore, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_f10_a_lost_create_is_found_by_its_owner, begin, end),
        cmocka_unit_test_setup_teardown(test_f10_a_lost_create_that_is_given_up_leaves_nothing,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_e3_writers_among_kazoos_names_are_listed_as_such,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_h8_another_program_finds_the_node_of_a_hold, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_zk_13_anothers_node_with_our_former_name_is_not_ours,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_f10_two_lost_creates_of_one_session, begin, end),
    };
    return cmocka_run_group_tests(tests, zk_place_start, zk_place_stop);
}
