/* SPDX-License-Identifier: Apache-2.0 */
/* mortise_server: the server's version, and a note if strangers may change its locks. */
#include "store/etcd/ask.h"

#include "base/listen.h"

#include <stdio.h>
#include <string.h>

/* Whether a URL that a member announces may be one that other hosts reach. */
static bool is_for_others(struct json_object *url)
{
    char host[256];
    const char *text =
        json_object_is_type(url, json_type_string) ? json_object_get_string(url) : "*";
    if (strncmp(text, "unix", 4) == 0)
        return false;
    const char *from = strstr(text, "://");
    from = from ? from + 3 : text;
    bool bracketed = *from == '[';
    from += bracketed;
    snprintf(host, sizeof host, "%.*s", (int)strcspn(from, bracketed ? "]" : ":/"), from);
    return mrt_listens_for_others(host);
}

/* Whether a member announces an address that other hosts may reach. */
static bool is_open(struct json_object *members)
{
    size_t count =
        json_object_is_type(members, json_type_array) ? json_object_array_length(members) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *urls =
            mrt_rest_member(json_object_array_get_idx(members, i), "clientURLs");
        size_t each =
            json_object_is_type(urls, json_type_array) ? json_object_array_length(urls) : 0;
        for (size_t j = 0; j < each; j++)
            if (is_for_others(json_object_array_get_idx(urls, j)))
                return true;
    }
    return false;
}

/* Without a user that the server wants, everybody may do everything. */
static void check_access(struct mrt_etcd_operation *operation)
{
    const struct mrt_etcd_store *store = operation->store;
    struct mrt_notes notes = {
        .from = store->notes.from, .log = store->notes.log, .argument = store->notes.argument};
    struct mrt_rest_text text = {0};
    bool guarded = store->address.servers.user[0] && !operation->wire.open;
    mrt_rest_add(&text, "{}");
    if (!guarded && mrt_etcd_ask(operation, "cluster/member/list", &text) == MORTISE_OK &&
        is_open(mrt_rest_member(operation->ask.json, "members")))
        mrt_note(&notes, MRT_ETCD_NOTE_ACCESS,
                 "no user and password: anyone who reaches the server may break these locks");
    if (guarded)
        mrt_rest_text_free(&text);
    mrt_notes_say(&notes);
}

int mrt_etcd_server(struct mrt_store *port, char *text, size_t size)
{
    struct mrt_etcd_operation operation;
    struct mrt_rest_text body = {0};
    int error = mrt_etcd_operation_open(&operation, port);
    mrt_rest_add(&body, "{}");
    if (error == MORTISE_OK)
        error = mrt_etcd_ask(&operation, "maintenance/status", &body);
    else
        mrt_rest_text_free(&body);
    if (error == MORTISE_OK) {
        snprintf(text, size, "etcd %.32s", mrt_rest_string(operation.ask.json, "version"));
        check_access(&operation);
    }
    mrt_etcd_operation_close(&operation);
    return error;
}
