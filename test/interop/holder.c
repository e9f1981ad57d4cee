/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our side of the tests with the peers: URI WHO, and then commands on standard input, one
 * a line, each answered by one line. All three holders understand the same:
 *
 *   use NAME LOG    what the following commands work on           "using"
 *   acquire         the mutex, however long it takes              "held CZXID -"
 *   read, write     a side of the read/write lock of that name    "held CZXID -"
 *   try             the mutex, without waiting                    "held CZXID -" or "busy"
 *   state           what the hold is now                          "state held"
 *   on_revoke       says "asked" for each request to give it up      "registered"
 *   revoke          asks whoever holds the mutex                  "revoked"
 *   lead            acquire, as a candidate of an election        "held CZXID -"
 *   leader          what the leader of that name proclaims        "leader VALUE"
 *   release                                                       "released"
 *   turns TOTAL MS  acquire, hold for MS and release, until LOG counts TOTAL or the file
 *                   LOG.stop is there                             "done TURNS"
 *   mixture N SHIFT N turns, each third one a writer's            "done TURNS"
 *
 * LOG is the witness. While something is held a kernel lock on it is too: who cannot have
 * that at once says "OVERLAP" and ends. Under it a line "COUNT SIDE WHO CZXID NODE TIME" is
 * added: COUNT is the last line's, plus one by a writer. CZXID is the transaction that
 * created the node, by which nodes of different programs can be put in order; ours is the
 * fence without its low bits. NODE is the name where a peer shows it. Log messages of the
 * library are printed as lines "log TEXT"; an acquire that fails is "failed ERROR".
 */
#include "mortise.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_SIZE 512
#define FENCE_BITS 12
#define WAIT_MS 120000

struct holder {
    const char *who;
    mortise_client *client;
    mortise_lock *mutex, *read, *write;
    mortise_hold hold;
    mortise_election *election; /* in the place of the mutex */
    int log;
    char stop[LINE_SIZE];
};

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

static void on_log(void *argument, const char *message)
{
    (void)argument;
    say("log %s\n", message);
}

static void fatal(const char *what)
{
    say("%s\n", what);
    exit(1);
}

static void pause_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static unsigned long long czxid(mortise_hold hold)
{
    return mortise_hold_fence(hold) >> FENCE_BITS;
}

/* ------------------------------------------------------------- the witness */

/* The count that the last line of the log begins with. */
static long last_count(int log)
{
    char text[LINE_SIZE + 1];
    off_t size = lseek(log, 0, SEEK_END);
    ssize_t length = pread(log, text, LINE_SIZE, size > LINE_SIZE ? size - LINE_SIZE : 0);
    if (length <= 0)
        return 0;
    text[length - 1] = '\0'; /* the end of that line */
    const char *before = strrchr(text, '\n');
    return strtol(before ? before + 1 : text, NULL, 10);
}

