/* SPDX-License-Identifier: Apache-2.0 */
/* Clients: what they are opened with, what can be asked of them, fork, and their end. */
#include "api_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS 30 /* while a client is in use */

/* ------------------------------------------------------------------- opening */

static int open_with(const char *uri, const mortise_client_options *options)
{
    mortise_client *client = NULL;
    int error = mortise_open(uri, options, &client);
    if (error == MORTISE_OK)
        check(mortise_close(client) == MORTISE_OK);
    else
        check(client == NULL); /* untouched */
    return error;
}

static int take_entry(void *argument, const mortise_entry *entry)
{
    (void)argument, (void)entry;
    return 0;
}

/* Of a client, and of a lock and of an operation, which lead to one. */
static void test_u14_u38_null_is_an_error_everywhere(void **state)
{
    (void)state;
    char text[16];
    mortise_lock *lock = NULL;
    mortise_election *election = NULL;
    mortise_cell cell;
    mortise_stats stats = {.size = sizeof stats};
    mortise_capabilities can = {.size = sizeof can};
    const int errors[] = {
        mortise_server(NULL, text, sizeof text),
        mortise_get_capabilities(NULL, &can),
        mortise_get_stats(NULL, &stats),
        mortise_mutex_new(NULL, "x", NULL, &lock),
        mortise_election_new(NULL, "x", NULL, &election),
        mortise_cancel_waiters(NULL),
        mortise_fd(NULL),
        mortise_next_timeout_ms(NULL),
        mortise_process(NULL),
        mortise_cell_get(NULL, "x", &cell),
        mortise_list(NULL, NULL, take_entry, NULL),
        mortise_revoke(NULL, "x", 0),
        mortise_break(NULL, "x", 1),
    };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        assert_int_equal(errors[i], MORTISE_EINVALID);
    assert_int_equal(mortise_break(NULL, "x", 1), MORTISE_EINVALID);
    assert_string_equal(mortise_error_detail(), "the client is NULL");
    assert_null(mortise_url(NULL));
    assert_null(mortise_lock_name(NULL));
    mortise_cancel(NULL);
    mortise_lock_free(NULL);
    mortise_client *client = api_open(0);
    assert_int_equal(mortise_cell_cas(client, "x", 0, NULL, 5, 0, NULL), MORTISE_EINVALID);
    assert_string_equal(mortise_error_detail(), "the value is NULL, and its size 5");
    api_close(client);
}

static void test_u46_options_are_checked(void **state)
{
    (void)state;
    static char label[MORTISE_LABEL_MAX + 2];
    memset(label, 'x', sizeof label - 1);
    const size_t size = sizeof(mortise_client_options);
    const struct {
        mortise_client_options options;
        int error;
    } table[] = {
        {{.size = size}, MORTISE_OK},
        {{.size = size, .flags = MORTISE_STRICT | MORTISE_SHORT_LIVED}, MORTISE_OK},
        {{.size = size, .budget_ms = -1, .budget_count = -1}, MORTISE_OK},
        {{.size = size, .label = "for people"}, MORTISE_OK},
        {{.size = offsetof(mortise_client_options, budget_ms)}, MORTISE_OK}, /* an older program */
        {{.size = 0}, MORTISE_EINVALID},
        {{.size = 4}, MORTISE_EINVALID},
        {{.size = size + 8}, MORTISE_EINVALID}, /* a newer one */
        {{.size = size, .flags = 1u << 30}, MORTISE_EINVALID},
        {{.size = size, .budget_ms = -2}, MORTISE_EINVALID},
        {{.size = size, .budget_count = -2}, MORTISE_EINVALID},
        {{.size = size, .timeout_ms = -1}, MORTISE_EINVALID},
        {{.size = size, .label = label}, MORTISE_EINVALID},
        {{.size = size, .label = "a\nb"}, MORTISE_EINVALID},
        {{.size = size, .label = "\xff"}, MORTISE_EINVALID},
    };
    assert_int_equal(open_with(api_url, &(mortise_client_options){.size = size, .timeout_ms = -1}),
                     MORTISE_EINVALID);
    assert_string_equal(mortise_error_detail(),
                        "mortise_client_options.timeout_ms is -1, less than 0");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(open_with(api_url, &table[i].options), table[i].error);
        if (table[i].error != MORTISE_OK)
            assert_true(strlen(mortise_error_detail()) > 0);
    }
    assert_int_equal(open_with(api_url, NULL), MORTISE_OK);
    assert_int_equal(mortise_open(api_url, NULL, NULL), MORTISE_EINVALID);
    assert_int_equal(mortise_close(NULL), MORTISE_OK);
}

