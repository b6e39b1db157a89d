# LibTorch from a wheel of PyTorch, imported by hand: the wheel's own TorchConfig.cmake
# fails where no CUDA toolkit is installed. Sets ABTRAIN_TORCH (the wheel's torch folder)
# and the target abtrain::torch.

# The oldest and the newest version that was tried (docs/building.md, "What was tried").
set(ABTRAIN_TORCH_RANGE 2.9 2.15)
set(ABTRAIN_TORCH_VERSION 2.11.0 CACHE STRING "the LibTorch of scripts/setup.sh --torch VERSION")
set(ABTRAIN_TORCH "" CACHE PATH "the 'torch' folder of any PyTorch; empty: that of setup.sh")

# The folder into which scripts/setup.sh installs.
if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(ABTRAIN_CACHE $ENV{XDG_CACHE_HOME}/abtrain)
else()
  set(ABTRAIN_CACHE $ENV{HOME}/.cache/abtrain)
endif()

if(NOT ABTRAIN_TORCH)
  file(GLOB candidates
       ${ABTRAIN_CACHE}/torch-${ABTRAIN_TORCH_VERSION}/lib/python3*/site-packages/torch)
  if(candidates)
    list(GET candidates 0 found)
    set(ABTRAIN_TORCH ${found})
  endif()
endif()
if(NOT EXISTS ${ABTRAIN_TORCH}/include/ATen/core/Tensor.h)
  message(FATAL_ERROR
    "LibTorch ${ABTRAIN_TORCH_VERSION} was not found. scripts/setup.sh --torch ${ABTRAIN_TORCH_VERSION} installs it; "
    "or set -DABTRAIN_TORCH=.../site-packages/torch of an installed wheel.")
endif()
file(STRINGS ${ABTRAIN_TORCH}/version.py version_line REGEX "^__version__")
if(NOT version_line MATCHES "'(([0-9]+\\.[0-9]+)[^']*)'")
  message(FATAL_ERROR "${ABTRAIN_TORCH}/version.py: expected a version, found ${version_line}")
endif()
set(ABTRAIN_TORCH_FOUND ${CMAKE_MATCH_1})
set(found ${CMAKE_MATCH_2})
list(GET ABTRAIN_TORCH_RANGE 0 oldest)
list(GET ABTRAIN_TORCH_RANGE 1 newest)
if(found VERSION_LESS oldest)
  message(FATAL_ERROR "${ABTRAIN_TORCH}: expected torch ${oldest} to ${newest}, found ${ABTRAIN_TORCH_FOUND}")
elseif(found VERSION_GREATER newest)
  message(WARNING "${ABTRAIN_TORCH} is torch ${ABTRAIN_TORCH_FOUND}; the newest that was tried is ${newest}")
endif()

function(abtrain_import_torch name library)
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION ${ABTRAIN_TORCH}/lib/${library}
    INTERFACE_INCLUDE_DIRECTORIES ${ABTRAIN_TORCH}/include)
endfunction()

abtrain_import_torch(torch_c10 libc10.so)
abtrain_import_torch(torch_cpu libtorch_cpu.so)
add_library(abtrain_torch INTERFACE)
add_library(abtrain::torch ALIAS abtrain_torch)
target_compile_definitions(abtrain_torch INTERFACE AT_PER_OPERATOR_HEADERS)
target_link_libraries(abtrain_torch INTERFACE torch_cpu torch_c10)
# The wheel's libraries find their own CUDA parts at run time.
target_link_options(abtrain_torch INTERFACE -Wl,--allow-shlib-undefined)

# The toolkit and the wheel must have the same CUDA version, or two CUDA runtimes
# would be loaded.
if(ABTRAIN_WITH_CUDA)
  file(STRINGS ${ABTRAIN_TORCH}/version.py cuda_line REGEX "^cuda")
  string(REGEX MATCH "[0-9]+" torch_cuda_major "${cuda_line}")
  if(NOT EXISTS ${ABTRAIN_TORCH}/lib/libtorch_cuda.so)
    set(unfit "this LibTorch has no CUDA")
  elseif(NOT torch_cuda_major EQUAL CUDAToolkit_VERSION_MAJOR)
    set(unfit "LibTorch needs CUDA ${torch_cuda_major}, nvcc is ${CUDAToolkit_VERSION}")
  endif()
  if(unfit AND ABTRAIN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ABTRAIN_CUDA=ON, but ${unfit}")
  elseif(unfit)
    message(STATUS "Building for the CPU only: ${unfit}")
    set(ABTRAIN_WITH_CUDA OFF)
  endif()
endif()
if(ABTRAIN_WITH_CUDA)
  abtrain_import_torch(torch_c10_cuda libc10_cuda.so)
  abtrain_import_torch(torch_cuda libtorch_cuda.so)
  # libtorch_cuda registers its kernels when it is loaded: keep it although no symbol
  # needs it.
  target_link_libraries(abtrain_torch INTERFACE
    -Wl,--no-as-needed torch_cuda torch_c10_cuda -Wl,--as-needed)
  target_link_libraries(abtrain_torch INTERFACE CUDA::cudart)
  # C++ files too take the CUDA headers from the toolkit.
  target_include_directories(abtrain_torch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
endif()

# NCCL: the library that this LibTorch was linked with, not the toolkit's.
set(ABTRAIN_WITH_NCCL OFF)
get_filename_component(nccl_root ${ABTRAIN_TORCH}/../nvidia/nccl ABSOLUTE)
if(ABTRAIN_WITH_CUDA AND EXISTS ${nccl_root}/include/nccl.h
   AND EXISTS ${nccl_root}/lib/libnccl.so.2)
  set(ABTRAIN_WITH_NCCL ON)
  add_library(abtrain_nccl SHARED IMPORTED GLOBAL)
  add_library(abtrain::nccl ALIAS abtrain_nccl)
  set_target_properties(abtrain_nccl PROPERTIES
    IMPORTED_LOCATION ${nccl_root}/lib/libnccl.so.2
    INTERFACE_INCLUDE_DIRECTORIES ${nccl_root}/include)
  target_link_libraries(abtrain_nccl INTERFACE CUDA::cudart)
endif()

# The wheel's folders of libraries that programs need themselves.
set(ABTRAIN_TORCH_FOLDERS torch/lib)
if(ABTRAIN_WITH_CUDA)
  # nvidia/cu13/lib and nvidia/nccl/lib; before CUDA 13 nvidia/cublas/lib and so on.
  cmake_path(GET ABTRAIN_TORCH PARENT_PATH site)
  file(GLOB nvidia RELATIVE ${site} ${site}/nvidia/*/lib)
  list(APPEND ABTRAIN_TORCH_FOLDERS ${nvidia})
endif()
if(ABTRAIN_STATIC)
  list(TRANSFORM ABTRAIN_TORCH_FOLDERS PREPEND "$ORIGIN/../../" OUTPUT_VARIABLE CMAKE_INSTALL_RPATH)
endif()
