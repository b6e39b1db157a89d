// What encoding and decoding cost with the reducer thc: nanoseconds a number of
// each part, on one core or a GPU.
//   bench_thc [--device auto|cpu|cuda] [--numel N] [--repeats N]
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device/devices.h"
#include "ops/hadamard.h"
#include "ops/quantize.h"

namespace {

using namespace abtrain;

std::string option(int argc, char** argv, const char* name, const char* else_) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) {
      return argv[i + 1];
    }
  }
  return else_;
}

struct Bench {
  c10::Device device;
  std::int64_t numel;
  int repeats;

  double row(const std::string& what, const std::function<void()>& body) const {
    std::vector<double> times;
    const auto finish = [this] {
      if (device.is_cuda()) {
        c10::impl::VirtualGuardImpl(device.type())
            .getStream(device)
            .synchronize();
      }
    };
    for (int i = 0; i <= repeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      body();
      finish();
      const std::chrono::duration<double, std::nano> spent =
          std::chrono::steady_clock::now() - start;
      if (i > 0) {
        times.push_back(spent.count());
      }
    }
    std::sort(times.begin(), times.end());
    const double ns = times[times.size() / 2];
    std::printf(
        "%-34s %9.3f ms %8.3f ns\n",
        what.c_str(),
        ns / 1e6,
        ns / static_cast<double>(numel));
    std::fflush(stdout);
    return ns / 1e6;
  }

  void block(std::int64_t size, bool rotate) const {
    const auto options = at::TensorOptions(device);
    const std::int64_t unit = ops::unit_of(size);
    const std::int64_t all = (numel + unit - 1) / unit * unit;
    const at::Tensor u = at::randn({numel}, options);
    const at::Tensor norms = at::empty({all / size}, options);
    const at::Tensor codes = at::empty({all}, options.dtype(at::kByte));
    const at::Tensor out = at::empty({numel}, options);
    const ops::Coding coding{.block = size, .rotate = rotate};
    std::printf(
        "block %lld%s\n",
        static_cast<long long>(size),
        rotate ? "" : ", no rotation");
    double total = row("  norms", [&] { ops::block_norms(u, size, norms); });
    const at::Tensor ranges = norms.mul(3.3);
    row("  encode without residual",
        [&] { ops::quantize_blocks(u, ranges, coding, false, codes); });
    const at::Tensor room = u.clone();
    total += row("  encode with residual", [&] {
      ops::quantize_blocks(room, ranges, coding, true, codes);
    });
    total += row("  decode", [&] {
      ops::dequantize_blocks({codes, 7.5F, 1}, ranges, coding, out);
    });
    std::printf("  %-32s %9.3f ms\n", "norms, encode and decode", total);
  }
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const at::NoGradGuard no_grad;
    at::set_num_threads(1);
    const Bench bench{
        device::pick_device(option(argc, argv, "--device", "auto")),
        std::atoll(option(argc, argv, "--numel", "10000000").c_str()),
        std::atoi(option(argc, argv, "--repeats", "9").c_str())};
    bench.block(1024, true);
    bench.block(1024, false);
    bench.block(std::int64_t{1} << 20, true);
    const at::Tensor x =
        at::randn({bench.numel >> 20 << 20}, at::TensorOptions(bench.device));
    for (const std::int64_t size : {64, 1024, 4096, 32768, 1 << 20}) {
      bench.row("hadamard " + std::to_string(size), [&] {
        ops::hadamard(x.fill_(1), size);
      });
    }
    // Of four members, on this one's shard.
    const auto bytes = at::TensorOptions(bench.device).dtype(at::kByte);
    const std::int64_t shard = bench.numel / 8 / 64 * 64;
    const at::Tensor in = at::empty({4 * shard}, bytes).fill_(0x7A);
    const at::Tensor sum = at::empty({shard + kernels::kTailBytes}, bytes);
    bench.row("sum of a shard of 4-bit codes, n = 4", [&] {
      ops::sum_codes(in, 4, sum);
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_thc: %s\n", e.what());
    return 1;
  }
}
