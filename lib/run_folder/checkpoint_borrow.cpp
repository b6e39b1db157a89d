// Checkpoints of other runs, which may disappear while they are read.
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "run_folder/checkpoint.h"
#include "run_folder/checkpoint_files.h"

namespace abtrain::run_folder {

namespace fs = std::filesystem;

namespace {

// A hard link if the file system allows it: nothing is copied, and the file
// stays when its other name is removed.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (error && is_there(from.string())) {
    fs::copy_file(from, to, error);
  }
  ABT_CHECK(
      !error || is_there(from.string()), MissingInput, "there is no file '{}'", from.string());
  ABT_CHECK(
      !error, Io, "cannot copy '{}' to '{}': {}", from.string(), to.string(), error.message());
}

Checkpoint borrow(const std::string& folder, const std::string& run_folder) {
  return_checkpoint(run_folder);
  // Works on the text of the path alone, since its run may remove the folder at
  // any moment.
  fs::path named = fs::absolute(folder).lexically_normal();
  if (!named.has_filename()) {
    named = named.parent_path();  // the path ended in a slash
  }
  const fs::path place = fs::path(run_folder) / kSource / named.filename();
  const int workers = read_checkpoint(folder).workers();
  make_folders(place.string());
  std::vector<std::string> names{config::kManifest, config::kConfig};
  for (int worker = 0; worker < workers; ++worker) {
    names.push_back(worker_file(worker));
  }
  for (const std::string& name : names) {
    link_or_copy(fs::path(folder) / name, place / name);
  }
  try {
    Checkpoint checkpoint = read_checkpoint(place.string());
    checkpoint.copy_of = folder;
    verify(checkpoint);
    return checkpoint;
  } catch (const Error& error) {
    // The original is damaged, so name it rather than its copy.
    std::string text = error.what();
    if (const auto at = text.find(place.string()); at != std::string::npos) {
      text.replace(at, place.string().size(), folder);
    }
    throw Error(error.kind(), text);
  }
}

}  // namespace

void return_checkpoint(const std::string& run_folder) noexcept {
  std::error_code ignored;
  fs::remove_all(fs::path(run_folder) / kSource, ignored);
}

Checkpoint borrow_checkpoint(const std::string& folder, const std::string& run_folder, Log& log) {
  if (is_there(folder + "/" + config::kManifest)) {
    return borrow(folder, run_folder);
  }
  // Look again after each failure, since the other run goes on meanwhile.
  std::set<std::string> bad;
  for (;;) {
    std::vector<std::string> folders = entries_of(folder, kStepPrefix);
    std::erase_if(folders, [&](const auto& path) { return bad.contains(path); });
    ABT_CHECK(!folders.empty(), MissingInput, "--resume: no usable checkpoint in '{}'", folder);
    const std::string newest = folders.front();
    try {
      return borrow(newest, run_folder);
    } catch (const Error& error) {
      if (!is_there(newest + "/" + config::kManifest)) {
        log.info("{} was just removed by its run: taking a newer one", newest);
        continue;
      }
      log.warning("checkpoint skipped: {}", error.what());
      bad.insert(newest);
    }
  }
}

}  // namespace abtrain::run_folder
