// A CIFAR file of two records, of one label or two.
#include "data/formats.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

const std::vector<std::string>& words() {
  using namespace std::string_literals;
  static const std::vector<std::string> all = {"\0"s,
                                               "\x09",
                                               "\x63",
                                               "\xff",
                                               "\x1f\x8b\x08\0"s,
                                               std::string(3073, '\1'),
                                               std::string(3074, '\2')};
  return all;
}

}  // namespace abtrain::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace abtrain;
  static const TempFolder folder;
  const std::string path = folder.file("batch.bin");
  fuzz::write_file(path, fuzz::text_of(data, size));
  fuzz::refusing({ErrorKind::DamagedData}, [&] { data::read_cifar({path}, 2, 10); });
  const std::string first = fuzz::outcome();
  fuzz::refusing({ErrorKind::DamagedData}, [&] { data::read_cifar({path}, 2, 100, 2); });
  fuzz::outcome() = first + "; " + fuzz::outcome();
  return 0;
}
