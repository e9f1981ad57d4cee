# SPDX-License-Identifier: Apache-2.0
# The MariaDB store on a real server, where one is installed. Its suites mostly wait for disks and
# leases, so they run beside others.
find_program(MARIADB_SERVER mariadbd PATHS /usr/sbin)
if(NOT MORTISE_MARIADB OR NOT MARIADB_SERVER)
  message(STATUS "no MariaDB server installed, or no libmariadb: its live tests are left out")
  return()
endif()
set(my_servers ${CMAKE_SOURCE_DIR}/tools/servers)
function(mariadb_run name target lease)
  mortise_live_test(${name} mariadb ${target} "{}?lease=${lease}" TIMEOUT 240 ${ARGN})
endfunction()

foreach(form get_lock row)
  mariadb_run(conform_claims_${form}_mariadb test_conform_memory "3s&form=${form}" exclusive)
endforeach()
mariadb_run(conform_mariadb test_conform_memory 3s)
mariadb_run(conform_claims_mariadb test_conform_memory 3s exclusive)
mariadb_run(conform_values_mariadb test_conform_values_memory 3s)
mariadb_run(conform_operator_mariadb test_conform_operator_memory 3s)
mariadb_run(conform_delay_mariadb test_conform_delay_memory 3s)
mariadb_run(conform_detach_mariadb test_conform_detach_memory 3s)
mortise_live_api(mariadb "{}?lease=" TIMEOUT 240 acquire owner async life contest shared multi operator
                 election cell delay detach permits)
set_tests_properties(api_operator_mariadb PROPERTIES ENVIRONMENT "MORTISE_TEST_MORE=${more_entries}")
# Nobody dies there, and a slow moment must not be taken for a death.
mariadb_run(api_stress_mariadb test_api_stress 20s)
mortise_long_contest(mariadb mariadb "{}?lease=20s")
if(TARGET test_io_reader)
  mariadb_run(io_reader_mariadb test_io_reader 9s)
endif()

set(mariadb_place mariadb_place.c sql_place.c zookeeper_place.c sql_proxy.c proxy.c
    ../conform/port_client.c)
foreach(part rules faults forms)
  mortise_suite(NAME sql_${part}_mariadb SOURCES sql_${part}.c ${mariadb_place}
                LIBRARIES mortise_static mortise_needs PkgConfig::LIBMARIADB LABELS store waits TIMEOUT 240)
  target_compile_definitions(test_sql_${part}_mariadb PRIVATE ZK_SERVERS="${my_servers}")
endforeach()
mortise_suite(NAME mariadb_faults SOURCES mariadb_faults.c ${mariadb_place}
              LIBRARIES mortise_static mortise_needs PkgConfig::LIBMARIADB LABELS store waits TIMEOUT 240)
target_compile_definitions(test_mariadb_faults PRIVATE ZK_SERVERS="${my_servers}")
mortise_suite(NAME sql_promotion_mariadb SOURCES sql_promotion.c noted.c mariadb_replica.c ../chaos/history.c
                      ${mariadb_place}
              LIBRARIES mortise_static mortise_needs PkgConfig::LIBMARIADB LABELS store waits TIMEOUT 240)
target_compile_definitions(test_sql_promotion_mariadb PRIVATE ZK_SERVERS="${my_servers}")
