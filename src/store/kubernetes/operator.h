/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's calls: the port has the contracts. */
#ifndef MRT_STORE_KUBERNETES_OPERATOR_H
#define MRT_STORE_KUBERNETES_OPERATOR_H

#include "store/kubernetes/internal.h"

int mrt_k8s_list(struct mrt_store *port, const char *name, const char *prefix,
                 mrt_listed_callback callback, void *argument);
int mrt_k8s_revoke(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_k8s_break(struct mrt_store *port, const char *name, uint64_t fence);
int mrt_k8s_server(struct mrt_store *port, char *text, size_t size);
/* Makes nothing: whether the server lets this client read Leases. */
int mrt_k8s_init(const struct mrt_uri *uri, mortise_text_callback print, void *argument);
/* rights.c: a Role and a RoleBinding, for kubectl apply. */
int mrt_k8s_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument);

#endif
