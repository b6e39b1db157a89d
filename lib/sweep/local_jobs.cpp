#include "sweep/local_jobs.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <ranges>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "config/config.h"
#include "plan/finished_run.h"
#include "sweep/child_process.h"
#include "sweep/point_state.h"

namespace abtrain::sweep {

namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr int kDiverged = static_cast<int>(ErrorKind::Diverged);
constexpr int kStopped = static_cast<int>(ErrorKind::Stopped);

std::string log_of(const PointRun& run) {
  return run.folder + "/log.txt";
}

// The last lines of a run's log, each on an indented line of its own.
std::string last_lines(const std::string& path) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> lines = split_text(read_file(path, kMaxLines), '\n');
  std::erase_if(lines, [](const std::string& line) { return trim(line).empty(); });
  if (lines.size() > kShown) {
    lines.erase(lines.begin(), lines.end() - kShown);
  }
  std::string out;
  for (const std::string& line : lines) {
    out += "\n    " + line;
  }
  return out;
}

class Jobs {
 public:
  Jobs(
      const std::vector<PointRun>& runs, std::size_t jobs, const std::string& program, Log& log,
      const Later& later, bool may_diverge)
      : all_(runs.size()), program_(program), log_(log), later_(later), may_diverge_(may_diverge) {
    for (const PointRun& run : runs) {
      if (const PointState state = own_state_of(run);
          state == PointState::Finished ||
          (state == PointState::Failed && may_diverge_ && has_diverged(run))) {
        ++finished_;
      } else {
        waiting_.push_back(&run);
      }
    }
    slots_.resize(std::clamp<std::size_t>(jobs, 1, std::max<std::size_t>(1, waiting_.size())));
    if (finished_ > 0) {
      log_.info("{} of {} points are finished already", finished_, all_);
    }
  }

