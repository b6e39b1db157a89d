#include "data/data_check.h"

#include <utility>

#include "data/known_sets.h"

namespace abtrain::data {
namespace {

void refuse_key(bool given, const char* key, const char* message, Conflicts& out) {
  conflict_if(given, out, {key, "data.name"}, "{}", message);
}

// Checks the keys of a data set of images that are held in memory (a known set, or arrays).
void check_images(const DataOptions& o, Conflicts& out) {
  if (!is_arrays(o)) {  // check() reads no file
    try {
      dataset_shape(o);
    } catch (const ConflictError& error) {
      out.push_back(error.conflict());
    }
  }
  conflict_if(
      is_arrays(o) && !o.root, out, {"data.root", "data.name"},
      "expected the folder that holds train.safetensors, with the tensors x and y "
      "(abtrain.save_arrays of the Python module writes it), or train_x.npy and train_y.npy; "
      "got auto");
  conflict_if(
      o.subset > 0 && o.validation >= o.subset, out, {"data.validation", "data.subset"},
      "expected less than data.subset ({}), got {}", o.subset, o.validation);
  conflict_if(
      o.on_device == true && (o.standardize || o.pool > 0), out,
      {"data.on_device", o.standardize ? "data.standardize" : "data.pool"},
      "images are kept on a GPU as bytes, but {} images are not bytes; "
      "expected auto or false",
      o.standardize ? "standardized" : "pooled");
  for (const auto& [key, values] :
       {std::pair{"data.mean", &o.mean}, std::pair{"data.std", &o.std}}) {
    conflict_if(
        o.standardize && !values->empty(), out, {key, "data.standardize"},
        "standardized images take each pixel's own mean and standard deviation; expected none");
  }
}

void check_text(const DataOptions& o, Conflicts& out) {
  refuse_key(
      !o.root && find_set(o.name).train_files.empty(), "data.root",
      "expected the file or folder that holds the text, got auto", out);
  refuse_key(
      o.tokens == TokenType::Bytes && vocabulary_of(o) < 256, "data.vocabulary",
      "bytes are 256 tokens; expected at least as many", out);
}

void check_image_folder(const DataOptions& o, Conflicts& out) {
  conflict_if(
      o.resize < o.image_size, out, {"data.resize", "data.image_size", "data.name"},
      "expected at least data.image_size ({}), got {}", o.image_size, o.resize);
  refuse_key(
      o.crop_scale.size() != 2 || o.crop_scale[0] > o.crop_scale[1], "data.crop_scale",
      "expected two shares, the smaller one first", out);
}

}  // namespace

Conflicts check(const DataOptions& o) {
  const KnownSet set = find_set(o.name);
  Conflicts out;
  if (set.is_text) {
    check_text(o, out);
    return out;
  }
  if (!set.is_arrays) {
    for (const auto& [key, values] :
         {std::pair{"data.mean", &o.mean}, std::pair{"data.std", &o.std}}) {
      conflict_if(
          !values->empty() && std::ssize(*values) != set.shape.channels, out, {key, "data.name"},
          "{}", channels_wanted(set.shape.channels, values->size()));
    }
  }
  if (set.has_files()) {
    check_image_folder(o, out);
  } else {
    check_images(o, out);
  }
  return out;
}

}  // namespace abtrain::data
