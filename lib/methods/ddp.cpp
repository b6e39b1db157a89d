#include "methods/ddp.h"

#include "methods/average.h"

namespace abtrain::methods {

DataParallel::DataParallel(const MethodContext& context)
    : context_(context), reducer_(compress::make_reducer(context.reducer)) {}

void DataParallel::start() {
  block_ = optim::ParameterBlock(
      dense_parameters(context_.model), true, context_.optimizer.moments());
  moved();
}

void DataParallel::reduce_gradients(std::int64_t) {
  reducer_->reduce(
      block_.gradients(), context_.world, comm::Purpose::Gradient);
}

void DataParallel::finish(std::int64_t) {
  average_buffers(context_.model, context_.world, comm::Purpose::Sync);
}

void DataParallel::merge_into(nn::Model& target) {
  share_dense(
      context_.model,
      averaged_buffers(
          context_.model, context_.world, comm::Purpose::Metrics),
      target);
}

void DataParallel::archive(state::Archive& archive) {
  if (archive.is_loading()) {
    start();
  }
  block_.archive(archive, "block.", state::Share::Replicas);
  reducer_->archive(archive, "reducer.");
}

void DataParallel::regroup(std::vector<state::State>& old, std::int64_t) {
  start();
  auto archive = state::Archive::loading(old.front());
  block_.archive(archive, "block.", state::Share::Replicas);
}

std::vector<at::Tensor> DataParallel::replicated_state() {
  return {block_.values(), block_.moments()};
}

}  // namespace abtrain::methods
