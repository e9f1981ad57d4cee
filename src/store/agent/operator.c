/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator calls of agent:. Each is a connection of its own, because a list is long and a store may
 * be slow, and no proof of life may wait behind them. The agent answers
 *   LIST   "name" NAME | "prefix" PREFIX     a frame "row" for each ticket, then "end"
 *   REVOKE name fence, BREAK name fence      "end"
 *   SERVER                                   "end", with the server's description as its text
 * where "end" is followed by an error's number, empty for none, and a text.
 *
 * Threads: any, also several at once: nothing here changes the store.
 */
#include "base/error.h"
#include "store/agent/frame.h"
#include "store/agent/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT (15 * MRT_SECOND)
enum { ROW_WORDS = 12 }; /* and the id, where that is not the fence */

/* A call under way. */
struct operation {
    struct mrt_agent_wire wire;
    mrt_listed_callback callback;
    void *argument;
    bool stopped; /* by the callback */
    char text[512];
};

/* Copies a word as text, cut at `size`. */
static void copy_text(const struct mrt_resp_word *word, char *text, size_t size)
{
    size_t length = word->size < size ? word->size : size - 1;
    memcpy(text, word->text, length);
    text[length] = '\0';
}

/* row name kind label fence place weight capacity detached delay_ms since_ms claim id */
static bool take_row(struct operation *operation, const struct mrt_resp_command *words)
{
    char name[MRT_FULL_NAME_SIZE], kind[64], label[512], claim[128];
    int64_t numbers[7], id = 0;
    if (words->count != ROW_WORDS && words->count != ROW_WORDS + 1)
        return false;
    if (words->count > ROW_WORDS && !mrt_frame_read_number(&words->words[ROW_WORDS], &id))
        return false;
    for (size_t i = 0; i < 7; i++)
        if (!mrt_frame_read_number(&words->words[4 + i], &numbers[i]))
            return false;
    copy_text(&words->words[1], name, sizeof name);
    copy_text(&words->words[2], kind, sizeof kind);
    copy_text(&words->words[3], label, sizeof label);
    copy_text(&words->words[11], claim, sizeof claim);
    const struct mrt_listed row = {.entry = {.size = sizeof(mortise_entry),
                                             .name = name,
                                             .kind = kind,
                                             .label = label,
                                             .fence = (uint64_t)numbers[0],
                                             .place = (uint32_t)numbers[1],
                                             .weight = (uint64_t)numbers[2],
                                             .capacity = (uint64_t)numbers[3],
                                             .detached = (int)numbers[4],
                                             .delay_ms = numbers[5],
                                             .since_wall_ms = numbers[6],
                                             .id = (uint64_t)id},
                                   .claim = claim};
    operation->stopped = operation->callback(operation->argument, &row) != 0;
    return true;
}

/* Reads answers until the last one. */
static int take_answers(struct operation *operation, mrt_time until)
{
    struct mrt_resp_command words;
    int64_t error = 0;
    for (;;) {
        int result = mrt_agent_wire_wait(&operation->wire, until, &words);
        if (result != MORTISE_OK)
            return result;
        bool is_row = words.count > 0 && mrt_resp_is(&words.words[0], "ROW");
        if (is_row && !take_row(operation, &words))
            break;
        if (operation->stopped)
            return MORTISE_OK;
        if (is_row)
            continue;
        if (words.count < 3 || !mrt_resp_is(&words.words[0], "END") ||
            !mrt_frame_read_number(&words.words[1], &error) || error > 0 || error < MORTISE_ESETUP)
            break;
        copy_text(&words.words[2], operation->text, sizeof operation->text);
        if (error != 0 && operation->text[0])
            mrt_error((int)error, "%s", operation->text);
        return (int)error;
    }
    return mrt_error(MORTISE_ESTORE, "the agent sends what is no answer");
}

static int operate(const struct mrt_store *opened, struct operation *operation, const char *verb,
                   const char *first, const char *second)
{
    const struct mrt_agent_store *store = (const struct mrt_agent_store *)opened;
    struct mrt_agent_greeting greeting;
    mrt_time until = mrt_time_now() + TIMEOUT;
    int error =
        mrt_agent_wire_greet(&operation->wire, &store->address, store->label, until, &greeting);
    if (error != MORTISE_OK)
        return error;
    mrt_reply_array(&operation->wire.output, 3);
    mrt_frame_text(&operation->wire.output, verb);
    mrt_frame_text(&operation->wire.output, first);
    mrt_frame_text(&operation->wire.output, second);
    error = take_answers(operation, until);
    mrt_agent_wire_close(&operation->wire);
    return error;
}

int mrt_agent_list(struct mrt_store *store, const char *name, const char *prefix,
                   mrt_listed_callback callback, void *argument)
{
    struct operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return MORTISE_ENOMEM;
    operation->callback = callback;
    operation->argument = argument;
    int error = operate(store, operation, "LIST", name ? "name" : "prefix", name ? name : prefix);
    free(operation);
    return error;
}

static int by_fence(struct mrt_store *store, const char *verb, const char *name, uint64_t fence)
{
    char digits[24];
    struct operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return MORTISE_ENOMEM;
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)fence);
    int error = operate(store, operation, verb, name, digits);
    free(operation);
    return error;
}

int mrt_agent_revoke(struct mrt_store *store, const char *name, uint64_t fence)
{
    return by_fence(store, "REVOKE", name, fence);
}

int mrt_agent_break(struct mrt_store *store, const char *name, uint64_t fence)
{
    return by_fence(store, "BREAK", name, fence);
}

int mrt_agent_server(struct mrt_store *store, char *text, size_t size)
{
    struct operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return MORTISE_ENOMEM;
    int error = operate(store, operation, "SERVER", "", "");
    if (error == MORTISE_OK)
        snprintf(text, size, "%.*s", (int)(size - 1), operation->text);
    free(operation);
    return error;
}
