// The version of this program; build_config.h lists what was compiled in.
#pragma once

#include <string>

namespace abtrain::train {

// "0.1.0 (6d0915b1c2)": version and git revision, with "-dirty" if files were changed.
std::string version_line();

}  // namespace abtrain::train
