// The parts of the HTML report that are files of the source tree, and
// plotly.js. All of them are embedded in the program (base/embed.h).
#pragma once

#include <string_view>

namespace abtrain::report {

// page_frame() holds the marks {{style}}, {{plotly}}, {{data}}, {{script}} and {{plots}}, in this
// order, in the places where the other parts belong.
std::string_view page_frame();
std::string_view page_style();
std::string_view page_script();
std::string_view page_plots();

// Throws Error(MissingInput) in a build without plotly.js.
std::string_view plotly_script();

}  // namespace abtrain::report
