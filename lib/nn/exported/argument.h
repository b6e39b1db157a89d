// The arguments that a node of an exported graph passes to its operator.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "nn/exported/archive.h"

namespace abtrain::nn {

// Values are numbered; -1 stands for no value.
using ValueId = int;

// An argument of a node's operator: a constant, a value, or a list of both.
struct GraphArgument {
  std::string name;
  c10::IValue constant = {};  // may be a list of constants
  bool is_device = false;     // stands for the model's device
  bool is_list = false;
  std::vector<ValueId> values = {};  // in a list, -1 where an item is a constant
  std::vector<c10::IValue> items = {};

  // The single value; a list has none.
  std::optional<ValueId> value() const {
    return is_list || values.empty() ? std::nullopt : std::optional(values[0]);
  }
};

// The only member of one of the schema's unions, such as {"as_int": 3}.
struct Tagged {
  std::string kind;
  const nlohmann::ordered_json& what;
};
Tagged tagged(const nlohmann::ordered_json& json);

// Throws Error(DamagedData) for an unknown name.
using ValueByName = std::function<ValueId(const std::string& name)>;
// Throws Error(DamagedData) for a kind that is not in the schema.
GraphArgument read_argument(
    const std::string& name, const nlohmann::ordered_json& json, const ValueByName& value,
    const ExportArchive& archive);

// If `value` is a number, returns the 0-D tensor that PyTorch would make of it for an operator that
// expects a tensor: fp64, complex128, int64 or bool, weak in type promotion. Returns any other
// value unchanged.
c10::IValue tensor_or_none(const c10::IValue& value);

// Converts a constant to the type `wanted` by an operator's schema: a number to a tensor, to a
// float, or to a list of `count` copies; a list of integers to a list of floats. Returns all other
// constants unchanged. `count`: the length, if the schema has a list of fixed length.
c10::IValue fitted(const c10::IValue& value, const c10::TypePtr& wanted, std::optional<int> count);

}  // namespace abtrain::nn