static void test_uris_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        int error;
    } table[] = {
        {"memory:x", MORTISE_OK},
        {"memory:x?namespace=", MORTISE_OK},
        {"memory:x?lease=2s", MORTISE_OK},
        {"memory:", MORTISE_EURI},
        {"memory", MORTISE_EURI},
        {"memory:x?lease=soon", MORTISE_EURI},
        {"memory:x?nonsense=1", MORTISE_EURI},
        {"memory:x?namespace=a%01b", MORTISE_EURI},
        {"memory:x?namespace=a/b", MORTISE_EURI},
        {"memory:x?namespace=a%2Fb", MORTISE_EURI},
        {"memory:x?namespace=/", MORTISE_EURI},
        {"nowhere:x", MORTISE_ESCHEME},
        {"://", MORTISE_EURI},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_int_equal(open_with(table[i].uri, NULL), table[i].error);
    char longest[5000] = "memory:";
    memset(longest + 7, 'x', sizeof longest - 8);
    assert_int_equal(open_with(longest, NULL), MORTISE_EURI);
}

static void test_j9_the_environment_names_the_store(void **state)
{
    (void)state;
    mortise_client *client = NULL;
    assert_int_equal(setenv("MORTISE_URL", "memory:from-the-environment", 1), 0);
    assert_int_equal(mortise_open("", NULL, &client), MORTISE_OK);
    assert_string_equal(mortise_url(client), "memory:from-the-environment");
    api_close(client);
    assert_int_equal(unsetenv("MORTISE_URL"), 0);
}

/* The embedded store needs no server and no configuration. */
static void test_j9_the_default_is_a_file_in_the_state_directory(void **state)
{
    (void)state;
    char directory[] = "/tmp/mortise-state-XXXXXX";
    mortise_client *client = NULL;
    if (!api_spans_processes())
        return; /* said once, for the embedded store */
    unsetenv("MORTISE_URL");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(setenv("XDG_STATE_HOME", directory, 1), 0);
    assert_int_equal(mortise_open(NULL, NULL, &client), MORTISE_OK);
    assert_non_null(strstr(mortise_url(client), directory));
    api_release(api_acquire(api_lock(client, "j9")));
    api_close(client);
    unsetenv("XDG_STATE_HOME");
    api_remove_tree(directory);
}

static void work_with(mortise_lock *lock, mortise_client *client)
{
    mortise_hold hold = api_acquire(lock);
    assert_int_equal(api_tickets(client, mortise_lock_name(lock)), 1);
    api_release(hold);
}

static void test_h7_names_are_checked_before_anything_is_asked(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    char longest[MORTISE_NAME_MAX + 2];
    memset(longest, 'n', sizeof longest);
    longest[MORTISE_NAME_MAX] = '\0';
    mortise_lock *lock = NULL;
    assert_int_equal(mortise_mutex_new(client, longest, NULL, &lock), MORTISE_OK);
    api_release(api_acquire(lock)); /* and such a name works */
    mortise_lock_free(lock);
    longest[MORTISE_NAME_MAX] = 'n';
    longest[MORTISE_NAME_MAX + 1] = '\0';
    static const char *const wrong[] = {"",     "a\nb",          "\x7f",     "\xc0\x80",
                                        "\xff", "a\xed\xa0\x80", "\xc2\x85", NULL};
    lock = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(mortise_mutex_new(client, wrong[i], NULL, &lock), MORTISE_ENAME);
        assert_null(lock);
    }
    assert_int_equal(mortise_mutex_new(client, longest, NULL, &lock), MORTISE_ENAME);
    assert_int_equal(mortise_list(client, "", NULL, NULL), MORTISE_ENAME);
    static const char *const right[] = {"a", "a b", "\xc3\xa9\xe2\x82\xac", "%2F", "'; --", "/"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(mortise_mutex_new(client, right[i], NULL, &lock), MORTISE_OK);
        work_with(lock, client);
        mortise_lock_free(lock);
    }
    api_close(client);
}

