/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's socket in the file system: socket.c. */
#ifndef MRT_AGENT_SOCKET_H
#define MRT_AGENT_SOCKET_H

#include <stdbool.h>

/* Listens on this path, which this process has until it ends: *listener, and *lock, the descriptor
   of PATH.lock. `for_all`: every user may connect; else this one and root. 0, or MORTISE_EBUSY if
   another agent has the path, MORTISE_EUNSAFE if others may write its directory, MORTISE_EINVALID,
   with particulars. */
int mrt_agent_listen(const char *path, bool for_all, int *listener, int *lock);
/* The same with a socket that listens on this path already, and that stays when this process ends.
 */
int mrt_agent_adopt(const char *path, int listener, int *lock);
/* Takes the path away, if it is still this socket's. */
void mrt_agent_unlisten(const char *path, int listener);

#endif
