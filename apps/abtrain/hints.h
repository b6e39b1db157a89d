// Suggestions for users who type what another program would accept.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace abtrain::app {

// Advice about `option`, which the command does not know: "did you mean ...?" with another option,
// such as --config, or with an override and the value that follows the option in `words`, as in
// optimizer.lr=0.1; or why there is no such option. Empty if nothing is similar.
std::string advice_on(
    const CLI::App& command, const std::string& option, const std::vector<std::string>& words);

// The configuration key that a word such as "lr" or "batch-size" stands for: a key that ends in the
// word, or the name in a section, such as model.name for "model". The shortest match counts; "" if
// there is none.
std::string key_named(std::string word);

}  // namespace abtrain::app
