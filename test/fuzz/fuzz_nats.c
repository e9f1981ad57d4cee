/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a NATS server, through libnats and json-c.
 *
 * libnats connects by a call that waits. Here it is made on the program's own thread, while a
 * thread of the target's greets the client: as a server does, or by the input's next bytes, if
 * those are next and of the connection 255. The first line goes out at once, the rest when the
 * client has sent its PING.
 *
 * Bytes behind '@' are the answer to the oldest request that has none, and behind '#' one with
 * headers, up to an empty line: so a change of them gets as far as JSON. All other bytes go out as
 * they stand.
 *
 * A grant needs a publish of the ticket on a condition, an answer to that very message, and a place
 * that the server has named; a proof of life needs an answer to a publish of the session.
 */
#include "hostile.h"

#include "core/rule.h"
#include "fuzz.h"

#include <inttypes.h>
#include <nats/nats.h>
#include <pthread.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define GREETING 255 /* in the place of a connection's number */
#define REQUESTS 256
#define WORDS 5
#define HEARD_MAX 65536
#define SAID_MAX (1 << 18)
#define FENCE_BITS 12
#define CONDITION "Nats-Expected-Last-Subject-Sequence:"

struct request {
    char subject[512], reply[96];
    size_t connection;
    bool conditional;
    bool taken; /* an answer has been made */
};

struct heard {
    char bytes[HEARD_MAX]; /* of the client, as far as they are not read */
    size_t size;
};

struct greeting {
    const uint8_t *bytes; /* NULL: as a server greets */
    size_t size;
    int fd, upstream;
};

const char fuzz_uri[] = "nats://127.0.0.1:%u?connect=300ms";

static struct heard heard[FUZZ_CONNECTIONS];
static struct request requests[REQUESTS];
static size_t request_count;
static char said[SAID_MAX]; /* what the server has sent, as a text */
static size_t said_size;
static bool blind; /* there was too much to see all */

bool __wrap_mrt_thread_begin(void *(*run)(void *argument), void *argument);
natsStatus __real_natsConnection_Connect(natsConnection **connection, natsOptions *options);
natsStatus __wrap_natsConnection_Connect(natsConnection **connection, natsOptions *options);

/* The only thread of the store's is the one that connects. */
bool __wrap_mrt_thread_begin(void *(*run)(void *argument), void *argument)
{
    run(argument);
    return true;
}

/* ------------------------------------------------------------------ greeting */

static void send_part(int fd, const void *bytes, size_t size)
{
    if (size > 0)
        (void)!send(fd, bytes, size, MSG_NOSIGNAL);
}

/* Reads until the client has sent this, or has left. */
static bool read_until(int fd, const char *text)
{
    char bytes[4096];
    size_t size = 0;
    while (size < sizeof bytes) {
        ssize_t got = recv(fd, bytes + size, sizeof bytes - size, 0);
        if (got <= 0 || *bytes != 'C') /* as of a client that begins with TLS */
            return false;
        size += (size_t)got;
        if (memmem(bytes, size, text, strlen(text)))
            return true;
    }
    return false;
}

static void greet(const struct greeting *greeting)
{
    static const char info[] =
        "INFO {\"server_id\":\"A\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true,"
        "\"max_payload\":1048576,\"jetstream\":true,\"client_id\":1}\r\n";
    const char *bytes = greeting->bytes ? (const char *)greeting->bytes : info;
    size_t size = greeting->bytes ? greeting->size : sizeof info - 1;
    const char *line = memchr(bytes, '\n', size);
    size_t first = line ? (size_t)(line - bytes) + 1 : size;
    send_part(greeting->fd, bytes, first);
    bool goes_on = line && read_until(greeting->fd, "PING\r\n");
    if (goes_on && greeting->bytes)
        send_part(greeting->fd, bytes + first, size - first);
    else if (goes_on)
        send_part(greeting->fd, "PONG\r\n", 6);
    bool complete = size - first >= 6 && memcmp(bytes + first, "PONG\r\n", 6) == 0;
    if (!goes_on || (greeting->bytes && !complete))
        shutdown(greeting->fd, SHUT_WR); /* nobody waits for more */
}

