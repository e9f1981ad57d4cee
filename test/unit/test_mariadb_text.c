/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes sent to a MariaDB server (store/mariadb/text.c): a statement as it is written, and
 * values as literals in which nothing can end a literal. Each kind of request is walked through
 * beside its statements, with values that are made to break out of them.
 */
#include "cmocka_all.h"

#include "store/mariadb/internal.h"
#include "store/sql/driver.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_MAX 760 /* bytes of a name with its namespace: the schema's */
#define BREAKING "';\"`\\ -- /*$q*/ x'00' \xbf\x27 \xf0\x9f\x94\x92"

/* ------------------------------------------------------------------ what is not under test */

int mrt_sql_rows_count(void *rows)
{
    (void)rows;
    return 0;
}

const char *mrt_sql_rows_text(void *rows, int row, int column)
{
    (void)rows, (void)row, (void)column;
    return NULL;
}

void mrt_sql_rows_free(void *rows)
{
    (void)rows;
}

/* A plan of the test's own may stand in for that of the request. */
static const struct mrt_mariadb_plan *own_plan;
const struct mrt_mariadb_plan *__real_mrt_mariadb_plan(const struct mrt_sql_request *request);
const struct mrt_mariadb_plan *__wrap_mrt_mariadb_plan(const struct mrt_sql_request *request);

const struct mrt_mariadb_plan *__wrap_mrt_mariadb_plan(const struct mrt_sql_request *request)
{
    return own_plan ? own_plan : __real_mrt_mariadb_plan(request);
}

/* ------------------------------------------------------------------ a request */

static struct mrt_sql_store store;
static struct mrt_sql_request request;

static int set_up(void **state)
{
    (void)state;
    store = (struct mrt_sql_store){.address = {.schema = "mortise", .lease = 10 * MRT_SECOND}};
    request = (struct mrt_sql_request){.kind = MRT_SQL_DO_VIEW};
    own_plan = NULL;
    return 0;
}

static char *text_of(const struct mrt_sql_request *of)
{
    char *text = mrt_mariadb_text(&store, of);
    assert_non_null(text);
    return text;
}

/* The literal that a letter becomes. */
static char *literal(char letter)
{
    const char statement[] = {'$', letter, '\0'};
    const struct mrt_mariadb_plan plan = {false, -1, {statement}};
    struct mrt_sql_request simple = request;
    simple.kind = MRT_SQL_DO_VIEW; /* nothing is prepared for it */
    simple.step[0].prepares = false;
    own_plan = &plan;
    char *text = text_of(&simple);
    own_plan = NULL;
    size_t length = strlen(text);
    assert_true(length > 1 && text[length - 1] == ';');
    text[length - 1] = '\0';
    return text;
}

static void assert_literal(char letter, const char *expected)
{
    char *text = literal(letter);
    assert_string_equal(text, expected);
    free(text);
}

/* "x'" and two digits a byte. */
static char *hexadecimal(const void *bytes, size_t size)
{
    char *text = calloc(2 * size + 4, 1);
    assert_non_null(text);
    memcpy(text, "x'", 2);
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
    text[2 + 2 * size] = '\'';
    return text;
}

static void assert_hexadecimal(char letter, const void *bytes, size_t size)
{
    char *expected = hexadecimal(bytes, size);
    assert_int_equal(strlen(expected), 2 * size + 3);
    assert_literal(letter, expected);
    free(expected);
}

static void set_value(const void *value, size_t size)
{
    request.command.value = value;
    request.command.value_size = size;
}

/* ------------------------------------------------------------------ literals */

static void test_se_04_every_byte_of_a_value_is_two_digits(void **state)
{
    (void)state;
    unsigned char all[256];
    for (int i = 0; i < 256; i++) {
        all[i] = (unsigned char)i;
        set_value(&all[i], 1);
        assert_hexadecimal('v', &all[i], 1);
    }
    set_value(all, sizeof all);
    assert_hexadecimal('v', all, sizeof all);
}

static void test_se_04_every_byte_of_a_name_is_two_digits(void **state)
{
    static const char letters[] = {'q', 'k', 'n', 'p', 'C'};
    (void)state;
    char all[256], one[2] = "";
    for (int i = 1; i < 256; i++) {
        one[0] = all[i - 1] = (char)i;
        all[i] = '\0';
        request.command.queue = request.command.kind = request.prefix = one;
        for (size_t letter = 0; letter < sizeof letters; letter++) {
            request.name = letters[letter] == 'n' ? one : NULL;
            assert_hexadecimal(letters[letter], one, 1);
        }
    }
    request.command.queue = all;
    assert_hexadecimal('q', all, 255);
}

