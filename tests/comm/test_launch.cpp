// Which process this one is, from the variables of launchers.
#include "comm/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "error_of.h"
#include "with_variables.h"

namespace abtrain::comm {
namespace {

using Variables = std::map<std::string, std::string>;

// These variables and no others that a launcher sets.
testing::WithVariables::Values alone(const Variables& variables) {
  testing::WithVariables::Values all;
  for (const char* name :
       {"RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_RUN_ID",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMI_RANK",
        "PMI_SIZE",
        "PMIX_RANK",
        "MPI_LOCALRANKID",
        "MPI_LOCALNRANKS",
        "SLURM_JOB_ID",
        "SLURM_LOCALID",
        "SLURM_NODEID",
        "SLURM_NTASKS",
        "SLURM_PROCID",
        "SLURM_STEP_ID",
        "SLURM_STEP_NODELIST",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_STEP_TASKS_PER_NODE"}) {
    all[name] = {};
  }
  for (const auto& [name, value] : variables) {
    all[name] = value;
  }
  return all;
}

const Variables kByHand = {
    {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "4000"}};
const Variables kTorchrun = {
    {"RANK", "3"},
    {"WORLD_SIZE", "4"},
    {"LOCAL_RANK", "1"},
    {"LOCAL_WORLD_SIZE", "2"},
    {"MASTER_ADDR", "head"},
    {"MASTER_PORT", "29500"},
    {"TORCHELASTIC_RUN_ID", "none"}};
const Variables kOpenMpi = {
    {"OMPI_COMM_WORLD_RANK", "4"},
    {"OMPI_COMM_WORLD_SIZE", "5"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
const Variables kPmi = {
    {"PMI_RANK", "5"}, {"PMI_SIZE", "6"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}};
const Variables kSlurm = {
    {"SLURM_JOB_ID", "100"},
    {"SLURM_STEP_ID", "2"},
    {"SLURM_PROCID", "6"},
    {"SLURM_STEP_NUM_TASKS", "7"},
    {"SLURM_LOCALID", "0"},
    {"SLURM_NODEID", "3"},
    {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
    {"SLURM_STEP_NODELIST", "node[03-05,9]"}};

Variables operator+(Variables all, const Variables& more) {
  for (const auto& [name, value] : more) {
    all[name] = value;
  }
  return all;
}

Launch found(const Variables& variables) {
  const testing::WithVariables environment(alone(variables));
  return find_launch();
}

// Text and address: all there is to see.
std::string shown(const Launch& launch) {
  return formatted(
      "{}{}{}", launch.text(), launch.has_mpi ? ", MPI" : "",
      launch.port > 0 ? formatted(", {}:{}", launch.host, launch.port) : "");
}

void expect_usage(const Variables& variables, const std::string& part) {
  expect_error([&] { const Launch launch = found(variables); }, ErrorKind::Usage, {part});
}

TEST(Launch, WithoutALauncherIsOneProcess) {
  EXPECT_EQ(shown(found({})), "one process");
  EXPECT_EQ(found({}).size, 1);
}

TEST(Launch, EverySource) {
  EXPECT_EQ(shown(found(kByHand)), "variables: process 1 of 3, 0 of 1 on this host, 10.0.0.1:4000");
  EXPECT_EQ(shown(found(kTorchrun)), "torchrun: process 3 of 4, 1 of 2 on this host, head:29500");
  EXPECT_EQ(shown(found(kOpenMpi)), "Open MPI: process 4 of 5, 2 of 3 on this host, MPI");
  EXPECT_EQ(shown(found(kPmi)), "PMI: process 5 of 6, 1 of 3 on this host, MPI");
  // Port: 20000 + 100 * 31 + 2, below those that Linux gives to connections.
  EXPECT_EQ(shown(found(kSlurm)), "Slurm step: process 6 of 7, 0 of 1 on this host, node03:23102");
}

TEST(Launch, OrderOfPrecedence) {
  Variables all = kTorchrun + kOpenMpi + kPmi + kSlurm;
  const auto drop = [&all](const Variables& names) {
    for (const auto& [name, value] : names) {
      all.erase(name);
    }
  };
  EXPECT_EQ(found(all).source, "torchrun");
  drop(kTorchrun);
  EXPECT_EQ(found(all).source, "Open MPI");
  drop(kOpenMpi);
  EXPECT_EQ(found(all).source, "PMI");
  drop(kPmi);
  EXPECT_EQ(found(all).source, "Slurm step");
  drop(kSlurm);
  EXPECT_EQ(found(all).source, "one process");
}

TEST(Launch, EmptyVariablesCountAsNotSet) {
  EXPECT_EQ(found(kOpenMpi + Variables{{"RANK", ""}, {"WORLD_SIZE", ""}}).source, "Open MPI");
}

TEST(Launch, WhatLaunchersLeaveOutIsFilledIn) {
  for (const char* address : {"2001:db8::1", "[2001:db8::1]"}) {
    EXPECT_EQ(
        shown(found(kByHand + Variables{{"LOCAL_RANK", "1"}, {"MASTER_ADDR", address}})),
        "variables: process 1 of 3, 1 of 2 on this host, 2001:db8::1:4000");
  }
  EXPECT_EQ(found({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).source, "one process");
  EXPECT_EQ(found({{"RANK", "7"}}).source, "one process");  // not meant for us
}

// A launcher collects what its processes say.
TEST(Launch, IsAloneIfAUserHasSetTheVariables) {
  EXPECT_TRUE(found(kByHand).is_alone());
  EXPECT_FALSE(found(kTorchrun).is_alone());
  EXPECT_FALSE(found(kOpenMpi).is_alone());
}

TEST(LaunchSlurm, ABatchScriptWithoutSrunIsOneProcess) {
  EXPECT_EQ(
      found({{"SLURM_JOB_ID", "100"},
             {"SLURM_PROCID", "0"},
             {"SLURM_NTASKS", "4"},
             {"SLURM_NODEID", "0"}})
          .text(),
      "one process");
}

TEST(LaunchSlurm, BringsMpiWithAnInterfaceForIt) {
  EXPECT_FALSE(found(kSlurm).has_mpi);
  EXPECT_TRUE(found(kSlurm + Variables{{"PMIX_RANK", "6"}}).has_mpi);
}

TEST(LaunchSlurm, SaysMoreThanItsOwnPmi2) {
  const Launch launch = found(kSlurm + Variables{{"PMI_RANK", "6"}, {"PMI_SIZE", "7"}});
  EXPECT_EQ(launch.source, "Slurm step");
  EXPECT_TRUE(launch.has_mpi);
}

TEST(LaunchSlurm, MpiexecWithItsHelpersInAStepCountsItself) {
  // One helper a node: two tasks of Slurm, but six processes.
  const Variables helpers = {
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  EXPECT_EQ(shown(found(helpers + kPmi)), "PMI: process 5 of 6, 1 of 3 on this host, MPI");
}

TEST(LaunchSlurm, AnAddressOfTheUsersWins) {
  const Variables address = {{"MASTER_ADDR", "head"}, {"MASTER_PORT", "77"}};
  EXPECT_EQ(
      shown(found(kSlurm + address)), "Slurm step: process 6 of 7, 0 of 1 on this host, head:77");
}

TEST(LaunchSlurm, NumbersOfJobsAndStepsMayBeLarge) {
  // The shell of salloc is a step with a number near 2^32.
  const Launch launch = found(
      {{"SLURM_JOB_ID", "67108863"},
       {"SLURM_STEP_ID", "4294967290"},
       {"SLURM_PROCID", "0"},
       {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_EQ(launch.text(), "Slurm step");
  EXPECT_GE(launch.port, 20000);
  EXPECT_LT(launch.port, 32768);
}

TEST(LaunchErrors, HalfSetVariables) {
  for (const char* missing : {"WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables some = kByHand;
    some.erase(missing);
    expect_usage(some, "not all of WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
  expect_usage({{"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_RANK: expected");
  expect_usage({{"PMI_SIZE", "2"}}, "PMI_RANK: expected");
}

TEST(LaunchErrors, RanksOutside) {
  expect_usage(kByHand + Variables{{"RANK", "3"}}, "variables: rank 3 of 3 processes");
  expect_usage(kTorchrun + Variables{{"RANK", "4"}}, "torchrun: rank 4 of 4");
  expect_usage(
      kOpenMpi + Variables{{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}},
      "Open MPI: rank 4 of 5 processes, 3 of 3 on this host");
  expect_usage(kTorchrun + Variables{{"RANK", "-1"}}, "RANK: expected");
}

TEST(LaunchErrors, TextThatIsNoNumber) {
  expect_usage(
      kTorchrun + Variables{{"WORLD_SIZE", "four"}}, "WORLD_SIZE: expected an integer, got 'four'");
  expect_usage(
      kOpenMpi + Variables{{"OMPI_COMM_WORLD_RANK", "1.5"}},
      "OMPI_COMM_WORLD_RANK: expected an integer, got '1.5'");
  expect_usage(
      kSlurm + Variables{{"SLURM_STEP_NUM_TASKS", "99999999999"}},
      "SLURM_STEP_NUM_TASKS: expected a number of processes");
}

TEST(LaunchErrors, BadAddresses) {
  for (const char* port : {"0", "65536", "-1", "port", "40x", "99999999999999999999"}) {
    expect_usage(
        kByHand + Variables{{"MASTER_PORT", port}},
        formatted("a port from 1 to 65535, got '10.0.0.1' and '{}'", port));
  }
  expect_usage(kByHand + Variables{{"MASTER_ADDR", "[]"}}, "expected a host and a port");
}

TEST(LaunchLists, FirstHost) {
  EXPECT_EQ(first_host("node[03-07,9],gpu1"), "node03");
  EXPECT_EQ(first_host("n1"), "n1");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("a,node[1-2]"), "a");
  EXPECT_EQ(first_host("node[7]"), "node7");
  EXPECT_EQ(first_host("rack[1-2]n[1-3]"), "rack1n1");
  EXPECT_EQ(first_host("rack[01,03]n[10-12,20],x"), "rack01n10");
  EXPECT_EQ(first_host("gpu-[5-6]-ib"), "gpu-5-ib");
}

TEST(LaunchLists, TasksOfNode) {
  const std::string list = "2(x3),1";
  EXPECT_EQ(tasks_of_node(list, 0), 2);
  EXPECT_EQ(tasks_of_node(list, 2), 2);
  EXPECT_EQ(tasks_of_node(list, 3), 1);
  EXPECT_EQ(tasks_of_node("4", 0), 4);
  EXPECT_EQ(tasks_of_node("1,16(x2),3", 2), 16);
  EXPECT_EQ(tasks_of_node("1,16(x2),3", 3), 3);
}

TEST(LaunchLists, WrongTasksOfNode) {
  const auto expect_refused = [](const std::string& list, int node) {
    expect_error([&] { tasks_of_node(list, node); }, ErrorKind::Usage, {"got '" + list + "'"});
  };
  expect_refused("4", 1);
  expect_refused("2(x3),1", 4);
  for (const std::string list : {"", "many", ",4", "2x3", "2(x", "2(x)", "2(x3", "2(x-1)", "-2"}) {
    expect_refused(list, 0);
  }
}

}  // namespace
}  // namespace abtrain::comm
