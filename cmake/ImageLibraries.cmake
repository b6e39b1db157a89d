# libturbojpeg, libpng and libwebp, which decode the files of the data set
# `image-folder`, and libutf8proc, which compares the names of its folders: the targets
# abtrain::turbojpeg, abtrain::png, abtrain::webp and abtrain::utf8proc.
function(abtrain_image_library name header library package)
  string(TOUPPER ${name} upper)
  find_path(${upper}_INCLUDE ${header})
  find_library(${upper}_LIBRARY ${library})
  if(NOT ${upper}_INCLUDE OR NOT ${upper}_LIBRARY)
    message(FATAL_ERROR
      "lib${library} was not found. scripts/setup.sh installs it "
      "(Debian's package is ${package}).")
  endif()
  add_library(abtrain_${name} UNKNOWN IMPORTED GLOBAL)
  add_library(abtrain::${name} ALIAS abtrain_${name})
  set_target_properties(abtrain_${name} PROPERTIES
    IMPORTED_LOCATION ${${upper}_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${${upper}_INCLUDE}
    INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()
abtrain_image_library(turbojpeg turbojpeg.h turbojpeg libturbojpeg0-dev)
abtrain_image_library(png png.h png libpng-dev ZLIB::ZLIB m)
abtrain_image_library(webp webp/decode.h webp libwebp-dev)
abtrain_image_library(utf8proc utf8proc.h utf8proc libutf8proc-dev)
