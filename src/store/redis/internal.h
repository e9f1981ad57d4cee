/*
 * The parts of the Redis store, shared by its files and by nobody else:
 *   port.c          the port: commands in, events out, one descriptor
 *   connection.c     the connection for commands: its life, and what is under way on it
 *   push.c     the connection on which the server tells who may run
 *   command.c  commands as calls of scripts
 *   claim.c    locks that need no queue: one key, as other programs keep it
 *   claim_reply.c  what a reply says of one
 *   reply.c    what a reply says of its command
 *   copies.c   what is asked of replicas
 *   check.c    what a server says of itself
 *   observe.c  who observes elections
 *   operator.c     mortise_list, revoke and break, on a connection of their own
 *   wire.c, uri.c  bytes and addresses, without state of the store
 *   redis/ *.lua     what the server does
 *
 * Threads: calls on one store come one at a time, from any thread; there is no other.
 *
 * Invariant: a job is in exactly one of four lists: waiting (not sent), sent (in the
 * order sent, which is the order of the replies), held (answered, but nobody listens yet for
 * what may change that answer), outbox (to be delivered).
 */
#ifndef MRT_STORE_REDIS_INTERNAL_H
#define MRT_STORE_REDIS_INTERNAL_H

#include "base/error.h"
#include "base/owner.h"
#include "core/store.h"
#include "store/kit/notes.h"
#include "store/redis/uri.h"
#include "store/redis/wire.h"

/* A ticket's number, shifted so, is its first fence; numbers stay below 2^48. */
#define MRT_REDIS_FENCE_BITS 15
#define MRT_REDIS_NUMBER_MAX (INT64_C(1) << 48)
#define MRT_REDIS_RECHECK_HELD (5 * MRT_SECOND)
#define MRT_REDIS_RECHECK_MAX MRT_SECOND
#define MRT_REDIS_CHANNEL_MAX (MRT_REDIS_BASE_MAX + MORTISE_NAME_MAX + 260)

enum mrt_redis_script_name {
    MRT_REDIS_SESSION,
    MRT_REDIS_STOP,
    MRT_REDIS_APPEND,
    MRT_REDIS_ADOPT,
    MRT_REDIS_REFRESH,
    MRT_REDIS_REMOVE,
    MRT_REDIS_DETACH,
    MRT_REDIS_OBSERVE,
    MRT_REDIS_CELL,
    MRT_REDIS_LIST,
    MRT_REDIS_OPERATE,
    MRT_REDIS_CLAIM_EXTEND,
    MRT_REDIS_CLAIM_SHOW,
    MRT_REDIS_CLAIM_DELETE
};

struct mrt_redis_script {
    char digest[41];
    const char *text;
    size_t length;
};
extern const struct mrt_redis_script mrt_redis_scripts[];

enum mrt_redis_work {
    MRT_REDIS_COMMAND,
    MRT_REDIS_LOGIN,  /* said at the beginning of a connection */
    MRT_REDIS_ID,     /* asks what the server calls the connection */
    MRT_REDIS_KILL,   /* ends an earlier one there */
    MRT_REDIS_SERVER, /* asks which server it is, and how long it has been up */
    MRT_REDIS_MEMORY, /* asks whether it may drop keys */
    MRT_REDIS_EXTEND, /* of a claim, before the renewal of its session */
    MRT_REDIS_SHOW,   /* whose it is, to operators; and asks what they want */
    MRT_REDIS_DELETE  /* of a claim, before the end of its session */
};

enum mrt_redis_stage {
    MRT_REDIS_ASKED,
    MRT_REDIS_COPYING, /* done; replicas are waited for */
    MRT_REDIS_UNDOING  /* too few have it */
};

#define MRT_REDIS_TOKEN_SIZE 41 /* 160 bits in hexadecimal digits */

/* A lock of one key, from the first attempt at it until it is given back. */
struct mrt_redis_claim {
    TAILQ_ENTRY(mrt_redis_claim) link;
    struct mrt_id session, ticket;
    bool held;
    bool outcome_unknown; /* an attempt of unknown outcome: the key may be ours */
    bool trying;          /* an attempt is under way */
    bool leaving;         /* it is being given back, and so not renewed any more */
    bool waits;
    uint64_t fence, capacity;
    uint64_t revoked; /* how often it has been asked for */
    char token[MRT_REDIS_TOKEN_SIZE];
    char key[]; /* the lock's full name */
};

/* A command until it is answered, and then its answer; or what is said at the beginning of
   a connection. */
