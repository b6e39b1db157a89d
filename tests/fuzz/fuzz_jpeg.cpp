// A JPEG in memory, decoded in full and smaller.
#include "data/images/jpeg.h"
#include "target.h"

namespace abtrain::fuzz {

using namespace std::string_literals;

const std::vector<std::string> kWords = {
    "\xff\xd8\xff"s,
    "\xff\xd9"s,
    "\xff\xda\0\x08\x01\x01\0\0\x3f\0"s,
    "\xff\xda\0\x08\x01\x01\0\0\0\0"s,
    "\xff\xda\0\x08\x01\x01\0\x01\x3f\0"s,
    "\xff\xc2\0\x11"s,
    "\xff\xc0\0\x11"s,
    "\xff\xc9\0\x11"s,
    "\xff\xc4"s,
    "\xff\xdb\0\x43"s,
    "\xff\xdd\0\x04\0\x01"s,
    "\xff\xd0"s,
    "\xff\0"s,
    "\xff\xee\0\x0e"
    "Adobe"s,
    "\xff\xe0\0\x10JFIF\0"s,
    "\xff\xff\xff"s};

void read_input(std::string_view input) {
  static data::JpegDecoder decoder;
  refusing({ErrorKind::DamagedData}, [&] {
    decoder.open(bytes_of(input));
    decoder.decode(8);
    decoder.decode(1);
  });
}

}  // namespace abtrain::fuzz
