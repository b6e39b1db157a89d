// Measures the bandwidth of the kernels beside the device's own copy of as many
// bytes, in the same run. Each row has kernel, type, size, ms (median), bytes
// moved, GB/s and the share of the copy's bandwidth. Buffers are used in turn,
// so that no cache holds them.
//   bench_kernels [--device auto|cpu|cuda] [--images N] [--repeats N]
// --images: the largest batch (65536; 1024 on a CPU).
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "code_rows.h"
#include "data/batch.h"
#include "device.h"
#include "ops/augment_images.h"
#include "ops/chunks.h"
#include "ops/cross_entropy.h"
#include "ops/reduce_buffers.h"
#include "ops/scale_cast.h"
#include "ops/select_largest.h"
#include "ops/thin_products.h"
#include "thc_rows.h"

namespace {

using namespace abtrain;

struct Bench {
  c10::Device device;
  int repeats;
  std::int64_t cache_bytes;  // more than the caches hold

  // How many sets of buffers, of `bytes` each, are needed so that the next one
  // is in no cache.
  int rotation(std::int64_t bytes) const {
    return static_cast<int>(
        std::clamp<std::int64_t>(cache_bytes / std::max<std::int64_t>(bytes, 1), 1, 64) + 1);
  }

  std::vector<double> cpu_times(const std::function<void(int)>& body) const {
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      body(i);
      const std::chrono::duration<double, std::milli> spent =
          std::chrono::steady_clock::now() - start;
      times.push_back(spent.count());
    }
    return times;
  }

  // All work is queued while the device is busy with copies; otherwise a short
  // kernel's time would be that of its launch.
  std::vector<double> gpu_times(const std::function<void(int)>& body) const {
    const auto options = at::TensorOptions(device).dtype(at::kByte);
    const at::Tensor from = at::empty({256LL << 20}, options);
    const at::Tensor to = at::empty({256LL << 20}, options);
    for (int i = 0; i < 60; ++i) {
      to.copy_(from, /*non_blocking=*/true);
    }
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    std::vector<c10::Event> events;
    for (int i = 0; i <= repeats; ++i) {
      events.emplace_back(device.type(), c10::EventFlag::BACKEND_DEFAULT);
      events.back().record(stream);
      if (i < repeats) {
        body(i);
      }
    }
    stream.synchronize();
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      const auto k = static_cast<std::size_t>(i);
      times.push_back(events[k].elapsedTime(events[k + 1]));
    }
    return times;
  }

  // Median milliseconds of body(0), body(1), ...
  double median(const std::function<void(int)>& body) const {
    for (int i = 0; i < 5; ++i) {
      body(i);
    }
    std::vector<double> times = device.is_cuda() ? gpu_times(body) : cpu_times(body);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  // Milliseconds of a copy that reads and writes `bytes` in total.
  double copy_ms(std::int64_t bytes) const {
    const int sets = rotation(bytes);
    std::vector<at::Tensor> from, to;
    for (int i = 0; i < sets; ++i) {
      const auto options = at::TensorOptions(device).dtype(at::kByte);
      from.push_back(at::empty({bytes / 2}, options).fill_(i));
      to.push_back(at::empty({bytes / 2}, options).fill_(i));
    }
    return median([&](int i) {
      const auto k = static_cast<std::size_t>(i % sets);
      if (device.is_cuda()) {
        to[k].copy_(from[k], /*non_blocking=*/true);
      } else {
        std::memcpy(
            to[k].mutable_data_ptr(), from[k].const_data_ptr(),
            static_cast<std::size_t>(bytes / 2));
      }
    });
  }

  void row(
      const std::string& kernel, const std::string& type, const std::string& size,
      std::int64_t bytes, const std::function<void(int)>& body) const {
    const double ms = median(body);
    const double copy = copy_ms(bytes);
    std::printf(
        "%-16s %-10s %-22s %10.4f %14lld %9.1f %6.1f %%\n", kernel.c_str(), type.c_str(),
        size.c_str(), ms, static_cast<long long>(bytes), static_cast<double>(bytes) / ms / 1e6,
        100 * copy / ms);
    std::fflush(stdout);
  }
};

