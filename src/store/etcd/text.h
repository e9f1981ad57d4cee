/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to etcd's JSON gateway as texts. Keys and values are bytes, which stand in base64 there;
 * 64-bit numbers are strings of digits.
 */
#ifndef MRT_STORE_ETCD_TEXT_H
#define MRT_STORE_ETCD_TEXT_H

#include "store/rest/text.h"

/* Conditions of a transaction, and its operations; each puts a comma before itself if it is not the
   first in its list. */
void mrt_etcd_if(struct mrt_rest_text *text, const char *key, const char *target, int64_t value);
/* Every key below `directory` has a number of this kind that is `result` ("EQUAL", "LESS"). */
void mrt_etcd_if_all(struct mrt_rest_text *text, const char *directory, const char *target,
                     const char *result, int64_t value);
void mrt_etcd_put(struct mrt_rest_text *text, const char *key, const void *value, size_t size,
                  int64_t lease);
/* Keeps the key's lease. */
void mrt_etcd_put_again(struct mrt_rest_text *text, const char *key, const void *value,
                        size_t size);
void mrt_etcd_get(struct mrt_rest_text *text, const char *key);
/* All keys below `directory`, which ends with a slash, in the order in which they were made. */
void mrt_etcd_get_all(struct mrt_rest_text *text, const char *directory);
/* The same as a request of its own. */
void mrt_etcd_range(struct mrt_rest_text *text, const char *directory);
void mrt_etcd_delete(struct mrt_rest_text *text, const char *key);

/* The key and the end of the range of keys that begin with `prefix`. */
void mrt_etcd_add_prefix(struct mrt_rest_text *text, const char *prefix);
/* The end alone. */
void mrt_etcd_add_end(struct mrt_rest_text *text, const char *prefix);

#endif
