# SPDX-License-Identifier: Apache-2.0
# mortise_command_needs: what the command is linked with. SQLite's archive if it is there
# and links, else the shared library.
option(MORTISE_STATIC_NEEDS "Link the command with SQLite's archive" ON)
add_library(mortise_command_needs INTERFACE)

if(MORTISE_SQLITE AND MORTISE_STATIC_NEEDS AND NOT DEFINED MORTISE_STATIC_LINKS)
  find_library(SQLITE_ARCHIVE NAMES libsqlite3.a HINTS ${SQLITE_LIBRARY_DIRS} ${SQLITE_LIBDIR})
  if(SQLITE_ARCHIVE)
    include(CheckCSourceCompiles)
    include(CMakePushCheckState)
    cmake_push_check_state(RESET)
    set(CMAKE_REQUIRED_LIBRARIES ${SQLITE_ARCHIVE} Threads::Threads m ${CMAKE_DL_LIBS})
    check_c_source_compiles("int sqlite3_close(void *);
                             int main(void) { return sqlite3_close(0); }" MORTISE_STATIC_LINKS)
    cmake_pop_check_state()
  endif()
endif()

if(MORTISE_SQLITE AND MORTISE_STATIC_NEEDS AND MORTISE_STATIC_LINKS)
  target_link_libraries(mortise_command_needs INTERFACE ${SQLITE_ARCHIVE} Threads::Threads m
                        ${CMAKE_DL_LIBS})
  target_include_directories(mortise_command_needs INTERFACE ${SQLITE_INCLUDE_DIRS})
else()
  target_link_libraries(mortise_command_needs INTERFACE mortise_needs)
endif()
