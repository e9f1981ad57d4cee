/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h. */
#include "store/nats/stream.h"

#include "store/nats/code.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DESCRIPTION "mortise locks 1"
#define NOT_CLUSTERED 10074
#define NAME_IN_USE 10058

static const char *name_of(const struct mrt_nats_streams *streams)
{
    const struct mrt_nats_address *address = streams->wire->address;
    return streams->sessions ? address->sessions : address->tickets;
}

static int64_t max_age(const struct mrt_nats_address *address, bool sessions)
{
    return sessions ? address->lease + MRT_NATS_SLACK : 0;
}

static void finish(struct mrt_nats_streams *streams, const struct mrt_nats_reply *reply)
{
    streams->done(streams->argument, reply);
}

static void refuse(struct mrt_nats_streams *streams, int error, const char *why)
{
    snprintf(streams->text, sizeof streams->text, "the stream %.100s %s", name_of(streams), why);
    const struct mrt_nats_reply reply = {
        .outcome = MRT_NATS_REFUSED, .error = error, .text = streams->text};
    finish(streams, &reply);
}

/* The fault of a stream; NULL: it is as this store makes it. */
static const char *fault_of(const struct mrt_nats_streams *streams, struct json_object *config)
{
    if (strcmp(mrt_nats_string(config, "description"), DESCRIPTION) != 0)
        return "is not mortise's: use another namespace=";
    if (mrt_nats_number(config, "max_msgs_per_subject") != 1 ||
        strcmp(mrt_nats_string(config, "retention"), "limits") != 0 ||
        json_object_get_int64(mrt_nats_member(config, "max_msgs")) > 0 ||
        json_object_get_int64(mrt_nats_member(config, "max_bytes")) > 0)
        return "has been changed: it keeps messages otherwise than locks need";
    if ((int64_t)mrt_nats_number(config, "max_age") !=
        max_age(streams->wire->address, streams->sessions))
        return "has been changed: its max_age is not that of the lease";
    if (strcmp(mrt_nats_string(config, "storage"), "file") != 0)
        return "has been changed: its storage is not file";
    return NULL;
}

static void found(void *argument, const struct mrt_nats_reply *reply);

static void next_stream(struct mrt_nats_streams *streams, const struct mrt_nats_reply *reply)
{
    static const struct mrt_nats_reply no_memory = {
        .outcome = MRT_NATS_REFUSED, .error = MORTISE_ENOMEM, .text = "no memory for a request"};
    struct json_object *config = mrt_nats_member(reply->json, "config");
    const char *fault = fault_of(streams, config);
    if (fault) {
        refuse(streams, MORTISE_ESTORE, fault);
        return;
    }
    if (!streams->sessions)
        streams->found = mrt_nats_number(config, "num_replicas");
    if (streams->sessions) {
        finish(streams, reply);
        return;
    }
    streams->sessions = true;
    if (!mrt_nats_streams_check(streams))
        finish(streams, &no_memory);
}

static bool create(struct mrt_nats_streams *streams);

static void created(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_streams *streams = argument;
    if (reply->outcome == MRT_NATS_DONE) {
        next_stream(streams, reply);
    } else if (reply->code == NOT_CLUSTERED && streams->replicas == 3 &&
               streams->wire->address->replicas == 0) {
        streams->replicas = 1;
        if (!create(streams))
            refuse(streams, MORTISE_ENOMEM, "cannot be made: no memory");
    } else if (reply->code == NAME_IN_USE) {
        if (!mrt_nats_streams_check(streams)) /* another client has just made it */
            refuse(streams, MORTISE_ENOMEM, "cannot be read: no memory");
    } else if (reply->outcome == MRT_NATS_REFUSED) {
        snprintf(streams->text, sizeof streams->text,
                 "the stream %.80s cannot be made with %" PRIu64 " replicas: %.100s",
                 name_of(streams), streams->replicas, reply->text);
        const struct mrt_nats_reply refusal = {
            .outcome = MRT_NATS_REFUSED, .error = reply->error, .text = streams->text};
        finish(streams, &refusal);
    } else {
        finish(streams, reply);
    }
}

void mrt_nats_stream_request(const struct mrt_nats_address *address, bool sessions,
                             uint64_t replicas, char subject[MRT_NATS_REQUEST_SIZE],
                             char json[MRT_NATS_REQUEST_SIZE])
{
    char subjects[4 * MRT_NATS_BASE_SIZE];
    const char *base = address->base, *name = sessions ? address->sessions : address->tickets;
    snprintf(subject, MRT_NATS_REQUEST_SIZE, "$JS.API.STREAM.CREATE.%s", name);
    if (sessions)
        snprintf(subjects, sizeof subjects, "\"%s.s.%" PRId64 ".*\"", base,
                 (int64_t)(address->lease / MRT_MILLISECOND));
    else
        snprintf(subjects, sizeof subjects, "\"%s.q.>\",\"%s.a.>\",\"%s.c.>\"", base, base, base);
    snprintf(json, MRT_NATS_REQUEST_SIZE,
             "{\"name\":\"%s\",\"description\":\"" DESCRIPTION
             "\",\"subjects\":[%s],\"retention\":\"limits\",\"max_consumers\":-1,\"max_msgs\":-1,"
             "\"max_bytes\":-1,\"max_msg_size\":-1,\"max_age\":%" PRId64
             ",\"max_msgs_per_subject\":1,\"storage\":\"file\",\"discard\":\"old\","
             "\"num_replicas\":%" PRIu64 ",\"duplicate_window\":100000000}",
             name, subjects, max_age(address, sessions), replicas);
}

static bool create(struct mrt_nats_streams *streams)
{
    char subject[MRT_NATS_REQUEST_SIZE], json[MRT_NATS_REQUEST_SIZE];
    struct mrt_nats_wire *wire = streams->wire;
    mrt_nats_stream_request(wire->address, streams->sessions, streams->replicas, subject, json);
    return mrt_nats_publish(wire, subject, MRT_NATS_ANY, json, strlen(json), wire->address->connect,
                            created, streams);
}

static void found(void *argument, const struct mrt_nats_reply *reply)
{
    struct mrt_nats_streams *streams = argument;
    if (reply->outcome == MRT_NATS_DONE) {
        next_stream(streams, reply);
    } else if (reply->code == MRT_NATS_NO_STREAM) {
        const uint64_t wanted = streams->wire->address->replicas;
        streams->replicas = wanted > 0 ? wanted : 3;
        if (!create(streams))
            refuse(streams, MORTISE_ENOMEM, "cannot be made: no memory");
    } else {
        finish(streams, reply);
    }
}

bool mrt_nats_streams_check(struct mrt_nats_streams *streams)
{
    char subject[MRT_NATS_BASE_SIZE + 64];
    struct mrt_nats_wire *wire = streams->wire;
    snprintf(subject, sizeof subject, "$JS.API.STREAM.INFO.%s", name_of(streams));
    return mrt_nats_publish(wire, subject, MRT_NATS_ANY, "", 0, wire->address->connect, found,
                            streams);
}
