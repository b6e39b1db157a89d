// Arrays of a user: a byte whose lowest bit says that the file is of numpy.save, then the
// file of x, which is y as well; or a safetensors file.
#include <filesystem>

#include "data/augment.h"
#include "data/data_options.h"
#include "data/dataset.h"
#include "target.h"
#include "temp_folder.h"

namespace abtrain::fuzz {

using namespace std::string_literals;

const std::vector<std::string> kWords = {
    "\x93NUMPY\x01\0"s,
    "'descr': '<i8'",
    "'descr': '|u1'",
    "'fortran_order': False",
    "'shape': (2, 4611686018427387904)",
    "(1,)",
    "{\"x\":{\"dtype\":\"U8\",\"shape\":[2,3],",
    "\"data_offsets\":[0,6]}",
    "\"__metadata__\":{\"classes\":\"[]\"}",
    "\xff\xff\xff\xff"};

void read_input(std::string_view input) {
  static const TempFolder folder;
  data::DataOptions options;
  options.name = "arrays";
  options.root = folder.file("arrays");
  options.test_share = 0.3;
  std::filesystem::remove_all(*options.root);
  std::filesystem::create_directory(*options.root);
  const std::string_view text = input.substr(input.empty() ? 0 : 1);
  if (!input.empty() && bytes_of(input)[0] % 2 == 1) {
    write_file(*options.root + "/train_x.npy", text);
    write_file(*options.root + "/train_y.npy", text);
  } else {
    write_file(*options.root + "/train.safetensors", text);
  }
  refusing({ErrorKind::DamagedData, ErrorKind::Config}, [&] {  // Config: what may be either task
    const data::Dataset set = data::load_dataset(options);
    data::Augment(options, set, 1).evaluation(set.test, 0, set.test.size());
  });
}

}  // namespace abtrain::fuzz
