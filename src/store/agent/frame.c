/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of the port: see frame.h. Reading checks every word, and believes no length.
 */
#include "store/agent/frame.h"

#include <string.h>

enum { COMMAND_WORDS = 15, EVENT_WORDS = 15 };

static const char *const verbs[] = {
    [MRT_START] = "START",         [MRT_STOP] = "STOP",         [MRT_RENEW] = "RENEW",
    [MRT_APPEND] = "APPEND",       [MRT_REFRESH] = "REFRESH",   [MRT_LIGHTEN] = "LIGHTEN",
    [MRT_SET_VALUE] = "SET_VALUE", [MRT_REMOVE] = "REMOVE",     [MRT_DETACH] = "DETACH",
    [MRT_OBSERVE] = "OBSERVE",     [MRT_CELL_GET] = "CELL_GET", [MRT_CELL_SET] = "CELL_SET"};
static const char *const types[] = {
    [MRT_STARTED] = "STARTED", [MRT_STOPPED] = "STOPPED", [MRT_RENEWED] = "RENEWED",
    [MRT_VIEW] = "VIEW",       [MRT_BLOCKED] = "BLOCKED", [MRT_REMOVED] = "REMOVED",
    [MRT_GONE] = "GONE",       [MRT_HOLDER] = "HOLDER",   [MRT_CELL] = "CELL",
    [MRT_WAKE] = "WAKE",       [MRT_CHANGED] = "CHANGED", [MRT_SESSION_LOST] = "SESSION_LOST",
    [MRT_FAILED] = "FAILED",   [MRT_UNKNOWN] = "UNKNOWN", [MRT_REVOKED] = "REVOKED"};

/* The flags of a command: the letter, and the member that it stands for. */
static const struct {
    char letter;
    size_t member;
} flags[] = {
    {'t', offsetof(struct mrt_command, try_only)},
    {'f', offsetof(struct mrt_command, expect_free)},
    {'n', offsetof(struct mrt_command, expect_no_waiters)},
    {'a', offsetof(struct mrt_command, adopt)},
    {'c', offsetof(struct mrt_command, claim)},
    {'p', offsetof(struct mrt_command, wants_place)},
    {'w', offsetof(struct mrt_command, watch_closely)},
    {'l', offsetof(struct mrt_command, linger)},
    {'d', offsetof(struct mrt_command, died)},
    {'o', offsetof(struct mrt_command, once)},
    {'e', offsetof(struct mrt_command, with_process)},
};
enum { FLAG_COUNT = sizeof flags / sizeof flags[0] };
#define HAS_VALUE 'v'
#define OTHERS_BEHIND 'b'
#define IN_ORDER 'o'

/* ------------------------------------------------------------------------ words */

void mrt_frame_number(struct mrt_reply *output, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    for (; rest > 0; rest /= 10)
        *--at = (char)('0' + rest % 10);
    if (number < 0)
        *--at = '-';
    mrt_reply_bulk(output, at, (size_t)(digits + sizeof digits - at));
}

void mrt_frame_id(struct mrt_reply *output, struct mrt_id id)
{
    static const char digits[] = "0123456789abcdef";
    char text[MRT_ID_TEXT_SIZE];
    for (unsigned i = 0; i < 32; i++) {
        uint64_t half = i < 16 ? id.high : id.low;
        text[i] = digits[half >> (60 - i % 16 * 4) & 15];
    }
    mrt_reply_bulk(output, text, mrt_id_none(id) ? 0 : 32);
}

void mrt_frame_text(struct mrt_reply *output, const char *text)
{
    mrt_reply_bulk(output, text ? text : "", text ? strlen(text) : 0);
}

bool mrt_frame_read_number(const struct mrt_resp_word *word, int64_t *number)
{
    *number = 0;
    return word->size == 0 || mrt_resp_number(word, INT64_MIN, INT64_MAX, number);
}

static bool read_count(const struct mrt_resp_word *word, uint64_t *count)
{
    int64_t number;
    bool is_count = mrt_frame_read_number(word, &number) && number >= 0;
    *count = is_count ? (uint64_t)number : 0;
    return is_count;
}

static bool read_time(const struct mrt_resp_word *word, mrt_time *time)
{
    return mrt_frame_read_number(word, time) && *time >= 0;
}

bool mrt_frame_read_id(const struct mrt_resp_word *word, struct mrt_id *id)
{
    char text[MRT_ID_TEXT_SIZE] = "";
    *id = (struct mrt_id){0, 0};
    if (word->size == 0)
        return true;
    if (word->size != MRT_ID_TEXT_SIZE - 1)
        return false;
    memcpy(text, word->text, word->size);
    return mrt_id_parse(text, id);
}

