/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl as the etcd store uses it: the functions that the store calls, in the place of the
 * library's. It has no sockets: what it waits for comes by the timer that it asks of the store.
 *
 * As libcurl does: a call goes by a connection that is kept, if there is one, else by a new one. A
 * call on a connection that was kept, and breaks before any answer, is sent once more on a new one,
 * whether or not it has been done. A call that ends in time leaves its connection to the next.
 */
#include "etcd_server.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct etcd_multi {
    struct etcd_multi *next; /* of the cluster's */
    struct host *host;
    curl_multi_timer_callback timer;
    void *timer_context;
    struct etcd_easy *easies;   /* the oldest first */
    int kept[ETCD_MEMBERS_MAX]; /* connections */
    CURLMsg message;
};

enum state { NEW, CONNECTING, SENT, OVER, REPORTED };

struct etcd_easy {
    struct task deadline; /* first */
    struct etcd_easy *next;
    struct etcd_multi *multi; /* NULL: in none */
    enum state state;
    CURLcode result, planned; /* at the deadline */
    char *private;
    const char *body;
    long size, timeout_ms, connect_ms, fresh, status, sent;
    curl_write_callback write;
    curl_prereq_callback before; /* each time that it is sent */
    void *context, *before_context;
    int member;
    char path[32];
    bool was_kept, heard; /* its connection; something of its answer */
    mrt_time since;
    struct etcd_exchange *exchange;
    char *inbox;
    size_t used;
    bool last;
};

static struct client *client_of(const struct etcd_easy *easy)
{
    return easy->multi->host->client;
}

/* The store is to call, at once. */
static void wake(struct etcd_multi *multi)
{
    struct host *outer = host_current;
    host_current = multi->host;
    multi->timer((CURLM *)multi, 0, multi->timer_context);
    host_current = outer;
    multi->host->due = true;
    host_ready(multi->host->client);
}

static void finish(struct etcd_easy *easy, CURLcode result)
{
    world_cancel(client_of(easy)->world, &easy->deadline);
    if (easy->exchange)
        etcd_exchange_leave(easy->exchange, easy->state == CONNECTING);
    easy->exchange = NULL;
    easy->state = OVER;
    easy->result = result;
    wake(easy->multi);
}

static void be_late(struct world *world, struct task *task)
{
    struct etcd_easy *easy = (struct etcd_easy *)task;
    (void)world;
    finish(easy, easy->planned);
}

static void plan_end(struct etcd_easy *easy, mrt_time at, CURLcode result)
{
    easy->planned = result;
    world_at(client_of(easy)->world, &easy->deadline, at, be_late);
}

/* ------------------------------------------------------------------ sending */

