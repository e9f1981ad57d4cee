# SPDX-License-Identifier: Apache-2.0
# The ZooKeeper store: Apache's single-threaded C client, from its archive and with its
# names hidden, because its two flavours export the same ones and a program that uses the
# other would capture ours. Sets MORTISE_ZOOKEEPER_ARCHIVE and mortise_zookeeper_needs.
find_library(MORTISE_ZOOKEEPER_ARCHIVE NAMES libzookeeper_st.a)
find_path(MORTISE_ZOOKEEPER_INCLUDE zookeeper/zookeeper.h)
set(found OFF)
if(MORTISE_ZOOKEEPER_ARCHIVE AND MORTISE_ZOOKEEPER_INCLUDE)
  set(found ON)
endif()
option(MORTISE_ZOOKEEPER "Build the ZooKeeper store" ${found})
if(MORTISE_ZOOKEEPER AND NOT found)
  message(FATAL_ERROR "the ZooKeeper store needs libzookeeper_st.a (libzookeeper-st-dev)")
endif()
add_library(mortise_zookeeper_needs INTERFACE)
if(MORTISE_ZOOKEEPER)
  add_compile_definitions(MORTISE_ZOOKEEPER)
  target_include_directories(mortise_zookeeper_needs SYSTEM INTERFACE
                             ${MORTISE_ZOOKEEPER_INCLUDE})
  target_link_libraries(mortise_zookeeper_needs INTERFACE ${MORTISE_ZOOKEEPER_ARCHIVE} m)
  target_link_options(mortise_zookeeper_needs INTERFACE
                      LINKER:--exclude-libs,libzookeeper_st.a)
endif()
