/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that are the same on every server. ZooKeeper's own checks are not relied on: the client
 * library lets names through that the server refuses later, so what is refused here is what a
 * server would refuse, and what it would read otherwise than meant.
 */
#include "store/zookeeper/names.h"

#include "base/error.h"
#include "base/name.h"
#include "core/recipe.h"
#include "core/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CZXID_SIZE 19 /* "-d-" and 16 digits */

/* ------------------------------------------------------------------- paths */

/* Java sees text as UTF-16, and ZooKeeper refuses surrogates, the private use area
   and the specials; so U+D800 to U+F8FF, U+FFF0 to U+FFFF and all beyond. */
static bool has_refused_character(const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] >= 0xf0)
            return true;
        if (bytes[i] < 0xe0)
            continue;
        unsigned point = (bytes[i] & 15u) << 12 | (bytes[i + 1] & 63u) << 6 | (bytes[i + 2] & 63u);
        if ((point >= 0xd800 && point <= 0xf8ff) || point >= 0xfff0)
            return true;
        i += 2;
    }
    return false;
}

static const char *component_fault(const char *text, size_t length, bool first)
{
    char copy[MORTISE_NAME_MAX + 1];
    if (length == 0)
        return "an empty part";
    if (length > MORTISE_NAME_MAX)
        return "a part that is too long";
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strcmp(copy, ".") == 0 || strcmp(copy, "..") == 0)
        return "a part \".\" or \"..\"";
    if (first && strcmp(copy, "zookeeper") == 0)
        return "\"/zookeeper\", which the server keeps for itself";
    if (strcmp(copy, MRT_ZK_CELL_NAME) == 0)
        return "a part \"" MRT_ZK_CELL_NAME "\", which is kept for cells";
    if (mrt_zk_place_of(copy).family != MRT_ZK_FOREIGN)
        return "a part that reads as the node of a ticket";
    if (!mrt_text_is_clean(text, length) || has_refused_character(text, length))
        return "a character that ZooKeeper refuses";
    return NULL;
}

int mrt_zk_path_check(const char *path, int error)
{
    const char *fault = path[0] == '/' ? NULL : "no \"/\" at its beginning";
    const char *part = path + 1;
    while (!fault) {
        size_t length = strcspn(part, "/");
        fault = component_fault(part, length, part == path + 1);
        if (part[length] == '\0')
            break;
        part += length + 1;
    }
    if (fault)
        return mrt_error(error, "ZooKeeper path \"%.200s\" has %s", path, fault);
    return MORTISE_OK;
}

/* The name after the namespace; all of it, if it has none. */
static const char *after_namespace(const char *namespace, const char *name)
{
    size_t length = strlen(namespace);
    bool in_namespace = length > 0 && strncmp(name, namespace, length) == 0 && name[length] == '/';
    return in_namespace ? name + length + 1 : name;
}

/* The text that stands for the first byte; NULL: the byte itself. */
static const char *escaped_first(const char *rest)
{
    if (*rest == '/')
        return "%2f";
    return strncmp(rest, "%2f", 3) == 0 || strncmp(rest, "%25", 3) == 0 ? "%25" : NULL;
}

void mrt_zk_queue_name(const char *namespace, const char *below, char name[MRT_ZK_PATH_MAX])
{
    const char *rest = after_namespace(namespace, below);
    const char *first = rest == below || escaped_first(rest) == NULL ? NULL
                        : rest[2] == 'f'                             ? "/"
                                                                     : "%";
    snprintf(name, MRT_ZK_PATH_MAX, "%.*s%s%s", (int)(rest - below), below, first ? first : "",
             first ? rest + 3 : rest);
}

int mrt_zk_queue_path(const char *chroot, const char *namespace, const char *name,
                      char path[MRT_ZK_PATH_MAX])
{
    const char *rest = after_namespace(namespace, name);
    const char *first = rest == name ? NULL : escaped_first(rest);
    bool skips = first || (rest == name && *rest == '/');
    int size = snprintf(path, MRT_ZK_PATH_MAX, "%s/%.*s%s%s", chroot, (int)(rest - name), name,
                        first ? first : "", rest + skips);
    if (size < 0 || size >= MRT_ZK_PATH_MAX)
        return mrt_error(MORTISE_ENAME, "ZooKeeper path of \"%.64s...\" is too long", name);
    const char *below = path + strlen(chroot) + 1;
    size_t markers = strlen(MRT_ZK_MARKERS_NAME);
    if (strcspn(below, "/") == markers && memcmp(below, MRT_ZK_MARKERS_NAME, markers) == 0)
        return mrt_error(MORTISE_ENAME, "\"" MRT_ZK_MARKERS_NAME "\" is kept for markers");
    return mrt_zk_path_check(path, MORTISE_ENAME);
}