static void test_se_04_the_label_of_a_client(void **state)
{
    (void)state;
    memset(store.label, 0xff, sizeof store.label - 1);
    assert_hexadecimal('a', store.label, sizeof store.label - 1);
    snprintf(store.label, sizeof store.label, "%s", BREAKING);
    assert_hexadecimal('a', BREAKING, strlen(BREAKING));
}

static void test_se_04_null_and_empty_values_are_told_apart(void **state)
{
    static const char letters[] = {'q', 'k', 'n', 'p', 'v', 'C'};
    (void)state;
    for (size_t i = 0; i < sizeof letters; i++)
        assert_literal(letters[i], "NULL");
    set_value("", 0);
    request.command.queue = request.command.kind = request.name = request.prefix = "";
    for (size_t i = 0; i < sizeof letters; i++)
        assert_literal(letters[i], "x''");
    assert_literal('a', "x''");
    assert_literal('!', "NULL"); /* no statement has such a letter */
}

static void test_se_04_the_longest_names_and_values(void **state)
{
    (void)state;
    static char name[QUEUE_MAX + 1];
    static unsigned char value[MORTISE_VALUE_MAX];
    memset(name, '\'', QUEUE_MAX);
    memset(value, '\\', sizeof value);
    request.command.queue = name;
    set_value(value, sizeof value);
    assert_hexadecimal('q', name, QUEUE_MAX);
    assert_hexadecimal('v', value, sizeof value);
    request.command.queue = name + QUEUE_MAX - MORTISE_NAME_MAX;
    assert_hexadecimal('q', name, MORTISE_NAME_MAX);
}

static void test_se_04_identities_are_32_hexadecimal_digits(void **state)
{
    (void)state;
    const struct mrt_id least = {0, 0}, most = {UINT64_MAX, UINT64_MAX};
    request.command.session = least;
    request.command.ticket = most;
    request.command.detached_id = (struct mrt_id){UINT64_C(0x0123456789abcdef), 10};
    assert_literal('s', "x'00000000000000000000000000000000'");
    assert_literal('t', "x'ffffffffffffffffffffffffffffffff'");
    assert_literal('b', "x'0123456789abcdef000000000000000a'");
}

static void test_se_04_the_smallest_and_the_largest_numbers(void **state)
{
    (void)state;
    uint64_t *const numbers[] = {&request.command.weight,
                                 &request.command.capacity,
                                 &request.command.queue_max,
                                 &request.command.version,
                                 &request.command.fence,
                                 &request.number,
                                 &store.epoch};
    static const char letters[] = {'w', 'c', 'm', 'r', 'f', 'o', 'e'};
    for (size_t i = 0; i < sizeof letters; i++) {
        *numbers[i] = 0;
        assert_literal(letters[i], "0");
        *numbers[i] = INT64_MAX;
        assert_literal(letters[i], "9223372036854775807");
        *numbers[i] = UINT64_MAX;
        assert_literal(letters[i], "18446744073709551615");
    }
    request.command.try_only = true;
    assert_literal('y', "1");
    request.command.try_only = false;
    assert_literal('y', "0");
}

/* The shortest lease that a URI can have, and the longest; a time is never below zero. */
static void test_se_04_times_are_whole_numbers(void **state)
{
    (void)state;
    store.address.lease = 500 * MRT_MILLISECOND;
    assert_literal('l', "500000");
    assert_literal('h', "1");
    assert_literal('i', "125");
    assert_literal('J', "2");
    store.address.lease = 86400 * MRT_SECOND;
    assert_literal('l', "86400000000");
    assert_literal('h', "28800");
    assert_literal('i', "21600000");
    assert_literal('J', "86401");
    assert_literal('Z', "864000");
    request.command.delay = 1;
    assert_literal('z', "1");
    request.command.delay = MRT_TIME_NEVER - MRT_SECOND;
    assert_literal('z', "9223372035854776");
}

static void assert_hash_of(const char *name)
{
    char expected[2 * QUEUE_MAX + 16], *digits = hexadecimal(name, strlen(name));
    snprintf(expected, sizeof expected, "SHA2(%s, 256)", digits);
    assert_literal('C', expected);
    free(digits);
}

