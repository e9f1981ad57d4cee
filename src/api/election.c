/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elections: the holder of a mutex leads, and its ticket shows the leader's value.
 *
 * A handle's campaigns are terms, one after the other; only the newest may be under way. A
 * term is kept until all has been told of it, and they are told in their order:
 *
 *   elected, the campaign's own callback, deposed      granted, and over some time
 *   the campaign's own callback                        it failed
 *
 * so calls of elected and deposed alternate, whatever happens in between, and whoever
 * campaigns again at once. A term's state is brought up to date by each call that reads it; whether
 * it leads is computed from the clock.
 *
 * Threads: any; callbacks run as all do (io/tell.c), one at a time.
 */
#include "api/client.h"
#include "base/error.h"
#include "core/recipe.h"

#include <stdlib.h>
#include <string.h>

enum term_state { TERM_CAMPAIGN, TERM_LEADS, TERM_OVER };

struct term {
    struct mrt_call wait; /* the acquire; first */
    mortise_election *election;
    enum term_state state;
    struct mrt_hold *hold; /* LEADS */
    uint64_t generation;
    uint64_t fence; /* 0: it has never led */
    int error;      /* of the campaign */
    bool blocked;   /* a thread is in mortise_election_campaign */
    bool told;      /* elected has been called */
    mortise_campaign_callback callback;
    void *argument;
    TAILQ_ENTRY(term) link;
};

struct mortise_election {
    struct mrt_participant participant; /* first */
    mortise_client *client;
    struct mrt_queue *queue;
    mortise_election_options options;
    unsigned char value[MORTISE_VALUE_MAX];
    size_t value_size;
    TAILQ_HEAD(term_list, term) terms;
    struct mrt_upcall upcall, news;
    bool calling; /* one of its callbacks is running */
    struct mrt_request *observer;
    mortise_leader_callback observed;
    void *observed_argument;
};

/* ------------------------------------------------------------------ terms */

/* Notes the result of a campaign. The mutex is held. */
static void take_outcome(struct term *term)
{
    const struct mrt_waiter *waiter = &term->wait.waiter;
    if (term->state != TERM_CAMPAIGN || waiter->state != MRT_WAITER_DONE)
        return;
    term->error = waiter->error;
    term->state = TERM_OVER;
    if (term->error != MORTISE_OK)
        return;
    term->state = TERM_LEADS;
    term->hold = waiter->hold;
    term->generation = waiter->hold->generation;
    term->fence = waiter->hold->fence;
    ((struct mrt_hold_host *)waiter->hold->host)->upcall = &term->election->upcall;
    mrt_engine_attend(waiter->hold);
}

/* Brings a term up to date. The thread that finds it lost first posts the callback. */
static void update_term(struct term *term)
{
    struct mrt_driver *driver = &term->election->client->driver;
    mrt_time now = mrt_time_now();
    take_outcome(term);
    if (term->state != TERM_LEADS || mrt_hold_state(term->hold, now) != MORTISE_LOST)
        return;
    mrt_engine_release(driver->engine, term->hold, term->generation, 0, now);
    term->state = TERM_OVER;
    mrt_driver_post(driver, &term->election->upcall);
}

/* The term that is under way, as of now; NULL: none. */
static struct term *current(const mortise_election *election)
{
    struct term *term = TAILQ_LAST(&election->terms, term_list);
    if (term)
        update_term(term);
    return term && term->state != TERM_OVER ? term : NULL;
}

/* Ends the term that is under way: a campaign with this error. 0, MORTISE_ELOST, ENOTHELD. */
static int end(mortise_election *election, int campaign_error)
{
    struct mrt_driver *driver = &election->client->driver;
    struct term *term = TAILQ_LAST(&election->terms, term_list);
    mrt_time now = mrt_time_now();
    int error = MORTISE_OK;
    if (term)
        take_outcome(term);
    if (!term || term->state == TERM_OVER)
        return MORTISE_ENOTHELD;
    if (term->state == TERM_CAMPAIGN) {
        mrt_engine_cancel(driver->engine, &term->wait.waiter, campaign_error, now);
    } else {
        error = mrt_engine_release(driver->engine, term->hold, term->generation, 0, now);
        term->state = TERM_OVER;
    }
    mrt_driver_post(driver, &election->upcall);
    return error;
}

/* ------------------------------------------------------------------ telling */

static void call_back(struct mrt_driver *driver, void (*callback)(void *argument, uint64_t fence),
                      void *argument, uint64_t fence)
{
    if (!callback)
        return;
    pthread_mutex_unlock(&driver->mutex);
    callback(argument, fence);
    pthread_mutex_lock(&driver->mutex);
}

