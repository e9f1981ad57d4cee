/* SPDX-License-Identifier: Apache-2.0 */
/* See link.h. */
#include "store/nats/link.h"

#include "base/epoll.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTING_MAX 64 /* of a process: some may wait for a server that says nothing more */
#define READS_MAX 1024
#define BUFFERED_MAX (4 << 20) /* bytes that the library keeps for a server that takes none */
#define PING_MS (3600 * 1000)  /* requests of ours have time limits */

struct mrt_nats_connecting {
    _Atomic int users; /* the thread and the store */
    pthread_mutex_t mutex;
    pthread_cond_t end;
    bool ended, dropped;
    int epoll, event;
    size_t host;
    struct mrt_nats_address address;
    char secret[MRT_SECRET_MAX], inbox[MRT_NATS_SUBJECT_SIZE];
    struct mrt_nats_link *link;
    int error;
    char text[256];
};

static _Atomic int connecting_count;

/* Links that there are. The library may tell of an error after it has told that the connection was
   closed, so a handler of errors knows a link by a number that is used once. */
static struct {
    pthread_mutex_t mutex;
    TAILQ_HEAD(, mrt_nats_link) links;
    uintptr_t numbers;
} known = {.mutex = PTHREAD_MUTEX_INITIALIZER, .links = TAILQ_HEAD_INITIALIZER(known.links)};

static void wake(int event)
{
    const uint64_t one = 1;
    ssize_t written = write(event, &one, sizeof one);
    (void)written; /* full: it is readable */
}

/* ------------------------------------------------------------------ a link */

static void link_release(struct mrt_nats_link *link)
{
    if (atomic_fetch_sub(&link->users, 1) != 1)
        return;
    pthread_mutex_lock(&known.mutex);
    TAILQ_REMOVE(&known.links, link, known);
    pthread_mutex_unlock(&known.mutex);
    pthread_mutex_destroy(&link->mutex);
    free(link);
}

static natsStatus on_attach(void **user, void *loop, natsConnection *connection, natsSock socket)
{
    struct mrt_nats_link *link = loop;
    (void)connection;
    link->socket = link->library = socket;
    *user = link;
    return NATS_OK;
}

static natsStatus on_read(void *user, bool add)
{
    const struct mrt_nats_link *link = user;
    if (!add)
        epoll_ctl(link->epoll, EPOLL_CTL_DEL, link->socket, NULL);
    return NATS_OK;
}

static natsStatus on_write(void *user, bool add)
{
    struct mrt_nats_link *link = user;
    atomic_store(&link->writes, add);
    if (!add || atomic_load(&link->inside))
        return NATS_OK;
    pthread_mutex_lock(&link->mutex);
    if (!link->dropped)
        wake(link->event);
    pthread_mutex_unlock(&link->mutex);
    return NATS_OK;
}

static natsStatus on_detach(void *user)
{
    (void)user;
    return NATS_OK;
}

/* The last call of the library's for a connection that stood, but for errors. */
static void on_closed(natsConnection *connection, void *user)
{
    (void)connection;
    link_release(user);
}

static void note_violation(struct mrt_nats_link *link, const char *text)
{
    pthread_mutex_lock(&link->mutex);
    if (!link->dropped) {
        snprintf(link->violation, sizeof link->violation, "%s", text);
        wake(link->event);
    }
    pthread_mutex_unlock(&link->mutex);
}

static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
                     void *user)
{
    struct mrt_nats_link *link;
    const char *text = NULL;
    (void)subscription;
    if (status == NATS_NOT_PERMITTED)
        natsConnection_GetLastError(connection, &text);
    if (!text)
        return;
    pthread_mutex_lock(&known.mutex); /* none is freed meanwhile */
    TAILQ_FOREACH (link, &known.links, known)
        if (link->number == (uintptr_t)user)
            note_violation(link, text);
    pthread_mutex_unlock(&known.mutex);
}

bool mrt_nats_link_violation(struct mrt_nats_link *link, char *text, size_t size)
{
    pthread_mutex_lock(&link->mutex);
    snprintf(text, size, "%s", link->violation);
    link->violation[0] = '\0';
    pthread_mutex_unlock(&link->mutex);
    return text[0];
}

