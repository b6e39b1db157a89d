#include "report/page_assets.h"

#include "report/embed.h"

ABT_EMBED(abtrain_page_frame, ABTRAIN_PAGE_FOLDER "/page.html");
ABT_EMBED(abtrain_page_style, ABTRAIN_PAGE_FOLDER "/page.css");
ABT_EMBED(abtrain_page_script, ABTRAIN_PAGE_FOLDER "/page.js");
ABT_EMBED(abtrain_page_plots, ABTRAIN_PAGE_FOLDER "/plots.js");

namespace abtrain::report {

std::string_view page_frame() {
  return {abtrain_page_frame_begin, abtrain_page_frame_end};
}

std::string_view page_style() {
  return {abtrain_page_style_begin, abtrain_page_style_end};
}

std::string_view page_script() {
  return {abtrain_page_script_begin, abtrain_page_script_end};
}

std::string_view page_plots() {
  return {abtrain_page_plots_begin, abtrain_page_plots_end};
}

}  // namespace abtrain::report
