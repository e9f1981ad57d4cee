/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NATS store's rules, on a real server, with answers that a cluster may give: a read of a
 * former leader that lacks what others have written, an acknowledgement that is lost, a message
 * that arrives when nobody waits for it any longer. The store's own calls are led astray before
 * they reach the server, so a test needs no luck with time.
 *
 * Built with seeded defects it is the measure of itself (defect_run.h). Its argument is a URI;
 * without one it starts a server.
 */
#include "cmocka_all.h"
#include "conform/port_client.h"
#include "core/rule.h"
#include "defect_run.h"
#include "store/nats/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG (30 * MRT_SECOND)
#define NEVER (UINT64_C(1) << 50) /* no stream is so long */

static const char *server, *uri;

/* ------------------------------------------------------------ led astray */

enum stray {
    STRAY_NOT,
    STRAY_OLD,         /* a read finds nothing */
    STRAY_LOST,        /* a message is taken, and its answer is lost */
    STRAY_LATE,        /* a message is not sent before late_arrives(), and its answer is lost */
    STRAY_LATE_REMOVAL /* the same, of a ticket's removal */
};

static struct {
    enum stray kind;
    const char *part; /* of the subjects that it befalls */
    unsigned left, count;
} stray;

static struct {
    char *subject, *bytes;
    size_t size;
    int64_t expected;
} late;

static struct port_client holder, waiter;

/* Behind the read of this number, and before its answer, the holder leaves the queue. */
static struct {
    const char *queue; /* NULL: it does not */
    struct mrt_event view;
    unsigned at;
} leaving;

/* So often this befalls calls with such a subject. */
static void lead_astray(enum stray kind, const char *part, unsigned times)
{
    stray.kind = kind;
    stray.part = part;
    stray.left = times;
    stray.count = 0;
}

static bool is_astray(const char *subject, bool reads)
{
    if (stray.left == 0 || reads != (stray.kind == STRAY_OLD) || !strstr(subject, stray.part))
        return false;
    stray.left--;
    stray.count++;
    return true;
}

/* Before the next read of a queue, and heard of before its answer: somebody says that this ticket
   has left. */
static struct {
    const char *token; /* NULL: nobody does */
    uint64_t sequence;
} rumour;

/* A read that waits for an answer of the server's. */
struct deferred {
    struct mrt_nats_wire *wire;
    const char *stream;
    uint64_t sequence;
    char subject[MRT_NATS_SUBJECT_SIZE];
    mrt_nats_done *done;
    void *argument;
};

struct lost {
    mrt_nats_done *done;
    void *argument;
};

static void answer_is_lost(void *argument, const struct mrt_nats_reply *reply)
{
    static const struct mrt_nats_reply unknown = {
        .outcome = MRT_NATS_UNKNOWN, .error = MORTISE_EUNREACHABLE, .text = "lost by the test"};
    struct lost lost = *(struct lost *)argument;
    (void)reply;
    free(argument);
    lost.done(lost.argument, &unknown);
}

static struct lost *lose(mrt_nats_done *done, void *argument)
{
    struct lost *lost = malloc(sizeof *lost);
    assert_non_null(lost);
    *lost = (struct lost){done, argument};
    return lost;
}

bool __real_mrt_nats_publish(struct mrt_nats_wire *wire, const char *subject, int64_t expected,
                             const void *bytes, size_t size, mrt_time limit, mrt_nats_done *done,
                             void *argument);
bool __wrap_mrt_nats_publish(struct mrt_nats_wire *wire, const char *subject, int64_t expected,
                             const void *bytes, size_t size, mrt_time limit, mrt_nats_done *done,
                             void *argument);
bool __real_mrt_nats_get_last(struct mrt_nats_wire *wire, const char *stream, const char *subject,
                              mrt_nats_done *done, void *argument);
bool __wrap_mrt_nats_get_last(struct mrt_nats_wire *wire, const char *stream, const char *subject,
                              mrt_nats_done *done, void *argument);
bool __real_mrt_nats_get_next(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence,
                              const char *subject, mrt_nats_done *done, void *argument);
bool __wrap_mrt_nats_get_next(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence,
                              const char *subject, mrt_nats_done *done, void *argument);
int __wrap_mrt_store_find(const struct mrt_uri *of, const struct mrt_store_ops **ops);

