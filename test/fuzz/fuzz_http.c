/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the web server: no answer but the page's own files is 200 without the token in the
 * request, each has one status line, and the server serves on.
 */
#include "fuzz.h"

#include "cli/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef"
#define PATIENCE_MS 20

const struct mrt_http_ops *mortise_http_module(void);

static struct mrt_serve serve;
static struct sockaddr_in address;

/* One look's rows, whose text must not be told to strangers. */
static void look_once(void)
{
    struct mrt_rows rows = {.count = 2, .room = 2};
    rows.rows = calloc(rows.room, sizeof *rows.rows);
    require(rows.rows != NULL);
    for (size_t i = 0; i < rows.count; i++)
        rows.rows[i] = (struct mrt_row){.name = strdup("secret/lock"),
                                        .kind = strdup("mutex"),
                                        .label = strdup("<b>label\"\\"),
                                        .host = strdup("host"),
                                        .node = strdup(""),
                                        .owner = "label",
                                        .fence = 65536 * (i + 1),
                                        .weight = 1,
                                        .capacity = 1,
                                        .place = (uint32_t)i};
    mrt_table_init(&serve.table, 5);
    require(mrt_table_update(&serve.table, &rows, 1000 * MRT_SECOND));
    serve.looks = 1;
}

static const char *const headers[][2] = {{"X-Content-Type-Options", "nosniff"}, {NULL, NULL}};

static void start(void)
{
    socklen_t length = sizeof address;
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    require(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 64) == 0);
    require(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    serve.http_ops = mortise_http_module();
    snprintf(serve.token, sizeof serve.token, "%s", TOKEN);
    pthread_mutex_init(&serve.mutex, NULL);
    pthread_cond_init(&serve.wake, NULL);
    TAILQ_INIT(&serve.jobs);
    const mortise_client_options of_client = {.size = sizeof of_client,
                                              .flags = MORTISE_FOREIGN_LOOP};
    require(mortise_open("memory:served", &of_client, &serve.client) == MORTISE_OK);
    look_once();
    const struct mrt_http_options options = {.listener = listener,
                                             .connections_max = 128,
                                             .request_seconds = 30,
                                             .idle_seconds = 10,
                                             .stranger_seconds = 5,
                                             .headers = headers,
                                             .handler = mrt_serve_handle,
                                             .argument = &serve};
    serve.http = serve.http_ops->start(&options);
    require(serve.http != NULL);
}

/* The fuzzer's own timer interrupts a connect that waits in the server's queue, and a poll. */
static bool reach(int fd)
{
    int failed = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
    socklen_t size = sizeof failed;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (failed == EINTR) {
        while (poll(&ready, 1, 60000) < 0)
            ;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
    }
    if (failed)
        fprintf(stderr, "connect: %s\n", strerror(failed));
    return !failed;
}

static size_t exchange(const uint8_t *data, size_t size, int patience_ms, char *answer, size_t room)
{
    const struct linger none = {1, 0};
    /* One address has ports for some 28,000 connections in a minute. */
    static uint32_t connections;
    struct sockaddr_in from = {.sin_family = AF_INET};
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + connections++ % 128);
    size_t length = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    require(fd >= 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    require(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    require(reach(fd));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    ssize_t sent = size > 0 ? send(fd, data, size, MSG_NOSIGNAL) : 0;
    if (sent >= 0)
        shutdown(fd, SHUT_WR);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (length < room - 1) {
        int polled = poll(&ready, 1, patience_ms);
        if (polled < 0)
            continue;
        if (polled == 0)
            break;
        ssize_t got = recv(fd, answer + length, room - 1 - length, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    close(fd);
    answer[length] = '\0';
    return length;
}

static bool is_there(const void *text, size_t size, const char *what)
{
    return memmem(text, size, what, strlen(what)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[65536];
    static const uint8_t fine[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    static unsigned runs;
    if (!serve.http)
        start();
    size_t length = exchange(data, size, PATIENCE_MS, answer, sizeof answer);
    require(length == 0 || strncmp(answer, "HTTP/1.", 7) == 0);
    bool knows = is_there(data, size, TOKEN);
    require(knows || !is_there(answer, length, "secret/lock"));
    require(!is_there(answer, length, "HTTP/1.1 500"));
    if (runs++ % 64 == 0) {
        length = exchange(fine, sizeof fine - 1, 60000, answer, sizeof answer);
        if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
            fprintf(stderr, "%s\n", answer);
        require(strncmp(answer, "HTTP/1.1 200", 12) == 0);
    }
    return 0;
}
