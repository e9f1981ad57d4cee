/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections to an agent: see wire.h. The process at the other end of the socket must be of this
 * user, of root, or of the user that the URI names: else anybody who can put a socket there would
 * hand out locks.
 */
#include "store/agent/wire.h"

#include "base/epoll.h"
#include "base/error.h"
#include "base/parameter.h"
#include "store/agent/frame.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UID_NONE UINT32_MAX /* no user has it */
#define QUEUE_PAUSE_MS 5    /* while the queue of the listener is full */

/* ---------------------------------------------------------------------- address */

bool mrt_agent_user_socket(char *path, size_t size)
{
    const char *directory = secure_getenv("XDG_RUNTIME_DIR");
    if (!directory || directory[0] != '/')
        return false;
    int length = snprintf(path, size, "%s/mortise/agent.sock", directory);
    return length > 0 && (size_t)length < size;
}

static int choose_path(const struct mrt_uri *uri, char *path, size_t size)
{
    int length;
    if (uri->rest[0] == '\0') {
        length = snprintf(path, size, MRT_AGENT_HOST_SOCKET);
    } else if (strcmp(uri->rest, "user") == 0) {
        return mrt_agent_user_socket(path, size)
                   ? MORTISE_OK
                   : mrt_error(MORTISE_EURI, "agent:user wants the path of a short directory in "
                                             "XDG_RUNTIME_DIR");
    } else if (strncmp(uri->rest, "///", 3) == 0) {
        length = (int)strlen(uri->rest + 2);
        memcpy(path, uri->rest + 2, (size_t)length < size ? (size_t)length + 1 : 0);
        if ((size_t)length < size && mrt_uri_decode(path) < 0)
            return mrt_error(MORTISE_EURI, "the path in an agent: URI has a malformed %% escape");
    } else {
        return mrt_error(MORTISE_EURI, "an agent is agent:, agent:user or agent:///path/of/socket");
    }
    if (length < 0 || (size_t)length >= size)
        return mrt_error(MORTISE_EURI, "the socket of an agent has a path of less than %zu bytes",
                         size);
    return MORTISE_OK;
}

int mrt_agent_address_read(const struct mrt_uri *uri, struct mrt_agent_address *address)
{
    static const struct mrt_parameter parameters[] = {{"uid", MRT_PARAMETER_NUMBER,
                                                       offsetof(struct mrt_agent_address, uid), 0,
                                                       UID_NONE - 1, NULL},
                                                      {.key = NULL}};
    *address = (struct mrt_agent_address){.uid = UID_NONE};
    int error = mrt_parameters_read(uri, parameters, address);
    return error ? error : choose_path(uri, address->path, sizeof address->path);
}

/* ------------------------------------------------------------------- connection */

static int check_peer(int fd, const struct mrt_agent_address *address)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return mrt_error(MORTISE_EUNREACHABLE, "the agent at %s: %s", address->path,
                         strerror(errno));
    if (who.uid == 0 || who.uid == geteuid() || who.uid == address->uid)
        return MORTISE_OK;
    return mrt_error(MORTISE_EUNSAFE,
                     "%s is served by the user %lu, which is neither root nor this one: "
                     "if that is right, say agent:...?uid=%lu",
                     address->path, (unsigned long)who.uid, (unsigned long)who.uid);
}

/* Connects by this time: a queue that is full is that of many clients at once. */
static bool join_queue(int fd, const struct sockaddr_un *name, mrt_time until)
{
    int failed = connect(fd, (const struct sockaddr *)name, sizeof *name);
    while (failed && errno == EAGAIN && mrt_time_now() < until) {
        poll(NULL, 0, QUEUE_PAUSE_MS);
        failed = connect(fd, (const struct sockaddr *)name, sizeof *name);
    }
    return !failed;
}

static int connect_to(const struct mrt_agent_address *address, mrt_time until, int *fd)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path, address->path, sizeof name.sun_path);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = MORTISE_OK;
    if (*fd < 0 || !join_queue(*fd, &name, until))
        error =
            mrt_error(MORTISE_EUNREACHABLE, "the agent at %s: %s%s", address->path, strerror(errno),
                      errno == ENOENT || errno == ECONNREFUSED ? ": start mortise agent" : "");
    if (error == MORTISE_OK)
        error = check_peer(*fd, address);
    if (error != MORTISE_OK && *fd >= 0)
        close(*fd);
    return error;
}

int mrt_agent_wire_open(struct mrt_agent_wire *wire, const struct mrt_agent_address *address,
                        const char *label, int epoll, mrt_time until)
{
    int fd;
    int error = connect_to(address, until, &fd);
    if (error != MORTISE_OK)
        return error;
    wire->fd = fd;
    wire->epoll = epoll;
    wire->events = 0;
    wire->size = wire->used = 0;
    wire->output = (struct mrt_reply){.overrun = false};
    mrt_reply_array(&wire->output, 3);
    mrt_frame_text(&wire->output, "MORTISE");
    mrt_frame_number(&wire->output, 1);
    mrt_frame_text(&wire->output, label);
    return MORTISE_OK;
}

void mrt_agent_wire_close(struct mrt_agent_wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd); /* which takes it out of the epoll descriptor too */
    wire->fd = -1;
    mrt_reply_free(&wire->output);
    wire->size = wire->used = 0;
}

static bool watch(struct mrt_agent_wire *wire)
{
    uint32_t events = EPOLLIN | (wire->output.size > 0 ? (uint32_t)EPOLLOUT : 0);
    if (wire->epoll < 0 || events == wire->events)
        return true;
    wire->events = events;
    return mrt_epoll_watch(wire->epoll, wire->fd, events, wire);
}

