/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store's rules, on a fake of an API server, with answers that a network, a proxy or
 * another program may bring about: one that is lost, that comes late, that is of a former state, or
 * that is no Lease. The store's own calls are led astray (k8s_stray.h), so a test needs no luck
 * with time.
 *
 * Built with seeded defects it is the measure of itself (defect_run.h). Its argument is a URI;
 * without one it starts a server.
 */
#include "cmocka_all.h"
#include "core/rule.h"
#include "defect_run.h"
#include "live/k8s_stray.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LONG (5 * MRT_SECOND)
#define SHORT (50 * MRT_MILLISECOND)
#define ALL 1000

static const char *uri;
static struct port_client holder, waiter;

/* The wall clock stands still there; 0: it does not. In the place of the C library's. */
static time_t still;
int clock_gettime(clockid_t clock, struct timespec *time)
{
    long result = syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME && still)
        *time = (struct timespec){.tv_sec = still};
    return (int)result;
}

/* How often memory was freed that has this text. */
static struct {
    const char *text; /* NULL: nobody looks */
    unsigned times;
} remains;

void __real_free(void *memory);
void __wrap_free(void *memory);
void __real_curl_slist_free_all(struct curl_slist *list);
void __wrap_curl_slist_free_all(struct curl_slist *list);

void __wrap_free(void *memory)
{
    size_t size = memory && remains.text ? malloc_usable_size(memory) : 0;
    remains.times += size > 0 && memmem(memory, size, remains.text, strlen(remains.text));
    __real_free(memory);
}

void __wrap_curl_slist_free_all(struct curl_slist *list)
{
    for (const struct curl_slist *entry = list; entry && remains.text; entry = entry->next)
        remains.times += strstr(entry->data, remains.text) != NULL;
    __real_curl_slist_free_all(list);
}

/* A lock of this test alone; its Lease has the same name. */
static const char *lock;

static int open_both(void **state)
{
    static char name[64];
    static unsigned count;
    snprintf(name, sizeof name, "rules-%d-%u", (int)getpid(), count++);
    (void)state;
    lock = name;
    port_open_session(&holder, uri);
    port_open_session(&waiter, uri);
    holder.lease = waiter.lease = 0; /* each RENEW is a test's own */
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    still = 0;
    stray_end();
    port_close(&holder);
    port_close(&waiter);
    return 0;
}

static bool is_granted(struct mrt_event event)
{
    return event.type == MRT_VIEW && mrt_rule_grants(event.weight_ahead, 1, 1);
}

static bool waits(struct mrt_event event)
{
    return event.type == MRT_VIEW && !is_granted(event);
}

static struct mrt_event renew(struct port_client *client)
{
    struct mrt_command command = port_command(client, MRT_RENEW);
    return port_send(client, &command);
}

/* An APPEND whose ticket wants to be told of what others do. */
static struct mrt_event append_closely(struct port_client *client)
{
    struct mrt_command command = port_append_command(client, lock);
    command.watch_closely = true;
    return port_send(client, &command);
}

/* A text of the Lease's spec; "" if there is none, and if there is no Lease. */
static const char *spec_text(const char *field)
{
    static char text[128];
    struct json_object *json = lease_read(&waiter, lock);
    snprintf(text, sizeof text, "%s", mrt_rest_string(mrt_rest_member(json, "spec"), field));
    json_object_put(json);
    return text;
}

static int64_t spec_number(const char *field)
{
    struct json_object *json = lease_read(&waiter, lock);
    int64_t number = mrt_rest_number(mrt_rest_member(json, "spec"), field);
    json_object_put(json);
    return number;
}

static bool is_free(void)
{
    return *spec_text("holderIdentity") == '\0';
}

/* ------------------------------------------------------------ writes in doubt */

static void test_an_own_creation_whose_answer_was_lost_is_recognised(void **state)
{
    (void)state;
    stray_lead(&holder, "POST", STRAY_LOST, 1);
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_int_equal(stray_count(), 1);
    assert_true(is_granted(view));
    assert_int_equal(view.fence, 1);
    assert_int_equal(spec_number("leaseTransitions"), 0);
}

static void test_a_ticket_whose_write_comes_late_is_nobodys(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_REMOVED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
}

static void test_a_ticket_whose_creation_comes_late_is_nobodys(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    stray_lead(&holder, "POST", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    stray_lead(&holder, "POST", STRAY_NOT, ALL);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_REMOVED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
    assert_true(is_granted(port_try(&waiter, lock, port_id())));
}

static void test_of_a_session_that_ends_no_late_write_is_done(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, port_id()).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_stop(&holder).type, MRT_STOPPED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
}

