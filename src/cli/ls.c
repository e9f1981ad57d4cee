/*
 * mortise ls: who holds and who waits, as a table or as JSON.
 *
 * All entries are collected before the first is printed: a store that fails half
 * way gives an error and no half answer, and no store waits for a slow terminal.
 * What others wrote into the store is data: control bytes are escaped.
 */
#include "cli/cli.h"

#include "base/name.h"
#include "base/uri.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char mrt_cli_ls_help[] =
    "Usage: mortise ls [options] [NAME]\n"
    "Shows the holders (PLACE \"holds\") and the waiters (PLACE 1, 2, ...) of the lock\n"
    "NAME, or of all locks, each queue in order.\n"
    "\n"
    "  --json     print a JSON array of objects with name, kind, place, holder, fence,\n"
    "             since, label, host, pid, weight, capacity\n"
    "  --url URL  the store\n"
    "  --help     this text\n";

struct row {
    char *name, *kind, *label, *host;
    char owner[MRT_OWNER_TEXT_SIZE]; /* label and process */
    uint64_t fence, weight, capacity;
    uint32_t place;
    int64_t since_wall_ms, pid;
};

struct table {
    struct row *rows;
    size_t count, room;
    bool failed; /* no memory */
};

static void free_table(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->rows[i].name);
        free(table->rows[i].kind);
        free(table->rows[i].label);
        free(table->rows[i].host);
    }
    free(table->rows);
}

static bool make_room(struct table *table)
{
    if (table->count < table->room)
        return true;
    size_t room = table->room ? table->room * 2 : 64;
    struct row *rows = reallocarray(table->rows, room, sizeof(*rows));
    if (!rows)
        return false;
    table->rows = rows;
    table->room = room;
    return true;
}

static int add_row(void *argument, const mortise_entry *entry)
{
    struct table *table = argument;
    if (!make_room(table)) {
        table->failed = true;
        return 1;
    }
    struct row *row = &table->rows[table->count++];
    row->name = strdup(entry->name);
    row->kind = strdup(entry->kind);
    row->label = strdup(entry->label);
    row->host = strdup(entry->host);
    row->pid = entry->pid;
    row->weight = entry->weight;
    row->capacity = entry->capacity;
    mrt_cli_describe_owner(entry, row->owner);
    row->fence = entry->fence;
    row->place = entry->place;
    row->since_wall_ms = entry->since_wall_ms;
    table->failed = !row->name || !row->kind || !row->label || !row->host;
    return table->failed;
}

/* ------------------------------------------------------------------ text */

/* Columns a text takes, counting one a character. */
static int count_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

static void escape_name(const char *name, char text[4 * MORTISE_NAME_MAX + 1])
{
    mrt_cli_escape(name, text, 4 * MORTISE_NAME_MAX + 1);
}

static int find_name_width(const struct table *table)
{
    char name[4 * MORTISE_NAME_MAX + 1];
    int width = 4;
    for (size_t i = 0; i < table->count; i++) {
        escape_name(table->rows[i].name, name);
        int columns = count_columns(name);
        width = columns > width ? columns : width;
    }
    return width;
}

/* How it holds: reading, writing, so many permits of so many; "" for what one has alone. */
static void describe_mode(const struct row *row, char mode[48])
{
    mode[0] = '\0';
    if (strcmp(row->kind, "read-write") == 0 && row->capacity > 0)
        snprintf(mode, 48, "%s", row->weight == row->capacity ? "write" : "read");
    else if (row->capacity > 1)
        snprintf(mode, 48, "%" PRIu64 "/%" PRIu64, row->weight, row->capacity);
}

static void print_row(const struct row *row, int width, int64_t now_ms)
{
    char name[4 * MORTISE_NAME_MAX + 1], owner[4 * MRT_OWNER_TEXT_SIZE];
    char place[16], mode[48], age[32];
    escape_name(row->name, name);
    mrt_cli_escape(row->owner, owner, sizeof(owner));
    describe_mode(row, mode);
    snprintf(place, sizeof(place), "%" PRIu32, row->place);
    mrt_cli_format_duration(mrt_time_from_ms(now_ms - row->since_wall_ms), age, sizeof(age));
    printf("%s%*s  %-5s  %-5s  %20" PRIu64 "  %8s  %s\n", name, width - count_columns(name), "",
           row->place == 0 ? "holds" : place, mode, row->fence, age, owner);
}

