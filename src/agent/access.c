/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a policy: see access.h. Users and groups become numbers here, before the agent serves, or
 * in its worker's thread: a name service may be slow. Nothing is guessed: an unknown word, user or
 * group is an error that names the line and the word.
 *
 * The kernel tells all users that a system has no number for by one number, of the user "nobody" as
 * a rule. No rule can name it, because nobody knows who that is.
 */
#include "agent/access.h"

#include "base/error.h"
#include "base/parameter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE_MAX 65536
#define WORDS_MAX 32
#define BLANKS " \t"
#define PREFIX_SIZE 256

enum subject { ANYBODY, USER, GROUP };

struct rule {
    enum subject subject;
    uint32_t id;
    unsigned verbs;
    char prefix[PREFIX_SIZE];
};

struct limit {
    bool is_default; /* of all who have none of their own */
    uid_t uid;
    struct mrt_limits limits;
};

struct mrt_access {
    struct rule rules[MRT_ACCESS_RULES_MAX];
    struct limit limits[MRT_ACCESS_RULES_MAX];
    size_t rule_count, limit_count;
    bool has_spaces;
    const char *path;
    int line; /* that is read */
};

static const struct mrt_limits standard = {
    .connections = 64, .tickets = 1000, .names = 200, .waiters = 100, .bytes = UINT64_C(1) << 20};

/* An error of the line that is read, and of this word. */
static int fault(const struct mrt_access *access, const char *word, const char *what)
{
    return mrt_error(MORTISE_EINVALID, "%s:%d: \"%.64s\" %s", access->path, access->line, word,
                     what);
}

