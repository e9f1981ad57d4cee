/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: what is taken for one has its form, and only the right one lets in. */
#include "fuzz.h"

#include "cli/keeper/keeper.h"
#include "cli/serve/serve.h"

#include <string.h>

static void check_keeper(const char *text)
{
    if (!mrt_keeper_is_token(text))
        return;
    require(strlen(text) < MORTISE_TOKEN_SIZE);
    require(strchr(text, '-') != NULL);
}

static void check_serve(const char *text, size_t size)
{
    static struct mrt_serve serve;
    static const char right[] = "Bearer 0123456789abcdefghij";
    snprintf(serve.token, sizeof serve.token, "%s", right + 7);
    bool same = size == sizeof right - 1 && memcmp(text + 7, right + 7, size - 7) == 0;
    require(!mrt_serve_has_token(&serve, text) || same);
    serve.token[0] = '\0'; /* none: nobody has it */
    require(!mrt_serve_has_token(&serve, text));
}

/* No ticket was detached, so no text adopts one. */
static void check_adopted(const char *text)
{
    static mortise_lock *lock;
    const mortise_client_options options = {.size = sizeof options, .flags = MORTISE_FOREIGN_LOOP};
    mortise_client *client;
    mortise_hold hold;
    if (!lock) {
        require(mortise_open("memory:tokens", &options, &client) == MORTISE_OK);
        require(mortise_mutex_new(client, "a", NULL, &lock) == MORTISE_OK);
    }
    int error = mortise_adopt(lock, text, &hold);
    require(error == MORTISE_EINVALID || error == MORTISE_ENOTHELD);
}

static void check_address(const char *text)
{
    struct mrt_serve_address address;
    static const struct mrt_serve serve = {.hosts = {"lock.example"}, .host_count = 1};
    if (mrt_serve_parse_address(text, &address))
        require(address.size > 0 && address.size <= sizeof address.address);
    if (mrt_serve_is_our_host(&serve, text))
        require(strpbrk(text, "/@ ") == NULL || *text == '[');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    check_keeper(text);
    check_serve(text, strlen(text));
    check_address(text);
    check_adopted(text);
    free(text);
    return 0;
}
