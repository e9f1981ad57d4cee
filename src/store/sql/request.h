/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and the values of their parameters: request.c */
#ifndef MRT_STORE_SQL_REQUEST_H
#define MRT_STORE_SQL_REQUEST_H

#include "store/sql/internal.h"

/* A parameter's value. */
enum mrt_sql_type { MRT_SQL_NULL, MRT_SQL_NUMBER, MRT_SQL_ID, MRT_SQL_TEXT, MRT_SQL_BYTES };
struct mrt_sql_value {
    const void *data; /* BYTES; else a text: decimal, hexadecimal, or as it is */
    size_t size;      /* BYTES */
    enum mrt_sql_type type;
    char text[MRT_ID_TEXT_SIZE];
};

struct mrt_sql_request *mrt_sql_request_new(enum mrt_sql_kind kind);
void mrt_sql_request_free(struct mrt_sql_request *request);
/* The value that this letter stands for in a statement's parameters. */
void mrt_sql_value(const struct mrt_sql_store *store, const struct mrt_sql_request *request,
                   char letter, struct mrt_sql_value *value);
/* Columns of the answer's first row; or the first is the number of rows that it changed. */
bool mrt_sql_has_row(const struct mrt_sql_request *request);
bool mrt_sql_is_null(const struct mrt_sql_request *request, int column);
int64_t mrt_sql_number(const struct mrt_sql_request *request, int column);
const char *mrt_sql_text(const struct mrt_sql_request *request, int column);
/* A column of hexadecimal digits becomes the event's value; false: no memory. */
bool mrt_sql_take_value(struct mrt_sql_request *request, int column);
/* The first line of a message of the library's or the server's, without its end. */
void mrt_sql_first_line(const char *message, char *line, size_t size);
bool mrt_sql_removes(const struct mrt_sql_request *request);
/* Whether the next request may be sent as soon as this one has been. */
bool mrt_sql_goes_through(const struct mrt_sql_request *request);
/* After how long the server is to end a wait for a native lock, which then begins anew. */
mrt_time mrt_sql_wait_limit(const struct mrt_sql_store *store);

#endif
