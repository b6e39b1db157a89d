// Time to decompose every weight matrix of ResNet-50, beside LAPACK's gesdd as
// torch.linalg.svd(full_matrices=False) calls it, in the same run.
//   bench_svd [threads [repeats [share of n kept as rank]]]
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>

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

namespace {

using namespace abtrain::linalg;

struct Shape {
  std::int64_t m, n, fan;
};

// Rows and columns as the trainer sees them: m >= n.
std::vector<Shape> resnet50() {
  std::vector<Shape> shapes;
  const auto conv = [&](std::int64_t out, std::int64_t in, std::int64_t k) {
    const auto columns = in * k * k;
    shapes.push_back(
        {std::max(out, columns), std::min(out, columns), out * k * k});
  };
  conv(64, 3, 7);
  const struct {
    std::int64_t blocks, width, in;
  } stages[] = {{3, 64, 64}, {4, 128, 256}, {6, 256, 512}, {3, 512, 1024}};
  for (const auto& stage : stages) {
    auto in = stage.in;
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      conv(stage.width, in, 1);
      conv(stage.width, stage.width, 3);
      conv(4 * stage.width, stage.width, 1);
      if (block == 0) {
        conv(4 * stage.width, in, 1);
      }
      in = 4 * stage.width;
    }
  }
  conv(1000, 2048, 1);
  return shapes;
}

at::Tensor kaiming(const Shape& s) {
  return at::randn({s.m, s.n}).mul(std::sqrt(2.0 / s.fan));
}

// A few strong directions over a tail that falls as 1 / i: as after training.
at::Tensor trained(const Shape& s) {
  const auto left = std::get<0>(at::linalg_qr(at::randn({s.m, s.n})));
  const auto right = std::get<0>(at::linalg_qr(at::randn({s.n, s.n})));
  return at::mm(left.mul(at::arange(1, s.n + 1).pow(-1.0)), right.t());
}

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  return spent.count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
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
      shapes.size(),
      threads,
      repeats,
      share);
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
          const auto rank =
              std::max<std::int64_t>(1, std::llround(share * shapes[l].n));
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
        "%-8s %10.0f  %10.0f   %10.0f   %5.3f   %.1e\n",
        spectrum.c_str(),
        1e3 * median(gesdd_time),
        1e3 * median(value_time),
        1e3 * median(factor_time),
        median(factor_time) / median(gesdd_time),
        worst);
  }
  return 0;
}
