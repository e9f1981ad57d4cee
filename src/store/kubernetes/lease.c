/* SPDX-License-Identifier: Apache-2.0 */
/* See lease.h. */
#include "store/kubernetes/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IDENTITY "mortise_"
#define IDENTITY_SIZE (sizeof IDENTITY + MRT_ID_TEXT_SIZE)
#define TIME_SIZE 40
#define SECONDS_MAX INT32_MAX
#define TRANSITIONS_MAX INT32_MAX /* a field of 32 bits, as the one before */

/* ------------------------------------------------------------------ reading */

static struct json_object *spec_of(struct json_object *json)
{
    return mrt_rest_member(json, "spec");
}

static struct json_object *annotations_of(struct json_object *json)
{
    return mrt_rest_member(mrt_rest_member(json, "metadata"), "annotations");
}

/* A server of another kind, or a proxy, may send any number. */
static int64_t transitions_of(struct json_object *json)
{
    int64_t transitions = mrt_rest_number(spec_of(json), "leaseTransitions");
    return transitions < 0 ? 0 : transitions > TRANSITIONS_MAX ? TRANSITIONS_MAX : transitions;
}

void mrt_k8s_lease_set(struct mrt_k8s_lease *lease, struct json_object *json, mrt_time now)
{
    int64_t next = json ? transitions_of(json) + 1 : 0;
    bool same = lease->json && json && json_object_equal(spec_of(lease->json), spec_of(json));
    struct json_object *old = lease->json;
    lease->json = json_object_get(json);
    json_object_put(old);
    lease->known = true;
    lease->seen = same ? lease->seen : now;
    if (next > lease->floor)
        lease->floor = next;
}

mrt_time mrt_k8s_lease_end(const struct mrt_k8s_lease *lease)
{
    int64_t seconds = mrt_rest_number(spec_of(lease->json), "leaseDurationSeconds");
    if (!*mrt_k8s_holder(lease->json))
        return 0;
    if (seconds <= 0)
        return mrt_time_add(lease->seen, lease->unstated);
    return mrt_time_add(lease->seen, (seconds < SECONDS_MAX ? seconds : SECONDS_MAX) * MRT_SECOND);
}

const char *mrt_k8s_holder(struct json_object *json)
{
    return mrt_rest_string(spec_of(json), "holderIdentity");
}

static void write_identity(struct mrt_id ticket, char text[IDENTITY_SIZE])
{
    char id[MRT_ID_TEXT_SIZE];
    mrt_id_format(ticket, id);
    snprintf(text, IDENTITY_SIZE, IDENTITY "%s", id);
}

bool mrt_k8s_is_holder(struct json_object *json, struct mrt_id ticket)
{
    char identity[IDENTITY_SIZE];
    write_identity(ticket, identity);
    return strcmp(mrt_k8s_holder(json), identity) == 0;
}

bool mrt_k8s_ticket_of(const char *holder, struct mrt_id *ticket)
{
    size_t skipped = sizeof IDENTITY - 1;
    return strncmp(holder, IDENTITY, skipped) == 0 && mrt_id_parse(holder + skipped, ticket);
}

bool mrt_k8s_is_lease(struct json_object *json, const char *name)
{
    struct json_object *metadata = mrt_rest_member(json, "metadata");
    return strcmp(mrt_rest_string(json, "kind"), "Lease") == 0 &&
           strcmp(mrt_rest_string(metadata, "name"), name) == 0;
}

bool mrt_k8s_is_list(struct json_object *json)
{
    return strcmp(mrt_rest_string(json, "kind"), "LeaseList") == 0;
}

struct json_object *mrt_k8s_item(struct json_object *list, const char *name)
{
    struct json_object *items = mrt_rest_member(list, "items");
    size_t count =
        json_object_is_type(items, json_type_array) ? json_object_array_length(items) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *item = json_object_array_get_idx(items, i);
        if (strcmp(mrt_rest_string(mrt_rest_member(item, "metadata"), "name"), name) == 0)
            return item;
    }
    return NULL;
}

