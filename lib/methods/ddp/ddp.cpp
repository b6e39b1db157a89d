#include "methods/ddp/ddp.h"

#include "methods/average.h"

namespace abtrain::methods {

DataParallel::DataParallel(const MethodContext& context)
    : context_(context),
      reduction_(context.reducer, context.seed, context.observer) {}

void DataParallel::make_block() {
  block_ = optim::ParameterBlock(
      dense_parameters(context_.model), true, context_.optimizer.moments());
}

void DataParallel::start() {
  make_block();
  reduction_.bind(block_, context_.world);
  moved();
}

void DataParallel::finish(std::int64_t) {
  average_buffers(context_.model, context_.world, comm::Purpose::Sync);
}

void DataParallel::merge_into(nn::Model& target) {
  share_dense(
      context_.model,
      averaged_buffers(context_.model, context_.world, comm::Purpose::Metrics),
      target);
}

void DataParallel::archive(state::Archive& archive) {
  if (archive.is_loading()) {
    make_block();
  }
  block_.archive(archive, "block.", state::Share::Replicas);
  if (archive.is_loading()) {
    reduction_.bind(block_, context_.world);
    moved();
  }
  reduction_.archive(archive, "reducer.");
}

void DataParallel::regroup(std::vector<state::State>& old, std::int64_t) {
  make_block();
  auto archive = state::Archive::loading(old.front());
  block_.archive(archive, "block.", state::Share::Replicas);
  reduction_.bind(block_, context_.world);
  moved();
}

std::vector<at::Tensor> DataParallel::replicated_state() {
  return {block_.values(), block_.moments()};
}

}  // namespace abtrain::methods
