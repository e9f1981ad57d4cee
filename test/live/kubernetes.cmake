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
# The store's objects, of which some calls are led astray; and with each of its rules broken.
foreach(variant "" _defects)
  set(more LABELS store waits)
  if(variant)
    set(more ../defect_run.c LIBRARIES mortise_core_defects mortise_outer_defects
             mortise_store_zookeeper_defects LABELS defects waits)
  endif()
  mortise_suite(NAME k8s_rules${variant} SOURCES k8s_rules.c k8s_odd.c k8s_place.c k8s_stray.c
                ../conform/port_client.c ${more} TIMEOUT 240)
  target_compile_definitions(test_k8s_rules${variant} PRIVATE K8S_SERVERS="${CMAKE_SOURCE_DIR}/tools/servers")
  target_link_libraries(test_k8s_rules${variant} PRIVATE mortise_store_kubernetes${variant}
                        mortise_store_rest${variant} PkgConfig::ETCD)
  foreach(call mrt_store_find mrt_rest_send free curl_slist_free_all)
    target_link_options(test_k8s_rules${variant} PRIVATE LINKER:--wrap=${call})
  endforeach()
endforeach()
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
