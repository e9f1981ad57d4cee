/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights that a user needs, as commands for an administrator's shell: a role of the namespace's
 * name, which may read and write its keys, and nothing else. etcd lets every user have leases, and
 * revoke only those whose keys the user may write.
 *
 * Without a namespace a lock's keys are anywhere: the role has those of sessions and cells alone,
 * and a comment says what each lock needs.
 *
 * A name is data: it is quoted for the shell.
 */
#include "store/etcd/rights.h"

#include "base/error.h"
#include "store/etcd/text.h"
#include "store/etcd/uri.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define GRANT "etcdctl role grant-permission --prefix=true"

/* A word of the shell's: in quotes if it needs them. */
static void add_word(struct mrt_rest_text *text, const char *word)
{
    bool plain = *word != '-';
    for (const char *c = word; *c; c++)
        plain = plain && (isalnum((unsigned char)*c) || strchr("/_-.:@+", *c));
    if (plain) {
        mrt_rest_add(text, " %s", word);
        return;
    }
    mrt_rest_add(text, " '");
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            mrt_rest_add(text, "'\\''");
        else
            mrt_rest_add(text, "%c", *c);
    mrt_rest_add(text, "'");
}

static void write_rights(struct mrt_rest_text *text, const struct mrt_etcd_address *address)
{
    char role[MRT_ETCD_BASE_SIZE + 8];
    const char *keys = address->prefix[0] ? address->prefix : address->base;
    snprintf(role, sizeof role, "locks:%s", keys);
    mrt_rest_add(text, "etcdctl role add");
    add_word(text, role);
    mrt_rest_add(text, "\n" GRANT " --");
    add_word(text, role);
    mrt_rest_add(text, " readwrite");
    add_word(text, keys);
    mrt_rest_add(text, "\netcdctl user grant-role --");
    add_word(text, address->servers.user);
    add_word(text, role);
    mrt_rest_add(text, "\n");
    if (!address->prefix[0]) {
        mrt_rest_add(text, "# and of each lock NAME: " GRANT);
        add_word(text, role);
        mrt_rest_add(text, " readwrite NAME/\n");
    }
}

int mrt_etcd_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    struct mrt_etcd_address address;
    struct mrt_rest_text text = {0};
    int error = mrt_etcd_uri_parse(uri, &address);
    if (error)
        return error;
    if (!*address.servers.user)
        return mrt_error(MORTISE_EURI, "the URI names the user who gets the rights: %s://USER@...",
                         uri->scheme);
    write_rights(&text, &address);
    if (!text.failed)
        print(argument, text.bytes);
    error = text.failed ? MORTISE_ENOMEM : MORTISE_OK;
    mrt_rest_text_free(&text);
    return error;
}
