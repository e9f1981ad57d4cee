/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LIST: the locks that clients have or wait for by LOCK and CAMPAIGN, as the agent knows them.
 * Nothing is asked of the store, so it costs no lock its time. `mortise ls` shows the locks that
 * others have at the store.
 *
 * The user and the process of a row are the kernel's words; the label is the client's.
 */
#include "agent/lock.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MAX 1000

struct list {
    struct mrt_peer *asks;
    const struct mrt_resp_word *prefix;
    struct mrt_reply *reply; /* NULL: rows are counted alone */
    size_t count;
};

static void write_text(struct mrt_reply *reply, const char *text)
{
    mrt_reply_bulk(reply, text, strlen(text));
}

static void write_row(const struct mrt_lock *lock, const char *name, struct mrt_reply *reply)
{
    const struct mrt_peer *peer = lock->peer;
    mrt_time age = mrt_time_now() - lock->since;
    mrt_reply_array(reply, 8);
    write_text(reply, name);
    write_text(reply, mrt_queue_recipe(lock->queue)->kind);
    write_text(reply, lock->hold ? "holds" : "waits");
    mrt_reply_integer(reply, lock->hold ? (int64_t)lock->hold->fence : 0);
    mrt_reply_integer(reply, peer->user->uid);
    mrt_reply_integer(reply, peer->pid);
    mrt_reply_integer(reply, age / MRT_MILLISECOND);
    write_text(reply, lock->label);
}

/* The row of a lock, if it is one that the client may see. */
static void take(struct list *list, const struct mrt_lock *lock)
{
    const struct mrt_peer *asks = list->asks;
    size_t space = strlen(asks->space);
    const char *name = mrt_queue_name(lock->queue) + strlen(asks->agent->prefix);
    if (strncmp(name, asks->space, space) != 0)
        return;
    name += space;
    struct mrt_resp_word word = {name, strlen(name)};
    if (word.size < list->prefix->size ||
        memcmp(name, list->prefix->text, list->prefix->size) != 0 ||
        (asks->user->limits && !mrt_access_allows(asks->agent->access, &asks->rules,
                                                  MRT_ACCESS_LIST, word.text, word.size)))
        return;
    list->count++;
    if (list->reply)
        write_row(lock, name, list->reply);
}

static void take_all(struct list *list, const struct mrt_peer_list *peers)
{
    const struct mrt_peer *peer;
    const struct mrt_lock *lock, *next;
    TAILQ_FOREACH (peer, peers, link)
        HASH_ITER (hh, peer->locks, lock, next)
            take(list, lock);
}

static void count_locks(const struct mrt_peer_list *peers, struct mrt_agent_counts *counts)
{
    const struct mrt_peer *peer;
    const struct mrt_lock *lock, *next;
    TAILQ_FOREACH (peer, peers, link)
        HASH_ITER (hh, peer->locks, lock, next) {
            counts->tickets += !lock->answer;
            counts->holders += lock->hold != NULL;
        }
}

void mrt_count(const struct mrt_agent *agent, struct mrt_agent_counts *counts)
{
    const struct mrt_desk_session *session;
    const struct mrt_desk_ticket *ticket;
    *counts = (struct mrt_agent_counts){.tickets = 0};
    count_locks(&agent->peers, counts);
    count_locks(&agent->ended, counts);
    TAILQ_FOREACH (session, &agent->desk.sessions, link) {
        counts->sessions += session->state != MRT_DESK_NONE;
        counts->holders += session->granted;
        TAILQ_FOREACH (ticket, &session->tickets, link)
            counts->tickets += !ticket->observes;
    }
}

void mrt_list(struct mrt_peer *peer, const struct mrt_resp_word *prefix, struct mrt_reply *reply)
{
    struct list list = {peer, prefix, NULL, 0};
    take_all(&list, &peer->agent->peers);
    take_all(&list, &peer->agent->ended);
    if (list.count > ROWS_MAX) {
        mrt_reply_error(reply,
                        "FULL these are %zu locks, more than %d: LIST takes the beginning of "
                        "their names",
                        list.count, ROWS_MAX);
        return;
    }
    mrt_reply_array(reply, list.count);
    list.reply = reply;
    take_all(&list, &peer->agent->peers);
    take_all(&list, &peer->agent->ended);
}
