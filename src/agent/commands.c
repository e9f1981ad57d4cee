/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of the agent: a table of verbs, and what each makes of its words.
 *
 * Beside the locks there is what client libraries of Redis send when they connect: HELLO, PING,
 * ECHO, SELECT 0, CLIENT, COMMAND, INFO, CONFIG GET, RESET. An unknown command is refused in
 * Redis's own words, because libraries compare them.
 *
 * Threads: the agent's.
 */
#include "agent/lock.h"

#include "core/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MAX_MS INT64_C(3155760000000) /* 100 years */
#define TTL_MAX_MS INT64_C(86400000)
#define PERMITS_MAX UINT32_MAX

/* A command under way. */
struct call {
    struct mrt_peer *peer;
    const struct mrt_resp_word *words;
    size_t count;
    mrt_time received;
    struct mrt_reply *reply;
};

struct verb {
    const char *name;
    void (*run)(const struct call *call);
    size_t least, most; /* words, the verb included */
    bool overtakes;     /* it takes effect before the LOCK that it stands behind */
};

#define SHOWN_SIZE 65

/* The beginning of a word as it is shown in errors: nobody knows its encoding. */
static const char *show(const struct mrt_resp_word *word, char shown[SHOWN_SIZE])
{
    size_t size = word->size < SHOWN_SIZE ? word->size : SHOWN_SIZE - 1;
    for (size_t i = 0; i < size; i++)
        shown[i] = word->text[i] >= ' ' && word->text[i] < 0x7f ? word->text[i] : '?';
    shown[size] = '\0';
    return shown;
}

/* ---------------------------------------------------------------------- LOCK */

/* PERMITS n OF m, which begins at the word `i`. */
static bool take_permits(const struct call *call, size_t i, struct mrt_lock_wish *wish)
{
    int64_t weight, permits;
    if (i + 3 >= call->count || !mrt_resp_is(&call->words[i + 2], "OF") ||
        !mrt_resp_number(&call->words[i + 3], 1, PERMITS_MAX, &permits) ||
        !mrt_resp_number(&call->words[i + 1], 1, permits, &weight)) {
        mrt_reply_error(call->reply, "BADVALUE PERMITS wants two numbers, as PERMITS 1 OF 3");
        return false;
    }
    wish->recipe = mrt_semaphore((uint64_t)permits);
    wish->weight = (uint64_t)weight;
    return true;
}

static bool take_longest(const struct call *call, size_t i, struct mrt_lock_wish *wish)
{
    int64_t ms;
    if (i + 1 >= call->count || !mrt_resp_number(&call->words[i + 1], 1, TTL_MAX_MS, &ms)) {
        mrt_reply_error(call->reply,
                        "BADVALUE TTL wants milliseconds from 1 to 86400000 (one day)");
        return false;
    }
    wish->longest = mrt_time_from_ms(ms);
    return true;
}

/* LABEL text: what LIST shows. */
static bool take_label(const struct call *call, size_t i, struct mrt_lock_wish *wish)
{
    if (i + 1 < call->count)
        wish->label = call->words[i + 1];
    if (wish->label.size > 0 && wish->label.size < MRT_LABEL_SIZE &&
        mrt_text_is_clean(wish->label.text, wish->label.size))
        return true;
    mrt_reply_error(call->reply, "BADVALUE LABEL wants a text of at most %d bytes",
                    MRT_LABEL_SIZE - 1);
    return false;
}

static bool take_bind(const struct call *call, size_t i, struct mrt_lock_wish *wish)
{
    wish->binds = i + 1 < call->count && mrt_resp_is(&call->words[i + 1], "PROCESS");
    if (!wish->binds)
        mrt_reply_error(call->reply, "BADVALUE BIND wants PROCESS behind it");
    return wish->binds;
}

static bool take_side(const struct call *call, size_t i, struct mrt_lock_wish *wish)
{
    wish->recipe = mrt_read_write;
    wish->weight = mrt_resp_is(&call->words[i], "READ") ? MRT_READER : MRT_WRITER;
    return true;
}

struct option {
    const char *name;
    bool (*take)(const struct call *call, size_t i, struct mrt_lock_wish *wish);
    size_t words;
    bool is_kind;
};