bool __wrap_mrt_nats_publish(struct mrt_nats_wire *wire, const char *subject, int64_t expected,
                             const void *bytes, size_t size, mrt_time limit, mrt_nats_done *done,
                             void *argument)
{
    bool removes = size >= 4 && memcmp(bytes, MRT_NATS_GONE, 4) == 0;
    if (strncmp(subject, "mortise.", 8) != 0 || (stray.kind == STRAY_LATE_REMOVAL && !removes) ||
        !is_astray(subject, false))
        return __real_mrt_nats_publish(wire, subject, expected, bytes, size, limit, done, argument);
    if (stray.kind == STRAY_LOST)
        return __real_mrt_nats_publish(wire, subject, expected, bytes, size, limit, answer_is_lost,
                                       lose(done, argument));
    late.subject = strdup(subject);
    late.bytes = malloc(size + 1);
    assert_non_null(late.bytes);
    memcpy(late.bytes, bytes, size);
    late.size = size;
    late.expected = expected;
    return __real_mrt_nats_get_last(wire, wire->address->tickets, "mortise.nothing", answer_is_lost,
                                    lose(done, argument));
}

bool __wrap_mrt_nats_get_last(struct mrt_nats_wire *wire, const char *stream, const char *subject,
                              mrt_nats_done *done, void *argument)
{
    if (is_astray(subject, true))
        subject = "mortise.nothing";
    return __real_mrt_nats_get_last(wire, stream, subject, done, argument);
}

static void read_now(void *argument, const struct mrt_nats_reply *reply)
{
    struct deferred read = *(struct deferred *)argument;
    (void)reply;
    free(argument);
    assert_true(__real_mrt_nats_get_next(read.wire, read.stream, read.sequence, read.subject,
                                         read.done, read.argument));
}

static bool read_behind_a_rumour(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence,
                                 const char *subject, mrt_nats_done *done, void *argument)
{
    struct deferred *read = malloc(sizeof *read);
    assert_non_null(read);
    *read = (struct deferred){wire, stream, sequence, "", done, argument};
    snprintf(read->subject, sizeof read->subject, "%s", subject);
    mrt_nats_wake(wire, rumour.token, '-', rumour.sequence);
    rumour.token = NULL;
    return __real_mrt_nats_get_last(wire, stream, "mortise.nothing", read_now, read);
}

/* An answer that is delivered later. */
struct kept {
    struct mrt_nats_wire *wire;
    const char *stream;
    mrt_nats_done *done;
    void *argument;
    struct mrt_nats_reply reply;
};

static struct kept *keep(struct mrt_nats_wire *wire, const char *stream, mrt_nats_done *done,
                         void *argument)
{
    struct kept *kept = malloc(sizeof *kept);
    assert_non_null(kept);
    *kept = (struct kept){.wire = wire, .stream = stream, .done = done, .argument = argument};
    return kept;
}

static void deliver(void *argument, const struct mrt_nats_reply *reply)
{
    struct kept *kept = argument;
    (void)reply;
    kept->done(kept->argument, &kept->reply);
    json_object_put(kept->reply.json);
    free(kept);
}

static struct mrt_event renew(struct port_client *client)
{
    struct mrt_command command = port_command(client, MRT_RENEW);
    return port_send(client, &command);
}

/* The server has read before the holder leaves. The message of that comes before the answer: the
   server has it before a later request of the holder, and the waiter's next answer comes behind. */
static void leave(void *argument, const struct mrt_nats_reply *reply)
{
    struct kept *kept = argument;
    kept->reply = *reply;
    json_object_get(reply->json);
    port_remove(&holder, leaving.queue, leaving.view.ticket, leaving.view.fence);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
    assert_true(
        __real_mrt_nats_get_last(kept->wire, kept->stream, "mortise.nothing", deliver, kept));
    mrt_nats_wire_flush(kept->wire);
}

static bool is_endless; /* the queue */

/* A message at this sequence: a ticket of nobody's here, with a value of 450,000 bytes. */
static bool find_another(uint64_t sequence, mrt_nats_done *done, void *argument)
{
    static const char begin[] =
        "{\"message\":{\"seq\":%llu,\"subject\":\"q.%032x\",\"data\":\""
        "bW9ydGlzZTEgbXV0ZXggMSAxIDAgMSAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwNyAwMDAwMDAwMDAwMD"
        "AwMDAwMDAwMDAwMDAwMDAwMDAwOSAxMDAwMCBsbC4K";
    static char text[sizeof begin + 600100];
    int length = snprintf(text, sizeof text, begin, (unsigned long long)sequence, 7u);
    memset(text + length, 'A', 600000);
    memcpy(text + length + 600000, "\"}}", sizeof "\"}}");
    const struct mrt_nats_reply reply = {.outcome = MRT_NATS_DONE,
                                         .json = json_tokener_parse(text)};
    assert_non_null(reply.json);
    done(argument, &reply);
    json_object_put(reply.json);
    return true;
}

