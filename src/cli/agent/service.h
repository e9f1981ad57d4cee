/* SPDX-License-Identifier: Apache-2.0 */
/* A manager of services beside mortise agent, and what an agent says of itself: service.c. */
#ifndef MRT_CLI_AGENT_SERVICE_H
#define MRT_CLI_AGENT_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

/* Tells the manager that the service is ready, if there is one. */
void mrt_service_ready(void);
/* The listening socket that the manager has opened; -1: none; -2: several. */
int mrt_service_listener(void);
/* The path of a socket; false: it has none. */
bool mrt_service_path(int listener, char *path, size_t size);
/* The INFO of the agent at this path. 0, or an errno. */
int mrt_agent_ask(const char *path, char *text, size_t size);

#endif