/* The options of a LOCK, from the word `i` on. */
static bool take_options(const struct call *call, size_t i, bool has_kind,
                         struct mrt_lock_wish *wish)
{
    static const struct option options[] = {
        {"READ", take_side, 1, true},       {"WRITE", take_side, 1, true},
        {"PERMITS", take_permits, 4, true}, {"TTL", take_longest, 2, false},
        {"LABEL", take_label, 2, false},    {"BIND", take_bind, 2, false},
    };
    while (i < call->count) {
        const struct mrt_resp_word *word = &call->words[i];
        size_t which = 0, count = sizeof options / sizeof options[0];
        while (which < count && !mrt_resp_is(word, options[which].name))
            which++;
        if (which == count) {
            char shown[SHOWN_SIZE];
            mrt_reply_error(call->reply,
                            "BADVALUE \"%s\" is no option here: READ, WRITE, PERMITS, TTL, LABEL, "
                            "BIND",
                            show(word, shown));
            return false;
        }
        if (options[which].is_kind && has_kind) {
            mrt_reply_error(call->reply, "BADVALUE READ, WRITE and PERMITS exclude each other");
            return false;
        }
        if (!options[which].take(call, i, wish))
            return false;
        has_kind |= options[which].is_kind;
        i += options[which].words;
    }
    return true;
}

/* Takes what the timeout and the options from the word `i` on say. */
static void take_lock(const struct call *call, size_t i, bool has_kind, struct mrt_lock_wish *wish)
{
    int64_t ms;
    wish->deadline = MRT_TIME_NEVER;
    if (!mrt_resp_number(&call->words[2], -1, TIMEOUT_MAX_MS, &ms)) {
        mrt_reply_error(call->reply,
                        "BADVALUE a timeout is milliseconds: -1 waits for ever, 0 does not wait");
        return;
    }
    if (!take_options(call, i, has_kind, wish))
        return;
    wish->try_only = ms == 0;
    if (ms > 0)
        wish->deadline = mrt_time_add(call->received, mrt_time_from_ms(ms));
    mrt_lock_take(call->peer, &call->words[1], wish, call->reply);
}

/* LOCK name timeout [READ | WRITE | PERMITS n OF m] [TTL ms] [LABEL text] [BIND PROCESS] */
static void run_lock(const struct call *call)
{
    struct mrt_lock_wish wish = {.recipe = mrt_mutex, .weight = 1};
    take_lock(call, 3, false, &wish);
}

/* CAMPAIGN name timeout value [TTL ms] [LABEL text] [BIND PROCESS] */
static void run_campaign(const struct call *call)
{
    struct mrt_lock_wish wish = {.recipe = mrt_election, .weight = 1, .value = call->words[3]};
    if (!call->peer->agent->driver.ops->values)
        mrt_reply_error(call->reply, "STORE this store keeps no values, as elections need");
    else if (wish.value.size > MORTISE_VALUE_MAX)
        mrt_reply_error(call->reply, "BADVALUE a value has at most %d bytes", MORTISE_VALUE_MAX);
    else
        take_lock(call, 4, true, &wish);
}

/* LEADER name */
static void run_leader(const struct call *call)
{
    struct mrt_command wanted = {.type = MRT_OBSERVE, .once = true};
    mrt_ask(call->peer, &wanted, &call->words[1], call->reply);
}

/* GET name */
static void run_get(const struct call *call)
{
    struct mrt_command wanted = {.type = MRT_CELL_GET};
    mrt_ask(call->peer, &wanted, &call->words[1], call->reply);
}

/* CAS name version [value [FENCE fence]] */
static void run_cas(const struct call *call)
{
    int64_t version, fence = 0;
    struct mrt_command wanted = {.type = MRT_CELL_SET};
    if (!mrt_resp_number(&call->words[2], 0, INT64_MAX, &version)) {
        mrt_reply_error(call->reply, "BADVALUE a version is the number that GET has replied");
        return;
    }
    bool has_fence = call->count == 6 && mrt_resp_is(&call->words[4], "FENCE") &&
                     mrt_resp_number(&call->words[5], 1, INT64_MAX, &fence);
    if (call->count > 4 && !has_fence) {
        mrt_reply_error(call->reply, "BADVALUE FENCE wants the number that LOCK has replied");
        return;
    }
    wanted.version = (uint64_t)version;
    wanted.fence = (uint64_t)fence;
    if (call->count > 3) {
        wanted.value = call->words[3].text;
        wanted.value_size = call->words[3].size;
    }
    if (wanted.value_size > MORTISE_VALUE_MAX)
        mrt_reply_error(call->reply, "BADVALUE a value has at most %d bytes", MORTISE_VALUE_MAX);
    else
        mrt_ask(call->peer, &wanted, &call->words[1], call->reply);
}

/* LIST [prefix] */
static void run_list(const struct call *call)
{
    const struct mrt_resp_word all = {"", 0};
    mrt_list(call->peer, call->count > 1 ? &call->words[1] : &all, call->reply);
}