static void test_lock_options_are_checked(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    mortise_lock *lock = NULL;
    mortise_lock_options options = {.size = sizeof options + 1};
    assert_int_equal(mortise_mutex_new(client, "n", &options, &lock), MORTISE_EINVALID);
    options = (mortise_lock_options){.size = sizeof options, .owner = UINT64_C(1) << 63};
    assert_int_equal(mortise_mutex_new(client, "n", &options, &lock), MORTISE_EINVALID);
    assert_int_equal(mortise_mutex_new(NULL, "n", NULL, &lock), MORTISE_EINVALID);
    assert_int_equal(mortise_mutex_new(client, "n", NULL, NULL), MORTISE_EINVALID);
    assert_null(lock);
    api_close(client);
}

static void test_namespaces_do_not_share_locks(void **state)
{
    (void)state;
    mortise_client *mine = api_open(0), *theirs = NULL;
    assert_int_equal(mortise_open(api_url_with("namespace=theirs"), NULL, &theirs), MORTISE_OK);
    mortise_hold hold = api_acquire(api_lock(mine, "space")), other;
    assert_int_equal(mortise_try_acquire(api_lock(theirs, "space"), &other), MORTISE_OK);
    assert_string_equal(mortise_hold_name(other), "space");
    assert_int_equal(api_tickets(mine, "space"), 1);
    assert_int_equal(api_tickets(theirs, NULL), 1); /* only its own */
    api_release(hold);
    api_release(other);
    api_close(mine);
    api_close(theirs);
}

/* Names that differ are locks that differ, wherever a store may put "/" or "%" to use. */
static void test_se_03_names_that_differ_by_slashes_are_different_locks(void **state)
{
    (void)state;
    static const char *const names[] = {"slash",    "/slash",     "//slash",
                                        "%2fslash", "%252fslash", "/"};
    enum { COUNT = sizeof names / sizeof names[0] };
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_hold holds[COUNT], none;
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(mortise_try_acquire(api_lock(client, names[i]), &holds[i]), MORTISE_OK);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(mortise_try_acquire(api_lock(other, names[i]), &none), MORTISE_EBUSY);
        assert_int_equal(api_tickets(other, names[i]), 1);
    }
    assert_int_equal(api_tickets(other, NULL), COUNT);
    for (size_t i = 0; i < COUNT; i++)
        api_release(holds[i]);
    api_close(client);
    api_close(other);
}

/* ------------------------------------------------------------------- queries */

static void test_c13_opening_and_naming_make_no_request(void **state)
{
    (void)state;
    mortise_client *client = api_open(0);
    api_lock(client, "lazy");
    assert_int_equal(api_stats(client).commands, 0);
    api_close(client);
}

/* Where an exclusive lock is no queue. */
static bool keeps_claims_apart(void)
{
    return strncmp(api_url, "zk:", 3) == 0 || strncmp(api_url, "redis", 5) == 0;
}

static void test_stats_and_capabilities(void **state)
{
    (void)state;
    int64_t begin = mortise_now_ns();
    mortise_client *client = api_open(0);
    mortise_lock *lock = api_lock(client, "stats");
    mortise_hold hold = api_acquire(lock);
    api_acquire(lock);
    mortise_stats stats = api_stats(client);
    assert_int_equal(stats.acquisitions, 1);
    assert_int_equal(stats.nested, 1);
    assert_int_equal(stats.handovers, 0);
    assert_int_equal(stats.losses, 0);
    assert_in_range(stats.commands, 2, 3 + api_commands_since(begin));
    api_release(hold);
    api_release(hold);
    stats.size = 0;
    assert_int_equal(mortise_get_stats(client, &stats), MORTISE_EINVALID);
    stats.size = sizeof stats + 1;
    assert_int_equal(mortise_get_stats(client, &stats), MORTISE_EINVALID);
    mortise_capabilities can = {.size = sizeof can};
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_OK);
    assert_int_equal(can.size, sizeof can);
    assert_int_equal(can.fair, 1);
    assert_int_equal(can.exclusive_fair, !keeps_claims_apart());
    assert_int_equal(can.fence, 1);
    can.size = 0;
    assert_int_equal(mortise_get_capabilities(client, &can), MORTISE_EINVALID);
    assert_int_equal(mortise_get_capabilities(client, NULL), MORTISE_EINVALID);
    api_close(client);
}

