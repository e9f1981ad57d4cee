/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without libFuzzer: on each line of the corpus (hexadecimal), and on
 * random changes of them, the same ones each time.
 *
 *   fuzz_TARGET CORPUS RUNS
 */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#define INPUTS_MAX 1000
#define INPUT_MAX 16384

struct input {
    uint8_t *data;
    size_t size;
};

static struct input inputs[INPUTS_MAX];
static size_t count;
static uint64_t seed = 1;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *place = c ? strchr(digits, c) : NULL;
    return place ? (int)(place - digits) : -1;
}

static void add_line(const char *line)
{
    struct input *input = &inputs[count];
    input->data = malloc(INPUT_MAX);
    require(input->data != NULL && count < INPUTS_MAX - 1);
    for (; digit(line[0]) >= 0 && digit(line[1]) >= 0 && input->size < INPUT_MAX; line += 2)
        input->data[input->size++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
    count++;
}

static bool read_corpus(const char *path)
{
    static char line[2 * INPUT_MAX + 2];
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file))
        add_line(line);
    fclose(file);
    return count > 0;
}

/* Some bytes are changed, put in, or taken out; or two inputs are joined. */
static size_t change(uint8_t *data, size_t size)
{
    for (uint64_t i = 0, changes = 1 + draw(6); i < changes; i++) {
        size_t at = (size_t)draw(size + 1);
        switch (draw(4)) {
        case 0:
            if (at < size)
                data[at] = (uint8_t)draw(256);
            break;
        case 1:
            if (size < INPUT_MAX) {
                memmove(data + at + 1, data + at, size - at);
                data[at] = (uint8_t)draw(256);
                size++;
            }
            break;
        case 2:
            if (at < size) {
                memmove(data + at, data + at + 1, size - at - 1);
                size--;
            }
            break;
        default: {
            const struct input *other = &inputs[draw(count)];
            size_t more = other->size < INPUT_MAX - at ? other->size : INPUT_MAX - at;
            memcpy(data + at, other->data, more);
            size = at + more > size ? at + more : size;
        }
        }
    }
    return size;
}

static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1); /* so that reading past the end is seen */
    require(exact != NULL);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    static uint8_t data[INPUT_MAX];
    if (argc != 3 || !read_corpus(argv[1])) {
        fprintf(stderr, "usage: %s CORPUS RUNS\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < count; i++)
        run(inputs[i].data, inputs[i].size);
    for (long i = 0, runs = strtol(argv[2], NULL, 10); i < runs; i++) {
        const struct input *input = &inputs[draw(count)];
        memcpy(data, input->data, input->size);
        run(data, change(data, input->size));
    }
    for (size_t i = 0; i < count; i++)
        free(inputs[i].data);
    printf("ok 1 - %zu inputs and %s changed ones\n", count, argv[2]);
    return 0;
}
