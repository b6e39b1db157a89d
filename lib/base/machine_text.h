// The CSV and JSON output of commands. It contains names from files that others wrote, so it is
// escaped: neither a terminal nor a spreadsheet may take a name for a command.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace abtrain {

// One line of CSV without the newline, quoted as in RFC 4180. Cells are escaped by printable(). A
// cell that a spreadsheet would take for a formula (it begins with =, +, - or @ and is not a
// number) gets a leading '.
std::string csv_line(const std::vector<std::string>& cells);

// JSON in ASCII with a final newline. Other characters are escaped as \uNNNN, which reads back as
// the same text; bytes that are not UTF-8 become \ufffd. `indent` -1: on one line.
std::string json_text(const nlohmann::ordered_json& value, int indent = 2);

}  // namespace abtrain
