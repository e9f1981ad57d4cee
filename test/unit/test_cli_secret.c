/* SPDX-License-Identifier: Apache-2.0 */
/* Which URLs of stores hold a secret, and what is shown of them. */
#include "cli/frame/options.h"
#include "cmocka_all.h"

#include <string.h>

static void is_hidden(const char *url)
{
    char shown[256];
    assert_true(mrt_cli_has_password(url));
    mrt_cli_redact(url, shown, sizeof shown);
    assert_null(strstr(shown, "S3CRET"));
}

static void is_shown(const char *url)
{
    char shown[256];
    assert_false(mrt_cli_has_password(url));
    mrt_cli_redact(url, shown, sizeof shown);
    assert_string_equal(shown, url);
}

static void test_a_password_behind_the_user(void **state)
{
    (void)state;
    is_hidden("redis://:S3CRET@h/");
    is_hidden("redis://u:S3CRET@h:1/0");
    is_hidden("redis+sentinel://u:S3CRET@a,b/main");
    is_hidden("ZK://u:S3CRET@h:1/a");
}

static void test_a_user_or_a_password_with_characters_of_urls(void **state)
{
    (void)state;
    is_hidden("mysql://admin@srv:S3CRET@host/db");
    is_hidden("mysql://u:S3CRET/MARK@host/db");
    is_hidden("redis://:S3CRET/MARK@host");
    is_hidden("postgresql://u:S3CRET?MARK@host/db");
    is_hidden("postgresql://u:S3CRET,MARK@host/db");
    is_hidden("redis://u:S3CRET//MARK@h");
    is_hidden("mysql://u:S3CR@ET@host/db");
}

static void test_a_secret_in_any_member_of_a_list(void **state)
{
    (void)state;
    is_hidden("redlock:sqlite:///a,sqlite:///b,mysql://u:S3CRET@host/db");
    is_hidden("redlock:redis://u:S3CRET@a,redis://b");
    is_hidden("redlock:redis://a,redis://:S3CRET@b,redis://c");
    is_hidden("REDLOCK:redis://a,redis://b@srv:S3CRET@b");
}

static void test_a_secret_in_a_parameter(void **state)
{
    (void)state;
    is_hidden("postgresql://h/d?password=S3CRET");
    is_hidden("postgresql://h/d?sslpassword=S3CRET");
    is_hidden("postgresql://h/d?PassWord=S3CRET");
    is_hidden("sqlite:x?password=S3CRET");
}

static void test_urls_that_are_no_urls(void **state)
{
    (void)state;
    is_hidden("mysql:u:S3CRET@h");
    is_hidden("u:S3CRET@h//x:");
    is_hidden("//u:S3CRET@h");
}

static void test_urls_without_a_secret(void **state)
{
    (void)state;
    is_shown("zk://a:2181,b:2181,c:2181/chroot?session=4s");
    is_shown("redis://user@h:6379/0");
    is_shown("redis+sentinel://user@a:26379,b/main/0?sentinel_user=guard");
    is_shown("redlock:redis://user@a:6379,redis://user@b:6379");
    is_shown("redlock:redis://a:1,redis+unix:///run/b.sock?answer=100ms");
    is_shown("postgresql://user@h:5432/d?namespace=a");
    is_shown("sqlite:///home/a:b@c.db");
    is_shown("redlock:sqlite:///a:b@c,redis://h");
    is_shown("memory:");
    is_shown("");
    assert_false(mrt_cli_has_password(NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_password_behind_the_user),
        cmocka_unit_test(test_a_user_or_a_password_with_characters_of_urls),
        cmocka_unit_test(test_a_secret_in_any_member_of_a_list),
        cmocka_unit_test(test_a_secret_in_a_parameter),
        cmocka_unit_test(test_urls_that_are_no_urls),
        cmocka_unit_test(test_urls_without_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
