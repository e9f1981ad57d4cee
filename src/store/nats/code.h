/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of a server's reply. */
#ifndef MRT_STORE_NATS_CODE_H
#define MRT_STORE_NATS_CODE_H

#include "store/nats/wire.h"

/* Reads a reply, whose text stays valid as long as the object that is returned. */
struct json_object *mrt_nats_reply_read(const char *bytes, size_t size,
                                        struct mrt_nats_reply *reply);
struct json_object *mrt_nats_member(struct json_object *json, const char *name);
uint64_t mrt_nats_number(struct json_object *json, const char *name);
/* "" if there is none. */
const char *mrt_nats_string(struct json_object *json, const char *name);

#endif