static void test_url_is_the_address(void **state)
{
    (void)state;
    char address[300];
    mortise_client *client = api_open(0);
    snprintf(address, sizeof address, "%.*s", (int)strcspn(api_url, "?"), api_url);
    if (strncmp(api_url, "agent:", 6) == 0) /* that of the store behind the agent */
        assert_memory_equal(mortise_url(client), "sqlite:", 7);
    else
        assert_string_equal(mortise_url(client), address);
    api_close(client);
}

struct seen {
    int count, stop_after;
    char names[8][64], labels[8][64], kinds[8][16];
    uint32_t places[8];
    uint64_t fences[8];
    int64_t since[8];
};

static int see(void *argument, const mortise_entry *entry)
{
    struct seen *seen = argument;
    int i = seen->count++;
    check(i < 8);
    snprintf(seen->names[i], sizeof seen->names[i], "%s", entry->name);
    snprintf(seen->labels[i], sizeof seen->labels[i], "%s", entry->label);
    snprintf(seen->kinds[i], sizeof seen->kinds[i], "%s", entry->kind);
    seen->places[i] = entry->place;
    seen->fences[i] = entry->fence;
    seen->since[i] = entry->since_wall_ms;
    return seen->stop_after == seen->count;
}

static void ignore(void *argument, int error, mortise_hold hold)
{
    (void)argument;
    if (error == MORTISE_OK)
        api_release(hold);
}

static void test_d1_f12_list_shows_holders_and_waiters_in_order(void **state)
{
    (void)state;
    mortise_client *clients[3];
    static const char *const labels[3] = {"first", "second", "third"};
    mortise_hold hold = {NULL, 0};
    for (int i = 0; i < 3; i++) {
        mortise_client_options options = {.size = sizeof options, .label = labels[i]};
        clients[i] = api_open_with(&options);
        mortise_lock *lock = api_lock(clients[i], "list/a");
        if (i == 0)
            hold = api_acquire(lock);
        else
            check(mortise_acquire_async(lock, INT64_MAX, ignore, NULL, NULL) == MORTISE_OK);
        api_await_tickets(clients[0], "list/a", i + 1);
    }
    struct seen seen = {0};
    assert_int_equal(mortise_list(clients[2], "list/a", see, &seen), MORTISE_OK);
    assert_int_equal(seen.count, 3);
    int64_t now = (int64_t)time(NULL) * 1000;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(seen.names[i], "list/a");
        assert_string_equal(seen.labels[i], labels[i]);
        assert_string_equal(seen.kinds[i], "mutex");
        assert_int_equal(seen.places[i], i);
        assert_in_range(seen.since[i], now - 60000, now + 60000);
        assert_true(i == 0 || seen.fences[i] > seen.fences[i - 1]);
    }
    assert_int_equal(seen.fences[0], mortise_hold_fence(hold));
    seen = (struct seen){.stop_after = 2};
    assert_int_equal(mortise_list(clients[2], NULL, see, &seen), MORTISE_OK);
    assert_int_equal(seen.count, 2);
    assert_int_equal(mortise_list(clients[2], NULL, NULL, NULL), MORTISE_EINVALID);
    for (int i = 2; i >= 0; i--)
        api_close(clients[i]);
}

/* ----------------------------------------------------------------------- end */

struct waiting {
    mortise_lock *lock;
    int error;
};

static void *wait_for_lock(void *argument)
{
    struct waiting *waiting = argument;
    mortise_hold hold;
    waiting->error = mortise_acquire(waiting->lock, &hold);
    return NULL;
}

