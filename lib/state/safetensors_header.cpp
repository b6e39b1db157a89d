#include "state/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped.h"

namespace abtrain::state {

namespace {

using nlohmann::ordered_json;

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kMaxDimensions = 64;  // limit of LibTorch's operators

struct Dtype {
  const char* name;
  std::uint64_t bytes;
  std::optional<at::ScalarType> type = std::nullopt;  // if abtrain uses the dtype
};

constexpr std::array<Dtype, 16> kDtypes = {{
    {"F64", 8, at::kDouble},
    {"I64", 8, at::kLong},
    {"U64", 8},
    {"C64", 8},
    {"F32", 4, at::kFloat},
    {"I32", 4, at::kInt},
    {"U32", 4, at::kUInt32},
    {"F16", 2, at::kHalf},
    {"BF16", 2, at::kBFloat16},
    {"I16", 2, at::kShort},
    {"U16", 2, at::kUInt16},
    {"BOOL", 1, at::kBool},
    {"I8", 1, at::kChar},
    {"U8", 1, at::kByte},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
}};

Dtype find_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kDtypes, name, &Dtype::name);
  return found == kDtypes.end() ? Dtype{"", 0} : *found;
}

// Empty if the entry is malformed.
std::optional<StoredTensor> parse_entry(const std::string& name, const ordered_json& entry) {
  StoredTensor tensor{name, {}, {}};
  std::vector<std::int64_t> offsets;
  if (!read_json(entry, "dtype", tensor.dtype) || !read_json(entry, "shape", tensor.sizes) ||
      !read_json(entry, "data_offsets", offsets) || offsets.size() != 2 ||
      std::ranges::min(offsets) < 0 || tensor.sizes.size() > kMaxDimensions) {
    return std::nullopt;
  }
  double most = 1;  // the element count, as a double to detect overflow
  for (const std::int64_t size : tensor.sizes) {
    if (size < 0) {
      return std::nullopt;
    }
    most *= std::max(1.0, static_cast<double>(size));
  }
  tensor.begin = static_cast<std::uint64_t>(offsets[0]);
  tensor.end = static_cast<std::uint64_t>(offsets[1]);
  return most < 1e18 ? std::optional(tensor) : std::nullopt;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  return join(mapped(sizes, [](std::int64_t size) { return std::to_string(size); }), ",");
}

std::int64_t StoredTensor::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies());
}

std::uint64_t element_bytes(std::string_view dtype) {
  return find_dtype(dtype).bytes;
}

std::optional<at::ScalarType> type_of(std::string_view dtype) {
  return find_dtype(dtype).type;
}

std::optional<at::ScalarType> float_type(std::string_view dtype) {
  const auto type = type_of(dtype);
  return type && c10::isFloatingType(*type) ? type : std::nullopt;
}

std::string dtype_name(at::ScalarType type) {
  const auto* known = std::ranges::find(kDtypes, type, &Dtype::type);
  ABT_ASSERT(known != kDtypes.end(), "our files have no such dtype: {}", c10::toString(type));
  return known->name;
}

std::string stored_dtype(const std::string& option) {
  return option == "bf16" ? "BF16" : option == "fp16" ? "F16" : "F32";
}

SafetensorsHeader parse_header(std::string_view text, const std::string& path) {
  const auto check = [&]<class... T>(bool ok, fmt::format_string<T...> fault, const T&... parts) {
    ABT_CHECK(
        ok, DamagedData, "{}: damaged safetensors file: {}", path, formatted(fault, parts...));
  };
  JsonProblem problem;
  const ordered_json json = parse_json(text, problem);
  check(
      json.is_object(), "its header is not a JSON object{}{}", problem.what.empty() ? "" : ": ",
      problem.what);
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name != kMetadata) {
      auto tensor = parse_entry(name, entry);
      check(tensor.has_value(), "the header entry of '{}' is malformed", name);
      header.tensors.push_back(std::move(*tensor));
      continue;
    }
    check(entry.is_object(), "its metadata is not a JSON object");
    for (const auto& [key, value] : entry.items()) {
      check(read_json(value, header.metadata[key]), "its metadata entry '{}' is not text", key);
    }
  }
  return header;
}

std::string header_bytes(const SafetensorsHeader& header) {
  ordered_json json = ordered_json::object();
  if (!header.metadata.empty()) {
    json[kMetadata] = header.metadata;
  }
  for (const StoredTensor& tensor : header.tensors) {
    // operator[] would search all earlier keys, so it is not used.
    json.get_ref<ordered_json::object_t&>().emplace_back(
        tensor.name, ordered_json{
                         {"dtype", tensor.dtype},
                         {"shape", tensor.sizes},
                         {"data_offsets", {tensor.begin, tensor.end}}});
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + text;
}

}  // namespace abtrain::state
