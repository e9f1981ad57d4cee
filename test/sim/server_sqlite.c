/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of the SQLite store, with its semantics and its ways to fail:
 *
 *  - A table of tickets in the order of their numbers. Every process changes it
 *    itself, so answers come in submit order; what travels between processes is only a hint
 *    (a datagram that may be lost, doubled or late).
 *  - A session that wants to hear of others gets such a hint from the one that queues right behind.
 *  - No lease. A session is alive while the kernel holds its file's lock. Nobody is
 *    told of a death but the process right behind, by a file event that may be
 *    refused; otherwise the dead are found when someone blocked looks again.
 *  - A store that gives up (I/O error, file replaced) tells its own engine first
 *    and lets go of the kernel lock afterwards.
 *  - Fences are reserved in blocks, and the end of the block is durable. After
 *    a power cut the table may be that of an earlier moment, all its sessions dead, and
 *    fences go on from the end of the block.
 */
#include "server.h"

#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 512
#define SESSIONS_MAX 512
#define BLOCK 64

struct session {
    struct mrt_id id;
    struct peer *peer;
    bool alive; /* the kernel holds its lock */
};

struct row {
    int queue;
    int session;
    struct mrt_id ticket;
    uint64_t fence, weight, revoked;
    bool linger;
};

struct sqlite {
    struct world *world;
    struct session sessions[SESSIONS_MAX];
    int session_count;
    struct row rows[ROWS_MAX], durable[ROWS_MAX];
    int row_count, durable_count;
    uint64_t next_fence, fence_limit;
    struct task checkpoint;
};

static void checkpoint(struct world *world, struct task *task)
{
    struct sqlite *db =
        (struct sqlite *)(void *)((char *)task - offsetof(struct sqlite, checkpoint));
    memcpy(db->durable, db->rows, (size_t)db->row_count * sizeof db->rows[0]);
    db->durable_count = db->row_count;
    world_at(world, task, world->now + world_about(world, world->drawn.reboot_every_us / 4 + 1),
             checkpoint);
}

static void *sqlite_new(struct world *world)
{
    struct sqlite *db = calloc(1, sizeof *db);
    if (!db)
        abort();
    db->world = world;
    db->next_fence = db->fence_limit = (uint64_t)random_between(&world->random, 1, 120);
    if (world->drawn.reboot_every_us > 0)
        checkpoint(world, &db->checkpoint);
    return db;
}

/* ------------------------------------------------------------- rows */

static int find_session(const struct sqlite *db, struct mrt_id id)
{
    for (int i = db->session_count - 1; i >= 0; i--)
        if (mrt_id_equal(db->sessions[i].id, id))
            return i;
    return -1;
}

static int find_row(const struct sqlite *db, int queue, struct mrt_id ticket, int session)
{
    for (int i = 0; i < db->row_count; i++)
        if (db->rows[i].queue == queue && mrt_id_equal(db->rows[i].ticket, ticket) &&
            db->rows[i].session == session)
            return i;
    return -1;
}

static uint64_t weight_ahead(const struct sqlite *db, int row)
{
    uint64_t sum = 0;
    for (int i = 0; i < row; i++)
        if (db->rows[i].queue == db->rows[row].queue)
            sum += db->rows[i].weight;
    return sum;
}

static bool granted(const struct sqlite *db, int row)
{
    const struct queue_state *queue = &db->world->queues[db->rows[row].queue];
    return weight_ahead(db, row) + db->rows[row].weight <= queue->recipe.capacity;
}

static bool others_behind(const struct sqlite *db, int row)
{
    for (int i = row + 1; i < db->row_count; i++)
        if (db->rows[i].queue == db->rows[row].queue)
            return true;
    return false;
}

static void delete_row(struct sqlite *db, int row)
{
    db->row_count--;
    memmove(&db->rows[row], &db->rows[row + 1], (size_t)(db->row_count - row) * sizeof db->rows[0]);
}

