# SPDX-License-Identifier: Apache-2.0
# The Kubernetes store on a fake of an API server.
if(NOT MORTISE_KUBERNETES)
  message(STATUS "no libcurl and json-c: the live tests of Leases are left out")
  return()
endif()
mortise_live_test(conform_k8s k8s test_conform_memory "{}&lease=2s" exclusive)
mortise_live_test(conform_operator_k8s k8s test_conform_operator_memory "{}&lease=2s")
mortise_live_test(conform_values_k8s k8s test_conform_values_memory "{}&lease=2s")
mortise_live_api(k8s "{}&lease=" acquire election)
mortise_live_test(api_contest_k8s k8s test_api_contest "{}&lease=3s" "test_a*") # the others count turns in a queue
mortise_live_test(api_stress_k8s k8s test_api_stress "{}&lease=20s")
mortise_live_rules(k8s SOURCES k8s_odd.c k8s_place.c k8s_stray.c PARTS kubernetes rest
                   NEEDS PkgConfig::ETCD CALLS mrt_rest_send free curl_slist_free_all)
find_program(CURL curl)
if(CURL AND COMMAND mortise_bats_suite)
  mortise_bats_suite(k8s_faults ${CMAKE_CURRENT_SOURCE_DIR}/k8s_faults.bats waits)
  if(MORTISE_SANITIZE) # the suites above are for sanitizers, too
    return()
  endif()
  mortise_bats_suite(k8s ${CMAKE_CURRENT_SOURCE_DIR}/k8s.bats waits)
  mortise_bats_suite(k8s_clock ${CMAKE_CURRENT_SOURCE_DIR}/k8s_clock.bats "waits;long")
  set_property(TEST k8s_clock PROPERTY COST 45)
  find_program(OPENSSL openssl)
  if(OPENSSL)
    mortise_bats_suite(k8s_access ${CMAKE_CURRENT_SOURCE_DIR}/k8s_access.bats waits)
  endif()
endif()
