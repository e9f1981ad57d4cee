/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the agent's protocol: whole, in parts, and wrong ones. */
#include "../cmocka_all.h"

#include "base/resp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mrt_resp_command command;
static size_t used;
static const char *wrong;

/* Reads from a copy that ends with the allocation, so that a sanitizer finds a read behind it. */
static enum mrt_resp_result read_bytes(const char *bytes, size_t size)
{
    static char *copy;
    free(copy);
    copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    used = 0;
    wrong = NULL;
    return mrt_resp_read(copy, size, &command, &used, &wrong);
}

static void assert_word(size_t i, const char *text)
{
    assert_int_equal(command.words[i].size, strlen(text));
    assert_memory_equal(command.words[i].text, text, strlen(text));
}

static void an_array_gives_its_words(void **state)
{
    static const char frame[] = "*3\r\n$4\r\nLOCK\r\n$3\r\na b\r\n$0\r\n\r\n";
    (void)state;
    assert_int_equal(read_bytes(frame, sizeof frame - 1), MRT_RESP_COMMAND);
    assert_int_equal(used, sizeof frame - 1);
    assert_int_equal(command.count, 3);
    assert_word(0, "LOCK");
    assert_word(1, "a b");
    assert_word(2, "");
}

static void a_line_gives_its_words(void **state)
{
    (void)state;
    assert_int_equal(read_bytes("  LOCK\ta  0 \r\nrest", 18), MRT_RESP_COMMAND);
    assert_int_equal(used, 14);
    assert_int_equal(command.count, 3);
    assert_word(0, "LOCK");
    assert_word(2, "0");
    assert_int_equal(read_bytes("PING\n", 5), MRT_RESP_COMMAND);
    assert_word(0, "PING");
    assert_int_equal(read_bytes("\r\n", 2), MRT_RESP_COMMAND);
    assert_int_equal(command.count, 0);
}

static void a_frame_cut_at_any_byte_is_a_part(void **state)
{
    static const char frame[] = "*2\r\n$6\r\nUNLOCK\r\n$2\r\n\0\n\r\n";
    (void)state;
    for (size_t size = 0; size < sizeof frame - 1; size++)
        assert_int_equal(read_bytes(frame, size), MRT_RESP_PART);
    assert_int_equal(read_bytes(frame, sizeof frame - 1), MRT_RESP_COMMAND);
    assert_memory_equal(command.words[1].text, "\0\n", 2);
}

static void what_is_announced_too_large_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const frames[] = {"*17\r\n",
                                         "*2147483647\r\n",
                                         "*-1\r\n",
                                         "*1\r\n$8193\r\n",
                                         "*1\r\n$1073741824\r\n",
                                         "*1\r\n$-1\r\n",
                                         "*1\r\n+OK\r\n",
                                         "*x\r\n",
                                         "*1\r\n$1\r\nabc",
                                         "*\r\n",
                                         "*99999999999999999999\r\n",
                                         "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\r\n",
                                         "*000000000000000000000000000000000001"};
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        assert_int_equal(read_bytes(frames[i], strlen(frames[i])), MRT_RESP_NOT_FRAMED);
        assert_non_null(wrong);
    }
}

static void a_command_has_at_most_8192_bytes(void **state)
{
    char *frame = malloc(2 * MRT_RESP_SIZE_MAX);
    (void)state;
    assert_non_null(frame);
    memset(frame, 'a', 2 * MRT_RESP_SIZE_MAX);
    assert_int_equal(read_bytes(frame, MRT_RESP_SIZE_MAX - 1), MRT_RESP_PART);
    assert_int_equal(read_bytes(frame, 2 * MRT_RESP_SIZE_MAX), MRT_RESP_NOT_FRAMED);
    int head = snprintf(frame, 64, "*1\r\n$%d\r\n", MRT_RESP_SIZE_MAX - 13);
    frame[head] = 'a';
    memcpy(frame + MRT_RESP_SIZE_MAX - 2, "\r\n", 2);
    int at_most = snprintf(NULL, 0, "*1\r\n$%d\r\n", MRT_RESP_SIZE_MAX - 13);
    assert_int_equal(at_most, 11);
    assert_int_equal(read_bytes(frame, MRT_RESP_SIZE_MAX), MRT_RESP_COMMAND);
    assert_int_equal(used, MRT_RESP_SIZE_MAX);
    free(frame);
}

static void numbers_have_digits_alone(void **state)
{
    static const char *const bad[] = {"",    "-",  "+1", "1.5",
                                      "0x1", " 1", "1 ", "9223372036854775808"};
    int64_t number = 0;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mrt_resp_word word = {bad[i], strlen(bad[i])};
        assert_false(mrt_resp_number(&word, INT64_MIN, INT64_MAX, &number));
    }
    struct mrt_resp_word word = {"9223372036854775807", 19}, minus = {"-1", 2};
    assert_true(mrt_resp_number(&word, 0, INT64_MAX, &number));
    assert_true(number == INT64_MAX);
    assert_true(mrt_resp_number(&minus, -1, 5, &number));
    assert_true(number == -1);
    assert_false(mrt_resp_number(&minus, 0, 5, &number));
}

static void words_match_in_either_case(void **state)
{
    struct mrt_resp_word word = {"Lock", 4};
    (void)state;
    assert_true(mrt_resp_is(&word, "LOCK"));
    assert_false(mrt_resp_is(&word, "LOC"));
    assert_false(mrt_resp_is(&word, "LOCKS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_gives_its_words),
        cmocka_unit_test(a_line_gives_its_words),
        cmocka_unit_test(a_frame_cut_at_any_byte_is_a_part),
        cmocka_unit_test(what_is_announced_too_large_is_refused_at_once),
        cmocka_unit_test(a_command_has_at_most_8192_bytes),
        cmocka_unit_test(numbers_have_digits_alone),
        cmocka_unit_test(words_match_in_either_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
