/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to the page and its data: serve.h says what each function promises.
 *
 * A page elsewhere on the web can make its reader's browser send us requests, and by a name of its
 * own that leads to us (DNS rebinding) even read the answer. Browsers say which host they mean and
 * which page sends the request, so both are checked. Against other programs only the token
 * protects.
 */
#include "cli/serve/serve.h"

#include "base/id.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------- token */

static int take_token(struct mrt_serve *serve, const char *text, const char *origin)
{
    size_t length = strlen(text);
    if (length < MRT_SERVE_TOKEN_MIN || length > MRT_SERVE_TOKEN_MAX)
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s: a token has %d to %d characters", origin,
                            MRT_SERVE_TOKEN_MIN, MRT_SERVE_TOKEN_MAX);
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            return mrt_cli_fail(MRT_EXIT_CONFIG, "%s: a token is printable ASCII without spaces",
                                origin);
    memcpy(serve->token, text, length + 1);
    return 0;
}

static int fail_file(const char *path)
{
    int code = errno == EACCES ? MRT_EXIT_DENIED : MRT_EXIT_CONFIG;
    return mrt_cli_fail(code, "%s: %s", path, strerror(errno));
}

static int read_token_file(struct mrt_serve *serve, const char *path)
{
    char text[MRT_SERVE_TOKEN_MAX + 3]; /* room to notice one too many */
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0)
        return fail_file(path);
    ssize_t got = S_ISREG(status.st_mode) ? read(fd, text, sizeof text - 1) : 0;
    int error = errno;
    close(fd);
    errno = error;
    if (got < 0)
        return fail_file(path);
    if (!S_ISREG(status.st_mode))
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s is not a plain file", path);
    if (status.st_mode & (S_IRWXG | S_IRWXO) || (status.st_uid != geteuid() && status.st_uid != 0))
        return mrt_cli_fail(MRT_EXIT_CONFIG, "%s: others may read it; chmod 600", path);
    text[got] = '\0';
    if (got > 0 && text[got - 1] == '\n')
        text[got - 1] = '\0';
    return take_token(serve, text, path);
}

int mrt_serve_read_token(struct mrt_serve *serve, const char *path)
{
    const char *variable = secure_getenv("MORTISE_SERVE_TOKEN");
    if (path)
        return read_token_file(serve, path);
    return variable ? take_token(serve, variable, "MORTISE_SERVE_TOKEN") : 0;
}

bool mrt_serve_make_token(struct mrt_serve *serve)
{
    struct mrt_id id;
    serve->is_token_made = mrt_id_random(&id);
    if (serve->is_token_made)
        mrt_id_format(id, serve->token);
    return serve->is_token_made;
}

bool mrt_serve_has_token(const struct mrt_serve *serve, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *given = authorization + sizeof scheme - 1;
    size_t length = strlen(given), wanted = strlen(serve->token);
    unsigned difference = length != wanted || wanted == 0;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)given[i] ^ (unsigned char)serve->token[i % (wanted + 1)];
    return difference == 0;
}

/* --------------------------------------------------------------- listening */

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    const struct sockaddr_in *four = (const void *)address;
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

bool mrt_serve_parse_address(const char *text, struct mrt_serve_address *address)
{
    char host[64];
    int64_t port;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    if (length == 0 || length >= sizeof host || !mrt_cli_number(colon + 1, 0, 65535, &port))
        return false;
    memcpy(host, text + brackets, length - 2 * (size_t)brackets);
    host[length - 2 * (size_t)brackets] = '\0';
    if (brackets != (strchr(host, ':') != NULL))
        return false;
    const char *numeric = strcasecmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (getaddrinfo(numeric, colon + 1, &hints, &found) != 0)
        return false;
    memcpy(&address->address, found->ai_addr, found->ai_addrlen);
    address->size = found->ai_addrlen;
    address->loopback = is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return true;
}

static void format_url(int listener, char url[80])
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "", port[8] = "";
    getsockname(listener, (struct sockaddr *)&address, &size);
    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    bool six = address.ss_family == AF_INET6;
    snprintf(url, 80, "http://%s%s%s:%s/", six ? "[" : "", host, six ? "]" : "", port);
}

int mrt_serve_listen(const struct mrt_serve_address *address, const char *text, int *listener,
                     char url[80])
{
    const int on = 1;
    int fd = socket(address->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (address->address.ss_family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address->address, address->size) < 0 ||
        listen(fd, SOMAXCONN) < 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return mrt_cli_fail(error == EACCES ? MRT_EXIT_DENIED : MRT_EXIT_FAILED,
                            "cannot listen on %s: %s", text, strerror(error));
    }
    *listener = fd;
    format_url(fd, url);
    return 0;
}

/* -------------------------------------------------------------- who may ask */

static bool is_port(const char *text)
{
    return *text == '\0' || (*text == ':' && strspn(text + 1, "0123456789") == strlen(text + 1));
}

bool mrt_serve_is_our_host(const struct mrt_serve *serve, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    char name[256];
    if (!host)
        return false;
    bool brackets = host[0] == '[';
    size_t length = strcspn(host + brackets, brackets ? "]" : ":");
    if (length >= sizeof name)
        return false;
    memcpy(name, host + brackets, length);
    name[length] = '\0';
    const char *rest = host + brackets + length;
    if (brackets)
        return *rest == ']' && is_port(rest + 1) && inet_pton(AF_INET6, name, address) == 1;
    if (!is_port(rest))
        return false;
    if (strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1)
        return true;
    for (size_t i = 0; i < serve->host_count; i++)
        if (strcasecmp(name, serve->hosts[i]) == 0)
            return true;
    return false;
}

bool mrt_serve_is_our_page(const struct mrt_http_request *request)
{
    static const char *const schemes[] = {"http://", "https://"};
    if (request->site && strcmp(request->site, "same-origin") != 0 &&
        strcmp(request->site, "none") != 0)
        return false;
    if (!request->origin)
        return true;
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(schemes[i]);
        if (strncasecmp(request->origin, schemes[i], length) == 0 &&
            strcasecmp(request->origin + length, request->host) == 0)
            return true;
    }
    return false;
}
