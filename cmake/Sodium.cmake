# libsodium, which authenticates the processes of a run if they share a secret.
find_path(SODIUM_INCLUDE sodium.h)
find_library(SODIUM_LIBRARY sodium)
if(NOT SODIUM_INCLUDE OR NOT SODIUM_LIBRARY)
  message(FATAL_ERROR
    "libsodium was not found. scripts/setup.sh installs it "
    "(Debian's package is libsodium-dev).")
endif()
add_library(abtrain_sodium UNKNOWN IMPORTED GLOBAL)
add_library(abtrain::sodium ALIAS abtrain_sodium)
set_target_properties(abtrain_sodium PROPERTIES
  IMPORTED_LOCATION ${SODIUM_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${SODIUM_INCLUDE})
