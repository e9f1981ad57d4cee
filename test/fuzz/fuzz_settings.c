/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of settings: what is found in one stands in it, and every fault is told once, with a code.
 * The source is compiled in here, for the command reads its files once.
 */
#include "cli/frame/settings.c" // NOLINT(bugprone-suspicious-include)

#include "fuzz.h"

#include <stdarg.h>
#include <sys/mman.h>

static const struct mrt_flag flags[] = {
    {'l', "label", "TEXT", "", NULL, 0},
    {'g', "grace", "DURATION", "", NULL, 0},
    {'o', "once", NULL, "", NULL, MRT_FLAG_ONCE},
    {MRT_OPTION_URL, "url", "URL", "", NULL, 0},
};
static const struct mrt_subcommand row = {
    .name = "run", .flags = flags, .count = sizeof flags / sizeof flags[0]};
static mrt_subcommands subcommands[] = {&row, NULL};
static unsigned faults;

const struct mrt_flag *mrt_cli_find_flag(mrt_subcommands *rows, const char *name)
{
    (void)rows;
    for (size_t i = 0; i < row.count; i++)
        if (strcmp(flags[i].name, name) == 0)
            return &flags[i];
    return NULL;
}

void mrt_cli_variable(const char *option, char *text, size_t size)
{
    snprintf(text, size, "MORTISE_FUZZ_%s", option);
}

int mrt_cli_fail(int exit_code, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    faults++;
    require(vsnprintf(line, sizeof line, format, arguments) > 0);
    va_end(arguments);
    return exit_code;
}

static void check_found(const char *text, size_t size)
{
    struct mrt_setting setting;
    for (size_t i = 0; i < row.count; i++)
        if (mrt_settings_find(flags[i].name, &setting)) {
            require(setting.from_file && flags[i].traits != MRT_FLAG_ONCE);
            require(memmem(text, size, setting.value, strlen(setting.value)) != NULL);
            require(memmem(text, size, flags[i].name, strlen(flags[i].name)) != NULL);
        }
}

static void forget_all(void)
{
    for (; file_count > 0; file_count--) {
        free(files[file_count - 1]->text);
        free(files[file_count - 1]);
    }
    has_read = false;
    faults = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("settings", MFD_CLOEXEC);
    require(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    setenv("XDG_CONFIG_DIRS", "/nonexistent", 1);
    int code = mrt_settings_read(subcommands, path);
    require(faults == (code != 0));
    check_found((const char *)data, size);
    forget_all();
    close(fd);
    return 0;
}
