# SPDX-License-Identifier: Apache-2.0
# The NATS store on real servers, where they are installed.
find_program(NATS_SERVER nats-server PATHS /usr/sbin)
if(NOT MORTISE_NATS OR NOT NATS_SERVER)
  message(STATUS "no nats-server installed, or no libnats: its live tests are left out")
  return()
endif()
mortise_live_test(conform_nats nats test_conform_memory "{}?lease=2s")
mortise_live_test(conform_claims_nats nats test_conform_memory "{}?lease=2s" COST 20 exclusive) # as any other ticket
foreach(part values operator detach linger)
  mortise_live_test(conform_${part}_nats nats test_conform_${part}_memory "{}?lease=2s")
endforeach()
mortise_live_api(nats "{}?lease=" acquire owner async life shared multi cell operator detach permits
                 linger)
foreach(part contest election) # deaths, of which each takes two leases
  mortise_live_test(api_${part}_nats nats test_api_${part} "{}?lease=3s" COST 40)
endforeach()
set_property(TEST api_operator_nats PROPERTY ENVIRONMENT "MORTISE_TEST_MORE=${more_entries}")
mortise_live_test(api_stress_nats nats test_api_stress "{}?lease=20s")
mortise_live_rules(nats PARTS nats NEEDS PkgConfig::NATS
                   CALLS mrt_nats_publish mrt_nats_get_last mrt_nats_get_next)
if(COMMAND mortise_bats_suite AND NOT MORTISE_SANITIZE) # the suites above are for sanitizers, too
  mortise_live_bats(nats)
endif()
