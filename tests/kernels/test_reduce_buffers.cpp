#include "ops/reduce_buffers.h"

#include "op_test.h"

namespace abtrain::ops {
namespace {

// The numbers of n buffers: integers over their whole range, so that sums wrap around; one number
// whose sum is beyond the range of fp16.
at::Tensor some_buffers(int n, std::int64_t numel, at::ScalarType type) {
  if (!at::isFloatingType(type)) {
    using Limits = std::numeric_limits<int>;
    return randint(Limits::min(), Limits::max(), {n, numel}, 7, type);
  }
  const at::Tensor values =
      at::randn({n, numel}, at::detail::createCPUGenerator(7), at::kDouble).to(type);
  values.narrow(1, numel / 2, numel > 0 ? 1 : 0).fill_(60000);
  return values;
}

// One element at a time, in the order of the buffers, in the wide type.
template <class T, class Wide>
at::Tensor reduced(const at::Tensor& in, ReduceOp op) {
  const at::Tensor out = at::empty({in.size(1)}, in.options());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const T* x = in.const_data_ptr<T>() + i;
    Wide sum = static_cast<Wide>(*x);
    for (std::int64_t b = 1; b < in.size(0); ++b) {
      const Wide next = static_cast<Wide>(x[b * out.numel()]);
      sum = op == ReduceOp::Max ? std::max(sum, next) : sum + next;
    }
    if (op == ReduceOp::Mean) {
      sum /= static_cast<Wide>(in.size(0));
    }
    out.mutable_data_ptr<T>()[i] = static_cast<T>(sum);
  }
  return out;
}

struct ReduceType {
  at::ScalarType type;
  at::Tensor (*reduced)(const at::Tensor& in, ReduceOp op);
};
constexpr ReduceType kReduceTypes[] = {
    {at::kFloat, reduced<float, float>},
    {at::kDouble, reduced<double, double>},
    {at::kHalf, reduced<c10::Half, float>},
    {at::kBFloat16, reduced<c10::BFloat16, float>},
    {at::kByte, reduced<std::uint8_t, std::int64_t>},
    {at::kInt, reduced<int, std::int64_t>},
    {at::kLong, reduced<std::int64_t, std::int64_t>}};

// Buffers that each begin at an aligned address.
std::vector<at::Tensor> buffers_of(const Form& form, const at::Tensor& values) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& each : values.unbind()) {
    all.push_back(form.of(each));
  }
  return all;
}

ABT_OP_TEST(ReduceBuffers, GiveTheSequentialSumToTheBit) {
  for (const auto& [of, numel, n, op] : cases(
           kReduceTypes, {0L, 1L, 7L, 8L, 2047L, 4096L, 4099L, forms.large(100003, 30011)},
           {1, 2, 3, 8, 64}, {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max})) {
    if (op == ReduceOp::Mean && !at::isFloatingType(of.type)) {
      continue;
    }
    const at::Tensor values = some_buffers(n, numel, of.type);
    const at::Tensor all = of.reduced(values, op);
    // Odd begins take the path without packets.
    for (const std::int64_t begin : {0, 1, 3, 4}) {
      if (begin > numel) {
        continue;
      }
      SCOPED_TRACE(begin);
      const std::vector<at::Tensor> results = forms.same([&](const Form& form) {
        const auto buffers = buffers_of(form, values);
        reduce_buffers(buffers, begin, numel - begin, buffers, begin, op);
        return buffers;
      });
      for (int b = 0; b < n; ++b) {
        const at::Tensor& result = results[static_cast<std::size_t>(b)];
        EXPECT_TRUE(result.slice(0, begin).equal(all.slice(0, begin)));
        EXPECT_TRUE(result.slice(0, 0, begin).equal(values[b].slice(0, 0, begin)));
      }
    }
  }
}

ABT_OP_TEST(ReduceBuffers, PutTheirRangeElsewhere) {
  for (const auto& [of] : cases(kReduceTypes)) {
    const at::Tensor values = some_buffers(3, 5000, of.type);
    const std::vector<at::Tensor> results = forms.same([&](const Form& form) {
      auto buffers = buffers_of(form, values);
      const at::Tensor out = form.of(at::full({3001}, 9, values.options()));
      reduce_buffers(buffers, 1500, 2500, {out}, 500, ReduceOp::Sum);
      buffers.push_back(out);
      return buffers;
    });
    const at::Tensor wanted = of.reduced(values, ReduceOp::Sum);
    EXPECT_TRUE(results[3].slice(0, 500, 3000).equal(wanted.slice(0, 1500, 4000)));
    EXPECT_TRUE(results[3].slice(0, 0, 500).eq(9).all().item<bool>());
    EXPECT_EQ(number(results[3][3000]), 9);
    EXPECT_TRUE(results[1].equal(values[1]));
  }
}

ABT_OP_TEST(ReduceBuffers, ShowANanInAMaximum) {
  for (const auto& [type, place] :
       cases({at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}, {0, 1, 2})) {
    const at::Tensor values = some_buffers(3, 40, type);
    values[place][17].fill_(NAN);
    const at::Tensor nans = forms.same([&](const Form& form) {
      const auto buffers = buffers_of(form, values);
      reduce_buffers(buffers, 0, 40, buffers, 0, ReduceOp::Max);
      return at::cat(buffers).isnan();  // whose bits need not be the same
    });
    EXPECT_TRUE(nans.view({3, 40}).select(1, 17).all().item<bool>());
    EXPECT_EQ(number(nans.sum()), 3);
  }
}

TEST(ReduceBuffers, RefuseWhatDoesNotFit) {
  const auto a = at::zeros({4}), i = at::zeros({4}, at::kInt);
  EXPECT_REFUSED(reduce_buffers({a}, 2, 3, {a}, 0, ReduceOp::Sum));
  EXPECT_REFUSED(reduce_buffers({a, a.to(at::kHalf)}, 0, 4, {a}, 0, ReduceOp::Sum));
  EXPECT_REFUSED(reduce_buffers({i}, 0, 4, {i}, 0, ReduceOp::Mean));
#ifdef ABTRAIN_EMULATED
  using kernels::Element;
  std::int32_t data[5] = {};
  kernels::BufferList list;
  list.data[list.count++] = data;
  for (const auto element :
       {Element::U8, Element::I32, Element::F32, Element::F16, Element::BF16}) {
    const bool is_integer = element == Element::U8 || element == Element::I32;
    EXPECT_EQ(
        kernels::reduce_buffers(list, list, 5, element, ReduceOp::Mean, nullptr),
        is_integer ? 1 : 0);
  }
#endif
}

}  // namespace
}  // namespace abtrain::ops
