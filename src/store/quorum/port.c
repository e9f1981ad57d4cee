/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quorum of stores: a client holds a lock while it has a claim at a majority of N stores that
 * know nothing of each other.
 *
 *   redlock:redis://a,redis://b,redis://c?answer=50ms&lease=10s
 *   redlock:URI,URI,...        stores of any kind, each without a query of its own; a member that
 *                              has several hosts, as redis+cluster://a:1,b:2, is one URI
 *
 * `answer` is how long a member may take to answer; every member gets the rest of the query. Only
 * this family knows the members. To the engine they are one store behind the port, whose session
 * is as good as that of a majority (session.c) and whose tickets are claims (claim.c). With a
 * lease of L a hold is valid for L from the sending of the newest renewal that a majority proved,
 * less the engine's margin for the clocks, 3 % and at least 10 ms.
 *
 * It lacks a fence, an order, and safety from a member that forgets (it restarts without what it
 * kept) or whose clock jumps. mortise.h and the manual say all three.
 */

#include "base/assert.h"
#include "base/error.h"
#include "base/uri.h"
#include "store/kit/address.h"
#include "store/quorum/claim.h"
#include "store/quorum/list.h"
#include "store/quorum/member.h"
#include "store/quorum/session.h"
#include "store/stores.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ANSWER_MAX (10 * MRT_SECOND)

/* ------------------------------------------------------------------ events */

static void hear(void *context, const struct mrt_event *event)
{
    mrt_quorum_member_event(context, event);
}

static void notify(void *context)
{
    struct mrt_quorum_member *member = context;
    atomic_store(&member->notified, true);
    member->quorum->sink.notify(member->quorum->sink.context);
}

/* Acts on the members' events until none is left. */
static void work(struct mrt_quorum_store *store, mrt_time now)
{
    store->worked_at = now;
    mrt_quorum_members_act(store, now);
    do {
        mrt_quorum_members_due(store, now);
        mrt_quorum_session_due(store, now);
        mrt_quorum_tickets_due(store, now);
    } while (mrt_quorum_members_act(store, now));
}

/* ------------------------------------------------------------------ the port */

/* A command without an open session, or of a kind that a quorum does not keep. */
static void turn_away(struct mrt_quorum_store *store, const struct mrt_command *command, bool ours)
{
    struct mrt_event event = {.type = MRT_FAILED,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket,
                              .error = ours ? MORTISE_ENOTSUPPORTED : MORTISE_ELOST,
                              .detail =
                                  ours ? "a quorum of stores keeps no more than locks" : NULL};
    if (!ours && command->type == MRT_STOP)
        event.type = MRT_STOPPED;
    else if (!ours && command->type == MRT_REMOVE)
        event.type = MRT_REMOVED;
    else if (!ours && command->type == MRT_REFRESH)
        event.type = MRT_GONE;
    mrt_quorum_deliver(store, event);
}

static bool quorum_submit(struct mrt_store *port, const struct mrt_command *command,
                          mrt_time patience)
{
    struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    (void)patience; /* nothing here waits */
    mrt_time now = mrt_time_now();
    bool ours = !mrt_id_none(store->session) && mrt_id_equal(command->session, store->session);
    bool of_session = command->type == MRT_STOP || command->type == MRT_RENEW;
    bool of_ticket =
        command->type == MRT_APPEND || command->type == MRT_REFRESH || command->type == MRT_REMOVE;
    if (command->type == MRT_START || (ours && of_session))
        mrt_quorum_session_submit(store, command, now);
    else if (ours && store->started && of_ticket)
        mrt_quorum_ticket_submit(store, command, now);
    else
        turn_away(store, command, ours && store->started);
    work(store, now);
    return true;
}

/* Calls those members that have something to read, that have asked for it, and whose time has
   come. */
static void quorum_process(struct mrt_store *port, mrt_time now)
{
    struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    struct epoll_event events[MRT_QUORUM_MEMBERS_MAX];
    bool ready[MRT_QUORUM_MEMBERS_MAX] = {false};
    int count = epoll_wait(store->epoll, events, MRT_QUORUM_MEMBERS_MAX, 0);
    for (int i = 0; i < count; i++)
        ready[events[i].data.u32] = true;
    for (unsigned i = 0; i < store->count; i++) {
        struct mrt_quorum_member *member = &store->members[i];
        bool notified = atomic_exchange(&member->notified, false);
        if (ready[i] || notified || member->ops->next(member->store) <= now)
            member->ops->process(member->store, now);
    }
    work(store, now);
}

