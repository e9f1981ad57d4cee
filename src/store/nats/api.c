/* SPDX-License-Identifier: Apache-2.0 */
/* See api.h. Names are tokens, so they stand in JSON as they are. */
#include "store/nats/api.h"

#include "store/nats/code.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_SIZE (MRT_NATS_SUBJECT_SIZE + 128)

static bool request(struct mrt_nats_wire *wire, const char *what, const char *stream,
                    const char *json, mrt_nats_done *done, void *argument)
{
    char subject[MRT_NATS_BASE_SIZE + 64];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.%s.%s", what, stream);
    return mrt_nats_publish(wire, subject, MRT_NATS_ANY, json, strlen(json), wire->address->connect,
                            done, argument);
}

bool mrt_nats_get_next(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence,
                       const char *subject, mrt_nats_done *done, void *argument)
{
    char json[REQUEST_SIZE];
    snprintf(json, sizeof json, "{\"seq\":%" PRIu64 ",\"next_by_subj\":\"%s\"}", sequence, subject);
    return request(wire, "MSG.GET", stream, json, done, argument);
}

bool mrt_nats_get_last(struct mrt_nats_wire *wire, const char *stream, const char *subject,
                       mrt_nats_done *done, void *argument)
{
    char json[REQUEST_SIZE];
    snprintf(json, sizeof json, "{\"last_by_subj\":\"%s\"}", subject);
    return request(wire, "MSG.GET", stream, json, done, argument);
}

void mrt_nats_delete(struct mrt_nats_wire *wire, const char *stream, uint64_t sequence)
{
    char subject[MRT_NATS_BASE_SIZE + 64], json[64];
    snprintf(subject, sizeof subject, "$JS.API.STREAM.MSG.DELETE.%s", stream);
    snprintf(json, sizeof json, "{\"seq\":%" PRIu64 ",\"no_erase\":true}", sequence);
    mrt_nats_tell(wire, subject, json);
}

bool mrt_nats_message_read(const struct mrt_nats_reply *reply, struct mrt_nats_message *message)
{
    *message = (struct mrt_nats_message){.subject = NULL};
    if (reply->outcome == MRT_NATS_REFUSED && reply->code == MRT_NATS_NO_MESSAGE)
        return true;
    struct json_object *json = mrt_nats_member(reply->json, "message");
    if (reply->outcome != MRT_NATS_DONE || !json)
        return false;
    message->sequence = mrt_nats_number(json, "seq");
    message->bytes = mrt_nats_base64(mrt_nats_string(json, "data"), &message->size);
    message->subject = strdup(mrt_nats_string(json, "subject"));
    if (message->bytes && message->subject && message->sequence > 0)
        return true;
    mrt_nats_message_free(message);
    return false;
}

void mrt_nats_message_free(struct mrt_nats_message *message)
{
    free(message->subject);
    free(message->bytes);
    *message = (struct mrt_nats_message){.subject = NULL};
}

bool mrt_nats_is_gone(const struct mrt_nats_message *message, bool *for_good)
{
    size_t length = sizeof MRT_NATS_GONE - 1;
    *for_good = message->size == length;
    return message->bytes && message->size >= length &&
           memcmp(message->bytes, MRT_NATS_GONE, length) == 0;
}

void mrt_nats_subject(const struct mrt_nats_address *address, char letter, const char *token,
                      const char *last, char subject[MRT_NATS_SUBJECT_SIZE])
{
    snprintf(subject, MRT_NATS_SUBJECT_SIZE, "%s.%c.%s%s%s", address->base, letter, token,
             *last ? "." : "", last);
}

void mrt_nats_session_subject(const struct mrt_nats_address *address, uint64_t lease,
                              struct mrt_id session, char subject[MRT_NATS_SUBJECT_SIZE])
{
    char id[MRT_ID_TEXT_SIZE];
    mrt_id_format(session, id);
    snprintf(subject, MRT_NATS_SUBJECT_SIZE, "%s.s.%" PRIu64 ".%s", address->base, lease, id);
}

void mrt_nats_wake(struct mrt_nats_wire *wire, const char *token, char sign, uint64_t sequence)
{
    char subject[MRT_NATS_SUBJECT_SIZE], text[32];
    mrt_nats_subject(wire->address, 'w', token, "", subject);
    snprintf(text, sizeof text, "%c%" PRIu64, sign, sequence);
    mrt_nats_tell(wire, subject, text);
}
