/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds 1 to the number in a file, safely however many do it at the same time.
 *
 *   cc counter.c $(pkg-config --cflags --libs mortise) -o counter
 *   ./counter FILE
 */
#include <mortise.h>
#include <stdio.h>

static int add_one(const char *path)
{
    long number = 0;
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%ld", &number) != 1)
            number = 0;
        fclose(file);
    }
    file = fopen(path, "w");
    if (!file)
        return -1;
    fprintf(file, "%ld\n", number + 1);
    return fclose(file);
}

int main(int argc, char **argv)
{
    mortise_client *client;
    mortise_lock *lock;
    mortise_hold hold;
    int error, failed = 1;

    if (argc != 2) {
        fprintf(stderr, "usage: counter FILE\n");
        return 64;
    }
    error = mortise_open(NULL, NULL, &client); /* $MORTISE_URL, or the default file */
    if (error) {
        fprintf(stderr, "%s: %s\n", mortise_error_text(error), mortise_error_detail());
        return 1;
    }
    error = mortise_mutex_new(client, "counter", NULL, &lock);
    if (!error)
        error = mortise_acquire_for(lock, 5000, &hold);
    if (!error) {
        printf("fence %llu\n", (unsigned long long)mortise_hold_fence(hold));
        failed = add_one(argv[1]);
        error = mortise_release(hold);
    }
    if (error)
        fprintf(stderr, "%s: %s\n", mortise_error_text(error), mortise_error_detail());
    mortise_close(client); /* frees the lock as well */
    return error || failed;
}
