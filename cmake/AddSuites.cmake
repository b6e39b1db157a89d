# Included by ctest, with `program` and `name` set (see cmake/Suites.cmake).
if(NOT EXISTS ${program})
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
  return()
endif()
execute_process(COMMAND ${program} --gtest_list_tests
  OUTPUT_VARIABLE lines RESULT_VARIABLE code TIMEOUT 60)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${program} --gtest_list_tests: ${code}")
endif()
# Tests run side by side, where threads that wait for each other in turn take the cores
# from those that work.
set(environment ENVIRONMENT OMP_NUM_THREADS=1)
set(gpu "Gpu*:*/Gpu*")
add_test(${name} ${program} "--gtest_filter=-${gpu}")
set_tests_properties(${name} PROPERTIES ${environment})
if(lines MATCHES "(^|[\n/])Gpu")
  add_test(${name}.gpu ${program} "--gtest_filter=${gpu}")
  set_tests_properties(${name}.gpu PROPERTIES ${environment} LABELS gpu SKIP_REGULAR_EXPRESSION
    "  PASSED  . 0 tests\\.\n.  SKIPPED . [0-9]+ tests?, listed below:\n(.  SKIPPED . [^\n]*\n)+$")
endif()
