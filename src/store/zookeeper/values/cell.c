/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells: a node called MRT_ZK_CELL_NAME in the directory of the cell's name.
 *
 *   CELL_GET   sync + get
 *   CELL_SET   sync + get; compare; set with the node's version, or create
 *              if the session has read or written the cell last: only the set
 *
 * A client that reads and then writes must not pay for a second read, and the shorter the time in
 * between, the fewer conflicts. So a session keeps the newest state it has seen of one cell. That
 * state serves one write. A write that is sent again, because its answer was lost, must first read
 * whether it was done. A write with a fence that was refused reads too, because the cell may have
 * a larger fence by now.
 *
 * The node holds a line, and the value after it:
 *
 *   FENCE WRITER v|-      largest fence seen and newest write's identity, in hexadecimal;
 *                         "-": the cell is deleted
 *
 * The node is never deleted, because its fence must be kept. Besides, the server's version of a
 * node starts again when the node does: a write that was compared with the old version would then
 * succeed. The version shown to the program is the transaction of the newest write (mzxid),
 * which rises whatever happens to the node.
 */
#include "store/zookeeper/values/cell.h"

#include "base/assert.h"
#include "store/zookeeper/names.h"
#include "store/zookeeper/ticket/directory.h"
#include "store/zookeeper/values/query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 8
#define HEAD_LENGTH (16 + 1 + 32 + 1 + 1 + 1)

static mrt_zk_payload carry_cell;
static mrt_zk_query_reply cell_read, write_answered, make_answered;
static const struct mrt_zk_step read_step = {.send = mrt_zk_send_get, .query_reply = cell_read};
static const struct mrt_zk_step write_step = {
    .send = mrt_zk_send_set, .payload = carry_cell, .query_reply = write_answered};
static const struct mrt_zk_step make_step = {
    .send = mrt_zk_send_create_stat, .payload = carry_cell, .query_reply = make_answered};

struct cell {
    uint64_t version, fence;
    struct mrt_id writer;
    const char *value;
    int length;
};

static void keep_seen(struct mrt_zk_session *session, const struct mrt_zk_query *query,
                      uint64_t version, uint64_t fence, const struct Stat *stat)
{
    struct mrt_zk_seen *seen = &session->seen;
    seen->known = true;
    seen->version = version;
    seen->fence = fence;
    seen->node_version = stat->version;
    snprintf(seen->path, sizeof seen->path, "%s", query->path);
}

/* Writes the cell, whose largest fence was this, over what its node had at this version. */
static void write_over(struct mrt_zk_session *session, struct mrt_zk_query *query, uint64_t fence,
                       int32_t version)
{
    const struct mrt_command *command = &query->job->command;
    query->fence = command->fence > fence ? command->fence : fence;
    query->version = version;
    mrt_zk_query_send(session, query, &write_step, query->path);
}

/* Whether the known state of its cell is enough to run the command. */
static bool write_unread(struct mrt_zk_session *session, struct mrt_zk_query *query)
{
    const struct mrt_command *command = &query->job->command;
    struct mrt_zk_seen *seen = &session->seen;
    query->unread = command->type == MRT_CELL_SET && seen->known &&
                    command->version == seen->version && strcmp(query->path, seen->path) == 0 &&
                    (command->fence == 0 || command->fence >= seen->fence);
    if (!query->unread)
        return false;
    seen->known = false;
    write_over(session, query, seen->fence, seen->node_version);
    return true;
}

static void read_first(struct mrt_zk_session *session, struct mrt_zk_query *query)
{
    query->unread = false;
    if (mrt_zk_query_sync(session, query))
        mrt_zk_query_send(session, query, &read_step, query->path);
    else
        mrt_zk_query_answer(session, query, MRT_UNKNOWN);
}

void mrt_zk_cell_submit(struct mrt_zk_session *session, struct mrt_job *job, const char *path)
{
    struct mrt_zk_query *query = mrt_zk_query_new(session, job, path);
    if (!query)
        return;
    size_t length = strlen(query->path);
    snprintf(query->path + length, sizeof query->path - length, "/" MRT_ZK_CELL_NAME);
    if (!write_unread(session, query))
        read_first(session, query);
}

static void carry_cell(struct mrt_zk_outgoing *request)
{
    const struct mrt_zk_query *query = request->query;
    const struct mrt_command *command = &query->job->command;
    char writer[MRT_ID_TEXT_SIZE];
    mrt_id_format(command->ticket, writer);
    int length = snprintf(request->text, sizeof request->text, "%016" PRIx64 " %s %c\n",
                          query->fence, writer, command->value ? 'v' : '-');
    MRT_ASSERT(length == HEAD_LENGTH && command->value_size <= MORTISE_VALUE_MAX);
    if (command->value)
        memcpy(request->text + length, command->value, command->value_size);
    request->data = request->text;
    request->length = length + (int)command->value_size;
    request->version = query->version;
}

