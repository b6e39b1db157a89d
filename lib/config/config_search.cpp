#include "config/config_search.h"

#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "config/config.h"

namespace abtrain::config {

namespace fs = std::filesystem;

ConfigSearch search_config(
    const std::string& name, const std::string& first, const std::vector<std::string>& folders) {
  std::vector<std::string> places{first};
  places.insert(places.end(), folders.begin(), folders.end());
  std::vector<std::string> looked_at;
  std::vector<std::string> present;
  std::error_code error;
  for (const std::string& folder : places) {
    looked_at.push_back((fs::path(folder) / name).string());
    for (const char* ending : {"", ".yaml"}) {
      const fs::path path = fs::path(folder) / (name + ending);
      if (fs::exists(path, error) && !fs::is_directory(path, error)) {
        return {path.string(), ""};
      }
    }
    for (const fs::path& entry : list_folder(folder.empty() ? "." : folder)) {
      if (entry.extension() == ".yaml") {
        present.push_back(entry.filename().string());
      }
    }
    if (fs::path(name).is_absolute()) {
      break;
    }
  }
  if (fs::is_directory(name, error)) {
    const fs::path inside = fs::path(name) / "config.yaml";
    return {
        "", formatted(
                "'{}' is a folder; expected a YAML file{}", name,
                fs::exists(inside, error) ? formatted(", such as {}", inside.string()) : "")};
  }
  const std::string file = fs::path(name).filename().string();
  const std::string meant =
      nearest(file.find('.') == std::string::npos ? file + ".yaml" : file, present);
  return {
      "", formatted(
              "'{}' was not found; looked for {}{}", name, join(looked_at, ", "),
              meant.empty() ? "" : formatted("; did you mean '{}'?", meant))};
}

std::string find_config(
    const char* what, const std::string& name, const std::string& first,
    const std::vector<std::string>& folders) {
  const ConfigSearch search = search_config(name, first, folders);
  ABT_CHECK(!search.found.empty(), MissingInput, "{} {}", what, search.problem);
  return search.found;
}

std::vector<std::string> config_folders(const std::string& program) {
  std::vector<std::string> folders = split_text(env("ABTRAIN_CONFIGS").value_or(""), ':');
  std::erase(folders, "");
  folders.emplace_back("configs");
  if (!program.empty()) {
    const fs::path place = fs::path(program).parent_path();
    folders.push_back((place.parent_path() / "share/abtrain/configs").string());
    folders.push_back((place.parent_path().parent_path() / "configs").string());
  }
  return folders;
}

}  // namespace abtrain::config