/* ------------------------------------------------------------------- nodes */

/* The recipe that each family keeps. */
static const struct {
    const char *kind;
    uint64_t weight, capacity;
} families[] = {
    [MRT_ZK_FOREIGN] = {"", 0, 0},
    [MRT_ZK_MUTEX] = {"mutex", 1, 1},
    [MRT_ZK_READER] = {"read-write", MRT_READER, MRT_WRITER},
    [MRT_ZK_WRITER] = {"read-write", MRT_WRITER, MRT_WRITER},
    [MRT_ZK_SEMAPHORE] = {"semaphore", 0, 0}, /* the name has them */
    [MRT_ZK_EXCLUSIVE] = {"exclusive", 1, 1},
};

/* The text before the sequence in the names that we give; NULL: no such lock is kept. */
static const char *const marks[][MRT_ZK_WRITER + 1] = {
    [MRT_ZK_CURATOR] = {NULL, "-lock-", "-__READ__", "-__WRIT__"},
    [MRT_ZK_KAZOO] = {NULL, "__lock__", "__rlock__", "__lock__"},
    [MRT_ZK_RECIPE] = {NULL, "lock-", NULL, NULL},
};

/* And in those that we find. */
static const struct {
    const char *mark;
    bool whole; /* nothing precedes it */
    enum mrt_zk_layout layout;
    enum mrt_zk_family family;
} known[] = {
    {"-lock-", false, MRT_ZK_CURATOR, MRT_ZK_MUTEX},
    {"__lock__", false, MRT_ZK_KAZOO, MRT_ZK_MUTEX},
    {"__READ__", false, MRT_ZK_CURATOR, MRT_ZK_READER},
    {"__WRIT__", false, MRT_ZK_CURATOR, MRT_ZK_WRITER},
    {"__rlock__", false, MRT_ZK_KAZOO, MRT_ZK_READER},
    {"lock-", true, MRT_ZK_RECIPE, MRT_ZK_MUTEX},
    {"-R-", false, MRT_ZK_ARTICLE, MRT_ZK_READER},
    {"-W-", false, MRT_ZK_ARTICLE, MRT_ZK_WRITER},
    {"read_", true, MRT_ZK_ARTICLE, MRT_ZK_READER},
    {"write_", true, MRT_ZK_ARTICLE, MRT_ZK_WRITER},
};

#define PERMITS "-permits-"

/* The whole of `text` as the server writes a sequence, %010d; false: it is none. */
static bool parse_sequence(const char *text, int32_t *sequence)
{
    size_t length = strlen(text), at = text[0] == '-' ? 1 : 0;
    int64_t value = 0;
    if (length < 10 || length > 11)
        return false;
    for (; at < length; at++) {
        if (text[at] < '0' || text[at] > '9')
            return false;
        value = value * 10 + (text[at] - '0');
    }
    if (text[0] == '-')
        value = -value;
    if (value < INT32_MIN || value > INT32_MAX || (length == 11 && value > -1000000000))
        return false;
    *sequence = (int32_t)value;
    return true;
}

/* The text behind the last occurrence of `mark`, or NULL. */
static const char *after_last(const char *text, const char *mark)
{
    const char *found = NULL;
    for (const char *next = text; (next = strstr(next, mark)); next++)
        found = next + strlen(mark);
    return found;
}

/* A number of permits as snprintf writes it; false: it is none. */
static bool parse_permits(const char **text, uint64_t *permits)
{
    size_t digits = strspn(*text, "0123456789");
    *permits = 0;
    for (size_t i = 0; i < digits && digits <= 10; i++)
        *permits = *permits * 10 + (uint64_t)((*text)[i] - '0');
    bool good = digits > 0 && digits <= 10 && (*text)[0] != '0' && *permits <= UINT32_MAX;
    *text += digits;
    return good;
}

/* "3of5-N" */
static bool parse_semaphore(const char *text, struct mrt_zk_place *place)
{
    if (!parse_permits(&text, &place->weight) || strncmp(text, "of", 2) != 0)
        return false;
    text += 2;
    return parse_permits(&text, &place->capacity) && place->weight <= place->capacity &&
           *text == '-' && parse_sequence(text + 1, &place->sequence);
}

static struct mrt_zk_place fixed(enum mrt_zk_layout layout, enum mrt_zk_family family,
                                 int32_t sequence)
{
    return (struct mrt_zk_place){.family = family,
                                 .layout = layout,
                                 .sequence = sequence,
                                 .weight = families[family].weight,
                                 .capacity = families[family].capacity};
}

