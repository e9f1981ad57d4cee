/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and numbers of the command line: what parses is in range, and is shown briefly. */
#include "fuzz.h"

#include "cli/frame/cli.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), shown[32];
    mrt_time duration = -1;
    int64_t number = 0;
    if (mrt_cli_duration(text, &duration)) {
        require(duration >= 0 && duration <= INT64_C(100) * 365 * 24 * 3600 * MRT_SECOND);
        require(strspn(text, "0123456789.dhms") == strlen(text));
        mrt_cli_format_duration(duration, shown, sizeof shown);
        require(strlen(shown) > 0 && strlen(shown) < sizeof shown - 1);
    } else {
        require(duration == -1); /* untouched */
    }
    if (mrt_cli_number(text, -5, 1000, &number)) {
        require(number >= -5 && number <= 1000);
        require(strspn(text, "-0123456789") == strlen(text));
    }
    free(text);
    return 0;
}
