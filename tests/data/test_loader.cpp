#include "data/loader.h"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "data/data_files.h"
#include "data/failing_order.h"
#include "error_of.h"

namespace abtrain::data {
namespace {

class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() {
    set_ = random_set(23, 3, 6, 6);
    augment_ = std::make_unique<Augment>(
        DataOptions{.augment = AugmentName::CropFlip, .erase = 0.5}, set_, 4);
    order_ = make_shuffle({23, 0, 2, 4});  // 11 examples per epoch
  }

  Dataset set_;
  std::unique_ptr<Augment> augment_;
  std::unique_ptr<ExampleOrder> order_;
};

// Epochs of one batch of two examples, which the test hands out: the loader's
// thread gets epoch e once e + 1 epochs are allowed. It asks for epoch e when
// the batches before it are in the queue.
class Gate : public ExampleOrder {
 public:
  std::vector<std::int64_t> epoch(std::int64_t /*epoch*/) const override {
    return {0, 1};
  }
  std::vector<std::int64_t> wait_for(
      std::int64_t epoch, const std::stop_token& stop) const override {
    std::unique_lock lock(mutex_);
    asked_ = epoch;
    most_ahead_ = std::max(most_ahead_, epoch - taken_);
    changed_.notify_all();
    changed_.wait(lock, stop, [&] { return epoch < allowed_; });
    return this->epoch(epoch);
  }
  std::int64_t examples_per_epoch() const override {
    return 2;
  }

  void allow(std::int64_t epochs) {
    const std::lock_guard lock(mutex_);
    allowed_ = epochs;
    changed_.notify_all();
  }
  // False if the loader's thread does not come so far.
  bool wait_until_asked(std::int64_t epoch) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return asked_ >= epoch; });
  }
  // To be called before the batch is taken.
  void count_taken() {
    const std::lock_guard lock(mutex_);
    ++taken_;
  }
  // How many batches the thread was ahead of what had been taken, at most: in
  // the queue, not counting the one that it was about to make.
  std::int64_t most_ahead() const {
    const std::lock_guard lock(mutex_);
    return most_ahead_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  mutable std::int64_t asked_ = -1;
  mutable std::int64_t most_ahead_ = 0;
  std::int64_t allowed_ = 0;
  std::int64_t taken_ = 0;
};

TEST_F(LoaderTest, SameBatchesAsTheLoopByHand) {
  for (const std::int64_t prefetch : {1, 2, 7}) {
    for (const std::int64_t batch_size : {1, 4, 11}) {
      Loader loader(set_.train, *augment_, *order_, batch_size, prefetch);
      const std::int64_t steps = 11 / batch_size;
      ASSERT_EQ(full_batches(*order_, batch_size), steps);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        const std::vector<std::int64_t> examples = order_->epoch(epoch);
        for (std::int64_t step = 0; step < steps; ++step) {
          const Batch wanted = augment_->training(
              set_.train,
              std::span(examples).subspan(
                  static_cast<std::size_t>(step * batch_size),
                  static_cast<std::size_t>(batch_size)),
              epoch);
          const Batch batch = next_of(loader);
          ASSERT_TRUE(at::equal(batch.inputs, wanted.inputs));
          ASSERT_TRUE(at::equal(batch.labels, wanted.labels));
        }
      }
    }
  }
}

TEST_F(LoaderTest, StartsInTheMiddle) {
  Loader whole(set_.train, *augment_, *order_, 3, 2);
  std::vector<Batch> batches;
  for (int i = 0; i < 12; ++i) {
    batches.push_back(next_of(whole));
  }
  for (const std::int64_t start : {0, 2, 3, 7, 9}) {
    Loader later(set_.train, *augment_, *order_, 3, 2, start);
    for (std::size_t i = static_cast<std::size_t>(start); i < 12; ++i) {
      ASSERT_TRUE(at::equal(next_of(later).inputs, batches[i].inputs))
          << "step " << i << " from " << start;
    }
  }
}

