/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PostgreSQL as the servers of a world: a primary and a standby, which change places. The real
 * stores in the clients talk to them by streams; here are their troubles, what an operator does,
 * and the truth about who has a lock, which is what the primary has committed.
 *
 * The clock is one for both. It may stand still for a while or be set back, which makes leases
 * longer. Only the command line asks for faults that break promises: a clock that is set ahead, and
 * a standby that lags and is promoted.
 */
#include "pg_server.h"
#include "server.h"
#include "store/sql/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_LOGGED 32

struct pg_cluster *pg_of(struct world *world)
{
    return world->server->state;
}

int64_t pg_clock(const struct pg_server *server)
{
    return server->cluster->world->now / MRT_MICROSECOND + server->cluster->clock_us;
}

bool pg_is_primary(const struct pg_server *server)
{
    return server->cluster->primary == server->number;
}

static struct pg_server *primary_of(struct pg_cluster *cluster)
{
    return &cluster->servers[cluster->primary];
}

/* ------------------------------------------------------------------ troubles */

/* Numbers are logged some ahead, so after a crash or a promotion some are left out. */
static int64_t next_logged(int64_t sequence)
{
    return (sequence / NUMBERS_LOGGED + 1) * NUMBERS_LOGGED;
}

static void vanish_all(struct pg_server *server, bool silently)
{
    while (server->backends)
        pg_vanish(server->backends, silently);
    memset(server->pool, 0, sizeof server->pool);
}

static void restart(struct world *world, struct pg_server *server, mrt_time until)
{
    vanish_all(server, random_below(&world->random, 2));
    server->frozen_until = 0;
    server->down_until = until;
    server->sequence = next_logged(server->sequence);
    if (server->hurried && random_below(&world->random, 2))
        pg_copy(&server->rows, &server->durable);
    server->hurried = false;
}

static void copy(struct world *world, struct task *task)
{
    struct pg_cluster *cluster =
        (struct pg_cluster *)(void *)((char *)task - offsetof(struct pg_cluster, copy));
    struct pg_server *from = primary_of(cluster), *to = &cluster->servers[1 - cluster->primary];
    bool is_behind =
        from->hurried && random_below(&world->random, 2); /* nobody has waited for it */
    pg_copy(&to->rows, is_behind ? &from->durable : &from->rows);
    to->sequence = next_logged(from->sequence);
    if (world->phase == PHASE_CHAOS && world->drawn.pg_lag_us > 0)
        world_at(world, task, world->now + world_some(world, world->drawn.pg_lag_us), copy);
}

/* The standby becomes the primary, and what was that can only be read from now on. */
static void promote(struct world *world, struct pg_cluster *cluster)
{
    struct pg_server *old = primary_of(cluster), *new = &cluster->servers[1 - cluster->primary];
    if (new->down_until > world->now)
        return;
    if (world->drawn.pg_lag_us == 0)
        copy(world, &cluster->copy);
    vanish_all(new, false);
    cluster->primary = new->number;
    new->hurried = false;
    if (random_below(&world->random, 2))
        while (old->backends)
            pg_terminate(old->backends, "57P01");
    else /* what is under way cannot write any more */
        for (struct pg_backend *b = old->backends; b; b = b->next)
            pg_spoil(b, "25006");
}

static void set_clock(struct world *world, struct pg_cluster *cluster)
{
    int64_t back = world_some(world, world->profile.clock_back_us) / MRT_MICROSECOND;
    cluster->clock_us += world_some(world, world->profile.clock_step_us) / MRT_MICROSECOND - back;
    cluster->set_back_us += back;
}