/* A release is all that goes on by itself, once all members have been asked. */
static bool quorum_answers_may_wait(const struct mrt_store *port)
{
    const struct mrt_quorum_store *store = (const struct mrt_quorum_store *)port;
    const struct mrt_quorum_ticket *ticket;
    if (store->session_command.serial != 0)
        return false;
    TAILQ_FOREACH (ticket, &store->tickets, link)
        if (ticket->busy && ticket->step != MRT_QUORUM_LEAVING)
            return false;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        if (!member->ops->answers_may_wait || !member->ops->answers_may_wait(member->store))
            return false;
    }
    return true;
}

static int quorum_fd(struct mrt_store *port)
{
    struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    return store->epoll;
}

static mrt_time quorum_next(struct mrt_store *port)
{
    struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    mrt_time next = mrt_time_min(mrt_quorum_members_next(store), mrt_quorum_tickets_next(store));
    return mrt_time_min(next, mrt_quorum_session_next(store));
}

static bool quorum_asks_apart(const struct mrt_store *port)
{
    const struct mrt_quorum_store *store = (const struct mrt_quorum_store *)port;
    bool apart = true;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        apart = apart && member->ops->asks_apart && member->ops->asks_apart(member->store);
    }
    return apart;
}

/* Cuts all but the product from the text of a member, and keeps what all members say of their
   connections. */
static void cut_facts(char *server, char encrypted[48])
{
    char text[48] = "";
    const char *own = strstr(server, MRT_ENCRYPTED);
    if (own) {
        own += sizeof MRT_ENCRYPTED - 1;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(own, ";"), own);
    }
    bool differs = *encrypted && strcmp(encrypted, text) != 0;
    snprintf(encrypted, 48, "%s", differs ? "not alike at all members" : text);
    server[strcspn(server, ";")] = '\0';
}

/* The products in the members' order. */
static int quorum_server(struct mrt_store *port, char *text, size_t size)
{
    struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    char encrypted[48] = "";
    size_t length = 0;
    int error = MORTISE_ENOTSUPPORTED;
    for (unsigned i = 0; i < store->count && length + 3 < size; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        const char *plus = length > 0 ? " + " : "";
        size_t gap = strlen(plus);
        snprintf(text + length, size - length, "%s", plus);
        int result = member->ops->server ? member->ops->server(member->store, text + length + gap,
                                                               size - length - gap)
                                         : MORTISE_ENOTSUPPORTED;
        if (result == MORTISE_OK) {
            cut_facts(text + length + gap, encrypted);
            length += gap + strlen(text + length + gap);
        }
        error = length > 0 ? MORTISE_OK : result;
    }
    snprintf(text + length, size - length, "%s%s", *encrypted ? MRT_ENCRYPTED : "", encrypted);
    return error;
}

static mrt_time quorum_lease(const struct mrt_store *port)
{
    const struct mrt_quorum_store *store = (const struct mrt_quorum_store *)port;
    mrt_time lease = MRT_TIME_NEVER;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        mrt_time of = member->ops->lease ? member->ops->lease(member->store)
                                         : mrt_time_from_ms(member->ops->capabilities.lease_ms);
        if (of > 0)
            lease = mrt_time_min(lease, of);
    }
    return lease == MRT_TIME_NEVER ? 0 : lease;
}

static mrt_time quorum_lag(const struct mrt_store *port)
{
    const struct mrt_quorum_store *store = (const struct mrt_quorum_store *)port;
    mrt_time lag = 0;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        mrt_time of = member->ops->lag ? member->ops->lag(member->store) : 0;
        lag = of > lag ? of : lag;
    }
    return lag;
}

static const char *quorum_address(const struct mrt_store *port)
{
    const struct mrt_quorum_store *store = (const struct mrt_quorum_store *)port;
    return store->address;
}

static void free_store(struct mrt_quorum_store *store)
{
    mrt_quorum_requests_free(store);
    mrt_quorum_tickets_drop(store);
    if (store->epoll >= 0)
        close(store->epoll);
    free(store);
}

static void quorum_close(struct mrt_store *port)
{
    struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    for (unsigned i = 0; i < store->count; i++)
        store->members[i].ops->close(store->members[i].store);
    free_store(store);
}