/* The greeting of a real server. */
static void pass_on(const struct greeting *greeting)
{
    char bytes[4096];
    int fds[2] = {greeting->fd, greeting->upstream};
    for (bool ended = false; !ended;) {
        fd_set ready;
        FD_ZERO(&ready);
        FD_SET(fds[0], &ready);
        FD_SET(fds[1], &ready);
        require(select(FD_SETSIZE, &ready, NULL, NULL, NULL) > 0);
        for (int i = 0; i < 2; i++) {
            ssize_t got = FD_ISSET(fds[i], &ready) ? recv(fds[i], bytes, sizeof bytes, 0) : 0;
            send_part(fds[1 - i], bytes, got > 0 ? (size_t)got : 0);
            ended |= FD_ISSET(fds[i], &ready) &&
                     (got <= 0 || (i == 1 && memmem(bytes, (size_t)got, "PONG", 4)));
        }
    }
}

static void *run_greeting(void *argument)
{
    struct greeting *greeting = argument;
    greeting->fd = hostile_accept();
    if (greeting->fd >= 0 && greeting->upstream >= 0)
        pass_on(greeting);
    else if (greeting->fd >= 0)
        greet(greeting);
    return NULL;
}

natsStatus __wrap_natsConnection_Connect(natsConnection **connection, natsOptions *options)
{
    struct greeting greeting = {.fd = -1};
    pthread_t thread;
    if (!hostile_accepts())
        return NATS_NO_SERVER;
    hostile_take_bytes(GREETING, &greeting.bytes, &greeting.size);
    greeting.upstream = hostile_call_upstream();
    require(pthread_create(&thread, NULL, run_greeting, &greeting) == 0);
    natsStatus status = __real_natsConnection_Connect(connection, options);
    pthread_join(thread, NULL);
    if (status == NATS_OK)
        hostile_accepted(greeting.fd, greeting.upstream);
    else if (greeting.fd >= 0)
        close(greeting.fd);
    blind |= greeting.upstream >= 0; /* what that server says is not seen here */
    return status;
}

void fuzz_accepted(size_t connection)
{
    if (connection == 0)
        request_count = said_size = blind = 0;
    heard[connection].size = 0;
}

/* ------------------------------------------------------------------ requests */

static size_t split(char *line, char *words[WORDS])
{
    size_t count = 0;
    char *rest = line;
    while (count < WORDS && (words[count] = strtok_r(rest, " ", &rest)))
        count++;
    return count;
}

/* A publish with its headers and its message. */
static void note_request(size_t connection, char *words[WORDS], size_t count, const char *bytes,
                         size_t size)
{
    bool answered = count == (*words[0] == 'H' ? 5 : 4); /* it has the address of an answer */
    blind |= request_count == REQUESTS;
    if (!answered || blind)
        return;
    struct request *request = &requests[request_count++];
    *request = (struct request){.connection = connection};
    snprintf(request->subject, sizeof request->subject, "%s", words[1]);
    snprintf(request->reply, sizeof request->reply, "%s", words[2]);
    request->conditional = memmem(bytes, size, CONDITION, strlen(CONDITION));
}

/* How long the client's first line is, with the message behind it; 0: it has not come whole. */
static size_t read_line(size_t connection, const char *bytes, size_t size)
{
    char line[1024], *words[WORDS];
    const char *end = memmem(bytes, size, "\r\n", 2);
    if (!end)
        return 0;
    size_t length = (size_t)(end - bytes), whole = length + 2;
    require(length < sizeof line);
    memcpy(line, bytes, length);
    line[length] = '\0';
    size_t count = split(line, words);
    require(count > 0);
    if (strcmp(words[0], "PUB") != 0 && strcmp(words[0], "HPUB") != 0)
        return whole;
    require(count >= 3);
    size_t message = strtoul(words[count - 1], NULL, 10);
    if (size < whole + message + 2)
        return 0;
    note_request(connection, words, count, bytes + whole, message);
    return whole + message + 2;
}

