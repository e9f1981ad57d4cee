/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of a user of the server. */
#ifndef MRT_STORE_ETCD_RIGHTS_H
#define MRT_STORE_ETCD_RIGHTS_H

#include "base/uri.h"
#include "mortise.h"

/* Prints the commands of etcdctl that give the URI's user the rights that locks need, and no
   others; the user stays as it is. Contacts no server. 0, MORTISE_EURI or ENOMEM. */
int mrt_etcd_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
