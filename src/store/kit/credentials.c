/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credentials' file is opened first and looked at by its descriptor, so what was
 * found safe is what is read: a plain file with one name, no symbolic link, of ours or
 * of root's, that nobody else may read or write.
 */
#include "store/kit/credentials.h"

#include "base/error.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int system_error(const char *path)
{
    int code = errno;
    char text[128];
    int error = code == EACCES || code == EPERM ? MORTISE_EPERMISSION
                : code == ELOOP                 ? MORTISE_EUNSAFE
                                                : MORTISE_EUNREACHABLE;
    return mrt_error(error, "credentials %s: %s", path,
                     code == ELOOP ? "is a symbolic link"
                                   : mrt_system_text(code, text, sizeof text));
}

static int check_file(const char *path, int fd)
{
    struct stat status;
    const char *fault = NULL;
    if (fstat(fd, &status) < 0)
        return system_error(path);
    if (!S_ISREG(status.st_mode))
        fault = "is not a plain file";
    else if (status.st_uid != geteuid() && status.st_uid != 0)
        fault = "belongs to another user";
    else if (status.st_mode & (S_IRWXG | S_IRWXO))
        fault = "is open to others (chmod 600)";
    else if (status.st_nlink > 1)
        fault = "has more than one name (hard links)";
    return fault ? mrt_error(MORTISE_EUNSAFE, "credentials %s %s", path, fault) : MORTISE_OK;
}

int mrt_credentials_read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return system_error(path);
    int error = check_file(path, fd);
    ssize_t got = error ? 0 : read(fd, text, size);
    if (got < 0)
        error = system_error(path);
    close(fd);
    if (error)
        return error;
    size_t length = (size_t)got;
    if (length >= size)
        return mrt_error(MORTISE_EURI, "credentials %s are too long", path);
    if (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    if (strlen(text) != length)
        return mrt_error(MORTISE_EURI, "credentials %s are not text", path);
    if (length == 0)
        return mrt_error(MORTISE_EURI, "credentials %s are empty", path);
    return MORTISE_OK;
}

static int read_variable(const char *variable, char *text, size_t size)
{
    const char *value = secure_getenv(variable);
    size_t length = value ? strlen(value) : 0;
    if (length >= size)
        return mrt_error(MORTISE_EURI, "credentials in %s are too long", variable);
    memcpy(text, value ? value : "", length + 1);
    return MORTISE_OK;
}

int mrt_credentials_read_as(const struct mrt_uri *uri, const char *key, const char *variable,
                            char *text, size_t size, char origin[MRT_CREDENTIALS_ORIGIN_SIZE])
{
    const char *path = mrt_uri_parameter(uri, key);
    snprintf(origin, MRT_CREDENTIALS_ORIGIN_SIZE, path ? "%.250s" : "in %.250s",
             path       ? path
             : variable ? variable
                        : key);
    if (!path && !variable)
        text[0] = '\0';
    if (!path)
        return variable ? read_variable(variable, text, size) : MORTISE_OK;
    if (*path != '/')
        return mrt_error(MORTISE_EURI, "%s= is the absolute path of a file", key);
    return mrt_credentials_read_file(path, text, size);
}

int mrt_credentials_read(const struct mrt_uri *uri, const char *variable, char *text, size_t size,
                         char origin[MRT_CREDENTIALS_ORIGIN_SIZE])
{
    return mrt_credentials_read_as(uri, "credentials", variable, text, size, origin);
}