static void test_a_release_that_comes_late_ends_no_other_hold(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&holder, lock, port_id());
    stray_lead(&holder, "PUT", STRAY_LATE, 1);
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
    assert_true(is_free());
    assert_true(is_granted(port_append(&waiter, lock, port_id())));
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_false(is_free());
}

/* ------------------------------------------------------------ renewals */

static void test_a_renewal_whose_answer_was_lost_is_written_once_more(void **state)
{
    (void)state;
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    stray_lead(&holder, "PUT", STRAY_LOST, 1);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    assert_int_equal(stray_count(), 1);
}

static void test_a_renewal_that_never_arrives_proves_nothing(void **state)
{
    (void)state;
    struct mrt_event view = port_append(&holder, lock, port_id());
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(renew(&holder).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    lease_write(&waiter, lock, "{\"holderIdentity\": \"robber\"}");
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_int_equal(renew(&holder).type, MRT_RENEWED); /* of the session: a ticket is lost */
    assert_int_equal(port_refresh(&holder, lock, &view).type, MRT_GONE);
    assert_string_equal(spec_text("holderIdentity"), "robber");
}

/* A change of the whole second, too: client-go reads no more of the time. */
static void test_renewals_differ_though_the_wall_clock_stands_still(void **state)
{
    (void)state;
    char first[32], second[32];
    still = 1800000000;
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    snprintf(first, sizeof first, "%s", spec_text("renewTime"));
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    snprintf(second, sizeof second, "%s", spec_text("renewTime"));
    assert_string_not_equal(first, second);
    still -= 1; /* stepped back */
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, MRT_SECOND, NULL);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    assert_true(strcmp(spec_text("renewTime"), second) > 0);
    assert_memory_not_equal(spec_text("renewTime"), first, strlen("2027-01-15T08:00:00"));
}

/* The RENEW would prove a hold that it has not written. */
static void test_a_grant_behind_a_renew_is_written_once_more(void **state)
{
    (void)state;
    struct mrt_command command = port_append_command(&holder, lock);
    stray_lead(&holder, "POST", STRAY_HELD, 1);
    assert_true(holder.ops->submit(holder.store, &command, MRT_TIME_NEVER));
    for (mrt_time end = mrt_time_now() + LONG; spec_text("holderIdentity")[0] == '\0';) {
        port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, 5 * MRT_MILLISECOND, NULL);
        assert_true(mrt_time_now() < end);
    }
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    stray_release();
    assert_true(is_granted(port_answer(&holder, command.serial)));
    assert_int_equal(stray_count(), 1);
}

/* ------------------------------------------------------------ what others write */

static struct mrt_k8s_queue *queue_of(struct port_client *client)
{
    struct mrt_k8s_queue *queue;
    TAILQ_FOREACH (queue, &store_of(client)->queues, link)
        if (strcmp(queue->full, lock) == 0)
            return queue;
    fail();
    return NULL;
}

static void test_an_event_of_a_former_state_wakes_nobody(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    struct json_object *former = lease_read(&waiter, lock);
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    watch_shows(&waiter, "MODIFIED", former);
    assert_false(port_wait_told(&waiter, view.ticket, SHORT));
    assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
}

static void test_an_event_of_a_deleted_lease_is_not_the_next_ones(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    struct json_object *former = lease_read(&waiter, lock), *again = json_object_get(former);
    lease_delete(&waiter, lock);
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    watch_shows(&waiter, "MODIFIED", former);
    watch_shows(&waiter, "DELETED", again);
    assert_false(port_wait_told(&waiter, view.ticket, SHORT));
    assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
}

static void test_a_record_counts_for_its_time_since_its_newest_change(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"holderIdentity\": \"other\", \"leaseDurationSeconds\": 1}");
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    port_wait_told(&waiter, view.ticket, 100 * MRT_MILLISECOND);
    mrt_time renewed = mrt_time_now();
    lease_write(&waiter, lock, "{\"renewTime\": \"2020-01-01T00:00:00.000000Z\"}");
    port_wait_granted(&waiter, lock, view, 1, 1, LONG);
    assert_true(mrt_time_now() - renewed >= MRT_SECOND);
    assert_int_equal(spec_number("leaseTransitions"), 1);
}

