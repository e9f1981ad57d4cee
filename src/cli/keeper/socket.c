/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a keeper, and how to find it.
 *
 * A token is "keeper-ID-SECRET". The keeper listens on the abstract socket
 * "mortise-keeper-ID", which leaves no file behind however it ends. A caller shows the
 * secret, which is on no disk, in no list and in no argument. Each side checks that the other
 * is the same user, or root, because anybody may listen under an address that has become free.
 *
 * Without the secret a keeper reports what it holds, as any list of the store does. An ID begins
 * with the keeper's process number, so a caller that wants one keeper need not connect to others,
 * which may be stopped.
 *
 * One packet is a request, another the reply. A caller that connects and sends nothing delays
 * nobody: connections are read when a packet has come, and the oldest makes room.
 */
#include "cli/keeper/keeper.h"

#include "base/id.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PREFIX "keeper-"
#define ADDRESS_PREFIX "mortise-keeper-"
#define LISTENING " 00010000 " /* the flags of a socket that does, in /proc/net/unix */
#define ID_DIGITS (MRT_KEEPER_ID_SIZE - 1)
#define CALLS_WAITING 16
#define PATIENCE_MS 15000 /* a close takes at most a third of it */

static socklen_t make_address(const char *id, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length =
        snprintf(address->sun_path + 1, sizeof address->sun_path - 1, ADDRESS_PREFIX "%s", id);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool is_trusted(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

/* ------------------------------------------------------------ the keeper's side */

bool mrt_keeper_listen(struct mrt_keeper_socket *self)
{
    struct mrt_id id, secret;
    struct sockaddr_un address;
    if (!mrt_id_random(&id) || !mrt_id_random(&secret))
        return false;
    snprintf(self->id, sizeof self->id, "%08" PRIx32 "%08" PRIx32, (uint32_t)getpid(),
             (uint32_t)id.high);
    mrt_id_format(secret, self->secret);
    socklen_t size = make_address(self->id, &address);
    self->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return self->listener >= 0 && bind(self->listener, (struct sockaddr *)&address, size) == 0 &&
           listen(self->listener, CALLS_WAITING) == 0;
}

void mrt_keeper_make_token(const struct mrt_keeper_socket *self, char token[MORTISE_TOKEN_SIZE])
{
    snprintf(token, MORTISE_TOKEN_SIZE, PREFIX "%s-%s", self->id, self->secret);
}

void mrt_keeper_accept(struct mrt_keeper_socket *self)
{
    int call = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (call < 0)
        return;
    if (!is_trusted(call)) {
        close(call);
        return;
    }
    if (self->calls[0] >= 0)
        close(self->calls[0]);
    memmove(self->calls, self->calls + 1, sizeof self->calls - sizeof self->calls[0]);
    self->calls[MRT_KEEPER_CALLS - 1] = call;
}

/* In constant time, which does not show how much of a guess is right. */
static bool is_same_secret(const char a[33], const char b[33])
{
    unsigned difference = 0;
    for (size_t i = 0; i < 33; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

bool mrt_keeper_read(struct mrt_keeper_socket *self, size_t call,
                     struct mrt_keeper_request *request)
{
    ssize_t got = recv(self->calls[call], request, sizeof *request, 0);
    if (got < 0 && errno == EAGAIN)
        return false;
    bool is_whole = got == (ssize_t)sizeof *request && request->size == sizeof *request &&
                    memchr(request->name, '\0', sizeof request->name);
    if (is_whole &&
        (request->demand == MRT_KEEPER_TELL || is_same_secret(request->secret, self->secret)))
        return true;
    close(self->calls[call]);
    self->calls[call] = -1;
    return false;
}

void mrt_keeper_answer(int call, const struct mrt_keeper_reply *reply)
{
    ssize_t sent = send(call, reply, sizeof *reply, MSG_NOSIGNAL);
    (void)sent; /* the client may be gone */
}

/* ----------------------------------------------------------------- the other side */

bool mrt_keeper_is_token(const char *token)
{
    size_t prefix = sizeof PREFIX - 1;
    static const char digits[] = "0123456789abcdef";
    return strncmp(token, PREFIX, prefix) == 0 && strspn(token + prefix, digits) == ID_DIGITS &&
           token[prefix + ID_DIGITS] == '-' &&
           strspn(token + prefix + ID_DIGITS + 1, digits) == 32 &&
           token[prefix + ID_DIGITS + 33] == '\0';
}

/* A connection to the keeper, whose answer may take `patience_ms`; -1: there is none. With
   SOCK_NONBLOCK as `flag`, a socket with a full queue of calls is not waited for. */
static int call_keeper(const char *id, int flag, int64_t patience_ms)
{
    struct sockaddr_un address;
    struct timeval patience = {patience_ms / 1000, patience_ms % 1000 * 1000};
    socklen_t size = make_address(id, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flag, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, size) == 0 && is_trusted(fd) &&
        fcntl(fd, F_SETFL, 0) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The answer of a client that gets none: the keeper is gone, or does not answer. */
static int fail_call(const struct mrt_keeper_request *request, ssize_t got)
{
    if (got < 0 && errno == EAGAIN)
        return mrt_cli_fail(MRT_EXIT_UNREACHABLE, "%s: its keeper does not answer", request->name);
    return mrt_cli_fail(MRT_EXIT_LOST,
                        "%s: nobody here keeps it any more: the lock was lost, or given back",
                        request->name);
}

int mrt_keeper_ask(const char *token, struct mrt_keeper_request *request,
                   struct mrt_keeper_reply *reply)
{
    char id[MRT_KEEPER_ID_SIZE] = "";
    memcpy(id, token + sizeof PREFIX - 1, ID_DIGITS);
    memcpy(request->secret, token + sizeof PREFIX + ID_DIGITS, sizeof request->secret);
    request->size = sizeof *request;
    int fd = call_keeper(id, 0, PATIENCE_MS);
    if (fd < 0)
        return fail_call(request, 0);
    ssize_t got = send(fd, request, sizeof *request, MSG_NOSIGNAL);
    if (got > 0)
        got = recv(fd, reply, sizeof *reply, 0);
    bool is_whole = got == (ssize_t)sizeof *reply && reply->size == sizeof *reply;
    int code = is_whole ? 0 : fail_call(request, got);
    char nothing;
    if (is_whole && request->demand == MRT_KEEPER_RELEASE)
        while (recv(fd, &nothing, 1, 0) < 0 && errno == EINTR)
            continue; /* until it has ended */
    close(fd);
    return code;
}

/* ------------------------------------------------------- what anybody may know */

/* The number behind "Pid:" in what /proc tells of a descriptor; 0: there is none. */
static pid_t read_minded(FILE *file)
{
    char line[128];
    int pid = 0;
    while (file && pid == 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "Pid:%d", &pid) != 1)
            pid = 0;
    return pid;
}

/* Whether the process may hold a lock for us: it is this user's, or root's. */
static bool is_of_trusted(pid_t keeper)
{
    char path[32];
    struct stat process;
    snprintf(path, sizeof path, "/proc/%d", (int)keeper);
    return stat(path, &process) == 0 && (process.st_uid == geteuid() || process.st_uid == 0);
}

/* Whether the keeper has a descriptor of a process that is above `pid`. */
static bool minds_above(pid_t keeper, pid_t pid)
{
    char path[64 + NAME_MAX];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fdinfo", (int)keeper);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && !found && (entry = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", (int)keeper, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
        pid_t minded = read_minded(file);
        if (file)
            fclose(file);
        found = minded > 0 && mrt_keeper_is_above(minded, pid);
    }
    if (directory)
        closedir(directory);
    return found;
}

bool mrt_keeper_hear(const char *id, pid_t pid, int64_t patience_ms, struct mrt_keeper_reply *reply)
{
    static const struct mrt_keeper_request request = {.size = sizeof request,
                                                      .demand = MRT_KEEPER_TELL};
    unsigned keeper = 0;
    if (sscanf(id, "%8x", &keeper) != 1 || !is_of_trusted((pid_t)keeper) ||
        !minds_above((pid_t)keeper, pid))
        return false;
    int fd = call_keeper(id, SOCK_NONBLOCK, patience_ms);
    if (fd < 0)
        return false;
    bool told = send(fd, &request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request &&
                recv(fd, reply, sizeof *reply, 0) == (ssize_t)sizeof *reply &&
                reply->size == sizeof *reply && memchr(reply->text, '\0', sizeof reply->text);
    close(fd);
    return told;
}

bool mrt_keeper_each(bool (*visit)(void *argument, const char *id), void *argument)
{
    char line[512];
    bool done = false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    while (sockets && !done && fgets(line, sizeof line, sockets)) {
        char *id = strstr(line, "@" ADDRESS_PREFIX);
        if (!id || !strstr(line, LISTENING))
            continue;
        id += sizeof "@" ADDRESS_PREFIX - 1;
        id[strcspn(id, "\n")] = '\0';
        done = strlen(id) == ID_DIGITS && visit(argument, id);
    }
    if (sockets)
        fclose(sockets);
    return done;
}