/* "x-SESSION-N": in hexadecimal digits from C, in decimal ones, also negative, from Java. */
static bool parse_session(const char *node, int32_t *sequence)
{
    if (strncmp(node, "x-", 2) != 0)
        return false;
    const char *session = node + (node[2] == '-' ? 3 : 2);
    size_t digits = strspn(session, "0123456789abcdef");
    return digits > 0 && session[digits] == '-' && parse_sequence(session + digits + 1, sequence);
}

static struct mrt_zk_place place_in_queue(const char *node)
{
    struct mrt_zk_place place = {.family = MRT_ZK_SEMAPHORE};
    int32_t sequence = 0;
    const char *rest;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i].mark);
        bool begins = known[i].whole && strncmp(node, known[i].mark, length) == 0;
        rest = begins ? node + length : known[i].whole ? NULL : after_last(node, known[i].mark);
        if (rest && parse_sequence(rest, &sequence))
            return fixed(known[i].layout, known[i].family, sequence);
    }
    if (parse_session(node, &sequence))
        return fixed(MRT_ZK_RECIPE, MRT_ZK_MUTEX, sequence);
    rest = after_last(node, PERMITS);
    return rest && parse_semaphore(rest, &place) ? place : fixed(MRT_ZK_CURATOR, MRT_ZK_FOREIGN, 0);
}

/* Where the UUID begins and ends in our names, of Curator's form and of kazoo's. */
static size_t uuid_at(enum mrt_zk_layout layout)
{
    return layout == MRT_ZK_KAZOO ? 0 : strlen(MRT_ZK_NODE_PREFIX);
}

static size_t uuid_end(enum mrt_zk_layout layout)
{
    return layout == MRT_ZK_KAZOO ? 32 : strlen(MRT_ZK_NODE_PREFIX) + MRT_ZK_UUID_SIZE - 1;
}

/* Of our names alone: "_c_UUID-d-0123456789abcdef-..." */
static void parse_hands(const char *node, struct mrt_zk_place *place)
{
    size_t head = uuid_end(place->layout);
    if (strlen(node) <= head + CZXID_SIZE || node[head] != '-' || node[head + 2] != '-' ||
        strspn(node + head + 3, "0123456789abcdef") != CZXID_SIZE - 3 ||
        (node[head + CZXID_SIZE] != '-' && node[head + CZXID_SIZE] != '_') ||
        (node[head + 1] != 'd' && node[head + 1] != 'a'))
        return;
    place->hands = node[head + 1] == 'd' ? MRT_ZK_DETACHED : MRT_ZK_ADOPTED;
    place->czxid = (int64_t)strtoull(node + head + 3, NULL, 16);
}

struct mrt_zk_place mrt_zk_place_of(const char *node)
{
    struct mrt_zk_place place = place_in_queue(node);
    if (place.family != MRT_ZK_FOREIGN && place.layout <= MRT_ZK_KAZOO)
        parse_hands(node, &place);
    return place;
}

struct mrt_zk_place mrt_zk_place_beside(const char *node, const struct mrt_zk_place *own)
{
    struct mrt_zk_place place = mrt_zk_place_of(node);
    if (place.layout == MRT_ZK_KAZOO && place.family == MRT_ZK_MUTEX &&
        (own->family == MRT_ZK_READER || own->family == MRT_ZK_WRITER)) {
        place.family = MRT_ZK_WRITER;
        place.weight = place.capacity = MRT_WRITER;
    }
    return place;
}

static enum mrt_zk_family family_of(const char *kind, uint64_t weight)
{
    if (strcmp(kind, mrt_mutex.kind) == 0 || strcmp(kind, mrt_semaphore_mutex.kind) == 0 ||
        strcmp(kind, mrt_election.kind) == 0)
        return MRT_ZK_MUTEX;
    if (strcmp(kind, mrt_exclusive.kind) == 0)
        return MRT_ZK_EXCLUSIVE;
    if (strcmp(kind, mrt_read_write.kind) == 0)
        return weight == MRT_READER ? MRT_ZK_READER : MRT_ZK_WRITER;
    return MRT_ZK_FOREIGN;
}

