/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that the subcommands share; cli.h says what each function promises.
 *
 * An error line is composed first and written by one call, so lines of
 * several processes on one terminal or log do not mix.
 */
#include "cli/frame/cli.h"

#include "base/name.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static struct rlimit core_limit;

void mrt_cli_allow_no_core(void)
{
    if (getrlimit(RLIMIT_CORE, &core_limit) < 0 || core_limit.rlim_cur == 0)
        return;
    /* At 1 byte no program that takes cores by a pipe is started either, see core(5). */
    const struct rlimit none = {.rlim_cur = 1, .rlim_max = core_limit.rlim_max};
    setrlimit(RLIMIT_CORE, &none);
}

void mrt_cli_restore_core(void)
{
    setrlimit(RLIMIT_CORE, &core_limit);
}

/* Bytes of the clean UTF-8 character at `text`; 0 if it begins with none. */
static size_t clean_length(const char *text)
{
    size_t left = strnlen(text, 4);
    for (size_t length = 1; length <= left; length++)
        if (mrt_text_is_clean(text, length))
            return length;
    return 0;
}

void mrt_cli_escape(const char *text, char *buffer, size_t size)
{
    size_t used = 0;
    while (*text) {
        char piece[5];
        size_t taken = clean_length(text);
        size_t length = taken;
        if (taken > 0) {
            memcpy(piece, text, taken);
        } else {
            length = (size_t)snprintf(piece, sizeof(piece), "\\x%02x", (unsigned char)*text);
            taken = 1;
        }
        if (used + length + 1 > size)
            break;
        memcpy(buffer + used, piece, length);
        used += length;
        text += taken;
    }
    buffer[used] = '\0';
}

size_t mrt_cli_columns(const char *text)
{
    size_t columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

/* The beginning of the character behind so many others. */
static char *skip(char *text, size_t characters)
{
    for (; *text; text++)
        if (((unsigned char)*text & 0xc0) != 0x80 && characters-- == 0)
            break;
    return text;
}

void mrt_cli_fit(const char *text, size_t columns, char *buffer, size_t size)
{
    static const char cut[] = "…";
    mrt_cli_escape(text, buffer, size - 1); /* it may stand for two bytes, and has three */
    size_t all = mrt_cli_columns(buffer), head = columns / 3;
    if (all <= columns)
        return;
    char *middle = skip(buffer, head), *tail = skip(buffer, all - (columns - 1 - head));
    memmove(middle + sizeof cut - 1, tail, strlen(tail) + 1);
    memcpy(middle, cut, sizeof cut - 1);
}

__attribute__((format(printf, 1, 0))) static void write_line(const char *format, va_list arguments)
{
    char raw[LINE_MAX_BYTES], line[LINE_MAX_BYTES * 2];
    static const char prefix[] = "mortise: ";
    size_t start = sizeof(prefix) - 1;
    vsnprintf(raw, sizeof(raw), format, arguments);
    memcpy(line, prefix, start);
    mrt_cli_escape(raw, line + start, sizeof(line) - start - 1);
    size_t length = strlen(line);
    line[length++] = '\n';
    /* Standard error is gone, and there is no other place for a message. */
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written;
}

void mrt_cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

int mrt_cli_fail(int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
    return exit_code;
}

int mrt_cli_exit_code(int error)
{
    switch (mortise_error_kind_of(error)) {
    case MORTISE_KIND_NONE:
        return MRT_EXIT_OK;
    case MORTISE_KIND_BUSY:
    case MORTISE_KIND_TIMEOUT:
        return MRT_EXIT_BUSY;
    case MORTISE_KIND_RETRY:
    case MORTISE_KIND_UNKNOWN:
        return MRT_EXIT_UNREACHABLE;
    case MORTISE_KIND_LOST:
        return MRT_EXIT_LOST;
    case MORTISE_KIND_DENIED:
        return MRT_EXIT_DENIED;
    case MORTISE_KIND_USAGE:
        return MRT_EXIT_USAGE;
    case MORTISE_KIND_CONFIG:
        return MRT_EXIT_CONFIG;
    case MORTISE_KIND_INTERNAL:
        break;
    }
    return MRT_EXIT_INTERNAL;
}

int mrt_cli_fail_error(const char *subject, int error)
{
    char detail[512];
    snprintf(detail, sizeof(detail), "%s", mortise_error_detail());
    bool both = detail[0] && error == MORTISE_EDISCONNECTED; /* the detail is the reason alone */
    return mrt_cli_fail(mrt_cli_exit_code(error), "%s%s%s%s%s", subject ? subject : "",
                        subject ? ": " : "", both || !detail[0] ? mortise_error_text(error) : "",
                        both ? ": " : "", detail);
}

int mrt_cli_end_output(void)
{
    if (ferror(stdout) || fflush(stdout) == EOF)
        return mrt_cli_fail(MRT_EXIT_FAILED, "cannot write to standard output");
    return MRT_EXIT_OK;
}

int mrt_cli_check_name(const char *name)
{
    int error = mrt_name_check(name);
    return error ? mrt_cli_fail_error(NULL, error) : 0;
}

void mrt_cli_describe_owner(const mortise_entry *entry, char text[MRT_OWNER_TEXT_SIZE])
{
    char left[32];
    int length = snprintf(text, MRT_OWNER_TEXT_SIZE, "%s", entry->label);
    mrt_cli_format_duration(mrt_time_from_ms(entry->delay_ms), left, sizeof left);
    if (entry->detached)
        snprintf(text, MRT_OWNER_TEXT_SIZE, "nobody: detached");
    if (entry->delay_ms > 0)
        snprintf(text, MRT_OWNER_TEXT_SIZE, "nobody: delay, %s left", left);
    if (entry->detached || entry->delay_ms > 0 || entry->pid == 0)
        return;
    const char *space = entry->label[0] ? " " : "";
    if (entry->host[0])
        snprintf(text + length, MRT_OWNER_TEXT_SIZE - (size_t)length, "%shost %s pid %" PRId64,
                 space, entry->host, entry->pid);
    else
        snprintf(text + length, MRT_OWNER_TEXT_SIZE - (size_t)length, "%spid %" PRId64, space,
                 entry->pid);
}

int mrt_cli_open(const struct mrt_cli *cli, uint32_t flags, mortise_client **client)
{
    mortise_client_options options = {.size = sizeof(options)};
    if (cli->url && !*cli->url)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s is empty", cli->url_origin);
    options.flags = MORTISE_SHORT_LIVED | MORTISE_TELL_PROCESS | flags;
    options.label = cli->label;
    options.log = cli->log;
    options.log_argument = cli->log_argument;
    options.contact = cli->contact;
    options.contact_argument = cli->contact_argument;
    options.give_up_ms = cli->give_up / MRT_MILLISECOND;
    int error = mortise_open(cli->url, &options, client);
    if (!error)
        return 0;
    bool of_uri = error == MORTISE_EURI || error == MORTISE_ESCHEME;
    return mrt_cli_fail_error(of_uri && cli->url ? cli->url_origin : NULL, error);
}

int mrt_cli_open_shared(const struct mrt_cli *cli, mortise_client **client)
{
    int code = mrt_cli_open(cli, MORTISE_FOREIGN_LOOP, client);
    if (code || strncmp(mortise_url(*client), "memory:", 7) != 0)
        return code;
    mortise_close(*client);
    *client = NULL;
    return mrt_cli_fail(MRT_EXIT_CONFIG,
                        "memory: is a store inside one process, where a command excludes no "
                        "other; leave --url out, or name a store that is shared");
}
