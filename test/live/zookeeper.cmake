# SPDX-License-Identifier: Apache-2.0
# The ZooKeeper store: its rules, and on a real server where one is installed.
if(NOT MORTISE_ZOOKEEPER)
  return()
endif()
mortise_suite(NAME zookeeper_rules SOURCES zookeeper_rules.c LABELS store)

find_program(JAVA java)
if(NOT JAVA OR NOT EXISTS /usr/share/java/zookeeper.jar)
  message(STATUS "no ZooKeeper server installed: its live tests are left out")
  return()
endif()
set(zk_servers ${CMAKE_SOURCE_DIR}/tools/servers)
mortise_suite(NAME zookeeper_faults SOURCES zookeeper_faults.c zookeeper_place.c zk_proxy.c proxy.c
              LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_faults PRIVATE ZK_SERVERS="${zk_servers}")
mortise_suite(NAME zookeeper_ensemble SOURCES zookeeper_ensemble.c zookeeper_place.c
              LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_ensemble PRIVATE ZK_SERVERS="${zk_servers}")
mortise_suite(NAME zookeeper_still SOURCES zookeeper_still.c stall.c zookeeper_place.c
              LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_still PRIVATE ZK_SERVERS="${zk_servers}")
target_link_options(test_zookeeper_still PRIVATE LINKER:--wrap=zookeeper_close)
mortise_suite(NAME zookeeper_watches SOURCES zookeeper_watches.c zookeeper_place.c zk_proxy.c proxy.c
              LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_watches PRIVATE ZK_SERVERS="${zk_servers}")
mortise_suite(NAME zookeeper_herd SOURCES zookeeper_herd.c zookeeper_place.c zk_proxy.c proxy.c
              LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_herd PRIVATE ZK_SERVERS="${zk_servers}")
mortise_suite(NAME zookeeper_semaphore SOURCES zookeeper_semaphore.c zookeeper_place.c zk_proxy.c proxy.c
              zk_raw.c LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_semaphore PRIVATE ZK_SERVERS="${zk_servers}")
target_link_libraries(test_zookeeper_semaphore PRIVATE mortise_needs)
mortise_suite(NAME zookeeper_layouts SOURCES zookeeper_layouts.c zookeeper_place.c zk_proxy.c proxy.c
              zk_raw.c LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_layouts PRIVATE ZK_SERVERS="${zk_servers}")
target_link_libraries(test_zookeeper_layouts PRIVATE mortise_needs)
mortise_suite(NAME zookeeper_detach SOURCES zookeeper_detach.c zookeeper_place.c zk_proxy.c proxy.c
              zk_raw.c LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_detach PRIVATE ZK_SERVERS="${zk_servers}")
target_link_libraries(test_zookeeper_detach PRIVATE mortise_needs)
execute_process(COMMAND /usr/bin/python3 -c "import kazoo" RESULT_VARIABLE no_kazoo ERROR_QUIET)
if(NOT no_kazoo)
  foreach(suite zookeeper_access zookeeper_entries)
    mortise_suite(NAME ${suite} SOURCES ${suite}.c zookeeper_place.c zk_proxy.c proxy.c zk_raw.c
                  LABELS store waits SERIAL TIMEOUT 240)
    target_compile_definitions(test_${suite} PRIVATE ZK_SERVERS="${zk_servers}"
      ZK_RAW="/usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/zk_raw.py")
  endforeach()
endif()

find_program(STUNNEL NAMES stunnel4 stunnel)
find_program(OPENSSL openssl)
if(STUNNEL AND OPENSSL AND COMMAND mortise_bats_suite)
  mortise_bats_suite(zookeeper_tunnel ${CMAKE_CURRENT_SOURCE_DIR}/zookeeper_tunnel.bats waits)
endif()

mortise_suite(NAME zookeeper_claim SOURCES zookeeper_claim.c zookeeper_place.c zk_proxy.c proxy.c zk_raw.c
              LABELS store waits SERIAL TIMEOUT 240)
target_compile_definitions(test_zookeeper_claim PRIVATE ZK_SERVERS="${zk_servers}")
target_link_libraries(test_zookeeper_claim PRIVATE mortise_needs)

