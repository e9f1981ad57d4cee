/*
 * Cells: a node called MRT_ZK_CELL_NAME in the directory of the cell's name.
 *
 *   CELL_GET   sync + get
 *   CELL_SET   sync + get; compare; set with the node's version, or create
 *              of what the session has read or written last: the set alone
 *
 * Who reads and then writes is not to pay for a second read, and the shorter the time in between,
 * the fewer conflicts. So a session keeps what it has seen last of one cell. It
 * serves for one write: a write that is sent again, because its answer was lost, has to look
 * whether it was done. A refused one that came with a fence looks too, for the cell may have a
 * larger one by now.
 *
 * The node holds a line, and the value after it:
 *
 *   FENCE WRITER v|-      largest fence seen and newest write's identity, in hexadecimal;
 *                         "-": the cell is deleted
 *
 * It is never deleted, for its fence must be kept, and for the server's version of a node
 * starts again when the node does: a write that was compared with the old one would go
 * through. What is shown as version is the transaction of the newest write (mzxid),
 * which rises whatever happens to the node.
 */
#include "store/zookeeper/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 8
#define HEAD_LENGTH (16 + 1 + 32 + 1 + 1 + 1)

struct cell {
    uint64_t version, fence;
    struct mrt_id writer;
    const char *value;
    int length;
};

static void keep_seen(struct mrt_zk_session *session, const struct mrt_zk_query *look,
                      uint64_t version, uint64_t fence, const struct Stat *stat)
{
    struct mrt_zk_seen *seen = &session->seen;
    seen->known = true;
    seen->version = version;
    seen->fence = fence;
    seen->node_version = stat->version;
    snprintf(seen->path, sizeof seen->path, "%s", look->path);
}

/* Writes the cell, whose largest fence was this, over what its node had at this version. */
static void write_over(struct mrt_zk_session *session, struct mrt_zk_query *look, uint64_t fence,
                       int32_t version)
{
    const struct mrt_command *command = &look->job->command;
    look->fence = command->fence > fence ? command->fence : fence;
    look->version = version;
    mrt_zk_query_send(session, look, MRT_ZK_CELL_WRITE, look->path);
}

/* Whether the command can be done by what is known of its cell. */
static bool begin_unread(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    const struct mrt_command *command = &look->job->command;
    struct mrt_zk_seen *seen = &session->seen;
    look->unread = command->type == MRT_CELL_SET && seen->known &&
                   command->version == seen->version && strcmp(look->path, seen->path) == 0 &&
                   (command->fence == 0 || command->fence >= seen->fence);
    if (!look->unread)
        return false;
    seen->known = false;
    write_over(session, look, seen->fence, seen->node_version);
    return true;
}

static void read_first(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    look->unread = false;
    if (mrt_zk_send_watch(session, MRT_ZK_LOOK_SYNC, look->number, look->path))
        mrt_zk_query_send(session, look, MRT_ZK_CELL_READ, look->path);
    else
        mrt_zk_query_answer(session, look, MRT_UNKNOWN);
}

void mrt_zk_cell_begin(struct mrt_zk_session *session, struct mrt_zk_query *look)
{
    size_t length = strlen(look->path);
    snprintf(look->path + length, sizeof look->path - length, "/" MRT_ZK_CELL_NAME);
    if (!begin_unread(session, look))
        read_first(session, look);
}