bool __wrap_mrt_nats_get_next(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence,
                              const char *subject, mrt_nats_done *done, void *argument)
{
    if (is_endless)
        return find_another(sequence, done, argument);
    if (rumour.token)
        return read_behind_a_rumour(wire, stream, sequence, subject, done, argument);
    if (is_astray(subject, true))
        sequence = NEVER;
    if (leaving.queue && leaving.at > 0 && --leaving.at == 0)
        return __real_mrt_nats_get_next(wire, stream, sequence, subject, leave,
                                        keep(wire, stream, done, argument));
    return __real_mrt_nats_get_next(wire, stream, sequence, subject, done, argument);
}

/* The store is linked here, and no module. */
int __wrap_mrt_store_find(const struct mrt_uri *of, const struct mrt_store_ops **ops)
{
    (void)of;
    *ops = &mrt_nats_store;
    return MORTISE_OK;
}

static struct mrt_nats_store *store_of(struct port_client *client)
{
    return (struct mrt_nats_store *)client->store;
}

static enum mrt_nats_outcome outcome;
static bool answered;

static void has_come(void *argument, const struct mrt_nats_reply *reply)
{
    (void)argument;
    outcome = reply->outcome;
    answered = true;
}

/* Publishes on a client's wire, and waits for the answer. */
static enum mrt_nats_outcome publish(struct port_client *client, const char *subject,
                                     int64_t expected, const void *bytes, size_t size)
{
    struct mrt_event event;
    answered = false;
    assert_true(__real_mrt_nats_publish(&store_of(client)->wire, subject, expected, bytes, size,
                                        LONG, has_come, NULL));
    mrt_nats_wire_flush(&store_of(client)->wire);
    while (!answered)
        port_wait(client, MRT_STOPPED, (struct mrt_id){0, 0}, 20 * MRT_MILLISECOND, &event);
    return outcome;
}

static enum mrt_nats_outcome late_arrives(struct port_client *client)
{
    assert_non_null(late.subject);
    enum mrt_nats_outcome found =
        publish(client, late.subject, late.expected, late.bytes, late.size);
    free(late.subject);
    free(late.bytes);
    late.subject = late.bytes = NULL;
    return found;
}

/* ------------------------------------------------------------ tests */

static int open_both(void **state)
{
    (void)state;
    stray.left = 0;
    port_open_session(&holder, uri);
    port_open_session(&waiter, uri);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    stray.left = 0;
    port_close(&holder);
    port_close(&waiter);
    return 0;
}

static bool is_granted(struct mrt_event event)
{
    return event.type == MRT_VIEW && mrt_rule_grants(event.weight_ahead, 1, 1);
}

/* Looks again for so long, and never finds it granted. */
static void waits_for(struct port_client *client, const char *queue, struct mrt_event view,
                      mrt_time time)
{
    struct mrt_event event;
    for (mrt_time end = mrt_time_now() + time; mrt_time_now() < end;) {
        event = port_refresh(client, queue, &view);
        assert_int_equal(event.type, MRT_VIEW);
        assert_false(is_granted(event));
        port_wait(client, MRT_STOPPED, (struct mrt_id){0, 0}, 200 * MRT_MILLISECOND, &event);
    }
}

/* The same until reads have been led astray, and for two leases from then on. */
static void waits_for_stray(struct port_client *client, const char *queue, struct mrt_event view)
{
    for (mrt_time end = mrt_time_now() + 2 * LONG; stray.count == 0 && mrt_time_now() < end;)
        waits_for(client, queue, view, MRT_SECOND);
    assert_true(stray.count > 0);
    waits_for(client, queue, view, 4 * MRT_SECOND);
}

/* Whether a message with such a subject is in the stream of tickets. */
static void has_read(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_message message;
    assert_true(mrt_nats_message_read(reply, &message));
    *(bool *)argument = message.bytes != NULL;
    mrt_nats_message_free(&message);
    answered = true;
}

