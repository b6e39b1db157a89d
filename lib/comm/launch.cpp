#include "comm/launch.h"

#include <optional>

#include "base/env.h"
#include "base/error.h"
#include "base/scalars.h"

namespace abtrain::comm {

namespace {

constexpr int kMaxProcesses = 65536;

// Parses a whole text as an integer of at least 0; returns -1 if it is none.
std::int64_t whole_number(const std::string& text) {
  std::int64_t value = 0;
  std::string why;
  return parse_integer(text, value, why) && value >= 0 ? value : -1;
}

int number(const char* name) {
  const auto value = env_integer(name);
  ABT_CHECK(
      value && *value >= 0 && *value <= kMaxProcesses, Usage,
      "environment variable {}: expected a number of processes or a rank, got "
      "{}",
      name, value ? formatted("{}", *value) : "nothing");
  return static_cast<int>(*value);
}

int number_or(const char* name, int otherwise) {
  return env(name) ? number(name) : otherwise;
}

// Reads the numbers from environment variables with these names; the variables of the local rank
// and the local size may be missing.
Launch launch_of(
    const char* source, const char* rank, const char* size, const char* local_rank,
    const char* local_size) {
  const int place = number_or(local_rank, 0);
  return {
      .rank = number(rank),
      .size = number(size),
      .local_rank = place,
      .local_size = number_or(local_size, place + 1),
      .source = source};
}

// MASTER_ADDR may be an IPv6 address, in brackets or without.
void take_master_address(Launch& launch) {
  const auto host = env("MASTER_ADDR");
  const auto port = env("MASTER_PORT");
  if (!host || !port) {
    return;
  }
  const bool is_bracketed = host->starts_with('[') && host->ends_with(']');
  launch.host = is_bracketed ? host->substr(1, host->size() - 2) : *host;
  const std::int64_t number = whole_number(*port);
  ABT_CHECK(
      !launch.host.empty() && number > 0 && number < 65536, Usage,
      "MASTER_ADDR and MASTER_PORT: expected a host and a port from 1 to 65535, got '{}' and '{}'",
      *host, *port);
  launch.port = static_cast<int>(number);
}

Launch from_slurm_step() {
  Launch launch =
      launch_of("Slurm step", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "");
  launch.has_mpi = env("PMIX_RANK") || env("PMI_RANK");
  launch.local_size =
      tasks_of_node(env("SLURM_STEP_TASKS_PER_NODE").value_or("1"), number_or("SLURM_NODEID", 0));
  take_master_address(launch);
  if (launch.port == 0) {
    // All tasks of a step get the same host and port; two steps on one node usually get different
    // ports.
    launch.host = first_host(env("SLURM_STEP_NODELIST").value_or("localhost"));
    // Job and step numbers have up to 32 bits.
    const auto part = [](const char* name) {
      return static_cast<std::uint64_t>(env_integer(name).value_or(0));
    };
    // The port stays below those that Linux assigns to connections (from 32768 on).
    launch.port =
        static_cast<int>(20000 + (part("SLURM_JOB_ID") * 31 + part("SLURM_STEP_ID")) % 12000);
  }
  return launch;
}

std::optional<Launch> from_environment() {
  // SLURM_PROCID and SLURM_NTASKS are also set in a batch script, which runs as one process. So
  // only a job step (srun) counts as a launch.
  const bool is_slurm_step =
      env("SLURM_STEP_ID") && env("SLURM_PROCID") && env("SLURM_STEP_NUM_TASKS");
  // `srun --mpi=pmi2` also sets PMI's variables; Slurm's own tell more. But if mpiexec has started
  // its daemons with srun, Slurm's numbers are those of the daemons and differ from PMI's.
  const bool is_pmi_of_slurm = env("SLURM_STEP_ID") &&
                               env("PMI_SIZE") == env("SLURM_STEP_NUM_TASKS") &&
                               env("PMI_RANK") == env("SLURM_PROCID");
  std::optional<Launch> launch;
  if (env("RANK") && env("WORLD_SIZE") && env("MASTER_ADDR") && env("MASTER_PORT")) {
    launch = launch_of(
        env("TORCHELASTIC_RUN_ID") ? "torchrun" : "variables", "RANK", "WORLD_SIZE", "LOCAL_RANK",
        "LOCAL_WORLD_SIZE");
    take_master_address(*launch);
  } else if (env("OMPI_COMM_WORLD_SIZE")) {
    launch = launch_of(
        "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE");
    launch->has_mpi = true;
  } else if (env("PMI_SIZE") && !is_pmi_of_slurm) {
    launch = launch_of("PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
    launch->has_mpi = true;
  } else if (is_slurm_step) {
    launch = from_slurm_step();
  }
  return launch;
}

}  // namespace

std::string first_host(const std::string& node_list) {
  std::string host;
  std::size_t at = 0;
  while (at < node_list.size() && node_list[at] != ',') {
    if (node_list[at] != '[') {
      host += node_list[at++];
      continue;
    }
    // From "[03-07,9]", take the first number, then the text after the bracket.
    const std::size_t stop = node_list.find_first_of(",-]", at);
    host += node_list.substr(at + 1, stop - at - 1);
    const std::size_t close = node_list.find(']', at);
    at = close == std::string::npos ? node_list.size() : close + 1;
  }
  return host;
}

int tasks_of_node(const std::string& tasks_per_node, int node) {
  std::int64_t left = node;
  for (const std::string& part : split_text(tasks_per_node, ',')) {
    const std::size_t times = part.find("(x");
    std::string repeats = "1";
    if (times != std::string::npos) {
      repeats = part.ends_with(')') ? part.substr(times + 2, part.size() - times - 3) : "";
    }
    const std::int64_t tasks = whole_number(part.substr(0, times));
    const std::int64_t nodes = whole_number(repeats);
    if (tasks < 0 || nodes < 0) {
      break;
    }
    left -= nodes;
    if (left < 0) {
      return static_cast<int>(tasks);
    }
  }
  throw Error(
      ErrorKind::Usage, formatted(
                            "SLURM_STEP_TASKS_PER_NODE: expected a list such as '2(x3),1' that "
                            "covers this node, got '{}'",
                            tasks_per_node));
}

std::string Launch::text() const {
  return size == 1 ? source
                   : formatted(
                         "{}: process {} of {}, {} of {} on this host", source, rank, size,
                         local_rank, local_size);
}

Launch find_launch() {
  const std::optional<Launch> launch = from_environment();
  if (!launch) {
    const bool is_one_of_many = env("RANK") && (env("WORLD_SIZE") ? number("WORLD_SIZE") > 1
                                                                  : env("MASTER_ADDR").has_value());
    ABT_CHECK(
        !is_one_of_many, Usage,
        "RANK is set, but not all of WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which say how many "
        "processes there are and where they meet");
    return {};
  }
  ABT_CHECK(
      launch->size > 0 && launch->rank < launch->size && launch->local_rank < launch->local_size,
      Usage,
      "{}: rank {} of {} processes, {} of {} on this host: expected ranks from 0 to the number of "
      "processes minus 1",
      launch->source, launch->rank, launch->size, launch->local_rank, launch->local_size);
  return *launch;
}

}  // namespace abtrain::comm
