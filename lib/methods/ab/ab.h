// AB-training (Coquelin et al., arXiv 2405.01067): weights are products A B of two factors. In AB
// phases, each group of workers trains one factor (its role), or both, on its own, and groups
// synchronize rarely. In FULL phases, all workers together train dense weights.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "methods/ab/decompose.h"
#include "methods/ab/outer_state.h"
#include "methods/ab/phase.h"
#include "methods/ab/synchronize.h"
#include "methods/method.h"

namespace abtrain::methods {

class AbTraining : public Method {
 public:
  // Collective: splits the world. Throws Error(Config) if the groups do not fit the number of
  // workers, or if no layer can be factored.
  explicit AbTraining(const MethodContext& context);

  void start() override;
  void after_step(std::int64_t t) override;
  void finish(std::int64_t t) override;
  void merge_into(nn::Model& target) override;
  void archive(state::Archive& archive) override;
  void regroup(std::vector<state::State>& old, std::int64_t t) override;
  void watch_gradients(compress::GradientWatch watch) override {
    group_reduction_.watch(watch);
    reduction_.watch(std::move(watch));
  }
  Stage now() override;
  double learning_rate(std::int64_t t) override;
  std::vector<LayerRank> layers() const override;
  compress::Costs costs() override;

 protected:
  // Averages over the world in a FULL phase, within the group in an AB phase.
  GradientReduction* reduction() override;
  std::vector<at::Tensor> replicated_state() override;
  void replanned(const RunLength& length) override;

 private:
  bool trains(nn::Factor which) const {
    return std::ranges::count(own_, which) > 0;
  }
  // Element count of all factors A, or of all factors B.
  std::int64_t numel_of(nn::Factor which) const;
  // The change of the own factors (those that this worker trains) since the last switch of phase or
  // averaging.
  at::Tensor own_change();
  // Splits a flat buffer of the own factors into A and B; undefined for a factor that this worker
  // does not train.
  FlatFactors own_factors(const at::Tensor& flat) const;
  // The dense parameters' part of the k-th buffer in `flat`, which holds buffers laid out like
  // trained_.values(), one after another.
  at::Tensor dense_part(const at::Tensor& flat, int k = 0);
  // All factors as they were at the last switch or averaging; views.
  FlatFactors start_factors();
  // dense_part() of the values and of each moment buffer; views.
  std::vector<at::Tensor> dense_parts();

  struct MergedChanges {
    FlatFactors mean;
    at::Tensor unsent;  // the next outer_.factor_residual; undefined: none
  };
  // Averages the groups' changes. Sends them in outer_.dtype(), but with `codes` as codes if
  // outer_.format() is set. A synchronization without `codes` ends the run, so it also sends what
  // earlier codes left out.
  MergedChanges merged_changes(comm::Purpose purpose, bool codes);
  // Sets the products (AbLayer::product) of the factored layers from the mean changes.
  void set_products(const FlatFactors& mean_change);
  // Averages dense parameters, running statistics and the moments that the outer state selects over
  // the world. `after`: the event of the synchronization. Sends changes of dense parameters as
  // codes if outer_.codes_dense(after).
  void average_dense(Event after);
  // Keeps the unsent changes (residuals) of the dense parameters that are still dense. `old`: the
  // previous block, with `old_own` elements of own factors.
  void keep_dense_residual(const optim::ParameterBlock& old, std::int64_t old_own);

  // Synchronizes an AB phase and sets the products, for enter_full() or decompose(). At the end of
  // a run (Event::None), takes no outer step and sends no codes, because no later synchronization
  // would correct their errors.
  void synchronize(std::int64_t t, Event after);
  void enter_full();
  // Decomposes the layers at the end of either phase; the AB phase begins or goes on.
  void decompose(std::int64_t t);
  // The rank of an adapter's first factors, by a rule that needs no singular values. `rounds`:
  // rounds it to the rule's multiple.
  std::int64_t first_rank(const AbLayer& layer, bool rounds) const;
  // Set the first factors of adapters: take_factors() to those that the model came with,
  // draw_factors() to random ones with a product of zero.
  void take_factors();
  void draw_factors();
  // Turns the layers' dense weights into the frozen remainders of adapters with the first factors
  // layer.factors.
  void freeze_remainders();
  // Uses each layer's product as its factors, in the same basis, without a decomposition.
  void keep_products();
  // Synchronizes an AB phase that goes on in the same bases. Moments are not averaged.
  void average_factors(std::int64_t t);
  // The moments of a layer's factor `which`, or of its dense weight, as views of the current block.
  AbLayer::Moments moments_of(const AbLayer& layer, nn::Factor which);
  // Sets the moments of the trained factors to layer.moments, converted to the factors' new basis.
  void carry_moments(const AbLayer& layer);
  void build_blocks();
  void bind_reductions();
  void shape_weights(const std::vector<std::int64_t>& ranks);
  void load_role(std::span<state::State> old, const std::vector<nn::Factor>& role);
  void archive_starts(state::Archive& archive);
  // The factors that this worker trains after t steps.
  std::vector<nn::Factor> role_after(std::int64_t t) const;
  // Whether groups now train the factor that they did not begin with.
  bool are_swapped() const;
  // Trains the other factor from now on.
  void swap_roles();
  // Sets the products and dense parameters from the states of groups that trained A and of those
  // that trained B; one list may be empty.
  void merge_roles(std::span<state::State> of_a, std::span<state::State> of_b);
  // Whether a decomposition now cuts ranks.
  bool cuts() const {
    return context_.options.cut_first || decomposed_before_;
  }

  comm::Groups groups_;
  std::vector<nn::Factor> own_;  // the factors that this worker trains
  std::unique_ptr<comm::Communicator> group_;
  FactorExchange exchange_;
  OuterState outer_;
  std::vector<AbLayer> factorable_;
  Ramp ramp_;
  std::optional<device::SideStream> svd_stream_;

  Phase phase_ = Phase::Full;
  std::int64_t switched_at_ = -1;  // step of the last switch; -1: none yet
  bool decomposed_before_ = false;

  optim::ParameterBlock frozen_;  // the other factor, AB phase only
  // Element count and number of the own factors, which come first in trained_.
  std::int64_t own_numel_ = 0, own_count_ = 0;
  // Flat values at the last switch or averaging: only their change is sent.
  at::Tensor own_start_;           // AB: own factors
  at::Tensor dense_start_;         // AB: the dense parameters
  std::int64_t averaged_at_ = -1;  // step of the last averaging; -1: none yet

  GradientReduction group_reduction_;  // used in AB steps

  // With alternating roles: the optimizer's state and the unsent change (residual) of the factor
  // that this worker does not train now. Undefined: none yet.
  struct Waiting {
    at::Tensor moments, steps, residual;
  };
  Waiting waiting_;
};

}  // namespace abtrain::methods
