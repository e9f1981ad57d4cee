/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZooKeeper as a server of worlds, in two ways. With the real store in the clients this file only
 * knows the truth: the requests come by zk_wire.c. The other way is a fake of the store behind the
 * port, for tests of the engine: each command is a few requests on the session's connection, as
 * the store makes them, and the fake promises no more than the port requires. link.c loses
 * commands and answers on top of the ensemble's losses.
 *
 *   START   open       RENEW   sync       STOP   close
 *   APPEND  create + list, and for a try that is blocked a delete
 *   REFRESH sync + list                   REMOVE delete
 *   a ticket whose create may have been done: sync + list first, to find it, and exists of
 *   each node of its name, because the node may belong to another session
 *
 * A connection that ends answers UNKNOWN to everything under way, and is opened again at
 * another server. Waiting is a data watch on the node just ahead.
 */
#include "zk_port.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ asking and telling */

void zk_port_tell(struct session *session, const struct mrt_command *command,
                  enum mrt_event_type type, int error)
{
    const struct world *world = session->port->world;
    const struct profile *p = &world->drawn;
    struct mrt_event event = {.type = type,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket,
                              .error = error};
    if (type == MRT_STARTED) {
        event.lease = mrt_time_from_ms(session->timeout_ms);
        event.proof_lag = p->zk_tick_us * (1000000 + world_fastest(world)) / 2000;
    }
    link_deliver(session->port->world, session->peer, &event);
}

static void wake(struct session *session, struct mrt_id ticket)
{
    const struct mrt_event event = {.type = MRT_WAKE, .session = session->id, .ticket = ticket};
    link_deliver(session->port->world, session->peer, &event);
}

struct work *zk_port_ask(struct session *session, const struct mrt_command *command,
                         struct ticket *ticket, struct zk_request *request)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        abort();
    work->command = *command;
    work->ticket = ticket;
    work->type = request->part.type;
    *session->last = work;
    session->last = &work->next;
    zk_send(session->connection, request);
    return work;
}

const char *zk_port_path(const struct session *session, const struct ticket *ticket,
                         const char *name, char path[ZK_PATH_SIZE])
{
    snprintf(path, ZK_PATH_SIZE, ZK_CHROOT "/%s%s%.*s",
             session->port->world->queues[ticket->queue].name, *name ? "/" : "", ZK_NAME_SIZE - 1,
             name);
    return path;
}

static void ask_list(struct session *session, const struct mrt_command *command,
                     struct ticket *ticket, bool find)
{
    char path[ZK_PATH_SIZE];
    zk_port_path(session, ticket, "", path);
    if (find || command->type == MRT_REFRESH)
        zk_port_ask(session, command, ticket, zk_request_new(ZK_SYNC, path));
    struct work *list = zk_port_ask(session, command, ticket, zk_request_new(ZK_LIST, path));
    if (find) /* else it may have been answered, and be gone */
        list->find = true;
}

static void ask_create(struct session *session, const struct mrt_command *command,
                       struct ticket *ticket)
{
    char path[ZK_PATH_SIZE];
    int length = snprintf(path, sizeof path, ZK_CHROOT "/%s",
                          session->port->world->queues[ticket->queue].name);
    snprintf(path + length, sizeof path - (size_t)length, "/_c_%016" PRIx64 "%016" PRIx64 "-lock-",
             ticket->id.high, ticket->id.low);
    struct zk_request *request = zk_request_new(ZK_CREATE, path);
    request->part.ephemeral = request->part.sequential = true;
    ticket->outcome_unknown = true;
    zk_port_ask(session, command, ticket, request);
}

void zk_port_ask_parents(struct session *session, const struct mrt_command *command,
                         struct ticket *ticket)
{
    char path[ZK_PATH_SIZE];
    zk_port_ask(session, command, ticket, zk_request_new(ZK_CREATE, "/apps"))->parent = true;
    zk_port_ask(session, command, ticket, zk_request_new(ZK_CREATE, ZK_CHROOT))->parent = true;
    struct zk_request *request = zk_request_new(ZK_CREATE, zk_port_path(session, ticket, "", path));
    request->part.container = true;
    zk_port_ask(session, command, ticket, request)->parent = true;
}

