# Runs at every build: writes the git revision of SOURCE, with -dirty where tracked
# files have changes, to OUTPUT if it differs from the present one. A release archive
# has no git, but a file REVISION.
set(revision "")
if(EXISTS ${SOURCE}/REVISION)
  file(STRINGS ${SOURCE}/REVISION revision LIMIT_COUNT 1)
elseif(GIT)
  # Without optional locks, a build never blocks a commit.
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0
            ${GIT} describe --always --dirty --exclude=* --abbrev=10
    WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE revision
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// Written by cmake/Revision.cmake.
#pragma once

namespace abtrain::build_config {

inline constexpr char kRevision[] = "@revision@";

}  // namespace abtrain::build_config
]])
