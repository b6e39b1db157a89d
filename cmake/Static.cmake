# ABTRAIN_STATIC links yaml-cpp, zlib, libturbojpeg, libpng, libwebp, libutf8proc, libsodium
# and GoogleTest statically, without a run path to a folder of this machine. The programs then need
# only LibTorch's own libraries, glibc 2.28 and GCC 8's libstdc++. They find LibTorch from
# site-packages/abtrain/bin, where the Python wheel puts the program; elsewhere through
# LD_LIBRARY_PATH.
if(ABTRAIN_STATIC)
  set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
  set(ABTRAIN_OLDEST_GLIBC GLIBC_2.2.5)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(ABTRAIN_OLDEST_GLIBC GLIBC_2.17)
  endif()
  set(ZLIB_USE_STATIC_LIBS ON)  # known to CMake since 3.24
  find_library(TURBOJPEG_LIBRARY NAMES libturbojpeg.a)
  find_library(PNG_LIBRARY NAMES libpng.a libpng16.a)
  find_library(WEBP_LIBRARY NAMES libwebp.a)
  find_library(UTF8PROC_LIBRARY NAMES libutf8proc.a)
  find_library(SODIUM_LIBRARY NAMES libsodium.a)
  find_library(ABTRAIN_YAML_CPP_ARCHIVE NAMES libyaml-cpp.a)
  mark_as_advanced(ABTRAIN_YAML_CPP_ARCHIVE)
  if(NOT ABTRAIN_YAML_CPP_ARCHIVE)
    message(FATAL_ERROR "ABTRAIN_STATIC=ON, but there is no libyaml-cpp.a")
  endif()
  # std::from_chars and std::to_chars of floating-point numbers are younger; these are GCC's own.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a
    OUTPUT_VARIABLE archive OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(parts floating_from_chars.o floating_to_chars.o memory_resource.o)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/libstdc++)
  execute_process(COMMAND ${CMAKE_AR} x ${archive} ${parts}
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/libstdc++ COMMAND_ERROR_IS_FATAL ANY)
  list(TRANSFORM parts PREPEND ${CMAKE_BINARY_DIR}/libstdc++/)
  add_library(abtrain_old_symbols STATIC ${CMAKE_SOURCE_DIR}/cmake/old_symbols.cpp ${parts})
  target_compile_definitions(abtrain_old_symbols PRIVATE ABTRAIN_OLDEST_GLIBC="${ABTRAIN_OLDEST_GLIBC}")
  target_link_libraries(abtrain_flags INTERFACE abtrain_old_symbols)
  # Each function that the file defines as __wrap_NAME, or names in ABT_OLD(NAME).
  file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/old_symbols.cpp lines REGEX "__wrap_[a-zA-Z_]|^ABT_OLD")
  foreach(line IN LISTS lines)
    if(line MATCHES "__wrap_([A-Za-z_][A-Za-z0-9_]*)|^ABT_OLD\\(([a-z_]+)\\)")
      target_link_options(abtrain_flags INTERFACE -Wl,--wrap=${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    endif()
  endforeach()
endif()

# Debian's CMake files for yaml-cpp know only the shared library.
macro(abtrain_static_yaml_cpp)
  if(ABTRAIN_STATIC)
    get_target_property(configurations yaml-cpp IMPORTED_CONFIGURATIONS)
    foreach(configuration IN LISTS configurations)
      set_target_properties(yaml-cpp PROPERTIES
        IMPORTED_LOCATION_${configuration} ${ABTRAIN_YAML_CPP_ARCHIVE})
    endforeach()
  endif()
endmacro()
