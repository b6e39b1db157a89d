#include "methods/ddp/ddp.h"

#include "compress/gradient_exchange.h"
#include "methods/method_kind.h"

namespace abtrain::methods {

Stage DataParallel::now() {
  return {
      .replicas = &context_.world,
      .gradient_group = &context_.world,
      .gradient_weight = world_weight(),
      .sends_early = context_.world.size() > 1};
}

void DataParallel::start() {
  make_dense_block();
  reduction_.bind(trained_, context_.world);
}

void DataParallel::archive(state::Archive& archive) {
  if (archive.is_loading()) {
    make_dense_block();
  }
  trained_.archive(archive, "block.", state::Owner::Replicas);
  if (archive.is_loading()) {
    reduction_.bind(trained_, context_.world);
  }
  reduction_.archive(archive, "reducer.");
}

void DataParallel::regroup(std::vector<state::State>& old, std::int64_t) {
  auto loading = state::Archive::loading(old.front());
  archive(loading);
  reduction_.bind(trained_, context_.world);  // the residuals belonged to other workers
}

std::vector<at::Tensor> DataParallel::replicated_state() {
  return {trained_.values(), trained_.moments()};
}

namespace {

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
