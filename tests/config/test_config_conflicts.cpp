// Wrong `--set`s, and keys that are right but do not go together.
#include "wrong_config.h"

namespace abtrain::config {
namespace {

using testing::case_name;
using Case = testing::WrongCase;

class ConflictingConfig : public ::testing::TestWithParam<Case> {};

TEST_P(ConflictingConfig, ReportsAll) {
  EXPECT_EQ(testing::problems_of(GetParam()), GetParam().problems);
}

const Case kSets[] = {
    {"set_unknown",
     "",
     {"method.rnak=3"},
     {"--set method.rnak=3: error: method.rnak: unknown key, did you mean "
      "'method.rank'?"}},
    {"set_wrong_type",
     "",
     {"train.steps=3.5"},
     {"--set train.steps=3.5: error: train.steps: expected an integer from 0 "
      "to 100000000, got '3.5'"}},
    {"set_without_a_value",
     "",
     {"seed"},
     {"--set seed: error: expected a.b=value"}},
    {"set_without_a_key",
     "",
     {"=3", "a..b=3"},
     {"--set =3: error: expected a.b=value",
      "--set a..b=3: error: expected a.b=value"}},
    {"set_to_nothing",
     "",
     {"seed="},
     {"--set seed=: error: seed: expected an integer from 0 to 2^64-1, got "
      "nothing"}},
    {"set_bad_yaml",
     "",
     {"model.hidden=[64"},
     {"--set model.hidden=[64: error: not valid YAML: end of sequence flow "
      "not found"}},
    {"set_inner_unknown",
     "",
     {"method.rank={rule: fixed, size: 3}"},
     {"--set method.rank={rule: fixed, size: 3}: error: method.rank.size: "
      "unknown key"}},
    {"set_scalar_as_section",
     "",
     {"seed.low=3"},
     {"--set seed.low=3: error: seed: expected an integer from 0 to 2^64-1, "
      "got a section"}},
    {"set_extends",
     "",
     {"extends=a.yaml"},
     {"--set extends=a.yaml: error: extends: may be used only in a file"}},
    {"file_and_set",
     "sede: 1\n",
     {"wrokers=4", "name=a/b"},
     {"c.yaml:1:1: error: sede: unknown key, did you mean 'seed'?",
      "--set wrokers=4: error: wrokers: unknown key, did you mean 'workers'?",
      "--set name=a/b: error: name: expected a folder name, got 'a/b' "
      "(a name cannot contain slashes)"}},
    {"set_after_a_file_that_cannot_be_read",
     "a: b: c\n",
     {"sede=1"},
     {"c.yaml:1:5: error: not valid YAML: illegal map value",
      "--set sede=1: error: sede: unknown key, did you mean 'seed'?"}},
};

const Case kConflicts[] = {
    {"groups_that_do_not_fit",
     "workers: 4\nmethod: {group_size: 3}\n",
     {},
     {"c.yaml:2:10: error: method.group_size: 3 does not fit 4 workers; sizes "
      "that fit: 1, 2"}},
    {"groups_broken_by_a_set",
     "workers: 4\nmethod: {group_size: 2}\n",
     {"workers=6"},
     {"--set workers=6: error: method.group_size: 2 does not fit 6 workers; "
      "sizes that fit: 1, 3"}},
    {"long_rebound",
     "method:\n  full_rank_steps: 110\n  sync_every: 110\n",
     {},
     {"c.yaml:3:3: error: method.full_rank_steps: expected less than "
      "method.sync_every (110 steps), got 110 steps"}},
    {"warm_up_of_the_whole_run",
     "train: {epochs: 2}\nmethod: {warmup_steps: 2 epochs}\n",
     {},
     {"c.yaml:2:10: error: method.warmup_steps: a warm-up of 2 epochs leaves "
      "no factored phase in a run of 2 epochs"}},
    {"warm_up_of_a_hundred_percent",
     "train: {steps: 50}\nmethod: {warmup_steps: 100 %}\n",
     {},
     {"c.yaml:2:10: error: method.warmup_steps: a warm-up of 100 % leaves no "
      "factored phase in a run of 50 steps"}},
    {"local_steps_after_the_run",
     "train: {epochs: 3}\nmethod: {name: local-sgd, warmup_steps: 3 epochs}\n",
     {},
     {"c.yaml:2:27: error: method.warmup_steps: a warm-up of 3 epochs leaves "
      "no "
      "local step in a run of 3 epochs"}},
    {"more_fragments_than_steps",
     "method:\n  name: diloco\n  sync_every: 4\n  fragments: 5\n",
     {},
     {"c.yaml:4:3: error: method.fragments: expected at most method.sync_every "
      "(4 steps), got 5"}},
    {"delay_beyond_the_next_fragment",
     "method:\n  name: diloco\n  sync_every: 10\n  fragments: 3\n",
     {"method.delay=4"},
     {"--set method.delay=4: error: method.delay: expected less than "
      "method.sync_every / method.fragments (10 steps / 3), got 4"}},
    {"delay_of_a_round",
     "method: {name: diloco, sync_every: 10, delay: 10}\n",
     {},
     {"c.yaml:1:40: error: method.delay: expected less than method.sync_every "
      "/ "
      "method.fragments (10 steps), got 10"}},
    {"fresh_without_weights",
     "model: {fresh: [fc1]}\n",
     {},
     {"c.yaml:1:9: error: model.fresh: these layers are not loaded from "
      "model.weights, but model.weights is none"}},
    {"warm_up_beyond_the_run",
     "train: {steps: 50}\nschedule: {warmup_steps: 51}\n",
     {},
     {"c.yaml:2:12: error: schedule.warmup_steps: a warm-up of 51 steps "
      "leaves no step at the full rate in a run of 50 steps"}},
    {"mean_of_other_channels",
     "data: {name: fashion-mnist, mean: [0.1, 0.2]}\n",
     {},
     {"c.yaml:1:29: error: data.mean: expected 1 value, one per channel, got "
      "2"}},
    {"image_sizes",
     "data: {name: image-folder, image_size: 300, std: [1]}\n",
     {"data.crop_scale=[0.5]"},
     {"c.yaml:1:45: error: data.std: expected 3 values, one per channel, got 1",
      "c.yaml:1:28: error: data.resize: expected at least data.image_size "
      "(300), got 256",
      "--set data.crop_scale=[0.5]: error: data.crop_scale: expected two "
      "shares, the smaller one first"}},
    {"on_device_without_a_device",
     "device: cpu\n"
     "data: {on_device: true}\n",
     {},
     {"c.yaml:2:8: error: data.on_device: images can be kept only on a GPU, "
      "but device is cpu; expected auto or false"}},
    {"files_on_device",
     "data: {name: image-folder, on_device: true}\n",
     {},
     {"c.yaml:1:28: error: data.on_device: image-folder's images are files "
      "that "
      "the host decodes; expected auto or false"}},
    {"subset_beyond_the_set",
     "data: {name: cifar10, subset: 50001, validation: 50002}\n",
     {},
     {"c.yaml:1:23: error: data.subset: expected 0 .. 50000, all training "
      "images "
      "of cifar10, got 50001",
      "c.yaml:1:38: error: data.validation: expected less than data.subset "
      "(50001), got 50002"}},
    {"pool_that_divides_nothing",
     "data: {pool: 7}\n",
     {"data.name=cifar10"},
     {"--set data.name=cifar10: error: data.pool: expected a divisor of the 32 "
      "x "
      "32 pixels of cifar10, got 7"}},
    {"pooled_on_device",
     "data: {pool: 7, on_device: true}\n",
     {},
     {"c.yaml:1:17: error: data.on_device: images are kept on a GPU as bytes, "
      "but pooled images are not bytes; expected auto or false"}},
    {"standardised_otherwise",
     "data: {standardise: true, on_device: true, mean: [0.5], std: [1]}\n",
     {},
     {"c.yaml:1:27: error: data.on_device: images are kept on a GPU as bytes, "
      "but standardised images are not bytes; expected auto or false",
      "c.yaml:1:44: error: data.mean: standardised images take each pixel's "
      "own "
      "mean and deviation; expected none",
      "c.yaml:1:57: error: data.std: standardised images take each pixel's own "
      "mean and deviation; expected none"}},
    {"files_cut_and_pooled",
     "data: {name: image-folder, subset: 9, pool: 7, standardise: true}\n",
     {},
     {"c.yaml:1:28: error: data.subset: image-folder lists its files class "
      "by class, so the first of them cover only a few classes; expected 0",
      "c.yaml:1:39: error: data.pool: image-folder's images are decoded and "
      "cropped for each batch, to data.image_size; expected 0",
      "c.yaml:1:48: error: data.standardise: image-folder's images are decoded "
      "and cropped for each batch, so no pixel has a mean of its own; "
      "expected false"}},
    {"crop_scale_that_falls",
     "data: {name: image-folder, crop_scale: [0.9, 0.5]}\n",
     {},
     {"c.yaml:1:28: error: data.crop_scale: expected two shares, the smaller "
      "one first"}},
    {"odd_batch_of_examples",
     "order: {name: cd-grab, unit: example}\ndata: {batch_size: 33}\n",
     {},
     {"c.yaml:2:8: error: data.batch_size: neighbours are balanced in pairs "
      "within one batch: expected an even number, got 33"}},
    {"large_batch_of_examples",
     "order: {name: grab, unit: example}\ndata: {batch_size: 1025}\n",
     {},
     {"c.yaml:2:8: error: data.batch_size: the products of all pairs of a "
      "batch's gradients are computed: expected at most 1024, got 1025"}},
    {"milestones_that_fall",
     "schedule: {milestones: [0.75, 0.5]}\n",
     {},
     {"c.yaml:1:12: error: schedule.milestones: expected ascending shares"}},
    {"nesterov_without_momentum",
     "optimizer: {name: sgd, nesterov: true, momentum: 0}\n",
     {},
     {"c.yaml:1:40: error: optimizer.nesterov: Nesterov's form needs a "
      "momentum above 0"}},
    {"graphs_on_the_cpu",
     "device: cpu\ntrain: {cuda_graphs: on}\n",
     {},
     {"c.yaml:2:9: error: train.cuda_graphs: graphs need a GPU, but device is "
      "cpu; auto uses them where there is one"}},
    {"onebit_without_feedback",
     "reducer: {name: onebit, error_feedback: false}\n",
     {},
     {"c.yaml:1:25: error: reducer.error_feedback: onebit sends so little of "
      "each gradient that it only works with what it left out before: expected "
      "true"}},
    {"ternary_with_feedback",
     "reducer: {name: ternary, error_feedback: true}\n",
     {},
     {"c.yaml:1:26: error: reducer.error_feedback: ternary's random error is "
      "larger than the values it encodes, so residuals would grow without "
      "bound; expected auto or false"}},
    {"levels_by_all_to_all",
     "reducer: {name: threshold, transport: a2a}\n",
     {},
     {"c.yaml:1:28: error: reducer.transport: threshold takes auto, gather and "
      "int8, got a2a"}},
    {"adagrad_of_averaged_weights",
     "method: {name: local-sgd}\noptimizer: {name: qcmd-adagrad}\n",
     {},
     {"c.yaml:2:13: error: optimizer.name: qcmd-adagrad's sums of gradients "
      "assume that nothing else changes the weights, but local-sgd averages or "
      "decomposes them; expected method.name ddp"}},
    {"dual_averaging_with_a_falling_rate",
     "method: {name: ddp}\noptimizer: {name: qrda-adagrad}\nschedule: {name: "
     "linear}\n",
     {},
     {"c.yaml:3:12: error: schedule.name: qrda-adagrad scales the sum of all "
      "gradients by the current rate: a rate that falls to 0 takes the "
      "weights back to where they started; expected constant, got linear"}},
    {"bits_below_the_norms",
     "reducer: {name: topk-chunked, chunk: 16, bits: 1}\n",
     {},
     {"c.yaml:1:42: error: reducer.bits: the norms of chunks of 16 alone take "
      "1 "
      "bits per element; expected more, got 1"}},
    {"bits_above_everything",
     "reducer: {name: topk, bits: 64}\n",
     {},
     {"c.yaml:1:23: error: reducer.bits: topk sends everything at 48 (a value "
      "of 16 and an index of 32 bits), got 64"}},
    {"block_that_is_no_power",
     "reducer: {name: thc, block: 1000}\n",
     {},
     {"c.yaml:1:22: error: reducer.block: expected a power of two, got 1000"}},
    {"int8_of_many_workers",
     "method: {name: ddp}\nworkers: 128\nreducer: {name: hylo}\n",
     {"reducer.transport=int8"},
     {"--set reducer.transport=int8: error: reducer.transport: int8 holds the "
      "sum of at most 127 workers' codes, but a group has 128; expected a2a or "
      "gather"}},
    {"compressed_local_steps",
     "method: {full_phase: {sync_every: 10}}\nreducer: {name: powersgd}\n",
     {},
     {"c.yaml:2:11: error: method.full_phase.sync_every: local steps average "
      "the parameters without compression, but the dense phases' reducer is "
      "powersgd; expected 1, or method.full_phase.reducer.name plain"}},
    {"dense_phases_reducer",
     "method:\n  full_phase: {reducer: {name: thc, block: 3}}\n",
     {},
     {"c.yaml:2:37: error: method.full_phase.reducer.block: expected a power "
      "of "
      "two, got 3"}},
    {"keys_of_another_reducer",
     "reducer: {name: plain, error_feedback: false, block: 1000, bits: 64}\n",
     {},
     {}},
    {"no_conflict_with_a_wrong_value",
     "workers: 4\nmethod: {group_size: 0}\n",
     {},
     {"c.yaml:2:22: error: method.group_size: expected auto or an integer "
      "from 1 to 65536, got '0'"}},
};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    ConflictingConfig,
    ::testing::ValuesIn(kSets),
    case_name);
INSTANTIATE_TEST_SUITE_P(
    Conflicts,
    ConflictingConfig,
    ::testing::ValuesIn(kConflicts),
    case_name);

}  // namespace
}  // namespace abtrain::config
