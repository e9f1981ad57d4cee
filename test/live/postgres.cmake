# SPDX-License-Identifier: Apache-2.0
# The PostgreSQL store on a real server, where one is installed. Its suites mostly wait for disks
# and leases, so they run beside others; only what measures does not.
file(GLOB postgres_servers /usr/lib/postgresql/*/bin/postgres)
if(NOT MORTISE_POSTGRES OR NOT postgres_servers)
  message(STATUS "no PostgreSQL server installed, or no libpq: its live tests are left out")
  return()
endif()
set(pg_servers ${CMAKE_SOURCE_DIR}/tools/servers)
function(postgres_run name target lease)
  add_test(NAME ${name} COMMAND ${pg_servers} with postgres $<TARGET_FILE:${target}>
           "{}?lease=${lease}" ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 240 LABELS "store;waits")
endfunction()

foreach(form advisory row)
  postgres_run(conform_claims_${form}_postgres test_conform_memory "2s&form=${form}" exclusive)
endforeach()
postgres_run(conform_postgres test_conform_memory 2s)
postgres_run(conform_claims_postgres test_conform_memory 2s exclusive)
postgres_run(conform_values_postgres test_conform_values_memory 2s)
postgres_run(conform_operator_postgres test_conform_operator_memory 2s)
postgres_run(conform_linger_postgres test_conform_linger_memory 2s)
postgres_run(conform_delay_postgres test_conform_delay_memory 2s)
postgres_run(conform_detach_postgres test_conform_detach_memory 2s)
foreach(part acquire owner async life contest shared multi operator election cell delay detach permits linger)
  set(lease 3s)
  if(part MATCHES "${no_loss}")
    set(lease 60s)
  endif()
  postgres_run(api_${part}_postgres test_api_${part} ${lease})
endforeach()
set(more_entries "/usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/more_entries.py")
set_tests_properties(api_operator_postgres PROPERTIES ENVIRONMENT "MORTISE_TEST_MORE=${more_entries}")
# Nobody dies there, and a slow moment must not be taken for a death.
postgres_run(api_stress_postgres test_api_stress 20s)
mortise_long_contest(postgres postgres "{}?lease=20s")
if(TARGET test_io_reader)
  postgres_run(io_reader_postgres test_io_reader 20s)
endif()

set(postgres_place postgres_place.c sql_place.c zookeeper_place.c sql_proxy.c proxy.c
    ../conform/port_client.c)
foreach(part rules faults demotion)
  mortise_suite(NAME postgres_${part} SOURCES postgres_${part}.c postgres_pooler.c ${postgres_place}
                LIBRARIES mortise_static mortise_needs PkgConfig::LIBPQ LABELS store waits TIMEOUT 240)
  target_compile_definitions(test_postgres_${part} PRIVATE ZK_SERVERS="${pg_servers}")
endforeach()
foreach(part rules faults forms)
  mortise_suite(NAME sql_${part}_postgres SOURCES sql_${part}.c ${postgres_place}
                LIBRARIES mortise_static mortise_needs PkgConfig::LIBPQ LABELS store waits TIMEOUT 240)
  target_compile_definitions(test_sql_${part}_postgres PRIVATE ZK_SERVERS="${pg_servers}")
endforeach()
mortise_suite(NAME sql_promotion_postgres SOURCES sql_promotion.c noted.c postgres_replica.c ../chaos/history.c
                      ${postgres_place}
              LIBRARIES mortise_static mortise_needs PkgConfig::LIBPQ LABELS store waits TIMEOUT 240)
target_compile_definitions(test_sql_promotion_postgres PRIVATE ZK_SERVERS="${pg_servers}")
