/* SPDX-License-Identifier: Apache-2.0 */
/* See hostile.h. */
#include "hostile.h"

#include "base/uri.h"
#include "fuzz.h"
#include "store/kit/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define COMMANDS 48
#define STEPS_MAX 200
#define QUEUES 3
#define TICKETS 4
#define ROWS_MAX 4
#define UPSTREAM_PATIENCE 60 /* milliseconds without a byte, after which it has said all */

enum step { SUBMIT, BYTES, WAIT, CLOSE, ASK, STEPS };

struct connection {
    int fd, upstream; /* -1: none */
};

struct game {
    const uint8_t *data;
    size_t size;
    struct mrt_store *store;
    struct connection connections[FUZZ_CONNECTIONS];
    size_t connection_count;
    struct mrt_command commands[COMMANDS];
    bool pending[COMMANDS];
    size_t command_count;
    unsigned steps;
    bool over; /* the server has nothing to say any more */
};

static struct game game;
static int listener = -1;
static uint16_t port, upstream_port;
static mrt_time now;
static uint64_t identities;
static volatile uint64_t seen; /* so that what the store tells is read */

/* ------------------------------------------------- in the place of the system's */

mrt_time __wrap_mrt_time_now(void);
bool __wrap_mrt_id_random(struct mrt_id *id);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);
void __wrap_mrt_resolver_begin(struct mrt_resolver *resolver, const struct mrt_host *hosts,
                               size_t count, mrt_time at);
int __real_poll(struct pollfd *polled, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout);
int __wrap_ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask);

mrt_time __wrap_mrt_time_now(void)
{
    return now;
}

bool __wrap_mrt_id_random(struct mrt_id *id)
{
    identities++;
    *id = (struct mrt_id){0x1122334455667787 + identities, 0x1000 * identities};
    return true;
}

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
    (void)flags;
    memset(buffer, (int)(++identities & 0xff), size);
    return (ssize_t)size;
}

/* ------------------------------------------------------------------- the server */