TEST_F(LoaderTest, PreparesAsMuchAsAskedForAndNoMore) {
  for (const std::int64_t prefetch : {1, 3}) {
    constexpr std::int64_t kBatches = 300;
    Gate order;
    order.allow(2 * kBatches);
    Loader loader(set_.train, *augment_, order, 2, prefetch);
    for (std::int64_t taken = 0; taken < kBatches; ++taken) {
      // A thread that goes on from here is seen in one of the rounds.
      ASSERT_TRUE(order.wait_until_asked(taken + prefetch)) << prefetch;
      order.count_taken();
      next_of(loader);
    }
    EXPECT_EQ(order.most_ahead(), prefetch);
  }
}

TEST_F(LoaderTest, ThrowsWhatItsThreadThrewAfterTheGoodBatches) {
  const FailingOrder order(6, 2);
  Loader loader(set_.train, *augment_, order, 2, 100);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(next_of(loader).labels.size(0), 2);
  }
  for (int i = 0; i < 2; ++i) {
    expect_error([&] { next_of(loader); }, ErrorKind::DamagedData, {"the order is broken"});
  }
}

TEST_F(LoaderTest, EndsWithAFullQueueAnEmptyOneAndAFailedThread) {
  for (int i = 0; i < 200; ++i) {
    const FailingOrder order(2, i % 3 == 0 ? 0 : -1);
    Loader loader(set_.train, *augment_, order, 2, 1 + i % 4);
    if (i % 3 == 1) {
      EXPECT_EQ(next_of(loader).labels.size(0), 2);
    }
  }
}

TEST_F(LoaderTest, WorkersShareOneDataset) {
  const int workers = 4;
  const auto add_inputs = [](const Batch& batch, double sum) {
    const float* values = batch.inputs.const_data_ptr<float>();
    return std::accumulate(values, values + batch.inputs.numel(), sum);
  };
  std::vector<double> sums(workers);
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < workers; ++worker) {
      threads.emplace_back([&, worker] {
        const auto order = make_shuffle({23, worker, workers, 4});
        Loader loader(set_.train, *augment_, *order, 5, 2);
        for (int i = 0; i < 50; ++i) {
          sums[worker] = add_inputs(next_of(loader), sums[worker]);
        }
      });
    }
  }
  for (int worker = 0; worker < workers; ++worker) {
    const auto order = make_shuffle({23, worker, workers, 4});
    double sum = 0;
    for (int epoch = 0; epoch < 50; ++epoch) {
      sum = add_inputs(augment_->training(set_.train, order->epoch(epoch), epoch), sum);
    }
    EXPECT_EQ(sums[worker], sum);
  }
}

TEST_F(LoaderTest, WaitedCountsOnlyWaiting) {
  constexpr std::int64_t kReady = 20;
  Gate order;
  const Stopwatch whole;
  Loader loader(set_.train, *augment_, order, 2, kReady);
  order.allow(kReady);
  ASSERT_TRUE(order.wait_until_asked(kReady));
  for (std::int64_t i = 0; i < kReady; ++i) {
    next_of(loader);
  }
  EXPECT_EQ(loader.waited(), 0);  // all of them lay ready
  // The queue is empty, and the next batch is made only when this thread is on
  // its way to take it. Should the batch be faster, there is another one.
  for (int i = 0; i < 1000 && loader.waited() == 0; ++i) {
    std::atomic<bool> comes = false;
    const std::jthread other([&] {
      comes.wait(false);
      order.allow(kReady + i + 1);
    });
    comes = true;
    comes.notify_one();
    next_of(loader);
  }
  EXPECT_GT(loader.waited(), 0);
  EXPECT_LT(loader.waited(), whole.seconds());
}

TEST_F(LoaderTest, RefusesASizeThatGivesNoBatch) {
  expect_error(
      [&] { Loader(set_.train, *augment_, *order_, 12, 1); }, ErrorKind::Config,
      {"data.batch_size", "at most the 11", "got 12"});
}

}  // namespace
}  // namespace abtrain::data
