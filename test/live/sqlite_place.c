/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers are started with posix_spawn from /proc/self/exe; what they print comes back
 * through a pipe, a line at a time. A helper that is left over ends by its alarm.
 */
#include "live/sqlite_place.h"

#include "cmocka_all.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

int place_make(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    snprintf(place->directory, sizeof place->directory, "/tmp/mortise-test-XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    snprintf(place->path, sizeof place->path, "%s/locks.db", place->directory);
    snprintf(place->uri, sizeof place->uri, "sqlite://%s", place->path);
    *state = place;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void remove_tree(const char *directory)
{
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int place_remove(void **state)
{
    struct place *place = *state;
    remove_tree(place->directory);
    free(place);
    return 0;
}

void helper_start(struct helper *helper, const char *role, const char *uri, const char *more)
{
    int ends[2];
    char name[] = "helper", child[] = "child";
    char *arguments[] = {
        name, child, (char *)(uintptr_t)role, (char *)(uintptr_t)uri, (char *)(uintptr_t)more,
        NULL};
    posix_spawn_file_actions_t actions;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    assert_int_equal(
        posix_spawn(&helper->pid, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    helper->out = ends[0];
}

void helper_read(struct helper *helper, char *line, size_t size)
{
    for (size_t length = 0; length < size; length++) {
        if (read(helper->out, &line[length], 1) != 1)
            fail_msg("a helper ended early");
        if (line[length] == '\n') {
            line[length] = '\0';
            return;
        }
    }
    fail_msg("a helper said too much");
}

void helper_expect(struct helper *helper, const char *line)
{
    char said[128];
    helper_read(helper, said, sizeof said);
    assert_string_equal(said, line);
}

void helper_kill(struct helper *helper)
{
    kill(helper->pid, SIGKILL);
    assert_int_equal(waitpid(helper->pid, NULL, 0), helper->pid);
    close(helper->out);
}

void helper_finish(struct helper *helper)
{
    int status;
    assert_int_equal(waitpid(helper->pid, &status, 0), helper->pid);
    close(helper->out);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

void helper_say(const char *line)
{
    printf("%s\n", line);
    fflush(stdout);
}

_Noreturn void helper_sleep(void)
{
    alarm(120); /* should the test never come to end it */
    for (;;)
        pause();
}

int64_t query(const char *path, const char *text)
{
    sqlite3 *handle;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(handle, 5000);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_prepare_v2(handle, text, -1, &statement, NULL), SQLITE_OK);
    int step = sqlite3_step(statement);
    int64_t value = step == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (step != SQLITE_ROW)
        assert_int_equal(step, SQLITE_DONE);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return value;
}

void check_integrity(const char *path)
{
    assert_int_equal(query(path, "SELECT count(*) FROM pragma_integrity_check"
                                 " WHERE integrity_check <> 'ok'"),
                     0);
}

static int age_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    const struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
    (void)status;
    (void)walk;
    return type == FTW_F ? utimensat(AT_FDCWD, path, old, AT_SYMLINK_NOFOLLOW) : 0;
}

void age_tree(const char *directory)
{
    assert_int_equal(nftw(directory, age_one, 16, FTW_PHYS), 0);
}

void rest(mrt_time time)
{
    const struct timespec pause = {time / MRT_SECOND, time % MRT_SECOND};
    nanosleep(&pause, NULL);
}
