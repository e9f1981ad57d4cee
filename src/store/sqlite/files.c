/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the database, and checks that its place is safe.
 *
 * A user who can write to the database can break every lock in it. A user who can write to
 * its directory, or to one above, can put another file in its place. So:
 *   - each directory above belongs to root or to us, and is not open to all, nor to a group but
 *     root's and our own, unless it is sticky (as /tmp is);
 *   - the database's own directory belongs to root or to us and is open to nobody else;
 *   - the database and its companions are plain files of ours with one name, which others can
 *     neither write nor read: a reader can take SQLite's locks, and so stop every writer.
 * Symbolic links above are resolved first, and the directories that they lead to are what is
 * checked; the files themselves are never links. Directories of the default place are made below
 * ones that have been checked.
 * Once the directories are as they must be nobody else can change what they hold, so the
 * order of looking and opening does not matter.
 *
 * The database is never opened here. POSIX locks, which SQLite lives by, are dropped
 * when *any* descriptor of the file is closed in the process, so a file that does not
 * exist is made by mknod, and one that does is only looked at.
 *
 * A network file system is refused: write-ahead logging needs memory shared by
 * all users of the file, and often not even its locks are real.
 */
#include "store/sqlite/files.h"

#include "base/error.h"
#include "base/id.h"
#include "base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SESSIONS_SUFFIX "-sessions"
#define TEXT_MAX 128
#define REMOVE "remove it while nothing uses the store"
#define OWN_DIRECTORY \
    "use one that is yours alone (mkdir -m 700), or a server, if several users share the locks"

static int refused(const char *path, const char *reason, const char *advice)
{
    return mrt_error(MORTISE_EUNSAFE, "%s: %s; %s", path, reason, advice);
}

/* Turns errno, set by a call on `path`, into a code of mortise.h with that text. */
static int system_error(const char *path)
{
    int code = errno;
    char text[TEXT_MAX];
    int error = MORTISE_ESTORE;
    if (code == EACCES || code == EPERM || code == EROFS)
        error = MORTISE_EPERMISSION;
    else if (code == ENOENT || code == ENOTDIR)
        error = MORTISE_EUNREACHABLE;
    else if (code == ELOOP)
        error = MORTISE_EUNSAFE;
    return mrt_error(error, "%s: %s", path, mrt_system_text(code, text, sizeof text));
}

