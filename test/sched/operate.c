/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actors that go past the locks: an operator's listing, whose callback is slow, breaks what it sees
 * or lists again; asking holders to give up; elections; and a cell in which all count.
 */
#include "check.h"

#include <string.h>

#define LIST_LIMIT (30 * MRT_SECOND) /* of a listing behind others whose callbacks are slow */

/* ------------------------------------------------------------------ listing */

enum deed { NOTHING, BREAKS, REVOKES, LISTS, DEEDS };

struct listing {
    struct actor *actor;
    enum deed inside, after;
    mrt_time slow; /* how long the callback takes, in all */
    int lock;      /* of the entry that is chosen */
    uint64_t fence;
    int64_t left; /* so many entries come before it */
};

static int lock_of(const char *name)
{
    for (int i = 0; i < LOCKS_MAX; i++)
        if (strcmp(world.locks[i].name, name) == 0)
            return i;
    sched_fail("a list shows the lock %s", name);
}

static int ignore(void *argument, const mortise_entry *entry)
{
    (void)argument;
    (void)entry;
    return 0;
}

static int operate(const struct listing *listing, enum deed deed)
{
    mortise_client *client = listing->actor->client->handle;
    const char *name = world.locks[listing->lock].name;
    if (deed == BREAKS && world.breaks) {
        check_breaks(listing->lock, listing->fence);
        return mortise_break(client, name, listing->fence);
    }
    if (deed == REVOKES)
        return mortise_revoke(client, name, listing->fence);
    return deed == LISTS ? mortise_list(client, name, ignore, NULL) : MORTISE_OK;
}

static int show(void *argument, const mortise_entry *entry)
{
    struct listing *listing = argument;
    if (listing->slow > 0)
        sched_sleep("a slow reader of a list", listing->slow);
    listing->slow = 0;
    if (listing->left-- != 0)
        return 0;
    listing->lock = lock_of(entry->name);
    listing->fence = entry->fence;
    int error = operate(listing, listing->inside);
    if (error != MORTISE_OK && error != MORTISE_EDEADLOCK && error != MORTISE_ENOTHELD)
        sched_fail("an operator's call in a listing ended with %s", mortise_error_name(error));
    return 0;
}

void operate_list(struct actor *actor)
{
    struct random *random = &actor->random;
    struct listing listing = {.actor = actor, .lock = -1};
    listing.inside = random_below(random, 2) ? NOTHING : (enum deed)random_below(random, DEEDS);
    listing.after = (enum deed)random_below(random, DEEDS);
    listing.left = random_below(random, 4);
    if (random_below(random, 4) == 0)
        listing.slow = random_below(random, 2 * world.lease + 20 * MRT_MILLISECOND);
    check_call(actor, "lists", sched_now() + LIST_LIMIT, true);
    int error = mortise_list(actor->client->handle, NULL, show, &listing);
    check_returned(actor);
    if (error != MORTISE_OK)
        sched_fail("a listing ended with %s", mortise_error_name(error));
    if (listing.lock < 0)
        return;
    check_call(actor, "operates", sched_now() + LIST_LIMIT, true);
    error = operate(&listing, listing.after);
    check_returned(actor);
    if (error != MORTISE_OK && error != MORTISE_ENOTHELD)
        sched_fail("an operator's call ended with %s", mortise_error_name(error));
}

/* ------------------------------------------------------------------ elections */

struct candidate {
    bool leads; /* by what is told */
    bool freed; /* nothing is called any more */
    int begun;  /* campaigns that call back */
    int ended;  /* and have */
};

/* They outlive a call that comes too late. */
static struct candidate candidates[ACTORS_MAX];

static void check_is_called(const struct candidate *candidate)
{
    if (candidate->freed)
        sched_fail("a candidate is called back after it was freed");
}

static void elected(void *argument, uint64_t fence)
{
    struct candidate *candidate = argument;
    (void)fence;
    check_is_called(candidate);
    if (candidate->leads)
        sched_fail("a leader is elected");
    candidate->leads = true;
}

static void deposed(void *argument, uint64_t fence)
{
    struct candidate *candidate = argument;
    (void)fence;
    check_is_called(candidate);
    if (!candidate->leads)
        sched_fail("somebody is deposed who does not lead");
    candidate->leads = false;
}

static void observed(void *argument, const mortise_leader *leader)
{
    (void)argument;
    (void)leader;
    sched_note("sees who leads");
}

static void lead(struct actor *actor, mortise_election *election, uint64_t floor)
{
    mortise_hold hold;
    struct grip *grip = NULL;
    if (mortise_election_hold(election, &hold) == MORTISE_OK)
        grip = check_granted(LEADERSHIP, hold, 1, floor);
    actor_rest(actor, actor_draw_time(actor, 5));
    if (grip)
        check_giving_back(grip);
    check_call(actor, "resigns", sched_now(), false);
    mortise_election_resign(election);
    check_returned(actor);
}

