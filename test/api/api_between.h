/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a client's store through functions of the test, which has taken the others over. */
#ifndef API_BETWEEN_H
#define API_BETWEEN_H

#include "api/client.h"

/* From now on the store is called through `ops`. Returns the store's own. To be called before any
 * other call. */
static inline const struct mrt_store_ops *api_put_between(mortise_client *client,
                                                          const struct mrt_store_ops *ops)
{
    struct mrt_driver *driver = &client->driver;
    pthread_mutex_lock(&driver->mutex);
    const struct mrt_store_ops *real = driver->ops;
    driver->ops = ops;
    pthread_mutex_unlock(&driver->mutex);
    return real;
}

#endif
