/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies the server's errors. */
#ifndef MRT_STORE_REDIS_ERROR_H
#define MRT_STORE_REDIS_ERROR_H

enum mrt_redis_outcome {
    MRT_REDIS_NOT_DONE, /* and may be tried again */
    MRT_REDIS_UNKNOWN,  /* perhaps in part */
    MRT_REDIS_REFUSED,  /* for good */
    MRT_REDIS_NO_SCRIPT
};
/* Sets `error` to the code of mortise.h, and `advice` to what to add to the server's text. */
enum mrt_redis_outcome mrt_redis_classify(const char *text, int *error, const char **advice);

#endif
