# SPDX-License-Identifier: Apache-2.0
# Which files are in which part of the library. The CMakeLists.txt of each folder in src names them:
#
#   mortise_files(PART file ...)          these files of this folder belong to PART
#   mortise_sources(OUTPUT PART ...)      all files of these parts, as absolute paths
#
# Parts become object libraries in the CMakeLists.txt of the root.
function(mortise_files part)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY MORTISE_PART_${part} ${ARGN})
endfunction()

function(mortise_sources output)
  set(found "")
  foreach(part ${ARGN})
    get_property(files GLOBAL PROPERTY MORTISE_PART_${part})
    list(APPEND found ${files})
  endforeach()
  set(${output} ${found} PARENT_SCOPE)
endfunction()
