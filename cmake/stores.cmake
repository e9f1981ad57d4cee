# SPDX-License-Identifier: Apache-2.0
# The table of stores (src/store/stores.h), of the rows that the families' CMakeLists.txt give:
#
#   mortise_store(NAME "Redis (redis)" SCHEMES redis rediss OPS mrt_redis_store BUILT ON)
#   mortise_store(NAME "PostgreSQL" SCHEMES postgresql postgres MODULE mortise-postgres.so)
#
# A store that is not BUILT stays known by its schemes, and says so.
function(mortise_store)
  cmake_parse_arguments(PARSE_ARGV 0 store "" "NAME;OPS;BUILT;MODULE" "SCHEMES")
  set(ops NULL)
  set(module NULL)
  if(store_MODULE)
    set(module "\"${store_MODULE}\"")
  elseif(store_BUILT)
    set(ops "&${store_OPS}")
    set_property(GLOBAL APPEND_STRING PROPERTY MORTISE_STORE_OPS
                 "extern const struct mrt_store_ops ${store_OPS};\n")
  endif()
  foreach(scheme ${store_SCHEMES})
    set_property(GLOBAL APPEND_STRING PROPERTY MORTISE_STORE_ROWS
                 "    {\"${scheme}\", \"${store_NAME}\", ${ops}, ${module}},\n")
  endforeach()
endfunction()

# Writes the table; called when all families have been read.
function(mortise_write_stores)
  set(output ${CMAKE_BINARY_DIR}/store_rows.c)
  get_property(ops GLOBAL PROPERTY MORTISE_STORE_OPS)
  get_property(rows GLOBAL PROPERTY MORTISE_STORE_ROWS)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
       "/* Made by cmake/stores.cmake. */\n#include \"store/stores.h\"\n\n${ops}
const struct mrt_store_row mrt_store_rows[] = {\n${rows}    {NULL, NULL, NULL, NULL}};\n")
  set_property(GLOBAL APPEND PROPERTY MORTISE_PART_store ${output})
endfunction()
