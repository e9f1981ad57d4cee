/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_server on ZooKeeper. The protocol of sessions does not tell a server's version, so the
 * one that an asker is connected to is asked on a connection of its own, by the word "srvr". It may
 * be forbidden there (4lw.commands.whitelist), and behind a tunnel for TLS nobody answers.
 */
#include "store/zookeeper/operator/connection.h"

#include "base/error.h"
#include "store/zookeeper/operator/operator.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX 2048

static bool wait_for(int fd, short events, mrt_time deadline)
{
    struct pollfd poller = {.fd = fd, .events = events};
    for (;;) {
        mrt_time left = deadline - mrt_time_now();
        int ready = left > 0 ? poll(&poller, 1, (int)(left / MRT_MILLISECOND) + 1) : 0;
        if (ready >= 0 || errno != EINTR)
            return ready > 0;
    }
}

/* All that it answers, cut at the end of the buffer; its length. */
static size_t converse(int fd, mrt_time deadline, char *answer, size_t size)
{
    size_t length = 0;
    if (!wait_for(fd, POLLOUT, deadline) || send(fd, "srvr", 4, MSG_NOSIGNAL) != 4)
        return 0;
    while (length < size - 1 && wait_for(fd, POLLIN, deadline)) {
        ssize_t got = recv(fd, answer + length, size - 1 - length, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    return length;
}

static size_t ask_server(struct mrt_zk_asker *asker, char *answer, size_t size)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (!zookeeper_get_connected_host(asker->handle, (struct sockaddr *)&address, &length))
        return 0;
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    size_t got = 0;
    if (connect(fd, (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS)
        got = converse(fd, asker->deadline, answer, size);
    close(fd);
    return got;
}

/* The text behind `lead`, as far as it has only these letters. */
static int find(const char *answer, const char *lead, const char *letters, const char **found)
{
    const char *at = strstr(answer, lead);
    *found = at ? at + strlen(lead) : "";
    return (int)strspn(*found, letters);
}

static void warn_of(struct mrt_zk_asker *asker, const char *path, const char *what)
{
    const struct mrt_notes *notes = &asker->store->notes;
    char text[512];
    if (mrt_zk_ask(asker, MRT_ZK_ASK_RIGHTS, path) != ZOK || !asker->open || !notes->log)
        return;
    snprintf(text, sizeof text, "%s: %.200s is open to anyone, with or without credentials: %s",
             notes->from, path, what);
    notes->log(notes->argument, text);
}

/* With credentials: what was made before, or without them, may be open yet. */
static void check_rights(struct mrt_zk_asker *asker)
{
    const struct mrt_store *store = asker->store;
    const struct mrt_zk_address *address = &store->address;
    char path[2 * MRT_ZK_PATH_MAX];
    if (mrt_zk_access_is_open(&store->access))
        return;
    snprintf(path, sizeof path, "%s/" MRT_ZK_MARKERS_NAME, address->chroot);
    warn_of(asker, path, "no hand-over is believed; delete it, and it is made anew");
    if (store->access.parents_open || !*address->namespace)
        return;
    snprintf(path, sizeof path, "%s/%s", address->chroot, address->namespace);
    warn_of(asker, path,
            "they can take names of locks for themselves; parents=open says that this "
            "is meant");
}

int mrt_zk_server(struct mrt_store *store, char *text, size_t size)
{
    struct mrt_zk_asker asker;
    char answer[ANSWER_MAX];
    const char *version, *mode;
    int error = mrt_zk_asker_open(&asker, store);
    if (error != MORTISE_OK)
        return error;
    check_rights(&asker);
    answer[ask_server(&asker, answer, sizeof answer)] = '\0';
    mrt_zk_asker_close(&asker);
    int version_length = find(answer, "Zookeeper version: ", "0123456789.", &version);
    int mode_length = find(answer, "\nMode: ", "abcdefghijklmnopqrstuvwxyz-", &mode);
    if (version_length == 0)
        return mrt_error(MORTISE_ENOTSUPPORTED, "the server does not answer \"srvr\"");
    snprintf(text, size, "ZooKeeper %.*s%s%.*s", version_length, version, mode_length ? ", " : "",
             mode_length, mode);
    return MORTISE_OK;
}
