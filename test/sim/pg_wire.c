/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of a fake PostgreSQL, in version 3 of its protocol. A client's library may send
 * the messages that libpq sends for the store: a startup, then flights of Parse, Bind, Describe and
 * Execute with a Sync at the end. After an error the rest of a flight is skipped.
 */
#include "pg_server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define WORK_MIN MRT_MICROSECOND
#define POOLERS_OWN 1000000 /* no process has such a number */

/* ------------------------------------------------------------------ bytes */

static void add(struct pg_bytes *to, const void *bytes, size_t size)
{
    if (to->room - to->used < size) {
        to->room = 2 * to->room + size;
        to->bytes = realloc(to->bytes, to->room);
        if (!to->bytes)
            abort();
    }
    if (size > 0)
        memcpy(to->bytes + to->used, bytes, size);
    to->used += size;
}

static void add_text(struct pg_bytes *to, const char *text)
{
    add(to, text, strlen(text) + 1);
}

static void add_number(struct pg_bytes *to, int64_t number, size_t size)
{
    uint32_t long_one = htonl((uint32_t)number);
    uint16_t short_one = htons((uint16_t)number);
    if (size == sizeof long_one)
        add(to, &long_one, size);
    else
        add(to, &short_one, size);
}

/* A message's beginning, and its length once it is whole. */
static size_t begin(struct pg_bytes *to, char type)
{
    add(to, &type, 1);
    add_number(to, 0, 4);
    return to->used - 4;
}

static void end(struct pg_bytes *to, size_t at)
{
    uint32_t length = htonl((uint32_t)(to->used - at));
    memcpy(to->bytes + at, &length, sizeof length);
}

static void add_empty(struct pg_bytes *to, char type)
{
    end(to, begin(to, type));
}

/* An error of the store's own making says so in braces. */
static void add_error(struct pg_bytes *to, const char *severity, const char *code)
{
    size_t at = begin(to, 'E');
    const char fields[] = {'S', 'V', 'C', 'M'};
    const char *text = strcmp(code, "22P02") == 0 ? "{transactions are split}" : "by chance";
    const char *const texts[] = {severity, severity, code, text};
    for (size_t i = 0; i < sizeof fields; i++) {
        add(to, &fields[i], 1);
        add_text(to, texts[i]);
    }
    add(to, "", 1);
    end(to, at);
}

static void add_ready(struct pg_backend *backend)
{
    size_t at = begin(&backend->outbox, 'Z');
    add(&backend->outbox, "I", 1);
    end(&backend->outbox, at);
}

static void flush(struct pg_backend *backend, struct pg_bytes *bytes)
{
    if (backend->stream && bytes->used > 0)
        stream_say(backend->stream, bytes->bytes, bytes->used);
    bytes->used = 0;
}

/* ------------------------------------------------------------------ life */

static struct world *world_of(const struct pg_backend *backend)
{
    return backend->server->cluster->world;
}

static struct pg_backend *new_backend(struct pg_server *server)
{
    struct pg_backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        abort();
    backend->server = server;
    backend->process.id = ++server->cluster->next_id;
    backend->next = server->backends;
    server->backends = backend;
    return backend;
}

void *pg_accept(struct world *world, struct stream *stream)
{
    struct pg_backend *backend = new_backend(&pg_of(world)->servers[stream->server]);
    backend->stream = stream;
    backend->peer = stream->client->peer;
    return backend;
}

static void free_backend(struct pg_backend *backend)
{
    struct pg_backend **link = &backend->server->backends;
    struct world *world = world_of(backend);
    pg_abort(backend);
    while (*link != backend)
        link = &(*link)->next;
    *link = backend->next;
    world_cancel(world, &backend->step);
    world_cancel(world, &backend->post);
    struct pg_bytes *const bytes[] = {&backend->inbox, &backend->outbox, &backend->mail,
                                      &backend->bound};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        free(bytes[i]->bytes);
    free(backend->view.at);
    free(backend->changes);
    free(backend->notices);
    free(backend);
}

void pg_terminate(struct pg_backend *backend, const char *code)
{
    if (backend->stream) {
        backend->outbox.used = 0;
        add_error(&backend->outbox, "FATAL", code);
        flush(backend, &backend->outbox);
        stream_end(backend->stream);
    }
    free_backend(backend);
}

