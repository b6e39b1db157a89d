// Sets options of a reducer by the words that a configuration uses, for tests
// whose cases are named by them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/options.h"
#include "compress/reducer_options.h"

namespace abtrain::compress {

inline void set_option(ReducerOptions& options, const std::string& key, const std::string& word) {
  Value value;
  value.kind = Value::Kind::Scalar;
  value.text = word;
  const Fields fields = fields_of(options);
  const auto field = std::ranges::find(fields.list(), key, &Field::key);
  ASSERT_TRUE(field != fields.list().end()) << key;
  field->read(value, [&](const Value&, const std::string& message) {
    ADD_FAILURE() << key << ": " << message;
  });
}

}  // namespace abtrain::compress
