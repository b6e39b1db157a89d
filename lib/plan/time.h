// Predicts how long a configuration will take on a computer network, from a measured compute time
// and an alpha-beta model (Hockney 1994): a message of n bytes takes alpha + n / beta.
//
// Workers are placed on nodes in rank order, the same number on each. A node has one link, used in
// both directions at once; communication within a node takes no time. The bytes are those of
// methods/traffic_plan.h plus 66 bytes of headers per 1448 bytes of payload (Ethernet, IP, and TCP
// with time stamps). Over MPI every member of a collective sends to every other member; over NCCL
// the members form a ring. The backward pass runs from 30 to 90 % of a step's compute time. A
// bucket of gradients can leave once the backward pass has computed all of it and the previous
// bucket has arrived.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_length.h"
#include "config/run_options.h"
#include "methods/traffic_plan.h"
#include "plan/compute_time.h"

namespace abtrain::plan {

struct Network {
  int nodes = 1;
  double rate = 1e9;       // of a link, each way, in bits per second
  double latency = 50e-6;  // alpha, in seconds
  bool ring = false;       // collectives form a ring, as in NCCL
};

// A network as users describe it. An empty bandwidth means that none is given.
struct Link {
  std::string bandwidth;   // of a node, each way: "100Mbit", "1Gbit/s"
  std::string latency;     // per message: "50us"; "": 50 us
  std::int64_t nodes = 0;  // 0: one per worker
};

// The longest time that an option may give: a year.
inline constexpr double kMaxSeconds = 366 * 24 * 3600.0;
// Parses the time, of at most kMaxSeconds, that an option gives. Throws Error(Usage), naming the
// option.
double seconds_in(const char* option, const std::string& text);

// Throws Error(Usage), naming the option, if a value is out of range or the number of nodes does
// not divide the number of workers.
Network network_of(const Link& link, const config::RunOptions& options);

// Seconds. The time of a step includes its compute time.
struct TimePlan {
  ComputeTime measured;  // the measurement behind the plan
  double dense_step = 0;
  double ab_step = 0;  // for the slower role
  double sync = 0;
  double decompose = 0;
  double train = 0;  // the whole run, without evaluations and checkpoints
  // Parts of `train`: computing in steps, and waiting for the network. The rest is decompositions.
  double compute = 0;
  double communication = 0;
};

// `network.nodes` must divide the number of workers.
TimePlan plan_time(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length,
    const Network& network, const ComputeTime& compute);

// Seconds until the busiest link has sent its data if each worker sends `bytes` bytes in all: in
// equal parts to all other workers, or in a ring to its neighbor. Includes headers but not latency.
double wire_seconds(const Network& network, int workers, double bytes);

// "4 nodes, links of 1 Gbit/s each way, 50 us"
std::string link_text(const Network& network);
// The same, followed by "; compute time ...".
std::string network_text(const Network& network, const ComputeTime& compute);

// The output of `abtrain plan` about time, with the bounds of each figure. `plans`: one per
// possible size of the model (possible_sizes.h).
std::string time_text(
    const config::RunOptions& options, const RunLength& length, const Network& network,
    const std::vector<TimePlan>& plans);

}  // namespace abtrain::plan
