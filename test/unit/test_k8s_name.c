/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Leases (store/kubernetes/name.h). */
#include "cmocka_all.h"
#include "store/kubernetes/name.h"

#include <ctype.h>
#include <string.h>

/* As in a Turkish locale, where the small letter of I has no dot, and is no ASCII. The library's
   functions and its macros read this table. */
static int32_t turkish[384];
const int32_t **__wrap___ctype_tolower_loc(void);
int __wrap_tolower(int c);

const int32_t **__wrap___ctype_tolower_loc(void)
{
    static const int32_t *table = turkish + 128;
    for (int c = 0; c < 256; c++)
        turkish[128 + c] = c >= 'A' && c <= 'Z' && c != 'I' ? c - 'A' + 'a' : c;
    return &table;
}

int __wrap_tolower(int c)
{
    return (*__wrap___ctype_tolower_loc())[c];
}

static void expect(const char *full, const char *name)
{
    char found[MRT_K8S_NAME_SIZE];
    mrt_k8s_name(full, found);
    assert_string_equal(found, name);
    assert_true(mrt_k8s_is_name(found, MRT_K8S_NAME_MAX));
}

static void test_a_name_that_a_lease_may_have_stays(void **state)
{
    (void)state;
    char longest[MRT_K8S_NAME_MAX + 1];
    memset(longest, 'a', MRT_K8S_NAME_MAX);
    longest[MRT_K8S_NAME_MAX] = '\0';
    expect("a", "a");
    expect("0", "0");
    expect("kube-scheduler", "kube-scheduler");
    expect("a.b--c.9", "a.b--c.9");
    expect(longest, longest);
}

/* The digits are those of sha256sum. */
static void test_every_other_name_is_encoded(void **state)
{
    (void)state;
    expect("mortise/report", "mortise-report.xe2eda189bbb1c10eca7dd58ba5341130");
    expect("", "lock.xe3b0c44298fc1c149afbf4c8996fb924");
    expect("///", "lock.x732c4e9711639ed1436dd90d3951ca34");
    expect("Report", "report.xb6ce788d9786917c9d19adaa0d904213");
}

/* Two clients with different locales exclude each other. */
static void test_a_name_is_the_same_in_every_locale(void **state)
{
    (void)state;
    expect("INDEX", "index.xea69fe17051b2d914f8a5fcf5cb9bb72");
}

static void test_names_that_differ_have_leases_that_differ(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a",  "A",   "a/",  "/a",  "a.",   ".a",   "a..b", "a/b",     "a-b",         "a--b",
        "-a", "a-",  "a b", "a_b", "ä",    "ö",    "a\tb", "a.-b",    "a-.b",        "mortise/a",
        "b",  "a.b", "a,b", "a:b", "a/b/", "a//b", "a%b",  "mortise", "mortise/a/b", "x"};
    char found[2][MRT_K8S_NAME_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < i; j++) {
            mrt_k8s_name(names[i], found[0]);
            mrt_k8s_name(names[j], found[1]);
            assert_string_not_equal(found[0], found[1]);
        }
}

/* Nobody can choose a plain name that is the encoded one of another. */
static void test_a_name_that_looks_encoded_is_encoded(void **state)
{
    (void)state;
    char once[MRT_K8S_NAME_SIZE], twice[MRT_K8S_NAME_SIZE];
    mrt_k8s_name("mortise/report", once);
    assert_true(mrt_k8s_is_name(once, MRT_K8S_NAME_MAX));
    mrt_k8s_name(once, twice);
    assert_string_not_equal(once, twice);
}

static void test_the_longest_full_name_has_a_lease(void **state)
{
    (void)state;
    char full[512], found[MRT_K8S_NAME_SIZE];
    for (size_t length = 250; length < 390; length++) {
        memset(full, 'a', length);
        full[length] = '\0';
        mrt_k8s_name(full, found);
        assert_true(mrt_k8s_is_name(found, MRT_K8S_NAME_MAX));
        assert_int_equal(strcmp(full, found) == 0, length <= MRT_K8S_NAME_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_that_a_lease_may_have_stays),
        cmocka_unit_test(test_every_other_name_is_encoded),
        cmocka_unit_test(test_a_name_is_the_same_in_every_locale),
        cmocka_unit_test(test_names_that_differ_have_leases_that_differ),
        cmocka_unit_test(test_a_name_that_looks_encoded_is_encoded),
        cmocka_unit_test(test_the_longest_full_name_has_a_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
