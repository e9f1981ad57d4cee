/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of JSON: json.h says what each function promises. */
#include "cli/frame/json.h"

#include "base/name.h"

#include <string.h>
#include <time.h>

void mrt_json_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        size_t length = 1, left = strnlen(text, 4);
        while (byte >= 0x80 && length <= left && !mrt_text_is_clean(text, length))
            length++;
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            fprintf(out, "\\u%04x", byte);
        else if (byte < 0x80)
            putc(byte, out);
        else if (length > left)
            fprintf(out, "\\ufffd");
        else {
            fprintf(out, "%.*s", (int)length, text);
            text += length - 1;
        }
    }
    putc('"', out);
}

void mrt_json_time(FILE *out, int64_t wall_ms)
{
    char text[32];
    struct tm utc;
    time_t seconds = (time_t)(wall_ms / 1000);
    if (wall_ms == 0) {
        fprintf(out, "null");
        return;
    }
    if (!gmtime_r(&seconds, &utc) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        text[0] = '\0';
    fprintf(out, "\"%s.%03dZ\"", text, (int)(wall_ms % 1000));
}