static void read_event(void *argument)
{
    natsConnection_ProcessReadEvent(((struct mrt_nats_link *)argument)->connection);
}

const char *mrt_nats_link_read(struct mrt_nats_link *link)
{
    const char *fault = NULL;
    if (link->relay.inner >= 0)
        fault = mrt_nats_relay_receive(&link->relay, read_event, link);
    else
        read_event(link);
    if (natsConnection_IsClosed(link->connection))
        return "the connection broke before the answer";
    if (natsConnection_Buffered(link->connection) > BUFFERED_MAX)
        return "the server takes nothing";
    return fault;
}

bool mrt_nats_link_write(struct mrt_nats_link *link)
{
    if (atomic_load(&link->writes))
        natsConnection_ProcessWriteEvent(link->connection);
    if (link->relay.inner >= 0)
        link->is_full = mrt_nats_relay_send(&link->relay);
    return link->is_full || atomic_load(&link->writes);
}

/* To close an open connection the library waits for an answer that nobody reads; so it finds it
   broken. All that has been sent goes out still. */
static void break_connection(struct mrt_nats_link *link)
{
    if (link->relay.inner >= 0) {
        mrt_nats_relay_send(&link->relay);
        mrt_nats_relay_shut(&link->relay);
    } else if (!natsConnection_IsClosed(link->connection)) {
        shutdown(link->socket, SHUT_RDWR);
    }
}

void mrt_nats_link_abandon(const struct mrt_nats_link *link)
{
    close(link->library);
    if (link->relay.inner >= 0) {
        close(link->relay.inner);
        close(link->relay.outer);
    }
}

void mrt_nats_link_drop(struct mrt_nats_link *link)
{
    pthread_mutex_lock(&link->mutex);
    link->dropped = true;
    pthread_mutex_unlock(&link->mutex);
    break_connection(link);
    for (int i = 0; i < READS_MAX && !natsConnection_IsClosed(link->connection); i++)
        natsConnection_ProcessReadEvent(link->connection);
    natsSubscription_Destroy(link->inbox);
    natsConnection_Destroy(link->connection);
    mrt_nats_relay_close(&link->relay);
    link_release(link);
}

/* --------------------------------------------------------------- connecting */

/* The library writes names and secrets into JSON as they are. They have no controls (uri.c). */
static void escape(const char *text, char *escaped, size_t size)
{
    size_t at = 0;
    for (; *text && at + 2 < size; text++) {
        if (*text == '"' || *text == '\\')
            escaped[at++] = '\\';
        escaped[at++] = *text;
    }
    escaped[at] = '\0';
}

static natsStatus set_secret(natsOptions *options, const struct mrt_nats_connecting *connecting)
{
    char user[2 * MRT_USER_MAX], secret[2 * MRT_SECRET_MAX];
    natsStatus status = NATS_OK;
    escape(connecting->address.servers.user, user, sizeof user);
    escape(connecting->secret, secret, sizeof secret);
    if (user[0])
        status = natsOptions_SetUserInfo(options, user, secret);
    else if (secret[0])
        status = natsOptions_SetToken(options, secret);
    explicit_bzero(secret, sizeof secret);
    return status;
}

