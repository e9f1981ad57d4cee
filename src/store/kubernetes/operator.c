/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mortise_list, revoke, break, server and init: calls on a wire of their own, which is waited for.
 *
 * A list of all shows the Leases with the label; without a prefix also those that other programs
 * keep. A Lease is shown with its holder until somebody else takes it: that its record is over,
 * only one who has watched it for so long could say.
 *
 * A request to give a lock up is a number in an annotation. Another program would not read it. To
 * break a lock is to write that nobody holds it; its number of transitions stays.
 */
#include "store/kubernetes/operator.h"

#include "base/name.h"
#include "store/rest/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE "500"
#define CONTINUE_MAX 1000
#define TRIES 10

struct operation {
    const struct mrt_k8s_address *address;
    struct mrt_k8s_wire wire;
    struct mrt_rest_operation ask;
};

static int open_operation(struct operation *operation, const struct mrt_k8s_address *address,
                          mrt_time timeout)
{
    *operation = (struct operation){
        .address = address,
        .ask = {.address = address->shown, .deadline = mrt_time_add(mrt_time_now(), timeout)}};
    operation->ask.wire = &operation->wire.rest;
    return mrt_k8s_wire_open(&operation->wire, address);
}

static int open_of(struct operation *operation, const struct mrt_store *port)
{
    const struct mrt_k8s_store *store = (const struct mrt_k8s_store *)port;
    return open_operation(operation, &store->address, store->timeout);
}

static void close_operation(struct operation *operation)
{
    mrt_rest_operation_end(&operation->ask);
    mrt_k8s_wire_close(&operation->wire);
}

static int say_foreign(const struct operation *operation)
{
    return mrt_error(MORTISE_ESTORE, "Kubernetes: %s: the answer is no Lease",
                     operation->address->shown);
}

static int read_leases(struct operation *operation, const char *name, const char *query)
{
    char target[MRT_K8S_TARGET_SIZE];
    mrt_k8s_target(operation->address, name, query, target);
    const struct mrt_rest_request request = {.method = "GET", .path = target};
    int error = mrt_rest_ask(&operation->ask, request, NULL);
    struct json_object *json = operation->ask.json;
    bool fine = name ? mrt_k8s_is_lease(json, name) : mrt_k8s_is_list(json);
    return error || fine ? error : say_foreign(operation);
}

/* ------------------------------------------------------------------ the list */

struct listing {
    const char *name, *prefix;
    mrt_listed_callback callback;
    void *argument;
};

/* The lock of this Lease, if it is one that is listed; NULL: it is not. */
static const char *lock_of(struct json_object *json, const struct listing *listing)
{
    char lease[MRT_K8S_NAME_SIZE];
    const char *full = mrt_k8s_full_name(json);
    const char *called = mrt_rest_string(mrt_rest_member(json, "metadata"), "name");
    bool wanted = listing->name ? strcmp(full, listing->name) == 0
                                : strncmp(full, listing->prefix, strlen(listing->prefix)) == 0;
    if (!wanted || strlen(full) >= MRT_FULL_NAME_SIZE || !*mrt_k8s_holder(json))
        return NULL;
    mrt_k8s_name(full, lease); /* anybody may write an annotation */
    return strcmp(lease, called) == 0 ? full : NULL;
}

/* False: the callback wants no more. */
static bool show(struct json_object *json, const struct listing *listing)
{
    char claim[MRT_CLAIM_SIZE];
    struct mrt_id ticket;
    const char *full = lock_of(json, listing), *holder = mrt_k8s_holder(json);
    const char *kind = mrt_k8s_note(json, "kind");
    if (!full)
        return true;
    bool ours = *kind && mrt_k8s_ticket_of(holder, &ticket);
    if (ours)
        mrt_claim_format(ticket, claim);
    const struct mrt_listed listed = {
        .entry = {.size = sizeof(mortise_entry),
                  .name = full,
                  .kind = ours ? kind : "exclusive",
                  .label = ours ? mrt_k8s_note(json, "owner") : holder,
                  .fence = mrt_k8s_fence(json),
                  .since_wall_ms = mrt_k8s_since(json),
                  .weight = 1,
                  .capacity = 1},
        .claim = ours ? claim : holder};
    return listing->callback(listing->argument, &listed) == 0;
}

static bool show_page(struct json_object *json, const struct listing *listing)
{
    struct json_object *items = mrt_rest_member(json, "items");
    size_t count =
        json_object_is_type(items, json_type_array) ? json_object_array_length(items) : 0;
    for (size_t i = 0; i < count; i++)
        if (!show(json_object_array_get_idx(items, i), listing))
            return false;
    return true;
}

static int list_all(struct operation *operation, const struct listing *listing)
{
    char query[CONTINUE_MAX + 128], from[CONTINUE_MAX] = "";
    for (bool more = true; more;) {
        snprintf(query, sizeof query, "limit=" PAGE "%s%s%s",
                 *listing->prefix ? "&labelSelector=mortise.dev%2Flock%3D1" : "",
                 *from ? "&continue=" : "", from);
        int error = read_leases(operation, NULL, query);
        if (error)
            return error;
        more = show_page(operation->ask.json, listing);
        const char *next =
            mrt_rest_string(mrt_rest_member(operation->ask.json, "metadata"), "continue");
        if (strlen(next) >= sizeof from || strpbrk(next, "&#?% "))
            return mrt_error(MORTISE_ESTORE, "Kubernetes: %s: the list does not go on",
                             operation->address->shown);
        snprintf(from, sizeof from, "%s", next);
        more = more && *from;
    }
    return MORTISE_OK;
}

