// Runs a fuzz target on its corpus and on mutations of it:
//
//   fuzz_TARGET [--runs N] [--seconds S] [--seed K] [--out FOLDER] PATH...
//
// PATH is an input or a folder of them. All are tried as they are, then N
// mutations of them, or as many as S seconds of processor time allow. A child
// process does the work. The parent has each input in shared memory, so that it
// can write the one that ended the child (a crash, an exception, 5 s or 1 GB)
// to FOLDER, name it, and end with 1.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "mutator.h"
#include "target.h"
#include "temp_folder.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:detect_leaks=0";
}
#endif

namespace {

namespace fs = std::filesystem;
using abtrain::fuzz::Input;
using abtrain::fuzz::kLargest;
using abtrain::fuzz::Mutator;
constexpr std::size_t kMaxKept = 2000;                    // of inputs that ended in a new way
constexpr int kMaxSeconds = 5;                            // of processor time, for an input
constexpr int kMaxWaiting = 60;                           // of the clock
constexpr std::size_t kMaxMemory = std::size_t{1} << 30;  // of one input
constexpr std::size_t kMaxMemoryInAll = std::size_t{4} << 30;

struct Shared {
  std::atomic<std::uint64_t> tried = 0;
  std::atomic<std::size_t> size = 0;
  std::array<char, kLargest> input;
};

struct Request {
  std::uint64_t runs = 0;
  double seconds = 0;
  std::uint64_t seed = 1;
  std::string out = ".";
  std::vector<Input> corpus;
};

void limit_time() {
  const itimerval limit{{0, 0}, {kMaxSeconds, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);  // its signal ends the process
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// What an outcome says but for names and numbers.
std::string kind_of(const std::string& outcome) {
  std::string kind;
  bool quoted = false;
  for (const char c : outcome.substr(0, 2000)) {
    quoted = quoted != (c == '\'' || c == '"');
    if (!quoted && std::isdigit(static_cast<unsigned char>(c)) == 0) {
      kind += c;
    }
  }
  return kind;
}

// The child.
int work(const Request& request, Shared& shared) {
  std::vector<Input> pool = request.corpus;
  std::set<std::string> kinds;
  const auto attempt = [&](const Input& input) {
    shared.size = input.size();
    std::memcpy(shared.input.data(), input.data(), input.size());
    ++shared.tried;
    limit_time();
    abtrain::fuzz::outcome().clear();
    abtrain::fuzz::read_input({shared.input.data(), input.size()});
    return kinds.insert(kind_of(abtrain::fuzz::outcome())).second;
  };
  for (const Input& input : request.corpus) {
    attempt(input);
  }
  Mutator mutator(request.seed, pool);
  const double begin = processor_seconds();
  for (std::uint64_t n = 0; n < request.runs || processor_seconds() - begin < request.seconds;
       ++n) {
    const Input input = mutator.next();
    if (attempt(input) && pool.size() < kMaxKept) {
      pool.push_back(input);
    }
  }
  std::cout << shared.tried << " inputs ended in " << kinds.size() << " ways\n";
  std::cout.flush();
  return 0;
}

// Memory of its own that a process has, in bytes.
std::size_t memory_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  std::size_t all = 0, resident = 0, shared = 0;
  file >> all >> resident >> shared;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (resident - std::min(resident, shared)) * page;
}

// Waits for the child; why it has failed, or "".
std::string watch(pid_t child, const Shared& shared) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t tried = 0;
  std::size_t before = memory_of(child);
  std::size_t last = before;
  auto since = Clock::now();
  std::string why;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::size_t memory = memory_of(child);
    if (shared.tried != tried) {
      tried = shared.tried;
      since = Clock::now();
      before = last;  // the sanitizers keep some of what earlier inputs freed
    }
    last = memory;
    if (memory > before + kMaxMemory) {
      why = "it took more than 1 GB of memory";
    } else if (memory > kMaxMemoryInAll) {
      why = "all inputs up to it took more than 4 GB of memory";
    } else if (Clock::now() - since > std::chrono::seconds(kMaxWaiting)) {
      why = "it waited for more than a minute";
    }
    if (!why.empty()) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return why;
    }
  }
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGPROF ? "it took more than 5 s"
                                       : "it ended by signal " + std::to_string(WTERMSIG(status));
  }
  return WEXITSTATUS(status) == 0
             ? ""
             : "it ended with exit code " + std::to_string(WEXITSTATUS(status));
}

void add_inputs(const fs::path& path, std::vector<Input>& corpus) {
  if (fs::is_directory(path)) {
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(path)) {
      inside.push_back(entry.path());
    }
    std::sort(inside.begin(), inside.end());
    for (const fs::path& file : inside) {
      add_inputs(file, corpus);
    }
    return;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error(path.string() + " cannot be read");
  }
  Input input{std::istreambuf_iterator<char>(file), {}};
  input.resize(std::min(input.size(), kLargest));
  corpus.push_back(std::move(input));
}

Request read_arguments(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--runs" && has_value) {
      request.runs = std::stoull(argv[++i]);
    } else if (word == "--seconds" && has_value) {
      request.seconds = std::stod(argv[++i]);
    } else if (word == "--seed" && has_value) {
      request.seed = std::stoull(argv[++i]);
    } else if (word == "--out" && has_value) {
      request.out = argv[++i];
    } else {
      add_inputs(word, request.corpus);
    }
  }
  if (request.corpus.empty()) {
    throw std::runtime_error("expected inputs, or a folder of them");
  }
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Request request = read_arguments(argc, argv);
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("no shared memory");
    }
    auto& shared = *new (memory) Shared;
    // In memory where that is possible: readers and writers sync their files.
    if (fs::is_directory("/dev/shm")) {
      ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
    }
    // A child that crashes leaves its folders in there.
    const abtrain::TempFolder scratch;
    ::setenv("TMPDIR", scratch.path().c_str(), 1);
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 1;
      try {
        code = work(request, shared);
      } catch (const std::exception& error) {
        std::cerr << "an exception: " << error.what() << "\n";
      }
      std::cerr.flush();
      std::_Exit(code);
    }
    const std::string why = child < 0 ? "it could not be started" : watch(child, shared);
    if (why.empty()) {
      return 0;
    }
    const Input input(shared.input.data(), shared.size);
    const fs::path path =
        fs::path(request.out) / (fs::path(argv[0]).filename().string() + "-" +
                                 std::to_string(std::hash<std::string>()(input)) + ".input");
    std::ofstream(path, std::ios::binary) << input;
    std::cerr << "input " << shared.tried << ": " << why << "; it is kept in " << path.string()
              << "\n";
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << "\n";
  }
  return 1;
}
