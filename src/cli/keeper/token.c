/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing and reading a token. A process that has it can release the lock. So a token is
 * never an argument, which everybody can see, and only the owner may read a file with it.
 */
#include "cli/keeper/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes it as a line; false and errno. */
static bool write_line(int fd, const char *token)
{
    char line[MORTISE_TOKEN_SIZE + 1];
    int length = snprintf(line, sizeof line, "%s\n", token);
    ssize_t written = write(fd, line, (size_t)length);
    if (written >= 0 && written != length)
        errno = ENOSPC;
    return written == length;
}

/* A new file replaces the present one, which may belong to another user. */
static bool write_file(const char *path, const char *token)
{
    char *draft;
    if (asprintf(&draft, "%s.XXXXXX", path) < 0)
        return false;
    int fd = mkstemp(draft); /* 0600 */
    bool done = fd >= 0 && write_line(fd, token) && rename(draft, path) == 0;
    int error = errno;
    if (fd >= 0) {
        close(fd);
        if (!done)
            unlink(draft);
    }
    free(draft);
    errno = error;
    return done;
}

int mrt_token_write(const struct mrt_token_place *place, const char *token)
{
    bool done = place->file ? write_file(place->file, token)
                            : write_line(place->fd > 0 ? place->fd : STDOUT_FILENO, token);
    if (done)
        return 0;
    return mrt_cli_fail(MRT_EXIT_FAILED, "cannot write the token: %s", strerror(errno));
}

/* The first line; its length, 0: none. */
static size_t read_line(FILE *file, char line[MORTISE_TOKEN_SIZE + 1])
{
    return file && fgets(line, MORTISE_TOKEN_SIZE + 1, file) ? strcspn(line, "\n") : 0;
}

int mrt_token_read(const char *path, char token[MORTISE_TOKEN_SIZE])
{
    char line[MORTISE_TOKEN_SIZE + 1] = "";
    const char *variable = path ? NULL : secure_getenv(MRT_TOKEN_VARIABLE), *text = line;
    FILE *file = path ? fopen(path, "re") : NULL;
    size_t length = variable ? strcspn(variable, "\n") : read_line(path ? file : stdin, line);
    if (file)
        fclose(file);
    if (variable)
        text = variable;
    if (length == 0 || length >= MORTISE_TOKEN_SIZE)
        return mrt_cli_fail(MRT_EXIT_USAGE, "no token in --token-file, " MRT_TOKEN_VARIABLE
                                            " or on standard input");
    memcpy(token, text, length);
    token[length] = '\0';
    return 0;
}
