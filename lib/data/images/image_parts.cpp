#include "data/images/image_parts.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/mapped.h"
#include "base/text.h"
#include "data/images/image_listing.h"

namespace abtrain::data {
namespace {

namespace fs = std::filesystem;

enum class PartRole { Train, Validation, Test };

constexpr std::pair<std::string_view, PartRole> kPartNames[] = {
    {"train", PartRole::Train},    {"training", PartRole::Train},
    {"val", PartRole::Validation}, {"valid", PartRole::Validation},
    {"dev", PartRole::Validation}, {"validation", PartRole::Validation},
    {"test", PartRole::Test},      {"testing", PartRole::Test},
    {"eval", PartRole::Test},      {"evaluation", PartRole::Test}};

constexpr const char* kArrangement =
    "Expected ROOT/train/CLASS/NAME.jpg, and ROOT/val or ROOT/test likewise, or "
    "ROOT/CLASS/NAME.jpg; put all classes into ROOT/train if one of them has the name of a part";

std::optional<PartRole> role_of(const std::string& name) {
  const auto* found = std::ranges::find(
      kPartNames, lower_case(name), &std::pair<std::string_view, PartRole>::first);
  return found == std::end(kPartNames) ? std::nullopt : std::optional(found->second);
}

// A folder with the name of a part.
struct NamedPart {
  std::string name;
  PartRole role;
  bool has_folders, has_images;

  bool is_like_class() const {
    return has_images && !has_folders;
  }
};

std::string names_of(const std::vector<NamedPart>& parts) {
  return listed(mapped(parts, [](const NamedPart& part) { return printable(part.name); }));
}

struct RootFolders {
  std::vector<NamedPart> named;
  std::vector<std::string> others;
};

RootFolders folders_of(const std::string& root) {
  RootFolders found;
  // A link to another folder of the same part is not a part of its own.
  std::set<std::pair<PartRole, fs::path>> seen;
  for (std::string& name : lines_of(list_images_in(root, kRootPart).folders)) {
    const std::optional<PartRole> role = role_of(name);
    if (!role) {
      found.others.push_back(std::move(name));
    } else if (seen.emplace(*role, real_path(fs::path(root) / name)).second) {
      const ListedFolder inside = list_images_in(root, name);
      found.named.push_back(
          {std::move(name), *role, !inside.folders.empty(), inside.image_count > 0});
    }
  }
  return found;
}

// Returns the name of the only folder with this role that holds classes, or "". Adds a doubt to
// `out` for each folder with this role that holds none. `is_needed`: no other part can replace this
// one.
std::string take_part(
    const std::string& root, const std::vector<NamedPart>& named, PartRole role, const char* what,
    bool is_needed, ImageParts& out) {
  std::vector<NamedPart> all, sound;
  std::ranges::copy_if(
      named, std::back_inserter(all), [&](const NamedPart& each) { return each.role == role; });
  std::ranges::copy_if(all, std::back_inserter(sound), &NamedPart::has_folders);
  ABT_CHECK(
      sound.size() <= 1, DamagedData,
      "{}: expected one folder of {} images, found {}; join them, or move all but one elsewhere",
      root, what, names_of(sound));
  for (const NamedPart& each : all) {
    if (each.has_folders) {
      continue;
    }
    ABT_CHECK(
        !sound.empty() || !is_needed, DamagedData,
        "{}/{}: expected a folder for each class, found none{}", root, printable(each.name),
        each.has_images ? "; the images in it have no class. Move it elsewhere, or give each class "
                          "a folder in it"
                        : "");
    out.doubts.push_back(formatted(
        "{}/{} is not read, since it has no folder for each class", root, printable(each.name)));
  }
  return sound.empty() ? "" : sound.front().name;
}

// Returns the parts of a root that has a training folder.
ImageParts named_parts(const std::string& root, const RootFolders& folders) {
  ImageParts out;
  const auto has = [&](PartRole role) {
    return std::ranges::any_of(folders.named, [&](const NamedPart& each) {
      return each.role == role && each.has_folders;
    });
  };
  out.train = take_part(root, folders.named, PartRole::Train, "training", true, out);
  out.validation =
      take_part(root, folders.named, PartRole::Validation, "validation", !has(PartRole::Test), out);
  out.test =
      take_part(root, folders.named, PartRole::Test, "test", !has(PartRole::Validation), out);
  for (const std::string& part : {out.validation, out.test}) {
    if (!part.empty() &&
        real_path(fs::path(root) / part) == real_path(fs::path(root) / out.train)) {
      out.doubts.push_back(formatted(
          "{}: {} and {} are one folder: the scores are those of training images", root,
          printable(part), printable(out.train)));
    }
  }
  for (const std::string& name : folders.others) {
    out.unread.push_back(name);
    if (list_images_in(root, name).image_count > 0) {
      out.doubts.push_back(formatted(
          "{}/{} is not read, since the classes are the folders of {}/{}", root, printable(name),
          root, printable(out.train)));
    }
  }
  return out;
}

// Returns the parts of a root without a training folder: its folders are the classes.
ImageParts flat_parts(const std::string& root, const RootFolders& folders) {
  std::vector<NamedPart> parts, classes;
  std::set<PartRole> roles;
  for (const NamedPart& each : folders.named) {
    (each.is_like_class() ? classes : parts).push_back(each);
    if (each.is_like_class()) {
      roles.insert(each.role);
    }
  }
  const std::string near = nearest("train", folders.others);
  ABT_CHECK(
      parts.empty(), MissingInput,
      "{}: expected a folder of training images, train or training, beside {}, found {}{}.\n{}",
      root, names_of(parts),
      classes.empty() ? "none" : names_of(classes) + " without a folder for each class",
      near.empty() ? "" : formatted(" (did you mean '{}'?)", printable(near)), kArrangement);
  ABT_CHECK(
      classes.empty() || (roles.size() == 1 && !folders.others.empty()), DamagedData,
      "{}: expected a folder for each class, but the images of {} lie in no folder of a class.\n{}",
      root, names_of(classes), kArrangement);
  ImageParts out;
  if (!classes.empty()) {
    out.doubts.push_back(formatted(
        "{}: {} is read as a class, since it holds images and no folders, beside {}. If it is a "
        "part of the data set, give each class a folder in it; if it is a class, put all classes "
        "into {}/train",
        root, names_of(classes), printable(folders.others.front()), root));
  }
  return out;
}

bool has_train(const RootFolders& folders) {
  return std::ranges::any_of(folders.named, [](const NamedPart& each) {
    return each.role == PartRole::Train && !each.is_like_class();
  });
}

}  // namespace

ImageParts find_image_parts(const std::string& root) {
  const RootFolders folders = folders_of(root);
  ABT_CHECK(
      !folders.named.empty() || !folders.others.empty(), MissingInput,
      "{}: expected folders of images, found none.\n{}", root, kArrangement);
  return has_train(folders) ? named_parts(root, folders) : flat_parts(root, folders);
}

bool has_training_part(const std::string& root) {
  std::error_code ignored;
  return fs::is_directory(root, ignored) && has_train(folders_of(root));
}

}  // namespace abtrain::data
