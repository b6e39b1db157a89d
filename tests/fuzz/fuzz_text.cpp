// The tokens of a text, plain or gzipped: a byte that chooses their type, then
// the file.
#include <filesystem>

#include "data/augment.h"
#include "data/data_options.h"
#include "data/dataset.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

using namespace std::string_literals;

const std::vector<std::string> kWords = {
    "\x1f\x8b\x08\0"s,
    "\x88\xd8\x34\x01\x01\0\0\0"s,  // llm.c's header of 16 bits
    "\xa1\xd9\x34\x01\x07\0\0\0"s,  // and of 32
    "\xff\xff\xff\xff"s, std::string(1024, '\0')};

void read_input(std::string_view input) {
  static const TempFolder folder;
  static const int is_set = ::setenv("XDG_CACHE_HOME", folder.file("cache").c_str(), 1);
  data::DataOptions options;
  options.name = "text";
  options.root = folder.file("text");
  options.context = 3;
  options.test_share = 0.3;
  options.tokens =
      static_cast<data::TokenType>(!input.empty() && is_set == 0 ? bytes_of(input)[0] % 3 : 0);
  write_file(*options.root, input.substr(input.empty() ? 0 : 1));
  // Config: shorter than a window.
  refusing({ErrorKind::DamagedData, ErrorKind::Config}, [&] {
    const data::Dataset set = data::load_dataset(options);
    data::Augment(options, set, 1).evaluation(set.test, 0, set.test.size());
  });
  std::filesystem::remove_all(folder.file("cache"));
}

}  // namespace abtrain::fuzz