void pg_vanish(struct pg_backend *backend, bool silently)
{
    if (backend->stream)
        stream_forget(backend->stream, silently);
    free_backend(backend);
}

/* ------------------------------------------------------------------ notifications */

static void post(struct world *world, struct task *task)
{
    struct pg_backend *backend =
        (struct pg_backend *)(void *)((char *)task - offsetof(struct pg_backend, post));
    (void)world;
    if (!backend->in_transaction) /* else when that has ended */
        flush(backend, &backend->mail);
}

void pg_tell(struct pg_backend *backend, const struct pg_notice *notice)
{
    struct world *world = world_of(backend);
    size_t at = begin(&backend->mail, 'A');
    add_number(&backend->mail, 1, 4);
    add_text(&backend->mail, notice->channel);
    add_text(&backend->mail, notice->text);
    end(&backend->mail, at);
    if (!backend->post.timer.armed)
        world_at(world, &backend->post,
                 world->now + WORK_MIN + world_some(world, world->profile.pg_notify_late_us), post);
}

/* ------------------------------------------------------------------ transactions */

static void note(const struct pg_backend *backend, const char *what)
{
    int64_t number = strtoll(backend->columns[0].text, NULL, 10);
    trace_note(world_of(backend), TRACE_APPLY, backend->peer ? backend->peer->index : -1, NO_QUEUE,
               what, backend->process.id, backend->column_count > 0 ? number : 0, 0);
}

/* The transaction has ended; its result goes to the client after a Sync. */
static void fail(struct pg_backend *backend, const char *code)
{
    note(backend, "FAILS");
    add_error(&backend->outbox, "ERROR", code);
    pg_abort(backend);
    backend->failed = true;
    backend->error[0] = '\0';
}

/* Messages that a server may send at any time. */
static bool fails_by_chance(struct pg_backend *backend)
{
    static const char *const codes[] = {"40001", "40P01", "55P03", "57014"};
    struct world *world = world_of(backend);
    if (!random_chance(&world->random, world->profile.pg_conflict))
        return false;
    snprintf(backend->error, sizeof backend->error, "%s", codes[random_below(&world->random, 4)]);
    return true;
}

/* Any statement may not be allowed. */
static bool is_refused(struct pg_backend *backend)
{
    const struct client *client = backend->peer ? backend->peer->client : NULL;
    if (!client || !lone_takes(world_of(backend), FAULT_REFUSED, client))
        return false;
    snprintf(backend->error, sizeof backend->error, "42501");
    return true;
}

static void add_columns(struct pg_backend *backend)
{
    struct pg_bytes *to = &backend->outbox;
    size_t at = begin(to, 'T');
    add_number(to, backend->column_count, 2);
    for (int i = 0; i < backend->column_count; i++) {
        add_text(to, "c");
        add_number(to, 0, 4);
        add_number(to, 0, 2);
        add_number(to, 25, 4);
        add_number(to, -1, 2);
        add_number(to, -1, 4);
        add_number(to, 0, 2);
    }
    end(to, at);
    at = begin(to, 'D');
    add_number(to, backend->column_count, 2);
    for (int i = 0; i < backend->column_count; i++) {
        const char *text = backend->columns[i].text;
        add_number(to, backend->columns[i].null ? -1 : (int64_t)strlen(text), 4);
        if (!backend->columns[i].null)
            add(to, text, strlen(text));
    }
    end(to, at);
}

static void begin_transaction(struct pg_backend *backend)
{
    if (!backend->in_transaction) {
        backend->began = pg_clock(backend->server);
        backend->patience_ms = backend->process.patience_ms;
        memcpy(backend->schema, backend->process.schema, sizeof backend->schema);
    }
    backend->in_transaction = true;
}

/* Something before the server may commit too soon. */
static void split(struct pg_backend *backend)
{
    struct world *world = world_of(backend);
    if (backend->statement != MRT_PG_BUMP || world->profile.pg_split == 0 ||
        !random_chance(&world->random, world->profile.pg_split))
        return;
    note(backend, "SPLIT");
    pg_commit(backend);
    begin_transaction(backend);
}

