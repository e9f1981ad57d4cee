/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of the server's own (store/sql/native/native.h) on a driver that is told what becomes of
 * each request: what no real server does when it is asked to. A request may be lost on its way or
 * after it was done, an answer kept back, a pooler may answer from elsewhere, memory may be
 * missing: at every place in turn.
 *
 * The server is one lock. It is a connection's, and free when that ends.
 */
#include "cmocka_all.h"

#include "store/sql/answer.h"
#include "store/sql/connection.h"
#include "store/sql/driver.h"
#include "store/sql/list.h"
#include "store/sql/native/calls.h"
#include "store/sql/native/native.h"
#include "store/sql/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ------------------------------------------------------------------ time and memory */

mrt_time __wrap_mrt_time_now(void);

static mrt_time clock_now = MRT_SECOND;

mrt_time __wrap_mrt_time_now(void)
{
    return clock_now;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static int allocations_left = -1; /* until one fails; -1: none does */
static int failures_left;         /* then so many fail */

void *__wrap_calloc(size_t count, size_t size)
{
    if (allocations_left > 0)
        allocations_left--;
    else if (allocations_left == 0 && failures_left > 0 && failures_left--)
        return NULL;
    return __real_calloc(count, size);
}

/* ------------------------------------------------------------------ the server */

enum fate { PASS, KEEP_BACK, LOSE_BEFORE, LOSE_AFTER };

struct mrt_sql_driver {
    bool connected;
    int socket;
};

static struct mrt_sql_driver *owner; /* whose connection has the lock */
static enum fate fates[MRT_NATIVE_STEPS];
static int sends_left = -1; /* until one meets this fate */
static enum fate fate_then;
static int answers_left = -1; /* until none is left; -1: there are always */
static bool elsewhere;        /* answers come from another process than the connection's */
static bool demoted;          /* the server has become read-only */

const char mrt_sql_product[] = "Fake";
const bool mrt_sql_notifies = false;
const bool mrt_sql_async_commit = false;
const bool mrt_sql_removes_last = false;
const int mrt_sql_schema_version = 1;
const bool mrt_sql_named_shares = false;
const bool mrt_sql_shows_rows = false;

int mrt_sql_driver_open(struct mrt_sql_store *store, const struct mrt_uri *uri)
{
    store->driver = calloc(1, sizeof *store->driver);
    if (!store->driver)
        return MORTISE_ENOMEM;
    store->driver->socket = -1;
    return mrt_sql_common(uri, &store->address);
}

void mrt_sql_driver_connect(struct mrt_sql_store *store)
{
    store->driver->socket = eventfd(1, EFD_CLOEXEC); /* there is always something to do */
    store->driver->connected = true;
    mrt_sql_watch(store, store->driver->socket, 1);
}

void mrt_sql_driver_go_on(struct mrt_sql_store *store, mrt_time now)
{
    mrt_sql_check(store, now);
}

void mrt_sql_driver_disconnect(struct mrt_sql_store *store)
{
    if (owner == store->driver)
        owner = NULL;
    if (store->driver->connected)
        close(store->driver->socket);
    store->driver->connected = false;
}

void mrt_sql_driver_free(struct mrt_sql_store *store)
{
    if (store->driver)
        mrt_sql_driver_disconnect(store);
    free(store->driver);
}

int mrt_sql_driver_leave(struct mrt_sql_store *store)
{
    (void)store;
    return -1;
}

void mrt_sql_driver_check(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    (void)request;
    mrt_sql_connected(store);
}

bool mrt_sql_driver_same(struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    (void)store, (void)request;
    return !elsewhere;
}

bool mrt_sql_driver_writable(const struct mrt_sql_request *request)
{
    (void)request;
    return !demoted;
}

uint64_t mrt_sql_driver_to_kill(const struct mrt_sql_store *store)
{
    return store->state == MRT_SQL_READY;
}

const struct mrt_sql_code mrt_sql_codes[] = {{"", MRT_SQL_FAILED, MORTISE_ESTORE, NULL}};

int mrt_sql_server(struct mrt_store *port, char *text, size_t size)
{
    (void)port, (void)text, (void)size;
    return MORTISE_ENOTSUPPORTED;
}

/* A row is what a step returns: whether it is had, and that it is there. */
int mrt_sql_rows_count(void *rows)
{
    (void)rows;
    return 1;
}

const char *mrt_sql_rows_text(void *rows, int row, int column)
{
    (void)row;
    return column == 0 ? rows : "1";
}

void mrt_sql_rows_free(void *rows)
{
    free(rows);
}

static enum mrt_native_step step_of(const struct mrt_sql_store *store,
                                    const struct mrt_sql_request *request)
{
    return (enum mrt_native_step)((int)request->kind - (int)store->steps);
}

void mrt_sql_driver_send(struct mrt_sql_store *store, struct mrt_sql_request *request, mrt_time now)
{
    (void)store;
    request->sent = now;
}

/* The server's part; true if the caller has the lock. */
static bool serve(struct mrt_sql_driver *driver, enum mrt_native_step step)
{
    bool had = owner == driver;
    if (!owner && (step == MRT_NATIVE_TRY || step == MRT_NATIVE_WAIT || step == MRT_NATIVE_MAKE))
        owner = driver;
    if (had && step == MRT_NATIVE_LEAVE)
        owner = NULL;
    return had || owner == driver;
}

static enum fate fate_of(enum mrt_native_step step)
{
    if (sends_left < 0 || sends_left-- > 0)
        return fates[step];
    return fate_then;
}

void mrt_sql_driver_turn(struct mrt_sql_store *store, mrt_time now)
{
    struct mrt_sql_request *request;
    while (!store->broken && (request = TAILQ_FIRST(&store->sent))) {
        enum mrt_native_step step = step_of(store, request);
        if (step == MRT_NATIVE_WAIT && owner && owner != store->driver)
            return;
        if (fates[step] == KEEP_BACK || answers_left == 0)
            return;
        answers_left -= answers_left > 0;
        enum fate fate = fate_of(step);
        bool has = fate != LOSE_BEFORE && serve(store->driver, step);
        if (fate != PASS) {
            store->broken = true;
            return;
        }
        TAILQ_REMOVE(&store->sent, request, link);
        request->rows = strdup(has ? "1" : "0");
        mrt_sql_finish(store, request, now);
    }
}

/* ------------------------------------------------------------------ the client */

static const enum mrt_sql_kind forms[] = {MRT_SQL_DO_NAMED, MRT_SQL_DO_ROW};
#define FORMS (int)(sizeof forms / sizeof forms[0])
#define TICKETS 5
#define SERIALS 32

enum belief { NOTHING, HELD, TO_LOOK };

static struct mrt_store *store;
static const struct mrt_id session = {7, 7};
static uint64_t serial;
static int answers[SERIALS];
static bool taken[SERIALS];
static struct mrt_event newest[SERIALS];
static enum belief beliefs[TICKETS];

static struct mrt_native_link *link_of(size_t ticket)
{
    return mrt_native_link_of(mrt_sql_of(store), (struct mrt_id){ticket, 1});
}

static bool has_lock(size_t ticket)
{
    const struct mrt_native_link *link = link_of(ticket);
    return link && owner && link->store.driver == owner;
}

static void believe(const struct mrt_event *event)
{
    size_t ticket = event->ticket.high;
    for (size_t i = 1; i < TICKETS; i++)
        if (event->type == MRT_RENEWED && beliefs[i] == HELD)
            assert_true(has_lock(i)); /* or it would be for another lease */
    if (ticket == 0 || ticket >= TICKETS) {
        for (size_t i = 1; i < TICKETS; i++)
            if (event->type == MRT_WAKE && beliefs[i] == HELD)
                beliefs[i] = TO_LOOK;
    } else if (event->type == MRT_VIEW && event->weight_ahead == 0) {
        assert_true(has_lock(ticket));
        beliefs[ticket] = HELD;
    } else if (event->type == MRT_WAKE && beliefs[ticket] == HELD) {
        beliefs[ticket] = TO_LOOK;
    } else if (event->type == MRT_GONE || event->type == MRT_REMOVED) {
        beliefs[ticket] = NOTHING;
    }
}

static void deliver(void *context, const struct mrt_event *event)
{
    (void)context;
    assert_true(event->serial < SERIALS);
    answers[event->serial] += event->serial > 0;
    newest[event->serial] = *event;
    believe(event);
}

static void notify(void *context)
{
    (void)context;
}

static bool open_form(enum mrt_sql_kind first)
{
    static struct mrt_uri uri;
    const struct mrt_sink sink = {deliver, notify, NULL};
    const struct mrt_store_options options = {.label = "test"};
    assert_int_equal(mrt_uri_parse("fake://x?form=fake&lease=60s", &uri), 0);
    serial = 0;
    owner = NULL;
    memset(fates, 0, sizeof fates);
    answers_left = -1;
    memset(answers, 0, sizeof answers);
    memset(taken, 0, sizeof taken);
    memset(beliefs, 0, sizeof beliefs);
    return (first == MRT_SQL_DO_ROW ? mrt_native_open_row : mrt_native_open_named)(
               &uri, &options, sink, &store) == MORTISE_OK;
}

static uint64_t submit(enum mrt_command_type type, size_t ticket, bool try_only)
{
    const struct mrt_command command = {.type = type,
                                        .serial = ++serial,
                                        .session = session,
                                        .ticket = {ticket, ticket ? 1 : 0},
                                        .queue = "one",
                                        .kind = "mutex",
                                        .weight = 1,
                                        .capacity = 1,
                                        .try_only = try_only};
    clock_now += MRT_MILLISECOND;
    taken[serial] = mrt_native_submit(store, &command, 0);
    return serial;
}

/* Until nothing is due within a second: pauses before another attempt are shorter. */
static void work(void)
{
    for (int idle = 0; idle < 3;) {
        mrt_time next = mrt_native_next(store);
        clock_now += MRT_MILLISECOND;
        idle = next > clock_now + MRT_SECOND ? idle + 1 : 0;
        if (next > clock_now && idle == 0)
            clock_now = next;
        mrt_native_process(store, clock_now);
    }
}

/* Gives up whatever of it there may be, as the engine does. */
static void remove_ticket(size_t ticket)
{
    beliefs[ticket] = NOTHING;
    submit(MRT_REMOVE, ticket, false);
}

static void check_answers(void)
{
    for (uint64_t i = 1; i <= serial; i++)
        assert_int_equal(answers[i], taken[i]);
}

/* ------------------------------------------------------------------ a fault at every place */

/* All that is done to locks: had, tried for, waited for, given up, given back, inherited. */
static void live(void)
{
    submit(MRT_START, 0, false);
    work();
    submit(MRT_APPEND, 1, false);
    work();
    submit(MRT_RENEW, 0, false);
    submit(MRT_APPEND, 2, true);
    submit(MRT_APPEND, 3, false);
    work();
    remove_ticket(3);
    submit(MRT_APPEND, 4, false);
    work();
    submit(MRT_REFRESH, 1, false);
    submit(MRT_RENEW, 0, false);
    work();
    remove_ticket(1);
    work();
    submit(MRT_RENEW, 0, false);
    submit(MRT_REFRESH, 4, false);
    work();
    submit(MRT_RENEW, 0, false);
    submit(MRT_STOP, 0, false);
    memset(beliefs, 0, sizeof beliefs);
    work();
}

/* -1: never. After so many requests one is lost; after so many allocations some fail. */
struct faults {
    int request;
    enum fate fate;
    int allocation, failures;
};

static bool is_met(const struct faults *faults)
{
    bool lost = faults->request < 0 || sends_left < 0;
    return lost && (faults->allocation < 0 || failures_left < faults->failures);
}

/* True: the faults were met. */
static bool live_with(enum mrt_sql_kind form, struct faults faults)
{
    bool met = true;
    sends_left = faults.request;
    fate_then = faults.fate;
    allocations_left = faults.allocation;
    failures_left = faults.failures;
    if (open_form(form)) {
        live();
        met = is_met(&faults);
        check_answers();
        if (taken[serial])
            assert_null(owner); /* no connection has it that nobody has */
        mrt_native_close(store);
        assert_null(owner);
    }
    allocations_left = sends_left = -1;
    return met;
}

static void live_with_lost(enum fate fate)
{
    for (int form = 0; form < FORMS; form++) {
        struct faults faults = {.fate = fate, .allocation = -1};
        while (live_with(forms[form], faults))
            faults.request++;
        assert_in_range(faults.request, 15, 100);
    }
}

static void test_sq_07_a_request_is_lost_at_every_place(void **state)
{
    (void)state;
    live_with_lost(LOSE_BEFORE);
}

static void test_sq_07_an_answer_is_lost_at_every_place(void **state)
{
    (void)state;
    live_with_lost(LOSE_AFTER);
}

static void test_memory_is_missing_at_every_place(void **state)
{
    (void)state;
    for (int form = 0; form < FORMS; form++)
        for (int failures = 1; failures <= 3; failures++) {
            struct faults faults = {.request = -1, .failures = failures};
            while (live_with(forms[form], faults))
                faults.allocation++;
            assert_in_range(faults.allocation, 20, 200);
        }
}

/* The loss that follows from the one fault may not be told for the other. */
static void test_sq_07_a_request_is_lost_and_memory_is_missing(void **state)
{
    (void)state;
    for (int form = 0; form < FORMS; form++)
        for (int request = 0; request < 30; request++)
            for (int allocation = 0; allocation < 60; allocation++)
                live_with(forms[form], (struct faults){request, LOSE_AFTER, allocation, 1});
}

/* ------------------------------------------------------------------ proofs */

/* A ticket whose grant was asked for before the newest RENEW, and is being proved. */
static uint64_t begin_proof(void)
{
    assert_true(open_form(MRT_SQL_DO_NAMED));
    submit(MRT_START, 0, false);
    work();
    mrt_sql_of(store)->form->shown =
        true; /* by an earlier grant: the first one is looked at, not proved */
    fates[MRT_NATIVE_TRY] = KEEP_BACK;
    uint64_t append = submit(MRT_APPEND, 1, false);
    submit(MRT_RENEW, 0, false);
    fates[MRT_NATIVE_TRY] = PASS;
    fates[MRT_NATIVE_PROVE] = KEEP_BACK;
    work();
    assert_int_equal(answers[append], 0);
    assert_int_equal(link_of(1)->state, MRT_NATIVE_PROVING);
    return append;
}

static void end_proof(void)
{
    mrt_native_close(store);
}

static void test_c12_a_proof_that_is_older_than_a_renewal_is_no_proof(void **state)
{
    (void)state;
    uint64_t append = begin_proof();
    uint64_t renew = submit(MRT_RENEW, 0, false);
    work();
    assert_int_equal(newest[renew].type, MRT_RENEWED); /* this ticket is not among what is held */
    fates[MRT_NATIVE_PROVE] = PASS;
    answers_left = 1;
    work();
    assert_int_equal(answers_left, 0);
    assert_int_equal(answers[append], 0); /* another proof is on its way */
    answers_left = -1;
    work();
    assert_int_equal(newest[append].type, MRT_VIEW);
    end_proof();
}

/* Of the first renewal there was memory for one of two proofs. */
static void test_c12_the_proof_of_one_renewal_does_not_answer_the_next(void **state)
{
    (void)state;
    assert_true(open_form(MRT_SQL_DO_NAMED));
    submit(MRT_START, 0, false);
    work();
    submit(MRT_APPEND, 1, false);
    work();
    owner = NULL; /* of two locks, this server knows the one */
    submit(MRT_APPEND, 2, false);
    work();
    assert_int_equal(link_of(1)->state + link_of(2)->state, 2 * MRT_NATIVE_HELD);
    beliefs[1] = NOTHING;
    fates[MRT_NATIVE_PROVE] = KEEP_BACK;
    allocations_left = 2; /* the command's, and one proof's */
    failures_left = 1;
    uint64_t first = submit(MRT_RENEW, 0, false);
    assert_int_equal(failures_left, 0);
    assert_int_equal(newest[first].type, MRT_UNKNOWN);
    uint64_t second = submit(MRT_RENEW, 0, false);
    fates[MRT_NATIVE_PROVE] = PASS;
    answers_left = 2; /* the first one's, and the second's of the other */
    work();
    assert_int_equal(answers_left, 0);
    assert_int_equal(answers[second], 0);
    answers_left = -1;
    work();
    assert_int_equal(newest[second].type, MRT_RENEWED);
    end_proof();
}

/* With this the answer to a proof says that it is worth nothing. */
static void prove_in_vain(bool *reason)
{
    uint64_t append = begin_proof();
    *reason = true;
    fates[MRT_NATIVE_PROVE] = PASS;
    work();
    *reason = false;
    assert_int_equal(answers[append], 1);
    assert_int_not_equal(newest[append].type, MRT_VIEW);
    assert_null(owner);
    end_proof();
}

static void test_sq_10_a_proof_of_another_server_is_no_grant(void **state)
{
    (void)state;
    prove_in_vain(&elsewhere);
}

static void test_sq_09_a_proof_of_a_server_that_is_read_only_is_no_grant(void **state)
{
    (void)state;
    prove_in_vain(&demoted);
}

static int lease_of(const char *text, mrt_time *lease)
{
    char uri[64];
    struct mrt_uri parsed;
    struct mrt_sql_address address;
    snprintf(uri, sizeof uri, "postgresql://h/d?lease=%s", text);
    assert_int_equal(mrt_uri_parse(uri, &parsed), MORTISE_OK);
    int error = mrt_sql_common(&parsed, &address);
    *lease = address.lease;
    return error;
}

/* Ten of them may be counted in a clock. */
static void test_a_lease_is_of_half_a_second_to_a_day(void **state)
{
    (void)state;
    static const char *const refused[] = {"",           "s",           "-1s",        "1",
                                          "1m",         "499ms",       "86401s",     "86400001ms",
                                          "999999999s", "1000000000s", "9999999999s"};
    mrt_time lease;
    assert_int_equal(lease_of("500ms", &lease), MORTISE_OK);
    assert_int_equal(lease, 500 * MRT_MILLISECOND);
    assert_int_equal(lease_of("86400s", &lease), MORTISE_OK);
    assert_int_equal(lease, 86400 * MRT_SECOND);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(lease_of(refused[i], &lease), MORTISE_EURI);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lease_is_of_half_a_second_to_a_day),
        cmocka_unit_test(test_sq_07_a_request_is_lost_at_every_place),
        cmocka_unit_test(test_sq_07_an_answer_is_lost_at_every_place),
        cmocka_unit_test(test_memory_is_missing_at_every_place),
        cmocka_unit_test(test_sq_07_a_request_is_lost_and_memory_is_missing),
        cmocka_unit_test(test_c12_a_proof_that_is_older_than_a_renewal_is_no_proof),
        cmocka_unit_test(test_c12_the_proof_of_one_renewal_does_not_answer_the_next),
        cmocka_unit_test(test_sq_10_a_proof_of_another_server_is_no_grant),
        cmocka_unit_test(test_sq_09_a_proof_of_a_server_that_is_read_only_is_no_grant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
