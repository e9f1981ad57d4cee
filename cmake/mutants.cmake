# SPDX-License-Identifier: Apache-2.0
# Mutants (test/mutants/README.md): the object libraries with seeded defects are compiled from copies
# of those sources that have any.
find_program(PYTHON3 python3)
file(GLOB mutant_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/test/mutants/*.mutant)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutant_files})
set(mutants_apply ${CMAKE_SOURCE_DIR}/test/mutants/apply)
set(mutants_header ${CMAKE_BINARY_DIR}/mutants/mutants.h)
set(mutated_paths "")
foreach(file ${mutant_files})
  file(STRINGS ${file} lines REGEX "^file: ")
  list(TRANSFORM lines REPLACE "^file: " "")
  list(APPEND mutated_paths ${lines})
endforeach()
list(REMOVE_DUPLICATES mutated_paths)

add_custom_command(OUTPUT ${mutants_header}
                   COMMAND ${mutants_apply} --header ${mutants_header} ${mutant_files}
                   DEPENDS ${mutants_apply} ${mutant_files} VERBATIM)
set(mutants_made ${mutants_header})
foreach(path ${mutated_paths})
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/mutants/${path}
                     COMMAND ${mutants_apply} --source ${path} ${CMAKE_BINARY_DIR}/mutants/${path}
                             ${mutant_files}
                     DEPENDS ${mutants_apply} ${mutant_files} ${CMAKE_SOURCE_DIR}/${path} VERBATIM)
  list(APPEND mutants_made ${CMAKE_BINARY_DIR}/mutants/${path})
endforeach()
add_custom_target(mortise_mutants DEPENDS ${mutants_made})

# Sources of this target that have mutants become their copies.
function(mortise_mutate target)
  get_target_property(sources ${target} SOURCES)
  foreach(path ${mutated_paths})
    list(TRANSFORM sources REPLACE "^${CMAKE_SOURCE_DIR}/${path}$"
         "${CMAKE_BINARY_DIR}/mutants/${path}")
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/mutants)
  add_dependencies(${target} mortise_mutants)
endfunction()
