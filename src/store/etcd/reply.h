/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of commands: a transaction is sent, and its reply may end the session. */
#ifndef MRT_STORE_ETCD_REPLY_H
#define MRT_STORE_ETCD_REPLY_H

#include "store/etcd/internal.h"

/* Sends a call for the job, whose reply goes to `next` with the job. Without memory the job fails.
 */
void mrt_etcd_job_send(struct mrt_etcd_job *job, const char *path, struct mrt_rest_text *body,
                       mrt_time limit, mrt_rest_done *next);
/* The beginning of a transaction: its first condition, that the session is as it was. */
void mrt_etcd_txn_begin(struct mrt_etcd_job *job, const struct mrt_etcd_session *session,
                        struct mrt_rest_text *text);
/* Between the conditions and what is done if they hold; then what is done else, which begins with
   the session's key; the end, which sends it. */
void mrt_etcd_txn_then(struct mrt_rest_text *text);
void mrt_etcd_txn_else(const struct mrt_etcd_session *session, struct mrt_rest_text *text);
void mrt_etcd_txn_send(struct mrt_etcd_job *job, struct mrt_rest_text *text, mrt_rest_done *next);

/* Answers of a job of a queue, which then goes on with its next. */
void mrt_etcd_answer(struct mrt_etcd_job *job, enum mrt_event_type type);
__attribute__((format(printf, 3, 4))) void mrt_etcd_fail(struct mrt_etcd_job *job, int error,
                                                         const char *format, ...);
void mrt_etcd_refuse(struct mrt_etcd_job *job);
/* Answers a call that was not done; true: it was done. */
bool mrt_etcd_job_done(struct mrt_etcd_job *job, const struct mrt_rest_reply *reply);

/* The reply to a transaction of a job. */
enum mrt_etcd_verdict {
    MRT_ETCD_SUCCEEDED,
    MRT_ETCD_OTHERWISE, /* the session is well: another condition did not hold */
    MRT_ETCD_AGAIN,     /* the session's key has been written meanwhile: to be sent anew */
    MRT_ETCD_ANSWERED   /* the job has been answered */
};
enum mrt_etcd_verdict mrt_etcd_txn_verdict(struct mrt_etcd_job *job,
                                           const struct mrt_rest_reply *reply);
/* The range in a transaction's reply, and its revision; NULL: there is none. */
struct json_object *mrt_etcd_txn_range(const struct mrt_rest_reply *reply, size_t index);
int64_t mrt_etcd_revision(struct json_object *json);

#endif
