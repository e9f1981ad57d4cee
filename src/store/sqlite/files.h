/* SPDX-License-Identifier: Apache-2.0 */
/* Where the database lies. */
#ifndef MRT_STORE_SQLITE_FILES_H
#define MRT_STORE_SQLITE_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mrt_sqlite_file {
    char path[PATH_MAX];     /* canonical, of the database */
    char sessions[PATH_MAX]; /* of the directory of session files */
    int directory_fd;        /* of the database's directory; -1: closed */
    int sessions_fd;
    dev_t device;
    ino_t inode;
};

/* Checks the place, makes what is missing, 0 or a MORTISE code. `path`: "" for the default. */
int mrt_sqlite_file_open(struct mrt_sqlite_file *file, const char *path, bool any_filesystem);
void mrt_sqlite_file_close(struct mrt_sqlite_file *file);
/* Whether the path still leads to the database that was opened. */
bool mrt_sqlite_file_in_place(const struct mrt_sqlite_file *file);
/*
 * Path of the default file; its directory is made, 0700, with its parents. 0; MORTISE_EINVALID (too
 * long, no home), MORTISE_EPERMISSION, MORTISE_EUNREACHABLE.
 */
int mrt_sqlite_default_path(char *path, size_t size);
/* Name of a network or shared file system by its statfs type, else NULL. */
const char *mrt_sqlite_shared_filesystem(unsigned long type);

#endif
