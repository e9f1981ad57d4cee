/* SPDX-License-Identifier: Apache-2.0 */
/* The wire's part of a call; users of a wire need wire.h alone. */
#ifndef MRT_STORE_REST_CALL_H
#define MRT_STORE_REST_CALL_H

#include "store/rest/wire.h"

/* libcurl has finished with it: its callback is called, or it is sent again. */
void mrt_rest_call_ended(struct mrt_rest_call *call, CURLcode code);

#endif
