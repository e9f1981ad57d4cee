/* SPDX-License-Identifier: Apache-2.0 */
/* Names and labels: every byte, every length, and UTF-8 where decoders usually err. */
#include "base/name.h"
#include "cmocka_all.h"
#include "mortise.h"

#include <string.h>

static const char *const clean[] = {
    "",
    "a",
    "a b",
    "/",
    "../..",
    "'; DROP TABLE ticket; --",
    "%s%n",
    "\xc2\xa0",         /* U+00A0, just after C1 */
    "\xdf\xbf",         /* U+07FF, last of two bytes */
    "\xe0\xa0\x80",     /* U+0800, first of three */
    "\xed\x9f\xbf",     /* U+D7FF, just before the surrogates */
    "\xee\x80\x80",     /* U+E000, just after them */
    "\xef\xbf\xbf",     /* U+FFFF */
    "\xf0\x90\x80\x80", /* U+10000, first of four */
    "\xf4\x8f\xbf\xbf", /* U+10FFFF, the last */
    "gr\xc3\xbcn",
};

static const char *const unclean[] = {
    "\xc0\x80",         /* overlong NUL */
    "\xc0\xaf",         /* overlong slash */
    "\xc1\xbf",         /* overlong U+007F */
    "\xe0\x80\xaf",     /* overlong slash, three bytes */
    "\xe0\x9f\xbf",     /* overlong U+07FF */
    "\xf0\x80\x80\xaf", /* overlong slash, four bytes */
    "\xf0\x8f\xbf\xbf", /* overlong U+FFFF */
    "\xed\xa0\x80",     /* U+D800, a surrogate */
    "\xed\xbf\xbf",     /* U+DFFF, a surrogate */
    "\xf4\x90\x80\x80", /* U+110000 */
    "\xf5\x80\x80\x80",
    "\xf8\x88\x80\x80\x80", /* five bytes */
    "\xfc\x84\x80\x80\x80\x80",
    "\x80",
    "\xbf",
    "\xc3",         /* cut short */
    "\xe2\x82",     /* cut short */
    "\xf0\x9f\x92", /* cut short */
    "\xc3(",        /* followed by ASCII */
    "\xe2(\x82",
    "\xe2\x82(",
    "\xf0\x9f\x92(",
    "a\xff",
    "a\nb",
    "\x1b[31m",
    "a\x7f",
    "\xc2\x80", /* U+0080, C1 */
    "\xc2\x9f", /* U+009F, C1 */
};

static void test_j9_utf8_edges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof clean / sizeof clean[0]; i++)
        if (!mrt_text_is_clean(clean[i], strlen(clean[i])))
            fail_msg("refused: %s", clean[i]);
    for (size_t i = 0; i < sizeof unclean / sizeof unclean[0]; i++)
        if (mrt_text_is_clean(unclean[i], strlen(unclean[i])))
            fail_msg("accepted row %zu", i);
    assert_false(mrt_text_is_clean("a\0b", 3));
}

static void test_j9_which_single_bytes_are_names(void **state)
{
    (void)state;
    for (unsigned int byte = 0; byte < 256; byte++) {
        char text[2] = {(char)byte, '\0'};
        bool printable = byte >= 0x20 && byte < 0x7f;
        assert_int_equal(mrt_text_is_clean(text, 1), printable);
        assert_int_equal(mrt_name_check(text), printable ? MORTISE_OK : MORTISE_ENAME);
    }
}

/* Every code point in its shortest form is judged by its range alone. */
static void test_j9_every_code_point(void **state)
{
    (void)state;
    for (uint32_t point = 0x80; point < 0x110000; point++) {
        char text[4];
        size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        uint32_t rest = point;
        for (size_t i = length - 1; i > 0; i--, rest >>= 6)
            text[i] = (char)(0x80 | (rest & 0x3f));
        static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        text[0] = (char)(lead[length] | rest);
        bool expected = point >= 0xa0 && !(point >= 0xd800 && point < 0xe000);
        if (mrt_text_is_clean(text, length) != expected)
            fail_msg("U+%04X", point);
    }
}

static void test_j9_name_length_limits(void **state)
{
    (void)state;
    char name[MORTISE_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[MORTISE_NAME_MAX + 1] = '\0';
    assert_int_equal(mrt_name_check(name), MORTISE_ENAME);
    assert_non_null(strstr(mortise_error_detail(), "255"));
    name[MORTISE_NAME_MAX] = '\0';
    assert_int_equal(mrt_name_check(name), MORTISE_OK);
    assert_int_equal(mrt_name_check("n"), MORTISE_OK);
    assert_int_equal(mrt_name_check(""), MORTISE_ENAME);
    assert_int_equal(mrt_name_check(NULL), MORTISE_ENAME);
}

static void test_j9_label_length_limits(void **state)
{
    (void)state;
    char label[MORTISE_LABEL_MAX + 2];
    memset(label, 'l', sizeof label);
    label[MORTISE_LABEL_MAX + 1] = '\0';
    assert_int_equal(mrt_label_check(label), MORTISE_EINVALID);
    label[MORTISE_LABEL_MAX] = '\0';
    assert_int_equal(mrt_label_check(label), MORTISE_OK);
    assert_int_equal(mrt_label_check(""), MORTISE_OK);
    assert_int_equal(mrt_label_check(NULL), MORTISE_OK);
    assert_int_equal(mrt_label_check("a\tb"), MORTISE_EINVALID);
}

/* A refusal is one printable line that names the input, whatever the input. */
static void test_j9_refusal_is_one_printable_line(void **state)
{
    (void)state;
    assert_int_equal(mrt_name_check("build\n\x1b[31m"), MORTISE_ENAME);
    assert_string_equal(mortise_error_detail(),
                        "lock name \"build\\x0a\\x1b[31m\": control character at byte 6");
    assert_int_equal(mrt_name_check("ab\xff"), MORTISE_ENAME);
    assert_string_equal(mortise_error_detail(), "lock name \"ab\\xff\": not UTF-8 at byte 3");
    char name[400];
    memset(name, 1, sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(mrt_name_check(name), MORTISE_ENAME);
    for (const char *c = mortise_error_detail(); *c; c++)
        assert_true(*c >= 0x20 && *c < 0x7f);
    assert_non_null(strstr(mortise_error_detail(), "\\x01...\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_j9_utf8_edges),
        cmocka_unit_test(test_j9_which_single_bytes_are_names),
        cmocka_unit_test(test_j9_every_code_point),
        cmocka_unit_test(test_j9_name_length_limits),
        cmocka_unit_test(test_j9_label_length_limits),
        cmocka_unit_test(test_j9_refusal_is_one_printable_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
