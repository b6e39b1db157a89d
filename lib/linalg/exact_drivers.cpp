#include "linalg/exact_drivers.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>

#include <limits>

#include "device/span.h"
#include "linalg/eigen.h"

namespace abtrain::linalg {
namespace {

// Beyond this the polar route takes seconds and gigabytes.
constexpr std::int64_t kLargestPolar = 1024;
constexpr std::int64_t kSmallestPolar = 128;

at::Tensor scaled(const at::Tensor& matrix, double scale) {
  const auto w = matrix.detach().to(at::kDouble);
  return scale == 1 ? w : w.mul(scale);
}

at::Tensor gram(const at::Tensor& matrix, double scale) {
  const auto w = scaled(matrix, scale);
  return at::mm(w.t(), w);
}

}  // namespace

ExactDrivers::ExactDrivers(c10::Device device) : device_(device) {}
ExactDrivers::~ExactDrivers() = default;

EigenSolver& ExactDrivers::solver() {
  if (!solver_) {
    solver_ = std::make_unique<EigenSolver>(device_);
  }
  return *solver_;
}

std::vector<Eigenpairs> ExactDrivers::decompose(
    const std::vector<at::Tensor>& matrices,
    const std::vector<double>& scales,
    const std::string& what) {
  const auto n = matrices.front().size(1);
  const auto count = std::ssize(matrices);
  std::int64_t rows = 0;
  for (const at::Tensor& matrix : matrices) {
    rows += matrix.size(0);
  }

  const auto by_gram = [&](bool batched) {
    std::vector<at::Tensor> grams;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      grams.push_back(gram(matrices[i], scales[i]));
    }
    const auto all = at::stack(grams);
    grams.clear();
    const EigenBatch found =
        batched ? solver().batched(all) : solver().each(all);
    const auto values =
        read_back({{found.values.flip(1), found.info, what}}).front();
    std::vector<Eigenpairs> pairs;
    for (std::int64_t i = 0; i < count; ++i) {
      pairs.push_back(
          {{values.begin() + i * n, values.begin() + (i + 1) * n},
           found.vectors[i].flip(0).t()});
    }
    return pairs;
  };
  const auto by_polar = [&] {
    std::vector<Pending> pending;
    std::vector<Eigenpairs> pairs;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const DeviceSvd svd = solver().polar(scaled(matrices[i], scales[i]));
      pending.push_back({svd.values.square(), svd.info, what});
      pairs.push_back({{}, svd.v});
    }
    auto values = read_back(pending);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      pairs[i].values = std::move(values[i]);
    }
    return pairs;
  };

  std::vector<Driver> drivers = {
      {"gram+syevd", [&] { return by_gram(false); }}};
  if (count > 1 && n * n * count <= std::numeric_limits<std::int32_t>::max()) {
    drivers.push_back({"gram+syev-batched", [&] { return by_gram(true); }});
  }
  if (n >= kSmallestPolar && n <= kLargestPolar) {
    drivers.push_back({"gesvdp", by_polar});
  }
  return choice_.run(
      {rows, n, count}, drivers, [&](const std::function<void()>& body) {
        auto span = device::Span::begin(device_);
        body();
        span.end();
        return 1e3 * span.seconds(/*wait=*/true).value();
      });
}

}  // namespace abtrain::linalg
