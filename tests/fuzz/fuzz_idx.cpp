// A pair of idx files, plain or gzipped: two bytes with the length of the
// first, the first, the second.
#include <algorithm>

#include "data/formats.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

using namespace std::string_literals;

const std::vector<std::string> kWords = {"\0\0\x08\x03"s, "\0\0\x08\x01"s,     "\x1f\x8b\x08\0"s,
                                         "\0\0\0\x02"s,   "\xff\xff\xff\xff"s, "\0\0\0\x03"s,
                                         "\0\0\0\x04"s};

void read_input(std::string_view text) {
  static const TempFolder folder;
  const auto bytes = bytes_of(text);
  const std::size_t size = text.size();
  const std::size_t length = size < 2 ? 0 : bytes[0] + 256U * bytes[1];
  const std::size_t end = std::min(size, 2 + length);
  const std::string images = folder.file("images"), labels = folder.file("labels");
  write_file(images, text.substr(std::min<std::size_t>(size, 2), length));
  write_file(labels, text.substr(end));
  refusing({ErrorKind::DamagedData}, [&] { data::read_idx(images, labels, 10, {2, 3, 4}); });
}

}  // namespace abtrain::fuzz