struct mrt_zk_place mrt_zk_place_for(enum mrt_zk_layout layout, const char *kind, uint64_t capacity,
                                     uint64_t weight)
{
    if (strcmp(kind, families[MRT_ZK_SEMAPHORE].kind) == 0 && weight > 0 && weight <= capacity &&
        capacity <= UINT32_MAX)
        return (struct mrt_zk_place){
            .family = MRT_ZK_SEMAPHORE, .weight = weight, .capacity = capacity};
    enum mrt_zk_family family = family_of(kind, weight);
    bool named = family <= MRT_ZK_WRITER;
    struct mrt_zk_place place = fixed(named ? layout : MRT_ZK_CURATOR, family, 0);
    bool kept = !named || marks[layout][family];
    return kept && place.capacity == capacity && place.weight == weight
               ? place
               : fixed(MRT_ZK_CURATOR, MRT_ZK_FOREIGN, 0);
}

bool mrt_zk_same_lock(const struct mrt_zk_place *a, const struct mrt_zk_place *b)
{
    return strcmp(mrt_zk_kind(a->family), mrt_zk_kind(b->family)) == 0 &&
           a->capacity == b->capacity;
}

bool mrt_zk_misplaced(const struct mrt_zk_place *place, enum mrt_zk_layout layout)
{
    bool named = place->family >= MRT_ZK_MUTEX && place->family <= MRT_ZK_WRITER;
    return named && place->layout != layout;
}

const char *mrt_zk_kind(enum mrt_zk_family family)
{
    return families[family].kind;
}

const char *mrt_zk_layout_name(enum mrt_zk_layout layout)
{
    static const char *const names[] = {"curator", "kazoo", "recipe", NULL};
    return names[layout];
}

/* ---------------------------------------------------------------- our names */

void mrt_zk_uuid(struct mrt_id id, const struct mrt_zk_place *place, char text[MRT_ZK_UUID_SIZE])
{
    char digits[MRT_ID_TEXT_SIZE];
    id.high = (id.high & ~UINT64_C(0xf000)) | UINT64_C(0x8000);
    id.low = (id.low & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
    mrt_id_format(id, digits);
    if (place->layout == MRT_ZK_RECIPE)
        text[0] = '\0';
    else if (place->layout == MRT_ZK_KAZOO)
        snprintf(text, MRT_ZK_UUID_SIZE, "%.32s", digits);
    else
        snprintf(text, MRT_ZK_UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8,
                 digits + 12, digits + 16, digits + 20);
}

static void write_suffix(const struct mrt_zk_place *place, char suffix[MRT_ZK_NODE_SIZE])
{
    if (place->family == MRT_ZK_SEMAPHORE)
        snprintf(suffix, MRT_ZK_NODE_SIZE, PERMITS "%" PRIu64 "of%" PRIu64 "-", place->weight,
                 place->capacity);
    else
        snprintf(suffix, MRT_ZK_NODE_SIZE, "%s", marks[place->layout][place->family]);
}

bool mrt_zk_is_ours(const char *node)
{
    char suffix[MRT_ZK_NODE_SIZE];
    const struct mrt_zk_place place = mrt_zk_place_of(node);
    if (place.family == MRT_ZK_FOREIGN || place.layout > MRT_ZK_KAZOO)
        return false;
    size_t begin = uuid_at(place.layout), end = uuid_end(place.layout);
    size_t version = begin + (place.layout == MRT_ZK_KAZOO ? 12 : 14);
    write_suffix(&place, suffix);
    return strlen(node) > end + strlen(suffix) && memcmp(node, MRT_ZK_NODE_PREFIX, begin) == 0 &&
           node[version] == '8' && memcmp(node + end, suffix, strlen(suffix)) == 0;
}

void mrt_zk_node_head(const char *uuid, const struct mrt_zk_place *place,
                      char head[MRT_ZK_NODE_SIZE])
{
    char hands[CZXID_SIZE + 1] = "", suffix[MRT_ZK_NODE_SIZE];
    if (place->hands != MRT_ZK_NEVER_DETACHED)
        snprintf(hands, sizeof hands, "-%c-%016" PRIx64,
                 place->hands == MRT_ZK_DETACHED ? 'd' : 'a', (uint64_t)place->czxid);
    write_suffix(place, suffix);
    snprintf(head, MRT_ZK_NODE_SIZE, "%s%s%s%.50s",
             place->layout == MRT_ZK_CURATOR ? MRT_ZK_NODE_PREFIX : "", uuid, hands, suffix);
}

void mrt_zk_node(const char *uuid, const struct mrt_zk_place *place, char node[MRT_ZK_NODE_SIZE])
{
    mrt_zk_node_head(uuid, place, node);
    size_t length = strlen(node);
    snprintf(node + length, MRT_ZK_NODE_SIZE - length, "%010" PRId32, place->sequence);
}

bool mrt_zk_before(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b) < 0;
}