/* ------------------------------------------------------------------ commands */

static struct ticket *find_ticket(const struct session *session, struct mrt_id id)
{
    struct ticket *ticket = session->tickets;
    while (ticket && !mrt_id_equal(ticket->id, id))
        ticket = ticket->next;
    return ticket;
}

static void do_command(struct session *session, const struct mrt_command *command,
                       struct ticket *ticket)
{
    if (command->claim)
        zk_port_claim(session, command, ticket);
    else if (command->type == MRT_REMOVE && ticket->created)
        zk_port_ask(session, command, ticket, zk_request_new(ZK_DELETE, ticket->path));
    else if (ticket->created)
        ask_list(session, command, ticket, false);
    else if (ticket->outcome_unknown)
        ask_list(session, command, ticket, true);
    else if (command->type == MRT_APPEND)
        ask_create(session, command, ticket);
    else
        zk_port_tell(session, command, command->type == MRT_REMOVE ? MRT_REMOVED : MRT_GONE, 0);
}

static void within(struct session *session, const struct mrt_command *command)
{
    struct ticket *ticket = find_ticket(session, command->ticket);
    if (!session->open) {
        zk_port_tell(session, command, MRT_UNKNOWN, 0);
    } else if (command->type == MRT_RENEW) {
        zk_port_ask(session, command, NULL, zk_request_new(ZK_SYNC, "/"));
    } else if (command->type == MRT_STOP) {
        session->ending = true;
        zk_port_ask(session, command, NULL, zk_request_new(ZK_CLOSE, "/"));
    } else {
        if (!ticket) {
            ticket = calloc(1, sizeof *ticket);
            if (!ticket)
                abort();
            ticket->id = command->ticket;
            ticket->queue = server_queue_index(session->port->world, command->queue);
            ticket->next = session->tickets;
            session->tickets = ticket;
        }
        do_command(session, command, ticket);
    }
}

/* ------------------------------------------------------------------ answers */

static bool is_own(const struct ticket *ticket, const char *name)
{
    char own[ZK_NAME_SIZE];
    snprintf(own, sizeof own, "_c_%016" PRIx64 "%016" PRIx64 "-lock-", ticket->id.high,
             ticket->id.low);
    return strncmp(name, own, strlen(own)) == 0;
}

static void keep(struct session *session, struct ticket *ticket, const char *name)
{
    zk_port_path(session, ticket, name, ticket->path);
    ticket->created = true;
    ticket->outcome_unknown = false;
}

/* Serial numbers: the counter is 32 bits wide and may wrap. */
static bool before(const char *a, const char *b)
{
    const char *first = strstr(a, "lock"), *second = strstr(b, "lock");
    uint32_t left = (uint32_t)strtoll(
        first + strcspn(first + 4, "-0123456789") + 4 + (first[4] == '-'), NULL, 10);
    uint32_t right = (uint32_t)strtoll(
        second + strcspn(second + 4, "-0123456789") + 4 + (second[4] == '-'), NULL, 10);
    return (int32_t)(left - right) < 0;
}

/* A node with its identity in the name may be another session's: so each is looked at, and the
   last answer settles it. Its number comes with that. */
static void found(struct session *session, const struct work *work, const struct zk_answer *answer)
{
    char path[ZK_PATH_SIZE];
    struct work *asked = NULL;
    for (int i = 0; i < answer->name_count; i++) {
        if (!is_own(work->ticket, answer->names[i]))
            continue;
        zk_port_path(session, work->ticket, answer->names[i], path);
        if (asked)
            asked->aside = true;
        asked = zk_port_ask(session, &work->command, work->ticket, zk_request_new(ZK_EXISTS, path));
        memcpy(asked->name, answer->names[i], sizeof asked->name);
    }
    if (asked)
        return;
    work->ticket->outcome_unknown = false;
    do_command(session, &work->command, work->ticket);
}