static void send_now(struct etcd_easy *easy)
{
    if (easy->before &&
        easy->before(easy->before_context, NULL, NULL, 0, 0) != CURL_PREREQFUNC_OK) {
        finish(easy, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    easy->state = SENT;
    easy->sent = easy->size;
    if (easy->timeout_ms > 0)
        plan_end(easy, easy->since + easy->timeout_ms * MRT_MILLISECOND, CURLE_OPERATION_TIMEDOUT);
    else
        world_cancel(client_of(easy)->world, &easy->deadline);
    etcd_exchange_send(easy->exchange);
}

static void connected(struct world *world, struct task *task)
{
    (void)world;
    send_now(((struct etcd_exchange *)task)->easy);
}

static void connect_anew(struct etcd_easy *easy)
{
    struct client *client = client_of(easy);
    struct world *world = client->world;
    struct etcd_cluster *cluster = etcd_of(world);
    easy->state = CONNECTING;
    easy->was_kept = false;
    if (world->now < client->reset_until || !etcd_is_up(&cluster->members[easy->member])) {
        plan_end(easy, world->now + 2 * MRT_MICROSECOND, CURLE_COULDNT_CONNECT);
        return;
    }
    easy->exchange =
        etcd_exchange_new(client, easy, easy->member, easy->path, easy->body, (size_t)easy->size);
    long limit = easy->connect_ms;
    if (easy->timeout_ms > 0 && easy->timeout_ms < limit)
        limit = easy->timeout_ms;
    plan_end(easy, easy->since + limit * MRT_MILLISECOND, CURLE_OPERATION_TIMEDOUT);
    world_at(world, &easy->exchange->task, etcd_later(easy->exchange, 0), connected);
}

static void begin_call(struct etcd_easy *easy)
{
    easy->since = client_of(easy)->world->now;
    if (easy->fresh || easy->multi->kept[easy->member] == 0) {
        connect_anew(easy);
        return;
    }
    easy->multi->kept[easy->member]--;
    easy->was_kept = true;
    easy->exchange = etcd_exchange_new(client_of(easy), easy, easy->member, easy->path, easy->body,
                                       (size_t)easy->size);
    send_now(easy);
}

/* ------------------------------------------------------------------ what comes */

void etcd_easy_take(struct etcd_easy *easy, long status, const char *bytes, size_t size, bool last)
{
    easy->inbox = realloc(easy->inbox, easy->used + size + 1);
    if (!easy->inbox)
        abort();
    memcpy(easy->inbox + easy->used, bytes, size);
    easy->used += size;
    easy->status = status;
    easy->heard = true;
    easy->last |= last;
    if (last)
        easy->exchange = NULL;
    wake(easy->multi);
}

void etcd_easy_break(struct etcd_easy *easy, bool lost)
{
    if (easy->state == CONNECTING) {
        finish(easy, CURLE_COULDNT_CONNECT);
    } else if (easy->was_kept && !easy->heard) {
        etcd_exchange_leave(easy->exchange, lost);
        easy->exchange = NULL;
        connect_anew(easy);
    } else if (easy->exchange) {
        etcd_exchange_leave(easy->exchange, lost);
        easy->exchange = NULL;
        finish(easy, CURLE_RECV_ERROR);
    }
}

void etcd_easy_hold_up(struct etcd_easy *easy, mrt_time until)
{
    if (easy->exchange)
        easy->exchange->held_up_until = until;
}

void etcd_forget_member(struct etcd_cluster *cluster, int member)
{
    for (struct etcd_multi *multi = cluster->multis; multi; multi = multi->next)
        multi->kept[member] = 0;
}

static struct etcd_multi *multi_of(const struct client *client)
{
    struct etcd_multi *multi = etcd_of(client->world)->multis;
    while (multi && multi->host != client->host)
        multi = multi->next;
    return multi;
}

void etcd_cut(struct world *world, struct client *client)
{
    struct etcd_multi *multi = multi_of(client);
    if (!multi || random_below(&world->random, 2))
        return; /* cut_until holds everything up */
    client->reset_until = client->cut_until;
    client->cut_until = 0;
    memset(multi->kept, 0, sizeof multi->kept);
    for (struct etcd_easy *easy = multi->easies; easy; easy = easy->next)
        if (easy->exchange)
            etcd_easy_break(easy, random_below(&world->random, 2));
}

void etcd_hold_up(struct world *world, mrt_time until)
{
    const struct client *client =
        &world->clients[random_below(&world->random, world->drawn.clients)];
    const struct etcd_multi *multi = client->engine ? multi_of(client) : NULL;
    int64_t count = 0;
    for (struct etcd_easy *easy = multi ? multi->easies : NULL; easy; easy = easy->next)
        count++;
    int64_t chosen = random_below(&world->random, count);
    for (struct etcd_easy *easy = multi ? multi->easies : NULL; easy; easy = easy->next)
        if (chosen-- == 0)
            etcd_easy_hold_up(easy, until);
}

/* ------------------------------------------------------------------ libcurl's functions */

CURLcode curl_global_init(long flags)
{
    (void)flags;
    return CURLE_OK;
}

CURL *curl_easy_init(void)
{
    struct etcd_easy *easy = calloc(1, sizeof *easy);
    if (!easy)
        abort();
    return (CURL *)easy;
}

void curl_easy_cleanup(CURL *handle)
{
    struct etcd_easy *easy = (struct etcd_easy *)handle;
    free(easy->inbox);
    free(easy);
}

/* "http://127.0.0.1:PORT/v3/PATH" */
static void take_url(struct etcd_easy *easy, const char *url)
{
    int port = 0;
    if (sscanf(url, "http://127.0.0.1:%d/v3/%31s", &port, easy->path) != 2)
        abort();
    easy->member = port - ETCD_FIRST_PORT;
}

CURLcode(curl_easy_setopt)(CURL *handle, CURLoption option, ...)
{
    struct etcd_easy *easy = (struct etcd_easy *)handle;
    va_list arguments;
    va_start(arguments, option);
    switch ((int)option) {
    case CURLOPT_PRIVATE:
        easy->private = va_arg(arguments, char *);
        break;
    case CURLOPT_POSTFIELDS:
        easy->body = va_arg(arguments, const char *);
        break;
    case CURLOPT_POSTFIELDSIZE:
        easy->size = va_arg(arguments, long);
        break;
    case CURLOPT_WRITEFUNCTION:
        easy->write = va_arg(arguments, curl_write_callback);
        break;
    case CURLOPT_WRITEDATA:
        easy->context = va_arg(arguments, void *);
        break;
    case CURLOPT_PREREQFUNCTION:
        easy->before = va_arg(arguments, curl_prereq_callback);
        break;
    case CURLOPT_PREREQDATA:
        easy->before_context = va_arg(arguments, void *);
        break;
    case CURLOPT_TIMEOUT_MS:
        easy->timeout_ms = va_arg(arguments, long);
        break;
    case CURLOPT_CONNECTTIMEOUT_MS:
        easy->connect_ms = va_arg(arguments, long);
        break;
    case CURLOPT_FRESH_CONNECT:
        easy->fresh = va_arg(arguments, long);
        break;
    case CURLOPT_URL:
        take_url(easy, va_arg(arguments, const char *));
        break;
    default:
        break;
    }
    va_end(arguments);
    return CURLE_OK;
}

CURLcode(curl_easy_getinfo)(CURL *handle, CURLINFO info, ...)
{
    const struct etcd_easy *easy = (struct etcd_easy *)handle;
    va_list arguments;
    va_start(arguments, info);
    if (info == CURLINFO_PRIVATE)
        *va_arg(arguments, char **) = easy->private;
    else if (info == CURLINFO_REQUEST_SIZE)
        *va_arg(arguments, long *) = easy->sent;
    else if (info == CURLINFO_RESPONSE_CODE)
        *va_arg(arguments, long *) = easy->status;
    else
        abort();
    va_end(arguments);
    return CURLE_OK;
}

CURLM *curl_multi_init(void)
{
    struct etcd_multi *multi = calloc(1, sizeof *multi);
    struct etcd_cluster *cluster = etcd_of(host_current->client->world);
    if (!multi)
        abort();
    multi->host = host_current;
    multi->next = cluster->multis;
    cluster->multis = multi;
    return (CURLM *)multi;
}

CURLMcode curl_multi_cleanup(CURLM *handle)
{
    struct etcd_multi *multi = (struct etcd_multi *)handle;
    struct etcd_multi **link = &etcd_of(multi->host->client->world)->multis;
    while (*link != multi)
        link = &(*link)->next;
    *link = multi->next;
    free(multi);
    return CURLM_OK;
}

CURLMcode(curl_multi_setopt)(CURLM *handle, CURLMoption option, ...)
{
    struct etcd_multi *multi = (struct etcd_multi *)handle;
    va_list arguments;
    va_start(arguments, option);
    if (option == CURLMOPT_TIMERFUNCTION)
        multi->timer = va_arg(arguments, curl_multi_timer_callback);
    else if (option == CURLMOPT_TIMERDATA)
        multi->timer_context = va_arg(arguments, void *);
    va_end(arguments);
    return CURLM_OK;
}

CURLMcode curl_multi_add_handle(CURLM *handle, CURL *added)
{
    struct etcd_multi *multi = (struct etcd_multi *)handle;
    struct etcd_easy *easy = (struct etcd_easy *)added, **link = &multi->easies;
    easy->multi = multi;
    easy->state = NEW;
    easy->status = easy->sent = 0;
    easy->used = 0;
    easy->heard = easy->last = false;
    easy->next = NULL;
    while (*link)
        link = &(*link)->next;
    *link = easy;
    multi->timer(handle, 0, multi->timer_context);
    return CURLM_OK;
}

/* A call that has not ended takes its connection with it. */
CURLMcode curl_multi_remove_handle(CURLM *handle, CURL *removed)
{
    struct etcd_multi *multi = (struct etcd_multi *)handle;
    struct etcd_easy *easy = (struct etcd_easy *)removed, **link = &multi->easies;
    while (*link != easy)
        link = &(*link)->next;
    *link = easy->next;
    world_cancel(client_of(easy)->world, &easy->deadline);
    if (easy->exchange)
        etcd_exchange_leave(easy->exchange, easy->state == CONNECTING);
    easy->exchange = NULL;
    easy->multi = NULL;
    return CURLM_OK;
}

/* Hands over what has come. */
static void read_inbox(struct etcd_easy *easy)
{
    size_t used = easy->used;
    easy->used = 0;
    if (used > 0 && easy->write(easy->inbox, 1, used, easy->context) != used) {
        finish(easy, CURLE_WRITE_ERROR);
    } else if (easy->last) {
        easy->multi->kept[easy->member] += easy->state == SENT;
        finish(easy, CURLE_OK);
    }
}

CURLMcode curl_multi_socket_action(CURLM *handle, curl_socket_t socket, int events, int *running)
{
    const struct etcd_multi *multi = (struct etcd_multi *)handle;
    (void)socket, (void)events;
    *running = 0;
    for (struct etcd_easy *easy = multi->easies; easy; easy = easy->next) {
        if (easy->state == NEW)
            begin_call(easy);
        else if (easy->state == SENT && (easy->used > 0 || easy->last))
            read_inbox(easy);
    }
    return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *handle, int *left)
{
    struct etcd_multi *multi = (struct etcd_multi *)handle;
    struct etcd_easy *easy = multi->easies;
    while (easy && easy->state != OVER)
        easy = easy->next;
    *left = 0;
    if (!easy)
        return NULL;
    easy->state = REPORTED;
    multi->message = (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = (CURL *)easy};
    multi->message.data.result = easy->result;
    return &multi->message;
}
