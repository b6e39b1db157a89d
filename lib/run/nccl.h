// NCCL's version when abtrain was compiled and in the library that is loaded
// now: "2.28.9", or empty where NCCL is not compiled in. The two must agree in
// all but the last number.
#pragma once

#include <string>

namespace abtrain::run {

struct NcclVersions {
  std::string compiled;
  std::string loaded;
};

NcclVersions nccl_versions();

}  // namespace abtrain::run
