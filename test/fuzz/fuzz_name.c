/* SPDX-License-Identifier: Apache-2.0 */
/* Names and labels: only clean UTF-8 of the right length passes; ids go both ways. */
#include "fuzz.h"

#include "base/id.h"
#include "base/name.h"
#include "mortise.h"

#include <string.h>

/* Each code point by arithmetic alone, another way than the reader under test. */
static bool is_clean(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        uint8_t c = text[i];
        size_t bytes = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
        if (bytes == 0 || i + bytes > length)
            return false;
        uint32_t point = bytes == 1 ? c : c & (0xffu >> (bytes + 1));
        for (size_t j = 1; j < bytes; j++) {
            if (text[i + j] >> 6 != 2)
                return false;
            point = point << 6 | (text[i + j] & 0x3fu);
        }
        bool surrogate = point >= 0xd800 && point < 0xe000;
        bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
        if (point < least[bytes] || point > 0x10ffff || surrogate || control)
            return false;
        i += bytes;
    }
    return true;
}

static void check_id(const char *text)
{
    struct mrt_id id;
    char again[MRT_ID_TEXT_SIZE];
    if (!mrt_id_parse(text, &id))
        return;
    mrt_id_format(id, again);
    require(strcmp(again, text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    size_t length = strlen(text);
    bool clean = is_clean((const uint8_t *)text, length);
    require(mrt_text_is_clean(text, size) == is_clean(data, size));
    bool name = clean && length > 0 && length <= MORTISE_NAME_MAX;
    require(mrt_name_check(text) == (name ? MORTISE_OK : MORTISE_ENAME));
    bool label = clean && length <= MORTISE_LABEL_MAX;
    require(mrt_label_check(text) == (label ? MORTISE_OK : MORTISE_EINVALID));
    check_id(text);
    free(text);
    return 0;
}
