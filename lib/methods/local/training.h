// Training with local steps: after a data-parallel warm-up every worker trains alone, and all
// workers synchronize rarely. `local-sgd` averages the parameters (Stich 2019, arXiv 1805.09767;
// the warm-up is Lin et al. 2020, arXiv 1808.07217); `diloco` uses that average as an outer
// gradient (Douillard et al. 2023, arXiv 2311.08105), optionally in fragments that are sent while
// training goes on (Douillard et al. 2025, arXiv 2501.18512).
//
// Both keep x, the parameters that all workers had after the last synchronization. Each fragment
// has its own exchange, with its own residuals, which averages the fragment's change since that
// synchronization by method.outer.wire (by default the run's reducer). To that reducer, a
// synchronization after t steps is step t. The end of the run averages the workers' parameters
// without compression and without an outer step: no later step would correct what its momentum
// overshoots.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compress/gradient_exchange.h"
#include "methods/local/fragment.h"
#include "methods/local/plan.h"
#include "methods/method.h"

namespace abtrain::methods {

class LocalTraining : public Method {
 public:
  explicit LocalTraining(const MethodContext& context);

  void start() override;
  void after_step(std::int64_t t) override;
  void finish(std::int64_t t) override;
  // Uses the mean of the workers' parameters, in fp32.
  void merge_into(nn::Model& target) override;
  void settle() override;
  // A fragment in flight must arrive before the last step.
  std::int64_t fewest_steps(std::int64_t t) const override {
    return flight_ ? std::max(t, flight_->begun + plan_.delay + 1) : t;
  }
  void abandon() override {
    flight_.reset();
  }
  void archive(state::Archive& archive) override;
  void regroup(std::vector<state::State>& old, std::int64_t t) override;
  Stage now() override;
  compress::Costs costs() override;
  // After the warm-up, true only right after a synchronization that makes whole models equal.
  bool replicas_agree(std::int64_t t) const override {
    return !local_ || agreed_at_ == t;
  }

 protected:
  GradientReduction* reduction() override {
    return local_ ? nullptr : &reduction_;
  }
  std::vector<at::Tensor> replicated_state() override;

 private:
  // A fragment between the start of its exchange and the use of the result.
  struct Flight {
    std::int64_t fragment = 0;
    std::int64_t begun = 0;      // steps done when the exchange began
    bool settled = false;        // the mean is in scratch_
    at::Tensor statistics = {};  // running statistics, flat; undefined: none
    comm::Pending pending = {};  // the average of the statistics
    double seconds = 0;
  };

  void begin_local(std::int64_t t);
  // Rebuilds the fragments, their exchanges (without residuals) and scratch_ from local_ and the
  // block.
  void bind();
  void begin_fragment(std::int64_t fragment, std::int64_t t);
  void apply_fragment(std::int64_t t);
  void agree(std::int64_t t, bool with_moments);

  void replanned(const RunLength& length) override {
    plan_ = make_local_plan(planned_, length);
    for (const auto& exchange : exchanges_) {
      exchange->set_interval(plan_.interval);
    }
  }

  LocalPlan plan_;
  compress::ReducerOptions outer_wire_;

  bool local_ = false;
  std::vector<Fragment> fragments_;
  std::vector<std::unique_ptr<compress::GradientExchange>> exchanges_;
  at::Tensor x_;         // x of the file comment, laid out like the block
  at::Tensor velocity_;  // of the outer step, laid out like the block
  at::Tensor scratch_;   // a fragment's change, then the workers' mean change
  std::optional<Flight> flight_;
  std::int64_t agreed_at_ = -1;  // steps done when replicas were last equal
  bool moments_agreed_ = false;  // whether their moments were equal too
};

}  // namespace abtrain::methods
