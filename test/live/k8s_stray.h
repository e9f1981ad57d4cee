/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes store's calls, led astray before they reach its server, and an operator's own
 * calls, which are not. A program that has this wraps mrt_rest_send and mrt_store_find.
 */
#ifndef TEST_K8S_STRAY_H
#define TEST_K8S_STRAY_H

#include "conform/port_client.h"
#include "store/kubernetes/queue.h"

enum stray {
    STRAY_NOT,     /* it is counted alone */
    STRAY_LOST,    /* it is done, and its answer is lost */
    STRAY_LATE,    /* the first is not sent before late_arrives(), and the others never */
    STRAY_REFUSED, /* it is not sent, and refused: somebody else was first */
    STRAY_HELD,    /* it is done, and answered by stray_release() */
    STRAY_CHANGED  /* its answer is a copy that stray_change() changes */
};

typedef void stray_changer(struct json_object *json);

/* So many of the client's next requests of Leases by this method; one kind at a time. */
void stray_lead(struct port_client *client, const char *method, enum stray kind, unsigned times);
void stray_change(struct port_client *client, const char *method, stray_changer *change,
                  unsigned times);
/* So many there were. */
unsigned stray_count(void);
void stray_release(void);
/* Nothing is led astray any more; what is late is forgotten. */
void stray_end(void);
const char *late_body(void);
/* The late request reaches the server now: 0, or the code of its refusal. */
int late_arrives(struct port_client *client);
/* So many watches have been sent. */
unsigned watch_count(void);
/* A watch without a version begins when all else has happened. */
void watches_begin_late(void);
/* The client's newest watch shows that. Takes the object. */
void watch_shows(struct port_client *client, const char *type, struct json_object *object);

struct mrt_k8s_store *store_of(struct port_client *client);
/* An operator's. The object is the caller's; NULL: there is none. */
struct json_object *lease_read(struct port_client *client, const char *name);
/* Adds members to the spec; makes the Lease if it is not there. */
void lease_write(struct port_client *client, const char *name, const char *spec);
void lease_delete(struct port_client *client, const char *name);

#endif
