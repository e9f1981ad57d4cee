/* SPDX-License-Identifier: Apache-2.0 */
/* Answers and events, until they are delivered: outbox.c */
#ifndef MRT_STORE_SQL_OUTBOX_H
#define MRT_STORE_SQL_OUTBOX_H

#include "store/sql/driver.h"

void mrt_sql_answer(struct mrt_sql_store *store, struct mrt_sql_request *request,
                    enum mrt_event_type type);
__attribute__((format(printf, 4, 5))) void mrt_sql_fail(struct mrt_sql_store *store,
                                                        struct mrt_sql_request *request, int error,
                                                        const char *format, ...);
/* An event that nobody has asked for; false: there was no memory, and it is lost. */
bool mrt_sql_tell(struct mrt_sql_store *store, const struct mrt_event *event);
/* In the program's log. */
void mrt_sql_say(const struct mrt_sql_store *store, const char *text);
/* An event without a command: it says why this connection does not work, for acquires whose
 * deadline may come before an answer. */
void mrt_sql_tell_fault(struct mrt_sql_store *store, const struct mrt_sql_store *link);
/* The request fails with the server's own words, and the advice of the code. */
void mrt_sql_fail_with_advice(struct mrt_sql_store *store, struct mrt_sql_request *request,
                              const struct mrt_sql_code *code);

#endif
