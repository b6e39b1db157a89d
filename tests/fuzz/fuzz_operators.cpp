// Each operator that an exported model may use, forward and backward, with arguments as a hostile
// file may give them. An input is the seed of the arguments. Tensors lie between pages that nobody
// may touch, so that an access beyond them ends the process; therefore each operator is called in a
// child of its own.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sum.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>
#include <sstream>

#include "nn/exported/operators.h"
#include "nn/exported/steps.h"
#include "target.h"

namespace abtrain::fuzz {

const std::vector<std::string> kWords = {"1", "2", "3"};

namespace {

constexpr int kCalls = 15;  // of an operator with one seed

// Blocks that end, or begin, where a page begins that nobody may touch.
class FencedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    TORCH_CHECK(bytes <= std::size_t{1} << 30, "can't allocate memory: ", bytes, " bytes");
    const std::size_t page = 4096;
    const std::size_t size = (bytes + page - 1) / page * page;
    auto* const block = static_cast<char*>(
        ::mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    TORCH_CHECK(block != MAP_FAILED, "can't allocate memory: ", bytes, " bytes");
    ::mprotect(block + page, size, PROT_READ | PROT_WRITE);
    ends_ = !ends_;
    const std::size_t place = ends_ ? (size - bytes) / 16 * 16 : 0;
    auto* const fence = new Fence{block, size + 2 * page};
    return {block + page + place, fence, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  struct Fence {
    void* block;
    std::size_t size;
  };
  static void give_back(void* context) {
    const auto* const fence = static_cast<Fence*>(context);
    ::munmap(fence->block, fence->size);
    delete fence;
  }
  bool ends_ = false;
};

// Arguments at random.
class Arguments {
 public:
  explicit Arguments(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) {
    return random_() % limit;
  }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& values) {
    return values[below(N)];
  }
  bool happens(int in) {
    return below(static_cast<std::size_t>(in)) == 0;
  }

  std::int64_t whole() {
    constexpr std::array<std::int64_t, 6> kUsual = {0, 1, 2, 3, -1, -2};
    constexpr std::array<std::int64_t, 8> kExtreme = {
        7, 1000, 1 << 20, std::int64_t{1} << 33, std::numeric_limits<std::int32_t>::max(),
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), -5};
    return happens(6) ? one_of(kExtreme) : one_of(kUsual);
  }
  double number() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr std::array kNumbers = {0.0,   1.0,   2.0,  0.5,       -1.0,       1e-5, 3.7,
                                     1e300, 1e-30, 1e10, kInfinity, -kInfinity, -0.3, -1e300,
                                     std::numeric_limits<double>::quiet_NaN()};
    return one_of(kNumbers);
  }
  at::Tensor tensor() {
    std::vector<std::int64_t> sizes(happens(4) ? below(6) : rank_);
    for (std::int64_t& size : sizes) {
      size = happens(15) ? 0 : happens(3) ? 1 + static_cast<std::int64_t>(below(7)) : usual_;
    }
    const at::ScalarType type =
        happens(3) ? one_of(std::array{
                         at::kLong, at::kLong, at::kLong, at::kInt, at::kByte, at::kBool,
                         at::kDouble, at::kHalf, at::kBFloat16})
                   : at::kFloat;
    at::Tensor values = at::rand(sizes, at::kDouble).mul_(happens(3) ? 20 : 3).sub_(1);
    if (values.numel() > 0 && happens(4)) {
      values.view(-1)[0] = happens(2) ? static_cast<double>(whole()) : number();
    }
    at::Tensor made = at::empty(sizes, type).copy_(values);
    if (type == at::kLong && values.numel() > 0 && happens(4)) {
      made.view(-1)[0] = whole();
    }
    if (made.dim() > 1 && happens(5)) {
      made = made.transpose(0, 1);
    }
    return made.is_floating_point() && happens(2) ? made.requires_grad_() : made;
  }
  c10::IValue of_type(const c10::Argument& argument) {
    const c10::TypePtr& type = argument.real_type();
    return of_type(type, argument.name(), argument.N());
  }

 private:
  c10::IValue of_type(const c10::TypePtr& type, const std::string& name, std::optional<int> count) {
    using c10::TypeKind;
    switch (type->kind()) {
      case TypeKind::OptionalType:
        return happens(3) ? c10::IValue()
                          : of_type(type->expectRef<c10::OptionalType>().getElementType(), name, count);
      case TypeKind::TensorType:
        return tensor();
      case TypeKind::ListType: {
        const c10::TypePtr item = type->expectRef<c10::ListType>().getElementType();
        c10::impl::GenericList list(
            item->kind() == TypeKind::SymIntType ? c10::IntType::get() : item);
        const std::size_t items = count && !happens(5) ? static_cast<std::size_t>(*count) : below(5);
        for (std::size_t i = 0; i < items; ++i) {
          list.push_back(of_type(item, name, {}));
        }
        return list;
      }
      case TypeKind::ScalarTypeType:
        return static_cast<std::int64_t>(one_of(std::array{at::kFloat, at::kLong, at::kBool, at::kDouble}));
      case TypeKind::LayoutType:
        return static_cast<std::int64_t>(at::kStrided);
      case TypeKind::MemoryFormatType:
        return static_cast<std::int64_t>(below(4));
      case TypeKind::DeviceObjType:
        return at::Device(at::kCPU);
      case TypeKind::BoolType:
        return happens(2);
      case TypeKind::FloatType:
        return number();
      case TypeKind::NumberType:
        return happens(2) ? c10::IValue(whole()) : c10::IValue(number());
      case TypeKind::StringType:
        return std::string(one_of(std::array{
            "none", "same", "valid", "reflect", "constant", "circular", "replicate", "tanh",
            "floor", "trunc", "sum", "mean", "amax", "amin", "prod", "left", "ij", "linear",
            "nearest", "fro", "nuc", "bij,bjk->bik", "ii->i", "i,j->ij", "forward", "x"}));
      case TypeKind::GeneratorType:
        return {};
      default:
        return whole();
    }
  }

