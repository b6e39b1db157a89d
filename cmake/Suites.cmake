# Registers a GoogleTest program with ctest as one test, since loading LibTorch takes
# longer than most suites.
#
# abtrain_suites(TARGET NAME): all suites of the target become the test NAME, but those
# whose name begins with Gpu: they become NAME.gpu, with the label gpu, which counts as
# skipped if all of its tests were. The program is asked for its suites when ctest starts.
function(abtrain_suites target name)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  file(GENERATE OUTPUT ${file} CONTENT
    "set(program [==[$<TARGET_FILE:${target}>]==])\nset(name [==[${name}]==])\n\
include([==[${CMAKE_SOURCE_DIR}/cmake/AddSuites.cmake]==])\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()
