#include "train/survivor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/share.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;
constexpr auto kPurpose = comm::Purpose::Sync;

std::string broadcast_text(comm::Communicator& world, const std::string& text, int root) {
  const auto lengths = comm::gather_values(world, std::ssize(text));
  const at::Tensor bytes = at::empty({lengths[static_cast<std::size_t>(root)]}, at::kByte);
  if (world.rank() == root) {
    std::memcpy(bytes.data_ptr(), text.data(), text.size());
  }
  world.broadcast(bytes, root, kPurpose).wait();
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())};
}

// Broadcasts the state of `root`; on the other workers it replaces `state`.
void broadcast_state(comm::Communicator& world, state::State& state, int root) {
  const bool gives = world.rank() == root;
  ordered_json about = {{"own", ordered_json::array()}, {"replicas", ordered_json::array()}};
  const auto parts = {std::pair{"own", &state.own}, std::pair{"replicas", &state.replicas}};
  if (gives) {
    about["values"] = *state.values;
    for (const auto& [name, tensors] : parts) {
      for (const auto& [key, tensor] : *tensors) {
        about[name].push_back({key, tensor.sizes().vec()});
      }
    }
  }
  about = ordered_json::parse(broadcast_text(world, gives ? about.dump() : "", root));
  if (!gives) {
    *state.values = about["values"];
  }
  for (const auto& [name, tensors] : parts) {
    for (const auto& entry : about[name]) {
      at::Tensor& tensor = (*tensors)[entry[0].get<std::string>()];
      if (!gives) {
        tensor = at::empty(entry[1].get<std::vector<std::int64_t>>(), at::kFloat);
      }
      const at::Tensor flat = tensor.contiguous().view({-1});
      if (flat.numel() > 0) {
        world.broadcast(flat, root, kPurpose).wait();
      }
    }
  }
}

}  // namespace

void share_states(comm::Communicator& world, Inheritance& inheritance) {
  const at::NoGradGuard no_grad;
  const Survivor& own = inheritance.own;
  const std::vector<Standing> all = comm::gather_values(world, own.progress);
  const auto last = [](const Standing& one) { return std::pair(one.losses, one.agreed); };
  const Standing newest = std::ranges::max(all, {}, last);
  std::map<std::int64_t, int> best;  // contributing worker, by group
  for (int worker = 0; worker < world.size(); ++worker) {
    const Standing& one = all[static_cast<std::size_t>(worker)];
    if (last(one) != last(newest)) {
      continue;
    }
    const auto [place, is_first] = best.try_emplace(one.group, worker);
    if (!is_first && one.steps > all[static_cast<std::size_t>(place->second)].steps) {
      place->second = worker;
    }
  }
  inheritance.losses = newest.losses;
  inheritance.run_steps = newest.run_steps;
  inheritance.steps = 0;
  inheritance.states.clear();
  for (const auto& [group, worker] : best) {
    state::State state;
    if (worker == world.rank()) {
      state.own = own.state.own;
      state.replicas = own.state.replicas;
      *state.values = *own.state.values;
    }
    broadcast_state(world, state, worker);
    inheritance.states.push_back(std::move(state));
    inheritance.steps = std::max(inheritance.steps, all[static_cast<std::size_t>(worker)].steps);
  }
}

}  // namespace abtrain::train
