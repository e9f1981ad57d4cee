# SPDX-License-Identifier: Apache-2.0
# The etcd store on real members, where they are installed.
find_program(ETCD_SERVER etcd)
if(NOT MORTISE_ETCD OR NOT ETCD_SERVER)
  message(STATUS "no etcd installed, or no libcurl and json-c: its live tests are left out")
  return()
endif()
mortise_live_test(conform_etcd etcd test_conform_memory "{}?lease=2s")
mortise_live_test(conform_claims_etcd etcd test_conform_memory "{}?lease=2s" COST 20 exclusive) # as any other ticket
foreach(part values operator detach linger)
  mortise_live_test(conform_${part}_etcd etcd test_conform_${part}_memory "{}?lease=2s")
endforeach()
mortise_live_api(etcd "{}?lease=" acquire owner async life contest shared multi election cell
                 detach permits linger)
mortise_live_test(api_operator_etcd etcd test_api_operator "{}?lease=6s") # it lists 10,000 tickets
set_tests_properties(api_operator_etcd PROPERTIES ENVIRONMENT "MORTISE_TEST_MORE=${more_entries}")
mortise_live_test(api_stress_etcd etcd test_api_stress "{}?lease=20s")
find_program(ETCDCTL etcdctl)
if(ETCDCTL AND COMMAND mortise_bats_suite)
  mortise_live_bats(etcd)
  mortise_bats_suite(etcd_acl ${CMAKE_CURRENT_SOURCE_DIR}/etcd_acl.bats waits)
  mortise_bats_suite(etcd_go ${CMAKE_CURRENT_SOURCE_DIR}/etcd_go.bats "waits;long")
  set_property(TEST etcd_go PROPERTY COST 60)
endif()
if(TARGET test_io_reader)
  mortise_live_test(io_reader_etcd etcd test_io_reader "{}?lease=20s")
endif()
