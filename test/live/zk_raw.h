/* SPDX-License-Identifier: Apache-2.0 */
/* ZooKeeper by hand: a session of the test's own, one request after the other, to do things that
 * mortise never does. */
#ifndef TEST_ZK_RAW_H
#define TEST_ZK_RAW_H

#include <stdbool.h>
#include <stdint.h>

struct zk_raw;

struct zk_raw *zk_raw_open(uint16_t port);
void zk_raw_close(struct zk_raw *raw);
/* Codes of the client library. */
int zk_raw_create(struct zk_raw *raw, const char *path, bool ephemeral);
int zk_raw_delete(struct zk_raw *raw, const char *path);
int zk_raw_set(struct zk_raw *raw, const char *path);
int zk_raw_exists(struct zk_raw *raw, const char *path);
/* Session that owns an ephemeral node; 0: of no session; -1: no such node. */
int64_t zk_raw_owner(struct zk_raw *raw, const char *path);
/* How many children there are. */
int zk_raw_children(struct zk_raw *raw, const char *path);
/* One of the children that were counted last. */
const char *zk_raw_name(const struct zk_raw *raw, int index);
/* Nobody may create or delete below it, or read it, until it is opened again. */
int zk_raw_protect(struct zk_raw *raw, const char *path, bool protect);
/* An ephemeral node in the directory, called `prefix` and the server's number; its name. */
int zk_raw_queue(struct zk_raw *raw, const char *directory, const char *prefix, char node[128]);
/* Whether it is there, and a watch on it: zk_raw_changed waits for its event. */
bool zk_raw_watch(struct zk_raw *raw, const char *path);
void zk_raw_changed(struct zk_raw *raw);
int64_t zk_raw_session(struct zk_raw *raw);
/* The child with the sequence number that is the `place`th from below; false: none. */
bool zk_raw_child(struct zk_raw *raw, const char *path, int place, char child[128]);

#endif
