/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and cells of the stores' kit: what is written is read again, and nothing else is. */
#include "cmocka_all.h"

#include "store/kit/cell.h"
#include "store/kit/line.h"

#include <stdlib.h>
#include <string.h>

static bool is_letter(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

static void test_cl_a_text_is_escaped_and_read_again(void **state)
{
    char word[32], text[32];
    (void)state;
    mrt_line_escape("a =\377", 4, '=', is_letter, word, sizeof word);
    assert_string_equal(word, "a=20=3d=ff");
    assert_true(mrt_line_unescape(word, strlen(word), '=', text, sizeof text));
    assert_string_equal(text, "a =\377");
    mrt_line_escape("ab  c", 5, '=', is_letter, word, 9);
    assert_string_equal(word, "ab=20"); /* no half of an escape */
}

static void test_cl_a_malformed_word_is_refused(void **state)
{
    static const char *const words[] = {"=", "=2", "a=g0", "=2G", "=00", "abcdefgh"};
    char text[8];
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_false(mrt_line_unescape(words[i], strlen(words[i]), '=', text, sizeof text));
}

static void test_cl_words_are_read_one_by_one(void **state)
{
    const char *line = "18446744073709551615 - 1x";
    struct mrt_id id = {1, 1};
    uint64_t number;
    (void)state;
    assert_true(mrt_line_number(&line, &number));
    assert_true(number == UINT64_MAX);
    assert_true(mrt_line_id(&line, &id, true));
    assert_true(mrt_id_none(id));
    assert_false(mrt_line_number(&line, &number));
    assert_false(mrt_line_number(&line, &number)); /* there is none */
    line = "-";
    assert_false(mrt_line_id(&line, &id, false));
}

/* The bytes that a CELL_SET makes, which the caller frees; and the cell that is read from them. */
static char *change(const void *value, size_t size, uint64_t fence, struct mrt_job *job,
                    struct mrt_cell *cell, size_t *length)
{
    job->command = (struct mrt_command){
        .type = MRT_CELL_SET, .ticket = {3, 4}, .fence = fence, .value = value, .value_size = size};
    char *bytes = mrt_cell_change(job, 7, length);
    assert_true(bytes && mrt_cell_parse(bytes, *length, cell));
    assert_true(mrt_id_equal(cell->id, job->command.ticket));
    assert_true(mrt_cell_show(job, cell, bytes, *length));
    return bytes;
}

static void test_cl_a_cell_is_written_and_read_again(void **state)
{
    struct mrt_job job = {.value = NULL};
    struct mrt_cell cell;
    size_t size;
    (void)state;
    char *bytes = change("a\nb", 3, 9, &job, &cell, &size);
    assert_true(cell.there && cell.fence == 9 && job.event.fence == 9);
    assert_memory_equal(job.event.value, "a\nb", 3);
    assert_int_equal(job.event.value_size, 3);
    bytes[0] = 'M';
    assert_false(mrt_cell_parse(bytes, size, &cell));
    free(bytes);
    bytes = change(NULL, 0, 2, &job, &cell, &size); /* deleted; the larger fence stays */
    assert_true(!cell.there && cell.fence == 7 && job.event.value_size == 0);
    assert_false(mrt_cell_parse(bytes, size - 1, &cell));
    free(bytes);
    free(job.value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cl_a_text_is_escaped_and_read_again),
        cmocka_unit_test(test_cl_a_malformed_word_is_refused),
        cmocka_unit_test(test_cl_words_are_read_one_by_one),
        cmocka_unit_test(test_cl_a_cell_is_written_and_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