/* The one of another program, and of a server that drops a zero. */
static void test_a_record_that_says_no_time_counts_for_some(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"holderIdentity\": \"other\"}");
    mrt_time now = mrt_time_now();
    assert_true(waits(port_append(&waiter, lock, port_id())));
    mrt_time left = mrt_k8s_lease_end(&queue_of(&waiter)->lease) - now;
    assert_true(left >= 15 * MRT_SECOND);
    assert_true(left < 16 * MRT_SECOND);
    assert_int_equal(port_try(&holder, lock, port_id()).type, MRT_BLOCKED);
}

static void test_a_deletion_ends_a_hold(void **state)
{
    (void)state;
    watches_begin_late();
    struct mrt_event view = append_closely(&holder);
    assert_true(is_granted(view));
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL); /* the watch begins */
    lease_delete(&waiter, lock);
    assert_true(port_wait_told(&holder, view.ticket, LONG));
    assert_int_equal(port_refresh(&holder, lock, &view).type, MRT_GONE);
}

/* A server that has no room for watches says so on each. */
static void test_watches_that_end_by_an_error_pause(void **state)
{
    (void)state;
    assert_true(is_granted(append_closely(&holder)));
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    unsigned count = watch_count();
    for (int i = 0; i < 5; i++) {
        watch_shows(&holder, "ERROR", json_object_new_object());
        port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, 5 * MRT_MILLISECOND, NULL);
    }
    assert_in_range(watch_count(), count, count + 2);
}

/* It has read the Lease in a list alone, which does not say what it is. */
static void test_a_write_behind_a_list_says_what_it_is(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    assert_int_equal(port_observe(&holder, lock, port_id()).type, MRT_HOLDER);
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    watch_shows(&holder, "ERROR", json_object_new_object());
    assert_int_equal(port_observe(&holder, lock, port_id()).type, MRT_HOLDER);
    stray_lead(&holder, "GET", STRAY_NOT, ALL);
    for (mrt_time end = mrt_time_now() + LONG; stray_count() == 0 && mrt_time_now() < end;)
        port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, 20 * MRT_MILLISECOND, NULL);
    assert_int_equal(stray_count(), 1);
    port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, port_id()).type, MRT_UNKNOWN);
    assert_non_null(strstr(late_body(), "\"kind\":\"Lease\""));
}

/* By a client that has seen the Lease before; no other knows what it was. */
static void test_a_holder_behind_a_deletion_has_a_larger_fence(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&holder, lock, port_id());
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    lease_delete(&waiter, lock);
    port_wait_granted(&waiter, lock, view, 1, 1, LONG);
    view = port_refresh(&waiter, lock, &view);
    assert_true(view.fence > held.fence);
}

/* Annotations that a former holder of ours has left are not the next one's. */
static void test_notes_of_a_former_holder_do_not_count(void **state)
{
    (void)state;
    assert_true(is_granted(port_append_value(&holder, lock, "ours")));
    lease_write(&waiter, lock, "{\"holderIdentity\": \"theirs\"}");
    assert_int_equal(port_observe(&waiter, lock, (struct mrt_id){0, 0}).type, MRT_HOLDER);
    assert_string_equal(waiter.value, "theirs");
    assert_true(waits(port_append(&waiter, lock, port_id()))); /* a mutex, and no election */
}

/* ------------------------------------------------------------ odd servers */

static void set_kind(struct json_object *json)
{
    json_object_object_add(json, "kind", json_object_new_string("Status"));
    json_object_object_del(json, "spec");
}

static void set_name(struct json_object *json)
{
    json_object_object_add(mrt_rest_member(json, "metadata"), "name",
                           json_object_new_string("another"));
    json_object_object_del(json, "spec");
}

/* An answer that is JSON, and says 200, but is not of this Lease. */
static void test_an_answer_that_is_no_lease_is_not_believed(void **state)
{
    (void)state;
    static stray_changer *const changers[] = {set_kind, set_name};
    stray_change(&waiter, "GET", set_kind, 1);
    assert_int_equal(port_start(&waiter).type, MRT_FAILED);
    struct mrt_event held = port_append(&holder, lock, port_id());
    for (int i = 0; i < 2; i++) {
        struct mrt_id ticket = port_id();
        stray_change(&waiter, "GET", changers[i], ALL);
        assert_int_equal(port_append(&waiter, lock, ticket).type, MRT_UNKNOWN);
        stray_change(&waiter, "GET", changers[i], 1);
        assert_int_equal(port_append(&waiter, lock, ticket).type, MRT_UNKNOWN);
        assert_true(waits(port_append(&waiter, lock, ticket)));
        watch_shows(&waiter, "MODIFIED", json_object_new_object());
        assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
        assert_int_equal(port_remove(&waiter, lock, ticket, 0).type, MRT_REMOVED);
        stray_change(&holder, "PUT", changers[i], 1);
        assert_int_equal(renew(&holder).type, MRT_RENEWED);
        stray_change(&holder, "PUT", changers[i], ALL);
        assert_int_equal(renew(&holder).type, MRT_UNKNOWN);
    }
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_refresh(&holder, lock, &held).type, MRT_VIEW);
}

