// Suggestions for users who type words of other programs.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace abtrain::app {

// Returns advice about `option`, which the command does not know: "did you mean ...?" with another
// option (--config) or with an override that has the option's value in `words` (optimizer.lr=0.1),
// or the reason why there is no such option. Empty if nothing is similar.
std::string advice_on(
    const CLI::App& command, const std::string& option, const std::vector<std::string>& words);

// The configuration key that a word such as "lr" or "batch-size" stands for: a key that ends in the
// word, or the name in a section, such as model.name for "model". The shortest match counts; "" if
// there is none.
std::string key_named(std::string word);

}  // namespace abtrain::app
