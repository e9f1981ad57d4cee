/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k8s://host[:443][,host[:port]...]/NAMESPACE?lease=15s&connect=5s&namespace=mortise
 *     &credentials=/path&tls_ca=/path&tls_cert=/path&tls_key=/path&tls=off
 * k8s: and k8s:///NAMESPACE are the same in a pod: the server is the one that the variables
 * KUBERNETES_SERVICE_HOST and _PORT name, and the token, its certificate and the namespace are the
 * service account's, where the kubelet puts them.
 *
 * The server's certificate is always checked. tls=off is for a proxy on this host, such as `kubectl
 * proxy`. A kubeconfig file is not read.
 */
#ifndef MRT_STORE_KUBERNETES_URI_H
#define MRT_STORE_KUBERNETES_URI_H

#include "base/uri.h"
#include "store/kit/address.h"

#define MRT_K8S_PATH_MAX 512
#define MRT_K8S_NAMESPACE_SIZE 64

struct mrt_k8s_address {
    struct mrt_host hosts[MRT_HOSTS_MAX];
    size_t host_count;
    mrt_time lease, connect;
    int tls;                      /* enum mrt_address_tls */
    char token[MRT_K8S_PATH_MAX]; /* the file's path; "": none */
    char tls_ca[MRT_K8S_PATH_MAX], tls_cert[MRT_K8S_PATH_MAX], tls_key[MRT_K8S_PATH_MAX];
    char space[MRT_K8S_NAMESPACE_SIZE]; /* the namespace of Kubernetes */
    char shown[768];                    /* canonical, for people */
};

/* 0, or MORTISE_EURI with particulars. */
int mrt_k8s_uri_parse(const struct mrt_uri *uri, struct mrt_k8s_address *address);

#endif