void augment_rows(const Bench& bench, std::int64_t most) {
  struct Shape {
    std::int64_t channels, side, images;
  };
  for (const Shape& s : {Shape{3, 32, 50'000}, Shape{1, 28, 60'000}}) {
    const auto bytes_on = [&](at::ScalarType type) {
      return at::TensorOptions(bench.device).dtype(type);
    };
    const std::int64_t numel = s.channels * s.side * s.side;
    const at::Tensor pixels =
        at::randint(256, {s.images, s.channels, s.side, s.side}, bytes_on(at::kByte));
    const at::Tensor labels = at::randint(10, {s.images}, bytes_on(at::kLong));
    const at::Tensor table = at::randn({s.channels, 256}, bytes_on(at::kFloat));
    for (std::int64_t batch : {256, 1024, 8192, 65'536}) {
      if (batch > most) {
        continue;
      }
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        for (const double erase : {0.0, 0.5}) {
          const auto width = static_cast<std::int64_t>(c10::elementSize(type));
          const std::int64_t bytes = batch * (numel * (1 + width) + 24);
          const int sets = bench.rotation(bytes);
          std::vector<at::Tensor> indices;
          std::vector<data::Batch> batches;
          for (int i = 0; i < sets; ++i) {
            indices.push_back(at::randint(s.images, {batch}, bytes_on(at::kLong)));
            batches.push_back(data::empty_batch(batch, s.channels, s.side, s.side, bytes_on(type)));
          }
          bench.row(
              erase > 0 ? "augment, erase" : "augment", type == at::kFloat ? "fp32" : "bf16",
              formatted("{} x {}x{}x{}", batch, s.channels, s.side, s.side), bytes, [&](int i) {
                const auto k = static_cast<std::size_t>(i % sets);
                ops::augment_images(
                    {pixels, labels, indices[k], table, batches[k].inputs, batches[k].labels},
                    {.crop = true, .pad = 4, .flip = true, .erase = erase, .seed = 1, .epoch = i});
              });
        }
      }
    }
  }
}

void reduce_rows(const Bench& bench, std::int64_t numel) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int n : {2, 4, 8}) {
      const std::int64_t bytes = 2 * n * numel * static_cast<std::int64_t>(c10::elementSize(type));
      const int sets = bench.rotation(bytes);
      std::vector<std::vector<at::Tensor>> buffers(static_cast<std::size_t>(sets));
      for (auto& each : buffers) {
        for (int b = 0; b < n; ++b) {
          each.push_back(at::randn({numel}, at::TensorOptions(bench.device)).to(type));
        }
      }
      bench.row(
          "reduce_buffers", type == at::kFloat ? "fp32" : "bf16", formatted("{} x {}", n, numel),
          bytes, [&](int i) {
            const auto& use = buffers[static_cast<std::size_t>(i % sets)];
            ops::reduce_buffers(use, 0, numel, use, 0, ops::ReduceOp::Mean);
          });
    }
  }
}

void scale_cast_rows(const Bench& bench, std::int64_t numel) {
  const auto type_name = [](at::ScalarType type) { return type == at::kFloat ? "fp32" : "bf16"; };
  for (const auto& [from, to] :
       {std::pair(at::kFloat, at::kBFloat16), std::pair(at::kBFloat16, at::kFloat)}) {
    const std::int64_t bytes =
        numel * static_cast<std::int64_t>(c10::elementSize(from) + c10::elementSize(to));
    const int sets = bench.rotation(bytes);
    std::vector<at::Tensor> in, out;
    for (int i = 0; i < sets; ++i) {
      in.push_back(at::randn({numel}, at::TensorOptions(bench.device)).to(from));
      out.push_back(at::empty({numel}, at::TensorOptions(bench.device).dtype(to)));
    }
    bench.row(
        "scale_cast", formatted("{}>{}", type_name(from), type_name(to)), formatted("{}", numel),
        bytes, [&](int i) {
          const auto k = static_cast<std::size_t>(i % sets);
          ops::scale_cast(in[k], 0.25F, out[k]);
        });
  }
}

// The loss of a text's tokens, and of images of few classes. The bytes are those
// of a single read of the logits and of the gradient's write.
void entropy_rows(const Bench& bench, std::int64_t tokens) {
  struct Shape {
    std::int64_t rows, classes;
  };
  for (const Shape& s : {Shape{tokens, 50'304}, Shape{tokens, 50'257}, Shape{1024, 10}}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const std::int64_t bytes =
          2 * s.rows * s.classes * static_cast<std::int64_t>(c10::elementSize(type));
      const int sets = bench.rotation(bytes);
      std::vector<at::Tensor> logits;
      for (int i = 0; i < sets; ++i) {
        logits.push_back(at::randn({s.rows, s.classes}, at::TensorOptions(bench.device)).to(type));
      }
      const at::Tensor labels =
          at::randint(s.classes, {s.rows}, at::TensorOptions(bench.device).dtype(at::kLong));
      bench.row(
          "cross_entropy", type == at::kFloat ? "fp32" : "bf16",
          formatted("{} x {}", s.rows, s.classes), bytes, [&](int i) {
            ops::cross_entropy(logits[static_cast<std::size_t>(i % sets)], labels, {});
          });
    }
  }
}

