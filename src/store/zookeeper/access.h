/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity that the server knows us by, and the rights to the nodes that we make.
 *
 *   ?credentials=/path   a file with one line, SCHEME:DATA (digest:user:password)
 *   MORTISE_ZK_AUTH      the same line, in the environment
 *   ?acl=open|creator|digest:USER:HASH
 *
 * A secret never stands in a URI or in arguments, and no message quotes it, nor any
 * text that could be one by mistake.
 */
#ifndef MRT_STORE_ZOOKEEPER_ACCESS_H
#define MRT_STORE_ZOOKEEPER_ACCESS_H

#include "base/uri.h"

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

#define MRT_ZK_SECRET_MAX 1024

struct mrt_zk_access {
    char scheme[32]; /* "": no credentials */
    char secret[MRT_ZK_SECRET_MAX];
    bool parents_open;    /* anyone may make locks of their own below the namespace */
    bool open_by_default; /* nobody has said that all may do everything */
    char identity[256];
    struct ACL entries[3];
    struct ACL_vector nodes, parents;
};

/* 0; EURI, EUNSAFE, EPERMISSION, EUNREACHABLE with particulars. In place: it points into itself. */
int mrt_zk_access_read(const struct mrt_uri *uri, struct mrt_zk_access *access);
/* Gives the handle the credentials; the library sends them on every connection. */
bool mrt_zk_access_present(const struct mrt_zk_access *access, zhandle_t *handle);
void mrt_zk_access_wipe(struct mrt_zk_access *access);

/* For a lock's directory and everything in it: a client that takes part in a lock must be able
   to list, watch and read its nodes, and to delete its own, a right of the directory. */
const struct ACL_vector *mrt_zk_access_nodes(const struct mrt_zk_access *access);
/* Whether anybody may do everything, since nobody has said otherwise or acl=open. */
bool mrt_zk_access_is_open(const struct mrt_zk_access *access);
/* For the directories above: others may make locks of their own there. */
const struct ACL_vector *mrt_zk_access_parents(const struct mrt_zk_access *access);

#endif
