#include "base/error.h"
#include "report/page_assets.h"

namespace abtrain::report {

std::string_view plotly_script() {
  throw Error(
      ErrorKind::MissingInput,
      "this abtrain was built without plotly.js, which draws the HTML report; "
      "scripts/setup.sh installs it, and CMake's option ABTRAIN_PLOTLY names "
      "its file. The formats table, csv, json and markdown work without it");
}

}  // namespace abtrain::report
