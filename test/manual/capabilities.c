/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the stores of this build promise, as the tables of man/mortise-stores.7 have it:
 * `tools/manual stores` writes them there, and `tools/manual check` compares. No server is needed,
 * because a client makes no connection before its first acquire.
 *
 * It makes a SQLite file in the directory where it is started.
 */
#include <mortise.h>
#include <stdio.h>
#include <string.h>

#define SERVER "127.0.0.1:1"

struct column {
    const char *head, *uri;
    mortise_capabilities can;
};

static struct column stores[] = {
    {.head = "sqlite", .uri = "sqlite:locks.db"},
    {.head = "memory", .uri = "memory:x"},
    {.head = "zk", .uri = "zk://" SERVER},
    {.head = "redis", .uri = "redis://" SERVER},
    {.head = "redlock",
     .uri = "redlock:redis://" SERVER ",redis://127.0.0.1:2,redis://127.0.0.1:3"},
    {.head = "postgresql", .uri = "postgresql://" SERVER "/a"},
    {.head = "mysql", .uri = "mysql://" SERVER "/a"},
};
static struct column others[] = {
    {.head = "etcd", .uri = "etcd://" SERVER},
    {.head = "nats", .uri = "nats://" SERVER},
    {.head = "k8s", .uri = "k8s://" SERVER "/a?tls=off"},
    {.head = "zk, recipe", .uri = "zk://" SERVER "?layout=recipe"},
};
static struct column forms[] = {
    {.head = "advisory", .uri = "postgresql://" SERVER "/a?form=advisory"},
    {.head = "row", .uri = "postgresql://" SERVER "/a?form=row"},
    {.head = "get_lock", .uri = "mysql://" SERVER "/a?form=get_lock"},
    {.head = "row of mysql", .uri = "mysql://" SERVER "/a?form=row"},
};

static int read_capabilities(struct column *column)
{
    mortise_client_options options = {.size = sizeof options, .timeout_ms = 100};
    mortise_client *client;
    int error = mortise_open(column->uri, &options, &client);
    if (!error) {
        column->can.size = sizeof column->can;
        error = mortise_get_capabilities(client, &column->can);
        mortise_close(client);
    }
    if (error)
        fprintf(stderr, "%s: %s\n", column->uri, mortise_error_detail());
    return error;
}

static void print_row(const char *name, const struct column *columns, size_t count, size_t offset)
{
    printf("%s", name);
    for (size_t i = 0; i < count; i++) {
        int promised;
        memcpy(&promised, (const char *)&columns[i].can + offset, sizeof promised);
        printf(";%s", promised ? "yes" : "\\-");
    }
    putchar('\n');
}

static void print_times(const char *name, const struct column *columns, size_t count, size_t offset)
{
    printf("%s", name);
    for (size_t i = 0; i < count; i++) {
        int64_t time;
        memcpy(&time, (const char *)&columns[i].can + offset, sizeof time);
        if (time > 0)
            printf(";%.1f s", (double)time / 1000);
        else
            printf(";\\-");
    }
    putchar('\n');
}

static int print_table(struct column *columns, size_t count)
{
    static const struct {
        const char *name;
        size_t offset;
    } promises[] = {
        {"order", offsetof(mortise_capabilities, fair)},
        {"exclusive order", offsetof(mortise_capabilities, exclusive_fair)},
        {"fence", offsetof(mortise_capabilities, fence)},
        {"durable fence", offsetof(mortise_capabilities, durable_fence)},
        {"waking", offsetof(mortise_capabilities, notify)},
        {"several hosts", offsetof(mortise_capabilities, across_hosts)},
        {"failover", offsetof(mortise_capabilities, survives_failover)},
        {"durable holds", offsetof(mortise_capabilities, detach)},
        {"lingering", offsetof(mortise_capabilities, linger)},
        {"lock delay", offsetof(mortise_capabilities, lock_delay)},
    };
    printf(".TS\ntab(;);\nlb1");
    for (size_t i = 0; i < count; i++)
        printf(i + 1 < count ? " cb1" : " cb");
    printf("\nl1");
    for (size_t i = 0; i < count; i++)
        printf(i + 1 < count ? " c1" : " c");
    printf(".\n");
    for (size_t i = 0; i < count; i++) {
        if (read_capabilities(&columns[i]))
            return 1;
        printf(";%s", columns[i].head);
    }
    putchar('\n');
    for (size_t i = 0; i < sizeof promises / sizeof promises[0]; i++)
        print_row(promises[i].name, columns, count, promises[i].offset);
    print_times("lease", columns, count, offsetof(mortise_capabilities, lease_ms));
    print_times("left of it", columns, count, offsetof(mortise_capabilities, lease_left_ms));
    printf(".TE\n");
    return 0;
}

int main(void)
{
    return print_table(stores, sizeof stores / sizeof stores[0]) ||
           print_table(others, sizeof others / sizeof others[0]) ||
           print_table(forms, sizeof forms / sizeof forms[0]);
}
