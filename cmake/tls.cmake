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
  set_target_properties(mortise_module_tls PROPERTIES PREFIX "" OUTPUT_NAME mortise-tls)
  target_link_libraries(mortise_module_tls PRIVATE PkgConfig::OPENSSL)
  if(NOT MORTISE_SANITIZE)
    target_link_options(mortise_module_tls PRIVATE -Wl,-z,defs)
  endif()
  add_dependencies(mortise_modules mortise_module_tls)
  install(TARGETS mortise_module_tls DESTINATION ${MORTISE_MODULES_DIRECTORY})
endif()
