// What the reducers threshold and ternary have in common: every number is sent
// as -a, 0 or +a with a level a of its tensor (the quantizers of QCMD and QRDA
// Adagrad, after Xu et al., arXiv 2208.05631). docs/methods/adagrad.md.
//
// - gather: two bits a number and the levels go to everybody, all tensors in one
//   buffer; each member has levels of its own.
// - int8: levels are agreed on first, then codes of a byte are added up.
#pragma once

#include <map>

#include "compress/compressed.h"
#include "ops/level_codes.h"

namespace abtrain::compress {

class LevelCodes : public CompressedReducer {
 public:
  LevelCodes(const ReducerOptions& options, std::uint64_t seed);

 protected:
  Rounds exchange(Task task) override;
  std::int64_t exchange_bytes(const Packed& packed, int members, int rank)
      const override;
  std::int64_t exchange_bits(const Packed& packed, int members) const override;
  bool works_in_place() const override {
    return true;
  }
  void forget() override {
    tables_.clear();
  }

  struct Codes {
    const Task& task;
    ops::LevelTable& table;
    ops::LevelForm form;
    const at::Tensor& codes;
  };
  // Numbers (fp32) that levels come from, one member's or all members' joined.
  // Codes that do not depend on levels may be written here, others by
  // write_codes().
  virtual at::Tensor numbers_of(const Codes& out) = 0;
  virtual void write_codes(const Codes& /*out*/, const at::Tensor& /*levels*/) {
  }
  // One level a tensor.
  virtual at::Tensor level_of(const at::Tensor& numbers) const = 0;
  virtual comm::ReduceOp joined_by() const = 0;
  virtual int numbers_a_tensor() const = 0;

 private:
  void encode(const Codes& out, const at::Tensor& levels);
  static ops::LevelTable table_of(const Packed& packed);
  bool gathers(int members) const;

  std::map<std::size_t, ops::LevelTable> tables_;  // by bucket
};

}  // namespace abtrain::compress
