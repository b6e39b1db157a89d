#include "data/known_sets.h"

#include <utility>

#include "base/conflict.h"
#include "base/named.h"
#include "base/text.h"
#include "data/formats.h"

namespace abtrain::data {
namespace {

using Files = std::vector<std::string>;

ByteImages read_idx_set(const KnownSet& set, const Files& paths, std::int64_t count) {
  return read_idx(
      paths[0], paths[1], set.shape.classes, {count, set.shape.height, set.shape.width});
}

// If kLabelBytes is 2, the first byte is a coarse label, which is skipped.
template <std::int64_t kLabelBytes>
ByteImages read_cifar_set(const KnownSet& set, const Files& paths, std::int64_t count) {
  return read_cifar(paths, count / std::ssize(paths), set.shape.classes, kLabelBytes);
}

// Avoids a false warning of GCC 12 about an initializer list within the table's list.
DatasetShape shape_of_images(
    std::int64_t channels, std::int64_t height, std::int64_t width, std::int64_t classes,
    std::int64_t train, std::int64_t test) {
  return {{channels, height, width, classes}, train, test};
}

}  // namespace

std::vector<KnownSet> known_sets() {
  return {
      {.name = "fashion-mnist",
       .shape = shape_of_images(1, 28, 28, 10, 60'000, 10'000),
       .mean = {0.2860f},
       .std = {0.3530f},
       .train_files = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
       .test_files = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
       .folders = {"fashion-mnist", "FashionMNIST/raw"},
       .system_places = {"/usr/share/datasets/fashion-mnist"},
       .how_to_get = "apt install dataset-fashion-mnist, or the four files from "
                     "https://github.com/zalandoresearch/fashion-mnist",
       .layout = "ROOT/train-images-idx3-ubyte\n"
                 "ROOT/train-labels-idx1-ubyte\n"
                 "ROOT/t10k-images-idx3-ubyte\n"
                 "ROOT/t10k-labels-idx1-ubyte   (each may end in .gz)",
       .read = read_idx_set,
       .class_names =
           {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
            "Bag", "Ankle boot"}},
      {.name = "cifar10",
       .shape = shape_of_images(3, 32, 32, 10, 50'000, 10'000),
       .mean = {0.4914f, 0.4822f, 0.4465f},
       .std = {0.2023f, 0.1994f, 0.2010f},
       .train_files =
           {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
            "data_batch_5.bin"},
       .test_files = {"test_batch.bin"},
       .folders = {"cifar-10-batches-bin"},
       .how_to_get = "the binary version of "
                     "https://www.cs.toronto.edu/~kriz/cifar.html, unpacked",
       .layout = "ROOT/cifar-10-batches-bin/data_batch_1.bin ... "
                 "data_batch_5.bin\n"
                 "ROOT/cifar-10-batches-bin/test_batch.bin",
       .read = read_cifar_set<1>,
       .class_names =
           {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
            "truck"}},
      {.name = "cifar100",
       .shape = shape_of_images(3, 32, 32, 100, 50'000, 10'000),
       .mean = {0.5071f, 0.4865f, 0.4409f},
       .std = {0.2673f, 0.2564f, 0.2762f},
       .train_files = {"train.bin"},
       .test_files = {"test.bin"},
       .folders = {"cifar-100-binary"},
       .how_to_get = "the binary version of CIFAR-100 from "
                     "https://www.cs.toronto.edu/~kriz/cifar.html, unpacked",
       .layout = "ROOT/cifar-100-binary/train.bin\n"
                 "ROOT/cifar-100-binary/test.bin",
       .read = read_cifar_set<2>},
      {.name = "image-folder",
       .shape = shape_of_images(3, 0, 0, 0, 0, 0),
       .mean = {0.485f, 0.456f, 0.406f},
       .std = {0.229f, 0.224f, 0.225f},
       .train_files = {"train"},
       .folders = {"image-folder"},
       .how_to_get = "JPEG, PNG or WebP files of your own, or ImageNet's from "
                     "https://image-net.org, with its validation images moved "
                     "into a folder for each class",
       .layout = "ROOT/train/CLASS/NAME.jpg   (or .jpeg, .png, .webp, in any case)\n"
                 "ROOT/val/CLASS/NAME.jpg     (only classes that train has; or test, or both)\n"
                 "or ROOT/CLASS/NAME.jpg, of which data.test_share are for the test"},
      {.name = "gcide",
       .shape = shape_of_images(0, 0, 0, 0, 0, 0),
       .train_files = {"gcide.dict"},
       .folders = {"gcide"},
       .system_places = {"/usr/share/dictd"},
       .how_to_get = "scripts/setup.sh, or Debian's package dict-gcide (40 MB "
                     "of English: the GNU Collaborative International "
                     "Dictionary)",
       .layout = "ROOT/gcide.dict   (may end in .dz or .gz)",
       .is_text = true},
      {.name = "text",
       .shape = shape_of_images(0, 0, 0, 0, 0, 0),
       .how_to_get = "any files of your own; data.root names them",
       .layout = "ROOT, a file or a folder of files, each plain or gzipped",
       .is_text = true},
      {.name = "arrays",
       .shape = shape_of_images(0, 0, 0, 0, 0, 0),
       .how_to_get = "arrays of your own, which abtrain.save_arrays of the Python module writes; "
                     "data.root names their folder",
       .layout = "ROOT/train.safetensors   (tensors x and y)\n"
                 "ROOT/test.safetensors    (may be missing)\n"
                 "or ROOT/train_x.npy, ROOT/train_y.npy, ROOT/test_x.npy, ROOT/test_y.npy",
       .is_arrays = true}};
}

std::vector<std::string> dataset_names() {
  return names_in(known_sets());
}

std::string channels_wanted(std::int64_t channels, std::size_t given) {
  return formatted(
      "expected {}{}, one per channel, got {}", channels, channels == 1 ? " value" : " values",
      given);
}

KnownSet find_set(const std::string& name) {
  for (KnownSet& set : known_sets()) {
    if (set.name == name) {
      return std::move(set);
    }
  }
  const std::vector<std::string> names = dataset_names();
  const std::string near = nearest(name, names);
  throw ConflictError(
      {{"data.name"},
       formatted(
           "expected one of {}; got '{}'{}", join(names, ", "), name,
           near.empty() ? "" : formatted(" (did you mean '{}'?)", near))});
}

bool has_files(const DataOptions& options) {
  return find_set(options.name).has_files();
}

bool is_text(const DataOptions& options) {
  return find_set(options.name).is_text;
}

bool is_arrays(const DataOptions& options) {
  return find_set(options.name).is_arrays;
}

std::int64_t vocabulary_of(const DataOptions& options) {
  constexpr std::int64_t kBytes = 256;
  constexpr std::int64_t kGpt2 = 50257;
  return options.vocabulary.value_or(options.tokens == TokenType::Bytes ? kBytes : kGpt2);
}

const char* examples_of(const DataOptions& options) {
  const KnownSet set = find_set(options.name);
  return set.is_text ? "windows" : set.is_arrays ? "examples" : "images";
}

}  // namespace abtrain::data
