// Text that commands write for programs, and that people open too: CSV and
// JSON. Names in it come from files that others write; neither a terminal nor a
// spreadsheet may act on them.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace abtrain {

// One line without its end, with quotes as in RFC 4180. Cells are shown as by
// printable(), and a cell that a spreadsheet would take for a formula (it
// begins with =, +, - or @ and is not a number) gets a ' in front.
std::string csv_line(const std::vector<std::string>& cells);

// JSON with a newline at its end, in ASCII: other characters are written as
// \uNNNN, which reads back as the same text. What is not UTF-8 becomes \ufffd.
// `indent` -1: on one line.
std::string json_text(const nlohmann::ordered_json& value, int indent = 2);

}  // namespace abtrain