static void test_f17_close_with_20_waiting_threads(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *holder = api_open(0);
    mortise_hold hold = api_acquire(api_lock(holder, "close/20"));
    mortise_lock *lock = api_lock(client, "close/20");
    struct waiting waiting[20];
    pthread_t threads[20];
    for (int i = 0; i < 20; i++) {
        waiting[i] = (struct waiting){.lock = lock};
        threads[i] = api_thread(wait_for_lock, &waiting[i]);
    }
    api_await_tickets(holder, "close/20", 2);
    api_sleep_ms(300); /* for all of them to wait: none may come after the close */
    api_close(client);
    for (int i = 0; i < 20; i++) {
        api_join(threads[i]);
        assert_int_equal(waiting[i].error, MORTISE_ECLOSED);
    }
    api_await_tickets(holder, "close/20", 1);
    api_release(hold);
    api_close(holder);
}

static void test_close_releases_everything(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "close/%d", i);
        api_acquire(api_lock(client, name));
        api_acquire(api_lock_of(client, name, MORTISE_OWNER_THREAD));
    }
    api_close(client);
    assert_int_equal(api_tickets(other, NULL), 0);
    api_close(other);
}

/* The answers to the releases are on their way when the connection is closed. */
static void test_close_at_once_after_releases_leaves_nothing(void **state)
{
    (void)state;
    enum { ROUNDS = 20, COUNT = 6 };
    mortise_client *other = api_open(0);
    for (int round = 0; round < ROUNDS; round++) {
        mortise_client *client = api_open(0);
        mortise_hold holds[COUNT];
        for (int i = 0; i < COUNT; i++) {
            char name[32];
            snprintf(name, sizeof name, "close/at-once/%d", i);
            holds[i] = api_acquire(api_lock(client, name));
        }
        for (int i = 0; i < COUNT; i++)
            api_release(holds[i]);
        api_close(client);
        assert_int_equal(api_tickets(other, NULL), 0);
    }
    api_close(other);
}

/* ---------------------------------------------------------------------- fork */

/* In a child: 0 if all went well. */
static int use_in_child(mortise_client *client, mortise_lock *lock, mortise_hold hold)
{
    mortise_hold mine = {NULL, 0};
    mortise_lock *another = NULL;
    mortise_stats stats = {.size = sizeof stats};
    mortise_capabilities can = {.size = sizeof can};
    char node[MORTISE_NODE_SIZE];
    check(mortise_acquire(lock, &mine) == MORTISE_EFORKED);
    check(mortise_try_acquire(lock, &mine) == MORTISE_EFORKED);
    check(mortise_release(hold) == MORTISE_EFORKED);
    check(mortise_mutex_new(client, "fork/new", NULL, &another) == MORTISE_EFORKED);
    check(mortise_acquire_async(lock, INT64_MAX, ignore, NULL, NULL) == MORTISE_EFORKED);
    check(mortise_cancel_waiters(lock) == MORTISE_EFORKED);
    check(mortise_verify(hold, 10) == MORTISE_EFORKED);
    check(mortise_get_stats(client, &stats) == MORTISE_EFORKED);
    check(mortise_get_capabilities(client, &can) == MORTISE_EFORKED);
    check(mortise_list(client, NULL, see, NULL) == MORTISE_EFORKED);
    check(mortise_on_lost(hold, NULL, NULL) == MORTISE_EFORKED);
    check(mortise_on_revoke(hold, NULL, NULL) == MORTISE_EFORKED);
    check(mortise_lost_fd(hold) == MORTISE_EFORKED);
    check(mortise_hold_node(hold, node, sizeof node) == MORTISE_EFORKED);
    check(mortise_downgrade(hold) == MORTISE_EFORKED);
    check(mortise_detach(hold, node) == MORTISE_EFORKED);
    check(mortise_cell_delete_held(client, "fork", 1, hold) == MORTISE_EFORKED);
    check(!mortise_is_held(hold)); /* it is the parent's */
    mortise_lock_free(lock);
    check(mortise_close(client) == MORTISE_OK);
    return 0;
}