struct mrt_redis_job {
    TAILQ_ENTRY(mrt_redis_job) link;
    struct mrt_command command;
    struct mrt_event event;
    enum mrt_redis_work work;
    enum mrt_redis_stage stage;
    long long copies; /* UNDOING: how many replicas have it */
    unsigned attempt; /* at a claim: how many replies it will have; 0: it is none */
    unsigned replies; /* of these: how many have come */
    bool taken;       /* one of them said that it is ours */
    bool looks;       /* none did, and the key is looked at */
    int64_t number;   /* and this is the fence's */
    bool whole;       /* the script itself was sent, not its digest */
    bool deaf;        /* an OBSERVE that nothing can be told of */
    bool repeated;    /* it was done once, before the subscription stood */
    void *value;      /* its event's, or NULL */
    mrt_time since;   /* when it was submitted, and then when it was sent */
    char detail[256];
};
TAILQ_HEAD(mrt_redis_jobs, mrt_redis_job);

/* A connection as its server calls it, and the run of that server. */
struct mrt_redis_connection {
    int64_t id;      /* 0: not known */
    char server[48]; /* "": not known */
};

/* Who is to be told of a change, once. */
struct mrt_redis_observer {
    TAILQ_ENTRY(mrt_redis_observer) link;
    struct mrt_id session, id;
    char queue[];
};

/* A queue whose changes are listened for. */
struct mrt_redis_watch {
    TAILQ_ENTRY(mrt_redis_watch) link;
    bool stands; /* the subscription */
    char queue[];
};

struct mrt_redis_session {
    TAILQ_ENTRY(mrt_redis_session) link;
    struct mrt_id id;
};

/* What is said in the log, once each for a store. */
enum mrt_redis_note {
    MRT_REDIS_NOTE_CLOCK,
    MRT_REDIS_NOTE_REPLY,
    MRT_REDIS_NOTE_EVICTION,
    MRT_REDIS_NOTE_COPIES,
    MRT_REDIS_NOTE_ACCESS
};

struct mrt_redis_store { // NOLINT(clang-analyzer-optin.performance.Padding): there are few
    struct mrt_sink sink;
    struct mrt_traffic traffic;
    struct mrt_redis_address address;
    char secret[MRT_REDIS_SECRET_MAX];
    char label[MRT_OWNER_SIZE];
    char channel[MRT_REDIS_BASE_MAX + 2 + MRT_ID_TEXT_SIZE];
    char key[MRT_ID_TEXT_SIZE]; /* what comes by it is signed with, see sign.h */
    struct mrt_notes notes;
    mrt_time timeout;
    int epoll;
    struct mrt_redis_servers servers;
    size_t server_next;
    struct mrt_resolver resolver;
    TAILQ_HEAD(, mrt_redis_claim) claims;
    TAILQ_HEAD(, mrt_redis_observer) observers;
    TAILQ_HEAD(, mrt_redis_watch) watches;
    bool unproven; /* a claim could not be extended: the renewal behind proves nothing */
    uint64_t jitter;
    bool id_asked;        /* on this connection */
    bool server_awaited;  /* which one it is, on this connection: nothing else is sent before */
    bool memory_asked[2]; /* by a session, by a claim */
    struct mrt_redis_connection connection;   /* since it had claims */
    struct mrt_redis_connection earlier;      /* to be ended, if the server is the same */
    TAILQ_HEAD(, mrt_redis_session) sessions; /* STARTED and not known to have ended */

    struct mrt_redis_wire wire; /* for commands */
    uint64_t epoch;             /* of that connection; higher than that of any before */
    mrt_time deadline;          /* of connecting */
    bool heard;                 /* the server has answered on this connection */
    mrt_time again;             /* when to connect again */
    unsigned failures;
    int refusal; /* why the last connection was refused for good; 0: it was not */
    char refusal_text[256];
    struct mrt_redis_jobs waiting, sent, held, outbox;

    struct mrt_redis_wire push;
    unsigned push_logins; /* replies that come before the subscription's */
    bool push_subscribed;
    mrt_time push_since; /* when that was heard */
    mrt_time push_deadline, push_again;

    /* The server's clock beside ours, at the newest renewal; 0: not known. */
    int64_t server_ms;
    mrt_time server_seen;
};

/* port.c: puts events into the outbox. */
void mrt_redis_job_free(struct mrt_redis_job *job);
void mrt_redis_answer(struct mrt_redis_store *store, struct mrt_redis_job *job,
                      enum mrt_event_type type);
