/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in JSON as texts, and values in replies. Bytes stand in base64; a number may be a string
 * of digits. A text may have a password, or a token: its memory is wiped before it is freed.
 */
#ifndef MRT_STORE_REST_TEXT_H
#define MRT_STORE_REST_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mrt_rest_text {
    char *bytes; /* ends with a NUL; NULL: empty */
    size_t length, room;
    bool failed; /* no memory */
};

__attribute__((format(printf, 2, 3))) void mrt_rest_add(struct mrt_rest_text *text,
                                                        const char *format, ...);
/* The bytes as they are; false: no memory. */
bool mrt_rest_add_data(struct mrt_rest_text *text, const char *bytes, size_t size);
void mrt_rest_text_free(struct mrt_rest_text *text);
void mrt_rest_add_base64(struct mrt_rest_text *text, const void *bytes, size_t size);
/* A member of an object: "name":"bytes in base64". */
void mrt_rest_add_bytes(struct mrt_rest_text *text, const char *name, const void *bytes,
                        size_t size);
/* The same of a text as it is, escaped as JSON has it. */
void mrt_rest_add_string(struct mrt_rest_text *text, const char *name, const char *value);

/* A member of an object, or NULL. */
struct json_object *mrt_rest_member(struct json_object *object, const char *name);
/* A number, also one in a string; 0: there is none. */
int64_t mrt_rest_number(struct json_object *object, const char *name);
/* "" if there is none. */
const char *mrt_rest_string(struct json_object *object, const char *name);
/* Decodes a member in base64: bytes with a NUL behind, to be freed. NULL: no memory, or malformed.
 */
char *mrt_rest_bytes(struct json_object *object, const char *name, size_t *size);

#endif
