// A sweep file, and the configurations of its points.
#include "sweep/resolve_points.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {
    "base: base\n",
    "set: ",
    "grid:\n",
    "list: ",
    "exclude: ",
    "seeds: ",
    "name: ",
    "output: ",
    "[1, 2]",
    "{",
    "}",
    "[",
    "]",
    "- ",
    ": ",
    ", ",
    "workers: ",
    "method.rank",
    "rule: fixed",
    "seed",
    "\"",
    "'",
    "\n  ",
    "100000",
    "[[",
    "{a: ",
    "*a",
    "&a ",
    "~",
    "../",
    "\\n",
    "|\n"};

void read_input(std::string_view input) {
  static const TempFolder folder;
  static const std::string base =
      folder.add("configs/base.yaml", "workers: 4\nmethod: {name: ab}\n");
  const std::string path = folder.file("sweep.yaml");
  write_file(path, input);
  refusing({ErrorKind::Config, ErrorKind::MissingInput}, [&] {
    const std::vector<std::string> folders = {folder.file("configs")};
    sweep::SweepArgs args;
    args.file = path;
    const sweep::Sweep read = sweep::read_sweep(args, folders);
    const auto points = sweep::list_points(read);
    // Many take long because they are many.
    if (points.size() <= 20) {
      sweep::resolve_all(read);
    }
  });
}

}  // namespace abtrain::fuzz
