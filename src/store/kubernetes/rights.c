/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights that locks need, as a Role for the namespace and a RoleBinding, which `kubectl apply
 * -f -` takes. The URI names no user, so the binding is that of the namespace's default service
 * account, and a comment says so. A rule cannot restrict `create` to names.
 *
 * The namespace is a word of letters, digits and hyphens (uri.c): it needs no quotes but against
 * being read as a number.
 */
#include "store/kubernetes/operator.h"

#include <stdio.h>

int mrt_k8s_print_rights(const struct mrt_uri *uri, mortise_text_callback print, void *argument)
{
    static const char format[] = "apiVersion: rbac.authorization.k8s.io/v1\n"
                                 "kind: Role\n"
                                 "metadata:\n"
                                 "  name: mortise-locks\n"
                                 "  namespace: \"%s\"\n"
                                 "rules:\n"
                                 "- apiGroups: [coordination.k8s.io]\n"
                                 "  resources: [leases]\n"
                                 "  verbs: [get, list, watch, create, update]\n"
                                 "---\n"
                                 "apiVersion: rbac.authorization.k8s.io/v1\n"
                                 "kind: RoleBinding\n"
                                 "metadata:\n"
                                 "  name: mortise-locks\n"
                                 "  namespace: \"%s\"\n"
                                 "roleRef:\n"
                                 "  apiGroup: rbac.authorization.k8s.io\n"
                                 "  kind: Role\n"
                                 "  name: mortise-locks\n"
                                 "subjects: # the service account of the pods that lock\n"
                                 "- kind: ServiceAccount\n"
                                 "  name: default\n"
                                 "  namespace: \"%s\"\n";
    char text[sizeof format + 3 * MRT_K8S_NAMESPACE_SIZE];
    struct mrt_k8s_address address;
    int error = mrt_k8s_uri_parse(uri, &address);
    if (error)
        return error;
    snprintf(text, sizeof text, format, address.space, address.space, address.space);
    print(argument, text);
    return MORTISE_OK;
}
