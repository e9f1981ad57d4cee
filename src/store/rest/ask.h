/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's calls: on a wire of their own, one at a time, waited for until a deadline. */
#ifndef MRT_STORE_REST_ASK_H
#define MRT_STORE_REST_ASK_H

#include "store/rest/wire.h"

struct mrt_rest_operation {
    struct mrt_rest_wire *wire;
    const char *address; /* for people */
    mrt_time deadline;
    /* Of the newest call: */
    struct json_object *json; /* the operation's */
    bool ended, unknown;
    int error;
};

/* Sends the request, with the operation as the rest of it, and takes the text's bytes. Its reply is
   operation->json until the next. 0, or a code with its particulars. */
int mrt_rest_ask(struct mrt_rest_operation *operation, struct mrt_rest_request request,
                 struct mrt_rest_text *body);
void mrt_rest_operation_end(struct mrt_rest_operation *operation);

#endif