static void print_text(const struct table *table)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND;
    int width = find_name_width(table);
    printf("%-*s  %-5s  %-5s  %20s  %8s  %s\n", width, "NAME", "PLACE", "MODE", "FENCE", "SINCE",
           "LABEL");
    for (size_t i = 0; i < table->count; i++)
        print_row(&table->rows[i], width, now_ms);
}

/* ------------------------------------------------------------------ JSON */

/* A string; what is not UTF-8 becomes U+FFFD. */
static void print_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        size_t length = 1, left = strnlen(text, 4);
        while (byte >= 0x80 && length <= left && !mrt_text_is_clean(text, length))
            length++;
        if (byte == '"' || byte == '\\')
            printf("\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            printf("\\u%04x", byte);
        else if (byte < 0x80)
            putchar(byte);
        else if (length > left)
            printf("\\ufffd");
        else {
            printf("%.*s", (int)length, text);
            text += length - 1;
        }
    }
    putchar('"');
}

static void print_object(const struct row *row)
{
    char since[32];
    struct tm utc;
    time_t seconds = (time_t)(row->since_wall_ms / 1000);
    if (!gmtime_r(&seconds, &utc) || strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        since[0] = '\0';
    printf("{\"name\": ");
    print_string(row->name);
    printf(", \"kind\": ");
    print_string(row->kind);
    printf(", \"place\": %" PRIu32 ", \"holder\": %s, \"fence\": %" PRIu64
           ", \"since\": \"%s.%03dZ\", \"label\": ",
           row->place, row->place == 0 ? "true" : "false", row->fence, since,
           (int)(row->since_wall_ms % 1000));
    print_string(row->label);
    printf(", \"host\": ");
    print_string(row->host);
    printf(", \"pid\": %" PRId64 ", \"weight\": %" PRIu64 ", \"capacity\": %" PRIu64 "}", row->pid,
           row->weight, row->capacity);
}

static void print_json(const struct table *table)
{
    putchar('[');
    for (size_t i = 0; i < table->count; i++) {
        printf(i ? ",\n " : "\n ");
        print_object(&table->rows[i]);
    }
    printf(table->count ? "\n]\n" : "]\n");
}

/* ------------------------------------------------------------------- ls */

static int collect(const struct mrt_cli *cli, const char *name, struct table *table)
{
    mortise_client *client;
    int code = mrt_cli_open(cli, MORTISE_FOREIGN_LOOP, &client);
    if (code)
        return code;
    int error = mortise_list(client, name, add_row, table);
    if (error)
        code = mrt_cli_fail_error(name, error);
    else if (table->failed)
        code = mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    mortise_close(client); /* nothing was held */
    return code;
}

int mrt_cli_ls(struct mrt_cli *cli, int argc, char **argv)
{
    enum { JSON = 'j' };
    static const struct option options[] = {
        MRT_CLI_OPTIONS, {"json", no_argument, NULL, JSON}, {NULL, 0, NULL, 0}};
    struct table table = {.rows = NULL};
    bool json = false;
    int option;
    /* Without "+": "ls NAME --json" is as good as "ls --json NAME". */
    while ((option = mrt_cli_option(cli, argc, argv, ":", options)) != MRT_OPTION_END) {
        if (option == MRT_OPTION_STOP)
            return cli->exit_code;
        json = true;
    }
    const char *name = argv[optind];
    if (name && argv[optind + 1])
        return mrt_cli_fail(MRT_EXIT_USAGE, "ls takes one name; \"%.64s\" is too much",
                            argv[optind + 1]);
    int code = name ? mrt_cli_check_name(name) : 0;
    if (!code)
        code = collect(cli, name, &table);
    if (!code)
        (json ? print_json : print_text)(&table);
    free_table(&table);
    if (!code && (ferror(stdout) || fflush(stdout) == EOF))
        code = mrt_cli_fail(MRT_EXIT_FAILED, "cannot write to standard output");
    return code;
}
