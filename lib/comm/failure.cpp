#include "comm/failure.h"

#include <filesystem>
#include <utility>

#include "base/error.h"

namespace abtrain::comm {

std::string message_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown error";
  }
}

int exit_code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.exit_code();
  } catch (const std::filesystem::filesystem_error&) {
    return static_cast<int>(ErrorKind::Io);
  } catch (...) {
    return 1;
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
  message_ = message_of(cause);
  if (!is_echo(cause)) {
    message_ = "another worker failed: " + message_;
  }
  cause_ = std::move(cause);
  happened_.store(true, std::memory_order_release);
  return true;
}

std::exception_ptr Failure::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

void Failure::throw_if_happened() const {
  if (happened()) {
    const std::lock_guard lock(mutex_);
    throw Error(ErrorKind::PeerLost, message_);
  }
}

}  // namespace abtrain::comm