__attribute__((format(printf, 4, 5))) void mrt_redis_fail(struct mrt_redis_store *store,
                                                          struct mrt_redis_job *job, int error,
                                                          const char *format, ...);
/* An event that was not asked for; NULL: no memory. It is in the outbox already. */
struct mrt_event *mrt_redis_tell(struct mrt_redis_store *store, enum mrt_event_type type,
                                 struct mrt_id session);
/* All tickets are to be looked at. */
void mrt_redis_wake_all(struct mrt_redis_store *store);

/* connection.c */
/* How long an answer may take. */
mrt_time mrt_redis_answer_limit(const struct mrt_redis_store *store);
/* Connects if need be, and sends what waits. */
void mrt_redis_link_send(struct mrt_redis_store *store, mrt_time now);
/* Where the server is, as far as that is known; false: it is not. From any thread. */
bool mrt_redis_link_server(const struct mrt_redis_store *store, struct mrt_address *server);
/* Reads replies. */
void mrt_redis_link_receive(struct mrt_redis_store *store, mrt_time now);
/* Notices what takes too long. */
void mrt_redis_link_tick(struct mrt_redis_store *store, mrt_time now);
mrt_time mrt_redis_link_next(const struct mrt_redis_store *store);
/* Ends the connection; what is under way has an unknown outcome. */
void mrt_redis_link_break(struct mrt_redis_store *store, mrt_time now);

/* Adds what is not an engine's command to `sent`, before `next` or at the end; NULL: no memory. */
struct mrt_redis_job *mrt_redis_link_add(struct mrt_redis_store *store, enum mrt_redis_work work,
                                         struct mrt_redis_job *next);

/* check.c */
/* Asks, before this job or behind all, which server it is and how long it has been up; false: no
   memory. */
bool mrt_redis_check_server(struct mrt_redis_store *store, struct mrt_redis_job *next);
/* Notes which it is. Whether it has been up long enough; if not, why the connection is refused is
   noted. */
bool mrt_redis_check_server_reply(struct mrt_redis_store *store, const redisReply *reply);
/* Asks, before the first job of its kind, whether keys may be dropped. */
void mrt_redis_check_memory(struct mrt_redis_store *store, struct mrt_redis_job *job);
void mrt_redis_check_memory_reply(struct mrt_redis_store *store, const redisReply *reply);

/* copies.c */
/* Whether replicas have to have it before the job is answered as its event says. */
bool mrt_redis_copies_needed(const struct mrt_redis_store *store, const struct mrt_redis_job *job);
void mrt_redis_copies_ask(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* Takes the reply to that, or to the undoing that followed. */
void mrt_redis_copies_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                            const redisReply *reply);

/* claim.c */
struct mrt_redis_claim *mrt_redis_claim_find(struct mrt_redis_store *store, struct mrt_id ticket);
void mrt_redis_claim_forget(struct mrt_redis_store *store, struct mrt_redis_claim *claim);
/* Listens for its key no more, unless another of this client does. */
void mrt_redis_claim_wait_no_more(struct mrt_redis_store *store, struct mrt_redis_claim *claim);
/* Whether the job is about a claim; it is marked as such. */
bool mrt_redis_claim_of(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* Notes what an attempt at a claim, or another command for it, is to say. False: it needs
   no request, and is answered. */
bool mrt_redis_claim_put(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* Notes, before a RENEW or a STOP, what concerns the claims of its session. */
void mrt_redis_claims_put(struct mrt_redis_store *store, struct mrt_redis_job *job);
/* The session is no more: its claims are given back. */
void mrt_redis_claims_lose(struct mrt_redis_store *store, struct mrt_id session);
/* Notes the compare and extend, or delete, of such a job; false: it is of no use any more. */
bool mrt_redis_claim_work_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);
/* Gives back what an attempt took, without an answer; false: the claim has ended meanwhile. */
bool mrt_redis_claim_undo_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);
/* Ends those of a session. */
void mrt_redis_claims_forget(struct mrt_redis_store *store, struct mrt_id session);
/* A key was given back. */
void mrt_redis_claim_told(struct mrt_redis_store *store, const char *key);
/* The channel on which a key's waiters are told. */
void mrt_redis_claim_channel(const struct mrt_redis_store *store, const char *key,
                             char channel[MRT_REDIS_CHANNEL_MAX]);