/* The index of a name among several; -1: it is none of them. */
static int index_of(const struct mrt_resp_word *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mrt_resp_is(word, names[i]))
            return (int)i;
    return -1;
}

/* The words of an array, and empty ones behind them. */
static void widen(const struct mrt_resp_command *words, struct mrt_resp_word *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        all[i] = i < words->count ? words->words[i] : (struct mrt_resp_word){"", 0};
}

/* --------------------------------------------------------------------- commands */

static void write_flags(struct mrt_reply *output, const struct mrt_command *command)
{
    char letters[FLAG_COUNT + 1];
    size_t count = 0;
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (*(const bool *)((const char *)command + flags[i].member))
            letters[count++] = flags[i].letter;
    if (command->value)
        letters[count++] = HAS_VALUE;
    mrt_reply_bulk(output, letters, count);
}

static bool read_flags(const struct mrt_resp_word *word, struct mrt_frame_command *frame)
{
    for (size_t i = 0; i < word->size; i++) {
        size_t known = 0;
        while (known < FLAG_COUNT && flags[known].letter != word->text[i])
            known++;
        if (known < FLAG_COUNT)
            *(bool *)((char *)&frame->command + flags[known].member) = true;
        else if (word->text[i] == HAS_VALUE)
            frame->has_value = true;
        else
            return false;
    }
    return true;
}

/* How many words a command needs. */
static size_t count_words(const struct mrt_command *command)
{
    if (command->value)
        return 15;
    if (!mrt_id_none(command->detached_id))
        return 14;
    if (command->version > 0 || command->last_fence > 0)
        return 13;
    if (command->delay > 0)
        return 12;
    if (command->queue_max > 0)
        return 11;
    if (command->type == MRT_APPEND)
        return 10;
    if (command->weight > 0)
        return 8;
    return command->queue || command->died || command->with_process ? 7 : 3;
}

void mrt_frame_write_command(struct mrt_reply *output, const struct mrt_command *command)
{
    size_t count = count_words(command);
    mrt_reply_array(output, count);
    mrt_frame_text(output, verbs[command->type]);
    mrt_frame_number(output, (int64_t)command->serial);
    mrt_frame_id(output, command->session);
    if (count > 3) {
        mrt_frame_id(output, command->ticket);
        mrt_frame_text(output, command->queue);
        mrt_frame_number(output, (int64_t)command->fence);
        write_flags(output, command);
    }
    if (count > 7)
        mrt_frame_number(output, (int64_t)command->weight);
    if (count > 8) {
        mrt_frame_number(output, (int64_t)command->capacity);
        mrt_frame_text(output, command->kind);
    }
    if (count > 10)
        mrt_frame_number(output, (int64_t)command->queue_max);
    if (count > 11)
        mrt_frame_number(output, command->delay);
    if (count > 12)
        mrt_frame_number(output, (int64_t)(command->type == MRT_APPEND ? command->last_fence
                                                                       : command->version));
    if (count > 13)
        mrt_frame_id(output, command->detached_id);
    if (count > 14)
        mrt_reply_bulk(output, command->value, command->value_size);
}

bool mrt_frame_read_command(const struct mrt_resp_command *words, struct mrt_frame_command *frame)
{
    struct mrt_resp_word all[COMMAND_WORDS];
    struct mrt_command *command = &frame->command;
    *frame = (struct mrt_frame_command){.has_value = false};
    if (words->count < 3 || words->count > COMMAND_WORDS)
        return false;
    widen(words, all, COMMAND_WORDS);
    int type = index_of(&all[0], verbs, sizeof verbs / sizeof verbs[0]);
    if (type < 0)
        return false;
    command->type = (enum mrt_command_type)type;
    frame->queue = all[4];
    frame->kind = all[9];
    frame->value = all[14];
    command->value_size = all[14].size;
    uint64_t *number = command->type == MRT_APPEND ? &command->last_fence : &command->version;
    return read_count(&all[1], &command->serial) && command->serial > 0 &&
           mrt_frame_read_id(&all[2], &command->session) &&
           mrt_frame_read_id(&all[3], &command->ticket) && read_count(&all[5], &command->fence) &&
           read_flags(&all[6], frame) && read_count(&all[7], &command->weight) &&
           read_count(&all[8], &command->capacity) && read_count(&all[10], &command->queue_max) &&
           read_time(&all[11], &command->delay) && read_count(&all[12], number) &&
           mrt_frame_read_id(&all[13], &command->detached_id);
}

