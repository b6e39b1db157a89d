// Which folders of a data set of image files are its parts, by their names in any case:
//   train, training
//   val, valid, validation, dev
//   test, testing, eval, evaluation
// A part holds a folder for each class. A folder of such a name that holds images and no folders is
// a class if it lies beside other classes.
#pragma once

#include <string>
#include <vector>

namespace abtrain::data {

// The part whose classes lie in the root itself.
inline constexpr const char* kRootPart = ".";

// Names of folders below the root; "" where there is no such part.
struct ImageParts {
  std::string train = kRootPart;
  std::string validation = {}, test = {};
  std::vector<std::string> unread = {};  // other folders beside the parts
  std::vector<std::string> doubts = {};  // readings that the user may not have meant
};

// Throws Error(DamagedData) for two folders that are the same part, and for images that lie in no
// class; MissingInput for parts without one for training.
ImageParts find_image_parts(const std::string& root);

// True if the root has a folder of training images.
bool has_training_part(const std::string& root);

}  // namespace abtrain::data
