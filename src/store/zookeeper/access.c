/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ACLs. The server lets a client delete a node if it has that right in the node's *parent*. So
 * all who share a lock need all rights in its directory, and a directory that only we
 * can delete from is one that only we can use; `creator` means all clients with the same
 * credentials. The directories above are the same circle's, or strangers could take the names of
 * its locks for themselves. With parents=open anyone may create there, but neither list nor
 * delete: for circles that share a namespace. A directory that is there already keeps its ACL.
 */
#include "store/zookeeper/access.h"

#include "base/error.h"
#include "store/kit/credentials.h"

#include <stdio.h>
#include <string.h>

#define VARIABLE "MORTISE_ZK_AUTH"
#define HASH_LENGTH 28 /* of a SHA-1 in base64, with its "=" */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* ------------------------------------------------------------- credentials */

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
    char text[MRT_ZK_SECRET_MAX], origin[MRT_CREDENTIALS_ORIGIN_SIZE];
    int error = mrt_credentials_read(uri, VARIABLE, text, sizeof text, origin);
    if (error == MORTISE_OK && text[0])
        error = take_line(text, origin, access);
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

/* Without credentials this client could make nothing below nodes that are kept for clients with
 * credentials.
 */
static int read_parents(const struct mrt_uri *uri, struct mrt_zk_access *access)
{
    const char *text = mrt_uri_parameter(uri, "parents");
    access->parents_open = text ? strcmp(text, "open") == 0 : !access->scheme[0];
    if (!text || access->parents_open || strcmp(text, "closed") == 0)
        return MORTISE_OK;
    return mrt_error(MORTISE_EURI, "parents=%.32s is neither \"open\" nor \"closed\"", text);
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
    if (access->parents_open)
        access->entries[access->parents.count++] =
            (struct ACL){ZOO_PERM_CREATE, ZOO_ANYONE_ID_UNSAFE};
    return MORTISE_OK;
}

int mrt_zk_access_read(const struct mrt_uri *uri, struct mrt_zk_access *access)
{
    memset(access, 0, sizeof *access);
    access->nodes.data = access->entries;
    int error = read_credentials(uri, access);
    if (error == MORTISE_OK)
        error = read_parents(uri, access);
    return error ? error : read_acl(uri, access);
}

/* The server's verdict on them shows in the answer to the next request. */
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

bool mrt_zk_access_is_open(const struct mrt_zk_access *access)
{
    return strcmp(access->entries[0].id.scheme, "world") == 0;
}

const struct ACL_vector *mrt_zk_access_parents(const struct mrt_zk_access *access)
{
    return &access->parents;
}
