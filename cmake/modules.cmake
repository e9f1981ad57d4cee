# SPDX-License-Identifier: Apache-2.0
# Stores in modules (src/store/module.h): mortise-NAME.so, built where its client library is found.
# In a directory of this SONAME's own, as they go with one version of the library only.
set(MORTISE_SERIES ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(MORTISE_MODULES_DIRECTORY ${CMAKE_INSTALL_LIBDIR}/mortise-${MORTISE_SERIES})
set(MORTISE_MODULES_INSTALLED ${CMAKE_INSTALL_FULL_LIBDIR}/mortise-${MORTISE_SERIES})
file(RELATIVE_PATH MORTISE_MODULES_FROM_COMMAND ${CMAKE_INSTALL_FULL_BINDIR}
     ${MORTISE_MODULES_INSTALLED})
set_property(SOURCE ${CMAKE_SOURCE_DIR}/src/store/module.c PROPERTY COMPILE_DEFINITIONS
             MORTISE_MODULES_INSTALLED="${MORTISE_MODULES_INSTALLED}"
             MORTISE_MODULES_FROM_LIBRARY="/mortise-${MORTISE_SERIES}"
             MORTISE_MODULES_FROM_COMMAND="/${MORTISE_MODULES_FROM_COMMAND}")

# The sources of base/ and of the stores' kit that a module has: all but error.c, in whose place
# is module_glue.c.
mortise_sources(module_base base kit module_glue)
list(REMOVE_ITEM module_base ${CMAKE_SOURCE_DIR}/src/base/error.c
     ${CMAKE_SOURCE_DIR}/src/base/heap.c)
add_library(mortise_module_common OBJECT EXCLUDE_FROM_ALL ${module_base}
            ${CMAKE_SOURCE_DIR}/src/store/kit/resolver.c
            ${CMAKE_SOURCE_DIR}/src/core/rule.c)
target_compile_options(mortise_module_common PRIVATE ${reach_compile})

# The simulator links the stores' objects too, and a copy with mutants.
function(mortise_module_part name)
  mortise_sources(sources ${name})
  foreach(variant "" _defects)
    add_library(mortise_store_${name}${variant} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(mortise_store_${name}${variant} PRIVATE ${ARGN})
    target_compile_options(mortise_store_${name}${variant} PRIVATE ${reach_compile})
  endforeach()
  target_compile_definitions(mortise_store_${name}_defects PRIVATE MRT_DEFECTS)
endfunction()
mortise_module_part(sql)

add_custom_target(mortise_modules)
# The name, the place and the installation of the module mortise_module_NAME.
function(mortise_place_module name)
  set_target_properties(mortise_module_${name} PROPERTIES PREFIX "" OUTPUT_NAME mortise-${name})
  if(NOT MORTISE_SANITIZE)
    target_link_options(mortise_module_${name} PRIVATE -Wl,-z,defs)
  endif()
  add_dependencies(mortise_modules mortise_module_${name})
  install(TARGETS mortise_module_${name} DESTINATION ${MORTISE_MODULES_DIRECTORY})
endfunction()

function(mortise_module name library) # further arguments: object libraries it has too
  mortise_module_part(${name} ${library})
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE more)
  add_library(mortise_module_${name} MODULE $<TARGET_OBJECTS:mortise_store_${name}> ${more}
              $<TARGET_OBJECTS:mortise_module_common>)
  set_property(TARGET mortise_module_${name} PROPERTY
               LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/module.map)
  target_link_libraries(mortise_module_${name} PRIVATE ${library} Threads::Threads)
  target_link_options(mortise_module_${name} PRIVATE
                      -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/module.map)
  mortise_place_module(${name})
endfunction()

pkg_check_modules(LIBPQ IMPORTED_TARGET libpq>=14)
option(MORTISE_POSTGRES "Build the PostgreSQL store's module" ${LIBPQ_FOUND})
if(MORTISE_POSTGRES)
  if(NOT LIBPQ_FOUND)
    message(FATAL_ERROR "the PostgreSQL store needs libpq 14 or newer (libpq-dev)")
  endif()
  mortise_module(postgres PkgConfig::LIBPQ mortise_store_sql)
endif()

pkg_check_modules(LIBMARIADB IMPORTED_TARGET libmariadb>=3.1)
option(MORTISE_MARIADB "Build the MariaDB store's module" ${LIBMARIADB_FOUND})
if(MORTISE_MARIADB)
  if(NOT LIBMARIADB_FOUND)
    message(FATAL_ERROR "the MariaDB store needs libmariadb 3.1 or newer (libmariadb-dev)")
  endif()
  mortise_module(mariadb PkgConfig::LIBMARIADB mortise_store_sql)
endif()

# The stores whose servers answer HTTP requests in JSON.
pkg_check_modules(ETCD IMPORTED_TARGET libcurl>=7.87 json-c>=0.15)
option(MORTISE_ETCD "Build the etcd store's module" ${ETCD_FOUND})
option(MORTISE_KUBERNETES "Build the Kubernetes store's module" ${ETCD_FOUND})
if(MORTISE_ETCD OR MORTISE_KUBERNETES)
  if(NOT ETCD_FOUND)
    message(FATAL_ERROR "the etcd and the Kubernetes store need libcurl 7.87 and json-c 0.15 or "
                        "newer (libcurl4-openssl-dev, libjson-c-dev)")
  endif()
  mortise_module_part(rest PkgConfig::ETCD)
endif()
foreach(name etcd kubernetes)
  string(TOUPPER ${name} upper)
  if(MORTISE_${upper})
    mortise_module(${name} PkgConfig::ETCD mortise_store_rest)
    mortise_sources(entry ${name}_entry)
    target_sources(mortise_module_${name} PRIVATE ${entry})
  endif()
endforeach()

pkg_check_modules(NATS IMPORTED_TARGET libnats>=3.3 json-c>=0.15)
option(MORTISE_NATS "Build the NATS store's module" ${NATS_FOUND})
if(MORTISE_NATS)
  if(NOT NATS_FOUND)
    message(FATAL_ERROR "the NATS store needs libnats 3.3 and json-c 0.15 or newer "
                        "(libnats-dev, libjson-c-dev)")
  endif()
  mortise_module(nats PkgConfig::NATS)
  mortise_sources(nats_entry nats_entry)
  target_sources(mortise_module_nats PRIVATE ${nats_entry})
endif()
