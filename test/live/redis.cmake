# SPDX-License-Identifier: Apache-2.0
# The Redis store: its rules, and on a real server where one is installed.
if(NOT MORTISE_REDIS)
  return()
endif()
mortise_suite(NAME redis_rules SOURCES redis_rules.c LABELS store)
target_link_libraries(test_redis_rules PRIVATE mortise_needs)
mortise_suite(NAME redis_referral SOURCES redis_referral.c LABELS store)
target_link_libraries(test_redis_referral PRIVATE mortise_needs)
mortise_suite(NAME redis_referral_defects SOURCES redis_referral.c ../defect_run.c
              LIBRARIES mortise_core_defects mortise_outer_defects
              mortise_store_zookeeper_defects LABELS defects TIMEOUT 240)
target_link_libraries(test_redis_referral_defects PRIVATE mortise_needs)

find_program(REDIS_SERVER redis-server)
if(NOT REDIS_SERVER)
  message(STATUS "no Redis server installed: its live tests are left out")
  return()
endif()
set(redis_servers ${CMAKE_SOURCE_DIR}/tools/servers)

# They wait for sessions, all but stress, and may do so beside others. In stress nobody dies, and a
# slow moment must not be taken for a server that does not answer.
function(redis_test name program labels)
  add_test(NAME ${name} COMMAND ${redis_servers} with redis $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 180 LABELS "${labels}")
endfunction()
redis_test(conform_redis test_conform_memory "store;waits" "{}?session=3s")
redis_test(conform_claims_redis test_conform_memory "store;waits" "{}?session=3s" exclusive)
redis_test(conform_values_redis test_conform_values_memory "store;waits" "{}?session=3s")
redis_test(conform_operator_redis test_conform_operator_memory "store;waits" "{}?session=3s")
redis_test(conform_detach_redis test_conform_detach_memory "store;waits" "{}?session=3s")
redis_test(conform_delay_redis test_conform_delay_memory "store;waits" "{}?session=3s")
redis_test(conform_linger_redis test_conform_linger_memory "store;waits" "{}?session=3s")
mortise_live_api(redis "{}/0?session=" acquire owner async life contest shared multi election cell
                 operator detach permits linger delay)
if(TARGET mortise_module_tls)
  foreach(part conform_operator api_acquire)
    string(REPLACE conform_operator conform_operator_memory program test_${part})
    add_test(NAME ${part}_rediss COMMAND ${redis_servers} --tls with redis $<TARGET_FILE:${program}>
             "{}/0?session=2s")
    set_tests_properties(${part}_rediss PROPERTIES TIMEOUT 180 LABELS "store;waits")
  endforeach()
endif()
# Five members; the lease is short, and each is given time to answer: the machine may be busy.
# Tests of fences, queues or lists are left out: it has none of these.
function(redlock_test name program)
  add_test(NAME ${name} COMMAND ${redis_servers} with redis5 $<TARGET_FILE:${program}>
           "redlock:{}?session=3s&answer=300ms" ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 180 LABELS "store;waits")
endfunction()
redlock_test(api_contest_redlock test_api_contest)
mortise_long_contest(redis redis "{}/0?session=20s")
mortise_long_contest(redlock redis5 "redlock:{}?session=20s&answer=300ms")
redlock_test(api_acquire_redlock test_api_acquire test_a4*)
redis_test(names_redis test_names "store;waits" "{}/0")
add_test(NAME names_redlock COMMAND ${redis_servers} with redis5 $<TARGET_FILE:test_names> "{}")
set_tests_properties(names_redlock PROPERTIES TIMEOUT 180 LABELS "store;waits")
mortise_suite(NAME quorum_members SOURCES quorum_members.c ../api/api_fixture.c LABELS store)
target_link_libraries(test_quorum_members PRIVATE mortise_needs)
add_test(NAME quorum_members_redis COMMAND ${redis_servers} with redis5
         $<TARGET_FILE:test_quorum_members> "{}")
set_tests_properties(quorum_members_redis PROPERTIES TIMEOUT 180 LABELS "store;waits")
redis_test(api_stress_redis test_api_stress "store;threads" "{}/0?session=20s")
if(TARGET test_io_reader)
  redis_test(io_reader_redis test_io_reader "store;waits" "{}/0?session=20s")
endif()

set(redis_live zookeeper_place.c redis_proxy.c proxy.c)
mortise_suite(NAME redis_faults SOURCES redis_faults.c ${redis_live} LABELS store waits TIMEOUT 240)
mortise_suite(NAME redis_access SOURCES redis_access.c noted.c zookeeper_place.c ../conform/port_client.c
                      ../chaos/history.c
              LABELS store waits TIMEOUT 240)
mortise_suite(NAME redis_detach SOURCES redis_detach.c ${redis_live} ../conform/port_client.c
              LABELS store waits TIMEOUT 240)
