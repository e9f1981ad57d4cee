/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store URIs, taken apart: scheme:rest?key=value&key=value. Each store reads `rest` itself.
 * Escapes (%2F) are decoded only in values; the store decodes its path. Nothing here uses a
 * file or a network.
 */
#ifndef MRT_BASE_URI_H
#define MRT_BASE_URI_H

#include <stddef.h>

#define MRT_URI_MAX 4096
#define MRT_URI_PARAMETERS_MAX 32

/* Parameters that every store takes; the library acts on them, not the store. */
#define MRT_URI_COMMON \
    "namespace", "queue_max", "tickets_max", "recheck", "retry", "attempts", "give_up"

struct mrt_uri {
    char text[MRT_URI_MAX]; /* the parts point into it */
    const char *scheme;
    const char *rest;
    size_t count;
    struct {
        const char *key;
        const char *value;
    } parameters[MRT_URI_PARAMETERS_MAX];
};

/* The URI to use: what was given, else $MORTISE_URL, else the embedded store's default file. */
const char *mrt_uri_choose(const char *given);
/* 0, or MORTISE_EURI with particulars that quote no more than the scheme. */
int mrt_uri_parse(const char *text, struct mrt_uri *uri);
/* A parameter's value, or NULL. */
const char *mrt_uri_parameter(const struct mrt_uri *uri, const char *key);
/* Decodes %XX in place; -1 for a malformed escape or an encoded NUL. */
int mrt_uri_decode(char *text);
/* A port, digits alone: its number; 0: it is not from 1 to 65535; -1: it is no number. */
int mrt_uri_port(const char *text, size_t length);

#endif
