// ABT_CUDA_CHECK(call) throws with the call's text and CUDA's message;
// ABT_CUDA_WARN(call) writes it to stderr, for destructors. The header needs
// no CUDA header itself: a CUDA status is passed on as a number.
#pragma once

namespace abtrain::device {

[[noreturn]] void throw_cuda_error(int status, const char* call);
void warn_cuda_error(int status, const char* call) noexcept;

}  // namespace abtrain::device

#define ABT_CUDA_CHECK(...)                                          \
  do {                                                               \
    if (const int abt_status = static_cast<int>(__VA_ARGS__)) {      \
      ::abtrain::device::throw_cuda_error(abt_status, #__VA_ARGS__); \
    }                                                                \
  } while (false)

#define ABT_CUDA_WARN(...)                                          \
  do {                                                              \
    if (const int abt_status = static_cast<int>(__VA_ARGS__)) {     \
      ::abtrain::device::warn_cuda_error(abt_status, #__VA_ARGS__); \
    }                                                               \
  } while (false)
