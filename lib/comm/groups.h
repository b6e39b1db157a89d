// Divides the workers into groups of contiguous ranks. The first half of the groups trains the
// factors A of the weights, the second half the factors B; if the number of groups is odd, one
// group more trains B. With one_role, all groups train the same factors: only B, or both.
#pragma once

#include <cstdint>
#include <optional>

namespace abtrain::comm {

enum class Role { A, B };  // with one_role always B

struct Groups {
  int group_size = 1;
  int count = 1;
  bool one_role = false;

  int group_of(int rank) const {
    return rank / group_size;
  }
  int groups_of_a() const {
    return one_role ? 0 : count / 2;
  }
  Role role_of(int rank) const {
    return group_of(rank) < groups_of_a() ? Role::A : Role::B;
  }
};

// Whether `group_size` divides the number of workers and leaves at least two groups, or at least
// one with `one_role`.
bool fits(int workers, std::int64_t group_size, bool one_role);

// The size that `method.group_size: auto` stands for: the largest that gives at least two groups of
// equal size, or 1 for a single worker.
std::int64_t auto_group_size(int workers);

// Without a `group_size`, takes auto_group_size(). If `group_size` does not fit, throws
// ConflictError, which names the sizes that do.
Groups make_groups(int workers, std::optional<std::int64_t> group_size, bool one_role);

}  // namespace abtrain::comm
