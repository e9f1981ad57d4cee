/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of locks on NATS: what libnats takes, on one connection that stays, for what a lock
 * cannot do without.
 *
 *   bench_nats_floor SERVERS SECONDS PAUSE_MS REPLICAS
 *
 * In turns: a message published into a stream, and its acknowledgement; a key of a key-value store
 * created, which fails if it is there; and the same key deleted, waited for. PAUSE_MS is between
 * the delete and what follows. Prints one JSON object: medians, and the rate of create and delete.
 */
#include "../clock.h"

#include <nats/nats.h>
#include <string.h>
#include <unistd.h>

#define TIMES_MAX 200000
#define VALUE \
    "mortise 1 mutex 1 1 0 1764270000000 0123456789abcdef0123456789abcdef host 12345 bench"

static natsConnection *connection;
static jsCtx *stream;
static kvStore *keys;

static void must(natsStatus status, const char *what)
{
    if (status == NATS_OK)
        return;
    fprintf(stderr, "bench_nats_floor: %s: %s\n", what, natsStatus_GetText(status));
    nats_PrintLastErrorStack(stderr);
    exit(1);
}

static void prepare(const char *servers, int replicas)
{
    static const char *subject = "bench-floor.bare";
    jsStreamConfig messages;
    kvConfig store;
    must(natsConnection_ConnectTo(&connection, servers), "cannot connect");
    must(natsConnection_JetStream(&stream, connection, NULL), "no JetStream");
    must(jsStreamConfig_Init(&messages), "stream");
    messages.Name = "bench-floor";
    messages.Subjects = &subject;
    messages.SubjectsLen = 1;
    messages.MaxMsgsPerSubject = 1;
    messages.Replicas = replicas;
    must(js_AddStream(NULL, stream, &messages, NULL, NULL), "cannot make the stream");
    must(kvConfig_Init(&store), "keys");
    store.Bucket = "bench-keys";
    store.History = 1;
    store.Replicas = replicas;
    must(js_CreateKeyValue(&keys, stream, &store), "cannot make the keys");
}

static void clean_up(void)
{
    must(js_DeleteStream(stream, "bench-floor", NULL, NULL), "cannot delete the stream");
    must(js_DeleteKeyValue(stream, "bench-keys"), "cannot delete the keys");
    kvStore_Destroy(keys);
    jsCtx_Destroy(stream);
    natsConnection_Destroy(connection);
    nats_Close();
}

static void publish(void)
{
    jsPubAck *acknowledged = NULL;
    must(js_Publish(&acknowledged, stream, "bench-floor.bare", VALUE, (int)strlen(VALUE), NULL,
                    NULL),
         "cannot publish");
    jsPubAck_Destroy(acknowledged);
}

int main(int argc, char **argv)
{
    static int64_t publishes[TIMES_MAX], acquires[TIMES_MAX], cycles[TIMES_MAX];
    if (argc != 5)
        return 64;
    int64_t seconds = (int64_t)(strtod(argv[2], NULL) * 1e9), pause = strtol(argv[3], NULL, 10);
    int64_t spent = 0;
    size_t count = 0;
    prepare(argv[1], (int)strtol(argv[4], NULL, 10));
    for (int64_t end = now_ns() + seconds; now_ns() < end && count < TIMES_MAX; count++) {
        int64_t begin = now_ns();
        publish();
        publishes[count] = now_ns() - begin;
        if (pause > 0)
            usleep((useconds_t)pause * 1000);
        begin = now_ns();
        must(kvStore_CreateString(NULL, keys, "lock", VALUE), "cannot create the key");
        acquires[count] = now_ns() - begin;
        must(kvStore_Delete(keys, "lock"), "cannot delete the key");
        cycles[count] = now_ns() - begin;
        spent += cycles[count];
        if (pause > 0)
            usleep((useconds_t)pause * 1000);
    }
    clean_up();
    if (count == 0)
        return 1;
    printf("{\"publish_us\": %.1f, \"acquire_us\": %.1f, \"cycle_us\": %.1f, "
           "\"acquisitions_per_s\": %.1f}\n",
           median_us(publishes, count), median_us(acquires, count), median_us(cycles, count),
           (double)count / ((double)spent / 1e9));
    return 0;
}
