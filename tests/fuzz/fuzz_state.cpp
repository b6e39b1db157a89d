// The values in a worker's state, from which a run goes on for one step: a line
// that names the kind of run, and a JSON object with the values that become
// others.
#include <map>

#include "comm/run_workers.h"
#include "config/config.h"
#include "run_folder/damaged_checkpoint.h"
#include "target.h"
#include "temp_folder.h"
#include "toy_data.h"
#include "train/trainer.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {
    "ab\n",
    "grab\n",
    "diloco\n",
    "powersgd\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"ab.ranks\":",
    "\"ab.phase\":\"full\"",
    "\"ab.phase\":\"ab\"",
    "\"ab.layers\":",
    "\"ab.switched_at\":",
    "\"ab.averaged_at\":",
    "\"local.local\":",
    "\"local.fragment\":",
    "\"local.begun\":",
    "\"order.epoch\":",
    "\"order.place\":",
    "\"order.units\":",
    "\"order.broken\":",
    "\"order.counted\":",
    "\"seconds\":",
    "\"traffic\":",
    "\"event_step\":",
    "\"vnmse\":",
    "\"loss_count\":",
    "true",
    "false",
    "null",
    "-1",
    "0",
    "1",
    "2",
    "3"};

namespace {

struct Kind {
  config::RunOptions options;
  TempFolder folder;
  std::string checkpoint;  // after step 3 of 4
  std::string worker;      // its file
};

config::RunOptions options_of(const std::string& kind) {
  config::RunOptions o;
  o.workers = 1;
  o.data.batch_size = 8;
  o.model.hidden = {12};
  o.method.name = kind == "ab" || kind == "diloco" ? kind : "ddp";
  o.method.group_size = 1;
  o.method.sync = methods::SyncMode::OnlyB;  // one worker is one group
  o.method.warmup_steps = Duration::steps(1);
  o.method.sync_every = Duration::steps(3);
  o.method.full_rank_steps = Duration::steps(1);
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 3;
  o.order.name = kind == "grab" ? kind : "shuffle";
  o.reducer.name = kind == "powersgd" ? kind : "plain";
  o.train.steps = 4;
  o.train.threads = 1;
  o.train.timeout = 20;
  o.evaluate.every = Duration::steps(0);
  o.checkpoint.every = Duration::steps(3);
  return o;
}

const data::Dataset& dataset() {
  static const data::Dataset all = testing::toy_dataset(32, 1, 4);
  return all;
}

void train(
    const config::RunOptions& options, const run_folder::CheckpointWriter::Options* place,
    const run_folder::Checkpoint* from) {
  const data::Examples none;
  train::TrainInputs inputs{options, dataset(), none, at::kCPU};
  inputs.checkpoints = place;
  inputs.resume = from;
  comm::run_workers(1, 20, [&](comm::Communicator& world) { train::train_worker(world, inputs); });
}

Kind& kind_named(const std::string& name) {
  static std::map<std::string, Kind> known;
  const auto [place, is_new] = known.try_emplace(name);
  Kind& kind = place->second;
  if (is_new) {
    kind.options = options_of(name);
    const run_folder::CheckpointWriter::Options where{
        kind.folder.path(), config::to_yaml(kind.options), 2};
    train(kind.options, &where, nullptr);
    kind.checkpoint =
        kind.folder.file(formatted("{}/{}", config::kCheckpoints, run_folder::step_folder(3)));
    kind.worker = read_file(kind.checkpoint + "/" + run_folder::worker_file(0));
  }
  return kind;
}

}  // namespace

void read_input(std::string_view text) {
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos) {
    return;
  }
  std::string name(text.substr(0, line));
  if (name != "ab" && name != "grab" && name != "diloco" && name != "powersgd") {
    name = "ab";
  }
  JsonProblem problem;
  const auto changes = parse_json(text.substr(line + 1), problem);
  if (!changes.is_object()) {
    return;
  }
  Kind& kind = kind_named(name);
  write_file(kind.checkpoint + "/" + run_folder::worker_file(0), kind.worker);
  run_folder::change_values(kind.checkpoint, [&](nlohmann::ordered_json& values) {
    for (const auto& [key, value] : changes.items()) {
      values[key] = value;
    }
  });
  refusing({ErrorKind::DamagedData, ErrorKind::Diverged}, [&] {
    const run_folder::Checkpoint from = run_folder::read_checkpoint(kind.checkpoint);
    run_folder::verify(from);
    train(kind.options, nullptr, &from);
  });
}

}  // namespace abtrain::fuzz