static void identified(struct session *session, const struct work *work,
                       const struct zk_answer *answer)
{
    struct ticket *ticket = work->ticket;
    if (answer->code == ZOK && answer->stat.ephemeralOwner == session->server_id) {
        keep(session, ticket, work->name);
        ticket->czxid = answer->stat.czxid;
    }
    if (work->aside)
        return;
    ticket->outcome_unknown = false;
    do_command(session, &work->command, ticket);
}

void zk_port_watch(struct session *session, const struct work *work, const char *name)
{
    char path[ZK_PATH_SIZE];
    struct zk_request *request =
        zk_request_new(ZK_GET, zk_port_path(session, work->ticket, name, path));
    request->watch = true;
    zk_port_ask(session, &work->command, work->ticket, request)->watch = true;
}

static void viewed(struct session *session, const struct work *work, const struct zk_answer *answer)
{
    struct ticket *ticket = work->ticket;
    const char *own = strrchr(ticket->path, '/') + 1, *nearest = NULL;
    struct mrt_event event = {.type = MRT_GONE};
    for (int i = 0; i < answer->name_count; i++) {
        const char *name = answer->names[i];
        if (strcmp(name, own) == 0) {
            event.type = MRT_VIEW;
        } else if (!strstr(name, "lock")) {
            continue;
        } else if (before(own, name)) {
            event.others_behind = true;
        } else {
            event.weight_ahead++;
            nearest = nearest && before(name, nearest) ? nearest : name;
        }
    }
    event.serial = work->command.serial;
    event.session = session->id;
    event.ticket = ticket->id;
    event.fence = (uint64_t)ticket->czxid << 12;
    event.fence_span = 1 << 12;
    event.recheck = session->port->world->drawn.recheck_us * MRT_MICROSECOND;
    if (event.type == MRT_GONE)
        ticket->created = false;
    if (event.type == MRT_VIEW && nearest && work->command.try_only &&
        work->command.type == MRT_APPEND) {
        zk_port_ask(session, &work->command, ticket, zk_request_new(ZK_DELETE, ticket->path))
            ->undo = true;
        return;
    }
    if (event.type == MRT_VIEW && nearest)
        zk_port_watch(session, work, nearest);
    link_deliver(session->port->world, session->peer, &event);
}

static void created(struct session *session, const struct work *work,
                    const struct zk_answer *answer)
{
    work->ticket->outcome_unknown = false;
    if (answer->code == ZOK) {
        keep(session, work->ticket, strrchr(answer->path, '/') + 1);
        work->ticket->czxid = answer->stat.czxid;
        ask_list(session, &work->command, work->ticket, false);
    } else if (answer->code == ZNONODE) {
        zk_port_ask_parents(session, &work->command, work->ticket);
        ask_create(session, &work->command, work->ticket);
    } else {
        zk_port_tell(session, &work->command, MRT_FAILED, MORTISE_EUNREACHABLE);
    }
}

static void removed(struct session *session, const struct work *work)
{
    work->ticket->created = false;
    zk_port_tell(session, &work->command, work->undo ? MRT_BLOCKED : MRT_REMOVED, 0);
}

static void handle(struct session *session, const struct work *work, const struct zk_answer *answer)
{
    if (work->watch) {
        if (answer->code == ZNONODE)
            wake(session, work->ticket->id);
    } else if (work->parent) {
        return;
    } else if (!work->ticket) {
        zk_port_tell(session, &work->command, work->type == ZK_CLOSE ? MRT_STOPPED : MRT_RENEWED,
                     0);
    } else if (work->command.claim) {
        zk_port_claim_answer(session, work, answer);
    } else if (work->type == ZK_CREATE) {
        created(session, work, answer);
    } else if (work->type == ZK_LIST && work->find) {
        found(session, work, answer);
    } else if (work->type == ZK_LIST) {
        viewed(session, work, answer);
    } else if (work->type == ZK_DELETE) {
        removed(session, work);
    } else if (work->type == ZK_EXISTS) {
        identified(session, work, answer);
    }
}

