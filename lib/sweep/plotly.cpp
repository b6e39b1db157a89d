#include "sweep/embed.h"
#include "sweep/page_parts.h"

ABT_EMBED(abtrain_plotly, ABTRAIN_PLOTLY_FILE);

namespace abtrain::sweep {

std::string_view plotly_script() {
  return {abtrain_plotly_begin, abtrain_plotly_end};
}

}  // namespace abtrain::sweep
