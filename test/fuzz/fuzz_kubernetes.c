/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of the Kubernetes API server (hostile_rest.c). */
#include "hostile.h"

const char fuzz_uri[] = "k8s://127.0.0.1:%u/mortise?tls=off";
