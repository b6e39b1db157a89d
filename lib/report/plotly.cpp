#include "base/embed.h"
#include "report/page_assets.h"

namespace abtrain::report {

ABT_EMBED(plotly_script, ABTRAIN_PLOTLY_FILE)

}  // namespace abtrain::report