bool mrt_agent_wire_flush(struct mrt_agent_wire *wire)
{
    while (wire->output.size > 0) {
        ssize_t sent =
            send(wire->fd, wire->output.bytes, wire->output.size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            break;
        mrt_reply_sent(&wire->output, (size_t)sent);
    }
    return !wire->output.overrun && watch(wire);
}

bool mrt_agent_wire_receive(struct mrt_agent_wire *wire, bool *more)
{
    if (wire->used > 0)
        memmove(wire->input, wire->input + wire->used, wire->size - wire->used);
    wire->size -= wire->used;
    wire->used = 0;
    size_t room = sizeof wire->input - wire->size;
    ssize_t got = recv(wire->fd, wire->input + wire->size, room, MSG_DONTWAIT);
    *more = got > 0 && (size_t)got == room;
    if (got > 0)
        wire->size += (size_t)got;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

bool mrt_agent_wire_next(struct mrt_agent_wire *wire, struct mrt_resp_command *frame,
                         const char **wrong)
{
    size_t used;
    *wrong = NULL;
    enum mrt_resp_result result =
        mrt_resp_read(wire->input + wire->used, wire->size - wire->used, frame, &used, wrong);
    if (result != MRT_RESP_COMMAND)
        return false;
    wire->used += used;
    return true;
}

int mrt_agent_wire_wait(struct mrt_agent_wire *wire, mrt_time until, struct mrt_resp_command *frame)
{
    const char *wrong;
    bool more;
    for (;;) {
        if (mrt_agent_wire_next(wire, frame, &wrong))
            return MORTISE_OK;
        if (wrong)
            return mrt_error(MORTISE_EUNREACHABLE, "the agent sends what is no frame: %s", wrong);
        if (!mrt_agent_wire_flush(wire))
            return mrt_error(MORTISE_EUNREACHABLE, "the agent has ended the connection");
        struct pollfd poller = {wire->fd, POLLIN, 0};
        poller.events |= wire->output.size > 0 ? POLLOUT : 0;
        int64_t left = mrt_time_left_ms(until, mrt_time_now());
        if (left <= 0 || poll(&poller, 1, left > 60000 ? 60000 : (int)left) < 0) {
            if (left > 0 && errno == EINTR)
                continue;
            return mrt_error(MORTISE_EUNREACHABLE, "the agent does not answer");
        }
        if (poller.revents & ~POLLOUT && !mrt_agent_wire_receive(wire, &more))
            return mrt_error(MORTISE_EUNREACHABLE, "the agent has ended the connection");
    }
}

/* --------------------------------------------------------------------- greeting */

static bool copy_word(const struct mrt_resp_word *word, char *text, size_t size)
{
    if (word->size >= size)
        return false;
    memcpy(text, word->text, word->size);
    text[word->size] = '\0';
    return true;
}

/* The words of an agent that does not serve this client: "-FULL the agent ...". */
static int read_refusal(const struct mrt_resp_command *frame)
{
    const struct mrt_resp_word *last = &frame->words[frame->count - 1];
    const struct mrt_resp_word *code = &frame->words[0];
    const char *begin = code->text + 1;
    int error = mrt_resp_is(code, "-NOPERM") ? MORTISE_EPERMISSION : MORTISE_EUNREACHABLE;
    return mrt_error(error, "the agent refuses: %.*s", (int)(last->text + last->size - begin),
                     begin);
}

int mrt_agent_greeting_read(const struct mrt_resp_command *frame,
                            struct mrt_agent_greeting *greeting)
{
    int64_t version = 0;
    if (frame->count > 0 && frame->words[0].size > 1 && frame->words[0].text[0] == '-')
        return read_refusal(frame);
    if (frame->count < 2 || !mrt_resp_is(&frame->words[0], "MORTISE") ||
        !mrt_resp_number(&frame->words[1], 1, INT64_MAX, &version))
        return mrt_error(MORTISE_EUNREACHABLE, "what answers there is no agent");
    if (version != 1 || frame->count < 8)
        return mrt_error(MORTISE_EMISMATCH, "the agent is of another version of mortise");
    *greeting = (struct mrt_agent_greeting){.lease = 0};
    if (mrt_frame_read_id(&frame->words[2], &greeting->instance) &&
        copy_word(&frame->words[3], greeting->store, sizeof greeting->store) &&
        copy_word(&frame->words[4], greeting->prefix, sizeof greeting->prefix) &&
        mrt_frame_read_number(&frame->words[5], &greeting->lease) &&
        mrt_frame_read_number(&frame->words[6], &greeting->lag) &&
        copy_word(&frame->words[7], greeting->can, sizeof greeting->can) && greeting->lease > 0 &&
        greeting->lag >= 0) {
        const struct mrt_resp_word *own = frame->count > 8 ? &frame->words[8] : NULL;
        greeting->sees_process = own && memchr(own->text, MRT_AGENT_SEES_PROCESS, own->size);
        return MORTISE_OK;
    }
    return mrt_error(MORTISE_EMISMATCH, "the agent is of another version of mortise");
}

int mrt_agent_wire_greet(struct mrt_agent_wire *wire, const struct mrt_agent_address *address,
                         const char *label, mrt_time until, struct mrt_agent_greeting *greeting)
{
    struct mrt_resp_command frame;
    int error = mrt_agent_wire_open(wire, address, label, -1, until);
    if (error != MORTISE_OK)
        return error;
    error = mrt_agent_wire_wait(wire, until, &frame);
    if (error == MORTISE_OK)
        error = mrt_agent_greeting_read(&frame, greeting);
    if (error != MORTISE_OK)
        mrt_agent_wire_close(wire);
    return error;
}