/* ------------------------------------------------------------------ the connection */

static void reopen(struct world *world, struct task *task);

static bool wants_answer(const struct work *work)
{
    return !work->watch && !work->parent && !work->aside &&
           (work->type != ZK_SYNC || !work->ticket);
}

static void end_works(struct session *session)
{
    struct work *work;
    while ((work = session->first)) {
        session->first = work->next;
        if (wants_answer(work))
            zk_port_tell(session, &work->command, MRT_UNKNOWN, 0);
        free(work);
    }
    session->last = &session->first;
}

static void end(struct session *session)
{
    if (session->over)
        return;
    session->over = true;
    session->open = false;
    const struct mrt_event event = {
        .type = MRT_SESSION_LOST, .session = session->id, .error = MORTISE_ELOST};
    if (!session->ending)
        link_deliver(session->port->world, session->peer, &event);
}

static void on_opened(void *context, int code, int64_t id, int timeout_ms)
{
    struct session *session = context;
    session->timeout_ms = timeout_ms;
    if (code != ZOK) {
        end(session);
        return;
    }
    session->open = true;
    session->server_id = id;
    struct work *work = session->first; /* the START, if this is the first time */
    if (!work) {
        wake(session, (struct mrt_id){0, 0});
        return;
    }
    session->first = NULL;
    session->last = &session->first;
    zk_port_tell(session, &work->command, MRT_STARTED, 0);
    free(work);
}

static void on_answered(void *context, const struct zk_answer *answer)
{
    struct session *session = context;
    struct work *work = session->first;
    session->seen = answer->zxid;
    session->first = work->next;
    if (!session->first)
        session->last = &session->first;
    bool ended = answer->code == ZSESSIONEXPIRED || answer->code == ZSESSIONMOVED;
    if (!ended)
        handle(session, work, answer);
    else if (wants_answer(work))
        zk_port_tell(session, &work->command, MRT_UNKNOWN, 0);
    free(work);
}

static void on_happened(void *context, int type, const char *path)
{
    struct session *session = context;
    (void)type, (void)path;
    wake(session, (struct mrt_id){0, 0}); /* the requester is not remembered: all clients read */
}

static void on_closed(void *context)
{
    struct session *session = context;
    struct world *world = session->port->world;
    session->open = false;
    end_works(session);
    world_at(world, &session->reopen, world->now + world_about(world, 2000), reopen);
}

static void reopen(struct world *world, struct task *task)
{
    struct session *session = (struct session *)task;
    struct port *port = session->port;
    world_cancel(world, task);
    if (session->connection)
        zk_hang_up(session->connection, false);
    session->connection = NULL;
    if (session->over || session->ending || !session->peer->client)
        return;
    int server = (int)random_below(&world->random, zk_servers(port->ensemble));
    const struct zk_listener listener = {.opened = on_opened,
                                         .answered = on_answered,
                                         .happened = on_happened,
                                         .closed = on_closed,
                                         .context = session};
    session->connection =
        zk_open(port->ensemble, server, session->server_id, (int)(world->drawn.lease_us / 1000),
                session->seen, session->peer, listener);
}

/* ------------------------------------------------------------------ the model */

static struct session *find_session(struct port *port, struct mrt_id id)
{
    struct session *session = port->sessions;
    while (session && !mrt_id_equal(session->id, id))
        session = session->next;
    return session;
}

static void begin_start(struct session *session, const struct mrt_command *command)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        abort();
    work->command = *command;
    session->first = work;
    session->last = &work->next;
}

/* STARTED proves the session: so it is presented to the leader again. */
static void start_again(struct world *world, struct session *session,
                        const struct mrt_command *command)
{
    session->open = false;
    end_works(session);
    begin_start(session, command);
    reopen(world, &session->reopen);
}