const char *mrt_sqlite_shared_filesystem(unsigned long type)
{
    static const struct {
        unsigned long type;
        const char *name;
    } shared[] = {
        {0x6969, "NFS"},        {0x517b, "SMB"},        {0xff534d42, "CIFS"},
        {0xfe534d42, "SMB2"},   {0x01021997, "9P"},     {0x65735546, "FUSE"},
        {0x5346414f, "AFS"},    {0x6b414653, "AFS"},    {0x00c36400, "Ceph"},
        {0x7461636f, "OCFS2"},  {0x01161970, "GFS2"},   {0x0bd00bd0, "Lustre"},
        {0x73757245, "Coda"},   {0x564c, "NCP"},        {0x47504653, "GPFS"},
        {0xaad7aaea, "PanFS"},  {0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"},
        {0x786f4256, "vboxsf"}, {0xbacbacbc, "VMHGFS"}, {0x7c7c6673, "prl_fs"},
    };
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
        if (shared[i].type == type)
            return shared[i].name;
    return NULL;
}

static bool trusted_owner(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* Whether others could put another directory in the place of one in it. */
static bool open_to_others(const struct stat *status)
{
    bool group = status->st_gid != 0 && status->st_gid != getegid();
    return !(status->st_mode & S_ISVTX) &&
           (status->st_mode & S_IWOTH || (group && status->st_mode & S_IWGRP));
}

/* The directories above `directory`, which is canonical. */
static int check_ancestors(const char *directory)
{
    char path[PATH_MAX];
    struct stat status;
    for (size_t i = 0; directory[i]; i++) {
        if (directory[i] != '/' || directory[i + 1] == '\0')
            continue;
        size_t length = i ? i : 1;
        memcpy(path, directory, length);
        path[length] = '\0';
        if (lstat(path, &status) < 0)
            return system_error(path);
        if (!trusted_owner(status.st_uid))
            return refused(path, "the directory belongs to another user", OWN_DIRECTORY);
        if (open_to_others(&status))
            return refused(path,
                           status.st_mode & S_IWOTH
                               ? "the directory is writable by all and not sticky"
                               : "the directory is writable by a group and not sticky",
                           OWN_DIRECTORY);
    }
    return 0;
}

static int check_directory(const char *path, int fd, const char *advice)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return system_error(path);
    if (!trusted_owner(status.st_uid))
        return refused(path, "the directory belongs to another user", advice);
    if (status.st_mode & S_IWOTH)
        return refused(path, "the directory is writable by all", advice);
    if (status.st_mode & S_IWGRP)
        return refused(path, "the directory is writable by a group", advice);
    return 0;
}

static int check_filesystem(const char *path, int fd)
{
    struct statfs status;
    if (fstatfs(fd, &status) < 0)
        return system_error(path);
    const char *name = mrt_sqlite_shared_filesystem((unsigned long)status.f_type & 0xffffffffUL);
    if (!name)
        return 0;
    return mrt_error(MORTISE_ENOTSUPPORTED,
                     "%s is on a network or shared file system (%s), where locks between machines "
                     "cannot be relied on; unsafe_filesystem=yes overrides",
                     path, name);
}

/* The advice is for a file that something else has put there; NULL: it is the one that was named.
 */
static int check_plain_file(const char *path, const struct stat *status, const char *advice)
{
    if (S_ISLNK(status->st_mode))
        return refused(path, "is a symbolic link", advice ? advice : "name the file itself");
    if (!S_ISREG(status->st_mode))
        return refused(path, "is not a plain file",
                       advice ? advice : "name a file of your own, which mortise creates");
    if (status->st_uid != geteuid())
        return refused(path, "the file belongs to another user",
                       advice ? advice
                              : "name a file of your own, or use a server, if several users share "
                                "the locks");
    if (status->st_nlink > 1)
        return refused(path, "the file has more than one name (hard links)", "remove the others");
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return refused(path, "the file is writable by others",
                       "if it is a store of mortise, make its mode 0600");
    if (status->st_mode & (S_IRGRP | S_IROTH))
        return refused(path, "the file can be read by others, who could stop all locks",
                       "if it is a store of mortise, make its mode 0600");
    return 0;
}

static const char *base_name(const struct mrt_sqlite_file *file)
{
    return strrchr(file->path, '/') + 1;
}

/* Makes the database, empty, if it does not exist; see above for why not by open. */
static int make_database(const struct mrt_sqlite_file *file)
{
    const char *name = base_name(file);
    if (mknodat(file->directory_fd, name, S_IFREG | 0600, 0) < 0)
        return errno == EEXIST ? 0 : system_error(file->path);
    /* The umask may have taken rights that we need. */
    if (fchmodat(file->directory_fd, name, 0600, 0) < 0 || fsync(file->directory_fd) < 0)
        return system_error(file->path);
    return 0;
}

static int check_database(struct mrt_sqlite_file *file)
{
    struct stat status;
    const char *name = base_name(file);
    int found = fstatat(file->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW);
    if (found < 0 && errno == ENOENT) {
        int error = make_database(file);
        if (error)
            return error;
        found = fstatat(file->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW);
    }
    if (found < 0)
        return system_error(file->path);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return check_plain_file(file->path, &status, NULL);
}

static int check_companion(const struct mrt_sqlite_file *file, const char *suffix)
{
    char path[PATH_MAX];
    struct stat status;
    if (snprintf(path, sizeof path, "%s%s", file->path, suffix) >= (int)sizeof path)
        return mrt_error(MORTISE_EURI,
                         "the database's path is too long: name a shorter one in the URI");
    if (fstatat(file->directory_fd, strrchr(path, '/') + 1, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : system_error(path);
    return check_plain_file(path, &status, REMOVE);
}

/* Opens the directory of session files, and makes it first if need be. */
static int open_sessions(struct mrt_sqlite_file *file)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const char *name = strrchr(file->sessions, '/') + 1;
    file->sessions_fd = openat(file->directory_fd, name, flags);
    if (file->sessions_fd < 0 && errno == ENOENT) {
        bool made = mkdirat(file->directory_fd, name, 0700) == 0;
        if (!made && errno != EEXIST)
            return system_error(file->sessions);
        if (made && fchmodat(file->directory_fd, name, 0700, 0) < 0) /* whatever the umask took */
            return system_error(file->sessions);
        file->sessions_fd = openat(file->directory_fd, name, flags);
    }
    if (file->sessions_fd < 0) {
        if (errno == ELOOP || errno == ENOTDIR)
            return refused(file->sessions, "must be a directory, and no symbolic link", REMOVE);
        return system_error(file->sessions);
    }
    struct stat status;
    if (fstat(file->sessions_fd, &status) < 0)
        return system_error(file->sessions);
    if (status.st_uid != geteuid())
        return refused(file->sessions, "the directory belongs to another user", REMOVE);
    return check_directory(file->sessions, file->sessions_fd, REMOVE);
}

/* Splits `path` and writes the canonical path of the database; its directory must exist. */
static int resolve(struct mrt_sqlite_file *file, const char *path)
{
    char directory[PATH_MAX], canonical[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return mrt_error(MORTISE_EURI, "%s names a directory: name a file in it", path);
    if (strlen(name) + sizeof SESSIONS_SUFFIX > NAME_MAX || length >= sizeof directory)
        return mrt_error(MORTISE_EURI,
                         "the database's path is too long: name a shorter one in the URI");
    memcpy(directory, path, length);
    directory[length] = '\0';
    const char *parent = length ? directory : slash ? "/" : ".";
    if (!realpath(parent, canonical))
        return system_error(parent);
    const char *start = strcmp(canonical, "/") == 0 ? "" : canonical;
    int written = snprintf(file->path, sizeof file->path, "%s/%s", start, name);
    if (written < 0 || (size_t)written + sizeof SESSIONS_SUFFIX + MRT_ID_TEXT_SIZE > PATH_MAX)
        return mrt_error(MORTISE_EURI,
                         "the database's path is too long: name a shorter one in the URI");
    snprintf(file->sessions, sizeof file->sessions, "%.*s" SESSIONS_SUFFIX, written, file->path);
    int error = check_ancestors(canonical);
    if (error)
        return error;
    file->directory_fd = open(canonical, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file->directory_fd < 0)
        return system_error(canonical);
    return check_directory(canonical, file->directory_fd, OWN_DIRECTORY);
}

/* Adds to the particulars what to do about a directory that was named and cannot be used. */
static int advise(int error)
{
    char why[MRT_ERROR_DETAIL_MAX];
    if (error != MORTISE_EUNREACHABLE && error != MORTISE_EPERMISSION)
        return error;
    mrt_error_copy_detail(why);
    return mrt_error(error, "%s; %s", why,
                     error == MORTISE_EUNREACHABLE ? "make the directory first (mkdir -m 700)"
                                                   : "name a file in a directory of your own");
}

int mrt_sqlite_file_open(struct mrt_sqlite_file *file, const char *path, bool any_filesystem)
{
    char standard[PATH_MAX];
    int error = 0;
    file->directory_fd = file->sessions_fd = -1;
    if (*path == '\0') {
        error = mrt_sqlite_default_path(standard, sizeof standard);
        path = standard;
        error = error ? error : resolve(file, path);
    } else {
        error = advise(resolve(file, path));
    }
    if (!error && !any_filesystem)
        error = check_filesystem(file->path, file->directory_fd);
    if (!error)
        error = check_database(file);
    if (!error)
        error = check_companion(file, "-wal");
    if (!error)
        error = check_companion(file, "-shm");
    if (!error)
        error = open_sessions(file);
    if (error)
        mrt_sqlite_file_close(file);
    return error;
}

void mrt_sqlite_file_close(struct mrt_sqlite_file *file)
{
    if (file->directory_fd >= 0)
        close(file->directory_fd);
    if (file->sessions_fd >= 0)
        close(file->sessions_fd);
    file->directory_fd = file->sessions_fd = -1;
}

bool mrt_sqlite_file_in_place(const struct mrt_sqlite_file *file)
{
    struct stat status;
    return lstat(file->path, &status) == 0 && status.st_dev == file->device &&
           status.st_ino == file->inode;
}

/* ----------------------------------------------------------- default path */

/* Checks an existing directory and all above it, before one is made in it. */
static int check_parent(const char *parent)
{
    char canonical[PATH_MAX], inside[PATH_MAX + 2];
    if (!realpath(*parent ? parent : "/", canonical))
        return system_error(parent);
    snprintf(inside, sizeof inside, "%s/.", strcmp(canonical, "/") == 0 ? "" : canonical);
    return check_ancestors(inside);
}

/* Makes the directories of `path` that are missing; `path` ends with a file's name. */
static int make_directories(const char *path)
{
    char directory[PATH_MAX], parent[PATH_MAX] = "";
    struct stat status;
    for (size_t i = 1; path[i]; i++) {
        if (path[i] != '/')
            continue;
        memcpy(directory, path, i);
        directory[i] = '\0';
        int error = check_parent(parent); /* a link in another user's directory leads astray */
        if (error)
            return error;
        if (stat(directory, &status) < 0 && mkdir(directory, 0700) < 0 && errno != EEXIST)
            return system_error(directory);
        memcpy(parent, directory, i + 1);
    }
    return 0;
}

static int home_directory(char *home, size_t size)
{
    const char *variable = secure_getenv("HOME");
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (!variable || variable[0] != '/') {
        if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) != 0 || !found)
            return mrt_error(MORTISE_EPERMISSION, "this user has no home directory");
        variable = entry.pw_dir;
    }
    if (snprintf(home, size, "%s", variable) >= (int)size)
        return mrt_error(MORTISE_EINVALID, "the home directory's path is too long");
    return 0;
}

/* The default file below `place`, whose first `length` bytes count. */
static int make_place(const char *place, size_t length, char *path, size_t size)
{
    int written = snprintf(path, size, "%.*s/mortise/locks.db", (int)length, place);
    if (written < 0 || (size_t)written >= size || (size_t)written >= PATH_MAX)
        return mrt_error(MORTISE_EINVALID, "the path of the default file is too long");
    return make_directories(path);
}

static int make_place_at_home(char *path, size_t size)
{
    char home[PATH_MAX], place[PATH_MAX];
    int error = home_directory(home, sizeof home);
    if (error)
        return error;
    if (snprintf(place, sizeof place, "%s/.local/state", home) >= (int)sizeof place)
        return mrt_error(MORTISE_EINVALID, "the path of the default file is too long");
    return make_place(place, strlen(place), path, size);
}

/* Finds a directory that a service manager made for a user without a home of its own, the first if
   it lists several. 0: the file can be there. */
static int make_place_of_service(char *path, size_t size)
{
    static const char *const variables[] = {"STATE_DIRECTORY", "RUNTIME_DIRECTORY",
                                            "XDG_RUNTIME_DIR"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *place = secure_getenv(variables[i]);
        if (place && place[0] == '/')
            return make_place(place, strcspn(place, ":"), path, size);
    }
    return MORTISE_EPERMISSION;
}

/* A usable home has priority over a service manager's directory, so that all programs of a user
 * share the same locks. */
int mrt_sqlite_default_path(char *path, size_t size)
{
    const char *state = secure_getenv("XDG_STATE_HOME");
    char why[MRT_ERROR_DETAIL_MAX];
    if (state && state[0] == '/')
        return make_place(state, strlen(state), path, size);
    if (geteuid() == 0)
        return make_place("/var/lib", strlen("/var/lib"), path, size);
    int error = make_place_at_home(path, size);
    if (error != MORTISE_EPERMISSION)
        return error;
    mrt_error_copy_detail(why);
    if (make_place_of_service(path, size) == MORTISE_OK)
        return MORTISE_OK;
    return mrt_error(error,
                     "%s; make a directory of your own (mkdir -m 700 DIRECTORY), and set "
                     "XDG_STATE_HOME=DIRECTORY or MORTISE_URL=sqlite:DIRECTORY/locks.db",
                     why);
}
