// Whole runs of adapters: factors beside a frozen remainder.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_svdvals.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "comm/run_workers.h"
#include "error_of.h"
#include "methods/ab/decompose.h"
#include "train/whole_runs.h"
#include "weights/adapter.h"
#include "weights/export.h"
#include "weights/initial_model.h"
#include "weights/model_file.h"

namespace abtrain::train {
namespace {

using methods::AdapterStart;
using methods::Roles;
using methods::SyncMode;
using methods::Trains;
using testing::expect_same_bits;
using testing::train_all;

config::RunOptions adapter_options(int workers) {
  config::RunOptions o = testing::toy_options(workers, 1);
  o.method.warmup_steps = Duration::steps(0);
  o.method.full_rank_steps = Duration::steps(0);
  o.method.remainder = methods::Remainder::Freeze;
  o.train.steps = 30;
  return o;
}

// W of each adapted layer, as float64.
std::map<std::string, at::Tensor> weights_of(const nn::Model& model) {
  std::map<std::string, at::Tensor> all;
  for (const nn::NamedWeight& w : model.weights()) {
    if (w.weight->is_factored()) {
      all[w.name] = w.weight->merged().detach().to(at::kDouble);
    }
  }
  return all;
}

TEST(Adapters, BeginAsTheWeightThatTheyAdapt) {
  const data::Dataset dataset = testing::toy_dataset();
  for (const auto start : {AdapterStart::Svd, AdapterStart::Zero}) {
    for (const std::int64_t blocks : {1, 4}) {
      config::RunOptions o = adapter_options(2);
      o.method.start = start;
      o.method.blocks = blocks;
      o.method.alpha = start == AdapterStart::Zero ? 3 : 0;
      const auto base = weights::make_initial_model(o, dataset);
      train_all(o, dataset, [&](int, std::int64_t t, nn::Model& model) {
        if (t > 0) {
          return;
        }
        for (std::size_t i = 0; i < model.weights().size(); ++i) {
          const nn::Weight& w = *model.weights()[i].weight;
          const at::Tensor wanted = base->weights()[i].weight->dense;
          if (!w.is_factored()) {
            EXPECT_TRUE(at::equal(w.dense.detach(), wanted));
          } else if (start == AdapterStart::Zero) {
            EXPECT_TRUE(at::equal(w.rest, wanted));
            EXPECT_EQ(w.outer.abs().max().item<float>(), 0);
            EXPECT_GT(w.inner.abs().min().item<float>(), 0);
            EXPECT_LE(
                w.inner.abs().max().item<double>(),
                1 / std::sqrt(static_cast<double>(w.in_features())));
          } else {
            EXPECT_LT((w.merged() - wanted).abs().max().item<double>(), 1e-6);
            EXPECT_GT((w.rest - wanted).abs().max().item<double>(), 1e-2);
          }
        }
      });
    }
  }
}

TEST(Adapters, NothingButTheFactorsChanges) {
  const data::Dataset dataset = testing::toy_dataset();
  for (const auto sync : {SyncMode::OnlyLearned, SyncMode::WithStale, SyncMode::OnlyB}) {
    for (const auto trains : {Trains::One, Trains::Both}) {
      if (trains == Trains::Both && sync != SyncMode::OnlyLearned) {
        continue;
      }
      config::RunOptions o = adapter_options(2);
      o.method.sync = sync;
      o.method.trains = trains;
      o.model.frozen = {"*"};
      const auto base = weights::make_initial_model(o, dataset);
      const auto first = train_all(o, dataset);
      expect_one_model(first);
      expect_same_bits(*first[0].model, *train_all(o, dataset)[0].model);
      const nn::Model& model = *first[0].model;
      for (std::size_t i = 0; i < model.weights().size(); ++i) {
        const nn::Weight& w = *model.weights()[i].weight;
        const at::Tensor before = base->weights()[i].weight->dense;
        if (w.is_factored()) {
          EXPECT_GT((w.merged() - before).abs().max().item<double>(), 1e-3);
          // Of rank 10 at most: what the first factors had, and what the last ones have.
          const at::Tensor change = (w.merged() - before).to(at::kDouble);
          const at::Tensor values = at::linalg_svdvals(change);
          EXPECT_LT(values[10].item<double>(), 1e-6 * values[0].item<double>());
        } else {
          EXPECT_TRUE(at::equal(w.dense, before));
        }
      }
      for (std::size_t i = 0; i < model.parameters().size(); ++i) {
        EXPECT_TRUE(at::equal(*model.parameters()[i].tensor, *base->parameters()[i].tensor));
      }
      EXPECT_GT(first[0].test.accuracy, 0.3);  // chance is 0.25
    }
  }
}

// What groups that train one factor average is the average of their weights; groups that train both
// do not have that.
TEST(Adapters, AveragesOfOneFactorAreExact) {
  const data::Dataset dataset = testing::toy_dataset();
  const auto weights_after = [&](std::int64_t sync_every, Roles roles, Trains trains,
                                 SyncMode sync) {
    config::RunOptions o = adapter_options(2);
    o.method.roles = roles;
    o.method.trains = trains;
    o.method.sync = sync;
    o.method.sync_every = Duration::steps(static_cast<double>(sync_every));
    o.train.steps = 7;
    std::mutex mutex;
    std::map<int, std::map<std::string, at::Tensor>> seen;
    train_all(o, dataset, [&](int rank, std::int64_t t, nn::Model& model) {
      if (t == 5) {
        const std::scoped_lock lock(mutex);
        seen[rank] = weights_of(model);
      }
    });
    return seen;
  };
  const auto error_of_mean = [&](Trains trains, SyncMode sync) {
    const auto apart = weights_after(100, Roles::Fixed, trains, sync);
    const auto together = weights_after(5, Roles::Fixed, trains, sync);
    double error = 0;
    for (const auto& [name, w] : together.at(0)) {
      EXPECT_TRUE(at::equal(w, together.at(1).at(name)));
      const at::Tensor mean = (apart.at(0).at(name) + apart.at(1).at(name)) / 2;
      EXPECT_GT((apart.at(0).at(name) - mean).abs().max().item<double>(), 1e-3);
      error = std::max(error, (w - mean).abs().max().item<double>());
    }
    return error;
  };
  EXPECT_LT(error_of_mean(Trains::One, SyncMode::OnlyB), 1e-6);
  EXPECT_GT(error_of_mean(Trains::Both, SyncMode::OnlyLearned), 1e-5);
}

// With roles that alternate, each factor of each worker changes in its own rounds only.
TEST(Adapters, RolesAlternate) {
  const data::Dataset dataset = testing::toy_dataset();
  for (const auto sync : {SyncMode::OnlyLearned, SyncMode::OnlyB}) {
    config::RunOptions o = adapter_options(2);
    o.method.roles = Roles::Alternate;
    o.method.sync = sync;
    o.method.sync_every = Duration::steps(5);
    o.train.steps = 20;
    std::mutex mutex;
    std::map<int, std::vector<std::vector<bool>>> changed;  // by worker and step: inner, outer
    std::map<int, std::pair<at::Tensor, at::Tensor>> before;
    train_all(o, dataset, [&](int rank, std::int64_t t, nn::Model& model) {
      const std::scoped_lock lock(mutex);
      const nn::Weight& w = *model.weights()[0].weight;
      if (t > 0) {
        const auto& [inner, outer] = before[rank];
        changed[rank].push_back({!at::equal(inner, w.inner), !at::equal(outer, w.outer)});
      }
      before[rank] = {w.inner.detach().clone(), w.outer.detach().clone()};
    });
    for (const int rank : {0, 1}) {
      for (std::int64_t t = 1; t < 20; ++t) {
        if (t % 5 == 0) {
          continue;  // a synchronization has brought the other one
        }
        const bool starts_with_a = sync == SyncMode::OnlyLearned && rank == 0;
        const bool trains_a = starts_with_a != ((t - 1) / 5 % 2 == 1);
        EXPECT_EQ(
            changed[rank][static_cast<std::size_t>(t - 1)],
            (std::vector<bool>{trains_a, !trains_a}))
            << rank << ' ' << t;
      }
    }
  }
}

TEST(Adapters, GoOnWithOtherWorkers) {
  for (const auto roles : {Roles::Fixed, Roles::Alternate}) {
    for (const auto sync : {SyncMode::OnlyLearned, SyncMode::OnlyB, SyncMode::Full}) {
      for (const auto trains : {Trains::One, Trains::Both}) {
        if ((roles == Roles::Alternate && (trains == Trains::Both || sync == SyncMode::Full)) ||
            (trains == Trains::Both && sync != SyncMode::OnlyLearned)) {
          continue;
        }
        SCOPED_TRACE(formatted(
            "{} {} {}", methods::name_of(sync), roles == Roles::Fixed, trains == Trains::One));
        config::RunOptions o = adapter_options(4);
        o.method.roles = roles;
        o.method.sync = sync;
        o.method.trains = trains;
        o.checkpoint.every = Duration::steps(10);
        const SavingRun run(o, testing::toy_dataset());
        const auto fewer = run.go_on(20, [](config::RunOptions& options) { options.workers = 2; });
        expect_one_model(fewer);
        EXPECT_GT(fewer[0].test.accuracy, 0.5);
        for (const nn::NamedWeight& w : fewer[0].model->weights()) {
          EXPECT_EQ(w.weight->rank(), w.layer == "fc3" ? 0 : 5);
        }
      }
    }
  }
}

TEST(Adapters, AnotherBaseIsRefused) {
  config::RunOptions o = adapter_options(2);
  o.checkpoint.every = Duration::steps(10);
  const data::Dataset dataset = testing::toy_dataset();
  const auto base = weights::make_initial_model(o, dataset);
  EXPECT_FALSE(base->base().empty());
  EXPECT_EQ(base->base(), weights::make_initial_model(o, dataset)->base());
  o.seed = 8;
  EXPECT_NE(base->base(), weights::make_initial_model(o, dataset)->base());
}

TEST(Adapters, AResumedRunKeepsTheScoreOfTheInitialWeights) {
  config::RunOptions o = adapter_options(2);
  o.model.weights = "base.safetensors";  // read by sessions alone, which these tests do without
  o.evaluate.every = Duration::steps(10);
  o.checkpoint.every = Duration::steps(10);
  const SavingRun run(o, testing::toy_dataset());
  ASSERT_TRUE(run.whole()[0].before);
  const auto resumed = run.go_on(10);
  run.expect_whole(resumed);
  ASSERT_TRUE(resumed[0].before);
  EXPECT_EQ(resumed[0].before->loss, run.whole()[0].before->loss);
  EXPECT_EQ(resumed[0].before->accuracy, run.whole()[0].before->accuracy);
}

// The workers of a process share what is frozen.
TEST(Adapters, FrozenTensorsLieInMemoryOnce) {
  config::RunOptions o = adapter_options(2);
  o.model.frozen = {"*", "!fc2.bias"};
  const data::Dataset dataset = testing::toy_dataset();
  const auto base = weights::make_initial_model(o, dataset);
  std::mutex mutex;
  std::map<std::string, std::set<const void*>> places;
  TrainInputs inputs{o, dataset, {}, at::kCPU};
  inputs.initialize = [&](nn::Model& model) { model.copy_from(*base); };
  inputs.hooks.before_step = [&](int, std::int64_t, nn::Model& model) {
    const std::scoped_lock lock(mutex);
    for (const nn::NamedWeight& w : model.weights()) {
      places[w.name].insert(
          (w.weight->rest.defined() ? w.weight->rest : w.weight->dense).data_ptr());
    }
    for (const nn::NamedParameter& p : model.parameters()) {
      places[p.name].insert(p.tensor->data_ptr());
    }
  };
  train_threads(inputs);
  ASSERT_EQ(places.size(), 6U);
  for (const auto& [name, where] : places) {
    EXPECT_EQ(where.size(), name == "fc2.bias" ? 2U : 1U) << name;
  }
}

// The file of a run, and that of a checkpoint, give its model again, also where frozen weights
// stand beside others that are factored without a remainder.
TEST(Adapters, FilesGiveTheModelAgain) {
  const data::Dataset dataset = testing::toy_dataset();
  for (const auto remainder : {methods::Remainder::Freeze, methods::Remainder::Drop}) {
    for (const auto start : {AdapterStart::Svd, AdapterStart::Zero}) {
      config::RunOptions o = adapter_options(2);
      o.method.remainder = remainder;
      o.method.start = start;
      o.model.frozen = {"fc3", "fc1.bias"};
      o.checkpoint.every = Duration::steps(30);
      o.train.steps = 40;
      const auto base = weights::make_initial_model(o, dataset);
      const TempFolder folder;
      const run_folder::CheckpointWriter::Options place{folder.path(), config::to_yaml(o), 99};
      TrainInputs inputs{o, dataset, {}, at::kCPU};
      inputs.initialize = [&](nn::Model& model) { model.copy_from(*base); };
      inputs.checkpoints = &place;
      const auto results = train_threads(inputs);
      const auto outputs = [&](nn::Model& model) {
        const at::NoGradGuard no_grad;
        const auto& images = std::get<data::ByteImages>(dataset.test);
        return model.forward(images.pixels.to(at::kFloat) / 255, false);
      };
      const auto expect_again = [&](nn::Model& model) {
        const std::string file = folder / "model.safetensors";
        weights::save_model(file, model);
        const auto loaded = weights::model_of_run(o, dataset, file);
        EXPECT_LT((outputs(*loaded) - outputs(model)).abs().max().item<double>(), 1e-5);
        EXPECT_EQ(loaded->stored_parameters(), model.stored_parameters());
      };
      expect_again(*results[0].model);

      const run_folder::Checkpoint from = run_folder::verified_checkpoint(
          folder.file(formatted("{}/{}", config::kCheckpoints, run_folder::step_folder(30))));
      inputs.checkpoints = nullptr;
      inputs.resume = &from;
      std::unique_ptr<nn::Model> saved;
      std::mutex mutex;
      comm::run_workers(2, 60, [&](comm::Communicator& world) {
        Trainer trainer(world, inputs);
        auto model = trainer.model_of_checkpoint();
        const std::scoped_lock lock(mutex);
        saved = std::move(model);
      });
      expect_again(*saved);
    }
  }
}

// A run that begins with the adapter of another one begins where that one ended.
TEST(Adapters, GoOnFromAFolder) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = adapter_options(2);
  o.model.frozen = {"*"};
  o.method.moments = methods::FactorMoments::Carry;
  const auto base = weights::make_initial_model(o, dataset);
  TrainInputs inputs{o, dataset, {}, at::kCPU};
  inputs.initialize = [&](nn::Model& model) { model.copy_from(*base); };
  const auto first = train_threads(inputs);
  const TempFolder folder;
  weights::save_model(folder / "model.safetensors", *first[0].model);
  const auto loaded = weights::model_of_run(o, dataset, folder / "model.safetensors");
  weights::save_adapter(folder / "adapter", *loaded, "base");

  config::RunOptions more = o;
  more.model.adapter = folder / "adapter";
  more.method.start = AdapterStart::Zero;
  more.method.rank.rank = 10;  // with what the first factors took out of the weight
  const auto next_base = weights::make_initial_model(more, dataset);
  EXPECT_NE(next_base->base(), base->base());
  inputs.initialize = [&](nn::Model& model) { model.copy_from(*next_base); };
  const TrainInputs next{more, dataset, {}, at::kCPU, nullptr, nullptr, inputs.initialize};
  const auto wanted = weights_of(*first[0].model);
  TrainInputs seen = next;
  seen.hooks.before_step = [&](int, std::int64_t t, nn::Model& model) {
    if (t == 0) {
      for (const auto& [name, w] : weights_of(model)) {
        EXPECT_LT((w - wanted.at(name)).abs().max().item<double>(), 1e-6);
      }
    }
  };
  expect_one_model(train_threads(seen));
  more.method.rank.rank = 5;
  expect_error([&] { train_threads(seen); }, ErrorKind::Config, {"method.rank", "10"});
}

}  // namespace
}  // namespace abtrain::train
