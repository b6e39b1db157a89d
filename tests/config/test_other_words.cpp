// Words of PyTorch, Lightning, timm and the like, in place of keys and of values.
#include "config/other_words.h"

#include <gtest/gtest.h>

#include <set>

#include "wrong_config.h"

namespace abtrain::config {
namespace {

TEST(OtherWords, NameKeysThatExist) {
  RunOptions defaults;
  const std::vector<std::string> all = keys_of(fields_of(defaults));
  const std::set<std::string> keys(all.begin(), all.end());
  std::set<std::string> words;
  for (const OtherWord& other : other_words()) {
    EXPECT_TRUE(other.key.empty() || keys.contains(std::string(other.key))) << other.key;
    EXPECT_FALSE(other.key.empty() && other.remark.empty()) << other.words;
    for (const std::string& word : split_text(std::string(other.words), ' ')) {
      EXPECT_TRUE(words.insert(word).second) << word << " is there twice";
      EXPECT_FALSE(keys.contains(word)) << word << " is a key";
      EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), word.npos) << word;
    }
  }
}

using testing::case_name;
using Case = testing::WrongCase;

class WordOfOthers : public ::testing::TestWithParam<Case> {};

TEST_P(WordOfOthers, IsAnswered) {
  testing::expect_problems(GetParam());
}

const Case kWordsOfOthers[] = {
    {"loader",
     "data: {num_workers: 8}\n",
     {},
     {"c.yaml:1:8: error: data.num_workers: unknown key, use 'data.decode_threads' (threads that "
      "decode images; 'workers' are those that train)"}},
    {"spelled_otherwise",
     "",
     {"Learning-Rate=0.1"},
     {"--set Learning-Rate=0.1: error: Learning-Rate: unknown key, use 'optimizer.lr'"}},
    {"removed_keys",
     "order: {sketch: 64}\noptimizer: {fraction: 0.5}\nmethod: {rank: {fraction: 0.5}}\n",
     {},
     {"c.yaml:1:9: error: order.sketch: unknown key, use 'order.wire' (int8; the count sketch was "
      "removed)",
      "c.yaml:2:13: error: optimizer.fraction: unknown key, abtrain has none; Muon takes ...",
      "c.yaml:3:17: error: method.rank.fraction: unknown key, use 'method.rank.ratio' (with "
      "method.rank.rule=ratio)"}},
    {"removed_keys_as_old_runs_have_them",
     "method: {ramp_start: 1.0e-05, rank: {fraction: 0.1}, full_phase: {sync_every: 1}}\n"
     "order: {sketch: 128}\noptimizer: {fraction: 1, factor_step: plain}\n"
     "reducer: {select: consensus}\ndata: {prefetch: 64, pad: 4}\nevaluate: {groups: false}\n",
     {"method.outer.wire.select=local"},
     {"--set method.outer.wire.select=local: error: method.outer.wire.select: unknown key, abtrain "
      "has none; hylo's workers choose ..."}},
    {"key_at_the_top",
     "train: {seed: 3}\n",
     {"train.lr=1"},
     {"c.yaml:1:9: error: train.seed: unknown key, did you mean 'seed'?",
      "--set train.lr=1: error: train.lr: unknown key, did you mean 'optimizer.lr'?"}},
    {"paths",
     "data:\n  path: x\n  dir: y\n",
     {},
     {"c.yaml:2:3: error: data.path: unknown key, use 'data.root'",
      "c.yaml:3:3: error: data.dir: unknown key, use 'data.root'"}},
    {"what_there_is_not",
     "mixup: 0.2\nwandb: {project: x}\ntrain: {early_stopping: true}\n",
     {},
     {"c.yaml:1:1: error: mixup: unknown key, abtrain has none; data.augment (flip, crop) and "
      "data.erase change images",
      "c.yaml:2:1: error: wandb: unknown key, abtrain has none; metrics.jsonl ...",
      "c.yaml:3:9: error: train.early_stopping: unknown key, abtrain has none; ... RUN@best ..."}},
    {"lightning",
     "devices: 4\nstrategy: ddp\naccumulate_grad_batches: 2\ngradient_clip_val: 1\n",
     {},
     {"c.yaml:1:1: error: devices: unknown key, use 'workers'",
      "c.yaml:2:1: error: strategy: unknown key, use 'method.name' (ab, ddp, local-sgd or diloco)",
      "c.yaml:3:1: error: accumulate_grad_batches: unknown key, use 'train.accumulate'",
      "c.yaml:4:1: error: gradient_clip_val: unknown key, use 'train.clip_norm'"}},
    {"timm",
     "model: {pretrained: true, dropout: 0.1}\namp: true\nscheduler: cosine\n",
     {},
     {"c.yaml:1:9: error: model.pretrained: unknown key, use 'model.weights' (a safetensors file "
      "to start from)",
      "c.yaml:1:27: error: model.dropout: unknown key, use 'model.drop_rate'",
      "c.yaml:2:1: error: amp: unknown key, use 'train.precision' (auto, fp32 or bf16)",
      "c.yaml:3:1: error: scheduler: unknown key, use 'schedule.name'"}},
    // The default of the key that was meant takes part in no other check.
    {"no_second_problem",
     "method: {name: ab, group_size: 4}\ndevices: 8  # workers\n",
     {},
     {"c.yaml:2:1: error: devices: unknown key, use 'workers'"}},
    {"values",
     "train: {precision: 16-mixed}\ndevice: gpu\noptimizer: {name: SGD}\n"
     "schedule: {name: CosineAnnealingLR}\nreducer: {dtype: torch.bfloat16}\n",
     {},
     {"c.yaml:1:20: error: train.precision: ... got '16-mixed' (fp16 is not supported; use bf16)",
      "c.yaml:2:9: error: device: ... got 'gpu' (did you mean 'cuda'?)",
      "c.yaml:3:19: error: optimizer.name: ... got 'SGD' (did you mean 'sgd'?)",
      "c.yaml:4:18: error: schedule.name: ... got 'CosineAnnealingLR' (did you mean 'cosine'?)",
      "c.yaml:5:18: error: reducer.dtype: ... got 'torch.bfloat16' (did you mean 'bf16'?)"}},
    {"more_values",
     "train: {precision: bf16-mixed}\nreducer: {dtype: float16}\n",
     {"train.precision=32"},
     {"c.yaml:1:20: error: train.precision: ... got 'bf16-mixed' (did you mean 'bf16'?)",
      "c.yaml:2:18: error: reducer.dtype: ... got 'float16' (did you mean 'fp16'?)",
      "--set train.precision=32: error: train.precision: ... got '32' (did you mean 'fp32'?)"}},
    // No other key of a section is judged by a reducer that is not known.
    {"removed",
     "reducer: {name: onebit, error_feedback: false}\n"
     "method: {name: diloco, outer: {wire: {name: onebit}}}\n",
     {},
     {"c.yaml:1:17: error: reducer.name: ... got 'onebit' (onebit was removed; use twobit or int2)",
      "c.yaml:2:45: error: method.outer.wire.name: ... (onebit was removed; use twobit or int2)"}}};

INSTANTIATE_TEST_SUITE_P(All, WordOfOthers, ::testing::ValuesIn(kWordsOfOthers), case_name);

}  // namespace
}  // namespace abtrain::config