static void test_a_creation_that_is_answered_by_something_else_is_recognised(void **state)
{
    (void)state;
    stray_change(&holder, "POST", set_kind, 1);
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(view.fence, 1);
    stray_change(&holder, "PUT", set_name, 1);
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
    assert_true(is_free());
}

/* The server does not know the selector of a list. */
static void add_another_item(struct json_object *json)
{
    struct json_object *items = mrt_rest_member(json, "items"), *own, *other = NULL;
    if (!items || !(own = json_object_array_get_idx(items, 0)))
        return;
    json_object_get(own);
    assert_int_equal(json_object_deep_copy(own, &other, NULL), 0);
    set_name(other);
    json_object_array_put_idx(items, 0, other);
    json_object_array_add(items, own);
}

static void test_of_a_list_the_own_lease_counts_alone(void **state)
{
    (void)state;
    assert_true(is_granted(port_append(&holder, lock, port_id())));
    struct mrt_event view = port_append(&waiter, lock, port_id());
    assert_true(waits(view));
    port_wait(&waiter, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    stray_change(&waiter, "GET", add_another_item, ALL);
    watch_shows(&waiter, "ERROR", json_object_new_object());
    for (mrt_time end = mrt_time_now() + LONG; stray_count() == 0 && mrt_time_now() < end;)
        port_wait(&waiter, MRT_STOPPED, (struct mrt_id){0, 0}, 20 * MRT_MILLISECOND, NULL);
    port_wait(&waiter, MRT_STOPPED, (struct mrt_id){0, 0}, SHORT, NULL);
    assert_false(mrt_k8s_queue_is_free(queue_of(&waiter), mrt_time_now()));
}

static void set_spec(struct json_object *json, const char *field, struct json_object *value)
{
    json_object_object_add(mrt_rest_member(json, "spec"), field, value);
}

static void set_huge_transitions(struct json_object *json)
{
    set_spec(json, "leaseTransitions", json_object_new_int64(INT64_MAX));
}

static void set_negative_transitions(struct json_object *json)
{
    set_spec(json, "leaseTransitions", json_object_new_int64(-5));
}

/* Refused before anything is written, with these words. */
static void refuses_to_take(int error, const char *words)
{
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    struct mrt_event event = port_append(&holder, lock, port_id());
    assert_int_equal(event.type, MRT_FAILED);
    assert_int_equal(event.error, error);
    assert_non_null(strstr(holder.detail, words));
    assert_int_equal(stray_count(), 0);
}

static void test_the_last_transition_is_not_overrun(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"leaseTransitions\": 2147483646}");
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(view.fence, UINT64_C(2147483648));
    assert_true(waits(port_append(&waiter, lock, port_id())));
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
    refuses_to_take(MORTISE_ESTORE, "the largest leaseTransitions");
    lease_delete(&waiter, lock);
    view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(view.fence, 1);
}

/* The API server's own coordinator chooses its holder. */
static void test_a_lease_with_a_strategy_is_refused(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{\"strategy\": \"OldestEmulationVersion\"}");
    refuses_to_take(MORTISE_EMISMATCH, "strategy OldestEmulationVersion");
    lease_write(&waiter, lock, "{\"holderIdentity\": \"chosen\", \"leaseDurationSeconds\": 9}");
    refuses_to_take(MORTISE_EMISMATCH, "strategy OldestEmulationVersion");
    assert_int_equal(port_observe(&holder, lock, (struct mrt_id){0, 0}).type, MRT_HOLDER);
    assert_string_equal(holder.value, "chosen");
}

static void test_transitions_that_no_server_has_are_not_added_to(void **state)
{
    (void)state;
    lease_write(&waiter, lock, "{}");
    stray_change(&holder, "GET", set_huge_transitions, ALL);
    struct mrt_event event = port_append(&holder, lock, port_id());
    assert_int_equal(event.type, MRT_FAILED);
    assert_non_null(strstr(holder.detail, "the largest leaseTransitions"));
    stray_change(&waiter, "GET", set_negative_transitions, ALL);
    event = port_append(&waiter, lock, port_id());
    assert_true(is_granted(event));
    assert_int_equal(event.fence, 2);
}

