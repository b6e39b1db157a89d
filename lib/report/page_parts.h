// The parts of the HTML report that are files of the source tree, and
// plotly.js: all are in the program.
#pragma once

#include <string_view>

namespace abtrain::report {

// Marks of the page, in this order: {{style}}, {{plotly}}, {{data}},
// {{script}},
// {{plots}}.
std::string_view page_frame();
std::string_view page_style();
std::string_view page_script();
std::string_view page_plots();

// Throws Error(MissingInput) in a build without it.
std::string_view plotly_script();

}  // namespace abtrain::report