static void execute(struct pg_backend *backend)
{
    bool late = backend->waits && backend->patience_ms > 0 &&
                world_of(backend)->now >= backend->since + backend->patience_ms * MRT_MILLISECOND;
    bool waited = backend->waits;
    if (late)
        snprintf(backend->error, sizeof backend->error, "57014");
    else if (!waited && (is_refused(backend) || fails_by_chance(backend)))
        ;
    else if (pg_execute(backend) == PG_WAITS && !backend->error[0]) {
        if (!waited) {
            backend->since = world_of(backend)->now;
            backend->arrival = ++backend->server->cluster->arrivals;
        }
        return;
    }
    backend->due = PG_NOTHING;
    if (backend->error[0]) {
        fail(backend, backend->error);
        return;
    }
    note(backend, backend->statement < 0
                      ? "LISTEN"
                      : mrt_pg_statement((enum mrt_pg_statement)backend->statement)->name);
    if (backend->column_count > 0)
        add_columns(backend);
    else
        add_empty(&backend->outbox, 'n');
    size_t at = begin(&backend->outbox, 'C');
    add_text(&backend->outbox, "SELECT 1");
    end(&backend->outbox, at);
    split(backend);
}

static void commit(struct pg_backend *backend)
{
    struct world *world = world_of(backend);
    backend->due = PG_NOTHING;
    if (!backend->failed && fails_by_chance(backend))
        fail(backend, backend->error);
    if (!backend->failed && backend->notice_count > 0 &&
        random_chance(&world->random, world->profile.pg_full))
        fail(backend, "54000");
    if (!backend->failed) {
        note(backend, "COMMIT");
        pg_commit(backend);
    }
    backend->failed = backend->assigned = false;
    add_ready(backend);
    flush(backend, &backend->outbox);
    flush(backend, &backend->mail);
}

/* ------------------------------------------------------------------ messages */

struct message {
    char type; /* 0: the startup */
    const char *at, *end;
};

static uint32_t long_at(const char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return ntohl(number);
}

static int short_at(const char *at)
{
    uint16_t number;
    memcpy(&number, at, sizeof number);
    return ntohs(number);
}

static const char *text_in(struct message *message)
{
    const char *text = message->at;
    message->at += strlen(text) + 1;
    return text;
}

static void greet(struct pg_backend *backend)
{
    struct pg_bytes *to = &backend->outbox;
    bool is_pooled = world_of(backend)->drawn.pg_pooled > 0;
    const char *standby = pg_is_primary(backend->server) ? "off" : "on";
    const char *const words[] = {"server_version",
                                 "15.0",
                                 "client_encoding",
                                 "UTF8",
                                 "standard_conforming_strings",
                                 "on",
                                 "in_hot_standby",
                                 standby,
                                 "default_transaction_read_only",
                                 "off"};
    size_t at = begin(to, 'R');
    add_number(to, 0, 4);
    end(to, at);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i += 2) {
        at = begin(to, 'S');
        add_text(to, words[i]);
        add_text(to, words[i + 1]);
        end(to, at);
    }
    at = begin(to, 'K');
    add_number(to, backend->process.id + (is_pooled ? POOLERS_OWN : 0), 4);
    add_number(to, 7, 4);
    end(to, at);
    add_ready(backend);
    flush(backend, to);
    backend->started = true;
}

static int statement_of(const char *name)
{
    for (int i = 0; i < MRT_PG_STATEMENT_COUNT; i++)
        if (strcmp(mrt_pg_statement((enum mrt_pg_statement)i)->name, name) == 0)
            return i;
    abort();
}

/* The statement of this text; -1: LISTEN, UNLISTEN. */
static int statement_of_text(const char *text)
{
    int i = MRT_PG_STATEMENT_COUNT - 1;
    while (i >= 0 && strcmp(mrt_pg_statement((enum mrt_pg_statement)i)->text, text) != 0)
        i--;
    return i;
}

