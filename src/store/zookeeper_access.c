/*
 * The credentials' file is opened first and looked at by its descriptor, so what was
 * found safe is what is read: a plain file with one name, no symbolic link, of ours or
 * of root's, that nobody else may read or write.
 *
 * ACLs. The server lets a node be deleted by who has that right in its *parent*. So
 * all who share a lock need all rights in its directory, and a directory that only we
 * can delete from is one that only we can use; `creator` means whoever has the same
 * credentials. The directories above belong to no lock: there anyone may create, but
 * neither list nor delete, for else the first program to come would own the namespace.
 * A directory that is there already keeps its ACL.
 */
#include "store/zookeeper_access.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIABLE "MORTISE_ZK_AUTH"
#define HASH_LENGTH 28 /* of a SHA-1 in base64, with its "=" */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* ------------------------------------------------------------- credentials */

static int system_error(const char *path)
{
    int code = errno;
    char text[128];
    int error = code == EACCES || code == EPERM ? MORTISE_EPERMISSION
                : code == ELOOP                 ? MORTISE_EUNSAFE
                                                : MORTISE_EUNREACHABLE;
    return mrt_error(error, "credentials %s: %s", path,
                     code == ELOOP ? "is a symbolic link" : strerror_r(code, text, sizeof text));
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

/* The whole file into text; its last line's end is dropped. */
static int read_file(const char *path, char text[MRT_ZK_SECRET_MAX])
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return system_error(path);
    int error = check_file(path, fd);
    ssize_t got = error ? 0 : read(fd, text, MRT_ZK_SECRET_MAX);
    if (got < 0)
        error = system_error(path);
    close(fd);
    if (error)
        return error;
    size_t length = (size_t)got;
    if (length >= MRT_ZK_SECRET_MAX)
        return mrt_error(MORTISE_EURI, "credentials %s are too long", path);
    if (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    if (strlen(text) != length)
        return mrt_error(MORTISE_EURI, "credentials %s are not text", path);
    return MORTISE_OK;
}

/* Cuts "scheme:data" in two. */
static int take_line(const char *text, const char *origin, struct mrt_zk_access *access)
{
    size_t scheme = strspn(text, LETTERS DIGITS);
    if (scheme == 0 || scheme >= sizeof access->scheme || text[scheme] != ':' ||
        text[scheme + 1] == '\0' || strpbrk(text, "\r\n") || strlen(text) >= MRT_ZK_SECRET_MAX)
        return mrt_error(MORTISE_EURI,
                         "credentials %s are not one line of the form SCHEME:DATA, such as "
                         "digest:USER:PASSWORD",
                         origin);
    memcpy(access->scheme, text, scheme);
    snprintf(access->secret, sizeof access->secret, "%s", text + scheme + 1);
    return MORTISE_OK;
}

static int read_credentials(const struct mrt_uri *uri, struct mrt_zk_access *access)
{
    char text[MRT_ZK_SECRET_MAX];
    const char *path = mrt_uri_parameter(uri, "credentials");
    if (!path) {
        const char *variable = secure_getenv(VARIABLE);
        return variable && *variable ? take_line(variable, "in " VARIABLE, access) : MORTISE_OK;
    }
    if (*path != '/')
        return mrt_error(MORTISE_EURI, "credentials= is the absolute path of a file");
    int error = read_file(path, text);
    if (error == MORTISE_OK)
        error = take_line(text, path, access);
    explicit_bzero(text, sizeof text);
    return error;
}

/* -------------------------------------------------------------------- ACLs */

static void add(struct mrt_zk_access *access, int rights, const char *scheme, const char *identity)
{
    /* The library's type has no const; it only reads. */
    access->entries[access->nodes.count++] =
        (struct ACL){rights, {(char *)(uintptr_t)scheme, (char *)(uintptr_t)identity}};
}

/* "USER:HASH" as the server's digest scheme has it. A password is refused, unseen. */
static bool is_digest(const char *text)
{
    const char *hash = strchr(text, ':');
    return hash && hash != text && strlen(hash + 1) == HASH_LENGTH &&
           strspn(hash + 1, LETTERS DIGITS "+/") == HASH_LENGTH - 1 && hash[HASH_LENGTH] == '=';
}

static int read_acl(const struct mrt_uri *uri, struct mrt_zk_access *access)
{
    const char *acl = mrt_uri_parameter(uri, "acl");
    bool known = access->scheme[0];
    access->open_by_default = !acl && !known;
    if (!acl)
        acl = known ? "creator" : "open";
    if (strcmp(acl, "creator") == 0 && !known)
        return mrt_error(MORTISE_EURI,
                         "acl=creator needs credentials, by credentials=/path or " VARIABLE);
    if (strcmp(acl, "open") == 0) {
        add(access, ZOO_PERM_ALL, "world", "anyone");
        access->parents = access->nodes;
        return MORTISE_OK;
    }
    if (strncmp(acl, "digest:", 7) == 0 && is_digest(acl + 7) &&
        strlen(acl + 7) < sizeof access->identity) {
        snprintf(access->identity, sizeof access->identity, "%s", acl + 7);
        add(access, ZOO_PERM_ALL, "digest", access->identity);
    } else if (strcmp(acl, "creator") != 0) {
        return mrt_error(MORTISE_EURI, "acl= is open, creator, or digest:USER:HASH with the hash "
                                       "that ZooKeeper keeps of a password (28 characters)");
    }
    if (known)
        add(access, ZOO_PERM_ALL, "auth", "");
    access->parents = access->nodes;
    access->entries[access->parents.count++] = (struct ACL){ZOO_PERM_CREATE, ZOO_ANYONE_ID_UNSAFE};
    return MORTISE_OK;
}

int mrt_zk_access_read(const struct mrt_uri *uri, struct mrt_zk_access *access)
{
    memset(access, 0, sizeof *access);
    access->nodes.data = access->entries;
    int error = read_credentials(uri, access);
    return error ? error : read_acl(uri, access);
}

/* What the server says of them shows in the next request's answer. */
static void presented(int code, const void *context)
{
    (void)code, (void)context;
}

bool mrt_zk_access_present(const struct mrt_zk_access *access, zhandle_t *handle)
{
    return access->scheme[0] == '\0' ||
           zoo_add_auth(handle, access->scheme, access->secret, (int)strlen(access->secret),
                        presented, NULL) == ZOK;
}

void mrt_zk_access_wipe(struct mrt_zk_access *access)
{
    explicit_bzero(access, sizeof *access);
}

const struct ACL_vector *mrt_zk_access_nodes(const struct mrt_zk_access *access)
{
    return &access->nodes;
}

const struct ACL_vector *mrt_zk_access_parents(const struct mrt_zk_access *access)
{
    return &access->parents;
}
