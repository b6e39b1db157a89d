# Writes the headers with the program's build information: build_config.h when
# CMake runs; build_revision.h at every build, if the revision has changed.

set(ABTRAIN_GENERATED ${CMAKE_BINARY_DIR}/generated)
set(cuda_version "")
if(ABTRAIN_WITH_CUDA)
  set(cuda_version ${CUDAToolkit_VERSION})
endif()
list(JOIN ABTRAIN_MPI_NAMES ", " mpi_names)
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_config.h.in
               ${ABTRAIN_GENERATED}/build_config.h @ONLY)

find_package(Git QUIET)
add_custom_target(abtrain_revision
  COMMAND ${CMAKE_COMMAND} -D GIT=${GIT_EXECUTABLE} -D SOURCE=${CMAKE_SOURCE_DIR}
          -D OUTPUT=${ABTRAIN_GENERATED}/build_revision.h
          -P ${CMAKE_CURRENT_LIST_DIR}/Revision.cmake
  BYPRODUCTS ${ABTRAIN_GENERATED}/build_revision.h
  VERBATIM)
