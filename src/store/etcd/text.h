/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to etcd's JSON gateway as texts, and values in its replies. Keys and values are bytes,
 * which stand in base64 there; 64-bit numbers are strings of digits.
 */
#ifndef MRT_STORE_ETCD_TEXT_H
#define MRT_STORE_ETCD_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrt_etcd_text {
    char *bytes; /* ends with a NUL; NULL: empty */
    size_t length, room;
    bool failed; /* no memory */
};

__attribute__((format(printf, 2, 3))) void mrt_etcd_add(struct mrt_etcd_text *text,
                                                        const char *format, ...);
void mrt_etcd_text_free(struct mrt_etcd_text *text);
/* A member of an object: "name":"bytes in base64". */
void mrt_etcd_add_bytes(struct mrt_etcd_text *text, const char *name, const void *bytes,
                        size_t size);
/* The same of a text as it is, escaped as JSON has it. */
void mrt_etcd_add_string(struct mrt_etcd_text *text, const char *name, const char *value);

/* Conditions of a transaction, and its operations; each puts a comma before itself if it is not the
   first in its list. */
void mrt_etcd_if(struct mrt_etcd_text *text, const char *key, const char *target, int64_t value);
/* Every key below `directory` has a number of this kind that is `result` ("EQUAL", "LESS"). */
void mrt_etcd_if_all(struct mrt_etcd_text *text, const char *directory, const char *target,
                     const char *result, int64_t value);
void mrt_etcd_put(struct mrt_etcd_text *text, const char *key, const void *value, size_t size,
                  int64_t lease);
/* Keeps the key's lease. */
void mrt_etcd_put_again(struct mrt_etcd_text *text, const char *key, const void *value,
                        size_t size);
void mrt_etcd_get(struct mrt_etcd_text *text, const char *key);
/* All keys below `directory`, which ends with a slash, in the order in which they were made. */
void mrt_etcd_get_all(struct mrt_etcd_text *text, const char *directory);
/* The same as a request of its own. */
void mrt_etcd_range(struct mrt_etcd_text *text, const char *directory);
void mrt_etcd_delete(struct mrt_etcd_text *text, const char *key);

/* The key and the end of the range of keys that begin with `prefix`. */
void mrt_etcd_add_prefix(struct mrt_etcd_text *text, const char *prefix);
/* The end alone. */
void mrt_etcd_add_end(struct mrt_etcd_text *text, const char *prefix);

/* A member of an object, or NULL. */
struct json_object *mrt_etcd_member(struct json_object *object, const char *name);
/* A number, also one in a string; 0: there is none. */
int64_t mrt_etcd_number(struct json_object *object, const char *name);
/* "" if there is none. */
const char *mrt_etcd_string(struct json_object *object, const char *name);
/* Decodes a member in base64: bytes with a NUL behind, to be freed. NULL: no memory, or malformed.
 */
char *mrt_etcd_bytes(struct json_object *object, const char *name, size_t *size);

#endif