static struct session *new_session(struct port *port, struct peer *peer,
                                   const struct mrt_command *command)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        abort();
    session->port = port;
    session->id = command->session;
    session->peer = peer;
    session->next = port->sessions;
    port->sessions = session;
    begin_start(session, command);
    return session;
}

static void port_apply(struct world *world, void *server, struct peer *peer,
                       const struct mrt_command *command)
{
    struct port *port = server;
    struct session *session = find_session(port, command->session);
    struct session nobody = {.port = port, .peer = peer};
    if (!peer->client)
        return;
    if (command->type == MRT_START && session && session->over) {
        session->id = (struct mrt_id){0, 0}; /* it has ended: another takes its place */
        session = NULL;
    }
    if (command->type == MRT_START && !session)
        reopen(world, &new_session(port, peer, command)->reopen);
    else if (command->type == MRT_START)
        start_again(world, session, command);
    else if (session && !session->over && !session->ending)
        within(session, command);
    else if (command->type == MRT_STOP)
        zk_port_tell(&nobody, command, session && session->open ? MRT_UNKNOWN : MRT_STOPPED, 0);
    else if (command->type == MRT_REMOVE)
        zk_port_tell(&nobody, command, MRT_REMOVED, 0);
    else
        zk_port_tell(&nobody, command, command->type == MRT_REFRESH ? MRT_GONE : MRT_FAILED,
                     MORTISE_ELOST);
}

static void *port_new(struct world *world)
{
    struct port *port = calloc(1, sizeof *port);
    if (!port)
        abort();
    port->world = world;
    port->ensemble = zk_new(world);
    return port;
}

static void port_free(void *server)
{
    struct port *port = server;
    struct session *session;
    zk_free(port->ensemble);
    while ((session = port->sessions)) {
        port->sessions = session->next;
        for (struct work *work; (work = session->first); free(work))
            session->first = work->next;
        for (struct ticket *ticket; (ticket = session->tickets); free(ticket))
            session->tickets = ticket->next;
        free(session);
    }
    free(port);
}

/* Its connection ends with the process; its session does not. */
static void port_died(struct world *world, void *server, struct peer *peer)
{
    struct port *port = server;
    for (struct session *session = port->sessions; session; session = session->next)
        if (session->peer == peer && session->connection) {
            world_cancel(world, &session->reopen);
            zk_hang_up(session->connection, false);
            session->connection = NULL;
            session->open = false;
        }
}

static bool port_break(struct world *world, void *server, int queue, uint64_t fence)
{
    (void)world;
    return zk_break(((struct port *)server)->ensemble, queue, fence);
}

static bool library_revoke(struct world *world, void *server, int queue, uint64_t fence)
{
    (void)world;
    return zk_revoke(((struct port *)server)->ensemble, queue, fence);
}

static void port_truth(struct world *world, void *server, int queue, const struct peer *peer,
                       struct truth *truth)
{
    (void)world;
    zk_truth(((struct port *)server)->ensemble, queue, peer, truth);
}

static int port_left(struct world *world, void *server)
{
    (void)world;
    return zk_left(((struct port *)server)->ensemble);
}

static uint64_t library_cell(void *server)
{
    return zk_cell(((struct port *)server)->ensemble);
}

struct zk_ensemble *zk_ensemble_of(struct world *world)
{
    return ((struct port *)world->server->state)->ensemble;
}

const struct server_model zookeeper_model = {.new = port_new,
                                             .free = port_free,
                                             .apply = port_apply,
                                             .died = port_died,
                                             .break_ticket = port_break,
                                             .truth = port_truth,
                                             .left = port_left};
const struct server_model zk_library_model = {.is_steady = true,
                                              .new = port_new,
                                              .free = port_free,
                                              .break_ticket = port_break,
                                              .revoke = library_revoke,
                                              .truth = port_truth,
                                              .left = port_left,
                                              .cell = library_cell};