/* claim_reply.c */
/* Takes a reply; false: more belong to the job. */
bool mrt_redis_claim_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                           const redisReply *reply);
void mrt_redis_claim_unknown(struct mrt_redis_store *store, const struct mrt_redis_job *job);
/* What mrt_redis_claim_undo_put asked for has been done: who waits is to try again, and an APPEND
   is to be answered. False: the claim has ended meanwhile. */
bool mrt_redis_claim_undone(struct mrt_redis_store *store, struct mrt_redis_job *job);

/* observe.c */
/* Takes an OBSERVE until what it is to be told can be told; false: it is to be sent now. */
bool mrt_redis_observe_hold(struct mrt_redis_store *store, struct mrt_redis_job *job, mrt_time now);
/* The connection for pushes begins, with SUBSCRIBE for all; or has ended. */
void mrt_redis_observe_begin(struct mrt_redis_store *store);
void mrt_redis_observe_end(struct mrt_redis_store *store);
/* A subscription stands, or a change is told; false: the channel is none of these. */
bool mrt_redis_observe_told(struct mrt_redis_store *store, const char *channel, bool message);
void mrt_redis_observers_forget(struct mrt_redis_store *store, struct mrt_id session);
void mrt_redis_observers_free(struct mrt_redis_store *store);

/* push.c; nothing of it is needed for what is right, only for what is quick */
/* SUBSCRIBE or UNSUBSCRIBE, to be sent by the next flush. */
void mrt_redis_push_put(struct mrt_redis_store *store, const char *command, const char *channel);
/* Opens the connection for pushes; false: that is not possible now. */
bool mrt_redis_push_want(struct mrt_redis_store *store, mrt_time now);
/* Begins, or ends, to listen for a claim. */
void mrt_redis_push_listen(struct mrt_redis_store *store, const char *key, mrt_time now);
void mrt_redis_push_ignore(struct mrt_redis_store *store, const char *key);
/* Keeps the job of a ticket that has to wait, if its client could not be told yet that the wait
   is over; true: kept. */
bool mrt_redis_push_hold(struct mrt_redis_store *store, struct mrt_redis_job *job, mrt_time now);
void mrt_redis_push_receive(struct mrt_redis_store *store, mrt_time now);
void mrt_redis_push_tick(struct mrt_redis_store *store, mrt_time now);
mrt_time mrt_redis_push_next(const struct mrt_redis_store *store);

/* command.c */
/* Notes the call of the script that does a command. */
void mrt_redis_command_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);
/* EVALSHA, or EVAL with the script itself, of one key, with these arguments. */
void mrt_redis_script_put(struct mrt_redis_wire *wire, enum mrt_redis_script_name name, bool whole,
                          const char *key, const struct mrt_redis_text *arguments, size_t count);
/* The same of a script that is not a claim's, with all keys that can be known: of this session
   (NULL: an operator's), and of the queue or the cell of this name ("": none). */
void mrt_redis_keyed_put(struct mrt_redis_store *store, struct mrt_redis_wire *wire,
                         enum mrt_redis_script_name script, bool whole, const char *session,
                         const char *name, const struct mrt_redis_text *arguments, size_t count);
struct mrt_redis_text mrt_redis_text_of(const char *text);

/* Takes a ticket out, without an answer. */
void mrt_redis_remove_put(struct mrt_redis_store *store, const struct mrt_redis_job *job);

/* reply.c */
enum mrt_redis_outcome {
    MRT_REDIS_NOT_DONE, /* and the same again may be */
    MRT_REDIS_UNKNOWN,  /* perhaps in part */
    MRT_REDIS_REFUSED,  /* for good */
    MRT_REDIS_NO_SCRIPT
};
/* What an error reply means; the code of ours in `error`, what to add in `advice`. */
enum mrt_redis_outcome mrt_redis_classify(const char *text, int *error, const char **advice);
/* Answers the command of a job. */
void mrt_redis_reply(struct mrt_redis_store *store, struct mrt_redis_job *job,
                     const redisReply *reply, mrt_time now);
/* Fills a VIEW; false: a number is out of range. `soonest`: as the script said, in ms. */
bool mrt_redis_view(const struct mrt_redis_store *store, struct mrt_event *event, int64_t number,
                    int64_t ahead, bool behind, int64_t soonest);

/* operator.c */
int mrt_redis_server(struct mrt_store *port, char *text, size_t size);
int mrt_redis_list(struct mrt_store *port, const char *name, const char *prefix,
                   mrt_listed_callback callback, void *argument);
int mrt_redis_revoke(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_redis_break(struct mrt_store *port, const char *name, uint64_t fence);

#endif
