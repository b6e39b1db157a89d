// A pair of idx files, plain or gzipped: two bytes with the length of the
// first, the first, the second.
#include <algorithm>

#include "data/formats.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

const std::vector<std::string>& words() {
  using namespace std::string_literals;
  static const std::vector<std::string> all = {
      "\0\0\x08\x03"s,     "\0\0\x08\x01"s, "\x1f\x8b\x08\0"s, "\0\0\0\x02"s,
      "\xff\xff\xff\xff"s, "\0\0\0\x03"s,   "\0\0\0\x04"s};
  return all;
}

}  // namespace abtrain::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace abtrain;
  static const TempFolder folder;
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t length = size < 2 ? 0 : data[0] + 256U * data[1];
  const std::size_t end = std::min(size, 2 + length);
  const std::string images = folder.file("images"), labels = folder.file("labels");
  fuzz::write_file(images, text.substr(std::min<std::size_t>(size, 2), length));
  fuzz::write_file(labels, text.substr(end));
  fuzz::refusing({ErrorKind::DamagedData}, [&] { data::read_idx(images, labels, 10, {2, 3, 4}); });
  return 0;
}