/* False: not what we write there. */
static bool parse(const struct mrt_zk_reply *reply, struct cell *cell)
{
    char head[HEAD_LENGTH + 1], *end;
    if (reply->length < HEAD_LENGTH)
        return false;
    memcpy(head, reply->text, HEAD_LENGTH);
    head[HEAD_LENGTH] = '\0';
    if (head[16] != ' ' || head[49] != ' ' || head[51] != '\n')
        return false;
    head[16] = head[49] = '\0';
    cell->fence = strtoull(head, &end, 16);
    if (*end != '\0' || !mrt_id_parse(head + 17, &cell->writer))
        return false;
    cell->version = head[50] == 'v' ? (uint64_t)reply->stat->mzxid : 0;
    cell->value = reply->text + HEAD_LENGTH;
    cell->length = reply->length - HEAD_LENGTH;
    return true;
}

static void answer(struct mrt_zk_session *session, struct mrt_zk_query *query, uint64_t version)
{
    query->job->event.version = version;
    mrt_zk_query_answer(session, query, MRT_CELL);
}

static void write_or_refuse(struct mrt_zk_session *session, struct mrt_zk_query *query,
                            const struct cell *cell, const struct Stat *stat)
{
    const struct mrt_command *command = &query->job->command;
    if (mrt_id_equal(cell->writer, command->ticket)) {
        answer(session, query, cell->version); /* it has been done before */
        return;
    }
    if (command->fence > 0 && command->fence < cell->fence) {
        mrt_zk_query_refuse(session, query, MORTISE_ESTALE);
        return;
    }
    if (command->version != cell->version) {
        mrt_zk_query_refuse(session, query, MORTISE_ECONFLICT);
        return;
    }
    if (stat) {
        write_over(session, query, cell->fence, stat->version);
        return;
    }
    query->fence = command->fence;
    mrt_zk_query_send(session, query, &make_step, query->path);
}

static void cell_read(struct mrt_zk_session *session, struct mrt_zk_query *query,
                      const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    struct cell cell = {0};
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_query_answer_code(session, query, reply->code);
        return;
    }
    if (outcome == MRT_ZK_DONE && !parse(reply, &cell)) {
        mrt_zk_query_refuse(session, query, MORTISE_EMISMATCH);
        return;
    }
    if (query->job->command.type == MRT_CELL_SET) {
        write_or_refuse(session, query, &cell, outcome == MRT_ZK_DONE ? reply->stat : NULL);
        return;
    }
    if (outcome == MRT_ZK_DONE)
        keep_seen(session, query, cell.version, cell.fence, reply->stat);
    if (!mrt_zk_query_keep(session, query, cell.value, cell.version ? cell.length : 0))
        return;
    query->job->event.fence = cell.fence;
    answer(session, query, cell.version);
}

static void make_again(struct mrt_zk_session *session, struct mrt_zk_query *query, int code)
{
    char directory[MRT_ZK_PATH_MAX];
    size_t length = strlen(query->path) - strlen("/" MRT_ZK_CELL_NAME);
    if (++query->tries > TRIES_MAX) {
        mrt_zk_query_answer_code(session, query, code);
        return;
    }
    memcpy(directory, query->path, length);
    directory[length] = '\0';
    mrt_zk_directory_make(session, NULL, directory, query->tries > 1);
    mrt_zk_query_send(session, query, &make_step, query->path);
}

static void written(struct mrt_zk_session *session, struct mrt_zk_query *query, bool makes,
                    const struct mrt_zk_reply *reply)
{
    const struct mrt_command *command = &query->job->command;
    bool conflict = reply->code == ZBADVERSION || reply->code == ZNODEEXISTS;
    if (reply->code == ZOK) {
        uint64_t version = command->value ? (uint64_t)reply->stat->mzxid : 0;
        keep_seen(session, query, version, query->fence, reply->stat);
        answer(session, query, version);
    } else if (conflict && query->unread && command->fence > 0) {
        read_first(session, query);
    } else if (reply->code == ZNONODE && makes) {
        make_again(session, query, reply->code);
    } else if (conflict || reply->code == ZNONODE) {
        mrt_zk_query_refuse(session, query, MORTISE_ECONFLICT);
    } else {
        mrt_zk_query_answer_code(session, query, reply->code);
    }
}

static void write_answered(struct mrt_zk_session *session, struct mrt_zk_query *query,
                           const struct mrt_zk_reply *reply)
{
    written(session, query, false, reply);
}

static void make_answered(struct mrt_zk_session *session, struct mrt_zk_query *query,
                          const struct mrt_zk_reply *reply)
{
    written(session, query, true, reply);
}
