// ABT_CUDA_CHECK(call) throws std::runtime_error with the text of the call and CUDA's message if
// the call fails. This header includes no CUDA header: a CUDA status is passed as a number.
#pragma once

namespace abtrain::device {

[[noreturn]] void throw_cuda_error(int status, const char* call);

}  // namespace abtrain::device

#define ABT_CUDA_CHECK(...)                                          \
  do {                                                               \
    if (const int abt_status = static_cast<int>(__VA_ARGS__)) {      \
      ::abtrain::device::throw_cuda_error(abt_status, #__VA_ARGS__); \
    }                                                                \
  } while (false)
