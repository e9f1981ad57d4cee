/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of OpenSSL in words: which check failed, and which parameter bears on it. An error that is
 * in no table is told as OpenSSL has it. No text of the peer's is repeated.
 */
#include "tls/fault.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

#define UNKNOWN_CA "its certificate is by a CA that is not known (tls_ca= names a file of CAs)"
#define REFUSES "the server refuses the client's certificate: "

static const struct {
    long code;
    const char *text;
} checks[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "its certificate has expired"},
    {X509_V_ERR_CERT_NOT_YET_VALID, "its certificate is not valid yet"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, UNKNOWN_CA},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, UNKNOWN_CA},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, UNKNOWN_CA},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, UNKNOWN_CA},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, UNKNOWN_CA},
};

static const struct {
    int reason;
    const char *text;
} reasons[] = {
    {SSL_R_WRONG_VERSION_NUMBER, "the server does not speak TLS at this port"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "the server offers no TLS 1.2 or newer"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the server wants another version of TLS"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED,
     "the server wants a client's certificate (tls_cert=, tls_key=)"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "the server ends the handshake: it may want a client's certificate (tls_cert=, tls_key=)"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, REFUSES "by a CA that it does not know"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, REFUSES "expired"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, REFUSES "revoked"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, REFUSES "not acceptable"},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, REFUSES "malformed"},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, REFUSES "access denied"},
    {SSL_R_UNEXPECTED_EOF_WHILE_READING, ""},
};

static void write_reason(unsigned long error, char fault[MRT_TLS_FAULT_SIZE])
{
    const char *text = ERR_reason_error_string(error);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL)
        for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
            if (reasons[i].reason == ERR_GET_REASON(error))
                text = reasons[i].text;
    snprintf(fault, MRT_TLS_FAULT_SIZE, "%s%s",
             text && !*text ? "" : "TLS: ", text ? text : "failed");
}

static void write_check(long check, const char *host, char fault[MRT_TLS_FAULT_SIZE])
{
    const char *text = X509_verify_cert_error_string(check);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i].code == check)
            text = checks[i].text;
    if (check == X509_V_ERR_HOSTNAME_MISMATCH || check == X509_V_ERR_IP_ADDRESS_MISMATCH)
        snprintf(fault, MRT_TLS_FAULT_SIZE, "TLS: its certificate is not of %.100s", host);
    else
        snprintf(fault, MRT_TLS_FAULT_SIZE, "TLS: %s", text);
}

void mrt_tls_connection_fault(const SSL *ssl, const char *host, char fault[MRT_TLS_FAULT_SIZE])
{
    unsigned long error = ERR_peek_error();
    long check = SSL_get_verify_result(ssl);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
        ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        write_check(check, host, fault);
    else if (error)
        write_reason(error, fault);
    ERR_clear_error();
}

void mrt_tls_file_fault(const char *what, const char *path, char fault[MRT_TLS_FAULT_SIZE])
{
    unsigned long error = ERR_peek_error(), last = ERR_peek_last_error();
    const char *text = ERR_reason_error_string(last);
    if (ERR_GET_LIB(error) == ERR_LIB_SYS)
        text = strerror(ERR_GET_REASON(error));
    else if (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE)
        text = "no PEM";
    else if (ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_BAD_PASSWORD_READ)
        text = "it has a passphrase, which nobody is prompted for";
    else if (ERR_GET_LIB(last) == ERR_LIB_X509 &&
             ERR_GET_REASON(last) == X509_R_KEY_VALUES_MISMATCH)
        text = "it is not the key of tls_cert";
    snprintf(fault, MRT_TLS_FAULT_SIZE, "%s%s%.100s: %s", what, path ? "=" : "", path ? path : "",
             text ? text : "failed");
    ERR_clear_error();
}
