// A safetensors file, or after a 'J' only its header, or after an 'I' an index
// of shards.
#include <cstring>

#include "target.h"
#include "temp_folder.h"
#include "weights/weight_files.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {
    "{\"",
    "\":",
    "\"dtype\":",
    "\"F32\"",
    "\"F64\"",
    "\"BF16\"",
    "\"I64\"",
    "\"shape\":",
    "\"data_offsets\":",
    "[0,4]",
    "[0,0]",
    "[]",
    "{}",
    "[",
    "{",
    "\"__metadata__\":",
    "\"format\":\"pt\"",
    "\"weight_map\":",
    ",",
    "}",
    "\"a.safetensors\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "1e999",
    "null",
    "\xff",
    "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"};

void read_input(std::string_view text) {
  static const TempFolder folder;
  std::string path = folder.file("a.safetensors");
  if (text.starts_with('J')) {
    const std::uint64_t length = text.size() - 1;
    std::string begin(8, '\0');
    std::memcpy(begin.data(), &length, 8);
    write_file(path, begin + std::string(text.substr(1)) + std::string(64, '?'));
  } else if (text.starts_with('I')) {
    const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
    write_file(
        path,
        std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "?");
    path = folder.file("model.safetensors.index.json");
    write_file(path, text.substr(1));
  } else {
    write_file(path, text);
  }
  // A shard that an index names may not be there, or be a folder.
  refusing({ErrorKind::DamagedData, ErrorKind::MissingInput, ErrorKind::Io}, [&] {
    const weights::WeightFiles files(path);
    for (const weights::WeightFiles::Item& item : files.tensors()) {
      if (state::float_type(item.tensor->dtype)) {
        item.file->load(*item.tensor);
      }
      item.file->read(item.tensor->name, item.tensor->sizes);
    }
  });
}

}  // namespace abtrain::fuzz
