// The processes of a run: what they tell each other, as threads with a port
// each, and how one ends, as children of this process.
#include "train/workers/processes.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/socket.h"
#include "comm/failure.h"
#include "error_of.h"
#include "process_end.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;

const std::string kHost = "127.0.0.1";

int free_port() {
  return Socket::listen(kHost).port();
}

comm::Launch launch_of(int rank, int size, int port) {
  comm::Launch launch;
  launch.rank = launch.local_rank = rank;
  launch.size = launch.local_size = size;
  launch.source = "a test";
  launch.host = kHost;
  launch.port = port;
  return launch;
}

// Runs the body for each of two ranks. All meet again at its end.
void run_two(const std::function<void(Processes&, int rank)>& body) {
  const int port = free_port();
  std::array<std::jthread, 2> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads[rank] = std::jthread([&body, rank, port] {
      Log log(LogLevel::Quiet);
      Processes processes(launch_of(rank, 2, port), log);
      EXPECT_EQ(processes.first_rank, rank);
      EXPECT_EQ(processes.writes(), rank == 0);
      body(processes, rank);
      EXPECT_EQ(processes.gather([] { return std::string(); }).size(), 2U);
    });
  }
}

TEST(Processes, NeedAPlaceToMeet) {
  Log log(LogLevel::Quiet);
  const std::string what = expect_error(
      [&] { Processes(launch_of(1, 4, 0), log); }, ErrorKind::Config,
      {"neither MPI nor an address"});
  EXPECT_TRUE(what.starts_with(launch_of(1, 4, 0).text())) << what;
}

TEST(Processes, AgreeOnTheirTextsInRankOrder) {
  run_two([](Processes& processes, int rank) {
    for (int n = 0; n < 3; ++n) {
      EXPECT_EQ(
          processes.gather([&] { return formatted("n{} of {}", n, rank); }),
          (std::vector<std::string>{formatted("n{} of 0", n), formatted("n{} of 1", n)}));
    }
  });
}

