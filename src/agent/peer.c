/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: see peer.h. Their admission: admit.c.
 *
 * Reading is in the agent's buffer; a peer keeps only the beginning of a command whose rest has
 * not come. One event reads at most READ_SIZE bytes, so a client that sends without end has its
 * share of the agent like the others.
 *
 * A peer is ended by the agent if its bytes are no commands, or if it does not read its replies.
 * Its side of the socket is shut, which the client sees; its locks stay (agent.h).
 *
 * Invariant: a peer that is GONE has no lock, no descriptor, and waits in the list `gone` to be
 * freed after the events of the turn, some of which may still name it.
 */
#include "agent/lock.h"
#include "agent/process.h"
#include "agent/take.h"

#include "base/epoll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 2048 /* at a time */
#define INPUT_SIZE (MRT_RESP_SIZE_MAX + READ_SIZE)
#define OUTPUT_PAUSE (MRT_REPLY_SIZE_MAX / 4) /* a client that reads late is not read either */

/* Whether the next command may be run now, or kept. */
static bool takes_more(const struct mrt_peer *peer)
{
    return peer->state == MRT_PEER_OPEN && !peer->quits && !peer->ends &&
           peer->pending_count < MRT_PEER_PENDING_MAX && !mrt_desk_is_busy(peer);
}

/* Sets the events that epoll reports, as the peer is now. */
static void watch(struct mrt_peer *peer)
{
    uint32_t events = EPOLLRDHUP;
    if (takes_more(peer) && peer->output.size < OUTPUT_PAUSE)
        events |= EPOLLIN;
    if (peer->state == MRT_PEER_OPEN && peer->output.size > 0 && !peer->flushing)
        events |= EPOLLOUT;
    if (events == peer->watched)
        return;
    peer->watched = events;
    mrt_epoll_watch(peer->agent->epoll, peer->fd, events, peer);
}