set(redis_claim redis_claim.c redis_claim_port.c redis_claim_loss.c ${redis_live}
    ../conform/port_client.c)
mortise_suite(NAME redis_claim SOURCES ${redis_claim} LABELS store waits TIMEOUT 240)
mortise_suite(NAME redis_waiters SOURCES redis_waiters.c zookeeper_place.c ../conform/port_client.c
              LABELS store waits TIMEOUT 240)
# The same with each of the store's rules broken.
mortise_suite(NAME redis_faults_defects SOURCES redis_faults.c ${redis_live} ../defect_run.c
              LIBRARIES mortise_core_defects mortise_outer_defects
              mortise_store_zookeeper_defects LABELS defects waits TIMEOUT 240)
mortise_suite(NAME redis_claim_defects SOURCES ${redis_claim} ../defect_run.c
              LIBRARIES mortise_core_defects mortise_outer_defects
              mortise_store_zookeeper_defects LABELS defects waits TIMEOUT 240)
mortise_suite(NAME redis_clock SOURCES redis_clock.c stall.c zookeeper_place.c LABELS store waits
              TIMEOUT 240)
mortise_suite(NAME redlock_servers SOURCES redlock_servers.c ${redis_live}
              ../conform/port_client.c LABELS store waits TIMEOUT 240)
mortise_long_contest(cluster redis-cluster4 "{}?session=20s")
# A real cluster, first for queues and then for claims: the namespace's slot is the last master's.
foreach(part "conform_cluster memory" "conform_claims_cluster memory exclusive"
             "conform_operator_cluster operator_memory")
  separate_arguments(words UNIX_COMMAND "${part}")
  list(POP_FRONT words name program)
  add_test(NAME ${name} COMMAND ${redis_servers} with redis-cluster4
           $<TARGET_FILE:test_conform_${program}> "{}?session=2s" ${words})
  set_tests_properties(${name} PROPERTIES TIMEOUT 180 LABELS "store;waits")
endforeach()
mortise_suite(NAME redis_reshard SOURCES redis_reshard.c failover.c zookeeper_place.c
              LABELS store waits TIMEOUT 240)
find_program(REDIS_SENTINEL redis-sentinel)
if(REDIS_SENTINEL)
  mortise_suite(NAME redis_sentinel SOURCES redis_sentinel.c failover.c zookeeper_place.c
                ../conform/port_client.c
                LABELS store waits TIMEOUT 240)
  set(redis_failovers redis_sentinel)
  add_test(NAME conform_sentinel COMMAND ${redis_servers} with redis-sentinel
           $<TARGET_FILE:test_conform_memory> "{}?session=2s")
  set_tests_properties(conform_sentinel PROPERTIES TIMEOUT 180 LABELS "store;waits")
  mortise_long_contest(sentinel redis-sentinel "{}?session=20s")
  add_test(NAME long_failovers_sentinel COMMAND $<TARGET_FILE:test_redis_sentinel> many)
  set_tests_properties(long_failovers_sentinel PROPERTIES TIMEOUT 300 LABELS "store;waits;long")
endif()
foreach(suite redis_clock redlock_servers ${redis_failovers})
  add_dependencies(test_${suite} set_clock)
  target_compile_definitions(test_${suite} PRIVATE SET_CLOCK="$<TARGET_FILE:set_clock>")
endforeach()
foreach(suite redis_faults redis_access redis_claim redis_detach redis_waiters redlock_servers
              redis_clock redis_faults_defects redis_claim_defects redis_reshard ${redis_failovers})
  target_compile_definitions(test_${suite} PRIVATE ZK_SERVERS="${redis_servers}")
  target_link_libraries(test_${suite} PRIVATE mortise_needs)
endforeach()

if(COMMAND mortise_bats_suite)
  mortise_bats_suite(redis_acl ${CMAKE_CURRENT_SOURCE_DIR}/redis_acl.bats waits)
  if(TARGET mortise_module_tls)
    mortise_bats_suite(redis_tls ${CMAKE_CURRENT_SOURCE_DIR}/redis_tls.bats waits)
    if(REDIS_SENTINEL)
      mortise_bats_suite(redis_tls_several ${CMAKE_CURRENT_SOURCE_DIR}/redis_tls_several.bats waits)
    endif()
  endif()
  mortise_bats_suite(redlock ${CMAKE_CURRENT_SOURCE_DIR}/redlock.bats waits)
  mortise_bats_suite(redis_cluster ${CMAKE_CURRENT_SOURCE_DIR}/redis_cluster.bats waits)
  if(REDIS_SENTINEL)
    mortise_bats_suite(sentinels ${CMAKE_CURRENT_SOURCE_DIR}/redis_sentinel.bats waits)
  endif()
  if(BATS AND TARGET mortise)
    set_property(TEST redlock redis_cluster APPEND PROPERTY
                 ENVIRONMENT CLAIMER=$<TARGET_FILE:interop_claimer>)
  endif()
endif()
