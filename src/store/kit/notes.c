/* SPDX-License-Identifier: Apache-2.0 */
/* See notes.h. */
#include "store/kit/notes.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

void mrt_notes_init(struct mrt_notes *notes, const char *from,
                    const struct mrt_store_options *options)
{
    *notes =
        (struct mrt_notes){.from = from, .log = options->log, .argument = options->log_argument};
}

void mrt_note(struct mrt_notes *notes, unsigned which, const char *format, ...)
{
    va_list arguments;
    MRT_ASSERT(which < MRT_NOTES_MAX);
    if (notes->each[which].taken)
        return;
    char *text = notes->each[which].text;
    const size_t size = sizeof notes->each[which].text;
    int prefix = snprintf(text, size, "%s: ", notes->from);
    va_start(arguments, format);
    vsnprintf(text + prefix, size - (size_t)prefix, format, arguments);
    va_end(arguments);
    notes->each[which].taken = true;
}

void mrt_notes_say(struct mrt_notes *notes)
{
    for (unsigned i = 0; i < MRT_NOTES_MAX; i++) {
        char *text = notes->each[i].text;
        if (*text && notes->log)
            notes->log(notes->argument, text);
        *text = '\0';
    }
}
