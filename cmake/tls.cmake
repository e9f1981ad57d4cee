# SPDX-License-Identifier: Apache-2.0
# TLS for stores whose client library brings none, a module of its own (src/tls/tls.h), built where
# OpenSSL is found.
pkg_check_modules(OPENSSL IMPORTED_TARGET openssl>=1.1.1)
option(MORTISE_TLS "Build TLS for the Redis store" ${OPENSSL_FOUND})
if(MORTISE_TLS)
  if(NOT OPENSSL_FOUND)
    message(FATAL_ERROR "TLS needs OpenSSL 1.1.1 or newer (libssl-dev)")
  endif()
  mortise_sources(tls_sources tls)
  add_library(mortise_module_tls MODULE ${tls_sources})
  target_link_libraries(mortise_module_tls PRIVATE PkgConfig::OPENSSL)
  mortise_place_module(tls)
endif()
