/*
 * Requests. Each has a number; the library hands it back with the answer, and the number
 * is looked up among the session's requests, nearly always the oldest, for a session is
 * answered in order. Every request has a completion: the library calls a null one.
 * Watches have numbers of the same series, which the library hands back with their events.
 *
 * A multi that is sent creates ordinary nodes only: answers to other creates in one make
 * the library abort. Its operations' results are not looked at; the code of the whole is
 * all that is needed.
 */
#include "store/zookeeper/internal.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define DATA_MAX (MRT_OWNER_SIZE + 16 + MRT_ZK_UUID_SIZE)

_Thread_local struct mrt_zk_session *mrt_zk_entered;

static const void *as_context(uint64_t number)
{
    return (const void *)(uintptr_t)number; // NOLINT(performance-no-int-to-ptr)
}

/* ---------------------------------------------------------------- answers */

static struct mrt_zk_request *take(struct mrt_zk_session *session, const void *context)
{
    struct mrt_zk_request *request;
    TAILQ_FOREACH (request, &session->requests, link)
        if (as_context(request->id) == context)
            break;
    if (request)
        TAILQ_REMOVE(&session->requests, request, link);
    return request;
}

/* What the answer to a request that nobody waits for says of the server. */
static void note_server(struct mrt_store *store, enum mrt_zk_request_kind kind, int code)
{
    if (kind == MRT_ZK_UNWATCH)
        store->no_unwatching |= code == ZUNIMPLEMENTED;
    else if (code != ZNODEEXISTS && mrt_zk_code(code)->outcome == MRT_ZK_NOT_DONE)
        store->no_markers = true;
}

static void answered(const void *context, const struct mrt_zk_reply *reply)
{
    struct mrt_zk_session *session = mrt_zk_entered;
    struct mrt_zk_request *request = session ? take(session, context) : NULL;
    if (!request)
        return;
    mrt_traffic_answered(&session->store->traffic);
    if (mrt_zk_code(reply->code)->outcome != MRT_ZK_PERHAPS)
        session->heard = mrt_time_now();
    if (mrt_zk_code(reply->code)->outcome == MRT_ZK_SESSION_OVER)
        mrt_zk_session_over(session, reply->code);
    switch (request->kind) {
    case MRT_ZK_RENEW:
    case MRT_ZK_CLOSE:
        mrt_zk_session_reply(session, request->kind, reply->code);
        break;
    case MRT_ZK_WATCH:
    case MRT_ZK_WATCH_OWN:
    case MRT_ZK_WATCH_MARKER:
        mrt_zk_watch_reply(session, request->kind, request->watch, reply);
        break;
    case MRT_ZK_MARKERS:
    case MRT_ZK_UNWATCH:
        note_server(session->store, request->kind, reply->code);
        break;
    case MRT_ZK_OWN_RIGHTS:
    case MRT_ZK_MARKER_RIGHTS:
        mrt_zk_rights_reply(session, request->kind == MRT_ZK_OWN_RIGHTS, reply);
        break;
    case MRT_ZK_LOOK_SYNC:
    case MRT_ZK_LOOK_LIST:
    case MRT_ZK_LOOK_WATCHING:
    case MRT_ZK_LOOK_MISSING:
    case MRT_ZK_LOOK_FIRST:
    case MRT_ZK_CELL_READ:
    case MRT_ZK_CELL_WRITE:
    case MRT_ZK_CELL_MAKE:
        mrt_zk_query_reply(session, request->kind, request->watch, reply);
        break;
    case MRT_ZK_WATCH_CHILDREN:
        mrt_zk_watch_reply(session, request->kind, request->watch, reply);
        /* fall through */
    default: {
        struct mrt_zk_ticket *ticket = mrt_zk_ticket_find(session, request->ticket);
        bool makes = request->kind == MRT_ZK_PARENT || request->kind == MRT_ZK_DIRECTORY;
        if (makes && reply->code == ZUNIMPLEMENTED)
            session->store->no_containers = true;
        else if (ticket && (request->kind == MRT_ZK_MARK || request->kind == MRT_ZK_MARK_READ))
            mrt_zk_marked(session, ticket, request->kind, reply);
        else if (ticket && ticket->attempt == request->attempt)
            mrt_zk_ticket_reply(session, ticket, request->kind, reply);
    }
    }
    free(request);
}

