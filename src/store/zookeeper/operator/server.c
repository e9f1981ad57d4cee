/*
 * mortise_server on ZooKeeper. The protocol of sessions does not tell a server's version, so the
 * one that an asker is connected to is asked on a connection of its own, by the word "srvr". It may
 * be forbidden there (4lw.commands.whitelist), and behind a tunnel for TLS nobody answers.
 */
#include "store/zookeeper/operator/connection.h"

#include "base/error.h"

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

/* What stands behind `lead` as far as it has only these letters. */
static int find(const char *answer, const char *lead, const char *letters, const char **found)
{
    const char *at = strstr(answer, lead);
    *found = at ? at + strlen(lead) : "";
    return (int)strspn(*found, letters);
}

int mrt_zk_server(struct mrt_store *store, char *text, size_t size)
{
    struct mrt_zk_asker asker;
    char answer[ANSWER_MAX];
    const char *version, *mode;
    int error = mrt_zk_asker_open(&asker, store);
    if (error != MORTISE_OK)
        return error;
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
