/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of waiting in a store's URI: how long a queue may be, how soon to look
 * again, how a failure is repeated, and when to give a silent store up. It is the engine's affair,
 * so it means the same on every store. All of it can only cost requests or time, never safety; the
 * bounds keep one client from loading its server, and from sleeping through its recovery.
 */
#include "io/policy.h"

#include "base/error.h"
#include "base/parameter.h"

#include <string.h>

#define RECHECK_MIN (50 * MRT_MILLISECOND)
#define RECHECK_MAX (5 * MRT_SECOND) /* no store says longer */
#define PAUSE_BASE_MAX MRT_SECOND
#define PAUSE_MAX (60 * MRT_SECOND)
#define ATTEMPTS_MAX 1000
#define TICKETS_STANDARD 20000
#define TICKETS_MAX 1000000
#define GIVE_UP_MIN (100 * MRT_MILLISECOND)
#define NUMBER_MAX INT64_C(999999999999999999)

/* "retry=10ms..1s". */
static int read_pauses(const struct mrt_uri *uri, struct mrt_engine_config *config)
{
    const char *text = mrt_uri_parameter(uri, "retry");
    if (!text)
        return MORTISE_OK;
    const char *dots = strstr(text, "..");
    mrt_time least = dots ? mrt_parse_duration(text, (size_t)(dots - text)) : -1;
    mrt_time most = dots ? mrt_parse_duration(dots + 2, strlen(dots + 2)) : -1;
    if (least < MRT_MILLISECOND || least > PAUSE_BASE_MAX || most < least || most > PAUSE_MAX)
        return mrt_error(MORTISE_EURI,
                         "retry=%.32s is not two durations as 10ms..1s, the first from 1ms to 1s, "
                         "the second from that to 60s",
                         text);
    config->pause_min = least;
    config->pause_max = most;
    return MORTISE_OK;
}

static const struct mrt_parameter parameters[] = {
    {"queue_max", MRT_PARAMETER_NUMBER, offsetof(struct mrt_engine_config, queue_max), .least = 1,
     .most = NUMBER_MAX},
    {"tickets_max", MRT_PARAMETER_NUMBER, offsetof(struct mrt_engine_config, tickets_max),
     .least = 1, .most = TICKETS_MAX},
    {"recheck", MRT_PARAMETER_DURATION, offsetof(struct mrt_engine_config, recheck),
     .least = RECHECK_MIN, .most = RECHECK_MAX},
    {"give_up", MRT_PARAMETER_DURATION, offsetof(struct mrt_engine_config, give_up),
     .least = GIVE_UP_MIN, .most = MRT_GIVE_UP_MAX_MS * MRT_MILLISECOND},
    {.key = NULL}};

static const struct mrt_parameter attempts_alone[] = {
    {"attempts", MRT_PARAMETER_NUMBER, .least = 1, .most = ATTEMPTS_MAX}, {.key = NULL}};

int mrt_policy_read(const struct mrt_uri *uri, struct mrt_engine_config *config)
{
    uint64_t attempts = 0;
    config->tickets_max = TICKETS_STANDARD;
    int error = mrt_parameters_read_known(uri, parameters, config);
    if (error == MORTISE_OK)
        error = mrt_parameters_read_known(uri, attempts_alone, &attempts);
    if (error == MORTISE_OK)
        error = read_pauses(uri, config);
    config->attempts_max = (uint32_t)attempts;
    return error;
}
