# libturbojpeg, which decodes the JPEG files of the data set `image-folder`.
find_path(TURBOJPEG_INCLUDE turbojpeg.h)
find_library(TURBOJPEG_LIBRARY turbojpeg)
if(NOT TURBOJPEG_INCLUDE OR NOT TURBOJPEG_LIBRARY)
  message(FATAL_ERROR
    "libturbojpeg was not found. scripts/setup.sh installs it "
    "(Debian's package is libturbojpeg0-dev).")
endif()
add_library(abtrain_turbojpeg UNKNOWN IMPORTED GLOBAL)
add_library(abtrain::turbojpeg ALIAS abtrain_turbojpeg)
set_target_properties(abtrain_turbojpeg PROPERTIES
  IMPORTED_LOCATION ${TURBOJPEG_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${TURBOJPEG_INCLUDE})
