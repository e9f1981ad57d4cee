/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers and events: a request that is answered waits in the outbox until the port's own call
 * delivers it, so nothing is delivered from inside anything else.
 */
#include "store/sql/outbox.h"
#include "store/sql/driver.h"
#include "store/sql/flush.h"
#include "store/sql/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void mrt_sql_answer(struct mrt_sql_store *store, struct mrt_sql_request *request,
                    enum mrt_event_type type)
{
    request->event.type = type;
    request->event.serial = request->command.serial;
    request->event.session = request->command.session;
    request->event.ticket = request->command.ticket;
    request->done = true;
    mrt_sql_removal_answered(store, request, type);
    TAILQ_INSERT_TAIL(&store->outbox, request, link);
}

void mrt_sql_fail(struct mrt_sql_store *store, struct mrt_sql_request *request, int error,
                  const char *format, ...)
{
    va_list arguments;
    char detail[sizeof request->detail]; /* the old one may be among the arguments */
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    memcpy(request->detail, detail, sizeof detail);
    request->event.error = error;
    mrt_sql_answer(store, request, MRT_FAILED);
}

bool mrt_sql_tell(struct mrt_sql_store *store, const struct mrt_event *event)
{
    struct mrt_sql_request *request = mrt_sql_request_new(MRT_SQL_DO_VIEW);
    if (!request)
        return false; /* a wake may be lost: a waiter reads again after `recheck` */
    request->event = *event;
    TAILQ_INSERT_TAIL(&store->outbox, request, link);
    return true;
}

void mrt_sql_say(const struct mrt_sql_store *store, const char *text)
{
    char line[256];
    snprintf(line, sizeof line, "%s: %s", mrt_sql_product, text);
    if (store->log)
        store->log(store->log_argument, line);
}

void mrt_sql_tell_fault(struct mrt_sql_store *store, const struct mrt_sql_store *link)
{
    struct mrt_sql_request *request = mrt_sql_request_new(MRT_SQL_DO_VIEW);
    if (!request)
        return;
    snprintf(request->detail, sizeof request->detail, "%s", link->fault);
    request->event = (struct mrt_event){.type = MRT_FAILED, .error = link->error};
    TAILQ_INSERT_TAIL(&store->outbox, request, link);
}

void mrt_sql_fail_with_advice(struct mrt_sql_store *store, struct mrt_sql_request *request,
                              const struct mrt_sql_code *code)
{
    mrt_sql_fail(store, request, code->error, "%s: %.160s (%s)%s%s", mrt_sql_product,
                 request->detail, request->state, code->advice ? "; " : "",
                 code->advice ? code->advice : "");
}
