/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Leases (store/kubernetes/name.h). */
#include "cmocka_all.h"
#include "store/kubernetes/name.h"

#include <string.h>

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
        cmocka_unit_test(test_names_that_differ_have_leases_that_differ),
        cmocka_unit_test(test_a_name_that_looks_encoded_is_encoded),
        cmocka_unit_test(test_the_longest_full_name_has_a_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