static void on_void(int code, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code});
}

static void on_string(int code, const char *text, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .text = text});
}

static void on_string_stat(int code, const char *text, const struct Stat *stat, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .text = text, .stat = stat});
}

static void on_stat(int code, const struct Stat *stat, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat, .length = -1});
}

static void on_data(int code, const char *value, int length, const struct Stat *stat,
                    const void *context)
{
    answered(context,
             &(struct mrt_zk_reply){.code = code, .text = value, .length = length, .stat = stat});
}

static void on_names(int code, const struct String_vector *names, const struct Stat *stat,
                     const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat, .names = names});
}

static void on_rights(int code, struct ACL_vector *rights, struct Stat *stat, const void *context)
{
    answered(context, &(struct mrt_zk_reply){.code = code, .stat = stat, .rights = rights});
}

/* Events of the session come to every watcher, without a path; those are not for here. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle, (void)state;
    if (type != ZOO_SESSION_EVENT && mrt_zk_entered && path)
        mrt_zk_watch_event(mrt_zk_entered, (uint64_t)(uintptr_t)context, type, path);
}

/* ---------------------------------------------------------------- sending */

/* What a node holds, for mortise_list. */
static int describe(const struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                    char data[DATA_MAX])
{
    MRT_ASSERT(ticket); /* these requests are never sent without one */
    return snprintf(data, DATA_MAX, "%s\n%s", mrt_zk_kind(ticket->place.family),
                    session->store->label);
}

static const struct mrt_command *doing(const struct mrt_zk_ticket *ticket)
{
    const struct mrt_job *job = TAILQ_FIRST(&ticket->jobs);
    MRT_ASSERT(job); /* requests are sent for commands */
    return &job->command;
}

/* A candidate's node holds its value alone, as Curator's and kazoo's hold their names. */
static int send_create(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                       const char *path, const void *context)
{
    const struct mrt_command *command = doing(ticket);
    char described[DATA_MAX];
    const char *data = command->value ? command->value : described;
    int length = command->value ? (int)command->value_size : describe(session, ticket, described);
    return zoo_acreate2(session->handle, path, data, length,
                        mrt_zk_access_nodes(&session->store->access), ZOO_EPHEMERAL_SEQUENTIAL,
                        on_string_stat, context);
}

static int send_parent(struct mrt_zk_session *session, const char *path,
                       const struct ACL_vector *acl, const void *context)
{
    const struct mrt_store *store = session->store;
    /* The numbers of a directory that is made anew begin again, and the recipe's names are those.
     */
    bool named = store->address.layout != MRT_ZK_RECIPE;
    bool container = named && !store->no_containers && strlen(path) > strlen(store->address.chroot);
    return zoo_acreate(session->handle, path, "", 0, acl,
                       container ? ZOO_CONTAINER : ZOO_PERSISTENT, on_string, context);
}

/* A container would be reaped whenever it is empty, and it always is. It and the markers
   have the tickets' ACL: who may not read a marker is not told of it, and who may make one
   can grant the lock. */
static int send_markers(struct mrt_zk_session *session, const char *path, const void *context)
{
    return zoo_acreate(session->handle, path, "", 0, mrt_zk_access_nodes(&session->store->access),
                       ZOO_PERSISTENT, on_string, context);
}

static int send_pass(struct mrt_zk_session *session, const char *path, const void *context)
{
    char marker[MRT_ZK_PATH_MAX + 256];
    zoo_op_t operations[3];
    mrt_zk_marker_path(session->store, path, marker, sizeof marker);
    zoo_create_op_init(&operations[0], marker, "", 0, mrt_zk_access_nodes(&session->store->access),
                       ZOO_PERSISTENT, NULL, 0);
    zoo_delete_op_init(&operations[1], marker, -1);
    zoo_delete_op_init(&operations[2], path, -1);
    return zoo_amulti(session->handle, 3, operations, session->closing->results, on_void, context);
}

