// A worker's named tensors and values, from which a run resumes bit for bit. A component lists its
// state in one function, which is used for both saving and loading:
//   void archive(Archive& a) {
//     a.value("step", step_);
//     a.tensor("m", m_, Owner::Worker);
//   }
#pragma once

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace abtrain::state {

// Worker: the tensor is this worker's alone. Replicas: all members of the worker's replica group
// (workers with the same weights) hold bit-identical copies, so one member stores it for all.
enum class Owner { Worker, Replicas };

// The state of one worker. Tensors are fp32.
struct State {
  State();
  State(State&&) noexcept = default;
  State& operator=(State&&) noexcept = default;

  std::map<std::string, at::Tensor> own;
  std::map<std::string, at::Tensor> replicas;
  std::shared_ptr<nlohmann::ordered_json> values;  // a pointer, as the type is incomplete here
};

class Archive {
 public:
  // Fills an empty state. Tensors are stored by reference, not copied.
  static Archive saving(State& state) {
    return Archive(state, false);
  }
  // Loads from a state. tensor() and value() throw Error(DamagedData) for anything that is missing
  // or has the wrong type, range or element count.
  static Archive loading(State& state) {
    return Archive(state, true);
  }
  bool is_loading() const {
    return loading_;
  }

  // Saves or loads a tensor. An undefined tensor is saved as an empty one. Loading copies the
  // stored values into `tensor` if it is defined. Else `tensor` becomes the stored tensor, or stays
  // undefined if that is empty. `numel`: the element count that the stored tensor must then have;
  // the result is flat.
  void tensor(
      const std::string& name, at::Tensor& tensor, Owner owner,
      std::optional<std::int64_t> numel = std::nullopt);
  // Saves or loads a std::int64_t, a double, a bool, a std::string, a list of numbers, or any value
  // of JSON.
  template <class T>
  void value(const std::string& name, T& value);

 private:
  Archive(State& state, bool loading) : state_(state), loading_(loading) {}

  State& state_;
  bool loading_;
};

}  // namespace abtrain::state
