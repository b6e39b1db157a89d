// Tests that kernels give the bits of the CPU's code. The same cases are in two
// programs: test_kernels emulates the kernels on the host (emulation/), and test_ops
// runs them on a GPU, if there is one:
//
//   class ABT_KERNEL_SUITE(Signs) : public KernelTest {};
//
//   TEST_F(ABT_KERNEL_SUITE(Signs), EncodeAsTheCpuToTheBit) {
//     expect_same([](const Form& form) {
//       const at::Tensor x = form.of(randn(100, 1));
//       const at::Tensor bits = form.blank({13}, at::kByte);
//       encode(x, bits);                   // an op
//       return std::vector{x, bits};       // what it changed
//     });
//   }
#pragma once

#include <ATen/ops/full.h>
#include <c10/util/FunctionRef.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "ops/launch.h"
#include "ops/tensors.h"

#ifdef ABTRAIN_EMULATED
#define ABT_KERNEL_SUITE(name) name##Kernels
#else
#define ABT_KERNEL_SUITE(name) Gpu##name
#endif

namespace abtrain::ops {

#ifdef ABTRAIN_EMULATED
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

// Large sizes are for hardware: emulated threads take turns.
constexpr std::int64_t large(std::int64_t on_gpu, std::int64_t emulated) {
  return kEmulated ? emulated : on_gpu;
}

// Where an op works: on the CPU by the CPU's code, or by kernels.
struct Form {
  at::Device device;
  bool is_kernel;

  // A copy that the op may change.
  at::Tensor of(const at::Tensor& values) const {
    return values.to(device, values.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  }
  // Other bytes in each form, so that an element which is not written shows.
  at::Tensor blank(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) const {
    return at::full(sizes, is_kernel ? 77 : 99, at::dtype(type).device(device));
  }
};

class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!kEmulated && device::cuda_devices().empty()) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }

  using Work = c10::function_ref<std::vector<at::Tensor>(const Form& form)>;

  static std::vector<at::Tensor> by_cpu(Work work) {
    return work({at::kCPU, false});
  }

  static std::vector<at::Tensor> by_kernels(Work work) {
    const at::Device device = kEmulated ? at::Device(at::kCPU) : at::Device(at::kCUDA, 0);
    const Emulation emulation;
    std::vector<at::Tensor> results = work({device, true});
    for (at::Tensor& result : results) {
      result = result.cpu();
    }
    return results;
  }

  // That both forms leave the same bits in all tensors that `work` returns. A GPU gives NaNs
  // bits of its own, which are not compared.
  static void expect_same(Work work) {
    const std::vector<at::Tensor> wanted = by_cpu(work);
    const std::vector<at::Tensor> got = by_kernels(work);
    ASSERT_FALSE(wanted.empty());
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(same_bits(compared(got[i]), compared(wanted[i]))) << "tensor " << i;
    }
  }

 private:
  static at::Tensor compared(const at::Tensor& result) {
    const bool any_nan = !kEmulated && result.is_floating_point();
    return (any_nan ? result.masked_fill(result.isnan(), NAN) : result).contiguous();
  }

  struct Emulation {
    Emulation() {
      emulates_kernels = kEmulated;
    }
    Emulation(const Emulation&) = delete;
    Emulation& operator=(const Emulation&) = delete;
    ~Emulation() {
      emulates_kernels = false;
    }
  };
};

}  // namespace abtrain::ops