/* Names of this character are called as they are up to so many of it. */
static void assert_called(char *name, const char *character, size_t most)
{
    size_t size = strlen(character);
    for (size_t i = 0; i < 70; i++) {
        memcpy(name + size * i, character, size + 1);
        if (i < most)
            assert_hexadecimal('C', name, size * (i + 1));
        else
            assert_hash_of(name);
    }
}

/* Of a form: by its name, up to 64 characters and 192 bytes, or by the server's hash of it. */
static void test_sq_11_a_form_locks_a_name_or_the_servers_hash_of_it(void **state)
{
    (void)state;
    char name[QUEUE_MAX + 1] = "";
    request.command.queue = name;
    for (size_t length = 1; length <= QUEUE_MAX; length++) {
        name[length - 1] = '\'';
        if (length <= 64)
            assert_hexadecimal('C', name, length);
        else
            assert_hash_of(name);
    }
    assert_called(name, "\xe2\x82\xac", 64);     /* characters of three bytes */
    assert_called(name, "\xf0\x9f\x94\x92", 48); /* and of four */
    request.name = "asked for";                  /* before the one of a command */
    assert_hexadecimal('C', "asked for", 9);
}

/* ------------------------------------------------------------------ whole requests */

/* Bytes of the literal that begins here; 0: there is none. */
static size_t literal_size(const char *text, char letter)
{
    size_t digits = strspn(text, "0123456789");
    if (digits > 0)
        return digits;
    if (strncmp(text, "NULL", 4) == 0)
        return 4;
    size_t hash = letter == 'C' && strncmp(text, "SHA2(", 5) == 0 ? 5 : 0;
    if (strncmp(text + hash, "x'", 2) != 0)
        return 0;
    digits = strspn(text + hash + 2, "0123456789abcdef");
    if (digits % 2 != 0 || text[hash + 2 + digits] != '\'')
        return 0;
    if (hash > 0 && strncmp(text + hash + digits + 3, ", 256)", 6) != 0)
        return 0;
    return hash + digits + 3 + (hash > 0 ? 6 : 0);
}

static void follow(const char **at, const char *expected)
{
    if (strncmp(*at, expected, strlen(expected)) != 0)
        fail_msg("%.80s instead of %s", *at, expected);
    *at += strlen(expected);
}

static void follow_literal(const char **at, char letter)
{
    char *expected = literal(letter);
    assert_int_equal(literal_size(*at, letter), strlen(expected));
    follow(at, expected);
    free(expected);
}

static void follow_statement(const char **at, const char *statement)
{
    for (; *statement; statement++)
        if (*statement == '$')
            follow_literal(at, *++statement);
        else
            follow(at, (const char[]){*statement, '\0'});
    follow(at, ";");
}

static void follow_preparation(const char **at, const char *statement)
{
    assert_null(strchr(statement, '"'));
    follow(at, "PREPARE mortise FROM \"");
    for (; *statement; statement++)
        if (*statement == '$') {
            assert_true(isalpha((unsigned char)*++statement));
            follow(at, "?");
        } else {
            follow(at, (const char[]){*statement, '\0'});
        }
    follow(at, "\";");
}

static void follow_execution(const char **at, const char *statement)
{
    const char *between = "EXECUTE mortise USING ";
    while ((statement = strchr(statement, '$'))) {
        follow(at, between);
        follow_literal(at, *++statement);
        between = ", ";
    }
    follow(at, ";");
}

/* Checks that the text is the request's statements with literals in them, and nothing else. Returns
 * its length. */
static size_t walk(void)
{
    const struct mrt_mariadb_plan *plan = mrt_mariadb_plan(&request);
    char *text = text_of(&request);
    const char *at = text;
    if (request.step[0].prepares)
        follow_preparation(&at, plan->statement[0]);
    if (mrt_mariadb_is_alone(&request)) {
        follow_execution(&at, plan->statement[0]);
    } else {
        if (plan->transaction)
            follow(&at, "START TRANSACTION;");
        for (int i = 0; plan->statement[i]; i++)
            follow_statement(&at, plan->statement[i]);
        if (plan->transaction)
            follow(&at, "COMMIT;");
    }
    assert_string_equal(at, "");
    size_t length = (size_t)(at - text);
    free(text);
    return length;
}

