/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two clients of the Kubernetes store's port, for tests that lead their calls astray
 * (k8s_stray.h), and what they look at. A program that has this wraps free and
 * curl_slist_free_all, too.
 */
#ifndef TEST_K8S_PLACE_H
#define TEST_K8S_PLACE_H

#include "live/k8s_stray.h"

#include <time.h>

#define LONG (5 * MRT_SECOND)
#define SHORT (50 * MRT_MILLISECOND)
#define ALL 1000

extern const char *uri;
extern struct port_client holder, waiter;
/* A lock of this test alone; its Lease has the same name. */
extern const char *lock;
/* The wall clock stands still there; 0: it does not. */
extern time_t still;
/* How often memory was freed that has this text. */
extern struct remains {
    const char *text; /* NULL: nobody looks */
    unsigned times;
} remains;

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)
int open_both(void **state);
int close_both(void **state);

bool is_granted(struct mrt_event event);
bool waits(struct mrt_event event);
struct mrt_event renew(struct port_client *client);
/* An APPEND whose ticket wants to be told of what others do. */
struct mrt_event append_closely(struct port_client *client);
struct mrt_k8s_queue *queue_of(struct port_client *client);

/* A text of the Lease's spec; "" if there is none, and if there is no Lease. */
const char *spec_text(const char *field);
int64_t spec_number(const char *field);
bool is_free(void);

/* k8s_odd.c: how many of its tests fail. */
int k8s_odd(void);

#endif