/* Sends as much as the socket takes; false: the client is gone. */
static bool send_output(struct mrt_peer *peer)
{
    struct mrt_reply *output = &peer->output;
    ssize_t sent = send(peer->fd, output->bytes, output->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        mrt_reply_sent(output, (size_t)sent);
    return sent >= 0 || errno == EAGAIN || errno == EINTR;
}

/* ----------------------------------------------------------------------- the end */

/* Counts the bytes kept for it among those of its user; false: they are too many. */
static bool count_bytes(struct mrt_peer *peer)
{
    struct mrt_user *user = peer->user;
    size_t kept = peer->output.capacity + peer->part_size;
    if (peer->session)
        kept += peer->session->bytes;
    const struct mrt_pending *pending;
    STAILQ_FOREACH(pending, &peer->pending, link)
    kept += sizeof *pending + pending->frame_size + pending->reply.capacity;
    user->bytes += kept - peer->counted;
    peer->counted = kept;
    return !user->limits || user->bytes <= user->limits->bytes;
}

static void forget_pending(struct mrt_peer *peer)
{
    struct mrt_pending *pending;
    while ((pending = STAILQ_FIRST(&peer->pending))) {
        STAILQ_REMOVE_HEAD(&peer->pending, link);
        mrt_reply_free(&pending->reply);
        free(pending->frame);
        free(pending);
    }
    peer->pending_count = 0;
}

static void forget_bytes(struct mrt_peer *peer)
{
    forget_pending(peer);
    mrt_reply_free(&peer->output);
    free(peer->part);
    peer->part = NULL;
    peer->part_size = 0;
    count_bytes(peer);
    if (peer->flushing)
        TAILQ_REMOVE(&peer->agent->flushes, peer, flush_link);
    peer->flushing = false;
}

void mrt_peer_close(struct mrt_peer *peer)
{
    struct mrt_agent *agent = peer->agent;
    struct mrt_lock *lock, *next;
    if (peer->state == MRT_PEER_GONE)
        return;
    TAILQ_REMOVE(peer->state == MRT_PEER_ENDED ? &agent->ended : &agent->peers, peer, link);
    peer->state = MRT_PEER_GONE;
    HASH_ITER (hh, peer->locks, lock, next)
        mrt_lock_drop(lock);
    if (peer->waiting)
        mrt_lock_drop(peer->waiting); /* a question */
    if (peer->is_process)
        mrt_process_forget(peer);
    mrt_process_unwatch(peer);
    mrt_desk_close(peer);
    mrt_desk_forget_operation(peer);
    forget_bytes(peer);
    close(peer->fd);
    TAILQ_INSERT_TAIL(&agent->gone, peer, link);
    agent->peer_count--;
    if (!peer->is_process)
        peer->user->connections--;
    agent->resumes |= agent->pauses && !agent->drains; /* others may close in the same turn */
    agent->pauses = false;
}

void mrt_peer_end(struct mrt_peer *peer)
{
    struct mrt_lock *lock, *next;
    if (peer->state != MRT_PEER_OPEN)
        return;
    peer->state = MRT_PEER_ENDED;
    TAILQ_REMOVE(&peer->agent->peers, peer, link);
    TAILQ_INSERT_TAIL(&peer->agent->ended, peer, link);
    peer->agent->counters.ended++;
    HASH_ITER (hh, peer->locks, lock, next)
        if (!lock->hold && lock->call.waiter.state != MRT_WAITER_DONE)
            mrt_lock_drop(lock);
    if (peer->waiting)
        mrt_lock_drop(peer->waiting);
    if (peer->output.size > 0)
        send_output(peer); /* the last words, as far as the client reads */
    forget_bytes(peer);
    if (HASH_COUNT(peer->locks) == 0 && !mrt_desk_holds(peer)) {
        mrt_peer_close(peer);
        return;
    }
    peer->forget_at = mrt_time_add(mrt_time_now(), peer->agent->lease);
    if (peer->is_process)
        return; /* its end is still seen */
    shutdown(peer->fd, SHUT_WR);
    watch(peer);
}

void mrt_peer_free(struct mrt_peer *peer)
{
    TAILQ_REMOVE(&peer->agent->gone, peer, link);
    free(peer);
}

/* ---------------------------------------------------------------------- commands */

/* Puts a command behind the LOCK that waits: false: no memory. */
static bool postpone(struct mrt_peer *peer, const struct mrt_resp_command *command,
                     const char *frame, size_t size, mrt_time now)
{
    struct mrt_pending *pending = calloc(1, sizeof *pending);
    if (!pending)
        return false;
    pending->received = now;
    if (mrt_command_overtakes(peer, command)) {
        mrt_command_run(peer, command, now, &pending->reply);
    } else {
        pending->frame = malloc(size);
        pending->frame_size = size;
        if (!pending->frame) {
            free(pending);
            return false;
        }
        memcpy(pending->frame, frame, size);
    }
    STAILQ_INSERT_TAIL(&peer->pending, pending, link);
    peer->pending_count++;
    return true;
}

/* Keeps what was read and not used: false: no memory. */
static bool keep_part(struct mrt_peer *peer, const char *bytes, size_t size)
{
    char *part = size > 0 ? malloc(size) : NULL;
    if (size > 0 && !part)
        return false;
    if (part)
        memcpy(part, bytes, size);
    free(peer->part);
    peer->part = part;
    peer->part_size = size;
    return true;
}

/* Takes the commands of these bytes, and keeps the rest; the peer may be ended. */
static void take_commands(struct mrt_peer *peer, const char *bytes, size_t size)
{
    struct mrt_resp_command command;
    enum mrt_resp_result result = MRT_RESP_COMMAND;
    const char *wrong;
    size_t at = 0, used;
    bool is_kept = true;
    mrt_time now = mrt_time_now();
    while (at < size && is_kept && takes_more(peer)) {
        result = mrt_resp_read(bytes + at, size - at, &command, &used, &wrong);
        if (result != MRT_RESP_COMMAND)
            break;
        if (command.count > 0 && peer->session)
            is_kept = mrt_desk_take(peer, &command);
        else if (command.count > 0 && (peer->waiting || peer->pending_count > 0))
            is_kept = postpone(peer, &command, bytes + at, used, now);
        else if (command.count > 0)
            mrt_command_run(peer, &command, now, &peer->output);
        at += used;
    }
    if (result == MRT_RESP_NOT_FRAMED)
        mrt_reply_error(&peer->output, "ERR Protocol error: %s", wrong);
    if (result == MRT_RESP_NOT_FRAMED || !is_kept || !keep_part(peer, bytes + at, size - at) ||
        peer->output.overrun || peer->ends)
        mrt_peer_end(peer);
    mrt_peer_has_output(peer);
}

/* The buffer for bytes that are read and parsed; only the agent's thread uses it. */
static char buffer[INPUT_SIZE];

/* Copies what was kept to the beginning of the buffer: its size. */
static size_t take_part(const struct mrt_peer *peer)
{
    if (peer->part_size > 0)
        memcpy(buffer, peer->part, peer->part_size);
    return peer->part_size;
}

/* Runs the commands behind a LOCK that has its reply. */
static void resume(struct mrt_peer *peer)
{
    struct mrt_pending *pending;
    struct mrt_resp_command command;
    const char *wrong;
    size_t used;
    while (!peer->waiting && (pending = STAILQ_FIRST(&peer->pending))) {
        STAILQ_REMOVE_HEAD(&peer->pending, link);
        peer->pending_count--;
        if (!pending->frame)
            mrt_reply_bytes(&peer->output, pending->reply.bytes, pending->reply.size);
        else if (mrt_resp_read(pending->frame, pending->frame_size, &command, &used, &wrong) ==
                 MRT_RESP_COMMAND)
            mrt_command_run(peer, &command, pending->received, &peer->output);
        mrt_reply_free(&pending->reply);
        free(pending->frame);
        free(pending);
    }
    if (!peer->waiting && peer->part_size > 0)
        take_commands(peer, buffer, take_part(peer));
}

/* ------------------------------------------------------------------------- input */

/* The client sends nothing more: it gets its replies, if it is still there, and is closed. */
static void close_read(struct mrt_peer *peer)
{
    if (peer->output.size > 0)
        send_output(peer);
    mrt_peer_close(peer);
}

static void read_some(struct mrt_peer *peer)
{
    size_t had = take_part(peer);
    size_t room = sizeof buffer - had < READ_SIZE ? sizeof buffer - had : READ_SIZE;
    ssize_t got = recv(peer->fd, buffer + had, room, MSG_DONTWAIT);
    if (got > 0)
        take_commands(peer, buffer, had + (size_t)got);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        close_read(peer);
}

void mrt_peer_event(void *tag, uint32_t events)
{
    bool is_half_closed = events & EPOLLRDHUP, has_died = (uintptr_t)tag & 1;
    struct mrt_peer *peer = (struct mrt_peer *)((char *)tag - has_died);
    if (peer->state == MRT_PEER_GONE)
        return;
    if (has_died) { /* it believes nothing, whoever has its connection open */
        mrt_peer_close(peer);
        return;
    }
    /* All that a client sent before it shut its side is read, unless a LOCK waits: it has ended. */
    if (peer->is_process || events & (EPOLLHUP | EPOLLERR) ||
        (is_half_closed && !(events & EPOLLIN)) || (is_half_closed && peer->waiting)) {
        mrt_peer_close(peer);
        return;
    }
    if (events & EPOLLOUT)
        mrt_peer_has_output(peer);
    if (events & EPOLLIN)
        read_some(peer);
}

/* ------------------------------------------------------------------------ output */

/* The user has more kept here than his limit has, and this connection has a part in it. */
static void end_for_bytes(struct mrt_peer *peer)
{
    mrt_user_log(peer->agent, peer->user, peer->pid, MRT_REFUSAL_LIMIT,
                 "he has all the bytes of his limit, and does not read");
    mrt_reply_error(&peer->output, "FULL user %u has all the bytes of his limit", peer->user->uid);
    mrt_peer_end(peer);
}

void mrt_peer_flush(struct mrt_peer *peer)
{
    resume(peer);
    mrt_desk_write_rows(peer);
    if (peer->state != MRT_PEER_OPEN)
        return; /* it is out of the list */
    TAILQ_REMOVE(&peer->agent->flushes, peer, flush_link);
    peer->flushing = false;
    if (peer->output.size > 0 && !send_output(peer))
        mrt_peer_close(peer);
    else if (!count_bytes(peer) && peer->output.size + peer->part_size + peer->pending_count > 0)
        end_for_bytes(peer);
    else if (peer->output.overrun || peer->ends)
        mrt_peer_end(peer);
    else if (peer->quits && peer->output.size == 0 && !peer->waiting)
        mrt_peer_close(peer);
    else
        watch(peer);
    if (peer->state == MRT_PEER_OPEN && peer->output.size == 0 && peer->operation &&
        peer->operation->is_done)
        mrt_peer_has_output(peer); /* there may be more rows */
}
