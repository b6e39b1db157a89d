// The documentation as a whole.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "base/files.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;

TEST(DocsLinks, LeadToFiles) {
  const fs::path root = ABTRAIN_SOURCE_DIR;
  std::vector<fs::path> pages = {root / "README.md", root / "CONTRIBUTING.md"};
  for (const char* folder : {"docs", "slurm"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") {
        pages.push_back(entry.path());
      }
    }
  }
  const std::regex link(R"(\]\(([^)#\s]+)[^)]*\))");
  int found = 0;
  for (const fs::path& page : pages) {
    const std::string text = read_file(page.string());
    for (std::sregex_iterator it(text.begin(), text.end(), link), end;
         it != end;
         ++it) {
      const std::string target = (*it)[1];
      if (target.find("://") == std::string::npos) {
        EXPECT_TRUE(fs::exists(page.parent_path() / target))
            << page << " links to " << target;
        ++found;
      }
    }
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace abtrain::train
