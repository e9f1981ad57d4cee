/* SPDX-License-Identifier: Apache-2.0 */
/* Identities as text, and their entropy. */
#include "base/id.h"

#include <errno.h>
#include <sys/random.h>

void mrt_id_format(struct mrt_id id, char text[MRT_ID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        text[i] = digits[(id.high >> (60 - 4 * i)) & 15];
        text[16 + i] = digits[(id.low >> (60 - 4 * i)) & 15];
    }
    text[32] = '\0';
}

/* By a table: which digit comes next cannot be foreseen, and a wrong guess costs more than a look.
 */
static int digit_value(char c)
{
    static const signed char values_and_one[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
        ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
        ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16};
    return values_and_one[(unsigned char)c] - 1;
}

static bool parse_half(const char *text, uint64_t *half)
{
    uint64_t bits = 0;
    for (int i = 0; i < 16; i++) {
        int value = digit_value(text[i]);
        if (value < 0)
            return false;
        bits = bits << 4 | (uint64_t)value;
    }
    *half = bits;
    return true;
}

bool mrt_id_parse(const char *text, struct mrt_id *id)
{
    struct mrt_id parsed;
    if (!parse_half(text, &parsed.high) || !parse_half(text + 16, &parsed.low) || text[32] != '\0')
        return false;
    *id = parsed;
    return true;
}

bool mrt_id_random(struct mrt_id *id)
{
    ssize_t got;
    do
        got = getrandom(id, sizeof *id, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *id;
}
