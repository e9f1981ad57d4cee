/* SPDX-License-Identifier: Apache-2.0 */
/* Where the embedded store agrees to work, and what it does when its files are tampered with. */
#include "cmocka_all.h"
#include "live/sqlite_place.h"
#include "store/sqlite/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGER 12345

/* Opening must be refused with this code, in words that name the file. */
static void expect_refusal(const char *uri, int error, const char *named)
{
    struct port_client client;
    int got = port_try_open(&client, uri, "");
    if (got != error)
        fail_msg("%s: %s (%s), not %s", uri, mortise_error_name(got), mortise_error_detail(),
                 mortise_error_name(error));
    if (!strstr(mortise_error_detail(), named))
        fail_msg("%s: \"%s\" does not name %s", uri, mortise_error_detail(), named);
}

static void expect_success(const char *uri)
{
    struct port_client client;
    port_open_session(&client, uri);
    port_append(&client, "q", port_id());
    port_stop(&client);
    port_close(&client);
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *with(const struct place *place, const char *more)
{
    static char text[4][256];
    static int next;
    char *path = text[next++ % 4];
    snprintf(path, sizeof text[0], "%s%s", place->path, more);
    return path;
}

/* ------------------------------------------------------------------ SE-08 */

static void test_se_08_modes_do_not_depend_on_the_umask(void **state)
{
    const struct place *place = *state;
    const mode_t masks[] = {0, 0777};
    for (int i = 0; i < 2; i++) {
        char uri[160], path[128];
        snprintf(path, sizeof path, "%s/mask%d.db", place->directory, i);
        snprintf(uri, sizeof uri, "sqlite://%s", path);
        mode_t before = umask(masks[i]);
        struct port_client one, two;
        port_open_session(&one, uri);
        port_open_session(&two, uri);
        port_append(&one, "q", port_id());
        struct mrt_event view = port_append(&two, "q", port_id());
        umask(before);
        assert_int_equal(mode_of(path), 0600);
        snprintf(path, sizeof path, "%s/mask%d.db-wal", place->directory, i);
        assert_int_equal(mode_of(path), 0600);
        snprintf(path, sizeof path, "%s/mask%d.db-sessions", place->directory, i);
        assert_int_equal(mode_of(path), 0700);
        port_stop(&one);
        assert_true(port_wait_told(&two, view.ticket, 10 * MRT_SECOND));
        port_close(&one);
        port_stop(&two);
        port_close(&two);
    }
}

static void test_se_08_a_symbolic_link_is_refused(void **state)
{
    const struct place *place = *state;
    assert_int_equal(symlink(with(place, ".target"), place->path), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
    assert_false(exists(with(place, ".target"))); /* nothing made through it */
    write_file(with(place, ".target"), "");
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
}

static void test_se_08_a_hard_link_is_refused(void **state)
{
    const struct place *place = *state;
    expect_success(place->uri);
    assert_int_equal(link(place->path, with(place, ".other")), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
    assert_int_equal(unlink(with(place, ".other")), 0);
    expect_success(place->uri);
}

static void test_se_08_a_file_that_others_can_write_is_refused(void **state)
{
    const struct place *place = *state;
    expect_success(place->uri);
    assert_int_equal(chmod(place->path, 0620), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
    assert_int_equal(chmod(place->path, 0602), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
}

/* A reader can take the locks that SQLite takes, in the companions too. */
static void test_se_08_a_file_that_others_can_read_is_refused(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open_session(&client, place->uri);
    const char *const files[] = {"", "-wal", "-shm"};
    const mode_t modes[] = {0640, 0604};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(chmod(with(place, files[i / 2]), modes[i % 2]), 0);
        expect_refusal(place->uri, MORTISE_EUNSAFE, with(place, files[i / 2]));
        assert_int_equal(chmod(with(place, files[i / 2]), 0600), 0);
    }
    port_stop(&client);
    port_close(&client);
    expect_success(place->uri);
}

static void test_se_08_a_directory_that_others_can_write_is_refused(void **state)
{
    const struct place *place = *state;
    const mode_t modes[] = {0777, 01777, 0770};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(chmod(place->directory, modes[i]), 0);
        expect_refusal(place->uri, MORTISE_EUNSAFE, place->directory);
        assert_false(exists(place->path));
    }
    assert_int_equal(chmod(place->directory, 0755), 0);
    expect_success(place->uri);
}

static void test_se_08_a_directory_above_that_all_can_write_is_refused(void **state)
{
    const struct place *place = *state;
    char inner[128], uri[160];
    snprintf(inner, sizeof inner, "%s/inner", place->directory);
    snprintf(uri, sizeof uri, "sqlite://%s/locks.db", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(chmod(place->directory, 0777), 0);
    expect_refusal(uri, MORTISE_EUNSAFE, place->directory);
    assert_int_equal(chmod(place->directory, 01777), 0); /* sticky, as /tmp */
    expect_success(uri);
}

static void test_se_08_a_directory_above_that_a_group_can_write_is_refused(void **state)
{
    const struct place *place = *state;
    char inner[128], uri[160];
    if (geteuid() != 0)
        skip();
    snprintf(inner, sizeof inner, "%s/inner", place->directory);
    snprintf(uri, sizeof uri, "sqlite://%s/locks.db", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(chown(place->directory, 0, STRANGER), 0);
    assert_int_equal(chmod(place->directory, 0775), 0);
    expect_refusal(uri, MORTISE_EUNSAFE, place->directory);
    assert_int_equal(chown(place->directory, 0, getegid()), 0);
    expect_success(uri);
}

/* As for root with the environment of another user: nothing is made in that user's places. */
static void test_se_08_nothing_is_made_in_a_foreign_state_directory(void **state)
{
    const struct place *place = *state;
    char foreign[128], link[128], wanted[160];
    if (geteuid() != 0)
        skip();
    snprintf(foreign, sizeof foreign, "%s/foreign", place->directory);
    snprintf(link, sizeof link, "%s/link", place->directory);
    snprintf(wanted, sizeof wanted, "%s/mortise", foreign);
    assert_int_equal(mkdir(foreign, 0755), 0);
    assert_int_equal(chown(foreign, STRANGER, STRANGER), 0);
    assert_int_equal(symlink(foreign, link), 0);
    const char *const states[] = {foreign, link};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setenv("XDG_STATE_HOME", states[i], 1), 0);
        expect_refusal("sqlite:", MORTISE_EUNSAFE, foreign);
        assert_false(exists(wanted));
    }
    unsetenv("XDG_STATE_HOME");
}

static void test_se_08_a_link_in_a_foreign_state_directory_is_not_followed(void **state)
{
    const struct place *place = *state;
    char foreign[PATH_MAX], own[PATH_MAX], link[PATH_MAX + 16], made[PATH_MAX + 16];
    mortise_client *client = NULL;
    if (geteuid() != 0)
        skip();
    snprintf(foreign, sizeof foreign, "%s/theirs", place->directory);
    snprintf(own, sizeof own, "%s/ours", place->directory);
    snprintf(link, sizeof link, "%s/mortise", foreign);
    snprintf(made, sizeof made, "%s/locks.db", own);
    assert_int_equal(mkdir(foreign, 0755), 0);
    assert_int_equal(mkdir(own, 0700), 0);
    assert_int_equal(symlink(own, link), 0);
    assert_int_equal(chown(foreign, 65534, 65534), 0);
    assert_int_equal(setenv("XDG_STATE_HOME", foreign, 1), 0);
    int error = mortise_open("sqlite:", NULL, &client);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    mortise_close(client);
    assert_int_equal(error, MORTISE_EUNSAFE);
    assert_int_equal(access(made, F_OK), -1);
}

static void test_se_08_a_file_or_directory_of_another_user_is_refused(void **state)
{
    const struct place *place = *state;
    if (geteuid() != 0)
        skip();
    expect_success(place->uri);
    assert_int_equal(chown(place->path, STRANGER, STRANGER), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
    assert_int_equal(chown(place->path, 0, 0), 0);
    assert_int_equal(chown(place->directory, STRANGER, STRANGER), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->directory);
    char inner[128], uri[160];
    snprintf(inner, sizeof inner, "%s/inner", place->directory);
    snprintf(uri, sizeof uri, "sqlite://%s/locks.db", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    expect_refusal(uri, MORTISE_EUNSAFE, place->directory);
}

static void test_se_08_planted_companions_are_refused(void **state)
{
    const struct place *place = *state;
    const char *const companions[] = {"-wal", "-shm", "-sessions"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(symlink("/etc/hostname", with(place, companions[i])), 0);
        expect_refusal(place->uri, MORTISE_EUNSAFE, with(place, companions[i]));
        assert_non_null(strstr(mortise_error_detail(), "remove it while nothing uses the store"));
        assert_int_equal(unlink(with(place, companions[i])), 0);
    }
    assert_int_equal(mkdir(with(place, "-sessions"), 0700), 0);
    assert_int_equal(chmod(with(place, "-sessions"), 0777), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, with(place, "-sessions"));
    assert_non_null(strstr(mortise_error_detail(), "remove it while nothing uses the store"));
    assert_int_equal(rmdir(with(place, "-sessions")), 0); /* as the advice says */
    expect_success(place->uri);
}

static void test_se_08_another_programs_database_is_left_alone(void **state)
{
    const struct place *place = *state;
    struct stat before, after;
    sqlite3 *handle;
    assert_int_equal(sqlite3_open(place->path, &handle), SQLITE_OK);
    assert_int_equal(chmod(place->path, 0600), 0);
    assert_int_equal(sqlite3_exec(handle, "CREATE TABLE theirs (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    assert_int_equal(stat(place->path, &before), 0);
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
    assert_int_equal(stat(place->path, &after), 0);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_int_equal(before.st_size, after.st_size);
    write_file(place->path, "this is not a database at all, but a text that somebody wrote\n");
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
}

static uint64_t take_fence(const char *uri)
{
    struct port_client client;
    port_open_session(&client, uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    assert_int_equal(view.type, MRT_VIEW);
    port_stop(&client);
    port_close(&client);
    return view.fence;
}

static void test_a_database_of_an_earlier_format_is_brought_forward(void **state)
{
    const struct place *place = *state;
    const char *const backward[] = {
        "ALTER TABLE mortise_ticket DROP COLUMN delay",
        "ALTER TABLE mortise_ticket DROP COLUMN until",
        "UPDATE mortise_ticket SET since = 3 WHERE queue = ''",
        "ALTER TABLE mortise_ticket DROP COLUMN linger",
        "UPDATE mortise_ticket SET since = 2 WHERE queue = ''",
        "ALTER TABLE mortise_ticket DROP COLUMN value",
        "ALTER TABLE mortise_ticket DROP COLUMN revoked",
        "DROP TABLE mortise_cell",
        "UPDATE mortise_ticket SET since = 1 WHERE queue = ''",
    };
    uint64_t last = take_fence(place->uri);
    for (size_t i = 0; i < sizeof backward / sizeof *backward; i++) {
        query(place->path, backward[i]);
        if (!strstr(backward[i], "SET since"))
            continue;
        struct port_client client;
        uint64_t fence = take_fence(place->uri);
        assert_true(fence > last);
        last = fence;
        port_open_session(&client, place->uri);
        assert_int_equal(port_cell_set(&client, "c", 0, 0, "one").type, MRT_CELL);
        struct mrt_event held = port_append(&client, "q", port_id());
        assert_int_equal(client.ops->revoke(client.store, "q", held.fence), MORTISE_OK);
        assert_int_equal(query(place->path, "PRAGMA user_version"), 4);
        port_stop(&client);
        port_close(&client);
        query(place->path, "DELETE FROM mortise_cell");
    }
    for (size_t i = 0; i + 1 < sizeof backward / sizeof *backward; i++)
        query(place->path, backward[i]); /* all at once, by many at once */
    query(place->path, "UPDATE mortise_ticket SET since = 1 WHERE queue = ''");
    struct helper helpers[6];
    for (size_t i = 0; i < 6; i++)
        helper_start(&helpers[i], "open", place->uri, "");
    for (size_t i = 0; i < 6; i++)
        helper_finish(&helpers[i]);
    check_integrity(place->path);
}

static void test_se_08_a_database_of_another_format_is_refused(void **state)
{
    const struct place *place = *state;
    expect_success(place->uri);
    query(place->path, "UPDATE mortise_ticket SET since = 99 WHERE queue = ''");
    expect_refusal(place->uri, MORTISE_EUNSAFE, place->path);
}

/* --------------------------------------------------------------- addresses */

static void test_uri_forms(void **state)
{
    const struct place *place = *state;
    char uri[300], here[256];
    expect_refusal("sqlite://relative/locks.db", MORTISE_EURI, "sqlite:///");
    snprintf(uri, sizeof uri, "%s?colour=blue", place->uri);
    expect_refusal(uri, MORTISE_EURI, "colour");
    snprintf(uri, sizeof uri, "%s?unsafe_filesystem=perhaps", place->uri);
    expect_refusal(uri, MORTISE_EURI, "unsafe_filesystem");
    snprintf(uri, sizeof uri, "sqlite://%s/", place->directory);
    expect_refusal(uri, MORTISE_EURI, place->directory);
    snprintf(uri, sizeof uri, "sqlite://%s/missing/locks.db", place->directory);
    expect_refusal(uri, MORTISE_EUNREACHABLE, "/missing");
    expect_refusal("sqlite:///tmp/%zz", MORTISE_EURI, "escape");
    snprintf(uri, sizeof uri, "%s%%20x?namespace=n&unsafe_filesystem=yes", place->uri);
    expect_success(uri);
    assert_true(exists(with(place, " x")));
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(place->directory), 0);
    expect_success("sqlite:relative.db");
    assert_int_equal(chdir(here), 0);
    snprintf(uri, sizeof uri, "%s/relative.db", place->directory);
    assert_true(exists(uri));
}

static void test_uri_address_is_canonical(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    char uri[300], address[200];
    snprintf(uri, sizeof uri, "sqlite://%s/../%s/./locks.db", place->directory,
             strrchr(place->directory, '/') + 1);
    port_open(&client, uri, "");
    snprintf(address, sizeof address, "sqlite:%s", place->path);
    assert_string_equal(client.ops->address(client.store), address);
    port_close(&client);
}

static void test_default_path_is_made(void **state)
{
    const struct place *place = *state;
    char path[256], expected[300];
    snprintf(path, sizeof path, "%s/some/state", place->directory);
    assert_int_equal(setenv("XDG_STATE_HOME", path, 1), 0);
    snprintf(expected, sizeof expected, "%s/mortise/locks.db", path);
    assert_int_equal(mrt_sqlite_default_path(path, sizeof path), 0);
    assert_string_equal(path, expected);
    assert_false(exists(expected));
    expect_success("sqlite:");
    assert_int_equal(mode_of(expected), 0600);
    *strrchr(expected, '/') = '\0';
    assert_int_equal(mode_of(expected), 0700);
    assert_int_equal(mrt_sqlite_default_path(path, 10), MORTISE_EINVALID);
    unsetenv("XDG_STATE_HOME");
}

static void test_j_the_error_of_a_mismatch_names_both_kinds(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open_session(&client, place->uri);
    port_append(&client, "q", port_id());
    struct mrt_event event = port_append_weight(&client, "q", port_id(), "semaphore", 7, 1);
    assert_int_equal(event.type, MRT_FAILED);
    assert_int_equal(event.error, MORTISE_EMISMATCH);
    assert_non_null(strstr(client.detail, "mutex"));
    assert_non_null(strstr(client.detail, "semaphore"));
    port_stop(&client);
    port_close(&client);
}

/* ------------------------------------------------------------------ SQ-21 */

static void test_sq_21_network_file_systems_are_known(void **state)
{
    (void)state;
    const unsigned long refused[] = {0x6969,     0x517b,     0xff534d42, 0xfe534d42,
                                     0x01021997, 0x65735546, 0x5346414f, 0x00c36400,
                                     0x7461636f, 0x01161970, 0x0bd00bd0, 0x73757245};
    const unsigned long fine[] = {0xef53 /* ext4 */,      0x58465342 /* XFS */,
                                  0x9123683e /* btrfs */, 0x01021994 /* tmpfs */,
                                  0x2fc12fc1 /* ZFS */,   0x794c7630 /* overlay */};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_non_null(mrt_sqlite_shared_filesystem(refused[i]));
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        assert_null(mrt_sqlite_shared_filesystem(fine[i]));
    assert_string_equal(mrt_sqlite_shared_filesystem(0x6969), "NFS");
}

/* ------------------------------------------------------------------ SQ-24 */

/* The client must be told that its hold is lost, and can start again on a new file. */
static void expect_loss(struct port_client *client, const struct mrt_event *view)
{
    rest(150 * MRT_MILLISECOND); /* the files are not looked at by each REFRESH */
    struct mrt_event event = port_refresh(client, "q", view);
    assert_int_equal(event.type, MRT_FAILED);
    assert_int_equal(event.error, MORTISE_ESTORE);
    assert_true(port_wait(client, MRT_SESSION_LOST, (struct mrt_id){0, 0}, MRT_SECOND, &event));
    assert_int_equal(event.error, MORTISE_ESTORE);
    assert_non_null(strstr(client->detail, "locks.db"));
    assert_int_equal(port_append(client, "q", port_id()).type, MRT_FAILED);
    assert_int_equal(port_stop(client).type, MRT_STOPPED);
    client->session = port_id();
    assert_int_equal(port_start(client).type, MRT_STARTED);
    struct mrt_event again = port_append(client, "q", port_id());
    assert_int_equal(again.type, MRT_VIEW);
    assert_int_equal(again.weight_ahead, 0);
    port_stop(client);
    port_close(client);
}

static void test_sq_24_an_unlinked_database_is_a_loss(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    assert_true(view.recheck <= 2 * MRT_SECOND); /* it is noticed by then */
    assert_int_equal(unlink(place->path), 0);
    unlink(with(place, "-wal"));
    unlink(with(place, "-shm"));
    expect_loss(&client, &view);
}

static void test_sq_24_a_replaced_database_is_a_loss(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    unlink(with(place, "-wal"));
    unlink(with(place, "-shm"));
    write_file(with(place, ".new"), "");
    assert_int_equal(rename(with(place, ".new"), place->path), 0);
    struct mrt_event event = port_append(&client, "other", port_id());
    assert_int_equal(event.type, MRT_FAILED); /* an APPEND notices at once */
    assert_true(port_wait(&client, MRT_SESSION_LOST, (struct mrt_id){0, 0}, MRT_SECOND, NULL));
    assert_int_equal(port_refresh(&client, "q", &view).type, MRT_GONE);
    port_stop(&client);
    client.session = port_id();
    assert_int_equal(port_start(&client).type, MRT_STARTED);
    assert_int_equal(port_append(&client, "q", port_id()).type, MRT_VIEW);
    port_stop(&client);
    port_close(&client);
    check_integrity(place->path);
}

static void test_sq_24_a_removed_session_file_is_a_loss(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open_session(&client, place->uri);
    struct mrt_event view = port_append(&client, "q", port_id());
    remove_tree(with(place, "-sessions"));
    expect_loss(&client, &view);
}

static void test_sq_24_all_files_may_go_between_two_sessions(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    port_open(&client, place->uri, "");
    for (int i = 0; i < 2; i++) {
        remove_tree(i ? place->directory : with(place, "-sessions"));
        if (i)
            assert_int_equal(mkdir(place->directory, 0700), 0);
        client.session = port_id();
        assert_int_equal(port_start(&client).type, MRT_STARTED);
        assert_int_equal(port_append(&client, "q", port_id()).type, MRT_VIEW);
        port_stop(&client);
    }
    port_close(&client);
}

/* Fills the file system except for a few pages; the caller unlinks the ballast's path. */
static void fill_up(const char *ballast, off_t keep)
{
    static char block[1024];
    int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    off_t size = 0;
    while (write(fd, block, sizeof block) == (ssize_t)sizeof block)
        size += (off_t)sizeof block;
    assert_true(size > keep);
    assert_int_equal(ftruncate(fd, size - keep), 0);
    close(fd);
}

/* Takes and gives back until the disk is full; false: it never was. */
static bool cycle_until_full(struct port_client *client)
{
    for (int i = 0; i < 2000; i++) {
        struct mrt_event view = port_append(client, "r", port_id());
        if (view.type == MRT_VIEW)
            view = port_remove(client, "r", view.ticket, view.fence);
        if (view.type == MRT_FAILED) {
            assert_int_equal(view.error, MORTISE_ESTORE);
            return true;
        }
    }
    return false;
}

static void test_sq_24_a_full_disk(void **state)
{
    const struct place *place = *state;
    char uri[200], path[160], ballast[160];
    struct port_client client, other;
    if (mount("none", place->directory, "tmpfs", MS_NODEV | MS_NOSUID, "size=512k,mode=0700") < 0)
        skip();
    snprintf(path, sizeof path, "%s/locks.db", place->directory);
    snprintf(uri, sizeof uri, "sqlite://%s", path);
    snprintf(ballast, sizeof ballast, "%s/ballast", place->directory);
    port_open_session(&client, uri);
    port_open_session(&other, uri);
    struct mrt_event held = port_append(&client, "q", port_id());
    fill_up(ballast, 20000);
    assert_true(cycle_until_full(&client));
    if (port_wait(&client, MRT_SESSION_LOST, (struct mrt_id){0, 0}, 0, NULL)) {
        assert_int_equal(port_refresh(&client, "q", &held).type, MRT_GONE);
    } else { /* an APPEND that failed: what is held is held */
        assert_int_equal(port_refresh(&client, "q", &held).type, MRT_VIEW);
        assert_int_not_equal(port_try(&other, "q", port_id()).type, MRT_VIEW);
    }
    assert_int_equal(port_stop(&client).type, MRT_STOPPED);
    assert_int_equal(unlink(ballast), 0);
    client.session = port_id();
    assert_int_equal(port_start(&client).type, MRT_STARTED);
    struct mrt_event view = port_append(&client, "q", port_id());
    assert_int_equal(view.type, MRT_VIEW);
    port_wait_granted(&client, "q", view, 1, 1, 10 * MRT_SECOND);
    port_stop(&client);
    port_stop(&other);
    port_close(&client);
    port_close(&other);
    check_integrity(path);
    assert_int_equal(umount2(place->directory, MNT_DETACH), 0);
}

static void test_sq_24_a_limit_on_the_size_of_files(void **state)
{
    const struct place *place = *state;
    struct port_client client;
    struct rlimit before, low = {.rlim_cur = 40000};
    signal(SIGXFSZ, SIG_IGN);
    port_open_session(&client, place->uri);
    struct mrt_event held = port_append(&client, "q", port_id());
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    bool full = cycle_until_full(&client);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_true(full);
    if (!port_wait(&client, MRT_SESSION_LOST, (struct mrt_id){0, 0}, 0, NULL))
        assert_int_equal(port_refresh(&client, "q", &held).type, MRT_VIEW);
    port_stop(&client);
    client.session = port_id();
    assert_int_equal(port_start(&client).type, MRT_STARTED);
    struct mrt_event view = port_append(&client, "q", port_id());
    port_wait_granted(&client, "q", view, 1, 1, 10 * MRT_SECOND);
    port_stop(&client);
    port_close(&client);
    check_integrity(place->path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(int count, char **arguments)
{
    if (count >= 4 && strcmp(arguments[1], "child") == 0) {
        expect_success(arguments[3]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        TEST(test_se_08_modes_do_not_depend_on_the_umask),
        TEST(test_se_08_a_symbolic_link_is_refused),
        TEST(test_se_08_a_hard_link_is_refused),
        TEST(test_se_08_a_file_that_others_can_write_is_refused),
        TEST(test_se_08_a_directory_that_others_can_write_is_refused),
        TEST(test_se_08_a_file_that_others_can_read_is_refused),
        TEST(test_se_08_a_directory_above_that_all_can_write_is_refused),
        TEST(test_se_08_a_directory_above_that_a_group_can_write_is_refused),
        TEST(test_se_08_nothing_is_made_in_a_foreign_state_directory),
        TEST(test_se_08_a_link_in_a_foreign_state_directory_is_not_followed),
        TEST(test_se_08_a_file_or_directory_of_another_user_is_refused),
        TEST(test_se_08_planted_companions_are_refused),
        TEST(test_se_08_another_programs_database_is_left_alone),
        TEST(test_se_08_a_database_of_another_format_is_refused),
        TEST(test_a_database_of_an_earlier_format_is_brought_forward),
        TEST(test_uri_forms),
        TEST(test_uri_address_is_canonical),
        TEST(test_default_path_is_made),
        TEST(test_j_the_error_of_a_mismatch_names_both_kinds),
        TEST(test_sq_21_network_file_systems_are_known),
        TEST(test_sq_24_an_unlinked_database_is_a_loss),
        TEST(test_sq_24_a_replaced_database_is_a_loss),
        TEST(test_sq_24_a_removed_session_file_is_a_loss),
        TEST(test_sq_24_all_files_may_go_between_two_sessions),
        TEST(test_sq_24_a_full_disk),
        TEST(test_sq_24_a_limit_on_the_size_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
