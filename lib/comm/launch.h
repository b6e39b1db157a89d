// The rank of this process and the number of processes, from the launcher's environment variables.
// The first launcher whose variables are present decides: torchrun (a user may set its variables
// too), Open MPI, PMI, a Slurm step. Without any of them there is one process.
#pragma once

#include <string>

namespace abtrain::comm {

struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // on this host
  int local_size = 1;
  std::string source = "one process";  // "torchrun", "Open MPI", ...
  bool has_mpi = false;                // whether MPI_Init would find the other processes
  // The address where the processes can meet, if the launcher's variables give one; otherwise the
  // port is 0.
  std::string host = {};
  int port = 0;

  // "Open MPI: process 1 of 4, 1 of 2 on this host"
  std::string text() const;
  // Whether the processes were started one by one. Then no launcher collects their output, so each
  // must print its own errors.
  bool is_alone() const {
    return source == "variables";
  }
};

// Throws Error(Usage) for a rank outside 0 .. size - 1 and if only some of a launcher's variables
// are set.
Launch find_launch();

// The first host of a Slurm node list: "node[03-07,9],gpu1" -> "node03".
std::string first_host(const std::string& node_list);

// The number of tasks on node `node`, counted from 0: "2(x3),1" at node 3 -> 1.
int tasks_of_node(const std::string& tasks_per_node, int node);

}  // namespace abtrain::comm
