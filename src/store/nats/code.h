/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of a server's reply. */
#ifndef MRT_STORE_NATS_CODE_H
#define MRT_STORE_NATS_CODE_H

#include "store/nats/wire.h"

#define MRT_NATS_FENCE_BITS 12 /* of a fence, below the sequence */
#define MRT_NATS_SEQUENCE_MAX ((UINT64_C(1) << (62 - MRT_NATS_FENCE_BITS)) - 1)

/* Reads the reply to a request, of which it has to be an answer. The reply's text stays valid as
   long as the object that is returned. */
struct json_object *mrt_nats_reply_read(const struct mrt_nats_call *call, const char *bytes,
                                        size_t size, struct mrt_nats_reply *reply);
struct json_object *mrt_nats_member(struct json_object *json, const char *name);
/* 0: there is none above 0. */
uint64_t mrt_nats_number(struct json_object *json, const char *name);
/* "" if there is none. */
const char *mrt_nats_string(struct json_object *json, const char *name);

#endif
