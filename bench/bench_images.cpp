// Measures the images per second that image-folder reads from ROOT
// (train/CLASS, val/CLASS), by default with one thread. Prints the rows
// "crop-flip N" and "evaluation N": medians over the rounds, with the best
// round in brackets.
//   bench_images ROOT [images [rounds [threads]]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/augment.h"
#include "data/dataset.h"

namespace {

using namespace abtrain;

constexpr std::int64_t kBatch = 64;

// `body` reads the examples begin .. end - 1.
void measure(
    const char* name, std::int64_t images, int rounds,
    const std::function<void(std::int64_t begin, std::int64_t end, int round)>& body) {
  std::vector<double> rates;
  body(0, std::min(images, kBatch), 0);  // warm-up: memory and tables
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < images; i += kBatch) {
      body(i, std::min(images, i + kBatch), round);
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(images) / spent.count());
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%s %.1f (%.1f)\n", name, rates[rates.size() / 2], rates.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_images ROOT [images [rounds [threads]]]\n");
    return 2;
  }
  try {
    data::DataOptions options;
    options.name = "image-folder";
    options.root = argv[1];
    options.augment = data::AugmentName::CropFlip;
    options.decode_threads = argc > 4 ? std::atol(argv[4]) : 1;
    const data::Dataset set = data::load_dataset(options);
    const std::int64_t wanted = argc > 2 ? std::atol(argv[2]) : 1000;
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 1;
    const data::Augment augment(options, set, 1);
    // Spread over the classes, like the shuffled order of a training run.
    const std::int64_t train = std::min(wanted, set.train.size());
    measure("crop-flip", train, rounds, [&](std::int64_t begin, std::int64_t end, int round) {
      std::vector<std::int64_t> indices;
      for (std::int64_t i = begin; i < end; ++i) {
        indices.push_back(i * set.train.size() / train);
      }
      augment.training(set.train, indices, round);
    });
    measure(
        "evaluation", std::min(wanted, set.test.size()), rounds,
        [&](std::int64_t begin, std::int64_t end, int) {
          augment.evaluation(set.test, begin, end);
        });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_images: %s\n", e.what());
    return 1;
  }
}
