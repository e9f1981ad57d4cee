/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL between two buffers in memory: what came from the peer, and what must be sent to it. So
 * OpenSSL never touches a socket, and wants nothing but more input.
 *
 * No session is resumed, so each connection checks the certificate anew. No passphrase is prompted
 * for: a key that has one is refused. The library's own end at the program's exit is left out,
 * because a client's thread may still be using it then.
 */
#include "tls/tls.h"

#include "mortise.h"
#include "tls/fault.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

struct mrt_tls {
    SSL *ssl;
    BIO *input, *output; /* which belong to it */
    char host[256];
    char fault[MRT_TLS_FAULT_SIZE];
};

/* ------------------------------------------------------------------ contexts */

static int no_passphrase(char *text, int size, int writes, void *context)
{
    (void)text;
    (void)size;
    (void)writes;
    (void)context;
    return -1;
}

static bool use_key(SSL_CTX *context, const char *key)
{
    BIO *bytes = BIO_new_mem_buf(key, -1);
    EVP_PKEY *read = bytes ? PEM_read_bio_PrivateKey(bytes, NULL, no_passphrase, NULL) : NULL;
    bool used = read && SSL_CTX_use_PrivateKey(context, read) == 1;
    EVP_PKEY_free(read);
    BIO_free(bytes);
    return used;
}

/* False: `fault` says why. */
static bool use_files(SSL_CTX *context, const struct mrt_tls_options *options,
                      char fault[MRT_TLS_FAULT_SIZE])
{
    if (options->ca && SSL_CTX_load_verify_locations(context, options->ca, NULL) != 1)
        mrt_tls_file_fault("tls_ca", options->ca, fault);
    else if (options->check && !options->ca && SSL_CTX_set_default_verify_paths(context) != 1)
        mrt_tls_file_fault("the CAs of this system", NULL, fault);
    else if (options->certificate &&
             SSL_CTX_use_certificate_chain_file(context, options->certificate) != 1)
        mrt_tls_file_fault("tls_cert", options->certificate, fault);
    else if (options->certificate && !use_key(context, options->key))
        mrt_tls_file_fault("tls_key", NULL, fault);
    else
        return true;
    return false;
}

static void context_free(struct mrt_tls_context *context)
{
    SSL_CTX_free((SSL_CTX *)context);
}

static struct mrt_tls_context *context_new(const struct mrt_tls_options *options,
                                           char fault[MRT_TLS_FAULT_SIZE])
{
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context) {
        mrt_tls_file_fault("TLS", NULL, fault);
        return NULL;
    }
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(context, options->check ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (use_files(context, options, fault))
        return (struct mrt_tls_context *)context;
    SSL_CTX_free(context);
    return NULL;
}

/* --------------------------------------------------------------- connections */

/* An address is sent as no name, and is looked for among the certificate's addresses. */
static bool expect(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *check = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(check, host) == 1)
        return true;
    ERR_clear_error();
    X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

static void end_connection(struct mrt_tls *tls)
{
    SSL_free(tls->ssl); /* with its buffers */
    free(tls);
}

static struct mrt_tls *begin_connection(struct mrt_tls_context *context, const char *host)
{
    struct mrt_tls *tls = calloc(1, sizeof *tls);
    BIO *input = BIO_new(BIO_s_mem()), *output = BIO_new(BIO_s_mem());
    SSL *ssl = SSL_new((SSL_CTX *)context);
    if (!tls || !input || !output || !ssl || strlen(host) >= sizeof tls->host ||
        !expect(ssl, host)) {
        ERR_clear_error();
        BIO_free(input);
        BIO_free(output);
        SSL_free(ssl);
        free(tls);
        return NULL;
    }
    SSL_set_bio(ssl, input, output);
    SSL_set_connect_state(ssl);
    tls->ssl = ssl;
    tls->input = input;
    tls->output = output;
    memcpy(tls->host, host, strlen(host) + 1);
    return tls;
}

static bool input(struct mrt_tls *tls, const char *bytes, size_t length)
{
    return length <= INT_MAX && BIO_write(tls->input, bytes, (int)length) == (int)length;
}

/* Takes the error of a call that did nothing; false: the connection is of no use. */
static bool goes_on(struct mrt_tls *tls, int result)
{
    int error = SSL_get_error(tls->ssl, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return true;
    if (error != SSL_ERROR_ZERO_RETURN)
        mrt_tls_connection_fault(tls->ssl, tls->host, tls->fault);
    return false;
}

static enum mrt_tls_step shake(struct mrt_tls *tls)
{
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    if (result == 1)
        return MRT_TLS_DONE;
    return goes_on(tls, result) ? MRT_TLS_GOES_ON : MRT_TLS_FAILED;
}

static long read_bytes(struct mrt_tls *tls, char *bytes, size_t size)
{
    size_t got = 0;
    ERR_clear_error();
    int result = SSL_read_ex(tls->ssl, bytes, size, &got);
    if (result == 1)
        return (long)got;
    return goes_on(tls, result) ? 0 : -1;
}

static bool write_bytes(struct mrt_tls *tls, const char *bytes, size_t length)
{
    size_t written = 0;
    ERR_clear_error();
    int result = SSL_write_ex(tls->ssl, bytes, length, &written);
    if (result != 1)
        goes_on(tls, result);
    return result == 1 && written == length;
}

static size_t output(struct mrt_tls *tls, const char **bytes)
{
    char *found = NULL;
    long length = BIO_get_mem_data(tls->output, &found);
    *bytes = found;
    return length > 0 ? (size_t)length : 0;
}

static void sent(struct mrt_tls *tls, size_t length)
{
    char passed[4096];
    while (length > 0) {
        size_t part = length < sizeof passed ? length : sizeof passed;
        int got = BIO_read(tls->output, passed, (int)part);
        if (got <= 0)
            return;
        length -= (size_t)got;
    }
}

static const char *fault(const struct mrt_tls *tls)
{
    return tls->fault;
}

__attribute__((visibility("default"))) const struct mrt_tls_ops *mortise_tls_module(void);

const struct mrt_tls_ops *mortise_tls_module(void)
{
    static const struct mrt_tls_ops ops = {
        .version = MORTISE_VERSION,
        .context_new = context_new,
        .context_free = context_free,
        .begin = begin_connection,
        .end = end_connection,
        .input = input,
        .shake = shake,
        .read = read_bytes,
        .write = write_bytes,
        .output = output,
        .sent = sent,
        .fault = fault,
    };
    return &ops;
}
