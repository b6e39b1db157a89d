// State that AB-training keeps from one synchronization to the next: the outer step's velocity of
// both factors and, if changes are sent as codes (compressed), the residuals: what the codes left
// out of the changes of own factors and of dense parameters.
//
// The velocity and the residual of a factor are valid in one basis only, so each decomposition
// converts them to its new basis (methods/ab/basis_change.h). The residual of a dense weight is
// lost when the weight is factored.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "methods/ab/basis_change.h"
#include "methods/ab/synchronize.h"
#include "methods/outer_step.h"
#include "methods/timeline.h"
#include "optim/optimizer.h"
#include "state/archive.h"

namespace abtrain::methods {

class OuterState {
 public:
  explicit OuterState(const MethodOptions& options);

  // The dtype of values that are sent without codes.
  at::ScalarType dtype() const {
    return dtype_;
  }
  // The code for factor changes; nullopt: they are sent in dtype().
  const std::optional<ops::WireFormat>& format() const {
    return format_;
  }
  // Whether a synchronization with this event sends the changes of dense parameters as codes. It
  // does if codes are used, the AB phase goes on, and groups train both factors or the same factor
  // of adapters.
  bool codes_dense(Event after) const {
    return in_place_ && one_role_ && format_ &&
           (after == Event::AverageFactors || after == Event::SynchronizeAndDecompose);
  }
  // Whether a synchronization with this event averages the dense parameters' moments of this kind.
  // If in_place_, SynchronizeAndDecompose skips MomentKind::Other, such as Muon's second buffer,
  // which matrices do not use.
  bool averages(optim::MomentKind kind, Event after) const {
    return after != Event::AverageFactors && after != Event::None &&
           !(in_place_ && after == Event::SynchronizeAndDecompose &&
             kind == optim::MomentKind::Other);
  }
  // Sends `change` plus `residual` (factor_residual or dense_residual) as codes of format(), and
  // returns exchange.mean_changes(). `change` becomes the next residual: the part that the codes
  // leave out, or undefined without error feedback. The caller stores it once all collectives of
  // the synchronization have succeeded.
  FlatFactors send(
      const at::Tensor& residual, at::Tensor& change, FactorExchange& exchange, std::int64_t a,
      std::int64_t b, comm::Purpose purpose) const;
  // Adds the residual to a change that is about to be sent.
  void add_residual(const at::Tensor& residual, at::Tensor change) const;
  // Replaces the mean changes by the changes that the outer step makes from them.
  void step(FlatFactors& change);
  // Converts the state to the new bases, during a decomposition. `own`: the factors that this
  // worker trains. `layers`: all that may be factored, in the order of the flat buffers.
  void change_basis(const std::vector<nn::Factor>& own, const std::vector<AbLayer>& layers);
  void clear();

  // The residuals of the own factors and of the dense parameters, bit-identical on all workers of a
  // group; undefined: none.
  at::Tensor factor_residual, dense_residual;

  // `own`, `dense`, `a`, `b`: element counts of the own factors, of the dense parameters, of all
  // factors A, of all factors B.
  void archive(
      state::Archive& archive, std::int64_t own, std::int64_t dense, std::int64_t a,
      std::int64_t b);

 private:
  OuterStep step_;
  bool in_place_;  // most synchronizations are Event::AverageFactors
  bool one_role_;
  at::ScalarType dtype_;
  std::optional<ops::WireFormat> format_;
  bool keeps_residual_ = false;
  double decay_ = 1;
  FlatFactors velocity_;  // undefined until the first synchronization
};

}  // namespace abtrain::methods