static void begin_listening(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const char *text = getenv("MORTISE_FUZZ_UPSTREAM");
    upstream_port = text ? (uint16_t)strtol(text, NULL, 10) : 0;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    require(bind(listener, (struct sockaddr *)&address, length) == 0);
    require(listen(listener, FUZZ_CONNECTIONS) == 0);
    require(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    port = ntohs(address.sin_port);
}

int hostile_call_upstream(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(upstream_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = upstream_port ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    require(fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* Closed by the server, and at once: no port stays taken. */
static void close_connection(struct connection *connection)
{
    const struct linger none = {1, 0};
    if (connection->fd < 0)
        return;
    setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(connection->fd);
    if (connection->upstream >= 0)
        close(connection->upstream);
    connection->fd = connection->upstream = -1;
}

bool hostile_accepts(void)
{
    return !game.over && game.connection_count < FUZZ_CONNECTIONS;
}

int hostile_accept(void)
{
    struct timeval patience = {2, 0};
    fd_set waiting;
    FD_ZERO(&waiting);
    FD_SET(listener, &waiting);
    return select(listener + 1, &waiting, NULL, NULL, &patience) == 1
               ? accept4(listener, NULL, NULL, SOCK_CLOEXEC)
               : -1;
}

void hostile_accepted(int fd, int upstream)
{
    if (fuzz_accepted)
        fuzz_accepted(game.connection_count);
    game.connections[game.connection_count++] = (struct connection){fd, upstream};
}

static void accept_all(void)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection made = {fd, -1};
        if (hostile_accepts())
            hostile_accepted(fd, hostile_call_upstream());
        else
            close_connection(&made);
    }
}

static bool move(int from, int to, uint8_t *bytes, size_t size, size_t *moved)
{
    ssize_t got = recv(from, bytes, size, MSG_DONTWAIT);
    if (got > 0 && to >= 0)
        require(send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got);
    *moved = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static void print(uint8_t byte)
{
    if (upstream_port)
        printf("%02x", byte);
}

static void print_bytes(size_t connection, const uint8_t *bytes, size_t size)
{
    print(BYTES);
    print((uint8_t)connection);
    print((uint8_t)(size >> 8));
    print((uint8_t)size);
    for (size_t i = 0; i < size; i++)
        print(bytes[i]);
}

/* It reads the client's data, and passes it upstream. The answers from there are the input. */
static bool pump(void)
{
    static uint8_t bytes[65535];
    bool any = false;
    size_t moved;
    accept_all();
    for (size_t i = 0; i < game.connection_count; i++) {
        const struct connection *connection = &game.connections[i];
        if (connection->fd < 0)
            continue;
        while (move(connection->fd, connection->upstream, bytes, sizeof bytes, &moved)) {
            any = true;
            if (fuzz_received)
                fuzz_received(i, bytes, moved);
        }
        if (connection->upstream >= 0 &&
            move(connection->upstream, connection->fd, bytes, sizeof bytes, &moved)) {
            print_bytes(i, bytes, moved);
            any = true;
        }
    }
    return any;
}

/* ------------------------------------------------------------------- the store */

static void deliver(void *context, const struct mrt_event *event)
{
    (void)context;
    if (event->serial > 0) {
        require(event->serial <= game.command_count && game.pending[event->serial - 1]);
        game.pending[event->serial - 1] = false; /* each is answered once */
    }
    if (fuzz_delivered)
        fuzz_delivered(event->serial > 0 ? &game.commands[event->serial - 1] : NULL, event);
    for (size_t i = 0; event->value && i < event->value_size; i++)
        seen += ((const uint8_t *)event->value)[i];
    if (event->detail)
        seen += strlen(event->detail);
}

static void notify(void *context)
{
    (void)context;
}

static void say(void *argument, const char *message)
{
    (void)argument;
    seen += strlen(message);
}

static bool open_store(void)
{
    static struct mrt_uri uri; /* a store may keep what it points to */
    char text[256];
    const struct mrt_store_options options = {.label = "label", .timeout = MRT_SECOND, .log = say};
    const struct mrt_sink sink = {deliver, notify, NULL};
    snprintf(text, sizeof text, fuzz_uri, (unsigned)port);
    require(mrt_uri_parse(text, &uri) == MORTISE_OK);
    return fuzz_store()->open(&uri, &options, sink, &game.store) == MORTISE_OK;
}

static void turn(void)
{
    now += 100 * MRT_MICROSECOND;
    fuzz_store()->process(game.store, now);
}

static void process(void)
{
    pump();
    for (int i = 0; i < 3; i++) {
        turn();
        pump();
    }
    for (int i = 0; upstream_port && i < UPSTREAM_PATIENCE; i++) {
        turn();
        if (pump())
            i = 0;
        usleep(1000);
    }
}

/* ------------------------------------------------------------------ the program */

static uint8_t next(void)
{
    uint8_t byte = game.size > 0 ? *game.data : 0;
    if (game.size > 0) {
        game.data++;
        game.size--;
    }
    return byte;
}

static struct mrt_id ticket_of(uint8_t which)
{
    return (struct mrt_id){7, 1 + which % TICKETS};
}

static void submit(void)
{
    static const char *const names[QUEUES] = {"mortise/a", "mortise/b", "mortise/dir/c"};
    uint8_t what = next(), how = next();
    print(what);
    print(how);
    if (game.command_count == COMMANDS)
        return;
    struct mrt_command *command = &game.commands[game.command_count];
    game.pending[game.command_count++] = true;
    *command = (struct mrt_command){
        .type = (enum mrt_command_type)(what % (MRT_CELL_SET + 1)),
        .serial = game.command_count,
        .session = {5, 9},
        .ticket = ticket_of(how),
        .detached_id = {8, 1 + how % 3},
        .queue = names[how / TICKETS % QUEUES],
        .kind = what & 64 ? "exclusive" : "mutex",
        .claim = what & 64,
        .capacity = 1,
        .weight = 1,
        .try_only = how & 64,
        .linger = how & 32,
        .adopt = what / 16 == 3,
        .value = what & 128 ? "value" : NULL,
        .value_size = what & 128 ? 5 : 0,
        .wants_place = how & 128,
        .watch_closely = how & 128,
    };
    if (!fuzz_store()->submit(game.store, command, now)) {
        game.pending[--game.command_count] = false;
        return;
    }
}

static void send_to(size_t connection, const uint8_t *bytes, size_t size)
{
    static uint8_t sound[65536];
    int fd = game.connections[connection].fd;
    memcpy(sound, bytes, size);
    if (fd >= 0 && fuzz_sound)
        size = fuzz_sound(connection, sound, size);
    if (fd >= 0 && size > 0)
        seen += send(fd, sound, size, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/* The bytes of a step, behind the number of their connection; their size. */
static size_t take_bytes(const uint8_t **bytes)
{
    size_t size = next();
    size = size << 8 | next();
    if (size > game.size)
        size = game.size;
    *bytes = game.data;
    game.data += size;
    game.size -= size;
    return size;
}

bool hostile_take_bytes(uint8_t number, const uint8_t **bytes, size_t *size)
{
    if (game.size < 2 || game.data[0] % STEPS != BYTES || game.data[1] != number)
        return false;
    game.data += 2;
    game.size -= 2;
    *size = take_bytes(bytes);
    return true;
}

static void send_bytes(void)
{
    uint8_t which = next();
    const uint8_t *bytes;
    size_t size = take_bytes(&bytes);
    pump();
    if (!upstream_port && game.connection_count > 0 && size > 0)
        send_to(which % game.connection_count, bytes, size);
}

static void close_one(void)
{
    uint8_t which = next();
    print(which);
    accept_all();
    if (game.connection_count > 0)
        close_connection(&game.connections[which % game.connection_count]);
}

static int show(void *argument, const struct mrt_listed *row)
{
    int *left = argument;
    const mortise_entry *entry = &row->entry;
    seen += strlen(entry->name) + strlen(entry->kind) + strlen(entry->label) + strlen(row->claim);
    seen += entry->node ? strlen(entry->node) : 0;
    return --*left == 0;
}

static void ask(void)
{
    const struct mrt_store_ops *ops = fuzz_store();
    uint8_t what = next();
    char text[128];
    int left = ROWS_MAX;
    print(what);
    if (what % 5 == 0 && ops->list)
        ops->list(game.store, NULL, "mortise/", show, &left);
    else if (what % 5 == 1 && ops->list)
        ops->list(game.store, "mortise/a", NULL, show, &left);
    else if (what % 5 == 2 && ops->server && !fuzz_server_waits)
        ops->server(game.store, text, sizeof text);
    else if (what % 5 == 3 && ops->revoke)
        ops->revoke(game.store, "mortise/a", UINT64_C(65536) * what);
    else if (ops->break_ticket)
        ops->break_ticket(game.store, "mortise/a", UINT64_C(65536) * (1u + what));
}

static void step(void)
{
    uint8_t which = next() % STEPS;
    if (which != BYTES)
        print(which);
    if (which == SUBMIT) {
        submit();
    } else if (which == BYTES) {
        send_bytes();
    } else if (which == CLOSE) {
        close_one();
    } else if (which == ASK) {
        ask();
    } else {
        uint8_t time = next();
        print(time);
        now += time * (time < 128 ? MRT_MILLISECOND : 50 * MRT_MILLISECOND);
    }
}

/* Of a call that waits: the server's next bytes, or nothing any more. */
static void serve_waiting(mrt_time longest)
{
    pump();
    if (upstream_port) {
        for (int i = 0; i < UPSTREAM_PATIENCE && !pump(); i++)
            usleep(1000);
        now += MRT_MILLISECOND;
        return;
    }
    if (game.size > 0 && *game.data % STEPS == BYTES && game.steps++ < STEPS_MAX) {
        next();
        send_bytes();
        now += MRT_MICROSECOND;
        return;
    }
    game.over = true;
    for (size_t i = 0; i < game.connection_count; i++)
        close_connection(&game.connections[i]);
    now += longest > 0 ? longest : MRT_MILLISECOND;
}

/* Time passes in each call, so nobody waits in a circle for ever. */
static int wait_for(struct pollfd *polled, nfds_t count, mrt_time longest)
{
    int ready = __real_poll(polled, count, 0);
    now += 100 * MRT_MICROSECOND;
    if (ready != 0)
        return ready;
    serve_waiting(longest);
    return __real_poll(polled, count, 0);
}

int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout)
{
    return wait_for(polled, count, timeout < 0 ? MRT_SECOND : mrt_time_from_ms(timeout));
}

int __wrap_ppoll(struct pollfd *polled, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    (void)mask;
    return wait_for(polled, count,
                    timeout ? timeout->tv_sec * MRT_SECOND + timeout->tv_nsec : MRT_SECOND);
}

void __wrap_mrt_resolver_begin(struct mrt_resolver *resolver, const struct mrt_host *hosts,
                               size_t count, mrt_time at)
{
    (void)resolver, (void)hosts, (void)count, (void)at; /* the server stays where it is */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (listener < 0)
        begin_listening();
    game = (struct game){.data = data, .size = size};
    now = 1000 * MRT_SECOND;
    identities = 0;
    require(open_store());
    while (game.size > 0 && game.steps++ < STEPS_MAX) {
        step();
        process();
    }
    for (size_t i = 0; i < game.connection_count; i++)
        close_connection(&game.connections[i]);
    fuzz_store()->close(game.store);
    game.over = true;
    accept_all();
    if (upstream_port)
        printf("\n");
    return 0;
}
