/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies are JSON: of a publish the sequence that it got, of the interface below $JS.API an
 * object; either has an "error" if nothing was done. Numbers are JetStream's err_code.
 */
#include "store/nats/code.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16

static const struct {
    int code, error;
} table[] = {
    {10008, MORTISE_EUNREACHABLE}, /* temporarily unavailable */
    {10009, MORTISE_EUNREACHABLE}, /* the cluster has no leader */
    {10035, MORTISE_EPERMISSION},  /* no account */
    {10039, MORTISE_EPERMISSION},  /* JetStream is not enabled for the account */
};

struct json_object *mrt_nats_member(struct json_object *json, const char *name)
{
    struct json_object *member = NULL;
    if (json_object_is_type(json, json_type_object))
        json_object_object_get_ex(json, name, &member);
    return member;
}

uint64_t mrt_nats_number(struct json_object *json, const char *name)
{
    int64_t number = json_object_get_int64(mrt_nats_member(json, name));
    return number > 0 ? (uint64_t)number : 0;
}

const char *mrt_nats_string(struct json_object *json, const char *name)
{
    struct json_object *member = mrt_nats_member(json, name);
    return json_object_is_type(member, json_type_string) ? json_object_get_string(member) : "";
}

static int error_of(int code)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].code == code)
            return table[i].error;
    return MORTISE_ESTORE;
}

static void read_error(struct json_object *error, struct mrt_nats_reply *reply)
{
    const char *text = mrt_nats_string(error, "description");
    const char *colon = strrchr(text, ':');
    reply->code = (int)mrt_nats_number(error, "err_code");
    reply->error = error_of(reply->code);
    reply->outcome = reply->error == MORTISE_EUNREACHABLE ? MRT_NATS_AWAY : MRT_NATS_REFUSED;
    reply->text = text;
    if (reply->code == MRT_NATS_WRONG_SEQUENCE && colon)
        reply->sequence = strtoull(colon + 1, NULL, 10);
}

struct json_object *mrt_nats_reply_read(const char *bytes, size_t size,
                                        struct mrt_nats_reply *reply)
{
    struct json_tokener *parser = json_tokener_new_ex(DEPTH_MAX);
    struct json_object *json = NULL;
    *reply = (struct mrt_nats_reply){.outcome = MRT_NATS_DONE};
    if (parser && size > 0 && size < INT32_MAX)
        json = json_tokener_parse_ex(parser, bytes, (int)size);
    struct json_object *error = mrt_nats_member(json, "error");
    if (error) {
        read_error(error, reply);
    } else if (json_object_is_type(json, json_type_object)) {
        reply->json = json;
        reply->sequence = mrt_nats_number(json, "seq");
    } else {
        reply->outcome = MRT_NATS_UNKNOWN;
        reply->error = MORTISE_ESTORE;
        reply->text = "the answer is not JetStream's";
    }
    if (parser)
        json_tokener_free(parser);
    return json;
}