static int send_mark(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                     const char *path, const void *context)
{
    char data[DATA_MAX];
    int length = describe(session, ticket, data);
    return zoo_aset(session->handle, path, data, length, mrt_zk_data_version(ticket), on_stat,
                    context);
}

/* Who waits for a node that is to be called otherwise is told of a change, and not that it has
   gone (rule 12 of watch/pass.c). It is refused if the data's version is not this. */
static void use_watches_up(zoo_op_t *operation, const char *path, int version)
{
    zoo_set_op_init(operation, path, "", 0, version, NULL);
}

/* A node of the same sequence takes the place of the one at `path`. */
static int send_lighten(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                        const char *path, const void *context)
{
    char node[MRT_ZK_NODE_SIZE], lighter[MRT_ZK_PATH_MAX + 256], data[DATA_MAX];
    zoo_op_t operations[3];
    if (!mrt_zk_lighter(ticket, node))
        return ZBADARGUMENTS;
    snprintf(lighter, sizeof lighter, "%s/%s", ticket->path, node);
    int length = describe(session, ticket, data);
    use_watches_up(&operations[0], path, mrt_zk_data_version(ticket));
    zoo_create_op_init(&operations[1], lighter, data, length,
                       mrt_zk_access_nodes(&session->store->access), ZOO_EPHEMERAL, NULL, 0);
    zoo_delete_op_init(&operations[2], path, -1);
    return zoo_amulti(session->handle, 3, operations, session->closing->results, on_void, context);
}

/* A node called otherwise takes the place of the one at `path`: nobody's, or this session's. What
   was written into one that is to be adopted is to have been read. */
static int send_change_of_hands(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                                const char *path, const void *context)
{
    char node[MRT_ZK_NODE_SIZE], other[MRT_ZK_PATH_MAX + 256], data[DATA_MAX];
    zoo_op_t operations[3];
    MRT_ASSERT(ticket);
    bool adopts = doing(ticket)->type == MRT_APPEND;
    mrt_zk_heir_node(ticket, node);
    snprintf(other, sizeof other, "%s/%s", ticket->path, node);
    int length = describe(session, ticket, data);
    use_watches_up(&operations[0], path, adopts ? mrt_zk_data_version(ticket) : -1);
    zoo_create_op_init(&operations[1], other, data, length,
                       mrt_zk_access_nodes(&session->store->access),
                       adopts ? ZOO_EPHEMERAL : ZOO_PERSISTENT, NULL, 0);
    zoo_delete_op_init(&operations[2], path, -1);
    return zoo_amulti(session->handle, 3, operations, session->closing->results, on_void, context);
}

/* Claims are counted by the version of their directory's data. */
static int send_claim(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                      const char *path, const void *context)
{
    char data[DATA_MAX];
    zoo_op_t operations[2];
    MRT_ASSERT(ticket);
    int length = snprintf(data, sizeof data, MRT_ZK_CLAIM_DATA "%s\n%s", ticket->uuid,
                          session->store->label);
    zoo_set_op_init(&operations[0], ticket->path, "", 0, -1, NULL);
    zoo_create_op_init(&operations[1], path, data, length,
                       mrt_zk_access_nodes(&session->store->access), ZOO_EPHEMERAL, NULL, 0);
    return zoo_amulti(session->handle, 2, operations, session->closing->results, on_void, context);
}

static int send_unclaim(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                        const char *path, const void *context)
{
    zoo_op_t operations[2];
    MRT_ASSERT(ticket);
    zoo_check_op_init(&operations[0], ticket->path, ticket->version);
    zoo_delete_op_init(&operations[1], path, -1);
    return zoo_amulti(session->handle, 2, operations, session->closing->results, on_void, context);
}