/* A statement of the store's, which may have no name: LISTEN, UNLISTEN, and what is sent once. */
static void parse(struct pg_backend *backend, struct message *message)
{
    const char *name = text_in(message), *text = text_in(message);
    if (*name) {
        int statement = statement_of(name);
        if (strcmp(mrt_pg_statement((enum mrt_pg_statement)statement)->text, text) != 0)
            abort();
        if (backend->process.prepared[statement]) {
            fail(backend, "42P05");
            return;
        }
        backend->process.prepared[statement] = true;
    } else if ((backend->unnamed = statement_of_text(text)) < 0) {
        backend->wanted.on = strncmp(text, "LISTEN ", 7) == 0;
        snprintf(backend->wanted.channel, sizeof backend->wanted.channel, "%s",
                 strchr(text, ' ') + 1);
    }
    add_empty(&backend->outbox, '1');
}

/* One value of a Bind becomes a length, a text and a zero. */
static void bind_value(struct pg_backend *backend, struct message *message, bool binary)
{
    int32_t size = (int32_t)long_at(message->at), shown = size > 0 && binary ? 2 * size : size;
    message->at += 4;
    add(&backend->bound, &shown, sizeof shown);
    for (int32_t i = 0; i < size; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", (unsigned char)message->at[i]);
        if (binary)
            add(&backend->bound, digits, 2);
        else
            add(&backend->bound, &message->at[i], 1);
    }
    add(&backend->bound, "", 1);
    message->at += size > 0 ? size : 0;
}

static void bind_values(struct pg_backend *backend, struct message *message)
{
    text_in(message); /* the portal */
    const char *name = text_in(message);
    const char *formats = message->at + 2;
    int format_count = short_at(message->at);
    message->at = formats + 2 * format_count;
    int count = short_at(message->at);
    message->at += 2;
    backend->bound.used = 0;
    for (int i = 0; i < count; i++)
        bind_value(backend, message, format_count > i && short_at(formats + 2 * i) == 1);
    backend->statement = *name ? statement_of(name) : backend->unnamed;
    if (*name && !backend->process.prepared[backend->statement])
        fail(backend, "26000");
    else
        add_empty(&backend->outbox, '2');
}

/* A pooler gives the next transaction another process, or not. */
static void assign(struct pg_backend *backend)
{
    struct world *world = world_of(backend);
    if (!backend->assigned && world->drawn.pg_pooled > 0 &&
        random_chance(&world->random, world->drawn.pg_pooled)) {
        struct pg_process *next = &backend->server->pool[random_below(&world->random, PG_POOL)];
        struct pg_process last = backend->process;
        if (next->id == 0)
            next->id = ++backend->server->cluster->next_id;
        backend->process = *next;
        *next = last;
    }
    backend->assigned = true;
}

static void take(struct pg_backend *backend, struct message *message)
{
    struct world *world = world_of(backend);
    if (message->type == 0)
        greet(backend);
    else if (message->type == 'X')
        backend->over = true;
    else if (message->type == 'S')
        backend->due = PG_COMMIT;
    else if (backend->failed)
        return;
    else if (message->type == 'P') {
        assign(backend);
        parse(backend, message);
    } else if (message->type == 'B') {
        assign(backend);
        bind_values(backend, message);
    } else if (message->type == 'E') {
        world->operations++;
        begin_transaction(backend);
        backend->due = PG_EXECUTE;
    } else if (message->type != 'D') /* which is answered with the statement's description */
        abort();
}

/* The length of the first message; 0: it is not whole yet. */
static size_t next_message(const struct pg_backend *backend, struct message *message)
{
    size_t head = backend->started ? 1 : 0;
    const struct pg_bytes *inbox = &backend->inbox;
    if (inbox->used < head + 4 || inbox->used < head + long_at(inbox->bytes + head))
        return 0;
    size_t size = head + long_at(inbox->bytes + head);
    *message = (struct message){.type = head ? inbox->bytes[0] : 0,
                                .at = inbox->bytes + head + 4,
                                .end = inbox->bytes + size};
    return size;
}

static void take_all(struct pg_backend *backend)
{
    struct message message;
    size_t size;
    while (backend->due == PG_NOTHING && !backend->over &&
           (size = next_message(backend, &message)) > 0) {
        take(backend, &message);
        backend->inbox.used -= size;
        memmove(backend->inbox.bytes, backend->inbox.bytes + size, backend->inbox.used);
    }
}

/* ------------------------------------------------------------------ steps */

