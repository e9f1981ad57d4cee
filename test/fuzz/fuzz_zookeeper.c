/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a ZooKeeper server, through the client library.
 *
 * The library asserts what a server sends, and uses what a short reply leaves unset
 * (doc/security.md). So the server here sends only frames that the library survives: a reply
 * answers the oldest request that has none, and has each part that the library reads. Texts, data,
 * errors, events and results are the input's. The requests are read to know what replies have.
 */
#include "hostile.h"

#include "fuzz.h"

#include <string.h>

#define PREFIX 4 /* bytes that have a frame's size */
#define CONNECT_SIZE 37
#define HEADER_SIZE 16
#define STAT_SIZE 68
#define OUTSTANDING 64
#define OPERATIONS 8
#define FRAME_MAX 8192
/* Numbers of replies that answer no request. */
enum { EVENT = -1, PING = -2, AUTH = -4, SET_WATCHES = -8 };
enum { CREATE = 1, DELETE = 2, SET = 5, CHECK = 13, MULTI = 14, CREATE_STAT = 15 };

struct request {
    uint8_t xid[4];
    const char *parts;           /* of its reply, as `parts` below has them */
    char operations[OPERATIONS]; /* of a multi: c creates, s sets, d has no result */
};

struct session {
    uint8_t frame[FRAME_MAX]; /* of the client, as far as it has come */
    size_t size;
    bool greeted, answered; /* the connect request has come; its reply was sent */
    struct request requests[OUTSTANDING];
    size_t count;
};

struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

extern const struct mrt_store_ops mrt_zookeeper_store;

const char fuzz_uri[] = "zk://127.0.0.1:%u";

const bool fuzz_server_waits = false;

bool __wrap_mrt_thread_begin(void *(*run)(void *argument), void *argument);

static struct session sessions[FUZZ_CONNECTIONS];

const struct mrt_store_ops *fuzz_store(void)
{
    return &mrt_zookeeper_store;
}

/* A session's close is over when it returns. */
bool __wrap_mrt_thread_begin(void *(*run)(void *argument), void *argument)
{
    run(argument);
    return true;
}

/* ------------------------------------------------------------------- records */

static void skip(struct reader *reader, size_t size)
{
    reader->bad |= size > reader->left;
    size = reader->bad ? 0 : size;
    reader->at += size;
    reader->left -= size;
}

static int32_t number(struct reader *reader)
{
    const uint8_t *bytes = reader->at;
    skip(reader, 4);
    return reader->bad ? 0
                       : (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
                                   (uint32_t)bytes[2] << 8 | bytes[3]);
}

static void skip_text(struct reader *reader)
{
    int32_t size = number(reader);
    reader->bad |= size < 0;
    skip(reader, reader->bad ? 0 : (size_t)size);
}

static void skip_data(struct reader *reader)
{
    struct reader before = *reader;
    if (number(&before) == -1)
        skip(reader, 4); /* none */
    else
        skip_text(reader);
}

/* Texts, each behind `fixed` bytes; `texts` of them make one entry. */
static void skip_list(struct reader *reader, size_t fixed, int texts)
{
    int32_t count = number(reader);
    reader->bad |= count < 0;
    for (; count > 0 && !reader->bad; count--) {
        skip(reader, fixed);
        for (int i = 0; i < texts; i++)
            skip_text(reader);
    }
}

/* ------------------------------------------------------------------- requests */

/* The parts of a reply that the library reads: s a text, b data, t a node's stat, v texts, a
   rights, m results. */
static const char *parts(int32_t type)
{
    static const char *const found[] = {
        [CREATE] = "s", [3] = "t",   [4] = "bt",    [SET] = "t",   [6] = "at",          [8] = "v",
        [9] = "s",      [12] = "vt", [MULTI] = "m", [DELETE] = "", [CREATE_STAT] = "st"};
    bool known = type >= 0 && (size_t)type < sizeof found / sizeof *found && found[type];
    return known ? found[type] : "";
}

static void read_operations(struct reader *reader, char *operations)
{
    for (int i = 0; i < OPERATIONS - 1; i++) {
        int32_t type = number(reader);
        skip(reader, 5);
        if (reader->bad || type == -1)
            return;
        operations[i] = type == CREATE ? 'c' : type == SET ? 's' : 'd';
        skip_text(reader);
        if (type == CREATE || type == SET)
            skip_data(reader);
        if (type == CREATE)
            skip_list(reader, 4, 2);
        skip(reader, 4); /* a version, or flags */
    }
}

