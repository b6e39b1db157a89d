// A PNG or WebP in memory.
#include "data/images/image_decoder.h"
#include "target.h"

namespace abtrain::fuzz {

const std::vector<std::string>& words() {
  using namespace std::string_literals;
  static const std::vector<std::string> all = {
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
  return all;
}

}  // namespace abtrain::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace abtrain;
  static data::ImageDecoder decoder;
  fuzz::refusing({ErrorKind::DamagedData}, [&] {
    decoder.open({data, size});
    decoder.decode(1);
  });
  return 0;
}
