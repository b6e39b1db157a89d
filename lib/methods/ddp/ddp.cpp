// Data-parallel training: every worker trains the dense model, and the
// gradients are averaged over the world at each step. The baseline for all
// other methods.
#include "compress/gradient_exchange.h"
#include "methods/method_kind.h"

namespace abtrain::methods {

namespace {

class DataParallel : public Method {
 public:
  explicit DataParallel(const MethodContext& context) : Method(context, context.reducer) {}

  void start() override {
    make_dense_block();
    reduction_.bind(trained_, context_.world);
  }

  void archive(state::Archive& archive) override {
    if (archive.is_loading()) {
      make_dense_block();
    }
    trained_.archive(archive, "block.", state::Owner::Replicas);
    if (archive.is_loading()) {
      reduction_.bind(trained_, context_.world);
    }
    reduction_.archive(archive, "reducer.");
  }

  void regroup(std::vector<state::State>& old, std::int64_t) override {
    make_dense_block();
    auto loading = state::Archive::loading(old.front());
    trained_.archive(loading, "block.", state::Owner::Replicas);
    reduction_.bind(trained_, context_.world);  // no residuals: they belonged to other workers
  }

  Stage now() override {
    return {
        .replicas = &context_.world,
        .gradient_group = &context_.world,
        .sends_early = context_.world.size() > 1};
  }

 protected:
  std::vector<at::Tensor> replicated_state() override {
    return {trained_.values(), trained_.moments()};
  }
};

Timeline ddp_events(const MethodOptions&, const RunLength& run) {
  return {{{Phase::Full, Over::World, run.steps}}};
}

TrafficPlan traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside) {
  const compress::Member world{setup.workers, rank};
  const compress::ExchangePlan gradients(setup.reducer, sizes.dense, world);
  return {
      .full_step = gradients.usual_bytes(),
      .total = gradients.bytes_between(0, run.steps) +
               (beside ? beside(0, run.steps, sizes.parameters, world) : 0) +
               world.all_reduce(sizes.buffers, 4).bytes};
}

std::vector<TrafficRow> ddp_rows(const Timeline&) {
  return {{"dense step", "dense_step", &TrafficPlan::full_step}};
}

}  // namespace

const MethodKind kDdp = {
    .name = "ddp",
    .make = make<DataParallel>,
    .timeline = ddp_events,
    .traffic = traffic,
    .traffic_rows = ddp_rows,
    .changes_weights = false};

}  // namespace abtrain::methods