/* The library wants a pointer to a function here, and takes it for the function. */
static int send_unwatch(struct mrt_zk_session *session, const char *path, const void *context)
{
    return zoo_aremove_all_watches(session->handle, path, ZWATCHTYPE_DATA, 0,
                                   (void_completion_t *)on_void, context);
}

static int send_set(struct mrt_zk_session *session, const struct mrt_zk_ticket *ticket,
                    const char *path, const void *context)
{
    const struct mrt_command *command = doing(ticket);
    return zoo_aset(session->handle, path, command->value, (int)command->value_size,
                    mrt_zk_data_version(ticket), on_stat, context);
}

/* Of a cell. */
static int send_cell(struct mrt_zk_session *session, const struct mrt_zk_request *request,
                     const char *path, const void *context)
{
    char data[MRT_ZK_CELL_MAX];
    const struct mrt_zk_query *look = mrt_zk_query_find(session, request->watch);
    int length = mrt_zk_cell_data(look, data);
    if (request->kind == MRT_ZK_CELL_WRITE)
        return zoo_aset(session->handle, path, data, length, look->version, on_stat, context);
    return zoo_acreate2(session->handle, path, data, length,
                        mrt_zk_access_nodes(&session->store->access), ZOO_PERSISTENT,
                        on_string_stat, context);
}

/* Watches are set for those who are to be told. */
static int send_look(struct mrt_zk_session *session, const struct mrt_zk_request *request,
                     const char *path, const void *context)
{
    zhandle_t *handle = session->handle;
    void *watch = (void *)(uintptr_t)request->watch; // NOLINT(performance-no-int-to-ptr)
    const struct mrt_zk_query *look = mrt_zk_query_find(session, request->watch);
    watcher_fn watcher = look->job->command.once ? NULL : on_event;
    if (request->kind == MRT_ZK_LOOK_FIRST)
        return zoo_awget(handle, path, watcher, watch, on_data, context);
    if (request->kind == MRT_ZK_LOOK_MISSING)
        return zoo_awexists(handle, path, watcher, watch, on_stat, context);
    return zoo_awget_children2(handle, path, watcher, watch, on_names, context);
}

static int post(struct mrt_zk_session *session, const struct mrt_zk_request *request,
                const struct mrt_zk_ticket *ticket, const char *path)
{
    zhandle_t *handle = session->handle;
    const void *context = as_context(request->id);
    void *watch = (void *)(uintptr_t)request->watch; // NOLINT(performance-no-int-to-ptr)
    switch (request->kind) {
    case MRT_ZK_RENEW:
    case MRT_ZK_CLOSE:
    case MRT_ZK_SYNC:
    case MRT_ZK_LOOK_SYNC:
        return zoo_async(handle, path, on_string, context);
    case MRT_ZK_BARRIER: /* it is always refused: no data are ever of that version */
        return zoo_adelete(handle, path, INT32_MAX, on_void, context);
    case MRT_ZK_PARENT:
        return send_parent(session, path, mrt_zk_access_parents(&session->store->access), context);
    case MRT_ZK_DIRECTORY:
        return send_parent(session, path, mrt_zk_access_nodes(&session->store->access), context);
    case MRT_ZK_CREATE:
        return send_create(session, ticket, path, context);
    case MRT_ZK_SEEK:
    case MRT_ZK_STILL:
    case MRT_ZK_HEIR_OWNER:
    case MRT_ZK_CLAIM_STAT:
        return zoo_aexists(handle, path, 0, on_stat, context);
    case MRT_ZK_CLAIM_CREATE:
        return send_claim(session, ticket, path, context);
    case MRT_ZK_CLAIM_DELETE:
        return send_unclaim(session, ticket, path, context);
    case MRT_ZK_CLAIM_READ:
    case MRT_ZK_READ:
    case MRT_ZK_HEIR_READ:
    case MRT_ZK_MARK_READ:
        return zoo_aget(handle, path, 0, on_data, context);
    case MRT_ZK_DELETE:
    case MRT_ZK_UNDO:
        return zoo_adelete(handle, path, -1, on_void, context);
    case MRT_ZK_MARKERS:
        return send_markers(session, path, context);
    case MRT_ZK_OWN_RIGHTS:
    case MRT_ZK_MARKER_RIGHTS:
        return zoo_aget_acl(handle, path, on_rights, context);
    case MRT_ZK_PASS:
        return send_pass(session, path, context);
    case MRT_ZK_LIGHTEN:
        return send_lighten(session, ticket, path, context);
    case MRT_ZK_DETACH:
    case MRT_ZK_TAKE:
        return send_change_of_hands(session, ticket, path, context);
    case MRT_ZK_WATCH:
    case MRT_ZK_WATCH_OWN:
        return zoo_awget(handle, path, on_event, watch, on_data, context);
    case MRT_ZK_WATCH_MARKER:
        return zoo_awexists(handle, path, on_event, watch, on_stat, context);
    case MRT_ZK_SET:
        return send_set(session, ticket, path, context);
    case MRT_ZK_LOOK_WATCHING:
    case MRT_ZK_LOOK_MISSING:
    case MRT_ZK_LOOK_FIRST:
        return send_look(session, request, path, context);
    case MRT_ZK_CELL_READ:
        return zoo_aget(handle, path, 0, on_data, context);
    case MRT_ZK_CELL_WRITE:
    case MRT_ZK_CELL_MAKE:
        return send_cell(session, request, path, context);
    case MRT_ZK_UNWATCH:
        return send_unwatch(session, path, context);
    case MRT_ZK_MARK:
        return send_mark(session, ticket, path, context);
    default:
        return zoo_awget_children2(handle, path, watch ? on_event : NULL, watch, on_names, context);
    }
}