static bool stands(struct port_client *client, const char *filter)
{
    struct mrt_event event;
    struct mrt_nats_wire *wire = &store_of(client)->wire;
    bool found = false;
    answered = false;
    assert_true(
        __real_mrt_nats_get_next(wire, wire->address->tickets, 1, filter, has_read, &found));
    mrt_nats_wire_flush(wire);
    while (!answered)
        port_wait(client, MRT_STOPPED, (struct mrt_id){0, 0}, 20 * MRT_MILLISECOND, &event);
    return found;
}

/* A deleted message is gone soon. */
static bool is_left(struct port_client *client, const char *filter)
{
    for (mrt_time end = mrt_time_now() + LONG; mrt_time_now() < end;)
        if (!stands(client, filter))
            return false;
    return true;
}

#define FILTER_SIZE 80
static void filter_ticket(const char *queue, struct mrt_id ticket, char filter[FILTER_SIZE])
{
    char name[MRT_ID_TEXT_SIZE];
    mrt_id_format(ticket, name);
    snprintf(filter, FILTER_SIZE, "mortise.*.q.%s.%s", queue, name);
}

static void test_a_session_that_a_read_lacks_is_not_dead(void **state)
{
    (void)state;
    assert_true(is_granted(port_append(&holder, "rules/old", port_id())));
    struct mrt_event view = port_append(&waiter, "rules/old", port_id());
    assert_false(is_granted(view));
    lead_astray(STRAY_OLD, ".s.", 1000);
    waits_for_stray(&waiter, "rules/old", view);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
}

static void test_a_session_that_was_declared_dead_stays_so(void **state)
{
    (void)state;
    const struct mrt_nats_session *session =
        mrt_nats_session_find(store_of(&holder), holder.session);
    assert_true(is_granted(port_append(&holder, "rules/dead", port_id())));
    assert_non_null(session);
    assert_int_equal(
        publish(&waiter, session->subject, MRT_NATS_ANY, MRT_NATS_DEAD, sizeof MRT_NATS_DEAD - 1),
        MRT_NATS_DONE);
    struct mrt_event event = renew(&holder);
    assert_int_equal(event.type, MRT_FAILED);
    assert_int_equal(event.error, MORTISE_ELOST);
}

static void test_a_read_that_lacks_the_own_ticket_grants_nothing(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    assert_true(is_granted(port_append(&holder, "rules/own", port_id())));
    lead_astray(STRAY_OLD, ".q.", 1000);
    assert_int_not_equal(port_append(&waiter, "rules/own", ticket).type, MRT_VIEW);
    assert_true(stray.count > 0);
    stray.left = 0;
    struct mrt_event event = port_append(&waiter, "rules/own", ticket);
    assert_int_equal(event.type, MRT_VIEW);
    assert_false(is_granted(event));
}

static void test_a_ticket_that_comes_late_is_nobodys(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    char filter[FILTER_SIZE];
    lead_astray(STRAY_LATE, ".q.", 1);
    assert_int_equal(port_append(&holder, "rules/late", ticket).type, MRT_UNKNOWN);
    assert_int_equal(port_remove(&holder, "rules/late", ticket, 0).type, MRT_REMOVED);
    late_arrives(&holder);
    assert_true(is_granted(port_append(&waiter, "rules/late", port_id())));
    filter_ticket("rules/late", ticket, filter);
    assert_int_equal(port_stop(&holder).type, MRT_STOPPED);
    assert_false(is_left(&waiter, filter));
}

static void test_a_ticket_whose_answer_was_lost_is_found(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    lead_astray(STRAY_LOST, ".q.", 1);
    assert_int_equal(port_append(&holder, "rules/lost", ticket).type, MRT_UNKNOWN);
    assert_true(is_granted(port_append(&holder, "rules/lost", ticket)));
    assert_int_equal(port_tickets(&waiter, "rules/lost"), 1);
}

static void test_a_removal_that_comes_late_takes_no_later_ticket(void **state)
{
    (void)state;
    struct mrt_id ticket = port_id();
    struct mrt_event held = port_append(&holder, "rules/removal", port_id());
    struct mrt_command command = port_append_command(&waiter, "rules/removal");
    command.ticket = ticket;
    command.queue_max = 1;
    assert_false(is_granted(port_append(&holder, "rules/removal", port_id())));
    lead_astray(STRAY_LATE_REMOVAL, ".q.", 1);
    assert_int_equal(port_send(&waiter, &command).type, MRT_UNKNOWN);
    assert_int_equal(stray.count, 1);
    struct mrt_event view = port_append(&waiter, "rules/removal", ticket);
    assert_int_equal(view.type, MRT_VIEW);
    late_arrives(&waiter);
    assert_int_equal(port_refresh(&waiter, "rules/removal", &view).type, MRT_VIEW);
    port_remove(&holder, "rules/removal", held.ticket, held.fence);
}