static void befall(struct world *world, void *state, int kind, mrt_time until)
{
    static const char *const names[] = {[TROUBLE_STILL] = "stands still",
                                        [TROUBLE_DOWN] = "breaks down",
                                        [TROUBLE_CLOCK] = "has its clock set",
                                        [TROUBLE_STREAM] = "a stream is held up",
                                        [TROUBLE_PROMOTION] = "is the standby now"};
    struct pg_cluster *cluster = state;
    struct pg_server *server = primary_of(cluster);
    trace_note(world, TRACE_LINK, -1, NO_QUEUE, names[kind], server->number,
               (until - world->now) / 1000, 0);
    world->server_changed = true;
    if (kind == TROUBLE_STILL)
        server->frozen_until = until;
    else if (kind == TROUBLE_DOWN)
        restart(world, server, until);
    else if (kind == TROUBLE_CLOCK)
        set_clock(world, cluster);
    else if (kind == TROUBLE_STREAM)
        streams_hold_up(world, until);
    else if (kind == TROUBLE_PROMOTION)
        promote(world, cluster);
}

static void trouble(struct world *world, struct task *task)
{
    static const int kinds[] = {TROUBLE_STILL, TROUBLE_DOWN, TROUBLE_CLOCK, TROUBLE_STREAM,
                                TROUBLE_PROMOTION};
    const struct profile *p = &world->profile;
    if (world->phase != PHASE_CHAOS)
        return;
    world_at(world, task, world->now + world_about(world, p->trouble_every_us), trouble);
    int kind = kinds[random_below(&world->random, 5)];
    if (p->trouble_kind != TROUBLE_ANY)
        kind = (int)p->trouble_kind;
    befall(world, task, kind, world->now + world_some(world, p->trouble_us));
}

/* ------------------------------------------------------------------ the truth */

