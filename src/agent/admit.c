/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: a connection is accepted from the agent's own user, from root, and from users for
 * whom the policy has a rule. The kernel says who that is: the user, and all his groups, as they
 * were when he connected.
 *
 * A refusal is one line to the client, and one in the log, the first of its kind for each user.
 *
 * A connection, or a process that is watched, is a descriptor. So the agent takes as many as the
 * process may have descriptors, less some for the store, the loop and the worker: a client is told
 * that there is no room, and does not wait in the queue of the listener until another one ends.
 *
 * A policy that is read again counts from the next command on. A user keeps the locks that he has,
 * also those that he could not take now: a lock ends by its client's word. Spaces of names are
 * those of the agent's start, so that a name means the same lock on all connections.
 */
#include "agent/agent.h"
#include "agent/peer.h"
#include "base/epoll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUPS_MAX 65536 /* NGROUPS_MAX of the kernel */
#define PEERS_OWN 64     /* kept free for the agent's own user and root */
#define PEERS_MAX 65536
#define DESCRIPTORS_KEPT 64 /* for all that is no connection */

size_t mrt_peers_count_room(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= PEERS_MAX + DESCRIPTORS_KEPT)
        return PEERS_MAX;
    return limit.rlim_cur > DESCRIPTORS_KEPT ? limit.rlim_cur - DESCRIPTORS_KEPT : 0;
}

/* Tells a client that it is not served, and why, in one line. */
static void refuse(struct mrt_agent *agent, int fd, const char *line)
{
    ssize_t sent = send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* it may be gone */
    close(fd);
    agent->counters.refused++;
}

/* The groups of the process that connected, in memory that the caller frees; NULL: none. */
static gid_t *read_groups(int fd, const struct ucred *who, size_t *count)
{
    gid_t few[32];
    socklen_t size = sizeof few;
    gid_t *groups = NULL;
    int error = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &size);
    *count = 0;
    if (error != 0 && (errno != ERANGE || size > GROUPS_MAX * sizeof *groups))
        size = 0;
    groups = malloc(size + sizeof *groups);
    if (!groups)
        return NULL;
    groups[0] = who->gid;
    if (error == 0)
        memcpy(groups + 1, few, size);
    else if (size > 0 && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &size) != 0)
        size = 0;
    *count = 1 + size / sizeof *groups;
    return groups;
}

/* Whether the policy has a rule for who connected. */
static bool find_rules(const struct mrt_agent *agent, int fd, const struct ucred *who,
                       struct mrt_access_rules *rules)
{
    size_t count;
    if (who->uid == agent->no_user || !agent->access)
        return false;
    gid_t *groups = read_groups(fd, who, &count);
    for (size_t i = 0; groups && i < count; i++)
        if (groups[i] == agent->no_group)
            groups[i] = who->gid == agent->no_group ? (gid_t)-1 : who->gid;
    bool has_one = groups && mrt_access_find(agent->access, who->uid, groups, count, rules);
    free(groups);
    return has_one;
}

bool mrt_peers_have_room(const struct mrt_agent *agent, const struct mrt_user *user)
{
    size_t kept = agent->peers_max / 4 < PEERS_OWN ? agent->peers_max / 4 : PEERS_OWN;
    return agent->peer_count + agent->watch_count < agent->peers_max - (user->limits ? kept : 0);
}

/* The user of a connection that may be served, or NULL: it was refused. */
static struct mrt_user *admit(struct mrt_agent *agent, int fd, const struct ucred *who,
                              struct mrt_access_rules *rules)
{
    bool is_own = who->uid == agent->uid || who->uid == 0;
    bool has_rules = is_own || find_rules(agent, fd, who, rules);
    struct mrt_user *user = mrt_user_find(agent, who->uid, has_rules);
    if (!has_rules) {
        if (user)
            mrt_user_log(agent, user, who->pid, MRT_REFUSAL_ACCESS, "no rule of the policy is his");
        refuse(agent, fd,
               agent->access ? "-NOPERM this agent's policy has no rule for you\r\n"
                             : "-NOPERM this agent serves its own user and root\r\n");
        return NULL;
    }
    if (!user || !mrt_peers_have_room(agent, user)) {
        if (user)
            mrt_user_log(agent, user, who->pid, MRT_REFUSAL_LIMIT,
                         "the agent has %zu connections, as many as its descriptors allow",
                         agent->peer_count);
        refuse(agent, fd, "-FULL the agent has as many connections as its descriptors allow\r\n");
        return NULL;
    }
    if (user->limits && user->connections >= user->limits->connections) {
        mrt_user_log(agent, user, who->pid, MRT_REFUSAL_LIMIT,
                     "he has all the connections of his limit");
        refuse(agent, fd, "-FULL you have all the connections of your limit\r\n");
        return NULL;
    }
    return user;
}

