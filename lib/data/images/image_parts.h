// Decides which folders of an image data set are its parts, by their names in any case:
//   train, training
//   val, valid, validation, dev
//   test, testing, eval, evaluation
// A part holds a folder for each class. A folder with one of these names that holds images but no
// folders is a class if other classes lie beside it.
#pragma once

#include <string>
#include <vector>

namespace abtrain::data {

// Stands for a part whose class folders lie directly in the root.
inline constexpr const char* kRootPart = ".";

// Names of the parts' folders below the root; "" if there is no such part.
struct ImageParts {
  std::string train = kRootPart;
  std::string validation = {}, test = {};
  std::vector<std::string> unread = {};  // other folders beside the parts
  std::vector<std::string> doubts = {};  // warnings of unusual or ambiguous folders
};

// Throws Error(DamagedData) for two folders that are the same part, and for images outside of class
// folders; MissingInput if there are parts but no training part.
ImageParts find_image_parts(const std::string& root);

bool has_training_part(const std::string& root);

}  // namespace abtrain::data
