// Times the decomposition of every weight matrix of ResNet-50 beside LAPACK's
// gesdd, as torch.linalg.svd(full_matrices=False) calls it, in the same run.
//   bench_svd [threads [repeats [share of n kept as rank]]]
// The second form decomposes the layers of a model by rank rule, as a run does,
// and prints how exact the result is:
//   bench_svd --model vgg16|resnet50 | --shape MxN  [--device cpu|cuda]
//             [--threads N] [--repeats N]
//             [--spectrum orthogonal|kaiming|trained] [--check 0|1]
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/linalg_svd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "linalg/parallel.h"
#include "linalg/svd.h"
#include "svd_model.h"
#include "svd_shapes.h"

namespace {

using namespace abtrain::linalg;
using namespace abtrain::bench;

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return spent.count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    return decompose_model({argv + 1, argv + argc});
  }
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  const double share = argc > 3 ? std::atof(argv[3]) : 0.125;
  at::set_num_threads(threads);
  const auto shapes = resnet50();
  std::vector<double> costs;
  for (const auto& s : shapes) {
    costs.push_back(decomposition_cost(s.m, s.n));
  }
  std::printf(
      "%zu matrices, %d thread(s), median of %d, rank %g n\n"
      "spectrum   gesdd ms   values ms   factors ms   ratio   worst error\n",
      shapes.size(), threads, repeats, share);
  for (const std::string spectrum : {"kaiming", "trained"}) {
    std::vector<at::Tensor> weights;
    for (const auto& s : shapes) {
      weights.push_back(spectrum == "kaiming" ? kaiming(s) : trained(s));
    }
    std::vector<double> gesdd_time, value_time, factor_time;
    std::vector<std::vector<double>> values(shapes.size());
    for (int i = 0; i < repeats; ++i) {
      gesdd_time.push_back(seconds([&] {
        for (const auto& w : weights) {
          at::linalg_svd(w, /*full_matrices=*/false);
        }
      }));
      value_time.push_back(seconds([&] {
        for_each_matrix(costs, threads, [&](std::size_t l) {
          values[l] = Decomposition(weights[l], "w").singular_values();
        });
      }));
      factor_time.push_back(seconds([&] {
        for_each_matrix(costs, threads, [&](std::size_t l) {
          const auto rank = std::max<std::int64_t>(1, std::llround(share * shapes[l].n));
          Decomposition(weights[l], "w").factors(weights[l], rank);
        });
      }));
    }
    double worst = 0;
    for (std::size_t l = 0; l < weights.size(); ++l) {
      const auto exact = gesdd(weights[l]).s;
      const double* s = exact.const_data_ptr<double>();
      for (std::int64_t i = 0; i < shapes[l].n; ++i) {
        worst = std::max(worst, std::abs(values[l][i] - s[i]) / s[0]);
      }
    }
    std::printf(
        "%-8s %10.0f  %10.0f   %10.0f   %5.3f   %.1e\n", spectrum.c_str(), 1e3 * median(gesdd_time),
        1e3 * median(value_time), 1e3 * median(factor_time),
        median(factor_time) / median(gesdd_time), worst);
  }
  return 0;
}
