/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the agent: a kernel before Linux 6.5, which does not give the descriptor of the
 * process that made a connection. All else is as ever.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

typedef int get_option(int, int, int, void *, socklen_t *);

__attribute__((visibility("default"))) int getsockopt(int fd, int level, int option, void *value,
                                                      socklen_t *size)
{
    get_option *real = (get_option *)dlsym(RTLD_NEXT, "getsockopt");
    if (level != SOL_SOCKET || option != SO_PEERPIDFD)
        return real(fd, level, option, value, size);
    errno = ENOPROTOOPT;
    return -1;
}
