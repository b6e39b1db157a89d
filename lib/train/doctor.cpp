#include "train/doctor.h"

#include <ATen/Version.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/rows.h"
#include "base/text.h"
#include "build_config.h"
#include "comm/control/secret.h"
#include "comm/launch.h"
#include "comm/mpi/library.h"
#include "comm/mpi/world.h"
#include "comm/nccl/world.h"
#include "config/config.h"
#include "data/dataset.h"
#include "device/devices.h"
#include "device/tensor_text.h"
#include "train/build_info.h"

namespace abtrain::train {

namespace {

namespace fs = std::filesystem;

constexpr double kInitSeconds = 60;
constexpr bool kHasCuda = *build_config::kCuda != '\0';

// Returns what `look` finds or, if it throws, `otherwise` with the reason as the advice.
Finding looked_for(const char* topic, const std::string& otherwise, const auto& look) {
  try {
    return {topic, look(), ""};
  } catch (const Error& error) {
    return {topic, otherwise, error.what()};
  }
}

Finding check_cuda() {
  if (kHasCuda) {
    return {"CUDA", formatted("compiled in, toolkit {}", build_config::kCuda), ""};
  }
  return {
      "CUDA", "not compiled in",
      "to use GPUs, install a CUDA toolkit, put nvcc on PATH and build again"};
}

Finding check_gpus() {
  std::vector<std::string> names;
  for (const device::DeviceInfo& gpu : device::cuda_devices()) {
    names.push_back(formatted(
        "{} {}, {}", gpu.device, gpu.name, human_bytes(static_cast<double>(gpu.memory_bytes))));
  }
  if (!names.empty()) {
    return {"GPUs", join(names, "; "), ""};
  }
  return {
      "GPUs", "none found: runs use the CPU",
      kHasCuda ? "if there is one, `nvidia-smi` shows whether its driver works" : ""};
}

Finding check_nccl() {
  const comm::NcclVersions nccl = comm::nccl_versions();
  if (nccl.compiled.empty()) {
    return {"NCCL", "not compiled in", ""};
  }
  if (nccl.fits) {
    return {"NCCL", formatted("compiled in, {}", nccl.loaded), ""};
  }
  return {
      "NCCL", formatted("compiled with {}, loaded {}", nccl.compiled, nccl.loaded),
      "another libnccl.so.2 comes first in LD_LIBRARY_PATH: remove it"};
}

// MPI is loaded at run time; under a launcher, the library that matches the launcher.
Finding check_mpi() {
  if (*build_config::kMpi == '\0') {
    return {
        "MPI", "not in this build",
        "to train on several hosts' CPUs, install it (Debian: libopenmpi-dev) "
        "and build again with -DABTRAIN_MPI=ON"};
  }
  return looked_for("MPI", formatted("none found; {} would fit", build_config::kMpi), [] {
    const comm::Launch launch = comm::find_launch();
    if (launch.has_mpi && launch.size > 1) {  // without a launcher, MPI_Init may end the process
      return comm::MpiWorld::start(launch.rank, launch.size, kInitSeconds)->about();
    }
    return comm::load_mpi(comm::mpi_candidates()).text() +
           "; `mpirun -np 2 abtrain doctor` tells its transport";
  });
}

// Reports which launcher's environment variables apply here. `mpirun -np 2 abtrain doctor` shows
// what the workers of a run would find.
Finding check_launcher() {
  return looked_for("launcher", "not understood", [] { return comm::find_launch().text(); });
}

// A missing secret is not a fault: most private networks do without one.
Finding check_secret() {
  return looked_for("secret", "not usable", [] {
    return comm::secret_from_env().is_set()
               ? formatted("{}, for connections between processes", comm::secret_source())
               : "none, connections between processes are not authenticated";
  });
}

Finding check_configs() {
  std::set<std::string> folders;
  for (const fs::path folder : config::config_folders(program_path())) {
    std::error_code failed;
    if (fs::is_directory(folder, failed)) {
      folders.insert(real_path(folder).string());
    }
  }
  if (!folders.empty()) {
    return {"configs", join({folders.begin(), folders.end()}, ", "), ""};
  }
  return {
      "configs", "none found",
      "the program was moved away from its files: give configurations by "
      "path, or install it with `cmake --install`"};
}

void check_data(std::vector<Finding>& findings) {
  for (const std::string& name : data::dataset_names()) {
    const data::DatasetPlace place = data::find_dataset(name);
    const bool found = !place.found_in.empty();
    findings.push_back(
        {name, found ? place.found_in : "not found",
         found ? ""
               : formatted(
                     "{}; then set ABTRAIN_DATA or data.root to ROOT:\n      {}", place.how_to_get,
                     join(split_text(place.layout, '\n'), "\n      "))});
  }
}

Finding check_cpu() {
  const device::DeviceInfo cpu = device::cpu_device();
  return {
      "CPU",
      formatted(
          "{}, {} cores for this process, {}, {}, memory {}", cpu.name, device::cpu_cores(),
          at::get_cpu_capability(), cpu.bf16.empty() ? "no bf16" : formatted("bf16 ({})", cpu.bf16),
          human_bytes(static_cast<double>(cpu.memory_bytes))),
      ""};
}

}  // namespace

std::vector<Finding> diagnose() {
  std::vector<Finding> findings{
      {"abtrain",
       formatted("{}, {}, {}", version_line(), build_config::kBuildType, build_config::kCompiler),
       ""},
      {"LibTorch", build_config::kTorch, ""},
      check_cuda(),
      check_gpus(),
      check_nccl(),
      check_mpi(),
      check_launcher(),
      check_secret(),
      check_cpu(),
      check_configs()};
  check_data(findings);
  return findings;
}

std::string format_findings(const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) {
    width = std::max(width, finding.topic.size());
  }
  std::string table;
  std::string advice;
  for (const Finding& finding : findings) {
    table += pad(finding.topic, width + 2) + finding.text + "\n";
    if (!finding.advice.empty()) {
      advice += formatted("  {}: {}\n", finding.topic, finding.advice);
    }
  }
  return table +
         (advice.empty() ? "\nNothing is missing.\n" : "\nWhat could be better:\n" + advice);
}

}  // namespace abtrain::train
