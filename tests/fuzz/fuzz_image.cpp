// A PNG or WebP in memory.
#include "data/images/image_decoder.h"
#include "target.h"

namespace abtrain::fuzz {

using namespace std::string_literals;

const std::vector<std::string> kWords = {
    "\x89PNG\r\n\x1a\n"s,
    "\0\0\0\x0dIHDR"s,
    "PLTE"s,
    "tRNS"s,
    "IDAT"s,
    "IEND"s,
    "RIFF"s,
    "WEBPVP8 "s,
    "WEBPVP8L"s,
    "WEBPVP8X"s,
    "ALPH"s,
    "ANIM"s,
    "\xff\xff\xff\xff"s};

void read_input(std::string_view input) {
  static data::ImageDecoder decoder;
  refusing({ErrorKind::DamagedData}, [&] {
    decoder.open(bytes_of(input));
    decoder.decode(1);
  });
}

}  // namespace abtrain::fuzz