static long count(struct holder *holder, bool reading, long total)
{
    struct flock witness = {.l_whence = SEEK_SET};
    struct timespec now;
    char line[LINE_SIZE];
    witness.l_type = reading ? F_RDLCK : F_WRLCK;
    if (fcntl(holder->log, F_SETLK, &witness) < 0)
        fatal("OVERLAP");
    long value = last_count(holder->log) + !reading;
    if (value > total)
        return value;
    clock_gettime(CLOCK_MONOTONIC, &now); /* which the peers' languages have too */
    int length = snprintf(line, sizeof line, "%ld %s %s %llu - %lld\n", value,
                          reading ? "read" : "write", holder->who, czxid(holder->hold),
                          (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    if (write(holder->log, line, (size_t)length) != length)
        fatal("the log cannot be written");
    return value;
}

/* ---------------------------------------------------------------- commands */

static int acquire(struct holder *holder, mortise_lock *lock, int64_t wait)
{
    int error = mortise_acquire_for(lock, wait, &holder->hold);
    if (error && error != MORTISE_EBUSY)
        say("failed %s %s\n", mortise_error_name(error), mortise_error_detail());
    return error;
}

static void acquire_and_say(struct holder *holder, mortise_lock *lock, int64_t wait)
{
    int error = acquire(holder, lock, wait);
    if (error == MORTISE_EBUSY)
        say("busy\n");
    if (error)
        return;
    count(holder, lock == holder->read, LONG_MAX);
    say("held %llu -\n", czxid(holder->hold));
}

/* The mutex of this name becomes an election of it. */
static void stand(struct holder *holder)
{
    char name[LINE_SIZE];
    const mortise_election_options options = {
        .size = sizeof options, .value = holder->who, .value_size = strlen(holder->who)};
    if (holder->election)
        return;
    snprintf(name, sizeof name, "%s", mortise_lock_name(holder->mutex));
    mortise_lock_free(holder->mutex);
    holder->mutex = NULL;
    if (mortise_election_new(holder->client, name, &options, &holder->election))
        fatal(mortise_error_detail());
}

static void lead(struct holder *holder)
{
    stand(holder);
    int error = mortise_election_campaign(holder->election, WAIT_MS);
    if (error) {
        say("failed %s %s\n", mortise_error_name(error), mortise_error_detail());
        return;
    }
    say("held %llu -\n",
        (unsigned long long)mortise_election_fence(holder->election) >> FENCE_BITS);
}

static void say_leader(struct holder *holder)
{
    mortise_leader leader;
    stand(holder);
    int error = mortise_election_leader(holder->election, &leader);
    say("leader %.*s\n", error ? 0 : (int)leader.size, (const char *)leader.value);
}

/* The witness goes first: the next one may be there before the release has returned. */
static void release(struct holder *holder)
{
    struct flock witness = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(holder->log, F_SETLK, &witness);
    if (holder->election) {
        if (mortise_election_resign(holder->election))
            fatal("it did not lead");
        return;
    }
    if (mortise_release(holder->hold))
        fatal("the release failed");
}

static void detach(struct holder *holder)
{
    char token[MORTISE_TOKEN_SIZE];
    if (mortise_detach(holder->hold, token))
        fatal(mortise_error_detail());
    say("detached %s\n", token);
}

static void adopt(struct holder *holder, const char *token)
{
    if (mortise_adopt(holder->mutex, token, &holder->hold))
        fatal(mortise_error_detail());
    count(holder, false, LONG_MAX);
    say("held %llu -\n", czxid(holder->hold));
}

static void take_turns(struct holder *holder, long total, long milliseconds)
{
    long turns = 0;
    while (!acquire(holder, holder->mutex, WAIT_MS)) {
        bool over = count(holder, false, total) > total || access(holder->stop, F_OK) == 0;
        if (!over)
            pause_ms(milliseconds);
        release(holder);
        if (over) {
            say("done %ld\n", turns);
            return;
        }
        turns++;
    }
}

static void mix(struct holder *holder, long turns, long shift)
{
    for (long i = 0; i < turns; i++) {
        bool reading = (i + shift) % 3 != 0;
        if (acquire(holder, reading ? holder->read : holder->write, WAIT_MS))
            return;
        count(holder, reading, LONG_MAX);
        pause_ms(2);
        release(holder);
    }
    say("done %ld\n", turns);
}

static void use(struct holder *holder, const char *name, const char *log)
{
    char side[LINE_SIZE];
    mortise_lock_free(holder->mutex);
    mortise_election_free(holder->election);
    holder->election = NULL;
    mortise_lock_free(holder->read);
    mortise_lock_free(holder->write);
    holder->mutex = holder->read = holder->write = NULL;
    if (holder->log >= 0)
        close(holder->log);
    holder->log = open(log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(holder->stop, sizeof holder->stop, "%s.stop", log);
    snprintf(side, sizeof side, "%s-sides", name);
    if (holder->log < 0 || mortise_mutex_new(holder->client, name, NULL, &holder->mutex) ||
        mortise_read_write_new(holder->client, side, NULL, &holder->read, &holder->write))
        fatal(mortise_error_detail());
    say("using\n");
}

static const char *state_name(mortise_hold hold)
{
    switch (mortise_hold_state(hold)) {
    case MORTISE_HELD:
        return "held";
    case MORTISE_SUSPENDED:
        return "suspended";
    case MORTISE_LOST:
        return "lost";
    default:
        return "released";
    }
}

static void on_request(void *argument, mortise_hold hold)
{
    (void)argument, (void)hold;
    say("asked\n");
}

static void obey(struct holder *holder, char *line)
{
    char *rest = line;
    const char *word = strsep(&rest, " ");
    const char *first = strsep(&rest, " "), *second = strsep(&rest, " ");
    if (strcmp(word, "use") == 0 && second) {
        use(holder, first, second);
    } else if (strcmp(word, "acquire") == 0) {
        acquire_and_say(holder, holder->mutex, WAIT_MS);
    } else if (strcmp(word, "try") == 0) {
        acquire_and_say(holder, holder->mutex, 0);
    } else if (strcmp(word, "read") == 0) {
        acquire_and_say(holder, holder->read, WAIT_MS);
    } else if (strcmp(word, "write") == 0) {
        acquire_and_say(holder, holder->write, WAIT_MS);
    } else if (strcmp(word, "state") == 0) {
        say("state %s\n", state_name(holder->hold));
    } else if (strcmp(word, "on_revoke") == 0) {
        say("registered\n");
        if (mortise_on_revoke(holder->hold, on_request, NULL))
            fatal("no hold that could be revoked");
    } else if (strcmp(word, "revoke") == 0) {
        if (mortise_revoke(holder->client, mortise_lock_name(holder->mutex), 0))
            fatal("nobody was asked");
        say("revoked\n");
    } else if (strcmp(word, "lead") == 0) {
        lead(holder);
    } else if (strcmp(word, "leader") == 0) {
        say_leader(holder);
    } else if (strcmp(word, "detach") == 0) {
        detach(holder);
    } else if (strcmp(word, "adopt") == 0 && first) {
        adopt(holder, first);
    } else if (strcmp(word, "release") == 0) {
        release(holder);
        say("released\n");
    } else if (strcmp(word, "turns") == 0 && second) {
        take_turns(holder, strtol(first, NULL, 10), strtol(second, NULL, 10));
    } else if (strcmp(word, "mixture") == 0 && second) {
        mix(holder, strtol(first, NULL, 10), strtol(second, NULL, 10));
    } else {
        fatal("no such command");
    }
}

int main(int argc, char **argv)
{
    /* Every turn is the store's: none is handed on inside the process. */
    mortise_client_options options = {.size = sizeof options, .budget_ms = -1, .log = on_log};
    struct holder holder = {.log = -1};
    char line[LINE_SIZE];
    if (argc != 3 || mortise_open(argv[1], &options, &holder.client))
        fatal(mortise_error_detail());
    holder.who = argv[2];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        obey(&holder, line);
    }
    return mortise_close(holder.client) != 0;
}
