/*
 * The settings of waiting in a store's URI: how long a queue may be, how soon to look
 * again, how a failure is repeated, and when to give a silent store up. It is the engine's affair,
 * so it means the same on every store. All of it can only cost requests or time, never safety; the
 * bounds keep one client from loading its server, and from sleeping through its recovery.
 */
#include "api/client.h"
#include "base/error.h"
#include "base/uri.h"

#include <string.h>

#define RECHECK_MIN_MS 50
#define RECHECK_MAX_MS 5000 /* no store says longer */
#define PAUSE_MIN_MS 1
#define PAUSE_BASE_MAX_MS 1000
#define PAUSE_MAX_MS 60000
#define ATTEMPTS_MAX 1000
#define GIVE_UP_MIN_MS 100
#define NUMBER_MAX UINT64_C(999999999999999999)
#define DIGITS_MAX 9

/* "10s" or "500ms" up to `end`, in milliseconds; -1: it is none. */
static int64_t read_ms(const char *text, const char *end)
{
    int64_t number = 0;
    const char *unit = text + strspn(text, "0123456789");
    if (unit == text || unit > end || unit - text > DIGITS_MAX)
        return -1;
    for (; text < unit; text++)
        number = number * 10 + (*text - '0');
    size_t length = (size_t)(end - unit);
    if (length == 1 && *unit == 's')
        return number * 1000;
    return length == 2 && memcmp(unit, "ms", 2) == 0 ? number : -1;
}

/* A parameter from `least` to `most` milliseconds; without it `duration` stays. */
static int read_duration(const struct mrt_uri *uri, const char *key, int64_t least, int64_t most,
                         mrt_time *duration)
{
    const char *text = mrt_uri_parameter(uri, key);
    if (!text)
        return MORTISE_OK;
    int64_t ms = read_ms(text, text + strlen(text));
    if (ms < least || ms > most)
        return mrt_error(MORTISE_EURI, "%s=%.32s is not a duration from %lldms to %llds", key, text,
                         (long long)least, (long long)(most / 1000));
    *duration = mrt_time_from_ms(ms);
    return MORTISE_OK;
}

/* "retry=10ms..1s". */
static int read_pauses(const struct mrt_uri *uri, struct mrt_engine_config *config)
{
    const char *text = mrt_uri_parameter(uri, "retry");
    if (!text)
        return MORTISE_OK;
    const char *dots = strstr(text, "..");
    int64_t least = dots ? read_ms(text, dots) : -1;
    int64_t most = dots ? read_ms(dots + 2, text + strlen(text)) : -1;
    if (least < PAUSE_MIN_MS || least > PAUSE_BASE_MAX_MS || most < least || most > PAUSE_MAX_MS)
        return mrt_error(MORTISE_EURI,
                         "retry=%.32s is not two durations as 10ms..1s, the first from 1ms to 1s, "
                         "the second from that to 60s",
                         text);
    config->pause_min = mrt_time_from_ms(least);
    config->pause_max = mrt_time_from_ms(most);
    return MORTISE_OK;
}

/* 1 to 18 digits, from 1 to `most`; without it `number` stays. */
static int read_number(const struct mrt_uri *uri, const char *key, uint64_t most, uint64_t *number)
{
    const char *text = mrt_uri_parameter(uri, key);
    uint64_t value = 0;
    if (!text)
        return MORTISE_OK;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && digits <= 18; i++)
        value = value * 10 + (uint64_t)(text[i] - '0');
    if (text[digits] != '\0' || value == 0 || value > most)
        return mrt_error(MORTISE_EURI, "%s=%.32s is not a number from 1 to %llu", key, text,
                         (unsigned long long)most);
    *number = value;
    return MORTISE_OK;
}

int mrt_policy_read(const struct mrt_uri *uri, struct mrt_engine_config *config)
{
    uint64_t attempts = 0;
    int error = read_number(uri, "queue_max", NUMBER_MAX, &config->queue_max);
    if (error == MORTISE_OK)
        error = read_number(uri, "attempts", ATTEMPTS_MAX, &attempts);
    if (error == MORTISE_OK)
        error = read_duration(uri, "recheck", RECHECK_MIN_MS, RECHECK_MAX_MS, &config->recheck);
    if (error == MORTISE_OK)
        error = read_pauses(uri, config);
    if (error == MORTISE_OK)
        error = read_duration(uri, "give_up", GIVE_UP_MIN_MS, MRT_GIVE_UP_MAX_MS, &config->give_up);
    config->attempts_max = (uint32_t)attempts;
    return error;
}