static void read_request(struct session *session, struct reader reader)
{
    struct request request = {.parts = ""};
    memcpy(request.xid, reader.at, sizeof request.xid);
    int32_t xid = number(&reader);
    int32_t type = number(&reader);
    if (xid == PING || xid == AUTH || xid == SET_WATCHES)
        return;
    request.parts = parts(type);
    if (type == MULTI)
        read_operations(&reader, request.operations);
    require(session->count < OUTSTANDING);
    session->requests[session->count++] = request;
}

static void read_requests(struct session *session)
{
    for (;;) {
        struct reader reader = {session->frame, session->size, false};
        size_t size = (size_t)number(&reader);
        if (reader.bad || size > reader.left)
            return;
        if (session->greeted && size >= 8)
            read_request(session, (struct reader){reader.at, size, false});
        session->greeted = true;
        session->size -= PREFIX + size;
        memmove(session->frame, reader.at + size, session->size);
    }
}

void fuzz_received(size_t connection, const uint8_t *bytes, size_t size)
{
    struct session *session = &sessions[connection];
    while (size > 0) {
        size_t part = FRAME_MAX - session->size < size ? FRAME_MAX - session->size : size;
        memcpy(session->frame + session->size, bytes, part);
        session->size += part;
        bytes += part;
        size -= part;
        read_requests(session);
        require(session->size < FRAME_MAX);
    }
}

/* ------------------------------------------------------------------- replies */

/* Each is behind its type, whether it is the end, and an error. The library keeps the memory of an
   operation that has none. */
static void skip_results(struct reader *reader, const char *operations)
{
    while (!reader->bad) {
        int32_t type = number(reader);
        bool last = reader->left > 0 && *reader->at != 0;
        skip(reader, 5);
        reader->bad |= last && *operations != '\0';
        if (last)
            return;
        reader->bad |= *operations == '\0';
        if (type == -1)
            skip(reader, 4);
        else if (*operations == 'c')
            skip_text(reader);
        else if (*operations == 's')
            skip(reader, STAT_SIZE);
        operations += !reader->bad;
    }
}

static bool has_parts(struct reader reader, const struct request *request)
{
    for (const char *part = request->parts; *part && !reader.bad; part++) {
        if (*part == 's')
            skip_text(&reader);
        else if (*part == 'b')
            skip_data(&reader);
        else if (*part == 't')
            skip(&reader, STAT_SIZE);
        else if (*part == 'm')
            skip_results(&reader, request->operations);
        else
            skip_list(&reader, *part == 'a' ? 4 : 0, *part == 'a' ? 2 : 1);
    }
    return !reader.bad;
}

static bool has_event(struct reader reader)
{
    skip(&reader, 8);
    skip_text(&reader);
    return !reader.bad;
}

/* Makes `payload` an answer of the oldest request, or finds that it is another sound frame. */
static bool make_sound(struct session *session, uint8_t *payload, size_t size)
{
    struct reader reader = {payload, size, false};
    int32_t xid = number(&reader);
    skip(&reader, HEADER_SIZE - 8);
    int32_t error = number(&reader);
    if (xid == PING || xid == AUTH || xid == SET_WATCHES || xid == EVENT)
        return xid != EVENT || has_event(reader);
    struct request *first = &session->requests[0];
    if (session->count == 0 || (error == 0 && !has_parts(reader, first)))
        return false;
    memcpy(payload, first->xid, sizeof first->xid);
    memmove(first, first + 1, --session->count * sizeof *first);
    return true;
}

static void put_size(uint8_t *frame, size_t size)
{
    const uint8_t bytes[PREFIX] = {0, 0, (uint8_t)(size >> 8), (uint8_t)size};
    memcpy(frame, bytes, PREFIX);
}

/* Where a frame does not fit, the rest of the bytes is one. */
size_t fuzz_sound(size_t connection, uint8_t *bytes, size_t size)
{
    struct session *session = &sessions[connection];
    size_t kept = 0, at = 0;
    while (size - at > PREFIX) {
        struct reader reader = {bytes + at, size - at, false};
        size_t length = (size_t)number(&reader);
        bool first = !session->answered;
        if (first)
            length = CONNECT_SIZE;
        else if (length > reader.left)
            length = reader.left;
        if (length > reader.left)
            break;
        size_t whole = PREFIX + length;
        put_size(bytes + at, length);
        session->answered = true;
        if (first || (length >= HEADER_SIZE && make_sound(session, bytes + at + PREFIX, length))) {
            memmove(bytes + kept, bytes + at, whole);
            kept += whole;
        }
        at += whole;
    }
    return kept;
}

void fuzz_accepted(size_t connection)
{
    sessions[connection] = (struct session){.size = 0};
}