/* Reports the next step of the oldest term; false: there is none. */
static bool tell_next(mortise_election *election, struct term *term)
{
    struct mrt_driver *driver = &election->client->driver;
    const mortise_election_options *options = &election->options;
    update_term(term);
    if (term->state == TERM_CAMPAIGN)
        return false;
    if (term->fence > 0 && !term->told) {
        term->told = true;
        call_back(driver, options->elected, options->argument, term->fence);
    } else if (term->callback) {
        mortise_campaign_callback callback = term->callback;
        term->callback = NULL;
        mrt_error_clear();
        mrt_driver_outcome(driver, &term->wait.waiter);
        pthread_mutex_unlock(&driver->mutex);
        callback(term->argument, term->error);
        pthread_mutex_lock(&driver->mutex);
    } else if (term->state == TERM_OVER && !term->blocked) {
        uint64_t fence = term->fence;
        TAILQ_REMOVE(&election->terms, term, link);
        free(term);
        if (fence > 0)
            call_back(driver, options->deposed, options->argument, fence);
    } else {
        return false;
    }
    return true;
}

static void run(struct mrt_upcall *upcall)
{
    mortise_election *election =
        (mortise_election *)(void *)((char *)upcall - offsetof(mortise_election, upcall));
    struct term *term;
    election->calling = true;
    while ((term = TAILQ_FIRST(&election->terms)) && tell_next(election, term))
        ;
    election->calling = false;
    mrt_driver_flush(&election->client->driver, mrt_driver_patience(MRT_TIME_NEVER));
}

static void tell_news(struct mrt_upcall *upcall)
{
    mortise_election *election =
        (mortise_election *)(void *)((char *)upcall - offsetof(mortise_election, news));
    struct mrt_driver *driver = &election->client->driver;
    mortise_leader_callback callback = election->observed;
    void *argument = election->observed_argument;
    if (!election->observer)
        return;
    const struct mrt_answer *holder = mrt_observer_holder(election->observer);
    mortise_leader leader = {.fence = holder->fence, .size = holder->value_size};
    memcpy(leader.value, holder->value, holder->value_size);
    election->calling = true;
    pthread_mutex_unlock(&driver->mutex);
    callback(argument, &leader);
    pthread_mutex_lock(&driver->mutex);
    election->calling = false;
}

/* ------------------------------------------------------------------ campaigns */

/* Begins a campaign; the mutex is held. NULL: *error says why not. */
static struct term *begin_campaign(mortise_election *election, enum mrt_call_kind kind,
                                   mrt_time deadline, bool try_only, int *error)
{
    struct mrt_driver *driver = &election->client->driver;
    if (current(election)) {
        *error = mrt_error(MORTISE_EDEADLOCK, "this candidate leads or campaigns already");
        return NULL;
    }
    *error = mrt_client_lease(election->client) > 0 ? mrt_tell_in_time(driver) : MORTISE_OK;
    if (*error != MORTISE_OK)
        return NULL;
    struct term *term = calloc(1, sizeof *term);
    *error = term ? MORTISE_OK : MORTISE_ENOMEM;
    if (!term)
        return NULL;
    term->election = election;
    term->wait.kind = kind;
    term->wait.upcall = &election->upcall;
    struct mrt_waiter *waiter = &term->wait.waiter;
    waiter->deadline = deadline;
    waiter->try_only = try_only;
    waiter->value = election->value;
    waiter->value_size = election->value_size;
    mrt_engine_acquire(driver->engine, election->queue, waiter, mrt_time_now());
    if (waiter->state == MRT_WAITER_DONE) { /* closed, or no memory; a ticket takes longer */
        *error = mrt_driver_outcome(driver, waiter);
        free(term);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&election->terms, term, link);
    return term;
}

int mortise_election_campaign(mortise_election *election, int64_t timeout_ms)
{
    if (!election)
        return mrt_error(MORTISE_EINVALID, "no election");
    struct mrt_driver *driver = &election->client->driver;
    int error = mrt_driver_check(driver, true);
    if (error != MORTISE_OK)
        return error;
    int64_t wait_ms = timeout_ms == 0 ? election->client->timeout / MRT_MILLISECOND : timeout_ms;
    mrt_time now = mrt_time_now();
    mrt_time deadline = wait_ms < 0 ? MRT_TIME_NEVER : mrt_time_add(now, mrt_time_from_ms(wait_ms));
    mrt_driver_enter(driver);
    struct term *term =
        begin_campaign(election, MRT_CALL_BLOCKING, MRT_TIME_NEVER, timeout_ms == 0, &error);
    if (term) {
        term->wait.waiter.since = now; /* it has waited for the mutex, too */
        term->blocked = true;
        mrt_driver_wait(driver, &term->wait, deadline, MORTISE_ETIMEOUT);
        update_term(term);
        error = mrt_driver_outcome(driver, &term->wait.waiter);
        term->blocked = false;
        mrt_driver_post(driver, &election->upcall);
    }
    mrt_driver_leave(driver, deadline);
    return error;
}

