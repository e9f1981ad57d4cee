/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing replies: see reply.h. Threads: none; each reply belongs to one connection.
 */
#include "base/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 512
#define ERROR_MAX 512

void mrt_reply_free(struct mrt_reply *reply)
{
    free(reply->bytes);
    *reply = (struct mrt_reply){.overrun = reply->overrun};
}

void mrt_reply_sent(struct mrt_reply *reply, size_t size)
{
    reply->size -= size;
    if (reply->size == 0)
        mrt_reply_free(reply);
    else
        memmove(reply->bytes, reply->bytes + size, reply->size);
}

/* Makes room for so many more bytes. */
static bool grow(struct mrt_reply *reply, size_t size)
{
    size_t needed = reply->size + size;
    if (needed <= reply->capacity)
        return true;
    size_t capacity = reply->capacity ? 2 * reply->capacity : CAPACITY_MIN;
    while (capacity < needed)
        capacity *= 2;
    char *bytes = needed > MRT_REPLY_SIZE_MAX ? NULL : realloc(reply->bytes, capacity);
    if (!bytes)
        return false;
    reply->bytes = bytes;
    reply->capacity = capacity;
    return true;
}

void mrt_reply_bytes(struct mrt_reply *reply, const char *bytes, size_t size)
{
    reply->overrun = reply->overrun || !grow(reply, size);
    if (reply->overrun)
        return;
    memcpy(reply->bytes + reply->size, bytes, size);
    reply->size += size;
}

void mrt_reply_simple(struct mrt_reply *reply, const char *text)
{
    char line[64];
    int size = snprintf(line, sizeof line, "+%s\r\n", text);
    mrt_reply_bytes(reply, line, (size_t)size);
}

void mrt_reply_error(struct mrt_reply *reply, const char *format, ...)
{
    char line[ERROR_MAX] = "-";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + 1, sizeof line - 1, format, arguments);
    va_end(arguments);
    size_t size = strlen(line);
    for (size_t i = 1; i < size; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    mrt_reply_bytes(reply, line, size);
    mrt_reply_bytes(reply, "\r\n", 2);
}

static void write_number(struct mrt_reply *reply, char kind, int64_t number)
{
    char line[32];
    char *at = line + sizeof line;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *--at = '\n';
    *--at = '\r';
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    *--at = kind;
    mrt_reply_bytes(reply, at, (size_t)(line + sizeof line - at));
}

void mrt_reply_integer(struct mrt_reply *reply, int64_t number)
{
    write_number(reply, ':', number);
}

void mrt_reply_array(struct mrt_reply *reply, size_t count)
{
    write_number(reply, '*', (int64_t)count);
}

void mrt_reply_bulk(struct mrt_reply *reply, const char *bytes, size_t size)
{
    write_number(reply, '$', (int64_t)size);
    mrt_reply_bytes(reply, bytes, size);
    mrt_reply_bytes(reply, "\r\n", 2);
}
