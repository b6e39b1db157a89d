// Environment variables of a scope.
//   const testing::WithVariables variables{{"HOME", "/tmp"}, {"RANK", {}}};
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>

namespace abtrain::testing {

// Sets variables, or unsets those without a value, and restores all of them.
class WithVariables {
 public:
  using Values = std::map<std::string, std::optional<std::string>>;

  WithVariables(std::initializer_list<Values::value_type> values) : WithVariables(Values(values)) {}
  explicit WithVariables(const Values& values) {
    for (const auto& [name, value] : values) {
      const char* before = std::getenv(name.c_str());
      before_[name] = before != nullptr ? std::optional<std::string>(before) : std::nullopt;
    }
    set(values);
  }
  ~WithVariables() {
    set(before_);
  }
  WithVariables(const WithVariables&) = delete;
  WithVariables& operator=(const WithVariables&) = delete;

 private:
  static void set(const Values& values) {
    for (const auto& [name, value] : values) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }
  Values before_;
};

}  // namespace abtrain::testing