int mortise_election_campaign_async(mortise_election *election, int64_t deadline_ns,
                                    mortise_campaign_callback callback, void *argument)
{
    if (!election)
        return mrt_error(MORTISE_EINVALID, "no election");
    struct mrt_driver *driver = &election->client->driver;
    int error = mrt_driver_check(driver, false);
    if (error != MORTISE_OK)
        return error;
    mrt_driver_enter(driver);
    struct term *term = begin_campaign(election, MRT_CALL_UPCALL, deadline_ns, false, &error);
    if (term) {
        term->callback = callback;
        term->argument = argument;
    }
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return error;
}

/* Enters the client for a call that need not wait. */
static int enter(const mortise_election *election)
{
    if (!election) {
        mrt_error(MORTISE_EINVALID, "no election");
        return MORTISE_EINVALID;
    }
    int error = mrt_driver_check(&election->client->driver, false);
    if (error == MORTISE_OK)
        mrt_driver_enter(&election->client->driver);
    return error;
}

int mortise_election_resign(mortise_election *election)
{
    int error = enter(election);
    if (error != MORTISE_OK)
        return error;
    error = end(election, MORTISE_ECANCELLED);
    mrt_driver_leave(&election->client->driver, MRT_TIME_NEVER);
    return error;
}

static int check_value(const void *value, size_t size)
{
    if (size > MORTISE_VALUE_MAX || (size > 0 && !value))
        return mrt_error(MORTISE_EINVALID, "a value has at most %d bytes", MORTISE_VALUE_MAX);
    return MORTISE_OK;
}

static void keep_value(mortise_election *election, const void *value, size_t size)
{
    if (size > 0)
        memcpy(election->value, value, size);
    election->value_size = size;
}

int mortise_election_proclaim(mortise_election *election, const void *value, size_t size)
{
    int error = check_value(value, size);
    if (error == MORTISE_OK)
        error = enter(election);
    if (error != MORTISE_OK)
        return error;
    struct term *term = current(election);
    keep_value(election, value, size);
    if (term && term->state == TERM_CAMPAIGN)
        error = mrt_waiter_set_value(&term->wait.waiter, election->value, size);
    else if (term)
        error = mrt_hold_set_value(term->hold, term->generation, value, size, mrt_time_now());
    mrt_driver_leave(&election->client->driver, MRT_TIME_NEVER);
    return error;
}

uint64_t mortise_election_fence(mortise_election *election)
{
    if (enter(election) != MORTISE_OK)
        return 0;
    const struct term *term = current(election);
    uint64_t fence = term && term->state == TERM_LEADS ? term->fence : 0;
    mrt_driver_leave(&election->client->driver, MRT_TIME_NEVER);
    return fence;
}

int mortise_election_hold(mortise_election *election, mortise_hold *hold)
{
    if (!hold)
        return mrt_error(MORTISE_EINVALID, "hold must not be NULL");
    int error = enter(election);
    if (error != MORTISE_OK)
        return error;
    const struct term *term = current(election);
    bool leads = term && term->state == TERM_LEADS;
    if (leads)
        *hold = (mortise_hold){term->hold, term->generation};
    mrt_driver_leave(&election->client->driver, MRT_TIME_NEVER);
    return leads ? MORTISE_OK : MORTISE_ENOTHELD;
}

int mortise_election_is_leader(mortise_election *election)
{
    return mortise_election_fence(election) != 0;
}

/* ------------------------------------------------------------------ looking */

int mortise_election_leader(mortise_election *election, mortise_leader *leader)
{
    if (!election || !leader)
        return mrt_error(MORTISE_EINVALID, "an election and a place for its leader are needed");
    mortise_client *client = election->client;
    int error = mrt_driver_check(&client->driver, true);
    if (error != MORTISE_OK)
        return error;
    struct mrt_answer answer = {0};
    const struct mrt_command wanted = {
        .type = MRT_OBSERVE, .queue = mrt_queue_name(election->queue), .once = true};
    error = mrt_client_ask(client, &wanted, mrt_time_add(mrt_time_now(), client->timeout), &answer);
    if (error == MORTISE_OK && answer.fence == 0)
        return MORTISE_ENOLEADER;
    if (error != MORTISE_OK)
        return error;
    *leader = (mortise_leader){.fence = answer.fence, .size = answer.value_size};
    memcpy(leader->value, answer.value, answer.value_size);
    return MORTISE_OK;
}

