# SPDX-License-Identifier: Apache-2.0
# make uninstall: removes what the last make install laid down, by the list that CMake wrote, and
# the directories that are mortise's own.
#
#   cmake -D MANIFEST=build/install_manifest.txt -P cmake/uninstall.cmake      heeds DESTDIR
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} is missing: nothing was installed from this build")
endif()
file(STRINGS "${MANIFEST}" files)
foreach(file IN LISTS files)
  set(path "$ENV{DESTDIR}${file}")
  if(EXISTS "${path}" OR IS_SYMLINK "${path}")
    message(STATUS "removing ${path}")
    file(REMOVE "${path}")
  endif()
  cmake_path(GET path PARENT_PATH directory)
  cmake_path(GET directory FILENAME name)
  file(GLOB left LIST_DIRECTORIES true "${directory}/*")
  if(name MATCHES "^mortise" AND NOT left)
    file(REMOVE_RECURSE "${directory}")
  endif()
endforeach()