/* The options that stay the same for each host. */
static natsStatus set_options(natsOptions *options, const struct mrt_nats_connecting *connecting,
                              struct mrt_nats_link *link)
{
    const struct mrt_nats_address *address = &connecting->address;
    int64_t limit = address->connect / MRT_MILLISECOND;
    natsStatus status =
        natsOptions_SetEventLoop(options, link, on_attach, on_read, on_write, on_detach);
    if (status == NATS_OK)
        status = natsOptions_SetTimeout(options, limit > 0 ? limit : 1);
    if (status == NATS_OK)
        status = natsOptions_SetAllowReconnect(options, false);
    if (status == NATS_OK)
        status = natsOptions_SetIOBufSize(options, MRT_NATS_UNIT_MAX);
    if (status == NATS_OK)
        status = natsOptions_SetPingInterval(options, PING_MS);
    if (status == NATS_OK)
        status = natsOptions_SetSendAsap(options, true);
    if (status == NATS_OK)
        status = natsOptions_SetName(options, "mortise");
    if (status == NATS_OK)
        status = natsOptions_SetErrorHandler(options, on_error, (void *)link->number);
    if (status == NATS_OK)
        status = natsOptions_SetClosedCB(options, on_closed, link);
    if (status == NATS_OK)
        status = set_secret(options, connecting);
    if (status == NATS_OK && address->servers.tls != MRT_ADDRESS_TLS_OFF)
        status = natsOptions_SetSecure(options, true);
    if (status == NATS_OK && address->servers.tls == MRT_ADDRESS_TLS_REQUIRED)
        status = natsOptions_SkipServerVerification(options, true);
    if (status == NATS_OK && address->servers.tls_ca[0])
        status = natsOptions_LoadCATrustedCertificates(options, address->servers.tls_ca);
    return status;
}

static natsStatus connect_to(const struct mrt_nats_connecting *connecting, size_t index,
                             struct mrt_nats_link *link)
{
    const struct mrt_host *host = &connecting->address.servers.hosts[index];
    char name[MRT_HOST_TEXT_SIZE], place[MRT_HOST_TEXT_SIZE + 16];
    natsOptions *options = NULL;
    mrt_host_format(host, name);
    snprintf(place, sizeof place, "nats://%s", name);
    natsStatus status = natsOptions_Create(&options);
    if (status == NATS_OK)
        status = set_options(options, connecting, link);
    if (status == NATS_OK)
        status = natsOptions_SetURL(options, place);
    if (status == NATS_OK && connecting->address.servers.tls == MRT_ADDRESS_TLS_VERIFY)
        status = natsOptions_SetExpectedHostname(options, host->name);
    if (status == NATS_OK)
        status = natsConnection_Connect(&link->connection, options);
    natsOptions_Destroy(options);
    return status;
}

static struct mrt_nats_link *make_link(const struct mrt_nats_connecting *connecting)
{
    struct mrt_nats_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    pthread_mutex_init(&link->mutex, NULL);
    atomic_store(&link->users, 1);
    link->socket = link->library = link->relay.outer = link->relay.inner = -1;
    link->epoll = connecting->epoll;
    link->event = connecting->event;
    pthread_mutex_lock(&known.mutex);
    link->number = ++known.numbers;
    TAILQ_INSERT_TAIL(&known.links, link, known);
    pthread_mutex_unlock(&known.mutex);
    return link;
}

static void note_failure(struct mrt_nats_connecting *connecting, size_t index, natsStatus status)
{
    char name[MRT_HOST_TEXT_SIZE];
    natsStatus last = status;
    const char *text = nats_GetLastError(&last);
    mrt_host_format(&connecting->address.servers.hosts[index], name);
    bool refused = status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED;
    bool tls = status == NATS_SSL_ERROR || status == NATS_SECURE_CONNECTION_WANTED ||
               status == NATS_SECURE_CONNECTION_REQUIRED;
    connecting->error = refused ? MORTISE_EPERMISSION : MORTISE_EUNREACHABLE;
    snprintf(connecting->text, sizeof connecting->text, "%.80s: %.110s%s", name,
             refused || !text || !*text ? natsStatus_GetText(status) : text,
             refused ? "; see credentials= and the user in the URI"
             : tls   ? "; see tls= and tls_ca="
                     : "");
}

/* A connection stands. */
static natsStatus equip(const struct mrt_nats_connecting *connecting, struct mrt_nats_link *link)
{
    if (connecting->address.servers.tls == MRT_ADDRESS_TLS_OFF) {
        if (!mrt_nats_relay_open(&link->relay, link->library))
            return NATS_NO_MEMORY;
        link->socket = link->relay.outer;
    }
    return natsConnection_SubscribeSync(&link->inbox, link->connection, connecting->inbox);
}

