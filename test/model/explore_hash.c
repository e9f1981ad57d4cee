/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens and their hash. First all are put, so that ranks are known; then each part is hashed by
 * itself, and the hashes of the clients' parts are added up, which knows no order.
 */
#include "explore_hash.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS_MAX 1024
#define VALUES_MAX 256
#define PARTS (CLIENTS_MAX + 1)

struct token {
    uint64_t value;
    uint8_t kind;
};

struct part {
    int count;
    struct token tokens[TOKENS_MAX];
};

static struct part parts[PARTS];
static struct part *part; /* that is being filled */
static uint64_t values[KINDS][VALUES_MAX];
static int value_count[KINDS];

void hash_begin(void)
{
    memset(value_count, 0, sizeof value_count);
    for (int p = 0; p < PARTS; p++)
        parts[p].count = 0;
}

void hash_part(int number)
{
    part = &parts[number];
}

void put(int kind, uint64_t value)
{
    if (part->count == TOKENS_MAX)
        abort();
    part->tokens[part->count++] = (struct token){value, (uint8_t)kind};
    if (kind == PLAIN || kind == BOUND || value == 0)
        return;
    int place = value_count[kind];
    while (place > 0 && values[kind][place - 1] > value)
        place--;
    if (place > 0 && values[kind][place - 1] == value)
        return;
    if (value_count[kind] == VALUES_MAX)
        abort();
    memmove(&values[kind][place + 1], &values[kind][place],
            (size_t)(value_count[kind]++ - place) * sizeof value);
    values[kind][place] = value;
}

void plain(uint64_t value)
{
    put(PLAIN, value);
}

void put_id(struct mrt_id id)
{
    uint64_t maker = id.high;
#ifdef MRT_DEFECTS
    if (maker > CLIENTS_MAX + 1)
        maker = CLIENTS_MAX + 1;
#else
    if (maker > CLIENTS_MAX + 1 || (maker > 0 && maker <= CLIENTS_MAX && part != &parts[maker - 1]))
        abort();
#endif
    put(IDENTITY + (int)maker, id.low);
}

static uint64_t rank(int kind, uint64_t value)
{
    uint64_t number = 1;
    if (kind == PLAIN || value == 0)
        return value;
    if (kind == BOUND) {
        while (number <= (uint64_t)value_count[FENCE] && values[FENCE][number - 1] <= value)
            number++;
        return number - 1;
    }
    while (values[kind][number - 1] != value)
        number++;
    return kind == LEFT ? number | UINT64_C(1) << 32 : number; /* it is no client's */
}

static uint64_t mix(uint64_t hash, uint64_t value, uint64_t factor)
{
    hash = (hash ^ value) * factor;
    return hash ^ hash >> 29;
}

static struct state_hash part_hash(const struct part *of)
{
    struct state_hash hash = {UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)};
    for (int i = 0; i < of->count; i++) {
        uint64_t value = rank(of->tokens[i].kind, of->tokens[i].value);
        hash.low = mix(hash.low, value, UINT64_C(0x9e3779b97f4a7c15));
        hash.high = mix(hash.high, value + 1, UINT64_C(0xbf58476d1ce4e5b9));
    }
    hash.low = mix(hash.low, hash.high >> 32, UINT64_C(0x94d049bb133111eb));
    hash.high = mix(hash.high, hash.low >> 32, UINT64_C(0x94d049bb133111eb));
    return hash;
}

struct state_hash hash_end(void)
{
    struct state_hash hash = part_hash(&parts[COMMON]);
    for (int p = 0; p < PARTS; p++) {
        if (p == COMMON)
            continue;
        struct state_hash more = part_hash(&parts[p]);
        hash.low += more.low;
        hash.high += more.high;
    }
    hash.low = mix(hash.low, hash.high >> 32, UINT64_C(0x9e3779b97f4a7c15));
    hash.high = mix(hash.high, hash.low >> 32, UINT64_C(0xbf58476d1ce4e5b9));
    return hash;
}
