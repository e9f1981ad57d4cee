/* SPDX-License-Identifier: Apache-2.0 */
/* The wire's part of a call; users of a wire need wire.h alone. */
#ifndef MRT_STORE_ETCD_CALL_H
#define MRT_STORE_ETCD_CALL_H

#include "store/etcd/wire.h"

/* libcurl has finished with it: its callback is called, or it is sent again. */
void mrt_etcd_call_ended(struct mrt_etcd_call *call, CURLcode code);
/* Sends calls that were held, as far as they may be. */
void mrt_etcd_release(struct mrt_etcd_wire *wire);

#endif