int mrt_zk_cell_data(const struct mrt_zk_query *look, char data[MRT_ZK_CELL_MAX])
{
    const struct mrt_command *command = &look->job->command;
    char writer[MRT_ID_TEXT_SIZE];
    mrt_id_format(command->ticket, writer);
    int length = snprintf(data, MRT_ZK_CELL_MAX, "%016" PRIx64 " %s %c\n", look->fence, writer,
                          command->value ? 'v' : '-');
    if (command->value)
        memcpy(data + length, command->value, command->value_size);
    return length + (int)command->value_size;
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

static void answer(struct mrt_zk_session *session, struct mrt_zk_query *look, uint64_t version)
{
    look->job->event.version = version;
    mrt_zk_query_answer(session, look, MRT_CELL);
}

static void write_or_refuse(struct mrt_zk_session *session, struct mrt_zk_query *look,
                            const struct cell *cell, const struct Stat *stat)
{
    const struct mrt_command *command = &look->job->command;
    if (mrt_id_equal(cell->writer, command->ticket)) {
        answer(session, look, cell->version); /* it has been done before */
        return;
    }
    if (command->fence > 0 && command->fence < cell->fence) {
        mrt_zk_query_refuse(session, look, MORTISE_ESTALE);
        return;
    }
    if (command->version != cell->version) {
        mrt_zk_query_refuse(session, look, MORTISE_ECONFLICT);
        return;
    }
    if (stat) {
        write_over(session, look, cell->fence, stat->version);
        return;
    }
    look->fence = command->fence;
    mrt_zk_query_send(session, look, MRT_ZK_CELL_MAKE, look->path);
}

static void cell_read(struct mrt_zk_session *session, struct mrt_zk_query *look,
                      const struct mrt_zk_reply *reply)
{
    enum mrt_zk_outcome outcome = mrt_zk_code(reply->code)->outcome;
    struct cell cell = {0};
    if (outcome != MRT_ZK_DONE && outcome != MRT_ZK_NO_NODE) {
        mrt_zk_query_answer_code(session, look, reply->code);
        return;
    }
    if (outcome == MRT_ZK_DONE && !parse(reply, &cell)) {
        mrt_zk_query_refuse(session, look, MORTISE_EMISMATCH);
        return;
    }
    if (look->job->command.type == MRT_CELL_SET) {
        write_or_refuse(session, look, &cell, outcome == MRT_ZK_DONE ? reply->stat : NULL);
        return;
    }
    if (outcome == MRT_ZK_DONE)
        keep_seen(session, look, cell.version, cell.fence, reply->stat);
    if (!mrt_zk_query_keep(session, look, cell.value, cell.version ? cell.length : 0))
        return;
    look->job->event.fence = cell.fence;
    answer(session, look, cell.version);
}

static void make_again(struct mrt_zk_session *session, struct mrt_zk_query *look, int code)
{
    char directory[MRT_ZK_PATH_MAX];
    size_t length = strlen(look->path) - strlen("/" MRT_ZK_CELL_NAME);
    if (++look->tries > TRIES_MAX) {
        mrt_zk_query_answer_code(session, look, code);
        return;
    }
    memcpy(directory, look->path, length);
    directory[length] = '\0';
    mrt_zk_send_parents(session, NULL, directory, look->tries > 1);
    mrt_zk_query_send(session, look, MRT_ZK_CELL_MAKE, look->path);
}

static void written(struct mrt_zk_session *session, struct mrt_zk_query *look,
                    enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    const struct mrt_command *command = &look->job->command;
    bool conflict = reply->code == ZBADVERSION || reply->code == ZNODEEXISTS;
    if (reply->code == ZOK) {
        uint64_t version = command->value ? (uint64_t)reply->stat->mzxid : 0;
        keep_seen(session, look, version, look->fence, reply->stat);
        answer(session, look, version);
    } else if (conflict && look->unread && command->fence > 0) {
        read_first(session, look);
    } else if (reply->code == ZNONODE && kind == MRT_ZK_CELL_MAKE) {
        make_again(session, look, reply->code);
    } else if (conflict || reply->code == ZNONODE) {
        mrt_zk_query_refuse(session, look, MORTISE_ECONFLICT);
    } else {
        mrt_zk_query_answer_code(session, look, reply->code);
    }
}

void mrt_zk_cell_reply(struct mrt_zk_session *session, struct mrt_zk_query *look,
                       enum mrt_zk_request_kind kind, const struct mrt_zk_reply *reply)
{
    if (kind == MRT_ZK_CELL_READ)
        cell_read(session, look, reply);
    else
        written(session, look, kind, reply);
}