static void answer_view(struct world *world, struct sqlite *db, struct peer *peer,
                        const struct mrt_command *command, int row)
{
    struct mrt_event event = {.type = MRT_VIEW,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket,
                              .fence = db->rows[row].fence,
                              .fence_span = (uint64_t)world->drawn.fence_span,
                              .weight_ahead = weight_ahead(db, row),
                              .others_behind = others_behind(db, row),
                              .revoked = db->rows[row].revoked,
                              .recheck = world->drawn.recheck_us * MRT_MICROSECOND};
    link_deliver(world, peer, &event);
}

/* A datagram tells the place as it was when it was sent, however late it comes. */
static void push_view(struct world *world, struct sqlite *db, int row)
{
    const struct session *session = &db->sessions[db->rows[row].session];
    const struct mrt_command look = {.session = session->id, .ticket = db->rows[row].ticket};
    answer_view(world, db, session->peer, &look, row);
}

static void wake_owner(struct world *world, const struct sqlite *db, const struct row *row)
{
    const struct session *session = &db->sessions[row->session];
    const struct mrt_event look = {.type = MRT_WAKE, .session = session->id, .ticket = row->ticket};
    if (session->alive)
        link_deliver(world, session->peer, &look);
}

/* A lingering holder is notified by the ticket right behind it; a later ticket finds that one
 * ahead. */
static void tell_lingering(struct world *world, const struct sqlite *db, int row)
{
    int ahead = row - 1;
    while (ahead >= 0 && db->rows[ahead].queue != db->rows[row].queue)
        ahead--;
    if (ahead >= 0 && db->rows[ahead].linger)
        wake_owner(world, db, &db->rows[ahead]);
}

/* A hint to the first of a queue that may now run. */
static void wake_next(struct world *world, struct sqlite *db, int queue)
{
    for (int i = 0; i < db->row_count; i++) {
        if (db->rows[i].queue != queue)
            continue;
        const struct session *session = &db->sessions[db->rows[i].session];
        if (!granted(db, i))
            return;
        struct mrt_event event = {
            .type = MRT_WAKE, .session = session->id, .ticket = db->rows[i].ticket};
        if (session->alive && random_chance(&world->random, world->profile.push))
            push_view(world, db, i);
        else if (session->alive)
            link_deliver(world, session->peer, &event);
    }
}

/* Deletes dead sessions' rows ahead of a row, and returns its new place. */
static int reap_ahead(struct sqlite *db, int row)
{
    int queue = db->rows[row].queue;
    for (int i = 0; i < row; i++)
        if (db->rows[i].queue == queue && !db->sessions[db->rows[i].session].alive) {
            delete_row(db, i--);
            row--;
        }
    return row;
}

/* ------------------------------------------------------------- commands */

static void answer(struct world *world, struct peer *peer, const struct mrt_command *command,
                   enum mrt_event_type type, int error)
{
    struct mrt_event event = {.type = type,
                              .serial = command->serial,
                              .session = command->session,
                              .ticket = command->ticket,
                              .error = error};
    link_deliver(world, peer, &event);
}

static void start(struct world *world, struct sqlite *db, struct peer *peer,
                  const struct mrt_command *command)
{
    int session = find_session(db, command->session);
    if (session < 0) {
        if (db->session_count == SESSIONS_MAX)
            abort();
        session = db->session_count++;
        db->sessions[session] = (struct session){.id = command->session, .peer = peer};
    }
    db->sessions[session].alive = true;
    answer(world, peer, command, MRT_STARTED, 0);
}

static void stop(struct world *world, struct sqlite *db, struct peer *peer,
                 const struct mrt_command *command, int session)
{
    if (session >= 0) {
        db->sessions[session].alive = false;
        for (int i = db->row_count - 1; i >= 0; i--) {
            if (db->rows[i].session != session)
                continue;
            int queue = db->rows[i].queue;
            delete_row(db, i);
            wake_next(world, db, queue);
        }
    }
    answer(world, peer, command, MRT_STOPPED, 0);
}

static uint64_t next_fence(struct world *world, struct sqlite *db)
{
    uint64_t fence = db->next_fence;
    db->next_fence += (uint64_t)world->drawn.fence_span;
    if (db->next_fence > db->fence_limit)
        db->fence_limit = db->next_fence + BLOCK * (uint64_t)world->drawn.fence_span;
    return fence;
}

