// What the reducers threshold and ternary share: every element is sent as -a, 0
// or +a with one level a per tensor (the quantizers of QCMD and QRDA Adagrad,
// after Xu et al., arXiv 2208.05631). See docs/methods/adagrad.md.
//
// - gather: two bits per element and the levels go to every member, all tensors
//   in one buffer; each member has its own levels.
// - int8: members first agree on levels, then sum one-byte codes.
#pragma once

#include <map>

#include "compress/compressed_reducer.h"
#include "ops/level_codes.h"

namespace abtrain::compress {

class LevelReducer : public CompressedReducer {
 public:
  // joined_by, numbers_per_tensor: of what numbers_of() returns.
  LevelReducer(
      const ReducerOptions& options, std::uint64_t seed, comm::ReduceOp joined_by,
      int numbers_per_tensor)
      : CompressedReducer(options, seed),
        joined_by_(joined_by),
        numbers_per_tensor_(numbers_per_tensor) {}

  // Scheme::check, of the option `transport`.
  static void check(
      const ReducerOptions& options, const std::string& section, std::int64_t members,
      Conflicts& out);

 protected:
  Rounds exchange(Task task) override;
  Volume exchanged(const Packed& packed, Member member, std::int64_t turn) const override;
  bool works_in_place() const override {
    return true;
  }

  struct Codes {
    const Task& task;
    ops::LevelTable& table;
    ops::CodeForm form;
    const at::Tensor& codes;
  };
  // The values (fp32) that levels are computed from: one member's, or all
  // members' combined by joined_by. Codes that do not depend on levels may be
  // written here, others by write_codes().
  virtual at::Tensor numbers_of(const Codes& out) = 0;
  virtual void write_codes(const Codes& /*out*/, const at::Tensor& /*levels*/) {}
  // One level per tensor.
  virtual at::Tensor level_of(const at::Tensor& numbers) const = 0;

 private:
  void encode(const Codes& out, const at::Tensor& levels);
  bool gathers(int members) const;

  const comm::ReduceOp joined_by_;
  const int numbers_per_tensor_;
  std::map<std::size_t, ops::LevelTable> tables_;  // by bucket
};

}  // namespace abtrain::compress
