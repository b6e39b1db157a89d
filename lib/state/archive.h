// What a bit-exact resume needs: named tensors and values of a worker. A part
// that has state lists it in one function, which serves saving and loading:
//   void archive(Archive& a) { a.value("step", step_); a.tensor("m", m_, ...);
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

// Whether all members of the worker's replica group hold the same bits: then
// one of them stores it for all.
enum class Share { Own, Replicas };

// One worker's state. Tensors are fp32.
struct State {
  State();
  ~State();
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;

  std::map<std::string, at::Tensor> own;
  std::map<std::string, at::Tensor> replicas;
  std::unique_ptr<nlohmann::ordered_json> values;
};

class Archive {
 public:
  // Fills an empty state: tensors are taken as they are, not copied.
  static Archive saving(State& state) {
    return Archive(state, false);
  }
  // Gives out what a state holds. Throws Error(DamagedData) for what is missing
  // or of another size.
  static Archive loading(State& state) {
    return Archive(state, true);
  }
  bool is_loading() const {
    return loading_;
  }

  // An undefined or empty tensor is stored as such. Loading copies into the
  // tensor, or defines it where it is undefined: by what is stored, which must
  // have `numel` numbers where that is given.
  void tensor(
      const std::string& name,
      at::Tensor& tensor,
      Share share,
      std::optional<std::int64_t> numel = std::nullopt);
  void value(const std::string& name, std::int64_t& value);
  void value(const std::string& name, double& value);
  void value(const std::string& name, bool& value);
  void value(const std::string& name, std::string& value);
  void value(const std::string& name, std::vector<std::int64_t>& value);
  void value(const std::string& name, std::vector<double>& value);
  void value(const std::string& name, nlohmann::ordered_json& value);

 private:
  Archive(State& state, bool loading) : state_(state), loading_(loading) {}
  template <class T>
  void exchange(const std::string& name, T& value);

  State& state_;
  bool loading_;
};

}  // namespace abtrain::state
