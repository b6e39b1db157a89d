#include "compress/reducer.h"

#include "base/error.h"
#include "comm/traffic.h"
#include "compress/average.h"

namespace abtrain::compress {

namespace {

class Plain : public Reducer {
 public:
  explicit Plain(const std::string& dtype)
      : dtype_(dtype), average_(wire_dtype(dtype, "reducer.dtype")) {}

  void reduce(
      at::Tensor flat_gradients,
      comm::Communicator& communicator,
      comm::Purpose purpose) override {
    average_(flat_gradients, communicator, purpose);
  }

  std::int64_t bytes(std::int64_t numel, int members, int rank) const override {
    const auto size =
        static_cast<std::int64_t>(c10::elementSize(average_.wire()));
    return comm::all_reduce_bytes(numel, size, members, rank);
  }

  std::string name() const override {
    return "plain " + dtype_;
  }

 private:
  std::string dtype_;
  Average average_;
};

}  // namespace

std::unique_ptr<Reducer> make_reducer(const ReducerOptions& options) {
  ABT_CHECK(
      options.name == "plain",
      Config,
      "reducer.name: expected plain, got '",
      options.name,
      "'");
  return std::make_unique<Plain>(options.dtype);
}

}  // namespace abtrain::compress
