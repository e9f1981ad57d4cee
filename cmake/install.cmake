# SPDX-License-Identifier: Apache-2.0
# The files of make install, with those by which other builds find it: mortise.pc and
# mortise-config.cmake.
# Both name the other files relative to themselves, so that an installation can be moved.
include(CMakePackageConfigHelpers)

install(TARGETS mortise mortise_shared mortise_static)
install(FILES include/mortise.h TYPE INCLUDE)
include(${CMAKE_CURRENT_LIST_DIR}/manual.cmake)
install(FILES LICENSE README.md CHANGELOG.md TYPE DOC)

# A dynamic program links libmortise alone. One that links the archive also needs these; they are
# named as flags, because pkg-config wants the packages of Requires.private for either.
set(static_needs "")
if(MORTISE_SQLITE)
  list(APPEND static_needs ${SQLITE_STATIC_LIBRARIES})
endif()
if(MORTISE_REDIS)
  list(APPEND static_needs ${HIREDIS_STATIC_LIBRARIES})
endif()
list(TRANSFORM static_needs PREPEND -l)
if(MORTISE_ZOOKEEPER)
  cmake_path(GET MORTISE_ZOOKEEPER_ARCHIVE PARENT_PATH archive_directory)
  cmake_path(GET MORTISE_ZOOKEEPER_ARCHIVE FILENAME archive_name)
  if(NOT archive_directory IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    list(APPEND static_needs -L${archive_directory})
  endif()
  list(APPEND static_needs -l:${archive_name} -lm)
endif()
list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE loader)
list(APPEND static_needs ${loader} -pthread)
list(REMOVE_DUPLICATES static_needs)
list(JOIN static_needs " " MORTISE_STATIC_NEEDS_FLAGS)
set(MORTISE_STATIC_NEEDS_LIST "${static_needs}")

set(pc_directory ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH MORTISE_PREFIX_FROM_PC ${pc_directory} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "(.*)/$" "\${pcfiledir}/\\1" MORTISE_PC_PREFIX ${MORTISE_PREFIX_FROM_PC})
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr") # the system's own: pkg-config leaves its directories out
  set(MORTISE_PC_PREFIX /usr)
endif()
file(RELATIVE_PATH MORTISE_LIBDIR_FROM_PREFIX ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH MORTISE_INCLUDE_FROM_PREFIX ${CMAKE_INSTALL_PREFIX}
     ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/mortise.pc.in ${CMAKE_BINARY_DIR}/mortise.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mortise.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(config_directory ${CMAKE_INSTALL_LIBDIR}/cmake/mortise)
set(MORTISE_LIBRARY_FILE libmortise.so.${PROJECT_VERSION})
set(MORTISE_SONAME libmortise.so.${MORTISE_SERIES})
configure_package_config_file(cmake/mortise-config.cmake.in ${CMAKE_BINARY_DIR}/mortise-config.cmake
                              INSTALL_DESTINATION ${config_directory}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR
                              NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/mortise-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/mortise-config.cmake
              ${CMAKE_BINARY_DIR}/mortise-config-version.cmake DESTINATION ${config_directory})

# The command makes its own completions, so a cross build has none.
set(MORTISE_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
    CACHE STRING "Where zsh looks for completions")
if(NOT CMAKE_CROSSCOMPILING)
  set(completions ${CMAKE_BINARY_DIR}/completions)
  set(commands "")
  foreach(pair bash:mortise zsh:_mortise fish:mortise.fish)
    string(REGEX MATCH "^[^:]+" shell ${pair})
    string(REGEX MATCH "[^:]+$" file ${pair})
    list(APPEND commands COMMAND mortise completion ${shell} >${completions}/${file})
  endforeach()
  add_custom_command(TARGET mortise POST_BUILD
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${completions} ${commands})
  install(FILES ${completions}/mortise
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${completions}/_mortise DESTINATION ${MORTISE_ZSH_COMPLETIONS})
  install(FILES ${completions}/mortise.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
