/* SPDX-License-Identifier: Apache-2.0 */
/* Store URIs: what is taken apart how, and what is refused without telling a secret. */
#include "base/parameter.h"
#include "base/uri.h"
#include "cmocka_all.h"
#include "mortise.h"

#include <stdlib.h>
#include <string.h>

struct good {
    const char *text, *scheme, *rest;
    size_t count;
    const char *key, *value; /* of one parameter */
};

static const struct good accepted[] = {
    {"sqlite:///var/lib/x.db", "sqlite", "///var/lib/x.db", 0, NULL, NULL},
    {"sqlite:x.db", "sqlite", "x.db", 0, NULL, NULL},
    {"sqlite:", "sqlite", "", 0, NULL, NULL},
    {"memory:one", "memory", "one", 0, NULL, NULL},
    {"MEMORY:One", "memory", "One", 0, NULL, NULL},
    {"zk://h1:2181,h2,h3/chroot", "zk", "//h1:2181,h2,h3/chroot", 0, NULL, NULL},
    {"redis+tls.v1-a:x", "redis+tls.v1-a", "x", 0, NULL, NULL},
    {"a:b:c", "a", "b:c", 0, NULL, NULL},
    {"a:b?", "a", "b", 0, NULL, NULL},
    {"a:b?k=v", "a", "b", 1, "k", "v"},
    {"a:b?k=", "a", "b", 1, "k", ""},
    {"a:b?k=v=w", "a", "b", 1, "k", "v=w"},
    {"a:b?k=v?w", "a", "b", 1, "k", "v?w"},
    {"a:b?k=v&l=w", "a", "b", 2, "l", "w"},
    {"a:b?K=v&k=w", "a", "b", 2, "k", "w"},
    {"a:b?k=%2Fx%2fy", "a", "b", 1, "k", "/x/y"},
    {"a:b?k=%26%3D%3f%25", "a", "b", 1, "k", "&=?%"},
    {"a:b?k=%2541", "a", "b", 1, "k", "%41"},
    {"a:b?k=a+b", "a", "b", 1, "k", "a+b"},
    {"a:b?k=gr%C3%BCn", "a", "b", 1, "k", "gr\xc3\xbcn"},
    {"a:b%2Fc%zz?k=v", "a", "b%2Fc%zz", 1, "k", "v"}, /* the rest is the store's to decode */
    {"a:gr\xc3\xbcn", "a", "gr\xc3\xbcn", 0, NULL, NULL},
};

static const char *const refused[] = {
    "",          "sqlite",       "/var/lib/x.db", ":x",          "1a:x",      "-a:x",
    "a b:x",     "a_b:x",        "a/b:x",         " a:x",        "a:x\ny",    "a:x\x01",
    "a:x\x7f",   "a:\xff",       "a:\xc0\xaf",    "a:b?k",       "a:b?=v",    "a:b?k=v&",
    "a:b?&k=v",  "a:b?k=v&&l=w", "a:b?k=v&l",     "a:b?k=v&k=w", "a:b?k=%",   "a:b?k=%4",
    "a:b?k=%4g", "a:b?k=%g4",    "a:b?k=%00",     "a:b?k=%0A",   "a:b?k=%FF",
};

static void test_h1_uris_that_are_accepted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        const struct good *row = &accepted[i];
        struct mrt_uri uri;
        assert_int_equal(mrt_uri_parse(row->text, &uri), MORTISE_OK);
        assert_string_equal(uri.scheme, row->scheme);
        assert_string_equal(uri.rest, row->rest);
        assert_int_equal(uri.count, row->count);
        if (row->key)
            assert_string_equal(mrt_uri_parameter(&uri, row->key), row->value);
        assert_null(mrt_uri_parameter(&uri, "absent"));
    }
}

static void test_h1_uris_that_are_refused(void **state)
{
    (void)state;
    struct mrt_uri uri;
    assert_int_equal(mrt_uri_parse(NULL, &uri), MORTISE_EURI);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (mrt_uri_parse(refused[i], &uri) != MORTISE_EURI)
            fail_msg("accepted: %s", refused[i]);
        assert_true(mortise_error_detail()[0]);
    }
}

/* The particulars are shown to people and go to logs: they hold no part of what may be a secret. */
static void test_se_secrets_are_not_quoted(void **state)
{
    (void)state;
    static const char *const secrets[] = {
        "redis://user:hunter2@h?k=%zz",
        "redis://h?password=hunter2%",
        "redis://h?hunter2",
        "user:hunter2@host?a=1&a=2",
        "hunter2",
        "redis://h?k=hunter2\n",
    };
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        struct mrt_uri uri;
        assert_int_equal(mrt_uri_parse(secrets[i], &uri), MORTISE_EURI);
        assert_null(strstr(mortise_error_detail(), "hunter2"));
    }
}