static void campaign(struct actor *actor, mortise_election *election)
{
    int64_t most_ms = 1 + random_below(&actor->random, 20);
    uint64_t floor = check_floor(LEADERSHIP);
    mrt_time deadline = sched_now() + most_ms * MRT_MILLISECOND;
    check_call(actor, "campaigns", deadline, false);
    int error = mortise_election_campaign(election, most_ms);
    check_returned(actor);
    bool late =
        sched_now() >= deadline && (error == MORTISE_ETIMEOUT || error == MORTISE_EDISCONNECTED);
    if (error == MORTISE_OK)
        lead(actor, election, floor);
    else if (!late)
        sched_fail("a campaign ended with %s", mortise_error_name(error));
}

static void campaign_ended(void *argument, int error)
{
    struct candidate *candidate = argument;
    sched_note("has campaigned: %s", mortise_error_name(error));
    check_is_called(candidate);
    if (++candidate->ended > candidate->begun)
        sched_fail("a campaign ended twice");
    if (error == MORTISE_OK && !candidate->leads)
        sched_fail("a campaign ended well, and nobody was elected");
}

/* It is given up at any moment, granted or not. */
static void campaign_aside(struct actor *actor, mortise_election *election,
                           struct candidate *candidate)
{
    mrt_time most = actor_draw_time(actor, 20);
    mrt_time deadline = most > 0 ? sched_now() + most : MRT_TIME_NEVER;
    candidate->begun++;
    check_call(actor, "begins to campaign", sched_now(), false);
    int error = mortise_election_campaign_async(election, deadline, campaign_ended, candidate);
    check_returned(actor);
    if (error != MORTISE_OK)
        sched_fail("a campaign is not begun: %s", mortise_error_name(error));
    actor_rest(actor, actor_draw_time(actor, 5));
    mortise_election_proclaim(election, "more", 4);
    mortise_election_is_leader(election);
    actor_rest(actor, actor_draw_time(actor, 5));
    check_call(actor, "resigns", sched_now(), false);
    mortise_election_resign(election);
    check_returned(actor);
}

static mortise_election *new_election(struct actor *actor, struct candidate *candidate)
{
    mortise_election_options options = {.size = sizeof options,
                                        .value = actor->name,
                                        .value_size = strlen(actor->name),
                                        .elected = elected,
                                        .deposed = deposed,
                                        .argument = candidate};
    mortise_election *election;
    int error = mortise_election_new(actor->client->handle, world.locks[LEADERSHIP].name, &options,
                                     &election);
    if (error != MORTISE_OK)
        sched_fail("a candidate ended with %s", mortise_error_name(error));
    return election;
}

void operate_election(struct actor *actor)
{
    struct candidate *candidate = &candidates[actor->index];
    *candidate = (struct candidate){.leads = false};
    mortise_election *election = new_election(actor, candidate);
    if (random_below(&actor->random, 2) == 0)
        mortise_election_observe(election, observed, NULL);
    for (int64_t i = 1 + random_below(&actor->random, 2); i > 0; i--)
        campaign(actor, election);
    if (random_below(&actor->random, 2) == 0)
        campaign_aside(actor, election, candidate);
    check_call(actor, "frees a candidate", sched_now() + MRT_SECOND, true);
    mortise_election_free(election);
    check_returned(actor);
    candidate->freed = true;
    if (candidate->leads)
        sched_fail("a term ended, and nobody is deposed");
    if (candidate->ended < candidate->begun)
        sched_fail("a campaign ended, and nobody is told");
}

/* ------------------------------------------------------------------ a cell */

#define CELL "count"

static int add_one(void *argument, mortise_cell *cell)
{
    uint64_t count = 0;
    (void)argument;
    if (cell->version > 0)
        memcpy(&count, cell->value, sizeof count);
    count++;
    memcpy(cell->value, &count, sizeof count);
    cell->size = sizeof count;
    return 0;
}

void operate_cell(struct actor *actor)
{
    int64_t most_ms = 1 + random_below(&actor->random, 20);
    mrt_time deadline = sched_now() + most_ms * MRT_MILLISECOND;
    check_call(actor, "counts", deadline, false);
    int error = mortise_cell_update(actor->client->handle, CELL, add_one, NULL, 0, most_ms);
    check_returned(actor);
    bool others = error == MORTISE_ETIMEOUT || error == MORTISE_EUNREACHABLE;
    if (error == MORTISE_OK)
        world.counted++;
    else if (error == MORTISE_EUNKNOWN)
        world.perhaps_counted++;
    else if (!others)
        sched_fail("counting ended with %s", mortise_error_name(error));
}

void operate_check_cell(mortise_client *client)
{
    mortise_cell cell;
    uint64_t count = 0;
    if (mortise_cell_get(client, CELL, &cell) != MORTISE_OK)
        sched_fail("the cell is not read");
    if (cell.version > 0)
        memcpy(&count, cell.value, sizeof count);
    if (count < world.counted || count > world.counted + world.perhaps_counted)
        sched_fail("%llu were counted, and the cell has %llu", (unsigned long long)world.counted,
                   (unsigned long long)count);
}
