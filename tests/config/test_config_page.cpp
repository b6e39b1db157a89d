// docs/config.md is generated from the option tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/mapped.h"
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

A duration is a number of steps (`110`, `110 steps`) or of epochs (`2 epochs`,
`0.5 epochs`), or a share of the run (`5 %`).

A key under "With ..." belongs to these choices only. With another choice, it is
an error on the command line, unless the choice stands after it; in a file it is
left out, and the log says so. So `method.name=ddp` at the end works with any
file and any overrides. `method.outer.wire` and
`method.full_phase.reducer` have the keys of `reducer`.
)";

std::string cell(const std::string& text) {
  return replaced(replaced(text, "|", "\\|"), "<", "&lt;");
}

// The introduction says how durations are written.
std::string row(const std::string& name, const std::string& value, const Field& field) {
  const std::string wanted = replaced(field.wanted, ", as in 110, 2 epochs or 5 %", "");
  return formatted("| `{}` | {} | {} | {} |\n", name, value, cell(wanted), cell(field.help));
}

// A key's owners, or none if these are all the choices that there are.
std::vector<std::string> owners_of(const Field& field, const std::vector<Field>& section) {
  const auto decider = std::ranges::find(section, field.decided_by, &Field::key);
  const bool all = decider != section.end() && field.owners.size() == decider->choices.size();
  return all ? std::vector<std::string>{} : field.owners;
}

// The choices that a table is for: "a, b", or "any but c" where that is shorter.
std::string choices_text(
    const std::vector<std::string>& owners, const std::vector<std::string>& all) {
  std::vector<std::string> others;
  for (const std::string& choice : all) {
    if (std::ranges::count(owners, choice) == 0) {
      others.push_back(choice);
    }
  }
  return 2 * others.size() <= owners.size() ? "any but " + join(others, ", ") : join(owners, ", ");
}

constexpr const char* kHead = "\n| key | default | value | meaning |\n|---|---|---|---|\n";

// Tables of the keys of a section: of those that belong to every choice, then of those of each one.
void tables(
    const std::vector<Field>& fields, const std::string& prefix,
    const std::vector<std::string>& reducer_keys, std::string& out) {
  std::vector<std::vector<std::string>> owners = {{}};
  for (const Field& field : fields) {
    if (std::ranges::count(owners, owners_of(field, fields)) == 0) {
      owners.push_back(owners_of(field, fields));
    }
  }
  for (const std::vector<std::string>& choices : owners) {
    std::string rows;
    std::string below;
    for (const Field& field : fields) {
      const std::string name = prefix + field.key;
      if (owners_of(field, fields) != choices) {
        continue;
      }
      if (!field.is_section()) {
        rows += row(name, "`" + field.print() + "`", field);
      } else if (mapped(field.section, &Field::key) == reducer_keys) {
        rows += row(name, "`{name: " + field.section.front().print() + "}`", field);
      } else {
        below += "\n`" + name + "`: " + cell(field.help) + ".\n";
        tables(field.section, name + ".", reducer_keys, below);
      }
    }
    if (!choices.empty() && !rows.empty()) {
      const std::string& decider = std::ranges::find(fields, choices, &Field::owners)->decided_by;
      const auto decides = std::ranges::find(fields, decider, &Field::key);
      out += "\nWith `" + prefix + decider + "` " + choices_text(choices, decides->choices) + ":\n";
    }
    out += rows.empty() ? "" : kHead + rows;
    out += below;
  }
}

// The page: every key with its default, range and help.
std::string describe_options() {
  RunOptions defaults;
  const Fields all = fields_of(defaults);
  std::vector<Field> top;
  std::vector<std::string> reducer_keys;
  for (const Field& field : all.list()) {
    if (!field.is_section()) {
      top.push_back(field);
    } else if (field.key == "reducer") {
      reducer_keys = mapped(field.section, &Field::key);
    }
  }
  std::string out =
      "# Configuration\n\nThis page is generated from the program's own "
      "tables.\n\n" +
      kIntroduction;
  out += "\n## The run\n";
  tables(top, "", reducer_keys, out);
  for (const Field& field : all.list()) {
    if (field.is_section()) {
      out += formatted("\n## `{}`: {}\n", field.key, field.help);
      tables(field.section, field.key + ".", reducer_keys, out);
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