int mortise_election_observe(mortise_election *election, mortise_leader_callback callback,
                             void *argument)
{
    int error = enter(election);
    if (error != MORTISE_OK)
        return error;
    struct mrt_driver *driver = &election->client->driver;
    if (election->observer)
        mrt_observer_end(election->observer);
    mrt_driver_unpost(driver, &election->news);
    election->observed = callback;
    election->observed_argument = argument;
    election->observer = NULL;
    if (callback) {
        election->observer =
            mrt_engine_observe(driver->engine, mrt_queue_name(election->queue), &election->news);
        error = election->observer ? MORTISE_OK : MORTISE_ENOMEM;
    }
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    return error;
}

/* ------------------------------------------------------------------ life */

static void end_all(mortise_election *election, int campaign_error)
{
    end(election, campaign_error);
    if (election->observer)
        mrt_observer_end(election->observer);
    election->observer = NULL;
    mrt_driver_unpost(&election->client->driver, &election->news);
}

static void end_with_client(struct mrt_participant *participant)
{
    end_all((mortise_election *)participant, MORTISE_ECLOSED);
}

static void free_with_client(struct mrt_participant *participant)
{
    mortise_election *election = (mortise_election *)participant;
    struct term *term, *next;
    TAILQ_FOREACH_SAFE (term, &election->terms, link, next)
        free(term);
    free(election);
}

int mortise_election_new(mortise_client *client, const char *name,
                         const mortise_election_options *given, mortise_election **result)
{
    mortise_election_options options;
    char full[MRT_FULL_NAME_SIZE];
    if (!client || !result)
        return mrt_error(MORTISE_EINVALID, "an election needs a client and a place for its handle");
    int error = mrt_driver_check(&client->driver, false);
    if (error == MORTISE_OK)
        error = mrt_take_options(given, &options, sizeof options, "mortise_election_options");
    if (error == MORTISE_OK && !client->driver.ops->values)
        error = mrt_error(MORTISE_ENOTSUPPORTED, "this store keeps no values of leaders");
    if (error == MORTISE_OK)
        error = mrt_client_full_name(client, name, full);
    if (error == MORTISE_OK)
        error = check_value(options.value, options.value_size);
    if (error != MORTISE_OK)
        return error;
    mortise_election *election = calloc(1, sizeof *election);
    if (!election)
        return MORTISE_ENOMEM;
    election->client = client;
    election->participant.end = end_with_client;
    election->participant.free = free_with_client;
    election->upcall.run = run;
    election->news.run = tell_news;
    TAILQ_INIT(&election->terms);
    election->options = options;
    keep_value(election, options.value, options.value_size);
    mrt_driver_enter(&client->driver);
    error = mrt_client_queue(client, full, &mrt_election, &election->queue);
    if (error == MORTISE_OK)
        TAILQ_INSERT_TAIL(&client->participants, &election->participant, link);
    mrt_reader_disable(&client->driver);
    mrt_driver_leave_quietly(&client->driver);
    if (error != MORTISE_OK)
        free(election);
    else
        *result = election;
    return error;
}

/* Whether all has been reported, and no callback of it runs. */
static bool is_told(const void *subject)
{
    const mortise_election *election = subject;
    return TAILQ_EMPTY(&election->terms) && !election->calling && !election->news.posted;
}

int mortise_election_free(mortise_election *election)
{
    if (!election)
        return MORTISE_OK;
    struct mrt_driver *driver = &election->client->driver;
    int error = mrt_driver_check(driver, true);
    if (error != MORTISE_OK)
        return error;
    mrt_driver_enter(driver);
    end_all(election, MORTISE_ECANCELLED);
    mrt_driver_flush(driver, mrt_driver_patience(MRT_TIME_NEVER));
    mrt_driver_wait_upcalls(driver, is_told, election);
    mrt_driver_unpost(driver, &election->upcall);
    TAILQ_REMOVE(&election->client->participants, &election->participant, link);
    mrt_queue_put(election->queue);
    mrt_driver_leave(driver, MRT_TIME_NEVER);
    free(election);
    return MORTISE_OK;
}
