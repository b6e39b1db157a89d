# Language standards, warnings, sanitizers, ccache and the search for CUDA.
# Sets ABTRAIN_WITH_CUDA and the target abtrain::flags.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Precompiled headers need the sloppiness. Paths below the base folder are cached as
  # relative ones, so that another build folder or clone finds the same objects.
  set(launcher
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

if(ABTRAIN_SANITIZE)
  # GCC's analysis of uninitialized values is confused by the instrumentation.
  add_compile_options(-fsanitize=${ABTRAIN_SANITIZE} -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${ABTRAIN_SANITIZE})
endif()

# CUDA. OFF: not used; ON: required; AUTO: used if nvcc is found.
set(ABTRAIN_WITH_CUDA OFF)
if(NOT ABTRAIN_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90 CACHE STRING "CUDA architectures")
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    # CMake 3.25 does not support C++20 with nvcc 13.
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    set(ABTRAIN_WITH_CUDA ON)
  elseif(ABTRAIN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ABTRAIN_CUDA=ON, but no CUDA compiler was found")
  endif()
endif()

# Warnings are errors with Debian 12's compiler. Others, on a user's machine, have
# warnings that nobody here has seen.
set(ABTRAIN_STRICT)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(ABTRAIN_STRICT -Werror)
endif()
add_library(abtrain_flags INTERFACE)
add_library(abtrain::flags ALIAS abtrain_flags)
target_compile_options(abtrain_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual;${ABTRAIN_STRICT}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>"
  # ccache needs this to track precompiled headers.
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>")
if(ABTRAIN_STRICT)
  target_compile_options(abtrain_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>")
endif()
# All forms of a kernel have the same bits, on every processor: a product and a sum become one
# operation only where the source says fma. Tests show that GCC on x86-64 keeps to that by itself;
# there the option would reach linalg through the precompiled header, and slow it. A target with
# ABTRAIN_CONTRACTS is exempt.
if(NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64"))
  target_compile_options(abtrain_flags INTERFACE
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:ABTRAIN_CONTRACTS>>>>:-ffp-contract=off>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 to 14 give false warnings about std::string's operator+ (GCC bug 105651).
  target_compile_options(abtrain_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overread;-Wno-stringop-overflow;-Wno-free-nonheap-object>")
endif()
# LibTorch's wheel is built with GCC; from version 18 on, clang gives some of its function templates
# other symbols, such as TensorBase::const_data_ptr<float>().
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 18)
  target_compile_options(abtrain_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fclang-abi-compat=17>")
endif()
# Without OpenMP, at::parallel_for runs only in the calling thread. It is off only
# under ThreadSanitizer, which does not see the barriers of GCC's OpenMP library.
if(NOT ABTRAIN_SANITIZE MATCHES "thread")
  include(CheckIncludeFileCXX)
  set(CMAKE_REQUIRED_FLAGS -fopenmp)
  check_include_file_cxx(omp.h ABTRAIN_HAS_OPENMP)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT ABTRAIN_HAS_OPENMP)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} finds no omp.h, which LibTorch's headers include: "
      "install its OpenMP (for clang 19, Debian's package is libomp-19-dev)")
  endif()
  target_compile_options(abtrain_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fopenmp>")
  target_link_options(abtrain_flags INTERFACE "$<$<LINK_LANGUAGE:CXX>:-fopenmp>")
endif()