static void test_a_removal_in_doubt_that_comes_late_takes_no_later_ticket(void **state)
{
    (void)state;
    static const char queue[] = "rules/doubt";
    struct mrt_event held = port_append(&holder, queue, port_id());
    struct mrt_command command = port_append_command(&waiter, queue);
    command.ticket = port_id();
    command.try_only = command.expect_free = true;
    lead_astray(STRAY_LOST, ".q.", 1);
    assert_int_equal(port_send(&waiter, &command).type, MRT_UNKNOWN);
    lead_astray(STRAY_LATE_REMOVAL, ".q.", 1);
    assert_int_equal(port_send(&waiter, &command).type, MRT_UNKNOWN);
    assert_int_equal(stray.count, 1);
    struct mrt_event view = port_append(&waiter, queue, command.ticket);
    assert_int_equal(view.type, MRT_VIEW);
    port_remove(&holder, queue, held.ticket, held.fence);
    assert_true(is_granted(port_refresh(&waiter, queue, &view)));
    late_arrives(&waiter);
    assert_true(is_granted(port_refresh(&waiter, queue, &view)));
}

static void test_of_a_ticket_whose_removal_was_not_answered_nothing_is_left(void **state)
{
    (void)state;
    struct mrt_event view = port_append_value(&holder, "rules/left", "first");
    view = port_set_value(&holder, "rules/left", &view, "second");
    assert_true(stands(&waiter, "mortise.*.a.rules/left.*"));
    lead_astray(STRAY_LOST, ".q.", 1);
    assert_int_equal(port_remove(&holder, "rules/left", view.ticket, view.fence).type, MRT_UNKNOWN);
    assert_int_equal(port_remove(&holder, "rules/left", view.ticket, view.fence).type, MRT_REMOVED);
    assert_false(is_left(&waiter, "mortise.*.a.rules/left.*"));
    assert_false(is_left(&waiter, "mortise.*.q.rules/left.*"));
}

static void test_of_a_session_that_ends_no_change_of_a_ticket_is_left(void **state)
{
    (void)state;
    struct mrt_event view = port_append_value(&holder, "rules/ends", "first");
    port_set_value(&holder, "rules/ends", &view, "second");
    assert_true(stands(&waiter, "mortise.*.a.rules/ends.*"));
    assert_int_equal(port_stop(&holder).type, MRT_STOPPED);
    assert_false(is_left(&waiter, "mortise.*.a.rules/ends.*"));
}

/* It reads five times, and the session's end is sent meanwhile, to a server that is slow. */
static void test_a_try_that_is_overtaken_by_the_end_of_its_session_leaves_no_ticket(void **state)
{
    (void)state;
    char filter[FILTER_SIZE];
    for (int i = 0; i < 4; i++)
        port_append_weight(&waiter, "rules/stops", port_id(), "semaphore", 10, 1);
    struct mrt_command command = port_append_command(&holder, "rules/stops");
    command.ticket = port_id();
    command.kind = "semaphore";
    command.capacity = 10;
    command.weight = 1;
    command.try_only = true;
    assert_true(holder.ops->submit(holder.store, &command, MRT_TIME_NEVER));
    lead_astray(STRAY_LATE, ".s.", 1);
    assert_int_equal(port_stop(&holder).type, MRT_UNKNOWN);
    assert_int_not_equal(port_answer(&holder, command.serial).type, MRT_VIEW);
    filter_ticket("rules/stops", command.ticket, filter);
    assert_false(is_left(&waiter, filter));
    late_arrives(&waiter);
}

static void test_a_session_whose_end_failed_is_forgotten(void **state)
{
    (void)state;
    struct mrt_event event;
    port_append(&holder, "rules/forgotten", port_id());
    lead_astray(STRAY_LATE, ".s.", 1);
    assert_int_equal(port_stop(&holder).type, MRT_UNKNOWN);
    holder.lease = 0; /* nobody renews it */
    mrt_time end = mrt_time_now() + LONG;
    while (!TAILQ_EMPTY(&store_of(&holder)->sessions) && mrt_time_now() < end)
        port_wait(&holder, MRT_STOPPED, (struct mrt_id){0, 0}, 100 * MRT_MILLISECOND, &event);
    assert_true(TAILQ_EMPTY(&store_of(&holder)->sessions));
    late_arrives(&waiter);
}