static void expect_success(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_fork_leaves_the_parents_locks_alone(void **state)
{
    (void)state;
    mortise_client *client = api_open(0), *other = api_open(0);
    mortise_lock *lock = api_lock(client, "fork");
    mortise_hold hold = api_acquire(lock), refused;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_in_child(client, lock, hold));
    expect_success(child);
    assert_true(mortise_is_held(hold));
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    assert_int_equal(mortise_try_acquire(api_lock(other, "fork"), &refused), MORTISE_EBUSY);
    api_release(hold);
    hold = api_acquire(lock);
    api_release(hold);
    api_close(client);
    api_close(other);
}

/* Of eventfd, epoll and inotify: what a client waits by. Other descriptors of a store may have to
   stay open in a child. */
static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        char path[32], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        count += readlink(path, target, sizeof target) > 5 && memcmp(target, "anon_", 5) == 0;
    }
    return count;
}

static int close_in_child(mortise_client *const clients[2], int before)
{
    for (int i = 0; i < 2; i++)
        check(mortise_close(clients[i]) == MORTISE_OK);
    check(open_descriptors() == before);
    return 0;
}

static void count_call(void *argument, int error, mortise_hold hold)
{
    check(error == MORTISE_OK && mortise_is_held(hold));
    ++*(int *)argument;
}

/* Descriptors that the child closes stay open in the parent, and still tell of news. */
static bool is_embedded(void)
{
    return strncmp(api_url, "sqlite:", 7) == 0;
}

/* In a child: a client of its own excludes the parent's, or the error names the ways. */
static int open_in_child(void)
{
    mortise_client *own = NULL;
    mortise_lock *lock = NULL;
    mortise_hold hold;
    int error = mortise_open(api_url, NULL, &own);
    if (is_embedded()) {
        check(error == MORTISE_EFORKED);
        check(strstr(mortise_error_detail(), "open it after the fork, or exec first"));
        return 0;
    }
    check(error == MORTISE_OK);
    check(mortise_mutex_new(own, "fork/parents", NULL, &lock) == MORTISE_OK);
    check(!api_spans_processes() || mortise_try_acquire(lock, &hold) == MORTISE_EBUSY);
    check(mortise_mutex_new(own, "fork/childs", NULL, &lock) == MORTISE_OK);
    check(mortise_acquire_for(lock, 60000, &hold) == MORTISE_OK);
    check(mortise_release(hold) == MORTISE_OK);
    check(mortise_close(own) == MORTISE_OK);
    return 0;
}

/* The thread sanitizer lets no child of a process with threads start one. */
static bool may_fork_with_threads(void)
{
#if defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    return false;
#else
    return true;
#endif
#else
    return true;
#endif
}

static void test_u20_after_a_fork_a_child_opens_a_client_of_its_own(void **state)
{
    (void)state;
    if (!may_fork_with_threads())
        skip();
    mortise_client *client = api_open(0);
    mortise_hold hold = api_acquire(api_lock(client, "fork/parents"));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(open_in_child());
    expect_success(child);
    assert_int_equal(mortise_verify(hold, 20000), MORTISE_OK);
    api_release(hold);
    api_close(client);
}

struct taking {
    mortise_lock *lock;
    atomic_bool over;
};

static void *take_often(void *argument)
{
    struct taking *taking = argument;
    while (!atomic_load(&taking->over))
        api_release(api_acquire(taking->lock));
    return NULL;
}

/* A thread may have been changing lists at the fork: the child leaves them alone. */
static void test_a_child_closes_a_client_that_was_in_use_at_the_fork(void **state)
{
    (void)state;
    if (!may_fork_with_threads())
        skip();
    mortise_client *client = api_open(0);
    struct taking taking = {.lock = api_lock(client, "fork/in-use")};
    pthread_t thread = api_thread(take_often, &taking);
    for (int i = 0; i < FORKS; i++) {
        api_sleep_ms(1 + i % 3);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(mortise_close(client) != MORTISE_OK);
        expect_success(child);
    }
    atomic_store(&taking.over, true);
    api_join(thread);
    api_close(client);
}

