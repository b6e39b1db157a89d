// Suggestions for users who type what another program would accept.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace abtrain::app {

// What was meant by `option`, which the command does not know: another option,
// as in "--config", or an override with the value that follows the option in
// `words`, as in "optimizer.lr=0.1". Empty if nothing is near.
std::string meant_by(
    const CLI::App& command, const std::string& option, const std::vector<std::string>& words);

}  // namespace abtrain::app
