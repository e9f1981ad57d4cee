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

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool mrt_id_parse(const char *text, struct mrt_id *id)
{
    uint64_t half[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
        int value = digit_value(text[i]);
        if (value < 0)
            return false;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)value;
    }
    if (text[32] != '\0')
        return false;
    *id = (struct mrt_id){half[0], half[1]};
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
