/* SPDX-License-Identifier: Apache-2.0 */
/* Store URIs: what is taken apart lies in the buffer, and parses the same again. */
#include "fuzz.h"

#include "base/parameter.h"
#include "base/uri.h"
#include "mortise.h"

#include <string.h>

static void check_part(const struct mrt_uri *uri, const char *part)
{
    require(part >= uri->text && part < uri->text + sizeof uri->text);
    require(memchr(part, '\0', (size_t)(uri->text + sizeof uri->text - part)) != NULL);
}

static void check_parsed(struct mrt_uri *uri)
{
    static const struct mrt_parameter none[] = {{.key = NULL}};
    static const char *const common[] = {MRT_URI_COMMON};
    size_t known = 0;
    check_part(uri, uri->scheme);
    check_part(uri, uri->rest);
    require(uri->count <= MRT_URI_PARAMETERS_MAX);
    for (size_t i = 0; i < uri->count; i++) {
        check_part(uri, uri->parameters[i].key);
        check_part(uri, uri->parameters[i].value);
        require(mrt_uri_parameter(uri, uri->parameters[i].key) != NULL);
        for (size_t j = 0; j < sizeof common / sizeof common[0]; j++)
            known += strcmp(uri->parameters[i].key, common[j]) == 0;
    }
    require((mrt_parameters_read(uri, none, NULL) == MORTISE_OK) == (uri->count == known));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mrt_uri uri;
    char *text = fuzz_text(data, size);
    int error = mrt_uri_parse(text, &uri);
    require(error == MORTISE_OK || error == MORTISE_EURI);
    if (error == MORTISE_OK)
        check_parsed(&uri);
    size_t before = strlen(text);
    if (mrt_uri_decode(text) == 0)
        require(strlen(text) <= before);
    free(text);
    return 0;
}
