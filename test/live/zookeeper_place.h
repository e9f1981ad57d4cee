/* SPDX-License-Identifier: Apache-2.0 */
/* A real server for a test program, started and stopped by tools/servers: ZooKeeper, or any other
   kind that it knows. */
#ifndef TEST_ZOOKEEPER_PLACE_H
#define TEST_ZOOKEEPER_PLACE_H

#include "mortise.h"

#include <stdbool.h>
#include <stdint.h>

/* Options of tools/servers for zk_place_start, and the kind of server; before it. */
void zk_place_settings(const char *text, const char *servers);
/* "kill" or "restart" of one server of several. */
void zk_place_server(const char *command, int number);
/* Any command of it with arguments behind the directory. */
void zk_place_servers_at(const char *command, const char *arguments);
/* cmocka's group set-up and tear-down. */
int zk_place_start(void **state);
int zk_place_stop(void **state);

uint16_t zk_place_port(void);
/* "zk://127.0.0.1:PORT/CHROOT?session=..." of the server, or of a proxy in front of it. */
const char *zk_place_uri(uint16_t port, const char *session);
/* Runs "tools/servers COMMAND DIRECTORY"; what it prints, until the next call. */
const char *zk_place_servers(const char *command);
/* A figure of the server's `mntr`. */
long zk_place_figure(const char *name);

mortise_client *zk_open(const char *uri);
mortise_lock *zk_mutex(mortise_client *client, const char *name);
/* Acquires within 20 s, or fails the test. */
mortise_hold zk_acquire(mortise_lock *lock);
/* Holders and waiters that the server shows under the name. */
int zk_tickets(mortise_client *client, const char *name);
/* Waits until there are so many, at most `ms`. */
bool zk_wait_tickets(mortise_client *client, const char *name, int count, int ms);
void zk_rest_ms(int ms);
int64_t zk_now_ms(void);

/* Log lines of clients with zk_hear as their log. */
extern char zk_said[8192];
void zk_hear(void *argument, const char *text);

#endif