static void test_j9_length_limit(void **state)
{
    (void)state;
    struct mrt_uri uri;
    char text[MRT_URI_MAX + 1];
    memset(text, 'x', sizeof text);
    text[1] = ':';
    text[MRT_URI_MAX] = '\0';
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_EURI);
    text[MRT_URI_MAX - 1] = '\0';
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_OK);
    assert_int_equal(strlen(uri.rest), MRT_URI_MAX - 3);
}

static void append_parameter(char *text, char first, char second)
{
    char parameter[] = {'&', first, second, '=', 'v', '\0'};
    memcpy(text + strlen(text), parameter, sizeof parameter);
}

static void test_j9_parameter_limit(void **state)
{
    (void)state;
    struct mrt_uri uri;
    char text[512] = "a:b?z=v";
    for (int i = 1; i < MRT_URI_PARAMETERS_MAX; i++)
        append_parameter(text, (char)('a' + i / 26), (char)('a' + i % 26));
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_OK);
    assert_int_equal(uri.count, MRT_URI_PARAMETERS_MAX);
    append_parameter(text, 'z', 'z');
    assert_int_equal(mrt_uri_parse(text, &uri), MORTISE_EURI);
}

static void test_h1_unknown_parameter_is_named(void **state)
{
    (void)state;
    static const struct mrt_parameter known[] = {{"mode", MRT_PARAMETER_OTHER, 0, 0, 0, NULL},
                                                 {.key = NULL}};
    static const struct mrt_parameter none[] = {{.key = NULL}};
    struct mrt_uri uri;
    char member;
    assert_int_equal(mrt_uri_parse("a:b?mode=1&namespace=2", &uri), MORTISE_OK);
    assert_int_equal(mrt_parameters_read(&uri, known, &member), MORTISE_OK);
    assert_int_equal(mrt_parameters_read(&uri, none, NULL), MORTISE_EURI);
    assert_int_equal(mrt_uri_parse("a:b?mode=1&nmespace=hunter2", &uri), MORTISE_OK);
    assert_int_equal(mrt_parameters_read(&uri, known, &member), MORTISE_EURI);
    assert_non_null(strstr(mortise_error_detail(), "\"nmespace\""));
    assert_null(strstr(mortise_error_detail(), "hunter2"));
}

static void test_h1_decode_is_inverse_of_encode(void **state)
{
    (void)state;
    static const char digits[] = "0123456789ABCDEF";
    for (unsigned int first = 1; first < 256; first++) {
        for (unsigned int second = 1; second < 256; second++) {
            char text[] = {'%', digits[first >> 4],  digits[first & 15],
                           '%', digits[second >> 4], digits[second & 15],
                           '\0'};
            char plain[] = {(char)first, (char)second, '\0'};
            assert_int_equal(mrt_uri_decode(text), 0);
            assert_string_equal(text, plain);
        }
    }
}

/* Bytes at random, from an alphabet that hits the grammar: no crash, and a verdict. */
static void test_fuzz_never_reads_beyond(void **state)
{
    (void)state;
    static const char alphabet[] = "ab:?&=%20/\xc3\xbc\x01";
    uint64_t seed = 42;
    for (int round = 0; round < 100000; round++) {
        size_t length = (size_t)(round % 24);
        char *text = malloc(length + 1); /* exactly sized, for the address sanitizer */
        assert_non_null(text);
        for (size_t i = 0; i < length; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[i] = alphabet[(seed >> 33) % (sizeof alphabet - 1)];
        }
        text[length] = '\0';
        struct mrt_uri uri;
        int error = mrt_uri_parse(text, &uri);
        assert_true(error == MORTISE_OK || error == MORTISE_EURI);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_h1_uris_that_are_accepted),
        cmocka_unit_test(test_h1_uris_that_are_refused),
        cmocka_unit_test(test_se_secrets_are_not_quoted),
        cmocka_unit_test(test_j9_length_limit),
        cmocka_unit_test(test_j9_parameter_limit),
        cmocka_unit_test(test_h1_unknown_parameter_is_named),
        cmocka_unit_test(test_h1_decode_is_inverse_of_encode),
        cmocka_unit_test(test_fuzz_never_reads_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