static uint32_t read_unknown(const char *path)
{
    char text[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    size_t size = got > 0 && text[got - 1] == '\n' ? (size_t)got - 1 : 0;
    int64_t number = mrt_parse_number(text, size, UINT32_MAX);
    return number < 0 ? 65534 : (uint32_t)number;
}

uid_t mrt_access_no_user(void)
{
    return read_unknown("/proc/sys/kernel/overflowuid");
}

gid_t mrt_access_no_group(void)
{
    return read_unknown("/proc/sys/kernel/overflowgid");
}

/* ------------------------------------------------------------------------- words */

static bool find_user(const char *word, uint32_t *id)
{
    int64_t number = mrt_parse_number(word, strlen(word), UINT32_MAX - 1);
    const struct passwd *user = number < 0 ? getpwnam(word) : NULL;
    *id = number < 0 && user ? user->pw_uid : (uint32_t)number;
    return number >= 0 || user;
}

static bool find_group(const char *word, uint32_t *id)
{
    int64_t number = mrt_parse_number(word, strlen(word), UINT32_MAX - 1);
    const struct group *group = number < 0 ? getgrnam(word) : NULL;
    *id = number < 0 && group ? group->gr_gid : (uint32_t)number;
    return number >= 0 || group;
}

/* "user NAME", "group NAME" */
static int take_subject(struct mrt_access *access, char **words, enum subject *subject,
                        uint32_t *id)
{
    const char *kind = words[0] ? words[0] : "", *name = words[0] && words[1] ? words[1] : "";
    if (strcmp(kind, "user") != 0 && strcmp(kind, "group") != 0)
        return fault(access, kind, "is neither user nor group");
    *subject = strcmp(kind, "group") == 0 ? GROUP : strcmp(name, "*") == 0 ? ANYBODY : USER;
    if (*subject == USER && !find_user(name, id))
        return fault(access, name, "is no user of this system");
    if (*subject == GROUP && !find_group(name, id))
        return fault(access, name, "is no group of this system");
    if (*subject != ANYBODY &&
        *id == (*subject == USER ? mrt_access_no_user() : mrt_access_no_group()))
        return fault(access, name,
                     "stands for all whom this system does not know: no rule names it");
    return MORTISE_OK;
}

static const char *const verb_names[] = {"acquire", "shared", "list", "cells",
                                         "revoke",  "break",  "adopt"};

static unsigned find_verb(const char *word)
{
    for (unsigned i = 0; i < sizeof verb_names / sizeof verb_names[0]; i++)
        if (strcmp(word, verb_names[i]) == 0)
            return 1u << i;
    return 0;
}

/* allow user|group WHO VERB... on PREFIX */
static int take_rule(struct mrt_access *access, char **words)
{
    struct rule *rule = &access->rules[access->rule_count];
    if (access->rule_count == MRT_ACCESS_RULES_MAX)
        return fault(access, "allow", "is one rule too many: a policy has at most 256");
    int error = take_subject(access, words, &rule->subject, &rule->id);
    if (error != MORTISE_OK)
        return error;
    size_t i = 2;
    for (; words[i] && strcmp(words[i], "on") != 0; i++) {
        unsigned verb = find_verb(words[i]);
        if (verb == 0)
            return fault(access, words[i],
                         "is no verb: acquire, shared, list, cells, revoke, break, adopt");
        rule->verbs |= verb;
    }
    if (rule->verbs == 0)
        return fault(access, words[1], "is allowed nothing: verbs stand behind it");
    if (!words[i] || !words[i + 1] || words[i + 2])
        return fault(access, words[i] ? words[i] : words[i - 1],
                     "wants one name's beginning behind it, as: on app/ (all names: on *)");
    const char *prefix = strcmp(words[i + 1], "*") == 0 ? "" : words[i + 1];
    if (strlen(prefix) >= PREFIX_SIZE)
        return fault(access, prefix, "is longer than a name");
    snprintf(rule->prefix, sizeof rule->prefix, "%s", prefix);
    access->rule_count++;
    return MORTISE_OK;
}

/* One limit: its name and value. */
static int take_number(struct mrt_access *access, const char *name, const char *value,
                       struct mrt_limits *limits)
{
    const struct {
        const char *name;
        uint64_t *number;
    } rows[] = {{"connections", &limits->connections},
                {"tickets", &limits->tickets},
                {"names", &limits->names},
                {"waiters", &limits->waiters},
                {"bytes", &limits->bytes}};
    if (strcmp(name, "hold") == 0) {
        limits->hold = mrt_parse_duration(value, strlen(value));
        return limits->hold > 0 ? MORTISE_OK : fault(access, value, "is no duration, as 60s");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(name, rows[i].name) == 0) {
            int64_t number = mrt_parse_number(value, strlen(value), INT64_MAX);
            if (number < 1)
                return fault(access, value, "is no number of at least 1");
            *rows[i].number = (uint64_t)number;
            return MORTISE_OK;
        }
    return fault(access, name, "is no limit: connections, tickets, names, waiters, bytes, hold");
}

/* limit user WHO NAME VALUE... */
static int take_limit(struct mrt_access *access, char **words)
{
    struct limit *limit = &access->limits[access->limit_count];
    enum subject subject;
    uint32_t id = 0;
    if (access->limit_count == MRT_ACCESS_RULES_MAX)
        return fault(access, "limit", "is one too many: a policy has at most 256");
    int error = take_subject(access, words, &subject, &id);
    if (error == MORTISE_OK && subject == GROUP)
        error = fault(access, words[0], "has no limits: they are of users");
    *limit = (struct limit){subject == ANYBODY, id, standard};
    for (size_t i = 2; error == MORTISE_OK && words[i]; i += 2) {
        if (!words[i + 1])
            return fault(access, words[i], "wants a value behind it");
        error = take_number(access, words[i], words[i + 1], &limit->limits);
    }
    access->limit_count++;
    return error;
}

static int take_line(struct mrt_access *access, char *line)
{
    char *words[WORDS_MAX + 3] = {NULL}, *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, BLANKS, &rest); word; word = strtok_r(NULL, BLANKS, &rest)) {
        if (word[0] == '#')
            break;
        if (count == WORDS_MAX)
            return fault(access, word, "is one word too many for a line");
        words[count++] = word;
    }
    if (count == 0)
        return MORTISE_OK;
    if (strcmp(words[0], "allow") == 0)
        return take_rule(access, words + 1);
    if (strcmp(words[0], "limit") == 0)
        return take_limit(access, words + 1);
    if (strcmp(words[0], "namespace") != 0)
        return fault(access, words[0], "begins no line: allow, limit, namespace");
    access->has_spaces = count == 2 && strcmp(words[1], "%u") == 0;
    return access->has_spaces
               ? MORTISE_OK
               : fault(access, count > 1 ? words[1] : words[0], "is not: namespace %u");
}

/* -------------------------------------------------------------------------- file */