static void append(struct world *world, struct sqlite *db, struct peer *peer,
                   const struct mrt_command *command, int session, int queue)
{
    if (db->row_count == ROWS_MAX) {
        answer(world, peer, command, MRT_FAILED, MORTISE_EFULL);
        return;
    }
    int row = db->row_count++;
    db->rows[row] = (struct row){.queue = queue,
                                 .session = session,
                                 .ticket = command->ticket,
                                 .weight = command->weight,
                                 .linger = command->linger};
    row = reap_ahead(db, row);
    if (command->try_only && !granted(db, row)) {
        delete_row(db, row);
        answer(world, peer, command, MRT_BLOCKED, 0);
        return;
    }
    db->rows[row].fence = next_fence(world, db);
    tell_lingering(world, db, row);
    answer_view(world, db, peer, command, row);
}

static void within(struct world *world, struct sqlite *db, struct peer *peer,
                   const struct mrt_command *command, int session)
{
    if (command->type == MRT_RENEW) {
        answer(world, peer, command, MRT_RENEWED, 0);
        return;
    }
    int queue = server_queue_index(world, command->queue);
    int row = find_row(db, queue, command->ticket, session);
    if (command->type == MRT_REMOVE) {
        if (row >= 0) {
            delete_row(db, row);
            wake_next(world, db, queue);
        }
        answer(world, peer, command, MRT_REMOVED, 0);
    } else if (row >= 0) {
        if (command->type == MRT_LIGHTEN && db->rows[row].weight > command->weight) {
            db->rows[row].weight = command->weight;
            wake_next(world, db, queue);
        }
        answer_view(world, db, peer, command, reap_ahead(db, row));
    } else if (command->type == MRT_APPEND) {
        append(world, db, peer, command, session, queue);
    } else {
        answer(world, peer, command, MRT_GONE, 0);
    }
}

static void sqlite_apply(struct world *world, void *server, struct peer *peer,
                         const struct mrt_command *command)
{
    struct sqlite *db = server;
    if (!peer->client)
        return; /* the process is dead, and what it had not done yet is not done */
    int session = find_session(db, command->session);
    if (command->type == MRT_START) {
        start(world, db, peer, command);
    } else if (command->type == MRT_STOP) {
        stop(world, db, peer, command, session);
    } else if (session >= 0 && db->sessions[session].alive) {
        within(world, db, peer, command, session);
    } else if (command->type == MRT_REMOVE) {
        answer(world, peer, command, MRT_REMOVED, 0);
    } else {
        const struct mrt_event lost = {
            .type = MRT_SESSION_LOST, .session = command->session, .error = MORTISE_ELOST};
        link_deliver(world, peer, &lost);
        answer(world, peer, command, command->type == MRT_REFRESH ? MRT_GONE : MRT_FAILED,
               MORTISE_ELOST);
    }
}

/* ------------------------------------------------------------- death */

struct notice {
    struct task task;
    struct sqlite *db;
    struct mrt_id ticket;
    int queue, session;
};

/* The file event: the waiter right behind the dead one reads its file. */
static void notice_death(struct world *world, struct task *task)
{
    struct notice *notice = (struct notice *)task;
    struct sqlite *db = notice->db;
    const struct session *session = &db->sessions[notice->session];
    int row = find_row(db, notice->queue, notice->ticket, notice->session);
    struct mrt_event event = {.type = MRT_WAKE, .session = session->id, .ticket = notice->ticket};
    free(notice);
    if (row < 0 || !session->alive || !session->peer->client)
        return;
    world->server_changed = true;
    reap_ahead(db, row);
    client_event(world, session->peer->client, &event);
}

static void watch(struct world *world, struct sqlite *db, int dead)
{
    int queue = db->rows[dead].queue;
    for (int i = dead + 1; i < db->row_count; i++) {
        const struct session *session = &db->sessions[db->rows[i].session];
        if (db->rows[i].queue != queue || !session->alive || !session->peer->client)
            continue;
        if (random_chance(&world->random, world->profile.notices_refused))
            return;
        struct notice *notice = calloc(1, sizeof *notice);
        if (!notice)
            abort();
        notice->task.owned = true;
        notice->db = db;
        notice->queue = queue;
        notice->session = db->rows[i].session;
        notice->ticket = db->rows[i].ticket;
        mrt_time at = world->now + world_some(world, 500);
        const struct client *client = session->peer->client;
        if (at < client->paused_until)
            at = client->paused_until;
        world_at(world, &notice->task, at, notice_death);
        return;
    }
}

