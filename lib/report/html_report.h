// A comparison as one HTML file that needs nothing else: its style, its
// scripts (plotly.js among them) and its data are in it, and a policy in its
// head forbids the browser to load anything.
//
// Errors: Error(MissingInput) where this build has no plotly.js.
#pragma once

#include <string>
#include <vector>

#include "report/columns.h"
#include "report/compare.h"

namespace abtrain::report {

// `made`: by what and when, for the head of the page.
std::string as_html(
    const Comparison& comparison,
    const std::vector<Column>& columns,
    const std::string& made);

}  // namespace abtrain::report