static void step(struct world *world, struct task *task);

/* When it goes on: when the request under way is done, or has waited for too long. */
static void plan(struct pg_backend *backend)
{
    struct world *world = world_of(backend);
    mrt_time patience = backend->patience_ms * MRT_MILLISECOND;
    if (backend->waits && patience > 0)
        world_at(world, &backend->step, backend->since + patience, step);
    else if (backend->due != PG_NOTHING && !backend->waits)
        world_at(world, &backend->step,
                 world->now + WORK_MIN + world_some(world, world->profile.pg_work_us), step);
    else if (backend->in_transaction && patience > 0)
        world_at(world, &backend->step, backend->since + patience, step);
}

static void step(struct world *world, struct task *task)
{
    struct pg_backend *backend = (struct pg_backend *)task;
    if (backend->server->frozen_until > world->now) {
        world_at(world, task, backend->server->frozen_until, step);
        return;
    }
    if (backend->due == PG_EXECUTE)
        execute(backend);
    else if (backend->due == PG_COMMIT)
        commit(backend);
    else if (backend->in_transaction && backend->patience_ms > 0 &&
             world->now >= backend->since + backend->patience_ms * MRT_MILLISECOND) {
        pg_terminate(backend, "25P03");
        return;
    }
    if (backend->due == PG_NOTHING) {
        take_all(backend);
        backend->since = world->now;
    }
    bool over = backend->due == PG_NOTHING && (backend->over || !backend->stream);
    if (over && backend->stream)
        stream_end(backend->stream);
    if (over)
        free_backend(backend);
    else
        plan(backend);
}

static void step_soon(struct pg_backend *backend)
{
    world_at(world_of(backend), &backend->step, world_of(backend)->now, step);
}

static struct pg_backend *next_waiter(const struct pg_server *server, int64_t after)
{
    struct pg_backend *next = NULL;
    for (struct pg_backend *b = server->backends; b; b = b->next)
        if (b->waits && b->arrival > after && (!next || b->arrival < next->arrival))
            next = b;
    return next;
}

void pg_wake(struct pg_server *server)
{
    struct world *world = server->cluster->world;
    for (struct pg_backend *b = next_waiter(server, 0); b; b = next_waiter(server, b->arrival))
        world_at(world, &b->step, world->now + WORK_MIN, step);
}

void pg_receive(void *context, const char *bytes, size_t size)
{
    struct pg_backend *backend = context;
    add(&backend->inbox, bytes, size);
    if (backend->due == PG_NOTHING)
        step_soon(backend);
}

void pg_spoil(struct pg_backend *backend, const char *code)
{
    if (!backend->in_transaction)
        return;
    fail(backend, code);
    if (backend->due == PG_EXECUTE)
        backend->due = PG_NOTHING;
    step_soon(backend);
}

/* It does the requests that it has received, and then it ends. */
void pg_hang_up(void *context)
{
    struct pg_backend *backend = context;
    backend->stream = NULL;
    if (backend->due == PG_NOTHING)
        step_soon(backend);
}

/* ------------------------------------------------------------------ an operator's */

int64_t pg_run(struct pg_server *server, enum mrt_pg_statement statement, const char *const *values,
               int count)
{
    struct pg_backend *backend = new_backend(server);
    backend->statement = (int)statement;
    snprintf(backend->process.schema, sizeof backend->process.schema, "mortise");
    for (int i = 0; i < count; i++) {
        int32_t size = (int32_t)strlen(values[i]);
        add(&backend->bound, &size, sizeof size);
        add_text(&backend->bound, values[i]);
    }
    begin_transaction(backend);
    /* A transaction in the way is the victim of a deadlock. */
    while (pg_execute(backend) == PG_WAITS) {
        struct pg_lock *lock = server->locks;
        while (lock && (lock->backend == backend || lock->table != backend->wish.table ||
                        strcmp(lock->key, backend->wish.key) != 0))
            lock = lock->next;
        if (!lock)
            abort();
        pg_spoil(lock->backend, "40P01");
    }
    int64_t number = backend->column_count > 0 ? strtoll(backend->columns[0].text, NULL, 10) : 0;
    pg_commit(backend);
    free_backend(backend);
    return number;
}