const char *mrt_k8s_version(struct json_object *json)
{
    return mrt_rest_string(mrt_rest_member(json, "metadata"), "resourceVersion");
}

uint64_t mrt_k8s_fence(struct json_object *json)
{
    return (uint64_t)transitions_of(json) + 1;
}

bool mrt_k8s_is_used_up(struct json_object *json)
{
    return transitions_of(json) == TRANSITIONS_MAX;
}

const char *mrt_k8s_strategy(struct json_object *json)
{
    return mrt_rest_string(spec_of(json), "strategy");
}

int64_t mrt_k8s_since(struct json_object *json)
{
    struct tm parts = {0};
    const char *text = mrt_rest_string(spec_of(json), "acquireTime");
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    time_t seconds = rest ? timegm(&parts) : 0;
    long fraction = rest && *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    return seconds <= 0 ? 0 : (int64_t)seconds * 1000 + fraction / 1000;
}

static const char *annotation(struct json_object *json, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, MRT_K8S_PREFIX "%s", name);
    return mrt_rest_string(annotations_of(json), full);
}

const char *mrt_k8s_full_name(struct json_object *json)
{
    const char *full = annotation(json, "name");
    return *full ? full : mrt_rest_string(mrt_rest_member(json, "metadata"), "name");
}

const char *mrt_k8s_note(struct json_object *json, const char *name)
{
    const char *holder = mrt_k8s_holder(json);
    return *holder && strcmp(annotation(json, "holder"), holder) == 0 ? annotation(json, name) : "";
}

uint64_t mrt_k8s_revoked(struct json_object *json)
{
    return strtoull(mrt_k8s_note(json, "revoke"), NULL, 10);
}

char *mrt_k8s_value(struct json_object *json, size_t *size)
{
    const char *holder = mrt_k8s_holder(json);
    if (strcmp(annotation(json, "holder"), holder) == 0)
        return mrt_rest_bytes(annotations_of(json), MRT_K8S_PREFIX "value", size);
    *size = strlen(holder);
    return strdup(holder);
}

/* ------------------------------------------------------------------ writing */

static struct json_object *checked(struct json_object *json, bool fine)
{
    if (fine)
        return json;
    json_object_put(json);
    return NULL;
}

/* Adds a member; takes the value. False: no memory. */
static bool add(struct json_object *object, const char *name, struct json_object *value)
{
    if (value && object && json_object_object_add(object, name, value) == 0)
        return true;
    json_object_put(value);
    return false;
}

static bool add_text(struct json_object *object, const char *name, const char *text)
{
    return add(object, name, json_object_new_string(text));
}

static bool add_type(struct json_object *json)
{
    return add_text(json, "apiVersion", "coordination.k8s.io/v1") &&
           add_text(json, "kind", "Lease");
}

/* An item of a list does not say what it is. */
static struct json_object *copy(struct json_object *old)
{
    struct json_object *json = NULL;
    return json_object_deep_copy(old, &json, NULL) == 0 ? checked(json, add_type(json)) : NULL;
}

/* The object of this name in another, which is made if it is not there; NULL: no memory. */
static struct json_object *part_of(struct json_object *object, const char *name)
{
    struct json_object *part = mrt_rest_member(object, name);
    if (json_object_is_type(part, json_type_object))
        return part;
    return add(object, name, json_object_new_object()) ? mrt_rest_member(object, name) : NULL;
}

static bool add_note(struct json_object *json, const char *name, const char *text)
{
    char full[64];
    struct json_object *annotations = part_of(part_of(json, "metadata"), "annotations");
    snprintf(full, sizeof full, MRT_K8S_PREFIX "%s", name);
    if (annotations && !*text)
        json_object_object_del(annotations, full);
    return annotations && (!*text || add_text(annotations, full, text));
}

/* The wall clock's time, in ns since 1970. */
static int64_t wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * MRT_SECOND + now.tv_nsec;
}

