/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd's two small protocols, without its library. Readiness is a datagram to $NOTIFY_SOCKET.
 * A socket that systemd has opened is descriptor 3, if $LISTEN_PID is this process.
 *
 * Beside them: what an agent says of itself, for mortise doctor.
 *
 * Threads: the command's.
 */
#include "cli/agent/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_LISTENER 3
#define ASK_SECONDS 5 /* as connect= of a store: a busy disk holds an agent up, too */

void mrt_service_ready(void)
{
    static const char state[] = "READY=1\n";
    const char *path = secure_getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = path ? strlen(path) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (*path != '/' && *path != '@'))
        return;
    memcpy(address.sun_path, path, size);
    if (*path == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ssize_t sent = sendto(fd, state, sizeof state - 1, MSG_NOSIGNAL, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
    (void)sent; /* the manager is told as well as can be */
    close(fd);
}

int mrt_service_listener(void)
{
    const char *process = secure_getenv("LISTEN_PID"), *count = secure_getenv("LISTEN_FDS");
    if (!process || !count || strtol(process, NULL, 10) != getpid())
        return -1;
    if (strcmp(count, "1") != 0)
        return -2;
    fcntl(FIRST_LISTENER, F_SETFD, FD_CLOEXEC);
    return FIRST_LISTENER;
}

bool mrt_service_path(int listener, char *path, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNSPEC};
    socklen_t length = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        address.sun_family != AF_UNIX || address.sun_path[0] != '/')
        return false;
    int written = snprintf(path, size, "%.*s", (int)sizeof address.sun_path, address.sun_path);
    return written > 0 && (size_t)written < size;
}

/* Reads what comes until there is this much, or the other side is silent for too long. */
static int converse(int fd, const struct sockaddr_un *address, char *text, size_t size)
{
    static const char question[] = "INFO\r\nQUIT\r\n";
    size_t had = 0;
    ssize_t got = 1;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 ||
        send(fd, question, sizeof question - 1, MSG_NOSIGNAL) < 0)
        return errno;
    while (got > 0 && had < size - 1) {
        got = recv(fd, text + had, size - 1 - had, 0);
        had += got > 0 ? (size_t)got : 0;
    }
    text[had] = '\0';
    return had > 0 ? 0 : got < 0 ? errno : EPIPE;
}

int mrt_agent_ask(const char *path, char *text, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = ASK_SECONDS};
    if (strlen(path) >= sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int error = converse(fd, &address, text, size);
    close(fd);
    return error;
}
