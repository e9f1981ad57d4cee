/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a fake Redis server: keys with strings, hashes and sorted sets, some of them with a
 * time to live; and the replies that it makes, in the protocol's bytes.
 *
 * A hash is in the order in which its fields came, a sorted set in its own; both are so short that
 * they are searched from the front.
 */
#ifndef SIM_REDIS_DATA_H
#define SIM_REDIS_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
    const char *bytes;
    size_t size;
};

struct slice slice_of(const char *text);
bool slice_is(struct slice slice, const char *text);
bool slice_equal(struct slice a, struct slice b);
/* A copy with a null byte behind it. */
char *slice_copy(struct slice slice);
/* Of what is no number it is 0. */
double slice_number(struct slice slice);

/* ------------------------------------------------------------------ keys */

enum redis_type { REDIS_STRING, REDIS_HASH, REDIS_ZSET };

struct redis_field {
    struct slice name, value; /* owned; of a sorted set there is no value */
    double score;
};

struct redis_key {
    struct redis_key *next;
    struct slice name; /* owned */
    enum redis_type type;
    struct redis_field *fields; /* of a string one, whose value it is */
    int count, room;
    int64_t ends;         /* in ms, by the server's clock; 0: never */
    const void *setter;   /* of a string: the client that SET it */
    uint64_t first, last; /* and the numbers that it drew behind it */
};

struct redis_data {
    struct redis_key *keys;
};

/* NULL: there is none at that time. */
struct redis_key *redis_find(struct redis_data *data, struct slice name, int64_t now);
/* Makes it if need be. A key of another type ends the simulator. */
struct redis_key *redis_have(struct redis_data *data, struct slice name, enum redis_type type,
                             int64_t now);
void redis_delete(struct redis_data *data, struct redis_key *key);
void redis_delete_all(struct redis_data *data);

/* The index of a field; -1: there is none. */
int redis_field(const struct redis_key *key, struct slice name);
/* Of a string the name is empty. Whether the field is new. */
bool redis_set(struct redis_key *key, struct slice name, struct slice value);
/* Of a sorted set. Whether the member is new. */
bool redis_rank(struct redis_key *key, struct slice name, double score);
/* Takes a field out, and the key if that was the last. */
void redis_drop(struct redis_data *data, struct redis_key *key, int index);

/* ------------------------------------------------------------------ replies */

struct reply {
    char *bytes;
    size_t used, room;
};

void reply_bytes(struct reply *reply, const char *bytes, size_t size);
void reply_mark(struct reply *reply, char mark, int64_t number); /* ":1", "*2" and so on */
void reply_text(struct reply *reply, struct slice text);
void reply_number_text(struct reply *reply, double number);
void reply_nothing(struct reply *reply);
/* "+OK", "-ERR ...": the mark and the line. */
void reply_line(struct reply *reply, char mark, const char *line);

#endif
