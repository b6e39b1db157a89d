// Tests of an op in all of its forms: what the CPU's code gives is compared with a closed form, and
// the bits that its other forms give, kernels among them, with it. Two programs have these tests:
// test_kernels emulates the kernels on the host (emulation/), and test_ops has each test once
// without kernels, and once, in a suite named Gpu..., with those of a GPU, if there is one:
//
//   ABT_OP_TEST(Signs, AreThoseOfTheNumbers) {
//     const at::Tensor x = randn(100, 1);
//     const auto [y, bits] = forms.same([&](const Form& form) {
//       const std::array out{form.of(x), form.blank({100}, at::kByte)};
//       encode(out[0], out[1]);  // an op
//       return out;              // what it changed
//     });
//     EXPECT_TRUE(bits.equal(x.lt(0)));
//   }
#pragma once

#include <c10/core/Device.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "device/devices.h"
#include "ops/cpu/simd.h"
#include "ops/launch.h"
#include "ops/tensors.h"

#ifdef ABTRAIN_EMULATED
#define ABT_OP_TEST(suite, name)               \
  static void suite##name(const Forms& forms); \
  TEST(suite, name) {                          \
    suite##name(Forms(at::Device(at::kCPU)));  \
  }                                            \
  static void suite##name([[maybe_unused]] const Forms& forms)
#else
#define ABT_OP_TEST(suite, name)                  \
  static void suite##name(const Forms& forms);    \
  TEST(suite, name) {                             \
    suite##name(Forms({}));                       \
  }                                               \
  TEST(Gpu##suite, name) {                        \
    if (device::cuda_devices().empty()) {         \
      GTEST_SKIP() << "no CUDA device here";      \
    }                                             \
    suite##name(Forms(at::Device(at::kCUDA, 0))); \
  }                                               \
  static void suite##name([[maybe_unused]] const Forms& forms)
#endif

namespace abtrain::ops {

#ifdef ABTRAIN_EMULATED
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

// Where an op works: on the CPU by the CPU's code, or by kernels. Its tensors lie in frames, which
// the op must leave as they are, at an aligned address or `offset` elements from one.
class Form {
 public:
  Form(at::Device device, bool is_kernel) : device_(device), is_kernel_(is_kernel) {}

  // A copy that the op may change.
  at::Tensor of(const at::Tensor& values, std::int64_t offset = 0) const {
    return framed(values.sizes(), values.scalar_type(), offset).copy_(values);
  }
  // Other bytes in each form, so that an element which is not written shows.
  at::Tensor blank(
      at::IntArrayRef sizes, at::ScalarType type = at::kFloat, std::int64_t offset = 0) const {
    return framed(sizes, type, offset);
  }
  void expect_whole_frames() const {
    for (const auto& [bytes, begin, end] : frames_) {
      const at::Tensor host = bytes.cpu();
      const auto* all = host.const_data_ptr<std::uint8_t>();
      const auto is_blank = [&](std::uint8_t byte) { return byte == blank_byte(); };
      EXPECT_TRUE(
          std::all_of(all, all + begin, is_blank) &&
          std::all_of(all + end, all + host.numel(), is_blank))
          << "bytes around a tensor were written";
    }
  }

 private:
  struct Frame {
    at::Tensor bytes;
    std::int64_t begin, end;
  };
  static constexpr std::int64_t kMargin = 64;  // a multiple of what kernels take at a time

  int blank_byte() const {
    return is_kernel_ ? 77 : 99;
  }
  at::Tensor framed(at::IntArrayRef sizes, at::ScalarType type, std::int64_t offset) const {
    const auto size = static_cast<std::int64_t>(c10::elementSize(type));
    const std::int64_t begin = kMargin + offset * size;
    const std::int64_t end = begin + c10::multiply_integers(sizes) * size;
    const at::Tensor bytes = at::empty({end + kMargin}, at::dtype(at::kByte).device(device_));
    if (device_.is_cpu()) {  // in this thread: others may be busy elsewhere
      std::memset(bytes.mutable_data_ptr(), blank_byte(), static_cast<std::size_t>(bytes.numel()));
    } else {
      bytes.fill_(blank_byte());
    }
    frames_.push_back({bytes, begin, end});
    return bytes.slice(0, begin, end).view(type).view(sizes);
  }

  at::Device device_;
  bool is_kernel_;
  mutable std::vector<Frame> frames_;
};

class Forms {
 public:
  // `kernels`: where they work, if they do.
  explicit Forms(std::optional<at::Device> kernels) : kernels_(kernels) {}

  // What `work` leaves by the CPU's code: a tensor, or several ones. Without AVX2 it must leave the
  // same bits, and by kernels too, save those of NaNs, which a GPU, and bf16 in kernels, name in
  // their own way.
  template <class Work>
  auto same(const Work& work) const {
    const auto wanted = by_cpu(work);
    expect_same(by_cpu(work, Simd::Plain), wanted, "without AVX2");
    if (kernels_) {
      expect_same(by_kernels(work), wanted, "by kernels");
    }
    return wanted;
  }
  // Has `work` done, which returns nothing, in the CPU's form and by kernels.
  template <class Work>
  void each(const Work& work) const {
    const auto nothing = [&](const Form& form) {
      work(form);
      return at::Tensor();
    };
    by_cpu(nothing);
    if (kernels_) {
      by_kernels(nothing);
    }
  }
  template <class Work>
  static auto by_cpu(const Work& work, Simd simd = best_simd()) {
    simd_in_use = simd;
    const Form form(at::kCPU, false);
    auto results = work(form);
    simd_in_use = best_simd();
    form.expect_whole_frames();
    return results;
  }
  template <class Work>
  auto by_kernels(const Work& work) const {
    const Emulation emulation;
    const Form form(*kernels_, true);
    auto results = work(form);
    form.expect_whole_frames();
    return results;
  }
  bool has_kernels() const {
    return kernels_.has_value();
  }
  bool on_gpu() const {
    return has_kernels() && !kEmulated;
  }
  // Sizes that only hardware is fast enough for.
  std::int64_t large(std::int64_t on_gpus, std::int64_t otherwise) const {
    return on_gpu() ? on_gpus : otherwise;
  }

 private:
  static std::span<const at::Tensor> list_of(const at::Tensor& result) {
    return {&result, 1};
  }
  static std::span<const at::Tensor> list_of(const std::span<const at::Tensor>& results) {
    return results;
  }
  template <class Results>
  static void expect_same(const Results& got, const Results& wanted, const char* where) {
    const auto results = list_of(got), all = list_of(wanted);
    ASSERT_EQ(results.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(same_bits(compared(results[i].cpu()), compared(all[i])))
          << "tensor " << i << ' ' << where;
    }
  }
  static at::Tensor compared(const at::Tensor& result) {
    const bool any_nan =
        kEmulated ? result.scalar_type() == at::kBFloat16 : result.is_floating_point();
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

  std::optional<at::Device> kernels_;
};

}  // namespace abtrain::ops
