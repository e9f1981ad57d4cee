/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena. Every allocation of the program goes here once it is open (the program is linked
 * with the allocator's functions wrapped): blocks of 64 bytes and multiples, freed ones in a
 * list for each size. The lists are in the arena too, so that putting its bytes back puts back
 * what is free.
 */
#include "explore.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_SIZE (1u << 20)
#define CLASSES 1024

struct free_block {
    struct free_block *next;
};

struct arena {
    size_t used;
    struct free_block *free_blocks[CLASSES];
};

static _Alignas(MEMORY_BLOCK) unsigned char bytes[ARENA_SIZE];
static size_t highest;
static bool is_open;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);
char *__wrap_strdup(const char *text);

static struct arena *arena(void)
{
    return (struct arena *)(void *)bytes;
}

static size_t rounded(size_t size)
{
    return (size + MEMORY_BLOCK - 1) / MEMORY_BLOCK * MEMORY_BLOCK;
}

void memory_open(void)
{
    memset(bytes, 0, sizeof bytes);
    arena()->used = highest = rounded(sizeof(struct arena));
    is_open = true;
}

unsigned char *memory_bytes(void)
{
    return bytes;
}

size_t memory_size(void)
{
    return highest;
}

void *memory_outside(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

/* Sizes are kept in a block of their own before each, so that all blocks lie evenly. */
void *__wrap_malloc(size_t size)
{
    if (!is_open)
        return __real_malloc(size);
    size_t whole = rounded(size) + MEMORY_BLOCK, class = whole / MEMORY_BLOCK;
    struct free_block *block = class < CLASSES ? arena()->free_blocks[class] : NULL;
    if (block) {
        arena()->free_blocks[class] = block->next;
    } else {
        if (class >= CLASSES || arena()->used + whole > ARENA_SIZE)
            abort();
        block = (struct free_block *)(void *)(bytes + arena()->used);
        arena()->used += whole;
        highest = arena()->used > highest ? arena()->used : highest;
    }
    memset(block, 0, whole);
    memcpy(block, &class, sizeof class);
    return (unsigned char *)block + MEMORY_BLOCK;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_open ? __wrap_malloc(count * size) : __real_calloc(count, size);
}

void __wrap_free(void *memory)
{
    unsigned char *place = memory;
    if (!place || place < bytes || place >= bytes + sizeof bytes) {
        __real_free(memory);
        return;
    }
    struct free_block *block = (struct free_block *)(void *)(place - MEMORY_BLOCK);
    size_t class;
    memcpy(&class, block, sizeof class);
    memset(block, 0, class * MEMORY_BLOCK);
    block->next = arena()->free_blocks[class];
    arena()->free_blocks[class] = block;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);
    memcpy(copy, text, size);
    return copy;
}
