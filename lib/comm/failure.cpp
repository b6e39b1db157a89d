#include "comm/failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "device/memory.h"

namespace abtrain::comm {

namespace {

constexpr const char* kLess =
    "; a smaller data.batch_size, evaluate.batch_size, model or number of "
    "workers needs less";

bool asks_too_much(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  constexpr std::array<const char*, 4> kSigns = {
      "out of memory",
      "not enough memory",       // LibTorch on Arm
      "calculation overflowed",  // of a tensor's size
      "with negative number"};
  return device::is_out_of_memory(error) || std::ranges::any_of(kSigns, [&](const char* sign) {
           return text.find(sign) != std::string::npos;
         });
}

std::string memory_message(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  const std::string sign = "tried to allocate ";
  const std::size_t at = text.find(sign);
  double bytes = 0;
  if (at != std::string::npos) {
    const char* const number = text.data() + at + sign.size();
    std::from_chars(number, text.data() + text.size(), bytes);
  }
  return formatted(
      "out of memory{}{}",
      bytes > 0 ? formatted(" (a tensor of {} does not fit)", human_bytes(bytes)) : "", kLess);
}

// Returns an Error that says what to do. Rethrows an error for which there is no better message.
Error named(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    return error;
  } catch (const c10::OutOfMemoryError& error) {
    return {
        ErrorKind::Config, formatted(
                               "out of GPU memory: {}\nTry a smaller data.batch_size or model, or "
                               "train.precision: bf16.",
                               error.what_without_backtrace())};
  } catch (const c10::Error& error) {
    if (asks_too_much(error)) {
      return {ErrorKind::Config, memory_message(error)};
    }
    throw;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::Config, formatted("out of memory{}", kLess)};
  } catch (const std::length_error&) {
    return {ErrorKind::Config, formatted("out of memory{}", kLess)};
  } catch (const std::filesystem::filesystem_error& error) {
    return {
        ErrorKind::Io,
        formatted("cannot use '{}': {}", error.path1().string(), error.code().message())};
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return {
          ErrorKind::Config,
          "the system refused to start a thread; use fewer workers, "
          "data.decode_threads or train.threads"};
    }
    throw;
  }
}

std::string names_of(const std::vector<int>& workers) {
  return workers.empty()
             ? "the other workers"
             : join(mapped(workers, [](int rank) { return formatted("worker {}", rank); }), ", ");
}

}  // namespace

TimedOut::TimedOut(const std::string& call, double seconds, const std::vector<int>& missing)
    : Error(
          ErrorKind::PeerLost, formatted(
                                   "{}: waited {} s for {}, longer than train.timeout allows. Find "
                                   "out why that takes so long, or set a larger train.timeout; "
                                   "`--resume auto` continues from the last checkpoint",
                                   call, seconds, names_of(missing))),
      worker(missing.empty() ? -1 : missing.front()) {}

std::string message_of(const std::exception_ptr& cause) {
  try {
    return named(cause).what();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown error";
  }
}

int exit_code_of(const std::exception_ptr& error) {
  try {
    return named(error).exit_code();
  } catch (...) {
    return 1;
  }
}

std::exception_ptr error_of(std::int64_t code, const std::string& text) {
  if (code == 1) {
    return std::make_exception_ptr(std::runtime_error(text));
  }
  return std::make_exception_ptr(Error(static_cast<ErrorKind>(code), text));
}

int worker_of(const std::exception_ptr& error, int otherwise) {
  try {
    std::rethrow_exception(error);
  } catch (const TimedOut& late) {
    return late.worker < 0 ? otherwise : late.worker;
  } catch (...) {
    return otherwise;
  }
}

std::optional<std::int64_t> step_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const StepError& of_step) {
    return of_step.step;
  } catch (...) {
    return std::nullopt;
  }
}

bool is_echo(const std::exception_ptr& error) {
  return exit_code_of(error) == static_cast<int>(ErrorKind::PeerLost);
}

bool Failure::set(std::exception_ptr cause) noexcept {
  const std::lock_guard lock(mutex_);
  if (cause_) {
    return false;
  }
  cause_ = std::move(cause);
  happened_.store(true, std::memory_order_release);
  return true;
}

void Failure::clear() noexcept {
  const std::lock_guard lock(mutex_);
  happened_.store(false, std::memory_order_release);
  cause_ = nullptr;
}

std::exception_ptr Failure::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

void Failure::throw_if_happened() const {
  if (happened()) {
    const std::lock_guard lock(mutex_);
    if (is_echo(cause_)) {
      std::rethrow_exception(cause_);
    }
    throw Error(ErrorKind::PeerLost, "another worker failed: " + message_of(cause_));
  }
}

}  // namespace abtrain::comm
