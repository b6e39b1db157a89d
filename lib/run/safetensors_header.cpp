#include "run/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace abtrain::run {

namespace {

using nlohmann::ordered_json;

constexpr const char* kMetadata = "__metadata__";

struct Dtype {
  const char* name;
  std::uint64_t bytes;
  std::optional<at::ScalarType> type = std::nullopt;  // of ours
};

constexpr std::array<Dtype, 16> kDtypes = {{
    {"F64", 8, at::kDouble},
    {"I64", 8},
    {"U64", 8},
    {"C64", 8},
    {"F32", 4, at::kFloat},
    {"I32", 4, at::kInt},
    {"U32", 4},
    {"F16", 2, at::kHalf},
    {"BF16", 2, at::kBFloat16},
    {"I16", 2},
    {"U16", 2},
    {"BOOL", 1},
    {"I8", 1},
    {"U8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
}};

const Dtype* find_dtype(std::string_view name) {
  const auto* found = std::ranges::find(kDtypes, name, &Dtype::name);
  return found == kDtypes.end() ? nullptr : found;
}

StoredTensor
parse_entry(const std::string& name, const ordered_json& entry, bool& ok) {
  StoredTensor tensor{name, {}, {}};
  try {
    tensor.dtype = entry.at("dtype").get<std::string>();
    const ordered_json& offsets = entry.at("data_offsets");
    ok = entry.at("shape").is_array() && offsets.is_array() &&
         offsets.size() == 2;
    const auto whole = [&](const ordered_json& number) {
      ok = ok && number.is_number_unsigned() &&
           number.get<std::uint64_t>() <= INT64_MAX;
      return ok ? number.get<std::uint64_t>() : 0;
    };
    double most = 1;  // a product that no integer can hold is no size
    for (const ordered_json& size : entry.at("shape")) {
      tensor.sizes.push_back(static_cast<std::int64_t>(whole(size)));
      most *= std::max(1.0, static_cast<double>(tensor.sizes.back()));
    }
    ok = ok && most < 1e18;
    tensor.begin = ok ? whole(offsets[0]) : 0;
    tensor.end = ok ? whole(offsets[1]) : 0;
  } catch (const nlohmann::json::exception&) {
    ok = false;
  }
  return tensor;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> parts;
  for (const std::int64_t size : sizes) {
    parts.push_back(std::to_string(size));
  }
  return join(parts, ",");
}

std::int64_t StoredTensor::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  return count;
}

std::uint64_t element_bytes(std::string_view dtype) {
  const Dtype* known = find_dtype(dtype);
  return known == nullptr ? 0 : known->bytes;
}

std::optional<at::ScalarType> float_type(std::string_view dtype) {
  const Dtype* known = find_dtype(dtype);
  return known != nullptr && known->type != at::kInt ? known->type
                                                     : std::nullopt;
}

std::string dtype_name(at::ScalarType type) {
  const auto* known = std::ranges::find(kDtypes, type, &Dtype::type);
  ABT_ASSERT(known != kDtypes.end(), "no such dtype in our files: ", type);
  return known->name;
}

std::string stored_dtype(const std::string& option) {
  return option == "bf16" ? "BF16" : option == "fp16" ? "F16" : "F32";
}

SafetensorsHeader parse_header(std::string_view text, const std::string& path) {
  const auto check = [&](bool ok, const auto&... what) {
    ABT_CHECK(ok, DamagedData, path, ": damaged model file: ", what...);
  };
  // A JSON object keeps only one of two equal keys, without a word.
  std::set<std::string> seen;
  std::string twice;
  const auto watch =
      [&](int depth, nlohmann::json::parse_event_t event, ordered_json& key) {
        if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
            !seen.insert(key.get<std::string>()).second) {
          twice = key.get<std::string>();
        }
        return true;
      };
  const ordered_json json = ordered_json::parse(
      text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  check(json.is_object(), "its header is not a JSON object");
  check(twice.empty(), "tensor '", twice, "' stands twice in its header");
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name != kMetadata) {
      bool ok = entry.is_object();
      header.tensors.push_back(parse_entry(name, entry, ok));
      check(ok, "the header entry of '", name, "' is malformed");
      continue;
    }
    check(entry.is_object(), "its metadata are not a JSON object");
    for (const auto& [key, value] : entry.items()) {
      check(value.is_string(), "its metadata entry '", key, "' is not text");
      header.metadata[key] = value.get<std::string>();
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
    // Not by operator[], which looks at all keys before.
    json.get_ref<ordered_json::object_t&>().emplace_back(
        tensor.name,
        ordered_json{
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

}  // namespace abtrain::run