TEST(Processes, DoWhatTheFirstDecides) {
  const std::vector<std::string> texts = {
      "", "short", "a path\nof two lines\n", std::string(300'000, 'x')};
  run_two([&](Processes& processes, int rank) {
    for (const std::string& text : texts) {
      const auto decided = processes.decide([&] {
        EXPECT_EQ(rank, 0);
        return text;
      });
      EXPECT_EQ(decided, text);
    }
  });
}

TEST(Processes, FailTogether) {
  for (const int failed : {0, 1}) {
    run_two([&](Processes& processes, int rank) {
      const auto fail = [&] {
        processes.all_or_none([&] {
          if (rank == failed) {
            throw Error(ErrorKind::MissingInput, "no images");
          }
        });
      };
      const std::string what = expect_error(fail, ErrorKind::MissingInput);
      if (rank == failed) {
        EXPECT_EQ(what, "no images");
      } else {
        EXPECT_TRUE(what.starts_with(formatted("worker {}", failed))) << what;
        EXPECT_TRUE(what.ends_with(": no images")) << what;
      }
      int calls = 0;
      EXPECT_NO_THROW(processes.all_or_none([&] { ++calls; }));
      EXPECT_EQ(calls, 1);
    });
  }
}

TEST(Processes, StopAtTheSameStepAfterASignal) {
  const StopSignals signals;
  std::array<std::int64_t, 2> stopped = {-1, -1};
  run_two([&](Processes& processes, int rank) {
    EXPECT_FALSE(processes.control().stop_before(rank, 0));
    processes.all_or_none([] {});
    if (rank == 1) {
      ::raise(SIGTERM);
    }
    std::int64_t t = 1;
    while (!processes.control().stop_before(rank, t)) {
      ++t;
    }
    stopped[rank] = t;
  });
  EXPECT_GE(stopped[0], 1);
  EXPECT_EQ(stopped[0], stopped[1]);
}

TEST(RecordFailure, SaysWhatEndedTheRun) {
  const TempFolder folder;
  const auto torn = std::make_exception_ptr(Error(ErrorKind::DamagedData, "torn \"file\""));
  EXPECT_TRUE(record_failure(folder.path(), torn, 3, "far"));
  // What others say of the same failure comes too late.
  const auto echo = std::make_exception_ptr(Error(ErrorKind::PeerLost, "an echo"));
  EXPECT_FALSE(record_failure(folder.path(), echo, 0, "near"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  const auto failure = nlohmann::json::parse(read_file(folder / "failure.json"));
  EXPECT_EQ(failure.size(), 5U);
  EXPECT_EQ(failure.at("exit_code"), 65);
  EXPECT_EQ(failure.at("message"), "torn \"file\"");
  EXPECT_EQ(failure.at("worker"), 3);
  EXPECT_EQ(failure.at("host"), "far");
  const std::string time = failure.at("time");
  EXPECT_EQ(time.size(), std::string("2026-01-31T23:59:59Z").size()) << time;
  EXPECT_TRUE(time.starts_with("20") && time.ends_with("Z")) << time;
  // Nowhere to write it, which is no error.
  EXPECT_TRUE(record_failure("", echo, 0, ""));
  EXPECT_TRUE(record_failure(folder / "nowhere", echo, 0, ""));
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
  folder.add("file", "");
  EXPECT_TRUE(record_failure(folder / "file", echo, 0, ""));
  EXPECT_EQ(read_file(folder / "file"), "");
}

// How a process of one ends.
ProcessEnd end_of(const std::function<void(Processes&)>& body) {
  const int port = free_port();
  return end_of_fork([&] {
    Log log(LogLevel::Quiet);
    Processes processes(launch_of(0, 1, port), log);
    body(processes);
  });
}

template <class Cause>
ProcessEnd end_after(const TempFolder& folder, const Cause& cause) {
  folder.add("config.yaml", "");
  return end_of([&](Processes& processes) {
    processes.join_folder(folder.path());
    processes.run([&]() -> int { throw cause; });
  });
}

TEST(EndOfAProcess, IsTheCodeOfItsBody) {
  EXPECT_EQ(
      end_of([](Processes& processes) { processes.run([] { return 7; }); }), ProcessEnd(7, ""));
}

TEST(EndOfAProcess, AnErrorIsPrintedAndRecorded) {
  const TempFolder folder;
  const auto [code, said] =
      end_after(folder, Error(ErrorKind::DamagedData, "a file is torn\x1b[2J"));
  EXPECT_EQ(code, 65);
  EXPECT_TRUE(said.starts_with("abtrain: a file is torn")) << said;
  EXPECT_EQ(said.find('\x1b'), std::string::npos) << said;
  const auto failure = nlohmann::json::parse(read_file(folder / "failure.json"));
  EXPECT_EQ(failure.at("exit_code"), 65);
  EXPECT_EQ(failure.at("worker"), 0);
}

TEST(EndOfAProcess, AnErrorOfAStepIsRecordedWithTheStep) {
  const TempFolder folder;
  const StepError error(ErrorKind::Diverged, 17, "the loss is nan");
  EXPECT_EQ(end_after(folder, error), ProcessEnd(70, "abtrain: step 17: the loss is nan\n"));
  const auto failure = nlohmann::json::parse(read_file(folder / "failure.json"));
  EXPECT_EQ(failure.at("step"), 17);
  EXPECT_EQ(failure.at("message"), "step 17: the loss is nan");
}

TEST(EndOfAProcess, ATimeOutIsAboutTheWorkerThatDidNotCome) {
  const TempFolder folder;
  const comm::TimedOut late("barrier", 3, {5});
  EXPECT_EQ(end_after(folder, late), ProcessEnd(69, formatted("abtrain: {}\n", late.what())));
  const auto failure = nlohmann::json::parse(read_file(folder / "failure.json"));
  EXPECT_EQ(failure.at("worker"), 5);
  // Another worker that waits for it too has nothing to add.
  EXPECT_EQ(end_after(folder, late), ProcessEnd(69, ""));
}

TEST(EndOfAProcess, ALocatedErrorHasNoPrefix) {
  EXPECT_EQ(
      end_after(TempFolder(), LocatedError(ErrorKind::Config, "x.yaml:1:2: error")),
      ProcessEnd(78, "x.yaml:1:2: error\n"));
}

TEST(EndOfAProcess, AnyOtherExceptionIsABug) {
  const TempFolder folder;
  EXPECT_EQ(end_after(folder, std::runtime_error("odd")), ProcessEnd(1, "abtrain: odd\n"));
  EXPECT_TRUE(fs::exists(folder / "failure.json"));
}

TEST(EndOfAProcess, AFolderThatItDoesNotSee) {
  const TempFolder folder;
  const auto [code, said] = end_of([&](Processes& processes) {
    processes.run([&] {
      processes.join_folder(folder / "elsewhere");
      return 0;
    });
  });
  EXPECT_EQ(code, 74);
  expect_has(said, "all hosts share");
}

TEST(EndOfAProcess, AStopIsNoFailure) {
  const TempFolder folder;
  EXPECT_EQ(
      end_after(folder, Error(ErrorKind::Stopped, "saved, stops")),
      ProcessEnd(75, "abtrain: saved, stops\n"));
  // One before the first step is said once.
  const ProcessEnd early = end_of([&](Processes& processes) {
    processes.join_folder(folder.path());
    processes.stop_before_start("stopped by SIGTERM");
  });
  EXPECT_EQ(early, ProcessEnd(75, "abtrain: stopped by SIGTERM\n"));
  EXPECT_FALSE(fs::exists(folder / "failure.json"));
}

}  // namespace
}  // namespace abtrain::train
