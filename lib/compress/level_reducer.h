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
  using CompressedReducer::CompressedReducer;

  // Scheme::check, of the option `transport`.
  static Conflicts check(
      const ReducerOptions& options, const std::string& section, std::int64_t members);

 protected:
  Rounds exchange(Task task) override;
  Volume exchanged(const Packed& packed, Member member, std::int64_t turn) const override;
  bool works_in_place() const override {
    return true;
  }
  void forget() override {
    tables_.clear();
  }

  struct Codes {
    const Task& task;
    ops::LevelTable& table;
    ops::CodeForm form;
    const at::Tensor& codes;
  };
  // The values (fp32) that levels are computed from: one member's, or all
  // members' combined by joined_by(). Codes that do not depend on levels may be
  // written here, others by write_codes().
  virtual at::Tensor numbers_of(const Codes& out) = 0;
  virtual void write_codes(const Codes& /*out*/, const at::Tensor& /*levels*/) {}
  // One level per tensor.
  virtual at::Tensor level_of(const at::Tensor& numbers) const = 0;
  virtual comm::ReduceOp joined_by() const = 0;
  virtual int numbers_per_tensor() const = 0;

 private:
  void encode(const Codes& out, const at::Tensor& levels);
  static ops::LevelTable table_of(const Packed& packed);
  bool gathers(int members) const;

  std::map<std::size_t, ops::LevelTable> tables_;  // by bucket
};

}  // namespace abtrain::compress
