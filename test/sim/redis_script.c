/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts in a fake Redis server: the texts that ship, run by the Lua that Redis has. One
 * interpreter serves all servers and all runs of the process, since no script keeps anything
 * between two calls; that is so as Redis forbids it, and is checked here.
 *
 * redis_do does a script's calls, and its reply is turned into Lua's values as Redis does it; so is
 * the script's result, the other way round.
 */
#include "redis_server.h"

#include "store/redis/script.h"
#include "store/redis/sign.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 32

#define SCRIPT_COUNT (MRT_REDIS_CLAIM_DELETE + 1)
_Static_assert(SCRIPT_COUNT <= REDIS_SCRIPTS, "a server knows so many scripts");

static lua_State *lua;
static int functions[SCRIPT_COUNT];
static struct redis_server *running;

/* The keys sent with the script that runs; none: it is the simulator's own. */
static struct {
    int script;
    const struct slice *keys, *arguments;
    size_t key_count, argument_count;
} sent;

/* ------------------------------------------------------------------ replies as values */

/* Pushes the value of a reply; returns where the next reply begins. */
static const char *push(lua_State *state, const char *at)
{
    const char *end = strchr(at, '\r');
    long long number = strtoll(at + 1, NULL, 10);
    switch (*at) {
    case ':':
        lua_pushnumber(state, (lua_Number)number);
        return end + 2;
    case '$':
        if (number < 0) {
            lua_pushboolean(state, 0);
            return end + 2;
        }
        lua_pushlstring(state, end + 2, (size_t)number);
        return end + 2 + number + 2;
    case '*':
        lua_createtable(state, (int)number, 0);
        at = end + 2;
        for (int i = 1; i <= number; i++) {
            at = push(state, at);
            lua_rawseti(state, -2, i);
        }
        return at;
    default: /* a line */
        lua_createtable(state, 0, 1);
        lua_pushlstring(state, at + 1, (size_t)(end - at) - 1);
        lua_setfield(state, -2, *at == '-' ? "err" : "ok");
        return end + 2;
    }
}

static bool is_among(struct slice text, const struct slice *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(text, texts[i]))
            return true;
    return false;
}

/* Whether a script may use this key: it is declared; or it is another session's or queue's, of a
   name that the client did not send; or a claim's own key, which may be in another slot of a
   cluster. */
static bool may_use(struct slice key)
{
    size_t base = sent.keys[0].size - strlen("sessions");
    if (is_among(key, sent.keys, sent.key_count))
        return true;
    if (sent.script >= MRT_REDIS_LIST)
        return is_among(key, sent.arguments, sent.argument_count);
    struct slice kind = {key.bytes + base, 2}, name = {key.bytes + base + 2, key.size - base - 2};
    return key.size > base + 2 && memcmp(key.bytes, sent.keys[0].bytes, base) == 0 &&
           (slice_is(kind, "s:") || slice_is(kind, "q:")) &&
           !is_among(name, sent.arguments, sent.argument_count);
}

static void check_keys(const struct slice *words, int count)
{
    if (sent.key_count == 0 || slice_is(words[0], "TIME") || slice_is(words[0], "PUBLISH") ||
        slice_is(words[0], "publish"))
        return;
    int last = slice_is(words[0], "DEL") ? count - 1 : 1;
    for (int i = 1; i <= last; i++)
        if (!may_use(words[i]))
            check_fail(running->redis->world, -1, NO_QUEUE, "script %d does not declare %.*s",
                       sent.script, (int)words[i].size, words[i].bytes);
}

/* redis.call */
static int call_redis(lua_State *state)
{
    static struct reply reply;
    struct slice words[WORDS_MAX];
    char numbers[WORDS_MAX][32];
    int count = lua_gettop(state);
    if (count > WORDS_MAX)
        return luaL_error(state, "too many arguments");
    for (int i = 0; i < count; i++)
        if (lua_type(state, i + 1) == LUA_TNUMBER) {
            snprintf(numbers[i], sizeof numbers[i], "%.17g", lua_tonumber(state, i + 1));
            words[i] = slice_of(numbers[i]);
        } else if (lua_type(state, i + 1) == LUA_TSTRING) {
            words[i].bytes = lua_tolstring(state, i + 1, &words[i].size);
        } else {
            return luaL_error(state, "an argument is neither text nor number");
        }
    check_keys(words, count);
    reply.used = 0;
    redis_do(&(struct redis_call){
        .server = running, .words = words, .count = (size_t)count, .reply = &reply});
    reply_bytes(&reply, "", 1);
    push(state, reply.bytes);
    return 1;
}