static void quorum_abandon(struct mrt_store *port)
{
    struct mrt_quorum_store *store = (struct mrt_quorum_store *)port;
    for (unsigned i = 0; i < store->count; i++)
        store->members[i].ops->abandon(store->members[i].store);
    close(store->epoll);
    free(store);
}

/* ------------------------------------------------------------------ opening */

/* Whether a URI begins here: a scheme and its colon. In a list of hosts a name with a port is
   another host of the same member. */
static bool begins_uri(const char *text, bool lists_hosts)
{
    const char *c = text;
    while (isalnum((unsigned char)*c) || *c == '+' || *c == '-')
        c++;
    if (c == text || *c != ':' || isdigit((unsigned char)*text))
        return false;
    size_t digits = strspn(c + 1, "0123456789");
    return !lists_hosts || digits == 0 || !strchr(",/?", c[1 + digits]);
}

/* Takes the next member's address off the list; its length. */
static size_t next_member(const char *list)
{
    size_t length = 0;
    bool lists_hosts = false;
    while (list[length] && !(list[length] == ',' && begins_uri(list + length + 1, lists_hosts))) {
        lists_hosts = lists_hosts || strncmp(list + length, "//", 2) == 0;
        length++;
    }
    return length;
}

/* "answer=50ms" or "1s"; 0: it is not there. */
static int read_limit(const struct mrt_uri *uri, mrt_time *limit)
{
    static const struct mrt_parameter row[] = {
        {"answer", MRT_PARAMETER_DURATION, 0, MRT_MILLISECOND, ANSWER_MAX, NULL}, {.key = NULL}};
    *limit = 0;
    return mrt_parameters_read_known(uri, row, limit);
}

/* The member's URI: its address, and the parameters that are not ours. */
static int member_uri(const struct mrt_uri *whole, const char *address, size_t length,
                      struct mrt_uri *uri)
{
    char text[MRT_URI_MAX];
    size_t size = (size_t)snprintf(text, sizeof text, "%.*s", (int)length, address);
    char mark = '?';
    for (size_t i = 0; i < whole->count && size < sizeof text; i++) {
        if (strcmp(whole->parameters[i].key, "answer") == 0)
            continue;
        size += (size_t)snprintf(text + size, sizeof text - size, "%c%s=", mark,
                                 whole->parameters[i].key);
        mark = '&';
        for (const char *c = whole->parameters[i].value; *c && size < sizeof text; c++)
            size += (size_t)snprintf(text + size, sizeof text - size, "%%%02X", (unsigned char)*c);
    }
    if (size >= sizeof text)
        return mrt_error(MORTISE_EURI, "store URI redlock:...: a member's is too long");
    return mrt_uri_parse(text, uri);
}

