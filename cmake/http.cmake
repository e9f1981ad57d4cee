# SPDX-License-Identifier: Apache-2.0
# The web server of `mortise serve`, a module of its own (src/http/http.h), built where
# libmicrohttpd is found; and what it shows, put into the command byte for byte.
pkg_check_modules(MICROHTTPD IMPORTED_TARGET libmicrohttpd>=0.9.73)
option(MORTISE_HTTP "Build the web server of mortise serve" ${MICROHTTPD_FOUND})
if(MORTISE_HTTP)
  if(NOT MICROHTTPD_FOUND)
    message(FATAL_ERROR "the web server needs libmicrohttpd 0.9.73 or newer (libmicrohttpd-dev)")
  endif()
  mortise_sources(http_sources http)
  add_library(mortise_module_http MODULE ${http_sources})
  target_link_libraries(mortise_module_http PRIVATE PkgConfig::MICROHTTPD Threads::Threads)
  mortise_place_module(http)
endif()

set(page_files icon.svg page.css page.html page.js)
list(TRANSFORM page_files PREPEND ${CMAKE_SOURCE_DIR}/src/cli/serve/page/)
set(page_source ${CMAKE_BINARY_DIR}/page_files.c)
add_custom_command(
  OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -D "FILES=${page_files}" -D OUTPUT=${page_source}
          -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${page_files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
  VERBATIM)
add_custom_target(mortise_page_source DEPENDS ${page_source}) # of targets in other folders