static void test_a_sign_of_life_whose_answer_was_lost_is_no_loss(void **state)
{
    (void)state;
    lead_astray(STRAY_LOST, ".s.", 1);
    assert_int_equal(renew(&holder).type, MRT_UNKNOWN);
    assert_int_equal(renew(&holder).type, MRT_RENEWED);
}

static struct mrt_command detach_command(struct port_client *client, const char *queue,
                                         struct mrt_event view)
{
    struct mrt_command command = port_command(client, MRT_DETACH);
    command.queue = queue;
    command.ticket = view.ticket;
    command.fence = view.fence;
    command.kind = port_kind;
    command.weight = 1;
    command.detached_id = port_id();
    return command;
}

static void test_a_detached_ticket_outlives_a_read_that_lacks_the_change(void **state)
{
    (void)state;
    struct port_client leaver;
    port_open_session(&leaver, uri);
    struct mrt_event view = port_append(&leaver, "rules/detached", port_id());
    assert_true(is_granted(view));
    struct mrt_command command = detach_command(&leaver, "rules/detached", view);
    assert_int_equal(port_send(&leaver, &command).type, MRT_VIEW);
    assert_int_equal(port_stop(&leaver).type, MRT_STOPPED);
    port_close(&leaver);
    view = port_append(&waiter, "rules/detached", port_id());
    assert_false(is_granted(view));
    lead_astray(STRAY_OLD, ".a.", 1000);
    waits_for_stray(&waiter, "rules/detached", view);
}

/* The end of a session removes none of its tickets that is detached, though it does not know. */
static void test_a_ticket_whose_detaching_was_not_answered_outlives_its_session(void **state)
{
    (void)state;
    struct mrt_command command = detach_command(
        &holder, "rules/unanswered", port_append(&holder, "rules/unanswered", port_id()));
    lead_astray(STRAY_LOST, ".a.", 1);
    assert_int_equal(port_send(&holder, &command).type, MRT_UNKNOWN);
    assert_int_equal(stray.count, 1);
    assert_int_equal(port_stop(&holder).type, MRT_STOPPED);
    assert_false(is_granted(port_append(&waiter, "rules/unanswered", port_id())));
}

static void test_a_ticket_whose_detaching_never_came_ends_with_its_session(void **state)
{
    (void)state;
    struct mrt_command command = detach_command(
        &holder, "rules/undetached", port_append(&holder, "rules/undetached", port_id()));
    lead_astray(STRAY_LATE, ".a.", 1);
    assert_int_equal(port_send(&holder, &command).type, MRT_UNKNOWN);
    assert_int_equal(port_stop(&holder).type, MRT_STOPPED);
    struct mrt_event view = port_append(&waiter, "rules/undetached", port_id());
    for (mrt_time end = mrt_time_now() + LONG; !is_granted(view) && mrt_time_now() < end;) {
        struct mrt_event event;
        port_wait(&waiter, MRT_STOPPED, (struct mrt_id){0, 0}, 200 * MRT_MILLISECOND, &event);
        view = port_refresh(&waiter, "rules/undetached", &view);
    }
    assert_true(is_granted(view));
    late_arrives(&waiter);
    assert_true(is_granted(port_refresh(&waiter, "rules/undetached", &view)));
}

static void test_a_waiter_is_told_of_a_departure(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&holder, "rules/told", port_id());
    struct mrt_event view = port_append(&waiter, "rules/told", port_id());
    assert_false(is_granted(view));
    port_remove(&holder, "rules/told", held.ticket, held.fence);
    assert_true(port_wait_told(&waiter, view.ticket, LONG));
}

/* The holder leaves while the waiter's walk is under way: behind its first read, its second... */
static void test_a_waiter_is_told_of_a_departure_while_it_reads(void **state)
{
    (void)state;
    char queue[32];
    for (unsigned read = 1; read <= 4; read++) {
        snprintf(queue, sizeof queue, "rules/meanwhile%u", read);
        leaving.view = port_append(&holder, queue, port_id());
        leaving.queue = queue;
        leaving.at = read;
        struct mrt_event view = port_append(&waiter, queue, port_id());
        leaving.queue = NULL;
        if (leaving.at > 0) /* it read less often */
            port_remove(&holder, queue, leaving.view.ticket, leaving.view.fence);
        assert_true(is_granted(view) || port_wait_told(&waiter, view.ticket, 10 * MRT_SECOND));
    }
}