/* ------------------------------------------------------------------ values as replies */

static void say_value(lua_State *state, struct reply *reply);

static bool say_line(lua_State *state, struct reply *reply, const char *field, char mark)
{
    lua_getfield(state, -1, field);
    bool is = lua_type(state, -1) == LUA_TSTRING;
    if (is)
        reply_line(reply, mark, lua_tostring(state, -1));
    lua_pop(state, 1);
    return is;
}

/* Up to the first that is missing. */
static void say_table(lua_State *state, struct reply *reply)
{
    struct reply elements = {0};
    int count = 0;
    if (say_line(state, reply, "ok", '+') || say_line(state, reply, "err", '-'))
        return;
    for (;; count++) {
        lua_rawgeti(state, -1, count + 1);
        if (lua_isnil(state, -1))
            break;
        say_value(state, &elements);
    }
    lua_pop(state, 1);
    reply_mark(reply, '*', count);
    reply_bytes(reply, elements.bytes, elements.used);
    free(elements.bytes);
}

/* Takes the uppermost value. */
static void say_value(lua_State *state, struct reply *reply)
{
    struct slice text;
    switch (lua_type(state, -1)) {
    case LUA_TNUMBER: /* whatever stands behind the point is lost */
        reply_mark(reply, ':', (int64_t)lua_tonumber(state, -1));
        break;
    case LUA_TSTRING:
        text.bytes = lua_tolstring(state, -1, &text.size);
        reply_text(reply, text);
        break;
    case LUA_TTABLE:
        say_table(state, reply);
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(state, -1)) {
            reply_mark(reply, ':', 1);
            break;
        } /* fallthrough */
    default:
        reply_nothing(reply);
    }
    lua_pop(state, 1);
}

/* ------------------------------------------------------------------ running */

#ifdef MRT_DEFECTS
#include "texts.h"

/* Mutants of scripts: what stands there, and what in its place. */
static const struct {
    int mutant;
    const char *right, *wrong;
} mistakes[] = {
    {SIM_TEXT_REDIS_LUA_OLD_EPOCH, "if epoch < seen then return {'STALE'} end", ""},
    {SIM_TEXT_REDIS_LUA_NO_PUSH, "for _, one in ipairs(fit) do", "for _, one in ipairs({}) do"},
    {SIM_TEXT_REDIS_LUA_NO_PUSH, "call('PUBLISH', its[2],", "tostring("},
    {SIM_TEXT_REDIS_LUA_DEAD_STAY, "'-inf', now, 'LIMIT', 0, 16", "'-inf', 0, 'LIMIT', 0, 16"},
    {SIM_TEXT_REDIS_LUA_NUMBER_FORGOTTEN, "return math.max(newest, least)", "return newest"},
    {SIM_TEXT_REDIS_LUA_NUMBER_FORGOTTEN, "math.max(tonumber(found[2] or 0) + 1, least)",
     "tonumber(found[2] or 0) + 1"},
    {SIM_TEXT_REDIS_LUA_APPEND_TWICE, "if own[3] then\n  local known",
     "if false then\n  local known"},
    {SIM_TEXT_REDIS_LUA_VALUE_KEPT,
     "if valued and call('HDEL', base .. 'values', ticket_in(entry)) == 1 then", "if valued then"},
    {SIM_TEXT_REDIS_LUA_CHANGE_UNTOLD, "call('PUBLISH', base .. 'e:' .. queue, queue)", ""},
    {SIM_TEXT_REDIS_LUA_FIRST_LEAVES, "string.sub(front[1] or '', 1, 32) ~= ARGV[3]",
     "not front[1]"},
    {SIM_TEXT_REDIS_LUA_LINGER_UNTOLD, "if mark_in(first[2]) == '+' then", "if false then"},
    {SIM_TEXT_REDIS_LUA_ALL_MUTEXES, "and ARGV[6] == '1' and ARGV[8]", "and ARGV[8]"},
};

static bool mistaken[sizeof mistakes / sizeof mistakes[0]]; /* by it: a script said that */

