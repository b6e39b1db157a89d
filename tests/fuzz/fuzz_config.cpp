// The configuration of a run. What is read must print as a configuration that
// reads back to the same.
#include <stdexcept>

#include "config/config.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {
    "extends: ",   "a: ",         "- ",        ": ",       "[",    "]",
    "{",           "}",           "\"",        "'",        "\\",   "#",
    "|\n  ",       ">-\n",        "? ",        "&a ",      "*a",   "<<: ",
    "!!str ",      "---\n",       "...\n",     "\t",       "\r\n", "\xEF\xBB\xBF",
    "%YAML 1.2\n", "~",           "null",      "true",     "0x7f", "1e400",
    ".inf",        "workers: ",   "method: {", "name: ",   "[[",   "{{",
    ",",           "epochs",      "steps",     "5 epochs", "\n",   "\n  ",
    "\n    - ",    "\"\\u0000\"", "\"\\x41",   "''",       "@",    "`"};

void read_input(std::string_view input) {
  static const TempFolder folder;
  const std::string path = folder.file("config.yaml");
  write_file(path, input);
  refusing({ErrorKind::Config, ErrorKind::MissingInput}, [&] {
    const std::string text = config::to_yaml(config::read_config(path));
    write_file(path, text);
    if (config::to_yaml(config::read_config(path)) != text) {
      throw std::logic_error("it does not print as what it is:\n" + text);
    }
  });
}

}  // namespace abtrain::fuzz