/* Why the file is not trusted; NULL: it is. */
static const char *find_distrust(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return "is no plain file";
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return "belongs to another user";
    if (status.st_mode & (S_IWGRP | S_IWOTH))
        return "can be written by others: chmod go-w";
    return status.st_size >= FILE_SIZE_MAX ? "is longer than 64 kB" : NULL;
}

/* Reads the file's text, of FILE_SIZE_MAX bytes. */
static int read_text(const char *path, char *text)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return mrt_error(MORTISE_EINVALID, "the policy %s: %s", path, strerror(errno));
    const char *distrust = find_distrust(fd);
    ssize_t got = distrust ? -1 : read(fd, text, FILE_SIZE_MAX - 1);
    close(fd);
    if (distrust)
        return mrt_error(MORTISE_EUNSAFE, "the policy %s %s", path, distrust);
    if (got < 0 || strlen(text) != (size_t)got)
        return mrt_error(MORTISE_EINVALID, "the policy %s is no text", path);
    return MORTISE_OK;
}

static int take_lines(struct mrt_access *access, char *text)
{
    int error = MORTISE_OK;
    while (text && error == MORTISE_OK) {
        char *end = strchr(text, '\n'), *next = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        if (end && end > text && end[-1] == '\r')
            end[-1] = '\0';
        access->line++;
        error = take_line(access, text);
        text = next;
    }
    return error;
}

int mrt_access_read(const char *path, struct mrt_access **result)
{
    struct mrt_access *access = calloc(1, sizeof *access);
    char *text = calloc(1, FILE_SIZE_MAX);
    int error = access && text ? MORTISE_OK : MORTISE_ENOMEM;
    if (error == MORTISE_OK)
        error = read_text(path, text);
    if (error == MORTISE_OK) {
        access->path = path;
        error = take_lines(access, text);
        access->path = NULL; /* the caller's */
    }
    free(text);
    if (error != MORTISE_OK)
        mrt_access_free(access);
    else
        *result = access;
    return error;
}

void mrt_access_free(struct mrt_access *access)
{
    free(access);
}

/* ----------------------------------------------------------------------- answers */

static bool has_group(const gid_t *groups, size_t count, gid_t group)
{
    for (size_t i = 0; i < count; i++)
        if (groups[i] == group)
            return true;
    return false;
}

bool mrt_access_find(const struct mrt_access *access, uid_t uid, const gid_t *groups, size_t count,
                     struct mrt_access_rules *rules)
{
    bool has_one = false;
    *rules = (struct mrt_access_rules){{0}};
    for (size_t i = 0; access && i < access->rule_count; i++) {
        const struct rule *rule = &access->rules[i];
        bool is_his = rule->subject == ANYBODY || (rule->subject == USER && rule->id == uid) ||
                      (rule->subject == GROUP && has_group(groups, count, rule->id));
        if (is_his)
            rules->bits[i / 64] |= UINT64_C(1) << i % 64;
        has_one = has_one || is_his;
    }
    return has_one;
}

bool mrt_access_allows(const struct mrt_access *access, const struct mrt_access_rules *rules,
                       unsigned verbs, const char *name, size_t size)
{
    for (size_t i = 0; access && i < access->rule_count; i++) {
        const struct rule *rule = &access->rules[i];
        size_t length = strlen(rule->prefix);
        if ((rules->bits[i / 64] >> i % 64 & 1) && (rule->verbs & verbs) && length <= size &&
            memcmp(rule->prefix, name, length) == 0)
            return true;
    }
    return false;
}

const struct mrt_limits *mrt_access_limits(const struct mrt_access *access, uid_t uid)
{
    const struct mrt_limits *found = &standard;
    for (size_t i = 0; access && i < access->limit_count; i++) {
        const struct limit *limit = &access->limits[i];
        if (!limit->is_default && limit->uid == uid)
            return &limit->limits;
        if (limit->is_default)
            found = &limit->limits;
    }
    return found;
}

const char *mrt_access_verb_name(unsigned wanted)
{
    unsigned i = sizeof verb_names / sizeof verb_names[0] - 1;
    while (i > 0 && !(wanted >> i & 1))
        i--;
    return verb_names[i];
}

bool mrt_access_has_spaces(const struct mrt_access *access)
{
    return access && access->has_spaces;
}
