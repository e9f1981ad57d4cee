/* SPDX-License-Identifier: Apache-2.0 */
/* See ask.h. */
#include "store/rest/ask.h"

#include "base/error.h"

#include <poll.h>
#include <time.h>

static void answered(void *argument, const struct mrt_rest_reply *reply)
{
    struct mrt_rest_operation *operation = argument;
    operation->ended = true;
    operation->unknown = reply->outcome == MRT_REST_UNKNOWN;
    operation->json = json_object_get(reply->json);
    operation->error = MORTISE_OK;
    if (reply->outcome != MRT_REST_DONE)
        operation->error =
            mrt_error(reply->error, "%s: %s", operation->wire->server.family->name, reply->text);
}

static void wait_a_while(const struct mrt_rest_operation *operation)
{
    mrt_time now = mrt_time_now();
    mrt_time until = mrt_time_min(operation->deadline, mrt_rest_wire_next(operation->wire));
    mrt_time left = until > now ? until - now : 0;
    const struct timespec pause = {left / MRT_SECOND, left % MRT_SECOND};
    struct pollfd poller = {.fd = operation->wire->epoll, .events = POLLIN};
    ppoll(&poller, 1, &pause, NULL);
    mrt_rest_wire_process(operation->wire, mrt_time_now());
}

int mrt_rest_ask(struct mrt_rest_operation *operation, struct mrt_rest_request request,
                 struct mrt_rest_text *body)
{
    json_object_put(operation->json);
    operation->json = NULL;
    operation->ended = operation->unknown = false;
    mrt_time left = operation->deadline - mrt_time_now();
    request.limit = left > 0 ? left : 1;
    request.done = answered;
    request.argument = operation;
    struct mrt_rest_call *call = mrt_rest_send(operation->wire, &request, body);
    if (!call)
        return MORTISE_ENOMEM;
    mrt_rest_wire_kick(operation->wire);
    while (!operation->ended && mrt_time_now() < operation->deadline)
        wait_a_while(operation);
    if (operation->ended)
        return operation->error;
    mrt_rest_cancel(call);
    operation->unknown = true;
    return mrt_error(MORTISE_EUNREACHABLE, "%s: %s: no answer in time",
                     operation->wire->server.family->name, operation->address);
}

void mrt_rest_operation_end(struct mrt_rest_operation *operation)
{
    json_object_put(operation->json);
    operation->json = NULL;
}
