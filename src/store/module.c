/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and loading a module. Nothing of a program's surroundings decides what code is
 * run in it, if it runs with more rights than its user: neither the environment nor the place it
 * was started from. The client libraries of the stores in modules do heed the environment (plugin
 * directories, files of options and of passwords), so such a program gets no store from a module.
 * Elsewhere the file and all directories above it must be root's or the user's own, and nobody else
 * may put another in their place. The file is loaded by the path that was looked at, without links.
 *
 * Threads: any; the first to ask loads, under a mutex. A module stays loaded.
 */
#include "store/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODULES_MAX 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *file;
    const struct mrt_store_ops *ops;
} loaded[MODULES_MAX];
static size_t loaded_count;

static void note_detail(const char *text)
{
    mrt_error(MORTISE_OK, "%s", text);
}

static const struct mrt_module_host host = {.version = MORTISE_VERSION,
                                            .shape = MRT_MODULE_SHAPE,
                                            .note_detail = note_detail,
                                            .copy_detail = mrt_error_copy_detail,
                                            .kind_of = mortise_error_kind_of};

/* ------------------------------------------------------------------ finding */

/* `above`: what is in it is looked at too, and a sticky directory keeps that where it is. */
static bool only_ours_can_write(const char *path, bool above)
{
    struct stat status;
    if (lstat(path, &status) < 0 || (status.st_uid != 0 && status.st_uid != geteuid()))
        return false;
    bool group = status.st_mode & S_IWGRP && status.st_gid != 0 && status.st_gid != getegid();
    return (above && status.st_mode & S_ISVTX) || (!group && !(status.st_mode & S_IWOTH));
}

/* The file at a canonical path, the directory it is in, and those above. */
static bool trusted(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    bool fine = only_ours_can_write(part, false);
    for (bool above = false; fine && part[1]; above = true) {
        char *slash = strrchr(part, '/');
        slash[slash == part] = '\0';
        fine = only_ours_can_write(part, above);
    }
    return fine;
}

/* Where the library is that this code is in, or the program. */
static bool own_directory(char directory[PATH_MAX])
{
    static const char here = 0;
    const char *name = NULL;
    Dl_info info;
    ssize_t length = 0;
#ifdef __GLIBC__ /* whose dli_fname of a program is its argv[0] */
    struct link_map *map = NULL;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) && map)
        name = map->l_name;
#else
    if (dladdr(&here, &info))
        name = info.dli_fname;
#endif
    if (name && name[0] == '/')
        length = snprintf(directory, PATH_MAX, "%s", name);
    else
        length = readlink("/proc/self/exe", directory, PATH_MAX - 1);
    if (length <= 0 || length >= PATH_MAX)
        return false;
    directory[length] = '\0';
    *strrchr(directory, '/') = '\0';
    return true;
}

static bool exists_in(const char *directory, const char *below, const char *file,
                      char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s%s/%s", directory, below, file);
    return length > 0 && length < PATH_MAX && access(path, F_OK) == 0;
}

/* The module's path; false: there is none, and `path` is where it should have been. */
static bool find(const char *file, char path[PATH_MAX])
{
    /* In the build directory; of an installed library; of an installed command. */
    static const char *const places[] = {"", MORTISE_MODULES_FROM_LIBRARY,
                                         MORTISE_MODULES_FROM_COMMAND};
    char own[PATH_MAX];
    bool raised = getauxval(AT_SECURE);
    const char *directory = secure_getenv("MORTISE_MODULES");
    if (directory && directory[0] == '/')
        return exists_in(directory, "", file, path);
    if (!raised && own_directory(own))
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            if (exists_in(own, places[i], file, path))
                return true;
    return exists_in(MORTISE_MODULES_INSTALLED, "", file, path);
}

/* ------------------------------------------------------------------ loading */

static int open_module(const char *path, const char *what, const char *entry, void **symbol)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        return mrt_error(MORTISE_ENOTSUPPORTED, "this installation's %s cannot be loaded: %.300s",
                         what, dlerror());
    *symbol = dlsym(module, entry);
    if (*symbol)
        return MORTISE_OK;
    dlclose(module);
    return mrt_module_other_version(path);
}

int mrt_module_other_version(const char *file)
{
    return mrt_error(MORTISE_ENOTSUPPORTED, "%.300s was not built for this version of mortise, %s",
                     file, MORTISE_VERSION);
}

int mrt_module_open(const char *file, const char *what, const char *entry, void **symbol)
{
    char found[PATH_MAX], path[PATH_MAX];
    if (!find(file, found))
        return mrt_error(MORTISE_ENOTSUPPORTED, "this installation has no %s: %.300s is missing",
                         what, found);
    if (!realpath(found, path) || !trusted(path))
        return mrt_error(MORTISE_EUNSAFE,
                         "%.300s is not loaded: others than root and this user can write to it or "
                         "a directory above it",
                         found);
    return open_module(path, what, entry, symbol);
}

static int open_store(const char *file, const char *store, const struct mrt_store_ops **ops)
{
    char what[64];
    union {
        void *symbol;
        mrt_module_entry *call;
    } entry;
    if (getauxval(AT_SECURE))
        return mrt_error(MORTISE_ENOTSUPPORTED,
                         "the %s store is refused to a program with more rights than its user: its "
                         "client library heeds the user's environment",
                         store);
    snprintf(what, sizeof what, "%s store", store);
    int error = mrt_module_open(file, what, MRT_MODULE_ENTRY, &entry.symbol);
    if (error)
        return error;
    *ops = entry.call(&host);
    return *ops ? MORTISE_OK : mrt_module_other_version(file);
}

int mrt_module_load(const char *file, const char *store, const struct mrt_store_ops **ops)
{
    int error = MORTISE_OK;
    *ops = NULL;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < loaded_count; i++)
        if (strcmp(loaded[i].file, file) == 0)
            *ops = loaded[i].ops;
    if (!*ops)
        error = open_store(file, store, ops);
    if (error == MORTISE_OK && *ops && loaded_count < MODULES_MAX) {
        loaded[loaded_count].file = file;
        loaded[loaded_count++].ops = *ops;
    }
    pthread_mutex_unlock(&mutex);
    return error;
}
