/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies are JSON: of a publish the sequence that it got, of the interface below $JS.API an
 * object; either has an "error" if nothing was done. Numbers are JetStream's err_code.
 *
 * A reply that does not fit its request proves nothing: an acknowledgement without a sequence, or a
 * message that was not asked for, such as one before the sequence from which a walk reads.
 */
#include "store/nats/code.h"

#include <ctype.h>
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
    struct json_object *member = mrt_nats_member(json, name);
    int64_t number = json_object_is_type(member, json_type_int) ? json_object_get_int64(member) : 0;
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

static void fail(struct mrt_nats_reply *reply)
{
    *reply = (struct mrt_nats_reply){.outcome = MRT_NATS_UNKNOWN,
                                     .error = MORTISE_ESTORE,
                                     .text = "the answer is not JetStream's"};
}

/* "wrong last sequence: NUMBER" */
static bool read_newest(const char *text, uint64_t *sequence)
{
    const char *colon = strrchr(text, ':');
    char *end;
    if (!colon || colon[1] != ' ' || !isdigit((unsigned char)colon[2]))
        return false;
    *sequence = strtoull(colon + 2, &end, 10);
    return !*end && *sequence <= MRT_NATS_SEQUENCE_MAX;
}

static void read_error(struct json_object *error, struct mrt_nats_reply *reply)
{
    const char *text = mrt_nats_string(error, "description");
    reply->code = (int)mrt_nats_number(error, "err_code");
    reply->error = error_of(reply->code);
    reply->outcome = reply->error == MORTISE_EUNREACHABLE ? MRT_NATS_AWAY : MRT_NATS_REFUSED;
    reply->text = text;
    if (reply->code == MRT_NATS_WRONG_SEQUENCE && !read_newest(text, &reply->sequence))
        fail(reply);
}

/* "*" stands for one part of a subject. */
static bool matches(const char *filter, size_t length, const char *subject)
{
    for (const char *end = filter + length; filter < end; filter++) {
        size_t part = *filter == '*' ? strcspn(subject, ".") : *filter == *subject;
        if (part == 0)
            return false;
        subject += part;
    }
    return !*subject;
}

/* The request is api.c's. */
static bool is_found(const char *request, struct json_object *message)
{
    static const char by_sequence[] = "{\"seq\":", by_subject[] = "_by_subj\":\"";
    const char *filter = strstr(request, by_subject) + sizeof by_subject - 1;
    uint64_t sequence = mrt_nats_number(message, "seq"), least = 1;
    if (strncmp(request, by_sequence, sizeof by_sequence - 1) == 0)
        least = strtoull(request + sizeof by_sequence - 1, NULL, 10);
    return sequence > 0 && sequence >= least && sequence <= MRT_NATS_SEQUENCE_MAX &&
           matches(filter, strcspn(filter, "\""), mrt_nats_string(message, "subject"));
}

static bool is_answer(const struct mrt_nats_call *call, struct json_object *json)
{
    static const char interface[] = "$JS.API.", get[] = "$JS.API.STREAM.MSG.GET.";
    uint64_t sequence = mrt_nats_number(json, "seq");
    if (!json_object_is_type(json, json_type_object))
        return false;
    if (strncmp(call->subject, get, sizeof get - 1) == 0)
        return is_found(call->bytes, mrt_nats_member(json, "message"));
    return strncmp(call->subject, interface, sizeof interface - 1) == 0 ||
           (sequence > 0 && sequence <= MRT_NATS_SEQUENCE_MAX);
}

struct json_object *mrt_nats_reply_read(const struct mrt_nats_call *call, const char *bytes,
                                        size_t size, struct mrt_nats_reply *reply)
{
    struct json_tokener *parser = json_tokener_new_ex(DEPTH_MAX);
    struct json_object *json = NULL;
    *reply = (struct mrt_nats_reply){.outcome = MRT_NATS_DONE};
    if (parser && size > 0 && size < INT32_MAX)
        json = json_tokener_parse_ex(parser, bytes, (int)size);
    struct json_object *error = mrt_nats_member(json, "error");
    if (error) {
        read_error(error, reply);
    } else if (is_answer(call, json)) {
        reply->json = json;
        reply->sequence = mrt_nats_number(json, "seq");
    } else {
        fail(reply);
    }
    if (parser)
        json_tokener_free(parser);
    return json;
}
