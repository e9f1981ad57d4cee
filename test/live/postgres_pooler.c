/* SPDX-License-Identifier: Apache-2.0 */
/* It does not run as root, which it refuses. */
#include "live/postgres_pooler.h"

#include "cmocka_all.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void pg_pooler_start(struct pg_pooler *pooler, const char *mode)
{
    struct sql_proxy *finder = sql_proxy_start(1); /* for a free port */
    *pooler =
        (struct pg_pooler){.port = sql_proxy_port(finder), .file = "/tmp/mortise-pooler-XXXXXX"};
    sql_proxy_stop(finder);
    FILE *file = fdopen(mkstemp(pooler->file), "w");
    fprintf(file,
            "[databases]\nmortise = host=127.0.0.1 port=%u user=mortise pool_size=%d\n[pgbouncer]\n"
            "listen_addr = 127.0.0.1\nlisten_port = %u\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = %s\nlogfile =\nuser = postgres\nignore_startup_parameters = options\n"
            "server_login_retry = 1\n",
            (unsigned)zk_place_port(), strcmp(mode, "session") == 0 ? 20 : 1,
            (unsigned)pooler->port, mode);
    fclose(file);
    chmod(pooler->file, 0644);
    pooler->process = fork();
    if (pooler->process == 0) {
        int nowhere = open("/dev/null", O_RDWR);
        for (int fd = 0; fd <= 2; fd++)
            dup2(nowhere, fd);
        execlp("pgbouncer", "pgbouncer", "-q", pooler->file, (char *)NULL);
        _exit(127);
    }
    char text[128];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%u user=mortise dbname=mortise",
             (unsigned)pooler->port);
    int64_t limit = zk_now_ms() + 20000;
    while (PQping(text) != PQPING_OK) {
        assert_true(zk_now_ms() < limit);
        zk_rest_ms(20);
    }
}

void pg_pooler_stop(struct pg_pooler *pooler)
{
    kill(pooler->process, SIGKILL);
    waitpid(pooler->process, NULL, 0);
    unlink(pooler->file);
}