  std::mt19937_64 random_;
  // The tensors of a call are alike, so that some fit each other.
  std::size_t rank_ = below(6);
  std::int64_t usual_ = 1 + static_cast<std::int64_t>(below(4));
};

struct Call {
  nn::GraphNode node;
  std::vector<c10::IValue> values;
  std::size_t inputs = 0;
  bool as_laid_out = false;
};

Call make_call(const c10::OperatorHandle& op, std::uint64_t seed) {
  at::manual_seed(seed);
  Arguments arguments(seed);
  Call call;
  call.node.target = op.schema().name();
  call.node.op = op;
  for (const c10::Argument& wanted : op.schema().arguments()) {
    nn::GraphArgument argument;
    argument.name = wanted.name();
    const c10::IValue value = wanted.default_value() && arguments.happens(3)
                                  ? *wanted.default_value()
                                  : arguments.of_type(wanted);
    if (value.isTensor()) {
      argument.values = {static_cast<nn::ValueId>(call.values.size())};
      call.values.push_back(value);
    } else {
      argument.constant = value;
    }
    call.node.arguments.push_back(argument);
  }
  call.inputs = call.values.size();
  for (std::size_t i = 0; i < op.schema().returns().size(); ++i) {
    call.node.outputs.push_back(static_cast<nn::ValueId>(call.values.size()));
    call.values.emplace_back();
  }
  call.as_laid_out = !arguments.happens(2);
  return call;
}

std::string text_of(const Call& call) {
  std::ostringstream text;
  for (const nn::GraphArgument& argument : call.node.arguments) {
    text << "\n  " << argument.name << " ";
    if (const auto value = argument.value()) {
      const at::Tensor tensor = call.values[static_cast<std::size_t>(*value)].toTensor();
      text << tensor.scalar_type() << tensor.sizes() << " strides " << tensor.strides()
           << (tensor.requires_grad() ? ", trained" : "");
    } else if (argument.constant.isList() && argument.constant.toListRef().size() > 0 &&
               argument.constant.toListRef()[0].isTensor()) {
      for (const c10::IValue& item : argument.constant.toListRef()) {
        text << item.toTensor().scalar_type() << item.toTensor().sizes() << " ";
      }
    } else {
      text << argument.constant;
    }
  }
  return text.str();
}

// As a step of a model. What it refuses is well.
void run(Call& call) {
  try {
    nn::Pass pass;
    pass.training = true;
    pass.random = at::make_generator<at::CPUGeneratorImpl>(1);
    const nn::Frame frame{call.values, pass, at::kCPU, std::size_t{1} << 30};
    nn::make_step(call.node, call.as_laid_out, "model.pt2")(frame);
    at::Tensor sum;
    for (std::size_t i = call.inputs; i < call.values.size(); ++i) {
      const at::Tensor result = call.values[i].isTensor() ? call.values[i].toTensor() : at::Tensor();
      if (result.defined() && result.requires_grad() && result.is_floating_point()) {
        sum = sum.defined() ? sum + result.sum() : result.sum();
      }
    }
    if (sum.defined()) {
      sum.backward();
    }
  } catch (const std::exception&) {
  }
}

std::uint64_t seed_of(std::uint64_t seed, std::size_t op, int call) {
  return seed + 1000 * op + static_cast<std::uint64_t>(call);
}

struct Place {
  std::atomic<std::size_t> op = 0;
  std::atomic<int> call = 0;
};

// Calls the operators from the place on, which it keeps up to date.
[[noreturn]] void call_all(
    const std::vector<c10::OperatorHandle>& ops, std::uint64_t seed, Place& place) {
  at::set_num_threads(1);
  ::close(STDERR_FILENO);  // warnings
  for (; place.op < ops.size(); ++place.op) {
    const itimerval limit{{0, 0}, {5, 0}};
    ::setitimer(ITIMER_PROF, &limit, nullptr);  // its signal ends the process
    for (place.call = 0; place.call < kCalls; ++place.call) {
      Call call = make_call(ops[place.op], seed_of(seed, place.op, place.call));
      run(call);
    }
  }
  ::_exit(0);
}

}  // namespace

void read_input(std::string_view input) {
  static const std::vector<c10::OperatorHandle> ops = [] {
    std::vector<c10::OperatorHandle> allowed;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      if (op && nn::is_allowed(op->schema())) {
        allowed.push_back(*op);
      }
    }
    return allowed;
  }();
  static auto& place = *new (
      ::mmap(nullptr, sizeof(Place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Place;
  static FencedMemory memory;
  const std::uint64_t seed = XXH3_64bits(input.data(), input.size());
  place.op = 0;
  int failed = 0;
  while (place.op < ops.size()) {
    const pid_t child = ::fork();
    if (child == 0) {
      c10::SetCPUAllocator(&memory, 255);
      call_all(ops, seed, place);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) {
      const c10::OperatorHandle& op = ops[place.op];
      std::cerr << op.schema() << ": "
                << (WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "an exception") << " at"
                << text_of(make_call(op, seed_of(seed, place.op, place.call))) << "\n";
      ++failed;
      ++place.op;
    }
  }
  if (failed > 0) {
    std::abort();
  }
  outcome() = "called";
}

}  // namespace abtrain::fuzz
