// The sub-commands: what the command line asked for, and what carries it out.
// Each returns the exit code of the program and throws abtrain::Error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/launch.h"

namespace abtrain::app {

// What chooses a configuration: the file, then each `--set`, in order.
struct ConfigArgs {
  std::string config;             // path, or a name in the search folders
  std::vector<std::string> sets;  // "a.b=value"
  std::string name;               // empty: the configuration's own
  std::string output;             // empty: the configuration's own
};

struct TrainArgs {
  ConfigArgs config;
  comm::LaunchFlags launch;
  std::string resume;  // none | auto | a folder; empty: auto in a Slurm job
};

struct PlanArgs {
  ConfigArgs config;
};

struct EvaluateArgs {
  std::string run;                // a run folder
  std::string model;              // a file in it, or a path; "": its model
  std::vector<std::string> sets;  // "a.b=value", over the run's config.yaml
};

struct ReportArgs {
  std::vector<std::string> runs;  // run folders, or folders of such
  std::optional<double> target;   // an accuracy, 0 to 1
  bool json = false;
};

int run_train(const TrainArgs& args);
int run_plan(const PlanArgs& args);
int run_evaluate(const EvaluateArgs& args);
int run_report(const ReportArgs& args);
int run_doctor();

// What `--version` prints, without a newline at the end.
std::string version_text();

}  // namespace abtrain::app
