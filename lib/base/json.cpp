#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace abtrain {

namespace {

using nlohmann::ordered_json;

// The reference implementation's limit for a safetensors header, the largest text that is parsed.
constexpr std::size_t kMaxBytes = 100'000'000;
constexpr std::size_t kMaxValues = 10'000'000;
// abtrain's files have up to 6 levels. The limit protects the stack, because values are printed and
// copied recursively.
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxShown = 80;

// Builds the value in linear time, whereas nlohmann's own builder searches all keys of an ordered
// object for each new key.
class Builder : public nlohmann::json_sax<ordered_json> {
 public:
  explicit Builder(JsonProblem& problem) : problem_(problem) {}

  bool null() override {
    return add(nullptr);
  }
  bool boolean(bool value) override {
    return add(value);
  }
  bool number_integer(number_integer_t value) override {
    return add(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add(value);
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(value);
  }
  bool string(string_t& value) override {
    return add(std::move(value));
  }
  bool binary(binary_t&) override {
    return false;  // JSON text has no binary values
  }
  bool start_object(std::size_t) override {
    return open(ordered_json::object());
  }
  bool key(string_t& key) override {
    key_ = std::move(key);
    return true;
  }
  bool end_object() override {
    return has_no_key_twice() && close();
  }
  bool start_array(std::size_t) override {
    return open(ordered_json::array());
  }
  bool end_array() override {
    return close();
  }
  bool parse_error(
      std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;
    problem_.byte = byte;
    return fail(
        error.id == kOutOfRange ? "a number here is outside the range of a double"
                                : "this is damaged or cut off");
  }
  ordered_json take() {
    return std::move(root_);
  }

 private:
  bool fail(std::string what) {
    problem_.what = std::move(what);
    return false;
  }
  bool add(ordered_json value) {
    return put(std::move(value)) != nullptr;
  }
  // Returns the value's new place, or null if there are too many values.
  ordered_json* put(ordered_json&& value) {
    if (++count_ > kMaxValues) {
      fail(formatted("this has more than {} values", with_commas(kMaxValues)));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (auto* list = open_.back()->get_ptr<ordered_json::array_t*>()) {
      return &list->emplace_back(std::move(value));
    }
    // Not emplace(), which searches for the key.
    return &open_.back()
                ->get_ref<ordered_json::object_t&>()
                .emplace_back(std::move(key_), std::move(value))
                .second;
  }
  bool open(ordered_json value) {
    if (open_.size() == kMaxDepth) {
      return fail(formatted("this is nested more than {} levels deep", kMaxDepth));
    }
    open_.push_back(put(std::move(value)));
    return open_.back() != nullptr;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool has_no_key_twice() {
    std::vector<std::string_view> keys;
    for (const auto& entry : open_.back()->get_ref<ordered_json::object_t&>()) {
      keys.emplace_back(entry.first);
    }
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    return twice == keys.end() || fail(formatted("this has the key {} twice", shown(*twice)));
  }

  JsonProblem& problem_;
  ordered_json root_;
  std::vector<ordered_json*> open_;  // from the outermost to the innermost
  std::string key_;
  std::size_t count_ = 0;
};

template <class T>
bool take_if(bool fits, const ordered_json& value, T& out) {
  if (fits) {
    out = value.get<T>();
  }
  return fits;
}

}  // namespace

ordered_json parse_json(std::string_view text, JsonProblem& problem) {
  if (text.size() > kMaxBytes) {
    problem = {formatted("this has more than {} bytes", with_commas(kMaxBytes)), 0};
    return ordered_json::value_t::discarded;
  }
  Builder builder(problem);
  if (!ordered_json::sax_parse(text.begin(), text.end(), &builder)) {
    return ordered_json::value_t::discarded;
  }
  return builder.take();
}

bool read_json(const ordered_json& value, std::int64_t& out) {
  const bool fits = value.is_number_unsigned()
                        ? std::in_range<std::int64_t>(value.get<std::uint64_t>())
                        : value.is_number_integer();
  return take_if(fits, value, out);
}

bool read_json(const ordered_json& value, double& out) {
  return take_if(value.is_number(), value, out);
}

bool read_json(const ordered_json& value, bool& out) {
  return take_if(value.is_boolean(), value, out);
}

bool read_json(const ordered_json& value, std::string& out) {
  return take_if(value.is_string(), value, out);
}

bool read_json(const ordered_json& value, ordered_json& out) {
  out = value;
  return true;
}

std::string shown(const ordered_json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kMaxShown) {
    text.replace(kMaxShown - 4, std::string::npos, " ...");
  }
  return text;
}

void damaged(const std::string& path, std::ptrdiff_t line, const std::string& what) {
  throw LocatedError(ErrorKind::DamagedData, formatted("{}:{}: error: {}", path, line, what));
}

JsonObject::JsonObject(std::string path, std::ptrdiff_t line, std::string_view text)
    : path_(std::move(path)), line_(line) {
  JsonProblem problem;
  json_ = parse_json(text, problem);
  if (json_.is_discarded()) {
    const auto end =
        text.begin() + static_cast<std::ptrdiff_t>(std::min(problem.byte, text.size()));
    damaged(
        path_, line_ + std::count(text.begin(), end, '\n'),
        "expected a JSON object, but " + problem.what);
  }
  if (!json_.is_object()) {
    damaged(path_, line_, "expected a JSON object");
  }
}

JsonObject JsonObject::of_file(const std::string& path) {
  return {path, 1, read_file(path)};
}

const ordered_json* JsonObject::find(const char* pointer) const {
  const ordered_json::json_pointer place(pointer);
  return json_.contains(place) ? &json_.at(place) : nullptr;
}

std::optional<double> JsonObject::maybe(const char* pointer) const {
  const ordered_json* value = find(pointer);
  double number = 0;
  return value != nullptr && read_json(*value, number) ? std::optional(number) : std::nullopt;
}

double JsonObject::number(const char* pointer) const {
  const std::optional<double> value = maybe(pointer);
  if (!value) {
    complain(pointer, "a number");
  }
  return *value;
}

std::int64_t JsonObject::integer(const char* pointer, std::int64_t low, std::int64_t high) const {
  const ordered_json* value = find(pointer);
  std::int64_t number = 0;
  if (value == nullptr || !read_json(*value, number) || number < low || number > high) {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    complain(
        pointer, high == kMax ? formatted("a whole number of at least {}", low)
                              : formatted("a whole number from {} to {}", low, high));
  }
  return number;
}

std::string JsonObject::text(const char* pointer) const {
  return typed(pointer, ordered_json::value_t::string, "a string").get<std::string>();
}

const ordered_json& JsonObject::list(const char* pointer) const {
  return typed(pointer, ordered_json::value_t::array, "a list");
}

const ordered_json& JsonObject::object(const char* pointer) const {
  return typed(pointer, ordered_json::value_t::object, "an object");
}

const ordered_json& JsonObject::typed(
    const char* pointer, ordered_json::value_t type, const char* wanted) const {
  const ordered_json* value = find(pointer);
  if (value == nullptr || value->type() != type) {
    complain(pointer, wanted);
  }
  return *value;
}

void JsonObject::complain(const std::string& pointer, const std::string& wanted) const {
  std::string key = pointer.substr(1);
  std::ranges::replace(key, '/', '.');
  const ordered_json* value = find(pointer.c_str());
  damaged(
      path_, line_,
      formatted(
          "{}: expected {}, got {}", key, wanted, value == nullptr ? "nothing" : shown(*value)));
}

}  // namespace abtrain