struct mrt_peer *mrt_peer_new(struct mrt_agent *agent, int fd, uint32_t events)
{
    struct mrt_peer *peer = calloc(1, sizeof *peer);
    if (!peer || !mrt_epoll_watch(agent->epoll, fd, events, peer)) {
        free(peer);
        return NULL;
    }
    peer->agent = agent;
    peer->fd = fd;
    peer->watched = events;
    peer->process_fd = -1;
    STAILQ_INIT(&peer->pending);
    return peer;
}

void mrt_peer_join(struct mrt_peer *peer)
{
    struct mrt_agent *agent = peer->agent;
    TAILQ_INSERT_TAIL(&agent->peers, peer, link);
    if (!peer->is_process)
        peer->user->connections++;
    agent->peer_count++;
}

void mrt_peer_accept(struct mrt_agent *agent, int fd)
{
    struct ucred who = {.uid = agent->no_user, .gid = agent->no_group};
    socklen_t size = sizeof who;
    struct mrt_access_rules rules = {{0}};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
        refuse(agent, fd, "-NOPERM the system does not say who you are\r\n");
        return;
    }
    struct mrt_user *user = admit(agent, fd, &who, &rules);
    struct mrt_peer *peer = user ? mrt_peer_new(agent, fd, EPOLLIN | EPOLLRDHUP) : NULL;
    if (user && !peer)
        refuse(agent, fd, "-FULL the agent has no memory for another connection\r\n");
    if (!peer)
        return;
    peer->since = mrt_time_now();
    peer->pid = who.pid;
    peer->user = user;
    peer->rules = rules;
    if (user->limits && mrt_access_has_spaces(agent->access))
        snprintf(peer->space, sizeof peer->space, "%u/", user->uid);
    mrt_peer_join(peer);
    agent->counters.connections++;
}

/* ------------------------------------------------------------------- another policy */

static void say(const struct mrt_agent *agent, const char *what, const char *why)
{
    char text[MRT_ERROR_DETAIL_MAX + 64];
    snprintf(text, sizeof text, "%s%s", what, why);
    if (agent->log)
        agent->log(agent->log_argument, text);
}

void mrt_policy_renew(struct mrt_agent *agent, const char *path)
{
    size_t size = path ? strlen(path) + 1 : 0;
    struct mrt_operation *operation = path ? calloc(1, sizeof *operation + size) : NULL;
    if (!operation) {
        say(agent, "SIGHUP changed nothing: ",
            path ? "no memory to read the policy; send it again"
                 : "the agent was started without --policy");
        return;
    }
    operation->kind = MRT_OPERATION_POLICY;
    STAILQ_INIT(&operation->rows);
    memcpy(operation->name, path, size);
    mrt_worker_begin(&agent->worker, operation);
}

/* By the policy that holds now. */
static void renew_rules(struct mrt_agent *agent, const struct mrt_peer_list *peers)
{
    struct mrt_peer *peer;
    TAILQ_FOREACH (peer, peers, link) {
        struct ucred who;
        socklen_t size = sizeof who;
        if (peer->is_process || !peer->user->limits)
            continue;
        peer->rules = (struct mrt_access_rules){{0}};
        if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
            find_rules(agent, peer->fd, &who, &peer->rules);
    }
}

void mrt_policy_take(struct mrt_agent *agent, struct mrt_operation *operation)
{
    struct mrt_access *old = agent->access;
    struct mrt_user *user, *next;
    bool has_moved = operation->error == MORTISE_OK &&
                     mrt_access_has_spaces(old) != mrt_access_has_spaces(operation->access);
    if (operation->error != MORTISE_OK || has_moved) {
        say(agent, "the policy stays as it was: ",
            has_moved ? "namespace %u changes only when the agent is restarted" : operation->text);
        return;
    }
    agent->access = operation->access;
    operation->access = old;
    HASH_ITER (hh, agent->users, user, next) {
        if (user->limits)
            user->limits = mrt_access_limits(agent->access, user->uid);
        memset(user->has_logged, 0, sizeof user->has_logged);
    }
    renew_rules(agent, &agent->peers);
    renew_rules(agent, &agent->ended);
    say(agent, "the policy was read again", "");
}
