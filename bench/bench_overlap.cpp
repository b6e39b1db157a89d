// Measures how much of an all-reduce over MPI hides behind computation:
//   mpirun -np 2 bench_overlap [NUMBERS] [ROUNDS]
// Times an all-reduce alone, matrix products alone that take about as long, and
// the products between the start of the all-reduce and its wait(). Process 0
// prints the medians, and the share of the shorter one that was hidden.
#include <ATen/Parallel.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "comm/launch.h"
#include "comm/mpi/world.h"

namespace {

using namespace abtrain;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t numbers = argc > 1 ? std::atoll(argv[1]) : 3'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  at::set_num_threads(1);
  const comm::Launch launch = comm::find_launch({});
  comm::MpiWorld mpi(launch.rank, launch.size);
  const auto world = mpi.communicator();
  const at::Tensor buffer = at::randn({numbers});
  const at::Tensor a = at::randn({256, 256});
  const auto send = [&] {
    return world->all_reduce(
        buffer, comm::ReduceOp::Mean, comm::Purpose::Gradient);
  };
  const auto product = [&] { at::matmul(a, a); };

  send().wait();
  product();
  world->barrier();
  const double first = seconds_of([&] { send().wait(); });
  const double one = seconds_of([&] {
                       for (int i = 0; i < 100; ++i) {
                         product();
                       }
                     }) /
                     100;
  const int products = std::max(1, static_cast<int>(first / one));
  const auto compute = [&] {
    for (int i = 0; i < products; ++i) {
      product();
    }
  };
  std::vector<double> alone;
  std::vector<double> computed;
  std::vector<double> both;
  for (int round = 0; round < rounds; ++round) {
    world->barrier();
    alone.push_back(seconds_of([&] { send().wait(); }));
    world->barrier();
    computed.push_back(seconds_of(compute));
    world->barrier();
    both.push_back(seconds_of([&] {
      comm::Pending pending = send();
      compute();
      pending.wait();
    }));
  }
  if (launch.rank == 0) {
    const double communication = median(alone);
    const double computation = median(computed);
    const double together = median(both);
    std::printf(
        "all-reduce of %lld numbers over %d processes %.1f ms, products %.1f "
        "ms, together %.1f ms: %.0f %% hidden\n",
        static_cast<long long>(numbers),
        launch.size,
        1e3 * communication,
        1e3 * computation,
        1e3 * together,
        100 * (communication + computation - together) /
            std::min(communication, computation));
  }
}