int64_t mrt_k8s_rising_time(int64_t *ahead)
{
    mrt_time now = mrt_time_now();
    int64_t lead = wall_now() - now;
    if (lead > *ahead)
        *ahead = lead;
    return now + *ahead;
}

static bool add_time(struct json_object *json, const char *name, int64_t time)
{
    char text[TIME_SIZE], whole[TIME_SIZE];
    time_t seconds = (time_t)(time / MRT_SECOND);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof text, "%.24s.%06dZ", whole, (int)(time / 1000 % 1000000));
    return add_text(part_of(json, "spec"), name, text);
}

static bool add_number(struct json_object *json, const char *name, int64_t number)
{
    return add(part_of(json, "spec"), name, json_object_new_int64(number));
}

/* Somebody has deleted the Lease to begin anew if no transition was left. */
static struct json_object *make(const char *name, int64_t floor)
{
    int64_t first = floor <= TRANSITIONS_MAX ? floor : 0;
    struct json_object *json = json_object_new_object();
    bool fine = add_type(json) && add_text(part_of(json, "metadata"), "name", name) &&
                add_number(json, "leaseTransitions", first);
    return checked(json, fine);
}

static bool add_value(struct json_object *json, const struct mrt_k8s_holding *holding)
{
    struct mrt_rest_text text = {0};
    if (holding->value)
        mrt_rest_add_base64(&text, holding->value, holding->value_size);
    bool fine = !text.failed && add_note(json, "value", text.bytes ? text.bytes : "");
    mrt_rest_text_free(&text);
    return fine;
}

struct json_object *mrt_k8s_taken(struct json_object *old, const char *name, int64_t floor,
                                  const struct mrt_k8s_holding *holding)
{
    char identity[IDENTITY_SIZE];
    struct json_object *json = old ? copy(old) : make(name, floor);
    int64_t transitions = transitions_of(json);
    write_identity(holding->ticket, identity);
    bool fine = json && add_text(part_of(json, "spec"), "holderIdentity", identity) &&
                (!old || add_number(json, "leaseTransitions", transitions + 1)) &&
                add_time(json, "acquireTime", holding->time) &&
                add_text(part_of(part_of(json, "metadata"), "labels"), MRT_K8S_LABEL, "1") &&
                add_note(json, "name", holding->full) && add_note(json, "holder", identity) &&
                add_note(json, "kind", holding->kind) && add_note(json, "owner", holding->owner) &&
                add_note(json, "revoke", "");
    struct json_object *taken = fine ? mrt_k8s_renewed(json, holding) : NULL;
    json_object_put(json);
    return taken;
}

struct json_object *mrt_k8s_renewed(struct json_object *old, const struct mrt_k8s_holding *holding)
{
    struct json_object *json = copy(old);
    return checked(json, json && add_time(json, "renewTime", holding->time) &&
                             add_value(json, holding) &&
                             add_number(json, "leaseDurationSeconds", holding->seconds));
}

struct json_object *mrt_k8s_released(struct json_object *old)
{
    int64_t now = wall_now();
    struct json_object *json = copy(old);
    return checked(json, json && add_text(part_of(json, "spec"), "holderIdentity", "") &&
                             add_number(json, "leaseDurationSeconds", 1) &&
                             add_time(json, "renewTime", now) &&
                             add_time(json, "acquireTime", now));
}

struct json_object *mrt_k8s_empty(const char *name, int64_t floor)
{
    struct json_object *json = make(name, floor);
    struct json_object *empty = json ? mrt_k8s_released(json) : NULL;
    json_object_put(json);
    return empty;
}

struct json_object *mrt_k8s_revoking(struct json_object *old)
{
    char count[24];
    struct json_object *json = copy(old);
    snprintf(count, sizeof count, "%" PRIu64, mrt_k8s_revoked(old) + 1);
    return checked(json, json && add_note(json, "revoke", count));
}