static void test_a_message_that_says_who_left_grants_nothing(void **state)
{
    (void)state;
    struct mrt_event held = port_append(&holder, "rules/rumour", port_id());
    assert_true(is_granted(held));
    struct mrt_event view = port_append(&waiter, "rules/rumour", port_id());
    assert_false(is_granted(view));
    for (int i = 0; i < 3; i++) {
        rumour.token = "rules/rumour";
        rumour.sequence = held.fence >> MRT_NATS_FENCE_BITS;
        struct mrt_event again = port_refresh(&waiter, "rules/rumour", &view);
        assert_null(rumour.token);
        assert_int_equal(again.type, MRT_VIEW);
        assert_false(is_granted(again));
    }
}

static void test_a_queue_without_an_end_is_refused(void **state)
{
    (void)state;
    struct mrt_command command = port_append_command(&holder, "rules/endless");
    command.ticket = port_id();
    command.adopt = true;
    is_endless = true;
    struct mrt_event event = port_send(&holder, &command);
    is_endless = false;
    assert_int_equal(event.type, MRT_FAILED);
    assert_int_equal(event.error, MORTISE_ESTORE);
}

static void test_a_cell_is_not_written_over_what_a_read_lacks(void **state)
{
    (void)state;
    assert_int_equal(port_cell_set(&holder, "rules/cell", 0, 0, "theirs").type, MRT_CELL);
    lead_astray(STRAY_OLD, ".c.", 1);
    assert_int_equal(port_cell_set(&waiter, "rules/cell", 0, 0, "ours").type, MRT_FAILED);
    assert_int_equal(stray.count, 1);
    assert_int_equal(port_cell_get(&waiter, "rules/cell").type, MRT_CELL);
    assert_string_equal(waiter.value, "theirs");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

static const struct CMUnitTest tests[] = {
    TEST(test_a_session_that_a_read_lacks_is_not_dead),
    TEST(test_a_session_that_was_declared_dead_stays_so),
    TEST(test_a_read_that_lacks_the_own_ticket_grants_nothing),
    TEST(test_a_ticket_that_comes_late_is_nobodys),
    TEST(test_a_ticket_whose_answer_was_lost_is_found),
    TEST(test_a_removal_that_comes_late_takes_no_later_ticket),
    TEST(test_a_removal_in_doubt_that_comes_late_takes_no_later_ticket),
    TEST(test_of_a_ticket_whose_removal_was_not_answered_nothing_is_left),
    TEST(test_of_a_session_that_ends_no_change_of_a_ticket_is_left),
    TEST(test_a_try_that_is_overtaken_by_the_end_of_its_session_leaves_no_ticket),
    TEST(test_a_session_whose_end_failed_is_forgotten),
    TEST(test_a_sign_of_life_whose_answer_was_lost_is_no_loss),
    TEST(test_a_detached_ticket_outlives_a_read_that_lacks_the_change),
    TEST(test_a_ticket_whose_detaching_was_not_answered_outlives_its_session),
    TEST(test_a_ticket_whose_detaching_never_came_ends_with_its_session),
    TEST(test_a_waiter_is_told_of_a_departure),
    TEST(test_a_waiter_is_told_of_a_departure_while_it_reads),
    TEST(test_a_message_that_says_who_left_grants_nothing),
    TEST(test_a_queue_without_an_end_is_refused),
    TEST(test_a_cell_is_not_written_over_what_a_read_lacks),
};

/* Each run has a namespace of its own, so that what a broken store left fails no later run. */
static int run_all(void)
{
    static char own[256];
    snprintf(own, sizeof own, "%s&namespace=run%d", server, (int)getpid());
    uri = own;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int count, char **arguments)
{
    if (count < 2) { /* once more, beside a server */
        execl(NATS_SERVERS, NATS_SERVERS, "with", "nats", arguments[0], "{}?lease=2s",
              (char *)NULL);
        return 1;
    }
    server = arguments[1];
#ifdef MRT_DEFECTS
    return defect_run("nats_rules", run_all) != 0;
#else
    return run_all() != 0;
#endif
}
