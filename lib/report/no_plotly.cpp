#include "base/error.h"
#include "report/page_parts.h"

namespace abtrain::report {

std::string_view plotly_script() {
  throw Error(
      ErrorKind::MissingInput,
      "this abtrain was built without plotly.js, which draws the HTML report; "
      "scripts/setup.sh installs it, CMake's option ABTRAIN_PLOTLY names it. "
      "The formats table, csv, json and markdown need nothing");
}

}  // namespace abtrain::report