// Products of a matrix with thin ones, beside LibTorch's. The bytes are those of a read of the
// matrix.
void thin_rows(const Bench& bench) {
  struct Shape {
    std::int64_t n, m, rank;
  };
  const auto options = at::TensorOptions(bench.device);
  for (const auto& [n, m, rank] :
       {Shape{1536, 256, 8}, {1536, 1024, 8}, {1024, 1024, 4}, {512, 4608, 4}, {1024, 1024, 16}}) {
    const int sets = bench.rotation(4 * n * m);
    std::vector<at::Tensor> all;
    for (int i = 0; i < sets; ++i) {
      all.push_back(at::randn({n, m}, options));
    }
    const at::Tensor w = at::randn({rank, m}, options), z = at::randn({rank, n}, options);
    at::Tensor products = at::empty({rank, n}, options), sums = at::empty({rank, m}, options);
    const auto row = [&](const char* name, const auto& body) {
      bench.row(name, "fp32", formatted("{} x {}, {}", n, m, rank), 4 * n * m, [&](int i) {
        body(all[static_cast<std::size_t>(i % sets)]);
      });
    };
    row("thin_product", [&](const at::Tensor& x) { ops::thin_product(x, w, products.t()); });
    row("at::mm", [&](const at::Tensor& x) { at::mm_out(products, w, x.t()); });
    row("add_thin_sums", [&](const at::Tensor& x) { ops::add_thin_sums(z.t(), x, sums); });
    row("at::addmm", [&](const at::Tensor& x) { at::addmm_out(sums, sums, z, x); });
  }
}

// Kernels of reducers that send the largest numbers, at 2 bits per number.
void sparse_rows(const Bench& bench, std::int64_t numel) {
  constexpr std::int64_t kChunk = 64;
  const auto options = at::TensorOptions(bench.device);
  const std::int64_t chunks = ops::chunk_count(numel, kChunk);
  const std::int64_t taken = chunks * 7 / 64;
  const int sets = bench.rotation(numel * 4);
  std::vector<at::Tensor> u, g, norms, wires;
  for (int i = 0; i < sets; ++i) {
    u.push_back(at::randn({numel}, options));
    g.push_back(at::randn({numel}, options));
    norms.push_back(at::empty({chunks}, options));
    wires.push_back(at::empty({taken * kChunk}, options.dtype(at::kHalf)));
  }
  const auto k = [&](int i) { return static_cast<std::size_t>(i % sets); };
  const std::string size = formatted("{} / {}", numel, kChunk);
  bench.row("add_with_norms", "fp32", size, numel * 12 + chunks * 4, [&](int i) {
    ops::add_with_norms(u[k(i)], g[k(i)], true, kChunk, norms[k(i)]);
  });
  const at::Tensor indices = ops::select_largest(norms[0], taken);
  const std::string part = formatted("{} of {}", taken, chunks);
  bench.row("take_chunks", "fp32>fp16", part, taken * kChunk * 10, [&](int i) {
    ops::take_chunks(u[k(i)], indices, kChunk, 4, wires[k(i)]);
  });
  bench.row("put_chunks", "fp16>fp32", part, taken * kChunk * 6, [&](int i) {
    ops::put_chunks(wires[k(i)], indices, kChunk, u[k(i)], ops::Put::Set);
  });
  // The bytes are those of a single read of the numbers.
  bench.row("select_largest", "fp32", formatted("{}", numel), numel * 4, [&](int i) {
    ops::select_largest(g[k(i)], numel / 24);
  });
}

std::string option(int argc, char** argv, const char* name, const char* else_) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) {
      return argv[i + 1];
    }
  }
  return else_;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const at::NoGradGuard no_grad;
    const c10::Device device = bench::device_of(option(argc, argv, "--device", "auto"));
    const bool gpu = device.is_cuda();
    at::set_num_threads(1);
    const Bench bench{
        device, std::atoi(option(argc, argv, "--repeats", gpu ? "200" : "30").c_str()),
        (gpu ? 512LL : 64LL) << 20};
    const std::int64_t most =
        std::atoll(option(argc, argv, "--images", gpu ? "65536" : "1024").c_str());
    std::string name = device::cpu_device().name;
    for (const device::DeviceInfo& each : device::cuda_devices()) {
      name = each.device == device ? each.name : name;
    }
    std::printf(
        "%s, median of %d\n%-16s %-10s %-22s %10s %14s %9s %8s\n", name.c_str(), bench.repeats,
        "kernel", "type", "size", "ms", "bytes moved", "GB/s", "of copy");
    augment_rows(bench, most);
    const std::int64_t numel = gpu ? 1LL << 25 : 1LL << 21;
    reduce_rows(bench, numel);
    scale_cast_rows(bench, numel);
    entropy_rows(bench, gpu ? 12 * 1024 : 32);
    thc_rows(bench, numel, 1024);
    thc_rows(bench, numel, 1 << 20);
    shard_row(bench, numel);
    code_rows(bench, numel);
    sparse_rows(bench, numel);
    thin_rows(bench);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_kernels: %s\n", e.what());
    return 1;
  }
}
