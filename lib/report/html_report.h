// Formats a comparison as one HTML file with its style, scripts (plotly.js among them) and data. A
// content security policy in its head forbids the browser to load anything else.
//
// Throws Error(MissingInput) in a build without plotly.js.
#pragma once

#include <string>
#include <vector>

#include "report/columns.h"
#include "report/compare.h"

namespace abtrain::report {

// `made`: a line for the head of the page that says what made it and when.
std::string as_html(
    const Comparison& comparison, const std::vector<Column>& columns, const std::string& made);

}  // namespace abtrain::report
