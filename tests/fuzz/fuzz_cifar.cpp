// A CIFAR file of two records, of one label or two.
#include "data/formats.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

using namespace std::string_literals;

const std::vector<std::string> kWords = {"\0"s,
                                         "\x09",
                                         "\x63",
                                         "\xff",
                                         "\x1f\x8b\x08\0"s,
                                         std::string(3073, '\1'),
                                         std::string(3074, '\2')};

void read_input(std::string_view input) {
  static const TempFolder folder;
  const std::string path = folder.file("batch.bin");
  write_file(path, input);
  refusing({ErrorKind::DamagedData}, [&] { data::read_cifar({path}, 2, 10); });
  const std::string first = outcome();
  refusing({ErrorKind::DamagedData}, [&] { data::read_cifar({path}, 2, 100, 2); });
  outcome() = first + "; " + outcome();
}

}  // namespace abtrain::fuzz
