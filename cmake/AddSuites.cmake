# Included by ctest, with `program`, `name` and `together` set (see cmake/Suites.cmake).
if(NOT EXISTS ${program})
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
  return()
endif()
execute_process(COMMAND ${program} --gtest_list_tests
  OUTPUT_VARIABLE lines RESULT_VARIABLE code TIMEOUT 60)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${program} --gtest_list_tests: ${code}")
endif()
string(REPLACE ";" "," lines "${lines}")
string(REPLACE "\n" ";" lines "${lines}")
# Tests run side by side, where threads that wait for each other in turn take the cores
# from those that work.
set(environment ENVIRONMENT OMP_NUM_THREADS=1)
set(apart "")  # the filter of suites with a test of their own
foreach(line IN LISTS lines)
  # "Suite." or "Suite.  # TypeParam = int"; its tests follow, indented.
  if(NOT line MATCHES "^([A-Za-z_0-9/]+)\\.( |$)")
    continue()
  endif()
  set(suite ${CMAKE_MATCH_1})
  set(label "")
  if(suite MATCHES "(^|/)(Gpu|Slow)")
    string(TOLOWER ${CMAKE_MATCH_2} label)
  elseif(together)
    continue()
  endif()
  string(APPEND apart ":${suite}.*")
  add_test(${name}.${suite} ${program} --gtest_filter=${suite}.*)
  set_tests_properties(${name}.${suite} PROPERTIES ${environment} LABELS "${label}" SKIP_REGULAR_EXPRESSION
    "  PASSED  . 0 tests\\.\n.  SKIPPED . [0-9]+ tests?, listed below:\n(.  SKIPPED . [^\n]*\n)+$")
endforeach()
if(together)
  add_test(${name} ${program} --gtest_brief=1 "--gtest_filter=-${apart}")
  set_tests_properties(${name} PROPERTIES ${environment})
endif()
