/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suggestions: which known name a mistyped one is nearest to.
 *
 * The distance is that of Damerau and Levenshtein, where two letters that stand next to each other
 * may be exchanged (optimal string alignment): one for each letter that is added, left out, changed
 * or exchanged with its neighbour. A name is suggested if it is at most a third of its length away.
 */
#include "cli/frame/cli.h"

#include <string.h>

#define LENGTH_MAX 32

static size_t least(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LENGTH_MAX + 1] = {{0}};
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t a_length = strlen(a), b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
    }
    return row[b_length];
}

void mrt_suggest(struct mrt_suggestion *suggestion, const char *name)
{
    if (strlen(name) > LENGTH_MAX || strlen(suggestion->typed) > LENGTH_MAX)
        return;
    size_t away = distance(suggestion->typed, name);
    if (away > (strlen(name) + 2) / 3 || (suggestion->name && away >= suggestion->away))
        return;
    suggestion->name = name;
    suggestion->away = away;
}