/* In each kind of request, and in each way of an acquire; the longest text. */
static size_t walk_all(void)
{
    size_t longest = 0;
    for (int kind = 0; kind < MRT_SQL_KINDS; kind++) {
        request.kind = (enum mrt_sql_kind)kind;
        bool acquires = kind == MRT_SQL_DO_APPEND;
        for (int way = 0; way < (acquires ? 4 : 1); way++) {
            request.whole = !acquires || way > 1;
            request.step[0].prepares = way == 1;
            request.command.queue_max = way == 3 ? UINT64_MAX : 0;
            size_t length = walk();
            longest = length > longest ? length : longest;
        }
    }
    return longest;
}

static void test_se_04_every_request_with_quotes_and_backslashes_in_its_values(void **state)
{
    (void)state;
    snprintf(store.label, sizeof store.label, "%s", BREAKING);
    request.command.queue = request.command.kind = request.name = request.prefix = BREAKING;
    set_value(BREAKING, sizeof BREAKING); /* its NUL, too */
    walk_all();
}

static void test_se_04_every_request_with_empty_values(void **state)
{
    (void)state;
    walk_all();
    request.command.queue = request.command.kind = request.name = request.prefix = "";
    set_value("", 0);
    walk_all();
}

/* The largest of everything, which a server takes however little it takes (max_allowed_packet is a
   megabyte or more on all that are in use). */
static void test_se_04_the_longest_request(void **state)
{
    (void)state;
    static char name[QUEUE_MAX + 1], kind[64 + 1];
    static unsigned char value[MORTISE_VALUE_MAX];
    const struct mrt_id most = {UINT64_MAX, UINT64_MAX};
    memset(name, 0xff, QUEUE_MAX);
    memset(kind, 0xff, 64);
    memset(value, 0xff, sizeof value);
    memset(store.label, 0xff, sizeof store.label - 1);
    store.epoch = request.number = UINT64_MAX;
    request.name = request.prefix = name;
    request.command = (struct mrt_command){.session = most,
                                           .ticket = most,
                                           .detached_id = most,
                                           .queue = name,
                                           .kind = kind,
                                           .weight = UINT64_MAX,
                                           .capacity = UINT64_MAX,
                                           .fence = UINT64_MAX,
                                           .version = UINT64_MAX};
    set_value(value, sizeof value);
    assert_in_range(walk_all(), 2 * (sizeof value + QUEUE_MAX), 32768);
}

/* By hand: nothing of it comes from the code under test. */
static void test_se_04_a_request_is_this_text(void **state)
{
    (void)state;
    static const struct mrt_mariadb_plan plan = {
        true, 1, {"SELECT $w", "DELETE FROM a WHERE b = $q"}};
    request.command.queue = "'";
    request.command.weight = 7;
    own_plan = &plan;
    char *text = text_of(&request);
    assert_string_equal(text, "START TRANSACTION;SELECT 7;DELETE FROM a WHERE b = x'27';COMMIT;");
    free(text);
    request.kind = MRT_SQL_DO_APPEND;
    request.step[0].prepares = true;
    text = text_of(&request);
    assert_string_equal(text, "PREPARE mortise FROM \"SELECT ?\";EXECUTE mortise USING 7;");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_se_04_every_byte_of_a_value_is_two_digits, set_up),
        cmocka_unit_test_setup(test_se_04_every_byte_of_a_name_is_two_digits, set_up),
        cmocka_unit_test_setup(test_se_04_the_label_of_a_client, set_up),
        cmocka_unit_test_setup(test_se_04_null_and_empty_values_are_told_apart, set_up),
        cmocka_unit_test_setup(test_se_04_the_longest_names_and_values, set_up),
        cmocka_unit_test_setup(test_se_04_identities_are_32_hexadecimal_digits, set_up),
        cmocka_unit_test_setup(test_se_04_the_smallest_and_the_largest_numbers, set_up),
        cmocka_unit_test_setup(test_se_04_times_are_whole_numbers, set_up),
        cmocka_unit_test_setup(test_sq_11_a_form_locks_a_name_or_the_servers_hash_of_it, set_up),
        cmocka_unit_test_setup(test_se_04_every_request_with_quotes_and_backslashes_in_its_values,
                               set_up),
        cmocka_unit_test_setup(test_se_04_every_request_with_empty_values, set_up),
        cmocka_unit_test_setup(test_se_04_the_longest_request, set_up),
        cmocka_unit_test_setup(test_se_04_a_request_is_this_text, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
