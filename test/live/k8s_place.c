/* SPDX-License-Identifier: Apache-2.0 */
/* See k8s_place.h. */
#include "live/k8s_place.h"

#include "cmocka_all.h"
#include "core/rule.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct port_client holder, waiter;

time_t still;

/* In the place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    long result = syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME && still)
        *time = (struct timespec){.tv_sec = still};
    return (int)result;
}

struct remains remains;

void __real_free(void *memory);
void __wrap_free(void *memory);
void __real_curl_slist_free_all(struct curl_slist *list);
void __wrap_curl_slist_free_all(struct curl_slist *list);

void __wrap_free(void *memory)
{
    size_t size = memory && remains.text ? malloc_usable_size(memory) : 0;
    remains.times += size > 0 && memmem(memory, size, remains.text, strlen(remains.text));
    __real_free(memory);
}

void __wrap_curl_slist_free_all(struct curl_slist *list)
{
    for (const struct curl_slist *entry = list; entry && remains.text; entry = entry->next)
        remains.times += strstr(entry->data, remains.text) != NULL;
    __real_curl_slist_free_all(list);
}

const char *uri, *lock;

int open_both(void **state)
{
    static char name[64];
    static unsigned count;
    snprintf(name, sizeof name, "rules-%d-%u", (int)getpid(), count++);
    (void)state;
    lock = name;
    port_open_session(&holder, uri);
    port_open_session(&waiter, uri);
    holder.lease = waiter.lease = 0; /* each RENEW is a test's own */
    return 0;
}

int close_both(void **state)
{
    (void)state;
    still = 0;
    stray_end();
    port_close(&holder);
    port_close(&waiter);
    return 0;
}

bool is_granted(struct mrt_event event)
{
    return event.type == MRT_VIEW && mrt_rule_grants(event.weight_ahead, 1, 1);
}

bool waits(struct mrt_event event)
{
    return event.type == MRT_VIEW && !is_granted(event);
}

struct mrt_event renew(struct port_client *client)
{
    struct mrt_command command = port_command(client, MRT_RENEW);
    return port_send(client, &command);
}

struct mrt_event append_closely(struct port_client *client)
{
    struct mrt_command command = port_append_command(client, lock);
    command.watch_closely = true;
    return port_send(client, &command);
}

const char *spec_text(const char *field)
{
    static char text[128];
    struct json_object *json = lease_read(&waiter, lock);
    snprintf(text, sizeof text, "%s", mrt_rest_string(mrt_rest_member(json, "spec"), field));
    json_object_put(json);
    return text;
}

int64_t spec_number(const char *field)
{
    struct json_object *json = lease_read(&waiter, lock);
    int64_t number = mrt_rest_number(mrt_rest_member(json, "spec"), field);
    json_object_put(json);
    return number;
}

bool is_free(void)
{
    return *spec_text("holderIdentity") == '\0';
}

struct mrt_k8s_queue *queue_of(struct port_client *client)
{
    struct mrt_k8s_queue *queue;
    TAILQ_FOREACH (queue, &store_of(client)->queues, link)
        if (strcmp(queue->full, lock) == 0)
            return queue;
    fail();
    return NULL;
}
