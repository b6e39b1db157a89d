#include "report/embed.h"
#include "report/page_assets.h"

ABT_EMBED(abtrain_plotly, ABTRAIN_PLOTLY_FILE);

namespace abtrain::report {

std::string_view plotly_script() {
  return {abtrain_plotly_begin, abtrain_plotly_end};
}

}  // namespace abtrain::report
