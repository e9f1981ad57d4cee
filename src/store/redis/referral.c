/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Referrals. A sentinel names the master by SENTINEL GET-MASTER-ADDR-BY-NAME. It is believed only
 * after the server that it named has said itself, by ROLE, that it is a master: a sentinel that was
 * cut off may name one that has been demoted. A node of a cluster that does not keep the slot of a
 * key answers MOVED, and names the one that does. So the first request on a connection is about a
 * key of this namespace, and one that changes nothing.
 *
 * All that a sentinel or a node says is checked before it is used: a port is a number, a host is an
 * address or a name, and a text that is shown to people is cut.
 */
#include "store/redis/referral.h"

#include "mortise.h"
#include "store/redis/error.h"

#include <stdio.h>
#include <stdlib.h>

#define SLOTS 16384

/* ------------------------------------------------------------------ hosts */

/* A host and a port as a server names them; an address of IPv6 has no brackets. */
static bool read_host(const char *name, size_t length, const char *port, struct mrt_host *host)
{
    char text[sizeof host->name + 16];
    bool v6 = memchr(name, ':', length);
    if (length == 0 || length >= sizeof host->name)
        return false;
    int size = snprintf(text, sizeof text, "%s%.*s%s:%.6s", v6 ? "[" : "", (int)length, name,
                        v6 ? "]" : "", port);
    return mrt_host_parse(text, (size_t)size, 0, "", host) == MORTISE_OK;
}

/* ------------------------------------------------------------------ sentinels */

unsigned mrt_redis_referral_put(struct mrt_redis_wire *wire,
                                const struct mrt_redis_address *address, const char *secret)
{
    if (secret[0] && address->sentinel_user[0])
        mrt_redis_wire_words(wire, "AUTH", address->sentinel_user, secret, NULL);
    else if (secret[0])
        mrt_redis_wire_words(wire, "AUTH", secret, NULL);
    mrt_redis_wire_words(wire, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", address->master, NULL);
    return secret[0] ? 1 : 0;
}

/* The meaning of an error where a server is sought. */
static enum mrt_redis_referral read_error(const redisReply *reply, const char *advice, int *error,
                                          char fault[MRT_REDIS_FAULT_SIZE])
{
    const char *usual;
    enum mrt_redis_outcome outcome = mrt_redis_classify(reply->str, error, &usual);
    if (outcome != MRT_REDIS_REFUSED || *error != MORTISE_EPERMISSION)
        *error = MORTISE_OK;
    snprintf(fault, MRT_REDIS_FAULT_SIZE, "%.120s%s", reply->str, *error ? advice : "");
    return MRT_REDIS_NO_SERVER;
}

enum mrt_redis_referral mrt_redis_referral_read(const struct mrt_redis_address *address,
                                                const redisReply *reply, struct mrt_host *host,
                                                int *error, char fault[MRT_REDIS_FAULT_SIZE])
{
    *error = MORTISE_OK;
    if (reply->type == REDIS_REPLY_ERROR)
        return read_error(reply, " (see sentinel_credentials= and sentinel_user=)", error, fault);
    if (reply->type == REDIS_REPLY_NIL) {
        *error = MORTISE_EURI;
        snprintf(fault, MRT_REDIS_FAULT_SIZE,
                 "it watches no master named \"%s\" (sentinel monitor has the names)",
                 address->master);
        return MRT_REDIS_NO_SERVER;
    }
    const redisReply *const *part = (const redisReply *const *)reply->element;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        part[0]->type == REDIS_REPLY_STRING && part[1]->type == REDIS_REPLY_STRING &&
        read_host(part[0]->str, (size_t)part[0]->len, part[1]->str, host))
        return MRT_REDIS_OTHER_SERVER;
    snprintf(fault, MRT_REDIS_FAULT_SIZE, "its answer is no address; is it a sentinel?");
    return MRT_REDIS_NO_SERVER;
}

/* ------------------------------------------------------------------ servers */

void mrt_redis_referral_check_put(struct mrt_redis_wire *wire,
                                  const struct mrt_redis_address *address)
{
    char key[MRT_REDIS_BASE_MAX + 16];
    if (address->way == MRT_REDIS_SENTINEL) {
        mrt_redis_wire_words(wire, "ROLE", NULL);
        return;
    }
    snprintf(key, sizeof key, "%ssessions", address->base);
    mrt_redis_wire_words(wire, "TYPE", key, NULL);
}

bool mrt_redis_referral_moved(const struct mrt_redis_address *address, const redisReply *reply,
                              const char *here, struct mrt_host *host)
{
    char *end;
    if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "MOVED ", 6) != 0)
        return false;
    unsigned long slot = strtoul(reply->str + 6, &end, 10);
    const char *name = end + 1, *port = strrchr(reply->str, ':');
    if (*end != ' ' || !port || port < name || slot != mrt_redis_slot(address->base))
        return false;
    if (port == name)
        return read_host(here, strlen(here), port + 1, host);
    return read_host(name, (size_t)(port - name), port + 1, host);
}

/* The reply to ROLE begins with a word. */
static enum mrt_redis_referral read_role(const redisReply *reply, char fault[MRT_REDIS_FAULT_SIZE])
{
    bool is_text = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                   reply->element[0]->type == REDIS_REPLY_STRING;
    const char *role = is_text ? reply->element[0]->str : "";
    if (strcmp(role, "master") == 0)
        return MRT_REDIS_THIS_SERVER;
    snprintf(fault, MRT_REDIS_FAULT_SIZE, "says that it is no master but \"%.16s\"", role);
    return MRT_REDIS_NO_SERVER;
}

enum mrt_redis_referral mrt_redis_referral_check(const struct mrt_redis_address *address,
                                                 const redisReply *reply, const char *here,
                                                 struct mrt_host *host, int *error,
                                                 char fault[MRT_REDIS_FAULT_SIZE])
{
    *error = MORTISE_OK;
    if (mrt_redis_referral_moved(address, reply, here, host))
        return MRT_REDIS_OTHER_SERVER;
    if (reply->type == REDIS_REPLY_ERROR)
        return read_error(
            reply,
            address->way == MRT_REDIS_SENTINEL ? " (behind sentinels a user needs +role)" : "",
            error, fault);
    return address->way == MRT_REDIS_SENTINEL ? read_role(reply, fault) : MRT_REDIS_THIS_SERVER;
}

/* Scripts of older servers report it in the middle of a text. */
bool mrt_redis_referral_is_replica(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "READONLY You can't");
}

/* ------------------------------------------------------------------ slots */

/* CRC-16 of XMODEM, as Redis Cluster's specification has it, of what stands between the braces. */
unsigned mrt_redis_slot(const char *base)
{
    unsigned crc = 0;
    for (const char *c = base + 1; *c && *c != '}'; c++) {
        crc ^= (unsigned)(unsigned char)*c << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
        crc &= 0xffff;
    }
    return crc % SLOTS;
}
