/* SPDX-License-Identifier: Apache-2.0 */
/* What an error of the server means. */
#ifndef MRT_STORE_REDIS_ERROR_H
#define MRT_STORE_REDIS_ERROR_H

enum mrt_redis_outcome {
    MRT_REDIS_NOT_DONE, /* and may be tried again */
    MRT_REDIS_UNKNOWN,  /* perhaps in part */
    MRT_REDIS_REFUSED,  /* for good */
    MRT_REDIS_NO_SCRIPT
};
/* The code of ours in `error`; what to add to the server's text in `advice`. */
enum mrt_redis_outcome mrt_redis_classify(const char *text, int *error, const char **advice);

#endif