/* EXTEND name fence ms */
static void run_extend(const struct call *call)
{
    int64_t fence, ms;
    if (!mrt_resp_number(&call->words[2], 0, INT64_MAX, &fence))
        mrt_reply_error(call->reply, "BADVALUE the fence is the number that LOCK has replied");
    else if (!mrt_resp_number(&call->words[3], 1, TTL_MAX_MS, &ms))
        mrt_reply_error(call->reply,
                        "BADVALUE EXTEND wants milliseconds from 1 to 86400000 (one day)");
    else
        mrt_lock_extend(call->peer, &call->words[1], (uint64_t)fence, mrt_time_from_ms(ms),
                        call->reply);
}

/* UNLOCK name fence */
static void run_unlock(const struct call *call)
{
    int64_t fence;
    if (!mrt_resp_number(&call->words[2], 0, INT64_MAX, &fence))
        mrt_reply_error(call->reply, "BADVALUE the fence is the number that LOCK has replied");
    else
        mrt_lock_release(call->peer, &call->words[1], (uint64_t)fence, call->reply);
}

/* HELD name */
static void run_held(const struct call *call)
{
    mrt_lock_tell(call->peer, &call->words[1], call->reply);
}

/* CANCEL: the LOCK that waits, if one does */
static void run_cancel(const struct call *call)
{
    bool waits = call->peer->waiting && mrt_lock_cancel(call->peer);
    mrt_reply_integer(call->reply, waits);
}

/* ------------------------------------------------- what libraries send at connect */

static void reply_ok(const struct call *call)
{
    mrt_reply_simple(call->reply, "OK");
}

static void run_ping(const struct call *call)
{
    if (call->count > 1)
        mrt_reply_bulk(call->reply, call->words[1].text, call->words[1].size);
    else
        mrt_reply_simple(call->reply, "PONG");
}

static void run_hello(const struct call *call)
{
    static const char *const facts[] = {"server", "mortise", "version", MORTISE_VERSION,
                                        "mode",   "agent",   "role",    "master"};
    int64_t version = 2;
    if (call->count > 1 && (!mrt_resp_number(&call->words[1], 2, 2, &version))) {
        mrt_reply_error(call->reply, "NOPROTO unsupported protocol version");
        return;
    }
    for (size_t i = 2; i < call->count; i++)
        if (mrt_resp_is(&call->words[i], "AUTH")) {
            mrt_reply_error(call->reply,
                            "NOPERM the agent knows its clients by their users: no password");
            return;
        }
    mrt_reply_array(call->reply, sizeof facts / sizeof facts[0] + 2);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        mrt_reply_bulk(call->reply, facts[i], strlen(facts[i]));
    mrt_reply_bulk(call->reply, "proto", 5);
    mrt_reply_integer(call->reply, version);
}

static void run_auth(const struct call *call)
{
    mrt_reply_error(call->reply, "NOPERM the agent knows its clients by their users: no password");
}

static void run_select(const struct call *call)
{
    int64_t number;
    if (mrt_resp_number(&call->words[1], 0, 0, &number))
        reply_ok(call);
    else
        mrt_reply_error(call->reply, "ERR DB index is out of range");
}

static void run_client(const struct call *call)
{
    if (mrt_resp_is(&call->words[1], "ID"))
        mrt_reply_integer(call->reply, call->peer->fd);
    else
        reply_ok(call);
}

static void reply_nothing(const struct call *call)
{
    mrt_reply_array(call->reply, 0);
}

/* "NAME_count:3 NAME_us:70 NAME_us_below:32=2,64=1", a line each. */
static size_t print_times(char *text, size_t size, const char *name, const struct mrt_times *times)
{
    int length =
        snprintf(text, size, "%s_count:%" PRIu64 "\r\n%s_us:%" PRIu64 "\r\n%s_us_below:", name,
                 times->count, name, times->sum_us, name);
    size_t at = length < 0 ? 0 : strlen(text);
    const char *comma = "";
    for (size_t i = 0; i < MRT_TIMES; i++)
        if (times->counts[i] > 0) {
            length = snprintf(text + at, size - at, "%s%" PRIu64 "=%" PRIu64, comma,
                              UINT64_C(1) << i, times->counts[i]);
            at += length < 0 ? 0 : strlen(text + at);
            comma = ",";
        }
    length = snprintf(text + at, size - at, "\r\n");
    return at + (length < 0 ? 0 : strlen(text + at));
}

