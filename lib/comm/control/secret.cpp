#include "comm/control/secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/env.h"
#include "base/error.h"

namespace abtrain::comm {

namespace {

constexpr const char* kVariable = "ABTRAIN_SECRET";
constexpr const char* kFileVariable = "ABTRAIN_SECRET_FILE";
constexpr std::size_t kMinLength = 16;
constexpr std::size_t kMaxLength = 4096;

static_assert(sizeof(Mac) == crypto_auth_BYTES);
static_assert(crypto_auth_KEYBYTES == 32);

void start_sodium() {
  // Several threads may call sodium_init(), more than once.
  ABT_ASSERT(sodium_init() >= 0, "libsodium did not start");
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Secret checked(std::string text, const std::string& what) {
  text.erase(text.find_last_not_of("\r\n") + 1);
  ABT_CHECK(
      text.size() >= kMinLength && text.size() <= kMaxLength, Config,
      "{}: expected a secret of {} to {} bytes, got {}", what, kMinLength, kMaxLength, text.size());
  const Secret secret(text);
  sodium_memzero(text.data(), text.size());
  return secret;
}

Secret read_file(const std::string& path) {
  const std::string what = formatted("{}: {}", kFileVariable, path);
  // Without O_NONBLOCK a FIFO would block the program.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  ABT_CHECK(file.is_open(), MissingInput, "{}: {}", what, std::strerror(errno));
  struct stat about {};
  ABT_CHECK(
      ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode), Config,
      "{} is not a regular file", what);
  ABT_CHECK(
      about.st_uid == ::geteuid() || ::geteuid() == 0, Config,
      "{} belongs to user {}: expected a file owned by the user that runs "
      "abtrain, {}",
      what, about.st_uid, ::geteuid());
  ABT_CHECK(
      (about.st_mode & 077) == 0, Config,
      "{} is open to users other than its owner: run chmod 600 on it", what);
  std::string text(kMaxLength + 2, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  ABT_CHECK(got >= 0, Io, "{}: {}", what, std::strerror(errno));
  text.resize(static_cast<std::size_t>(got));
  return checked(std::move(text), what);
}

}  // namespace

Secret::Secret(std::string_view text) {
  start_sodium();
  constexpr std::string_view kContext = "abtrain: processes of one run";
  key_.emplace();
  crypto_generichash(
      key_->data(), key_->size(), bytes_of(text), text.size(), bytes_of(kContext), kContext.size());
}

Mac Secret::mac_of(std::string_view message) const {
  Mac mac;
  crypto_auth(mac.data(), bytes_of(message), message.size(), key_->data());
  return mac;
}

bool Secret::matches(std::string_view message, const Mac& mac) const {
  return crypto_auth_verify(mac.data(), bytes_of(message), message.size(), key_->data()) == 0;
}

Secret secret_from_env() {
  const auto text = env(kVariable);
  const auto path = env(kFileVariable);
  ABT_CHECK(
      !text || !path, Config, "{} and {} are both set: expected one of them", kVariable,
      kFileVariable);
  return text ? checked(*text, kVariable) : path ? read_file(*path) : Secret();
}

std::string secret_source() {
  return env(kVariable) ? kVariable : env(kFileVariable) ? kFileVariable : "";
}

void fill_random(void* bytes, std::size_t count) {
  start_sodium();
  randombytes_buf(bytes, count);
}

}  // namespace abtrain::comm
