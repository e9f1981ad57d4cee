/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights that a user needs, as one command for an administrator: the namespace's keys and
 * channels, and each command that the store or a script sends; no category, as those grow with the
 * server's versions. Rights that only some URIs need (replicas=, a database) follow from the URI.
 *
 * A name is data: it is quoted for redis-cli, and what has a meaning in a pattern stands for
 * itself. A pattern cannot hold a space, so any character may stand in that place.
 */
#include "store/redis/rights.h"

#include "base/assert.h"
#include "base/error.h"
#include "store/redis/uri.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COMMANDS                                                                        \
    " +eval +evalsha +subscribe +unsubscribe +publish +time +type +del +get +set +incr" \
    " +pexpire +hdel +hget +hgetall +hincrby +hmget +hset +zadd +zcard +zcount +zrange" \
    " +zrangebyscore +zrank +zrem +zscore +info"

#define LINE_MAX_SIZE 8192 /* a user and three patterns of the longest, each byte as four */

struct line {
    char text[LINE_MAX_SIZE];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
    va_list arguments;
    size_t room = sizeof line->text - line->length;
    va_start(arguments, format);
    int length = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    MRT_ASSERT(length >= 0 && (size_t)length < room);
    line->length += (size_t)length;
}

/* A word of redis-cli's: in quotes if it needs them. */
static void put_word(struct line *line, const char *word)
{
    bool plain = true;
    for (const char *c = word; *c; c++)
        plain = plain && (isalnum((unsigned char)*c) || strchr("~&{}/*?-_.:@+", *c));
    if (plain) {
        put(line, " %s", word);
        return;
    }
    put(line, " \"");
    for (const char *c = word; *c; c++)
        if (isgraph((unsigned char)*c) && *c != '"' && *c != '\\')
            put(line, "%c", *c);
        else
            put(line, "\\x%02x", (unsigned)(unsigned char)*c);
    put(line, "\"");
}

/* All keys or channels that begin with `text`. */
static void put_pattern(struct line *line, char mark, const char *text)
{
    char pattern[2 * MRT_REDIS_BASE_MAX + 4];
    size_t length = 0;
    pattern[length++] = mark;
    for (; *text; text++) {
        if (strchr("*?[]^\\", *text))
            pattern[length++] = '\\';
        pattern[length++] = isspace((unsigned char)*text) ? '?' : *text;
    }
    pattern[length++] = '*';
    pattern[length] = '\0';
    put_word(line, pattern);
}

static void write_rights(struct line *line, const struct mrt_redis_address *address)
{
    char claims[MRT_REDIS_BASE_MAX]; /* "NAMESPACE/", of "{NAMESPACE/}" */
    put(line, "ACL SETUSER");
    put_word(line, address->user);
    put(line, " on resetkeys resetchannels -@all");
    put_pattern(line, '~', address->base);
    snprintf(claims, sizeof claims, "%.*s", (int)strlen(address->base) - 2, address->base + 1);
    if (strcmp(claims, "/") != 0) /* else they are anywhere */
        put_pattern(line, '~', claims);
    put_pattern(line, '&', address->base);
    put(line, COMMANDS "%s%s%s\n", address->database > 0 ? " +select" : "",
        address->replicas > 0 ? " +wait" : "", address->way == MRT_REDIS_SENTINEL ? " +role" : "");
}

int mrt_redis_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    struct mrt_redis_address address;
    struct line line = {.length = 0};
    int error = mrt_redis_uri_parse(uri, &address);
    if (error)
        return error;
    if (!*address.user)
        return mrt_error(MORTISE_EURI, "the URI names the user who gets the rights: %s://USER@...",
                         uri->scheme);
    write_rights(&line, &address);
    print(argument, line.text);
    return MORTISE_OK;
}
