# Registers the suites of GoogleTest programs with ctest, one ctest test per suite:
# with one process per test, LibTorch would be loaded 1,500 times.
#
# abtrain_suites(TARGET NAME [TOGETHER]): suite S of the target becomes NAME.S. A suite
# whose name begins with Gpu or Slow gets that label; one whose tests were all skipped
# counts as skipped. TOGETHER runs all other suites as the one test NAME, which suits
# programs whose tests take less time than loading LibTorch. The program is asked for
# its suites when ctest starts.
function(abtrain_suites target name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "TOGETHER" "" "")
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  file(GENERATE OUTPUT ${file} CONTENT
    "set(program [==[$<TARGET_FILE:${target}>]==])\nset(name [==[${name}]==])\nset(together ${arg_TOGETHER})\n\
include([==[${CMAKE_SOURCE_DIR}/cmake/AddSuites.cmake]==])\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()