# The rules of passing on: as they are, and with each of them broken.
set(zookeeper_pass zookeeper_pass.c zookeeper_place.c zk_proxy.c proxy.c zk_raw.c)
mortise_suite(NAME zookeeper_pass SOURCES ${zookeeper_pass} LABELS store waits SERIAL TIMEOUT 240)
mortise_suite(NAME zookeeper_pass_defects SOURCES ${zookeeper_pass} ../defect_run.c
              LIBRARIES mortise_core_defects mortise_outer_defects
              mortise_store_zookeeper_defects LABELS defects waits SERIAL
              TIMEOUT 400)
foreach(suite zookeeper_pass zookeeper_pass_defects)
  target_compile_definitions(test_${suite} PRIVATE ZK_SERVERS="${zk_servers}")
  target_link_libraries(test_${suite} PRIVATE mortise_needs)
endforeach()

# A session ends with a tick of the server's: short ones, for the contest bounds how late.
foreach(part acquire owner async life contest shared multi operator election cell detach permits linger)
  if(TARGET test_api_${part})
    set(tick)
    set(session 4s)
    if(part STREQUAL contest)
      set(tick --tick 250)
    elseif(part MATCHES "${no_loss}")
      set(session 10s) # the server gives no more
    endif()
    add_test(NAME api_${part}_zk COMMAND ${zk_servers} ${tick} with zk
             $<TARGET_FILE:test_api_${part}> "{}/api?session=${session}&connect=30s")
    set_tests_properties(api_${part}_zk PROPERTIES TIMEOUT 180 LABELS "store;waits")
  endif()
endforeach()
if(TARGET test_api_operator AND NOT no_kazoo)
  set_tests_properties(api_operator_zk PROPERTIES ENVIRONMENT "MORTISE_TEST_MORE=${more_entries}")
endif()
mortise_long_contest(zk zk "{}/api?session=20s&connect=30s")
add_test(NAME names_zk COMMAND ${zk_servers} with zk $<TARGET_FILE:test_names> "{}/names")
set_tests_properties(names_zk PROPERTIES TIMEOUT 180 LABELS "store;waits")
if(TARGET test_conform_memory)
  add_test(NAME conform_operator_zk COMMAND ${zk_servers} with zk
           $<TARGET_FILE:test_conform_operator_memory> "{}/conform?session=4s&connect=30s")
  set_tests_properties(conform_operator_zk PROPERTIES TIMEOUT 120 LABELS "store;waits")
  add_test(NAME conform_claims_zk COMMAND ${zk_servers} with zk
           $<TARGET_FILE:test_conform_memory> "{}/conform?session=4s&connect=30s" exclusive)
  set_tests_properties(conform_claims_zk PROPERTIES TIMEOUT 180 RUN_SERIAL ON LABELS "store;waits")
endif()
foreach(part conform conform_values conform_detach conform_linger)
  foreach(kind zk zk3)
    if(TARGET test_${part}_memory)
      add_test(NAME ${part}_${kind} COMMAND ${zk_servers} with ${kind}
               $<TARGET_FILE:test_${part}_memory> "{}/conform?session=4s&connect=30s")
      set_tests_properties(${part}_${kind} PROPERTIES TIMEOUT 180 RUN_SERIAL ON LABELS "store;waits")
    endif()
  endforeach()
endforeach()

# The same in the other layouts. The recipe has no read/write locks, and nothing is detached there.
foreach(part conform conform_detach conform_operator)
  if(TARGET test_${part}_memory)
    add_test(NAME ${part}_zk_kazoo COMMAND ${zk_servers} with zk $<TARGET_FILE:test_${part}_memory>
             "{}/conform?session=4s&connect=30s&layout=kazoo")
    set_tests_properties(${part}_zk_kazoo PROPERTIES TIMEOUT 120 RUN_SERIAL ON LABELS "store;waits")
  endif()
endforeach()
if(TARGET test_api_acquire)
  add_test(NAME api_acquire_zk_recipe COMMAND ${zk_servers} with zk $<TARGET_FILE:test_api_acquire>
           "{}/api?session=4s&connect=30s&layout=recipe")
  set_tests_properties(api_acquire_zk_recipe PROPERTIES TIMEOUT 120 LABELS "store;waits")
endif()
if(TARGET test_api_election)
  add_test(NAME api_election_zk_recipe COMMAND ${zk_servers} with zk $<TARGET_FILE:test_api_election>
           "{}/api?session=4s&connect=30s&layout=recipe")
  set_tests_properties(api_election_zk_recipe PROPERTIES TIMEOUT 180 LABELS "store;waits;long")
endif()