static int list_one(struct operation *operation, const struct listing *listing)
{
    char lease[MRT_K8S_NAME_SIZE];
    mrt_k8s_name(listing->name, lease);
    int error = read_leases(operation, lease, "");
    if (error == MORTISE_OK)
        show(operation->ask.json, listing);
    return error == MORTISE_ENOTHELD ? MORTISE_OK : error;
}

int mrt_k8s_list(struct mrt_store *port, const char *name, const char *prefix,
                 mrt_listed_callback callback, void *argument)
{
    struct operation operation;
    const struct listing listing = {name, prefix ? prefix : "", callback, argument};
    int error = open_of(&operation, port);
    if (error == MORTISE_OK)
        error = name ? list_one(&operation, &listing) : list_all(&operation, &listing);
    close_operation(&operation);
    return error;
}

/* ------------------------------------------------------------- revoke, break */

typedef struct json_object *changer(struct json_object *old);

static int write_lease(struct operation *operation, const char *lease, struct json_object *json)
{
    char target[MRT_K8S_TARGET_SIZE];
    struct mrt_rest_text text = {0};
    if (!json)
        return MORTISE_ENOMEM;
    mrt_k8s_target(operation->address, lease, "", target);
    mrt_rest_add(&text, "%s", json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
    json_object_put(json);
    const struct mrt_rest_request request = {.method = "PUT", .path = target, .once = true};
    int error = mrt_rest_ask(&operation->ask, request, &text);
    if (error || mrt_k8s_is_lease(operation->ask.json, lease))
        return error;
    operation->ask.unknown = true;
    return say_foreign(operation);
}

/* Changes the Lease if exactly this grant holds it; a request may be for whoever does (0). */
static int change(struct operation *operation, const char *name, uint64_t fence, changer *how)
{
    char lease[MRT_K8S_NAME_SIZE];
    int error = MORTISE_ECONFLICT;
    mrt_k8s_name(name, lease);
    for (int i = 0; i < TRIES && error == MORTISE_ECONFLICT; i++) {
        error = read_leases(operation, lease, "");
        struct json_object *json = operation->ask.json;
        if (error)
            break;
        bool any = fence == 0 && how == mrt_k8s_revoking;
        if (!*mrt_k8s_holder(json) || (!any && mrt_k8s_fence(json) != fence))
            return mrt_error(MORTISE_ENOTHELD, "nobody holds %.100s with the fence %" PRIu64, name,
                             fence);
        if (how == mrt_k8s_revoking && !*mrt_k8s_note(json, "kind"))
            return mrt_error(MORTISE_ENOTSUPPORTED,
                             "%.100s is held by another program, which knows no requests: %.100s",
                             name, mrt_k8s_holder(json));
        error = write_lease(operation, lease, how(json));
        if (error && operation->ask.unknown)
            return mrt_error(MORTISE_EUNKNOWN, "Kubernetes: %s: it may have been done",
                             operation->address->shown);
    }
    return error;
}

static int change_of(struct mrt_store *port, const char *name, uint64_t fence, changer *how)
{
    struct operation operation;
    int error = open_of(&operation, port);
    if (error == MORTISE_OK)
        error = change(&operation, name, fence, how);
    close_operation(&operation);
    return error;
}

int mrt_k8s_revoke(struct mrt_store *port, const char *name, uint64_t fence)
{
    return change_of(port, name, fence, mrt_k8s_revoking);
}

int mrt_k8s_break(struct mrt_store *port, const char *name, uint64_t fence)
{
    return change_of(port, name, fence, mrt_k8s_released);
}

/* ------------------------------------------------------------- server, init */

int mrt_k8s_server(struct mrt_store *port, char *text, size_t size)
{
    struct operation operation;
    const struct mrt_rest_request request = {.method = "GET", .path = "version"};
    int error = open_of(&operation, port);
    if (error == MORTISE_OK)
        error = mrt_rest_ask(&operation.ask, request, NULL);
    if (error == MORTISE_OK)
        snprintf(text, size, "Kubernetes %.32s%s",
                 mrt_rest_string(operation.ask.json, "gitVersion"),
                 mrt_address_encrypted(operation.address->tls != MRT_ADDRESS_TLS_OFF, true));
    close_operation(&operation);
    return error;
}

int mrt_k8s_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    struct mrt_k8s_address address;
    struct operation operation;
    (void)print, (void)argument; /* there are no statements */
    int error = mrt_k8s_uri_parse(uri, &address);
    if (error == MORTISE_OK)
        error = mrt_k8s_token_check(&address);
    if (error != MORTISE_OK)
        return error;
    error = open_operation(&operation, &address, 2 * address.connect);
    if (error == MORTISE_OK)
        error = read_leases(&operation, NULL, "limit=1");
    close_operation(&operation);
    return error == MORTISE_ENOTHELD ? MORTISE_ESETUP : error;
}
