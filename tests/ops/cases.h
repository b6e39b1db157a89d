// All combinations of lists of values; a failure names the one at hand.
//
//   for (const auto& [numel, adds] : cases({1, 64, 65}, {false, true})) {
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace abtrain {

template <class... T>
class Cases {
 public:
  explicit Cases(std::vector<std::tuple<T...>> all) : all_(std::move(all)) {}

  class Iterator {
   public:
    explicit Iterator(const std::tuple<T...>* at) : at_(at) {}
    const std::tuple<T...>& operator*() {
      trace_.emplace("case", 0, testing::PrintToString(*at_));
      return *at_;
    }
    void operator++() {
      ++at_;
    }
    bool operator!=(const std::tuple<T...>* end) const {
      return at_ != end;
    }

   private:
    const std::tuple<T...>* at_;
    std::optional<testing::ScopedTrace> trace_;
  };
  Iterator begin() const {
    return Iterator(all_.data());
  }
  const std::tuple<T...>* end() const {
    return all_.data() + all_.size();
  }

 private:
  std::vector<std::tuple<T...>> all_;
};

template <class... T, std::size_t... N>
Cases<T...> cases(const T (&... lists)[N]) {
  std::vector<std::tuple<T...>> all;
  for (std::size_t i = 0; i < (N * ...); ++i) {
    std::size_t rest = i;
    const auto pick = [&rest](const auto& list, std::size_t n) {
      const std::size_t k = rest % n;
      rest /= n;
      return list[k];
    };
    all.push_back(std::tuple<T...>{pick(lists, N)...});
  }
  return Cases<T...>(std::move(all));
}

}  // namespace abtrain