/* As the clients have it in memory. */
static uint64_t value_in(const char *hexadecimal)
{
    unsigned char bytes[sizeof(uint64_t)] = {0};
    uint64_t value;
    for (size_t i = 0; i < sizeof bytes && hexadecimal[0]; i++, hexadecimal += 2) {
        const char digits[] = {hexadecimal[0], hexadecimal[1], '\0'};
        bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* How long after the end of a lease a waiter reads it at the latest: its clock may be slow since
 * its last look, at most a lease ago, and it rechecks no oftener than RECHECK_MIN. */
static int64_t look_limit_us(const struct profile *p)
{
    return 10000 + p->timer_late_us + p->lease_us * 2 * p->drift_ppm / (1000000 - p->drift_ppm);
}

/* Its session has not been renewed for a lease, so its client has lost it. It is removed when the
 * server's clock, which may have been set back, says so, and a client waits for it. */
static bool is_orphaned(struct world *world, const struct pg_server *server,
                        const struct pg_line *line, int at)
{
    const struct pg_row *session = line->sessions[at];
    if (session->lives_until > world->now)
        return false;
    bool wanted = false;
    for (int i = at + 1; i < line->count; i++)
        wanted |= line->upto[i] > line->tickets[i]->capacity &&
                  line->sessions[i]->lives_until > world->now;
    return !wanted || session->expires + look_limit_us(&world->drawn) > pg_clock(server);
}

static void pg_truth(struct world *world, void *state, int queue, const struct peer *asker,
                     struct truth *truth)
{
    const struct queue_state *known = &world->queues[queue];
    struct pg_line line;
    pg_line_up(&primary_of(state)->rows, known->name, &line);
    truth->span = UINT64_C(1) << MRT_SQL_FENCE_BITS;
    truth->lawless = world->drawn.pg_lag_us + world->drawn.clock_step_us > 0;
    if (line.count > 0)
        truth->value = value_in(line.tickets[0]->value);
    for (int i = 0; i < line.count; i++) {
        int before = truth->grant_count;
        truth_add(truth, asker, line.sessions[i]->peer,
                  (uint64_t)line.tickets[i]->number << MRT_SQL_FENCE_BITS,
                  (uint64_t)line.tickets[i]->weight,
                  (uint64_t)line.upto[i] <= known->recipe.capacity);
        if (truth->grant_count > before)
            truth->grants[before].orphaned = is_orphaned(world, primary_of(state), &line, i);
    }
}

/* Whether its lease was over at that time, however late the clock was. */
static bool was_over(const struct pg_cluster *cluster, const struct pg_row *session, mrt_time at)
{
    return session->expires <= at / MRT_MICROSECOND + cluster->clock_us + cluster->set_back_us;
}

/* Losses that no death explains. A START of an old connection may come after the session's end, and
   makes one that nobody puts tickets in, for as long as a lease. */
static int pg_left(struct world *world, void *state)
{
    const struct pg_cluster *cluster = state;
    const struct pg_rows *rows = &cluster->servers[cluster->primary].rows;
    int left = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct pg_row *row = &rows->at[i];
        char key[PG_ID_SIZE];
        snprintf(key, sizeof key, "%.32s", row->key);
        const struct pg_row *session = pg_find(rows, PG_SESSION, key);
        if (session && row->table == PG_SESSION)
            left += !was_over(cluster, session, world->now);
        else if (session && row->table == PG_TICKET)
            left += !was_over(cluster, session,
                              session->peer->closed ? session->peer->closed_at : world->now);
    }
    return left;
}

static uint64_t pg_cell(void *state)
{
    const struct pg_row *cell = pg_find(&primary_of(state)->rows, PG_CELL, "cell");
    return cell ? value_in(cell->value) : 0;
}

/* ------------------------------------------------------------------ an operator */

static bool operate(struct pg_cluster *cluster, enum mrt_pg_statement statement, int queue,
                    uint64_t fence)
{
    char number[24];
    const char *const values[] = {cluster->world->queues[queue].name, number};
    if (fence % (UINT64_C(1) << MRT_SQL_FENCE_BITS) != 0)
        return false;
    snprintf(number, sizeof number, "%" PRIu64, fence >> MRT_SQL_FENCE_BITS);
    return pg_run(primary_of(cluster), statement, values, 2) > 0;
}

static bool pg_break(struct world *world, void *state, int queue, uint64_t fence)
{
    (void)world;
    return operate(state, MRT_PG_BREAK, queue, fence);
}

static bool pg_ask_back(struct world *world, void *state, int queue, uint64_t fence)
{
    (void)world;
    return operate(state, MRT_PG_REVOKE, queue, fence);
}

/* He ends the client's connections (pg_terminate_backend). */
static void pg_kill(struct world *world, void *state, struct peer *peer)
{
    struct pg_cluster *cluster = state;
    (void)world;
    for (int i = 0; i < PG_SERVERS; i++)
        for (struct pg_backend *b = cluster->servers[i].backends, *next; b; b = next) {
            next = b->next;
            if (b->peer == peer)
                pg_terminate(b, "57P01");
        }
}

/* ------------------------------------------------------------------ the model */

static void *pg_new(struct world *world)
{
    struct pg_cluster *cluster = calloc(1, sizeof *cluster);
    if (!cluster)
        abort();
    cluster->world = world;
    cluster->clock_us = 1000000000;
    for (int i = 0; i < PG_SERVERS; i++) {
        cluster->servers[i].cluster = cluster;
        cluster->servers[i].number = i;
    }
    if (world->drawn.trouble_every_us > 0)
        world_at(world, &cluster->trouble, world_about(world, world->drawn.trouble_every_us),
                 trouble);
    if (world->drawn.pg_lag_us > 0)
        world_at(world, &cluster->copy, 0, copy);
    return cluster;
}

static void pg_free(void *state)
{
    struct pg_cluster *cluster = state;
    for (int i = 0; i < PG_SERVERS; i++) {
        vanish_all(&cluster->servers[i], true);
        free(cluster->servers[i].rows.at);
        free(cluster->servers[i].durable.at);
    }
    free(cluster);
}

static bool pg_is_down(struct world *world, int server)
{
    return pg_of(world)->servers[server].down_until > world->now;
}

static const struct stream_server pg_streams = {
    .is_down = pg_is_down, .accept = pg_accept, .receive = pg_receive, .hang_up = pg_hang_up};

const struct server_model postgres_model = {.streams = &pg_streams,
                                            .new = pg_new,
                                            .free = pg_free,
                                            .kill = pg_kill,
                                            .befall = befall,
                                            .break_ticket = pg_break,
                                            .revoke = pg_ask_back,
                                            .truth = pg_truth,
                                            .left = pg_left,
                                            .cell = pg_cell};
