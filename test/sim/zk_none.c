/* In a build without the ZooKeeper store no client has one. */
#include "zk_host.h"

#include <stdlib.h>

#ifndef MORTISE_ZOOKEEPER

void zk_host_open(struct world *world, struct client *client)
{
    (void)world, (void)client;
    abort();
}

void zk_host_submit(struct world *world, struct client *client, const struct mrt_command *command)
{
    (void)world, (void)client, (void)command;
    abort();
}

void zk_host_close(struct client *client, bool died)
{
    (void)client, (void)died;
}

void zk_hosts_free(struct client *client)
{
    (void)client;
}

void zk_wires_cut(struct world *world, struct client *client)
{
    (void)world, (void)client;
}

void zk_wires_free(struct client *client)
{
    (void)client;
}

#endif
