/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations and numbers given on the command line, and durations shown to people.
 *
 * A duration is one number of seconds as flock takes it ("10", "0.5"), or one or
 * more numbers with units, from the larger to the smaller ("1h", "1m30s",
 * "500ms"). Whole integers throughout: no rounding, no locale. A text that does not
 * parse entirely is refused; there is no guessing.
 */
#include "cli/frame/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DURATION_MOST (INT64_C(100) * 365 * 24 * 3600 * MRT_SECOND)

struct unit {
    const char *text;
    mrt_time length;
};

/* "ms" before "m": the first that fits is taken. */
static const struct unit units[] = {
    {"ms", MRT_MILLISECOND},  {"s", MRT_SECOND},         {"m", 60 * MRT_SECOND},
    {"h", 3600 * MRT_SECOND}, {"d", 86400 * MRT_SECOND},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads "12.5" as whole and billionths; false if there is no digit or too many. */
static bool read_decimal(const char **text, int64_t *whole, int64_t *billionths)
{
    const char *c = *text;
    int digits = 0;
    *whole = *billionths = 0;
    for (; is_digit(*c); c++, digits++)
        if (__builtin_mul_overflow(*whole, 10, whole) ||
            __builtin_add_overflow(*whole, *c - '0', whole))
            return false;
    if (*c == '.') {
        int64_t place = 100000000;
        for (c++; is_digit(*c); c++, digits++, place /= 10)
            *billionths += (*c - '0') * place;
    }
    *text = c;
    return digits > 0;
}

/* The unit that `text` begins with; NULL if none. */
static const struct unit *read_unit(const char **text)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i].text);
        if (strncmp(*text, units[i].text, length) == 0) {
            *text += length;
            return &units[i];
        }
    }
    return NULL;
}

bool mrt_cli_duration(const char *text, mrt_time *duration)
{
    mrt_time sum = 0, smallest = MRT_TIME_NEVER;
    bool first = true;
    do {
        int64_t whole, billionths;
        mrt_time part;
        if (!read_decimal(&text, &whole, &billionths))
            return false;
        const struct unit *unit = read_unit(&text);
        if (!unit && !(first && !*text))
            return false;
        mrt_time length = unit ? unit->length : MRT_SECOND;
        if (length >= smallest || __builtin_mul_overflow(whole, length, &part))
            return false;
        part = mrt_time_add(part, length / MRT_MILLISECOND * billionths / 1000);
        sum = mrt_time_add(sum, part);
        if (part < 0 || sum > DURATION_MOST)
            return false;
        smallest = length;
        first = false;
    } while (*text);
    *duration = sum;
    return true;
}

bool mrt_cli_number(const char *text, int64_t least, int64_t most, int64_t *number)
{
    char *end;
    if (!is_digit(*text) && !(*text == '-' && is_digit(text[1])))
        return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > most)
        return false;
    *number = value;
    return true;
}

void mrt_cli_format_duration(mrt_time duration, char *text, size_t size)
{
    if (duration < 0)
        duration = 0;
    long long seconds = duration / MRT_SECOND;
    long long tenths = duration % MRT_SECOND / (MRT_SECOND / 10);
    if (seconds < 60)
        snprintf(text, size, "%lld.%llds", seconds, tenths);
    else if (seconds < 3600)
        snprintf(text, size, "%lldm%02llds", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        snprintf(text, size, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(text, size, "%lldd%02lldh", seconds / 86400, seconds / 3600 % 24);
}

int64_t mrt_cli_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / MRT_MILLISECOND;
}

void mrt_cli_format_age(int64_t since_wall_ms, char *text, size_t size)
{
    if (since_wall_ms == 0) {
        snprintf(text, size, "?");
        return;
    }
    mrt_cli_format_duration(mrt_time_from_ms(mrt_cli_wall_ms() - since_wall_ms), text, size);
}