void fuzz_received(size_t connection, const uint8_t *bytes, size_t size)
{
    struct heard *client = &heard[connection];
    size_t read;
    if (size > sizeof client->bytes - client->size)
        blind = true;
    if (blind)
        return;
    memcpy(client->bytes + client->size, bytes, size);
    client->size += size;
    while ((read = read_line(connection, client->bytes, client->size)) > 0) {
        client->size -= read;
        memmove(client->bytes, client->bytes + read, client->size);
    }
}

/* ------------------------------------------------------------------- answers */

static struct request *oldest_request(size_t connection)
{
    for (size_t i = 0; i < request_count; i++)
        if (requests[i].connection == connection && !requests[i].taken)
            return &requests[i];
    return NULL;
}

/* Makes of the bytes an answer to that request. */
static size_t make_answer(struct request *request, uint8_t *bytes, size_t size)
{
    char line[192];
    const uint8_t *empty = memmem(bytes, size, "\r\n\r\n", 4);
    size_t headers = empty ? (size_t)(empty - bytes) + 4 : size;
    int length = *bytes == '@'
                     ? snprintf(line, sizeof line, "MSG %s 1 %zu\r\n", request->reply, size - 1)
                     : snprintf(line, sizeof line, "HMSG %s 1 %zu %zu\r\n", request->reply,
                                headers - 1, size - 1);
    request->taken = true;
    memmove(bytes + length, bytes + 1, size - 1);
    memcpy(bytes, line, (size_t)length);
    memcpy(bytes + (size_t)length + size - 1, "\r\n", 2);
    return (size_t)length + size + 1;
}

size_t fuzz_sound(size_t connection, uint8_t *bytes, size_t size)
{
    struct request *request = oldest_request(connection);
    if (*bytes == '@' || *bytes == '#')
        size = request && size < UINT16_MAX - 256 ? make_answer(request, bytes, size) : 0;
    blind |= size >= sizeof said - said_size;
    for (size_t i = 0; i < size && !blind; i++)
        said[said_size++] = bytes[i] ? (char)bytes[i] : ' ';
    said[said_size] = '\0';
    return size;
}

/* -------------------------------------------------------------------- grants */

/* Whether the server has answered a publish of a subject that begins and ends so. */
static bool has_answered(const char *begin, struct mrt_id id)
{
    char end[MRT_ID_TEXT_SIZE];
    mrt_id_format(id, end);
    for (size_t i = 0; i < request_count; i++) {
        const struct request *request = &requests[i];
        size_t length = strlen(request->subject);
        if (request->conditional && strncmp(request->subject, begin, strlen(begin)) == 0 &&
            length > strlen(end) && strcmp(request->subject + length - strlen(end), end) == 0 &&
            strstr(said, request->reply))
            return true;
    }
    return false;
}

static bool has_named(uint64_t sequence)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, sequence);
    return sequence > 0 && strstr(said, text);
}

void fuzz_delivered(const struct mrt_command *command, const struct mrt_event *event)
{
    if (!command || blind)
        return;
    if (event->type == MRT_STARTED || event->type == MRT_RENEWED)
        require(has_answered("mortise.mortise.s.", command->session));
    if (command->type == MRT_APPEND && !command->adopt && event->type == MRT_VIEW &&
        mrt_rule_grants(event->weight_ahead, command->weight, command->capacity)) {
        require(has_answered("mortise.mortise.q.", command->ticket));
        require(has_named(event->fence >> FENCE_BITS));
    }
}