static struct mrt_zk_request *new_request(struct mrt_zk_session *session,
                                          enum mrt_zk_request_kind kind)
{
    struct mrt_zk_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->id = ++session->numbers;
    request->kind = kind;
    TAILQ_INSERT_TAIL(&session->requests, request, link);
    return request;
}

static int post_or_forget(struct mrt_zk_session *session, struct mrt_zk_request *request,
                          const struct mrt_zk_ticket *ticket, const char *path)
{
    bool watched = request->kind != MRT_ZK_WATCH_CHILDREN ||
                   mrt_zk_watch_children(session, path, &request->watch);
    mrt_zk_session_gather(session);
    int code = !watched ? ZSYSTEMERROR : ZINVALIDSTATE;
    /* Of a session that has expired the library frees, in zoo_amulti, what it has not set. */
    if (watched && zoo_state(session->handle) >= 0)
        code = post(session, request, ticket, path);
    if (code == ZOK) {
        mrt_traffic_sent(&session->store->traffic);
        return code;
    }
    if (request->kind == MRT_ZK_WATCH_CHILDREN)
        mrt_zk_watch_reply(session, request->kind, request->watch,
                           &(struct mrt_zk_reply){.code = code});
    TAILQ_REMOVE(&session->requests, request, link);
    free(request);
    return code;
}

bool mrt_zk_send(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                 struct mrt_zk_ticket *ticket, const char *path, int *code)
{
    struct mrt_zk_request *request = new_request(session, kind);
    *code = ZSYSTEMERROR;
    if (!request)
        return false;
    if (ticket) {
        request->ticket = ticket->id;
        request->attempt = ticket->attempt;
    }
    *code = post_or_forget(session, request, ticket, path);
    return *code == ZOK;
}

bool mrt_zk_send_watch(struct mrt_zk_session *session, enum mrt_zk_request_kind kind,
                       uint64_t watch, const char *path)
{
    struct mrt_zk_request *request = new_request(session, kind);
    if (!request)
        return false;
    request->watch = watch;
    return post_or_forget(session, request, NULL, path) == ZOK;
}

void mrt_zk_requests_free(struct mrt_zk_session *session)
{
    struct mrt_zk_request *request;
    while ((request = TAILQ_FIRST(&session->requests))) {
        TAILQ_REMOVE(&session->requests, request, link);
        mrt_traffic_answered(&session->store->traffic);
        free(request);
    }
}
