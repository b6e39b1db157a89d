// Options that describe the network of a command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "plan/time.h"

namespace abtrain::app {

// Adds --bandwidth, --latency and --nodes (also spelled --hosts) to the group `group` of the help;
// by default, to the group of all other options.
inline void add_link(CLI::App& command, plan::Link& link, const char* group = "Options") {
  command
      .add_option(
          "--bandwidth", link.bandwidth,
          "rate of a node's link in each direction, such as 1Gbit or 100Mbit")
      ->type_name("RATE")
      ->group(group);
  command.add_option("--latency", link.latency, "latency per message (default: 50us)")
      ->type_name("TIME")
      ->group(group);
  command
      .add_option(
          "--nodes,--hosts", link.nodes,
          "number of nodes for the workers (default: one per worker)")
      ->type_name("INT")
      ->check([](const std::string& text) {
        return text.find_first_not_of("0") == std::string::npos || text.front() == '-'
                   ? "expected at least 1; got " + text
                   : std::string();
      })
      ->group(group);
}

// Throws Error(Usage) if a network is described without its bandwidth.
inline void check_link(const plan::Link& link) {
  ABT_CHECK(
      !link.bandwidth.empty() || (link.latency.empty() && link.nodes == 0), Usage,
      "--nodes and --latency describe a network: expected its --bandwidth too");
}

}  // namespace abtrain::app
