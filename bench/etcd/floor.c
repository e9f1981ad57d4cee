/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of locks on etcd: what its JSON gateway takes for the requests that a lock cannot do
 * without, by one connection that stays, with nothing between the program and the socket.
 *
 *   bench_etcd_floor HOST:PORT SECONDS PAUSE_MS
 *
 * In turns: a bare put; the transaction of an acquire, as the store sends it; and that of a
 * release, waited for. PAUSE_MS is between a release and what follows. Prints one JSON object:
 * medians, and the rate of acquire and release.
 */
#include "../clock.h"
#include "store/etcd/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMES_MAX 100000
#define LEASE 4711
#define SESSION "bench-floor/.mortise/s/1"
#define TICKET "bench-floor/lock/0123456789abcdef0123456789abcdef"
#define VALUE                                                                                  \
    "mortise 1 mutex 1 1 0 1764270000000 0123456789abcdef0123456789abcdef host 12345 mortise " \
    "bench"

static int connection;
static char reply[65536];

static void fail(const char *what)
{
    fprintf(stderr, "bench_etcd_floor: %s\n%s\n", what, reply);
    exit(1);
}

static void connect_to(const char *host)
{
    char address[64];
    int on = 1;
    const char *colon = strrchr(host, ':');
    struct sockaddr_in to = {.sin_family = AF_INET};
    if (!colon || (size_t)(colon - host) >= sizeof address)
        fail("HOST:PORT");
    snprintf(address, sizeof address, "%.*s", (int)(colon - host), host);
    to.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
        connect(connection, (struct sockaddr *)&to, sizeof to) != 0 ||
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        fail("cannot connect");
}

/* The body of the answer, which is whole. */
static const char *receive(void)
{
    size_t got = 0;
    for (;;) {
        ssize_t more = recv(connection, reply + got, sizeof reply - 1 - got, 0);
        if (more <= 0)
            fail("the connection has ended");
        got += (size_t)more;
        reply[got] = '\0';
        const char *body = strstr(reply, "\r\n\r\n");
        const char *length = strcasestr(reply, "\r\nContent-Length:");
        if (!body)
            continue;
        if (!length || length > body)
            fail("an answer without its length");
        if (reply + got >= body + 4 + strtol(length + 17, NULL, 10))
            return body + 4;
    }
}

/* Sends the text, which is freed, and waits for the answer. */
static void call(const char *path, struct mrt_rest_text *text)
{
    char request[4096];
    int length = snprintf(request, sizeof request,
                          "POST /v3/%s HTTP/1.1\r\nHost: bench\r\n"
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          path, text->length, text->bytes);
    mrt_rest_text_free(text);
    if (length < 0 || length >= (int)sizeof request ||
        send(connection, request, (size_t)length, MSG_NOSIGNAL) != length)
        fail("cannot send");
    const char *body = receive();
    if (strstr(body, "\"error\""))
        fail("an error");
}

static int64_t number_after(const char *name)
{
    const char *at = strstr(reply, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static int64_t start_session(void)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"TTL\":\"3600\",\"ID\":\"%d\"}", LEASE);
    call("lease/grant", &text);
    mrt_rest_add(&text, "{\"compare\":[],\"success\":[");
    mrt_etcd_put(&text, SESSION, "", 0, LEASE);
    mrt_rest_add(&text, "]}");
    call("kv/txn", &text);
    return number_after("\"revision\":\"");
}

static void put(void)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{");
    mrt_rest_add_bytes(&text, "key", "bench-floor/bare", strlen("bench-floor/bare"));
    mrt_rest_add(&text, ",");
    mrt_rest_add_bytes(&text, "value", VALUE, strlen(VALUE));
    mrt_rest_add(&text, "}");
    call("kv/put", &text);
}

static void acquire(int64_t epoch)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"compare\":[");
    mrt_etcd_if(&text, SESSION, "MOD", epoch);
    mrt_etcd_if(&text, TICKET, "CREATE", 0);
    mrt_rest_add(&text, "],\"success\":[");
    mrt_etcd_put(&text, TICKET, VALUE, strlen(VALUE), LEASE);
    mrt_etcd_get_all(&text, "bench-floor/lock/");
    mrt_rest_add(&text, "],\"failure\":[");
    mrt_etcd_get(&text, SESSION);
    mrt_etcd_get_all(&text, "bench-floor/lock/");
    mrt_rest_add(&text, "]}");
    call("kv/txn", &text);
    if (!strstr(reply, "\"succeeded\":true"))
        fail("a transaction has failed");
}

static void release(void)
{
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"compare\":[");
    mrt_etcd_if(&text, TICKET, "LEASE", LEASE);
    mrt_rest_add(&text, "],\"success\":[");
    mrt_etcd_delete(&text, TICKET);
    mrt_rest_add(&text, "]}");
    call("kv/txn", &text);
}

int main(int argc, char **argv)
{
    static int64_t puts_ns[TIMES_MAX], acquires[TIMES_MAX], cycles[TIMES_MAX];
    if (argc != 4)
        return 64;
    connect_to(argv[1]);
    int64_t epoch = start_session(), spent = 0;
    int64_t seconds = (int64_t)(strtod(argv[2], NULL) * 1e9), pause = strtol(argv[3], NULL, 10);
    size_t count = 0;
    for (int64_t end = now_ns() + seconds; now_ns() < end && count < TIMES_MAX; count++) {
        int64_t begin = now_ns();
        put();
        puts_ns[count] = now_ns() - begin;
        if (pause > 0)
            usleep((useconds_t)pause * 1000);
        begin = now_ns();
        acquire(epoch);
        acquires[count] = now_ns() - begin;
        release();
        cycles[count] = now_ns() - begin;
        spent += cycles[count];
        if (pause > 0)
            usleep((useconds_t)pause * 1000);
    }
    struct mrt_rest_text text = {0};
    mrt_rest_add(&text, "{\"ID\":\"%d\"}", LEASE);
    call("lease/revoke", &text);
    if (count == 0)
        return 1;
    printf("{\"put_us\": %.1f, \"acquire_us\": %.1f, \"cycle_us\": %.1f, "
           "\"acquisitions_per_s\": %.1f}\n",
           median_us(puts_ns, count), median_us(acquires, count), median_us(cycles, count),
           (double)count / ((double)spent / 1e9));
    return 0;
}
