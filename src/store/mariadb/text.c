/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a request: its statements in one piece, with the transaction's beginning and
 * end, and values as literals, in digits or in hexadecimal.
 *
 * The statement for an acquire in an empty queue is prepared in front of the first such acquire on
 * a connection. It is then executed by its name, with its values as literals, as everywhere.
 */
#include "store/mariadb/internal.h"
#include "store/sql/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLED_MAX 64        /* characters */
#define CALLED_BYTES_MAX 192 /* the server's own limit, whatever the characters */

static void write_text(FILE *out, const char *text)
{
    fwrite(text, 1, strlen(text), out);
}

static void write_hexadecimal(FILE *out, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    write_text(out, "x'");
    for (size_t i = 0; i < size; i++) {
        fputc(digits[bytes[i] >> 4], out);
        fputc(digits[bytes[i] & 15], out);
    }
    fputc('\'', out);
}

/* A name that is too long for a lock's is called by its hash. */
static void write_called(FILE *out, const char *name)
{
    size_t characters = 0;
    for (const char *at = name; at && *at; at++)
        characters += ((unsigned char)*at & 0xc0) != 0x80;
    if (!name) {
        write_text(out, "NULL");
        return;
    }
    bool hashed = characters > CALLED_MAX || strlen(name) > CALLED_BYTES_MAX;
    write_text(out, hashed ? "SHA2(" : "");
    write_hexadecimal(out, (const unsigned char *)name, strlen(name));
    write_text(out, hashed ? ", 256)" : "");
}

static void write_value(FILE *out, const struct mrt_sql_store *store,
                        const struct mrt_sql_request *request, char letter)
{
    struct mrt_sql_value value;
    if (letter == 'C') {
        write_called(out, request->name ? request->name : request->command.queue);
        return;
    }
    mrt_sql_value(store, request, letter, &value);
    switch (value.type) {
    case MRT_SQL_NULL:
        write_text(out, "NULL");
        break;
    case MRT_SQL_NUMBER:
        write_text(out, value.data);
        break;
    case MRT_SQL_ID:
        write_text(out, "x'");
        write_text(out, value.data);
        fputc('\'', out);
        break;
    case MRT_SQL_TEXT:
        write_hexadecimal(out, value.data, strlen(value.data));
        break;
    case MRT_SQL_BYTES:
        write_hexadecimal(out, value.data, value.size);
    }
}

static void write_statement(FILE *out, const struct mrt_sql_store *store,
                            const struct mrt_sql_request *request, const char *text)
{
    for (; *text; text++)
        if (*text == '$')
            write_value(out, store, request, *++text);
        else
            fputc(*text, out);
    fputc(';', out);
}

bool mrt_mariadb_is_alone(const struct mrt_sql_request *request)
{
    return request->kind == MRT_SQL_DO_APPEND && !request->whole;
}

/* No such statement has a double quote in it. */
static void write_preparation(FILE *out, const char *text)
{
    write_text(out, "PREPARE mortise FROM \"");
    for (; *text; text++) {
        fputc(*text == '$' ? '?' : *text, out);
        text += *text == '$';
    }
    write_text(out, "\";");
}

/* Its values, in the order of its parameters. */
static void write_execution(FILE *out, const struct mrt_sql_store *store,
                            const struct mrt_sql_request *request, const char *text)
{
    const char *between = "EXECUTE mortise USING ";
    while ((text = strchr(text, '$'))) {
        write_text(out, between);
        write_value(out, store, request, *++text);
        between = ", ";
    }
    fputc(';', out);
}

static void write_plan(FILE *out, const struct mrt_sql_store *store,
                       const struct mrt_sql_request *request)
{
    const struct mrt_mariadb_plan *plan = mrt_mariadb_plan(request);
    if (request->step[0].prepares)
        write_preparation(out, plan->statement[0]);
    if (mrt_mariadb_is_alone(request)) {
        write_execution(out, store, request, plan->statement[0]);
        return;
    }
    if (plan->transaction)
        write_text(out, "START TRANSACTION;");
    for (int i = 0; plan->statement[i]; i++)
        write_statement(out, store, request, plan->statement[i]);
    if (plan->transaction)
        write_text(out, "COMMIT;");
}

char *mrt_mariadb_text(const struct mrt_sql_store *store, const struct mrt_sql_request *request)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    write_plan(out, store, request);
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}