static bool mistake(char *text)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        char *at = mistakes[i].mutant == mrt_mutant_on ? strstr(text, mistakes[i].right) : NULL;
        if (!at)
            continue;
        size_t right = strlen(mistakes[i].right), wrong = strlen(mistakes[i].wrong);
        memset(at, ' ', right);
        if (wrong > right)
            abort();
        memcpy(at, mistakes[i].wrong, wrong);
        mistaken[i] = true;
        return true;
    }
    return false;
}
#endif

/* A copy, in the build that has them with the seeded defect. */
static int load(const struct mrt_redis_script *script)
{
    char *text = slice_copy((struct slice){script->text, script->length});
#ifdef MRT_DEFECTS
    while (mistake(text))
        ;
#endif
    int failed = luaL_loadbuffer(lua, text, script->length, "script");
    free(text);
    return failed;
}

static int refuse_global(lua_State *state)
{
    return luaL_error(state, "a script makes the global %s", lua_tostring(state, 2));
}

static int sha1hex(lua_State *state)
{
    size_t length;
    char text[MRT_REDIS_SHA1_SIZE];
    const char *bytes = luaL_checklstring(state, 1, &length);
    mrt_redis_sha1(bytes, length, text);
    lua_pushstring(state, text);
    return 1;
}

static void begin(void)
{
    lua = luaL_newstate();
    if (!lua)
        abort();
    luaL_openlibs(lua);
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, call_redis);
    lua_setfield(lua, -2, "call");
    lua_pushcfunction(lua, sha1hex);
    lua_setfield(lua, -2, "sha1hex");
    lua_setglobal(lua, "redis");
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        if (load(&mrt_redis_scripts[i]))
            abort();
        functions[i] = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
#ifdef MRT_DEFECTS
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        if (mistakes[i].mutant == mrt_mutant_on && !mistaken[i])
            _exit(0); /* no script says that any more: nothing is found */
#endif
    lua_pushboolean(lua, 0);
    lua_setglobal(lua, "KEYS");
    lua_pushboolean(lua, 0);
    lua_setglobal(lua, "ARGV");
    lua_createtable(lua, 0, 1);
    lua_pushcfunction(lua, refuse_global);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

static void set_list(const char *name, const struct slice *words, size_t count)
{
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, words[i].bytes, words[i].size);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_setglobal(lua, name);
}

static void run(struct redis_server *server, int script, const struct slice *keys, size_t key_count,
                const struct slice *arguments, size_t argument_count, struct reply *reply)
{
    if (!lua)
        begin();
    set_list("KEYS", keys, key_count);
    set_list("ARGV", arguments, argument_count);
    running = server;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, functions[script]);
    int failed = lua_pcall(lua, 0, 1, 0);
    running = NULL;
    if (failed)
        check_fail(server->redis->world, -1, NO_QUEUE, "script %d fails: %s", script,
                   lua_tostring(lua, -1));
    say_value(lua, reply);
}

void redis_run(struct redis_server *server, int script, const char *key,
               const char *const *arguments, size_t count, struct reply *reply)
{
    struct slice words[WORDS_MAX], keys[] = {slice_of(key)};
    for (size_t i = 0; i < count; i++)
        words[i] = slice_of(arguments[i]);
    run(server, script, keys, 1, words, count, reply);
}

/* EVAL and EVALSHA; -1: it is not known here. */
static int script_of(const struct redis_call *call)
{
    bool whole = call->words[0].size == 4;
    for (int i = 0; i < SCRIPT_COUNT; i++) {
        const struct mrt_redis_script *script = &mrt_redis_scripts[i];
        if (whole && slice_equal(call->words[1], (struct slice){script->text, script->length}))
            call->server->knows[i] = true;
        else if (whole || !slice_is(call->words[1], script->digest) || !call->server->knows[i])
            continue;
        return i;
    }
    return -1;
}

void redis_eval(const struct redis_call *call)
{
    int script = script_of(call);
    size_t keys = (size_t)slice_number(call->words[2]);
    const struct slice *arguments = call->words + 3 + keys;
    size_t count = call->count - 3 - keys;
    if (script < 0) {
        reply_line(call->reply, '-', "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    if (script == MRT_REDIS_SESSION && slice_is(arguments[2], "start"))
        redis_note_session(call->server, arguments[0], call->connection->peer);
    sent.script = script;
    sent.keys = call->words + 3;
    sent.key_count = keys;
    sent.arguments = arguments;
    sent.argument_count = count;
    run(call->server, script, call->words + 3, keys, arguments, count, call->reply);
    sent.key_count = 0;
}
