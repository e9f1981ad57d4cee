/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of etcd. */
#ifndef MRT_STORE_ETCD_CODE_H
#define MRT_STORE_ETCD_CODE_H

#include <stdbool.h>

enum mrt_etcd_class {
    MRT_ETCD_IS_REFUSAL, /* nothing was done */
    MRT_ETCD_IS_UNKNOWN, /* it may have been done; the same call may succeed later */
    MRT_ETCD_IS_TOKEN    /* nothing was done, and the token is not valid any longer */
};

/* Of the text of an error; the code of mortise.h, and advice to go behind the text. */
enum mrt_etcd_class mrt_etcd_classify(const char *text, int *error, const char **advice);

#endif