static int open_member(struct mrt_quorum_store *store, const struct mrt_uri *uri,
                       const struct mrt_store_options *options)
{
    struct mrt_quorum_member *member = &store->members[store->count];
    const struct mrt_sink sink = {hear, notify, member};
    struct mrt_store_options own = *options;
    own.unresolved = mrt_time_now() >= store->resolve_until;
    if (store->count == MRT_QUORUM_MEMBERS_MAX)
        return mrt_error(MORTISE_EURI, "store URI redlock:...: more than %d members",
                         MRT_QUORUM_MEMBERS_MAX);
    *member = (struct mrt_quorum_member){.quorum = store, .index = store->count};
    if (strcmp(uri->scheme, "redlock") == 0)
        return mrt_error(MORTISE_ESCHEME, "a quorum of \"%s\" cannot be had", uri->scheme);
    int error = store->find(uri, &member->ops);
    if (error == MORTISE_OK)
        error = member->ops->open(uri, &own, sink, &member->store);
    if (error == MORTISE_EUNREACHABLE) {
        struct mrt_store_options later = own;
        later.unresolved = true;
        error = member->ops->open(uri, &later, sink, &member->store);
        store->unresolved++;
    }
    if (error != MORTISE_OK)
        return error;
    store->count++;
    int fd = member->ops->fd(member->store);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = member->index};
    if (fd >= 0 && epoll_ctl(store->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return mrt_error(MORTISE_EINTERNAL, "a member's descriptor cannot be waited for");
    size_t length = strlen(store->address);
    snprintf(store->address + length, sizeof store->address - length, "%s%s",
             store->count > 1 ? "," : "", member->ops->address(member->store));
    for (unsigned i = 0; i + 1 < store->count; i++)
        if (strcmp(store->members[i].ops->address(store->members[i].store),
                   member->ops->address(member->store)) == 0)
            return mrt_error(MORTISE_EURI, "store URI redlock:...: one store is named twice");
    return MORTISE_OK;
}

/* Those that stand in the quorum's own URI. */
static int open_named(struct mrt_quorum_store *store, const struct mrt_uri *uri,
                      const struct mrt_store_options *options)
{
    struct mrt_uri member;
    int error = MORTISE_OK;
    for (const char *at = uri->rest; error == MORTISE_OK && *at;) {
        size_t length = next_member(at);
        error = member_uri(uri, at, length, &member);
        if (error == MORTISE_OK)
            error = open_member(store, &member, options);
        explicit_bzero(&member, sizeof member); /* a password may be in it */
        at += length + (at[length] == ',');
    }
    return error;
}

/* Those that were given one by one. */
static int open_given(struct mrt_quorum_store *store, const struct mrt_store_options *options)
{
    struct mrt_uri member;
    int error = MORTISE_OK;
    for (size_t i = 0; error == MORTISE_OK && i < options->member_count; i++) {
        error = mrt_uri_parse(options->members[i], &member);
        if (error == MORTISE_OK)
            error = open_member(store, &member, options);
        explicit_bzero(&member, sizeof member);
    }
    return error;
}

static int open_members(struct mrt_quorum_store *store, const struct mrt_uri *uri,
                        const struct mrt_store_options *options)
{
    int error = options->members ? open_given(store, options) : open_named(store, uri, options);
    if (error == MORTISE_OK && store->count == 0)
        return mrt_error(MORTISE_EURI, "store URI redlock: names no store");
    store->majority = store->count / 2 + 1;
    if (error == MORTISE_OK && store->count - store->unresolved < store->majority)
        return MORTISE_EUNREACHABLE; /* with the error of the last of them */
    return error;
}

static int quorum_open(const struct mrt_uri *uri, const struct mrt_store_options *options,
                       struct mrt_sink sink, struct mrt_store **opened)
{
    struct mrt_quorum_store *store = calloc(1, sizeof *store);
    if (!store)
        return MORTISE_ENOMEM;
    TAILQ_INIT(&store->tickets);
    TAILQ_INIT(&store->requests);
    store->sink = sink;
    store->find = options->find;
    store->timeout = options->timeout > 0 ? options->timeout : 5 * MRT_SECOND;
    snprintf(store->address, sizeof store->address, "redlock:");
    store->epoll = epoll_create1(EPOLL_CLOEXEC);
    store->resolve_until = mrt_time_now() + MRT_RESOLVE_AT_OPEN;
    int error = read_limit(uri, &store->limit);
    if (error == MORTISE_OK && (store->epoll < 0 || !mrt_id_random(&store->seed)))
        error = mrt_error(MORTISE_ENOMEM, "no descriptor left, or no entropy, for a quorum");
    if (error == MORTISE_OK)
        error = open_members(store, uri, options);
    if (error != MORTISE_OK) {
        quorum_close((struct mrt_store *)store);
        return error;
    }
    *opened = (struct mrt_store *)store;
    return MORTISE_OK;
}

/* The members are waited for at the same time. */
static void quorum_traffic(const struct mrt_store *port, struct mrt_traffic *sum)
{
    const struct mrt_quorum_store *store = (const struct mrt_quorum_store *)port;
    uint64_t most = 0;
    for (unsigned i = 0; i < store->count; i++) {
        const struct mrt_quorum_member *member = &store->members[i];
        struct mrt_traffic one = {.under_way = 0};
        if (member->ops->traffic)
            member->ops->traffic(member->store, &one);
        mrt_traffic_add(&sum->requests, one.requests);
        most = one.round_trips > most ? one.round_trips : most;
    }
    mrt_traffic_add(&sum->round_trips, most);
}

const struct mrt_store_ops mrt_quorum_store = {
    .scheme = "redlock",
    .any_thread = true,
    .capabilities = {.size = sizeof(mortise_capabilities), .across_hosts = 1},
    .open = quorum_open,
    .submit = quorum_submit,
    .fd = quorum_fd,
    .next = quorum_next,
    .process = quorum_process,
    .answers_may_wait = quorum_answers_may_wait,
    .asks_apart = quorum_asks_apart,
    .list = mrt_quorum_list,
    .server = quorum_server,
    .traffic = quorum_traffic,
    .lease = quorum_lease,
    .lag = quorum_lag,
    .address = quorum_address,
    .close = quorum_close,
    .abandon = quorum_abandon,
};
