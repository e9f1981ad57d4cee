/*
 * Takes turns on a mutex: URI NAME COUNTER-FILE TURNS; with "-" for the file it measures
 * the cycle instead. In each turn a kernel lock on the file is the witness that nobody
 * else has the turn.
 */
#include "mortise.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int count(const char *path)
{
    struct flock witness = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32] = "";
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || fcntl(file, F_SETLK, &witness) < 0) {
        fprintf(stderr, "OVERLAP\n");
        return 1;
    }
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    long value = size > 0 ? strtol(text, NULL, 10) : 0;
    int length = snprintf(text, sizeof text, "%ld\n", value + 1);
    size = pwrite(file, text, (size_t)length, 0);
    close(file);
    return size != length;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int measure(mortise_lock *lock, int turns)
{
    int64_t *times = calloc((size_t)turns, sizeof *times);
    mortise_hold hold;
    for (int i = -turns / 2; times && i < turns; i++) {
        int64_t begin = mortise_now_ns();
        if (mortise_acquire_for(lock, 60000, &hold))
            return 1;
        mortise_release(hold);
        if (i >= 0)
            times[i] = mortise_now_ns() - begin;
    }
    if (!times)
        return 1;
    qsort(times, (size_t)turns, sizeof *times, compare);
    printf("cycle p50 us: %d\n", (int)(times[turns / 2] / 1000));
    free(times);
    return 0;
}

static int take_turns(mortise_lock *lock, const char *path, int turns)
{
    mortise_hold hold;
    for (int i = 0; i < turns; i++) {
        int error = mortise_acquire_for(lock, 60000, &hold);
        if (error) {
            fprintf(stderr, "%s: %s\n", mortise_error_text(error), mortise_error_detail());
            return 1;
        }
        if (count(path) || mortise_release(hold))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    /* Every turn is the store's: none is handed on inside the process. */
    mortise_client_options options = {.size = sizeof options, .budget_ms = -1};
    mortise_client *client;
    mortise_lock *lock;
    if (argc != 5 || mortise_open(argv[1], &options, &client) ||
        mortise_mutex_new(client, argv[2], NULL, &lock)) {
        fprintf(stderr, "%s\n", mortise_error_detail());
        return 2;
    }
    int turns = (int)strtol(argv[4], NULL, 10);
    int failed = argv[3][0] == '-' ? measure(lock, turns) : take_turns(lock, argv[3], turns);
    return mortise_close(client) || failed;
}