static void set_free(struct json_object *json)
{
    set_spec(json, "holderIdentity", json_object_new_string(""));
}

/* It is no refusal: the engine repeats the command later. */
static void test_a_command_that_never_comes_through_is_repeated_later(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_REFUSED, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    assert_in_range(stray_count(), 2, 20);
    stray_change(&holder, "PUT", set_free, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    assert_in_range(stray_count(), 2, 20);
    stray_lead(&holder, "PUT", STRAY_REFUSED, 3);
    assert_true(is_granted(port_append(&holder, lock, ticket)));
}

/* The removals before have not barred the write. */
static void test_a_removal_that_never_comes_through_still_bars(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    lease_write(&waiter, lock, "{}");
    stray_lead(&holder, "PUT", STRAY_LATE, ALL);
    assert_int_equal(port_append(&holder, lock, ticket).type, MRT_UNKNOWN);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_UNKNOWN);
    stray_lead(&holder, "PUT", STRAY_NOT, ALL);
    assert_int_equal(port_remove(&holder, lock, ticket, 0).type, MRT_REMOVED);
    assert_int_equal(late_arrives(&waiter), MORTISE_ECONFLICT);
    assert_true(is_free());
}

static void takes_and_releases(void)
{
    struct mrt_event view = port_append(&holder, lock, port_id());
    assert_true(is_granted(view));
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    assert_int_equal(port_remove(&holder, lock, view.ticket, view.fence).type, MRT_REMOVED);
}

/* Of a store that logs in, requests have a password, and replies a token. */
static void test_no_token_and_no_request_is_left_in_memory(void **state)
{
    (void)state;
    char token[sizeof store_of(&holder)->wire.token];
    snprintf(token, sizeof token, "%s", store_of(&holder)->wire.token);
    assert_true(strlen(token) > 8);
    remains.times = 0;
    remains.text = token;
    takes_and_releases();
    remains.text = "\"holderIdentity\":\"mortise_";
    takes_and_releases();
    remains.text = "\"holderIdentity\": \"mortise_"; /* as the server writes it */
    takes_and_releases();
    remains.text = NULL;
    assert_int_equal(remains.times, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

static const struct CMUnitTest tests[] = {
    TEST(test_an_own_creation_whose_answer_was_lost_is_recognised),
    TEST(test_a_ticket_whose_write_comes_late_is_nobodys),
    TEST(test_a_ticket_whose_creation_comes_late_is_nobodys),
    TEST(test_of_a_session_that_ends_no_late_write_is_done),
    TEST(test_a_release_that_comes_late_ends_no_other_hold),
    TEST(test_a_renewal_whose_answer_was_lost_is_written_once_more),
    TEST(test_a_renewal_that_never_arrives_proves_nothing),
    TEST(test_renewals_differ_though_the_wall_clock_stands_still),
    TEST(test_a_grant_behind_a_renew_is_written_once_more),
    TEST(test_an_event_of_a_former_state_wakes_nobody),
    TEST(test_an_event_of_a_deleted_lease_is_not_the_next_ones),
    TEST(test_a_record_counts_for_its_time_since_its_newest_change),
    TEST(test_a_record_that_says_no_time_counts_for_some),
    TEST(test_a_deletion_ends_a_hold),
    TEST(test_a_write_behind_a_list_says_what_it_is),
    TEST(test_watches_that_end_by_an_error_pause),
    TEST(test_a_holder_behind_a_deletion_has_a_larger_fence),
    TEST(test_notes_of_a_former_holder_do_not_count),
    TEST(test_an_answer_that_is_no_lease_is_not_believed),
    TEST(test_a_creation_that_is_answered_by_something_else_is_recognised),
    TEST(test_a_command_that_never_comes_through_is_repeated_later),
    TEST(test_a_removal_that_never_comes_through_still_bars),
    TEST(test_no_token_and_no_request_is_left_in_memory),
    TEST(test_of_a_list_the_own_lease_counts_alone),
    TEST(test_the_last_transition_is_not_overrun),
    TEST(test_a_lease_with_a_strategy_is_refused),
    TEST(test_transitions_that_no_server_has_are_not_added_to),
};

static int run_all(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int count, char **arguments)
{
    if (count < 2) { /* once more, beside a server */
        execl(K8S_SERVERS, K8S_SERVERS, "with", "k8s", arguments[0], "{}&lease=3s", (char *)NULL);
        return 1;
    }
    uri = arguments[1];
#ifdef MRT_DEFECTS
    return defect_run("k8s_rules", run_all) != 0;
#else
    return run_all() != 0;
#endif
}
