#include "python.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"

namespace abtrain::app {

namespace {

namespace fs = std::filesystem;

// PREFIX/bin/python3 for LibTorch in PREFIX/lib/pythonX.Y/site-packages/torch/lib; else empty.
std::string python_of_torch() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) == 0) {
    return "";
  }
  fs::path prefix = info.dli_fname;
  for (int i = 0; i < 6; ++i) {
    prefix = prefix.parent_path();
  }
  std::error_code ignored;
  const fs::path python = prefix / "bin/python3";
  return fs::exists(python, ignored) ? python.string() : "";
}

std::string find_python() {
  if (const auto named = env("ABTRAIN_PYTHON")) {
    return *named;
  }
  const std::string beside = python_of_torch();
  return beside.empty() ? "python3" : beside;
}

// The folder of the Python package: in a wheel, an installation or a clone.
std::string package_folder() {
  const fs::path place = fs::path(program_path()).parent_path();
  std::error_code ignored;
  for (const fs::path& folder :
       {place.parent_path().parent_path(), place.parent_path() / "share/abtrain/python",
        place.parent_path().parent_path() / "python"}) {
    if (fs::exists(folder / "abtrain/__init__.py", ignored)) {
      return folder.string();
    }
  }
  throw Error(
      ErrorKind::MissingInput,
      formatted("this needs the Python package abtrain, which is not beside {}", program_path()));
}

}  // namespace

void become_python(const std::string& file, const std::vector<std::string>& arguments) {
  // `python -m` would prefer modules of the current folder to Python's own.
  std::vector<std::string> words = {find_python(), package_folder() + "/abtrain/" + file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  throw Error(
      ErrorKind::MissingInput,
      formatted(
          "this needs Python with torch: '{}' cannot be run: {}; ABTRAIN_PYTHON names another one",
          words[0], std::generic_category().message(errno)));
}

}  // namespace abtrain::app