static void run_info(const struct call *call)
{
    const struct mrt_agent *agent = call->peer->agent;
    char text[4096];
    struct mrt_agent_counts counts;
    mrt_count(agent, &counts);
    int size = snprintf(text, sizeof text,
                        "# Server\r\nredis_version:7.0.0\r\nmortise_version:%s\r\nstore:%s\r\n"
                        "loading:0\r\nrole:master\r\n"
                        "# Clients\r\nconnected_clients:%zu\r\n"
                        "sessions:%zu\r\ntickets:%zu\r\nholders:%zu\r\n"
                        "# Stats\r\nconnections:%" PRIu64 "\r\nrefused:%" PRIu64
                        "\r\nended:%" PRIu64 "\r\ncommands:%" PRIu64 "\r\ngrants:%" PRIu64 "\r\n",
                        MORTISE_VERSION, agent->driver.ops->address(agent->driver.store),
                        agent->peer_count, counts.sessions, counts.tickets, counts.holders,
                        agent->counters.connections, agent->counters.refused, agent->counters.ended,
                        agent->counters.commands, agent->counters.grants);
    size_t at = size < 0 ? 0 : strlen(text);
    at += print_times(text + at, sizeof text - at, "wait", &agent->waits);
    at += print_times(text + at, sizeof text - at, "hold", &agent->holds);
    mrt_reply_bulk(call->reply, text, at);
}

static void run_quit(const struct call *call)
{
    if (call->peer->waiting)
        mrt_lock_cancel(call->peer);
    reply_ok(call);
    call->peer->quits = true;
}

/* MORTISE 1 [label]: from now on the connection speaks the port of stores (desk.h) */
static void run_mortise(const struct call *call)
{
    const struct mrt_resp_word none = {"", 0};
    int64_t version;
    if (!mrt_resp_number(&call->words[1], 1, 1, &version))
        mrt_reply_error(call->reply, "NOPROTO this agent speaks MORTISE 1");
    else if (HASH_COUNT(call->peer->locks) > 0 || call->reply != &call->peer->output)
        mrt_reply_error(call->reply, "BADVALUE MORTISE comes before all locks of a connection");
    else if (!mrt_desk_greet(call->peer, call->count > 2 ? &call->words[2] : &none))
        mrt_reply_error(call->reply, "FULL the agent has no memory for another client");
}

static const struct verb verbs[] = {
    {"LOCK", run_lock, 3, MRT_RESP_WORDS_MAX, false},
    {"UNLOCK", run_unlock, 3, 3, true},
    {"EXTEND", run_extend, 4, 4, true},
    {"CAMPAIGN", run_campaign, 4, MRT_RESP_WORDS_MAX, false},
    {"RESIGN", run_unlock, 3, 3, true},
    {"LEADER", run_leader, 2, 2, false},
    {"GET", run_get, 2, 2, false},
    {"CAS", run_cas, 3, 6, false},
    {"LIST", run_list, 1, 2, false},
    {"HELD", run_held, 2, 2, true},
    {"CANCEL", run_cancel, 1, 1, true},
    {"PING", run_ping, 1, 2, false},
    {"ECHO", run_ping, 2, 2, false},
    {"MORTISE", run_mortise, 2, 3, false},
    {"HELLO", run_hello, 1, MRT_RESP_WORDS_MAX, false},
    {"AUTH", run_auth, 2, 3, false},
    {"SELECT", run_select, 2, 2, false},
    {"CLIENT", run_client, 2, MRT_RESP_WORDS_MAX, false},
    {"COMMAND", reply_nothing, 1, MRT_RESP_WORDS_MAX, false},
    {"CONFIG", reply_nothing, 2, MRT_RESP_WORDS_MAX, false},
    {"INFO", run_info, 1, MRT_RESP_WORDS_MAX, false},
    {"QUIT", run_quit, 1, 1, true},
};

/* NULL: there is none. */
static const struct verb *find_verb(const struct mrt_resp_word *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (mrt_resp_is(word, verbs[i].name))
            return &verbs[i];
    return NULL;
}

bool mrt_command_overtakes(const struct mrt_peer *peer, const struct mrt_resp_command *command)
{
    const struct verb *verb = find_verb(&command->words[0]);
    if (!verb || !verb->overtakes)
        return false;
    return command->count < 2 || !peer->waiting ||
           !mrt_lock_has_name(peer->waiting, &command->words[1]);
}

void mrt_command_run(struct mrt_peer *peer, const struct mrt_resp_command *command,
                     mrt_time received, struct mrt_reply *reply)
{
    const struct mrt_resp_word *name = &command->words[0];
    const struct verb *verb = find_verb(name);
    struct call call = {peer, command->words, command->count, received, reply};
    char shown[SHOWN_SIZE];
    peer->agent->counters.commands++;
    if (!verb)
        mrt_reply_error(reply, "ERR unknown command '%s'", show(name, shown));
    else if (command->count < verb->least || command->count > verb->most)
        mrt_reply_error(reply, "ERR wrong number of arguments for '%s' command", verb->name);
    else
        verb->run(&call);
}
