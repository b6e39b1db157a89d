#include "report/page_assets.h"

#include "base/embed.h"

namespace abtrain::report {

ABT_EMBED(page_frame, ABTRAIN_PAGE_FOLDER "/page.html")
ABT_EMBED(page_style, ABTRAIN_PAGE_FOLDER "/page.css")
ABT_EMBED(page_script, ABTRAIN_PAGE_FOLDER "/page.js")
ABT_EMBED(page_plots, ABTRAIN_PAGE_FOLDER "/plots.js")

}  // namespace abtrain::report