/* The kernel lets go of a session's lock. */
static void bury(struct world *world, struct sqlite *db, int session)
{
    db->sessions[session].alive = false;
    for (int i = 0; i < db->row_count; i++)
        if (db->rows[i].session == session)
            watch(world, db, i);
}

static void sqlite_died(struct world *world, void *server, struct peer *peer)
{
    struct sqlite *db = server;
    for (int i = 0; i < db->session_count; i++)
        if (db->sessions[i].peer == peer && db->sessions[i].alive)
            bury(world, db, i);
}

static void sqlite_kill(struct world *world, void *server, struct peer *peer)
{
    struct sqlite *db = server;
    for (int i = db->session_count - 1; i >= 0; i--) {
        if (db->sessions[i].peer != peer || !db->sessions[i].alive)
            continue;
        struct mrt_event event = {
            .type = MRT_SESSION_LOST, .session = db->sessions[i].id, .error = MORTISE_EUNSAFE};
        if (peer->client)
            client_event(world, peer->client, &event);
        bury(world, db, i);
    }
}

static bool sqlite_break(struct world *world, void *server, int queue, uint64_t fence)
{
    struct sqlite *db = server;
    for (int i = 0; i < db->row_count; i++) {
        if (db->rows[i].queue != queue || db->rows[i].fence != fence)
            continue;
        const struct row row = db->rows[i];
        delete_row(db, i);
        wake_next(world, db, queue);
        wake_owner(world, db, &row);
        return true;
    }
    return false;
}

static bool sqlite_revoke(struct world *world, void *server, int queue, uint64_t fence)
{
    struct sqlite *db = server;
    bool any = false;
    for (int i = 0; i < db->row_count; i++) {
        struct row *row = &db->rows[i];
        if (row->queue != queue || !granted(db, i) || (fence != 0 && row->fence != fence))
            continue;
        row->revoked++;
        wake_owner(world, db, row);
        any = true;
    }
    return any;
}

static void sqlite_reboot(struct world *world, void *server)
{
    (void)world;
    struct sqlite *db = server;
    for (int i = 0; i < db->session_count; i++)
        db->sessions[i].alive = false;
    memcpy(db->rows, db->durable, (size_t)db->durable_count * sizeof db->rows[0]);
    db->row_count = db->durable_count;
    db->next_fence = db->fence_limit;
}

/* ------------------------------------------------------------- truth */

static void sqlite_truth(struct world *world, void *server, int queue, const struct peer *peer,
                         struct truth *truth)
{
    (void)world;
    const struct sqlite *db = server;
    for (int i = 0; i < db->row_count; i++) {
        if (db->rows[i].queue != queue)
            continue;
        const struct session *session = &db->sessions[db->rows[i].session];
        truth->span = (uint64_t)db->world->drawn.fence_span;
        if (!truth->peer || session->alive)
            truth_add(truth, peer, session->peer, db->rows[i].fence, db->rows[i].weight,
                      session->alive && granted(db, i));
    }
}

/* Tickets of dead processes stay until they block a client. */
static int sqlite_left(struct world *world, void *server)
{
    (void)world;
    const struct sqlite *db = server;
    int left = 0;
    for (int i = 0; i < db->row_count; i++)
        left += db->sessions[db->rows[i].session].alive;
    for (int i = 0; i < db->session_count; i++)
        left += db->sessions[i].alive;
    return left;
}

static void sqlite_free(void *server)
{
    free(server);
}

const struct server_model sqlite_model = {.new = sqlite_new,
                                          .free = sqlite_free,
                                          .apply = sqlite_apply,
                                          .died = sqlite_died,
                                          .kill = sqlite_kill,
                                          .break_ticket = sqlite_break,
                                          .revoke = sqlite_revoke,
                                          .reboot = sqlite_reboot,
                                          .truth = sqlite_truth,
                                          .left = sqlite_left};