/* Connects to the hosts in turn; NULL: to none. */
static struct mrt_nats_link *connect_any(struct mrt_nats_connecting *connecting)
{
    size_t count = connecting->address.servers.host_count;
    for (size_t i = 0; i < count; i++) {
        size_t index = (connecting->host + i) % count;
        struct mrt_nats_link *link = make_link(connecting);
        if (!link)
            return NULL;
        natsStatus status = connect_to(connecting, index, link);
        if (status == NATS_OK) {
            atomic_fetch_add(&link->users, 1); /* until on_closed */
            status = equip(connecting, link);
            if (status == NATS_OK) {
                connecting->host = index;
                return link;
            }
        }
        note_failure(connecting, index, status);
        if (link->connection)
            mrt_nats_link_drop(link);
        else
            link_release(link);
    }
    return NULL;
}

static void connecting_release(struct mrt_nats_connecting *connecting)
{
    if (atomic_fetch_sub(&connecting->users, 1) != 1)
        return;
    if (connecting->link)
        mrt_nats_link_drop(connecting->link);
    pthread_mutex_destroy(&connecting->mutex);
    pthread_cond_destroy(&connecting->end);
    explicit_bzero(connecting->secret, sizeof connecting->secret);
    free(connecting);
}

static void *run(void *argument)
{
    struct mrt_nats_connecting *connecting = argument;
    struct mrt_nats_link *link = connect_any(connecting);
    nats_ReleaseThreadMemory();
    pthread_mutex_lock(&connecting->mutex);
    connecting->link = link;
    connecting->ended = true;
    if (!connecting->dropped)
        wake(connecting->event);
    pthread_cond_signal(&connecting->end);
    pthread_mutex_unlock(&connecting->mutex);
    connecting_release(connecting);
    atomic_fetch_sub(&connecting_count, 1);
    return NULL;
}

struct mrt_nats_connecting *mrt_nats_connect(const struct mrt_nats_address *address,
                                             const char *secret, size_t host, const char *inbox,
                                             int epoll, int event)
{
    struct mrt_nats_connecting *connecting = calloc(1, sizeof *connecting);
    pthread_condattr_t attributes;
    if (!connecting)
        return NULL;
    pthread_mutex_init(&connecting->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&connecting->end, &attributes);
    pthread_condattr_destroy(&attributes);
    atomic_store(&connecting->users, 2);
    connecting->address = *address;
    connecting->host = host;
    connecting->epoll = epoll;
    connecting->event = event;
    connecting->error = MORTISE_ENOMEM;
    snprintf(connecting->secret, sizeof connecting->secret, "%s", secret);
    snprintf(connecting->inbox, sizeof connecting->inbox, "%s*", inbox);
    bool fits = atomic_fetch_add(&connecting_count, 1) < CONNECTING_MAX;
    if (fits && mrt_thread_begin(run, connecting))
        return connecting;
    atomic_fetch_sub(&connecting_count, 1);
    atomic_store(&connecting->users, 1);
    connecting_release(connecting);
    return NULL;
}

bool mrt_nats_connecting_take(struct mrt_nats_connecting *connecting, struct mrt_nats_link **link,
                              size_t *host, int *error, char *text, size_t size)
{
    pthread_mutex_lock(&connecting->mutex);
    bool ended = connecting->ended;
    pthread_mutex_unlock(&connecting->mutex);
    if (!ended)
        return false;
    *link = connecting->link;
    connecting->link = NULL;
    *host = connecting->host;
    *error = connecting->error;
    snprintf(text, size, "%s", connecting->text);
    connecting_release(connecting);
    return true;
}

void mrt_nats_connecting_drop(struct mrt_nats_connecting *connecting, mrt_time patience)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    mrt_time end = mrt_time_add(until.tv_sec * MRT_SECOND + until.tv_nsec, patience);
    until = (struct timespec){end / MRT_SECOND, end % MRT_SECOND};
    pthread_mutex_lock(&connecting->mutex);
    connecting->dropped = true;
    while (patience > 0 && !connecting->ended &&
           pthread_cond_timedwait(&connecting->end, &connecting->mutex, &until) == 0)
        continue;
    pthread_mutex_unlock(&connecting->mutex);
    connecting_release(connecting);
}