  int run() {
    while (true) {
      if (const int signal = StopSignals::requested(); signal != 0 && !is_stopping_) {
        stop(signal);
      }
      for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
        if (slots_[slot].child == nullptr && !waiting_.empty()) {
          start(slot);
        }
      }
      if (running() == 0 && waiting_.empty()) {
        break;
      }
      std::this_thread::sleep_for(kPause);
      for (Job& job : slots_ | kRunning) {
        if (const auto code = job.child->ended()) {
          end(job, *code);
        }
      }
    }
    log_.live("");
    ABT_CHECK(
        !is_stopping_ || finished_ == all_, Stopped,
        "stopped by {}, {} of {} points finished; the same command continues "
        "the sweep",
        signal_name(StopSignals::requested()), finished_, all_);
    return failures_.empty() ? 0 : failures_.begin()->second;
  }

 private:
  struct Job {
    const PointRun* run = nullptr;
    std::unique_ptr<ChildProcess> child;  // null: a free slot
    Stopwatch watch;
  };
  static constexpr auto kRunning =
      std::views::filter([](const Job& job) { return job.child != nullptr; });

  std::ptrdiff_t running() const {
    return std::ranges::distance(slots_ | kRunning);
  }

  void start(std::size_t slot) {
    const PointRun& run = *waiting_.front();
    waiting_.pop_front();
    try {
      make_folders(run.folder);
      const std::string config = run.folder + "/config.yaml";
      if (state_of(run) == PointState::Missing) {
        atomic_write(config, config::to_yaml(run.options));
      }
      auto child = ChildProcess::start(
          {program_, "train", "--config", config, "--name", run.options.name, "--output",
           run.options.output, "--resume", "auto"},
          log_of(run), cores_of_slot(slot, slots_.size()));
      if (child == nullptr) {
        fail(run, kStopped, ": another process is training it, so it is skipped here");
        return;
      }
      slots_[slot] = {&run, std::move(child), Stopwatch()};
      show();
    } catch (const Error& error) {
      fail(run, error.exit_code(), formatted(": failed: {}", error.what()));
    }
  }

  void end(Job& job, int code) {
    const PointRun& run = *job.run;
    const double passed = job.watch.seconds();
    const std::string seconds = human_seconds(passed);
    job.child.reset();
    if (code == 0 || (code == kDiverged && may_diverge_)) {
      finish(run, passed, code != 0);
    } else if (code == kStopped && is_stopping_) {
      fail(run, code, formatted(": stopped after {}, with its progress saved", seconds));
    } else {
      // Code 75: only this run was stopped, or another process trains it.
      fail(
          run, code,
          formatted(
              "{}{} with exit code {}; {} ends with{}",
              code == kStopped ? ": stopped after " : ": failed after ", seconds, code, log_of(run),
              last_lines(log_of(run))));
    }
    show();
  }

  void finish(const PointRun& run, double seconds, bool diverged) {
    try {
      std::string score = "diverged";
      if (!diverged) {
        score = score_of(run);
        ++trained_;
        trained_seconds_ += seconds;
        stepping_seconds_ += std::min(
            seconds, plan::read_summary(run.folder).maybe("/seconds/train").value_or(seconds));
      }
      ++finished_;
      say(run, formatted(": {} in {}{}", score, human_seconds(seconds), time_left()));
    } catch (const Error& error) {
      fail(run, error.exit_code(), formatted(": failed: {}", error.what()));
    }
  }

  void fail(const PointRun& run, int code, const std::string& what) {
    failures_[run.index] = code;
    say(run, what);
  }

  // ", about 3 min left", assuming that the remaining points start, train and end as fast as those
  // before; "" if no point was trained yet or none remains.
  std::string time_left() const {
    if (trained_ == 0 || (waiting_.empty() && running() == 0 && later_.runs == 0)) {
      return "";
    }
    const auto count = static_cast<double>(trained_);
    const double each = trained_seconds_ / count;
    const double stepping = stepping_seconds_ / count;
    double seconds = each * static_cast<double>(waiting_.size()) + (each - stepping) * later_.runs +
                     stepping * later_.lengths;
    for (const Job& job : slots_ | kRunning) {
      seconds += std::max(0.0, each - job.watch.seconds());
    }
    return formatted(
        ", about {} left", human_seconds(seconds / static_cast<double>(slots_.size())));
  }

  // Logs a point that has ended, here the third one:
  // "[ 3/18] group_size=1,seed=1: 86.10 % in 12 s, about 3 min 0 s left".
  void say(const PointRun& run, const std::string& what) {
    const std::string all = std::to_string(all_);
    std::string number = std::to_string(finished_ + failures_.size());
    number.insert(0, all.size() - number.size(), ' ');
    log_.info("[{}/{}] {}{}", number, all, run.label, what);
  }

  void show() {
    std::vector<std::string> labels;
    for (const Job& job : slots_ | kRunning) {
      labels.push_back(job.run->label);
    }
    log_.live(
        labels.empty() ? ""
                       : formatted(
                             "{} of {} done{}, running {}", finished_ + failures_.size(), all_,
                             time_left(), join(labels, "  ")));
  }

  void stop(int signal) {
    is_stopping_ = true;
    waiting_.clear();
    log_.info("{}: {} running points save and stop", signal_name(signal), running());
    for (const Job& job : slots_ | kRunning) {
      job.child->send(signal);
    }
  }

  std::size_t all_;
  std::string program_;
  Log& log_;
  Later later_;
  bool may_diverge_;
  std::deque<const PointRun*> waiting_;
  std::vector<Job> slots_;
  std::map<std::size_t, int> failures_;  // exit codes by index of the point
  std::size_t finished_ = 0;
  std::size_t trained_ = 0;      // trained to their end by this process
  double trained_seconds_ = 0;   // their total duration
  double stepping_seconds_ = 0;  // the part of it that grows with the length
  bool is_stopping_ = false;
};

}  // namespace

int train_points(
    const std::vector<PointRun>& runs, std::size_t jobs, const std::string& program, Log& log,
    const Later& later, bool may_diverge) {
  return Jobs(runs, jobs, program, log, later, may_diverge).run();
}

}  // namespace abtrain::sweep
