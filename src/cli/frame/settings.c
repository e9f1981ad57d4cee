/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files: lines "option = value" with the long names of options, "#" begins a
 * comment line. $XDG_CONFIG_HOME/mortise/config (~/.config) is the user's, and in each
 * directory of $XDG_CONFIG_DIRS (/etc/xdg) mortise/config the system's.
 *
 * A file can say which store is used and which commands are run, so a file that others may
 * write is refused. A file with a line that is not understood is refused too: a misspelt setting
 * would otherwise be ignored without a word.
 *
 * The text stays in memory, cut up in place, for the life of the process.
 */
#include "cli/frame/cli.h"
#include "cli/frame/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX 8
#define LINES_MAX 64
#define FILE_BYTES_MAX 16384

struct file {
    char path[256];
    char *text;
    bool is_open; /* others may read it */
    size_t count;
    struct line {
        const char *key, *value;
        int number;
    } lines[LINES_MAX];
};

static struct file *files[FILES_MAX]; /* the first counts first */
static size_t file_count;
static bool has_read;
static mrt_subcommands *known; /* a file may set their options */

/* ---------------------------------------------------------------- one file */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

static const char *describe_unknown(const char *key)
{
    static char fault[160];
    struct mrt_suggestion near = {.typed = key};
    for (mrt_subcommands *row = known; *row; row++)
        for (size_t i = 0; i < (*row)->count; i++)
            mrt_suggest(&near, (*row)->flags[i].name);
    snprintf(fault, sizeof fault, "names no option: \"%.64s\" is unknown%s%s%s", key,
             near.name ? "; did you mean \"" : "", near.name ? near.name : "",
             near.name ? "\"?" : "");
    return fault;
}

/* Takes one line of a file; returns its fault, or NULL. */
static const char *take_line(struct file *file, char *text, int number)
{
    text = trim(text);
    if (!*text || *text == '#')
        return NULL;
    char *value = strchr(text, '=');
    if (!value)
        return "is not of the form option = value";
    *value++ = '\0';
    const char *key = trim(text);
    const struct mrt_flag *flag = mrt_cli_find_flag(known, key);
    if (!flag)
        return describe_unknown(key);
    if (flag->traits & MRT_FLAG_ONCE || flag->id == MRT_OPTION_CONFIG)
        return "names an option for the command line alone";
    if (file->count == LINES_MAX)
        return "is one too many";
    file->lines[file->count++] = (struct line){key, trim(value), number};
    return NULL;
}

static int take_lines(struct file *file)
{
    int number = 1;
    for (char *line = file->text, *next; line; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        const char *fault = take_line(file, line, number);
        if (fault)
            return mrt_cli_fail(MRT_EXIT_CONFIG, "%s:%d: the line %s", file->path, number, fault);
    }
    return 0;
}

const char *mrt_cli_find_distrust(const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return "is not a plain file";
    if (status->st_uid != geteuid() && status->st_uid != 0)
        return "belongs to another user";
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by others: chmod go-w";
    return NULL;
}

static int read_text(struct file *file, int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s: %s", file->path, strerror(errno));
    const char *fault = mrt_cli_find_distrust(&status);
    if (!fault && status.st_size >= FILE_BYTES_MAX)
        fault = "is too long";
    if (fault)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s %s", file->path, fault);
    file->is_open = status.st_mode & (S_IRGRP | S_IROTH);
    file->text = calloc(1, FILE_BYTES_MAX);
    ssize_t got = file->text ? read(fd, file->text, FILE_BYTES_MAX - 1) : -1;
    if (got < 0)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s cannot be read: name a plain file", file->path);
    if (strlen(file->text) != (size_t)got)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s is not text: a line is option = value",
                            file->path);
    return take_lines(file);
}

/* A missing file is no error, unless --config names it: then there is no advice about its place. */
static int read_file(const char *path, const char *advice)
{
    bool named = !advice;
    if (file_count == FILES_MAX || strlen(path) >= sizeof files[0]->path)
        return named ? mrt_cli_fail(MRT_EXIT_CONFIG, "%.64s...: too long a name", path) : 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && !named && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s: %s%s", path, strerror(errno),
                            named ? "" : advice);
    struct file *file = calloc(1, sizeof *file);
    if (!file) {
        close(fd);
        return mrt_cli_fail(MRT_EXIT_INTERNAL, "out of memory");
    }
    memcpy(file->path, path, strlen(path) + 1);
    files[file_count++] = file;
    int code = read_text(file, fd);
    close(fd);
    return code;
}

/* --------------------------------------------------------------- all files */

static int read_in(const char *directory, size_t length, const char *below, const char *advice)
{
    char path[512];
    if (length == 0 || *directory != '/')
        return 0; /* as the XDG convention has it */
    snprintf(path, sizeof path, "%.*s%s/mortise/config", (int)length, directory, below);
    return read_file(path, advice);
}

static int read_user(void)
{
    static const char advice[] = "; set HOME or XDG_CONFIG_HOME to a directory of your own";
    const char *directory = secure_getenv("XDG_CONFIG_HOME");
    if (directory && *directory)
        return read_in(directory, strlen(directory), "", advice);
    const char *home = secure_getenv("HOME");
    return home ? read_in(home, strlen(home), "/.config", advice) : 0;
}

static int read_system(void)
{
    const char *list = secure_getenv("XDG_CONFIG_DIRS");
    int code = 0;
    if (!list || !*list)
        list = "/etc/xdg";
    while (*list && !code) {
        size_t length = strcspn(list, ":");
        code = read_in(list, length, "", "; make it readable, or set XDG_CONFIG_DIRS");
        list += length + (list[length] == ':');
    }
    return code;
}

int mrt_settings_read(mrt_subcommands *subcommands, const char *named)
{
    known = subcommands;
    if (!named || !*named)
        named = secure_getenv("MORTISE_CONFIG");
    int code = has_read || !named || !*named ? 0 : read_file(named, NULL);
    if (!code && !has_read)
        code = read_user();
    if (!code && !has_read)
        code = read_system();
    has_read = true;
    return code;
}

static const struct line *find_line(const struct file *file, const char *name)
{
    for (size_t i = file->count; i > 0; i--)
        if (strcmp(file->lines[i - 1].key, name) == 0)
            return &file->lines[i - 1];
    return NULL;
}

bool mrt_settings_find(const char *name, struct mrt_setting *setting)
{
    char variable[64];
    mrt_cli_variable(name, variable, sizeof variable);
    *setting = (struct mrt_setting){.value = secure_getenv(variable)};
    snprintf(setting->origin, sizeof setting->origin, "%s", variable);
    if (setting->value && *setting->value)
        return true;
    for (size_t i = 0; i < file_count; i++) {
        const struct line *line = find_line(files[i], name);
        if (!line)
            continue;
        *setting = (struct mrt_setting){
            .value = line->value, .from_file = true, .file_is_open = files[i]->is_open};
        snprintf(setting->origin, sizeof setting->origin, "%s:%d", files[i]->path, line->number);
        return true;
    }
    setting->value = NULL;
    return false;
}

void mrt_settings_files(void (*visit)(const char *path))
{
    for (size_t i = 0; i < file_count; i++)
        visit(files[i]->path);
}
