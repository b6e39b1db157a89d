// docs/config.md is generated from the option tables.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/options_apply.h"
#include "base/text.h"
#include "config/config.h"

namespace abtrain::config {
namespace {

const std::string kIntroduction =
    R"(A configuration is a YAML file; keys that it leaves out have the defaults
below. `extends: other.yaml` (or a list of files) starts from other files, which
are looked for next to the file and in the `configs` folders; `a.b=value` after
the configuration on the command line, or `--set a.b=value`, overrides single
keys. The order is default, extended files, file, overrides; the last one counts.
Where `train.steps` is overridden, here or by a sweep, the files' warm-ups (in
steps or epochs) that do not fit into the run are shortened to a tenth of it, and
the log says so; a warm-up that is overridden too stays as it is.

A length is a number of steps (`110`, `110 steps`) or of epochs (`2 epochs`,
`0.5 epochs`), or a share of the run (`5 %`). Keys of a method, optimizer or
rank rule that is not chosen are checked, but not used.
)";

std::string cell(const std::string& text) {
  return replaced(replaced(text, "|", "\\|"), "<", "&lt;");
}

void table(
    const std::string& title, const std::vector<Field>& fields, const std::string& prefix,
    std::string& out) {
  out += "\n## " + title + "\n\n| key | default | value | meaning |\n";
  out += "| --- | --- | --- | --- |\n";
  each_key(
      fields,
      [&](const std::string& name, const Field& field) {
        out += formatted("| `{}` | `{}` | ", name, field.print());
        out += cell(field.wanted) + " | " + cell(field.help) + " |\n";
      },
      prefix);
}

// The page: every key with its default, range and help.
std::string describe_options() {
  RunOptions defaults;
  const Fields all = fields_of(defaults);
  std::vector<Field> top;
  for (const Field& field : all.list()) {
    if (!field.is_section()) {
      top.push_back(field);
    }
  }
  std::string out =
      "# Configuration\n\nThis page is generated from the program's own "
      "tables.\n\n" +
      kIntroduction;
  table("The run", top, "", out);
  for (const Field& field : all.list()) {
    if (field.is_section()) {
      table(formatted("`{}`: {}", field.key, field.help), field.section, field.key, out);
    }
  }
  return out;
}

// ABTRAIN_UPDATE_DOCS=1 test_config --gtest_filter=Docs.* writes the page anew.
TEST(Docs, ConfigPageIsThatOfTheTables) {
  const std::string page = std::string(ABTRAIN_SOURCE_DIR) + "/docs/config.md";
  if (std::getenv("ABTRAIN_UPDATE_DOCS") != nullptr) {
    atomic_write(page, describe_options());
  }
  EXPECT_TRUE(read_file(page) == describe_options())
      << page << " is not what the tables say; "
      << "run ABTRAIN_UPDATE_DOCS=1 test_config --gtest_filter='Docs.*'";
}

}  // namespace
}  // namespace abtrain::config