/* When those of clients that were closed before have gone: a handle may end on a thread. */
static int settled_descriptors(void)
{
    int count = open_descriptors();
    for (int same = 0; same < 20; same++) {
        int before = count;
        api_sleep_ms(10);
        count = open_descriptors();
        if (count != before)
            same = 0;
    }
    return count;
}

static void test_fork_leaves_no_descriptor_in_a_child_that_closes(void **state)
{
    (void)state;
    int before = settled_descriptors(), calls = 0;
    mortise_client *clients[2] = {api_open(0), api_open(MORTISE_FOREIGN_LOOP)};
    mortise_hold hold = api_acquire(api_lock(clients[0], "fork/fd"));
    mortise_lock *lock = api_lock(clients[1], "fork/fd");
    int lost = mortise_lost_fd(hold), fd = mortise_fd(clients[1]);
    assert_true(lost >= 0 && fd >= 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(close_in_child(clients, before));
    expect_success(child);
    assert_int_equal(mortise_lost_fd(hold), lost);
    check(mortise_acquire_async(lock, INT64_MAX, count_call, &calls, NULL) == MORTISE_OK);
    api_release(hold);
    int64_t begin = mortise_now_ns();
    while (calls == 0) {
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        check(poll(&poller, 1, mortise_next_timeout_ms(clients[1])) >= 0);
        check(mortise_process(clients[1]) == MORTISE_OK);
        check(api_ms_since(begin) < api_await_ms);
    }
    api_close(clients[1]);
    api_close(clients[0]);
}

/* ------------------------------------------------------------------- signals */

static void interrupted(int number)
{
    (void)number;
}

static void test_waiting_survives_signals(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = interrupted}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    mortise_client *client = api_open(0), *holder = api_open(0);
    mortise_hold hold = api_acquire(api_lock(holder, "signals"));
    struct waiting waiting = {.lock = api_lock(client, "signals")};
    pthread_t thread = api_thread(wait_for_lock, &waiting);
    api_await_tickets(holder, "signals", 2);
    for (int i = 0; i < 50; i++) {
        pthread_kill(thread, SIGUSR1);
        api_sleep_ms(1);
    }
    assert_int_equal(api_tickets(holder, "signals"), 2);
    api_release(hold);
    api_join(thread);
    assert_int_equal(waiting.error, MORTISE_OK);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    api_close(client);
    api_close(holder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u46_options_are_checked),
        cmocka_unit_test(test_u14_u38_null_is_an_error_everywhere),
        cmocka_unit_test(test_uris_are_checked),
        cmocka_unit_test(test_j9_the_environment_names_the_store),
        cmocka_unit_test(test_j9_the_default_is_a_file_in_the_state_directory),
        cmocka_unit_test(test_h7_names_are_checked_before_anything_is_asked),
        cmocka_unit_test(test_lock_options_are_checked),
        cmocka_unit_test(test_namespaces_do_not_share_locks),
        cmocka_unit_test(test_se_03_names_that_differ_by_slashes_are_different_locks),
        cmocka_unit_test(test_c13_opening_and_naming_make_no_request),
        cmocka_unit_test(test_stats_and_capabilities),
        cmocka_unit_test(test_url_is_the_address),
        cmocka_unit_test(test_d1_f12_list_shows_holders_and_waiters_in_order),
        cmocka_unit_test(test_f17_close_with_20_waiting_threads),
        cmocka_unit_test(test_close_releases_everything),
        cmocka_unit_test(test_close_at_once_after_releases_leaves_nothing),
        cmocka_unit_test(test_fork_leaves_the_parents_locks_alone),
        cmocka_unit_test(test_u20_after_a_fork_a_child_opens_a_client_of_its_own),
        cmocka_unit_test(test_a_child_closes_a_client_that_was_in_use_at_the_fork),
        cmocka_unit_test(test_fork_leaves_no_descriptor_in_a_child_that_closes),
        cmocka_unit_test(test_waiting_survives_signals),
    };
    int failed = api_begin(argc, argv);
    return failed ? failed : api_end(cmocka_run_group_tests(tests, NULL, NULL));
}
