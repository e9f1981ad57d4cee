# SPDX-License-Identifier: Apache-2.0
# The manual, made by tools/manual in build/man as it is installed. Without Python the pages of man/
# are installed as they are: no links of the names that share a page, and no section 3.
find_package(Python3 COMPONENTS Interpreter)
file(GLOB manual_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.[1-9])
if(Python3_Interpreter_FOUND)
  file(GLOB manual_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/made
                     COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/man
                     COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/manual pages
                             ${CMAKE_BINARY_DIR}/man
                     COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/man/made
                     DEPENDS ${manual_sources} ${CMAKE_SOURCE_DIR}/tools/manual
                             ${CMAKE_SOURCE_DIR}/include/mortise.h
                     COMMENT "Making the manual" VERBATIM)
  add_custom_target(mortise_manual ALL DEPENDS ${CMAKE_BINARY_DIR}/man/made)
  add_dependencies(mortise mortise_manual) # make install installs what it builds before
  install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}
          FILES_MATCHING PATTERN "*.[1-9]")
else()
  message(STATUS "Python is not installed: the manual lacks section 3 and links")
  foreach(page ${manual_pages})
    cmake_path(GET page EXTENSION LAST_ONLY section)
    string(SUBSTRING ${section} 1 1 section)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
endif()