/* ----------------------------------------------------------------------- events */

static bool is_of_life(enum mrt_event_type type)
{
    return type == MRT_STARTED || type == MRT_RENEWED;
}

void mrt_frame_write_event(struct mrt_reply *output, const struct mrt_event *event,
                           mrt_time proof_age, mrt_time heard_age)
{
    bool has_text = event->detail || event->value;
    size_t count = has_text                     ? 15
                   : event->error               ? 14
                   : is_of_life(event->type)    ? 9
                   : event->number > 0          ? 13
                   : event->type == MRT_VIEW    ? 12
                   : event->type == MRT_REVOKED ? 12
                   : event->type == MRT_CELL    ? 13
                   : event->type == MRT_HOLDER  ? 10
                   : event->fence > 0           ? 10
                                                : 5;
    char letters[3];
    size_t letter_count = 0;
    mrt_reply_array(output, count);
    mrt_reply_bulk(output, event->serial > 0 ? "answer" : "event", event->serial > 0 ? 6 : 5);
    mrt_frame_text(output, types[event->type]);
    mrt_frame_number(output, (int64_t)event->serial);
    mrt_frame_id(output, event->session);
    mrt_frame_id(output, event->ticket);
    if (count == 5)
        return;
    if (event->others_behind)
        letters[letter_count++] = OTHERS_BEHIND;
    if (event->in_order)
        letters[letter_count++] = IN_ORDER;
    if (event->value)
        letters[letter_count++] = HAS_VALUE;
    mrt_reply_bulk(output, letters, letter_count);
    if (is_of_life(event->type)) {
        const mrt_time ages[] = {event->lease, proof_age, heard_age};
        for (size_t i = 0; i < 3; i++)
            mrt_frame_number(output, ages[i]);
        return;
    }
    uint64_t number = event->type == MRT_VIEW ? event->number : event->version;
    const int64_t numbers[] = {(int64_t)event->fence,
                               (int64_t)event->fence_span,
                               (int64_t)event->weight_ahead,
                               event->recheck,
                               (int64_t)event->place,
                               (int64_t)event->revoked,
                               (int64_t)number,
                               event->error};
    for (size_t i = 0; i + 6 < count && i < 8; i++)
        mrt_frame_number(output, numbers[i]);
    if (event->value)
        mrt_reply_bulk(output, event->value, event->value_size);
    else if (event->detail)
        mrt_frame_text(output, event->detail);
}

static bool read_event_flags(const struct mrt_resp_word *word, struct mrt_frame_event *frame)
{
    for (size_t i = 0; i < word->size; i++) {
        frame->event.others_behind |= word->text[i] == OTHERS_BEHIND;
        frame->event.in_order |= word->text[i] == IN_ORDER;
        frame->has_value |= word->text[i] == HAS_VALUE;
    }
    return true;
}

bool mrt_frame_read_event(const struct mrt_resp_command *words, struct mrt_frame_event *frame)
{
    struct mrt_resp_word all[EVENT_WORDS];
    struct mrt_event *event = &frame->event;
    int64_t error;
    *frame = (struct mrt_frame_event){.has_value = false};
    if (words->count < 5 || words->count > EVENT_WORDS)
        return false;
    widen(words, all, EVENT_WORDS);
    int type = index_of(&all[1], types, sizeof types / sizeof types[0]);
    if (type < 0 || !read_count(&all[2], &event->serial) ||
        !mrt_frame_read_id(&all[3], &event->session) ||
        !mrt_frame_read_id(&all[4], &event->ticket) || !read_event_flags(&all[5], frame))
        return false;
    event->type = (enum mrt_event_type)type;
    if (is_of_life(event->type))
        return read_time(&all[6], &event->lease) && read_time(&all[7], &frame->proof_age) &&
               read_time(&all[8], &frame->heard_age);
    frame->text = all[14];
    event->value_size = frame->has_value ? all[14].size : 0;
    uint64_t *number = event->type == MRT_VIEW ? &event->number : &event->version;
    bool is_whole = read_count(&all[6], &event->fence) && read_count(&all[7], &event->fence_span) &&
                    read_count(&all[8], &event->weight_ahead) &&
                    read_time(&all[9], &event->recheck) && read_count(&all[10], &event->place) &&
                    read_count(&all[11], &event->revoked) && read_count(&all[12], number) &&
                    mrt_frame_read_number(&all[13], &error);
    event->error = is_whole && error >= MORTISE_ESETUP && error <= 0 ? (int)error : MORTISE_ESTORE;
    return is_whole;
}
