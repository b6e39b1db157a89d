// A secret that all processes of a run share. It proves to each that the others belong to the run,
// and is never sent.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace abtrain::comm {

// The code that authenticates a message (HMAC-SHA-512-256).
using Mac = std::array<unsigned char, 32>;

class Secret {
 public:
  Secret() = default;  // none
  explicit Secret(std::string_view text);

  bool is_set() const {
    return key_.has_value();
  }
  // mac_of() and matches() need a secret that is set.
  Mac mac_of(std::string_view message) const;
  // Compares in constant time.
  bool matches(std::string_view message, const Mac& mac) const;

 private:
  std::optional<std::array<unsigned char, 32>> key_;
};

// Reads the secret from ABTRAIN_SECRET or from the file that ABTRAIN_SECRET_FILE names; the result
// is not set if neither variable is. Throws Error if both are set, if the secret is too short or
// too long, and if the file cannot be read or users other than its owner can access it.
Secret secret_from_env();
// The name of the variable that the secret comes from; empty if there is none.
std::string secret_source();

// Writes unpredictable bytes.
void fill_random(void* bytes, std::size_t count);

}  // namespace abtrain::comm
