/* SPDX-License-Identifier: Apache-2.0 */
/* See name.h. */
#include "store/kubernetes/name.h"

#include "store/kit/sha256.h"

#include <stdio.h>
#include <string.h>

#define DIGITS 32
#define WORDS_MAX 150

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The same for every locale: two clients have to find the same Lease. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool mrt_k8s_is_name(const char *text, size_t most)
{
    size_t length = strlen(text);
    bool fine = length > 0 && length <= most;
    for (size_t i = 0; i < length && fine; i++) {
        bool first = i == 0 || text[i - 1] == '.', last = i + 1 == length || text[i + 1] == '.';
        fine = is_plain(text[i]) || (text[i] == '-' && !first && !last) ||
               (text[i] == '.' && !first && i + 1 < length);
    }
    return fine;
}

static bool looks_encoded(const char *name)
{
    size_t length = strlen(name);
    return length > DIGITS + 2 && strncmp(name + length - DIGITS - 2, ".x", 2) == 0 &&
           strspn(name + length - DIGITS, "0123456789abcdef") == DIGITS;
}

void mrt_k8s_name(const char *full, char name[MRT_K8S_NAME_SIZE])
{
    if (mrt_k8s_is_name(full, MRT_K8S_NAME_MAX) && !looks_encoded(full)) {
        snprintf(name, MRT_K8S_NAME_SIZE, "%s", full);
        return;
    }
    char words[WORDS_MAX + 1], digits[DIGITS + 1];
    size_t length = 0;
    for (const char *c = full; *c && length < WORDS_MAX; c++) {
        char low = lower(*c);
        if (is_plain(low))
            words[length++] = low;
        else if (length > 0 && words[length - 1] != '-')
            words[length++] = '-';
    }
    while (length > 0 && words[length - 1] == '-')
        length--;
    words[length] = '\0';
    mrt_sha256(full, strlen(full), digits, DIGITS);
    snprintf(name, MRT_K8S_NAME_SIZE, "%s.x%s", length > 0 ? words : "lock", digits);
}
