#include "base/options.h"
#include "optim/optim_options.h"
#include "optim/optimizer_kind.h"

namespace abtrain::optim {
namespace {

const Names<ScheduleName> kScheduleNames = {
    {"constant", ScheduleName::Constant},
    {"cosine", ScheduleName::Cosine},
    {"linear", ScheduleName::Linear},
    {"step", ScheduleName::Step}};

}  // namespace

std::string name_of(ScheduleName name) {
  return name_in(kScheduleNames, name);
}

Fields fields_of(OptimizerOptions& o) {
  Fields f;
  f.choice("name", o.name, optimizer_names(), "how the gradients change the parameters");
  f.number("lr", o.lr, above_to(0, kLargest), "learning rate after the warm-up");
  f.number(
       "weight_decay", o.weight_decay, between(0, kLargest),
       "each step shrinks a weight by this share times the learning rate (sgd: adds it to the "
       "gradient); two factors that are trained together get half of it each")
      .of({"sgd", "adamw", "muon"});
  f.flag("decay_all", o.decay_all, "apply weight decay to biases and norm layers too")
      .of({"sgd", "adamw", "muon"});
  f.number("beta1", o.beta1, from_to_below(0, 1), "decay rate of the first moment")
      .of({"adamw", "muon"});
  f.number("beta2", o.beta2, from_to_below(0, 1), "decay rate of the second moment")
      .of({"adamw", "muon"});
  f.number("eps", o.eps, above_to(0, kLargest), "added to the denominator").of({"adamw", "muon"});
  f.number("momentum", o.momentum, from_to_below(0, 1), "decay rate of the momentum")
      .of({"sgd", "muon"});
  f.auto_or_flag("nesterov", o.nesterov, "use Nesterov momentum; auto: only muon does")
      .of({"sgd", "muon"});
  f.choice<MuonScale>(
       "scale", o.scale, {{"match_rms", MuonScale::MatchRms}, {"spectral", MuonScale::Spectral}},
       "factor applied to a matrix's update, from its shape: "
       "0.2 sqrt(max(rows, columns)), or sqrt(max(1, rows / columns))")
      .of({"muon"});
  f.choice<MuonMatrices>(
       "matrices", o.matrices, {{"all", MuonMatrices::All}, {"factors", MuonMatrices::Factors}},
       "which matrices are orthogonalized; factors: only those of ab, so AdamW trains dense phases "
       "and dense layers")
      .of({"muon"});
  f.number(
       "other_lr", o.other_lr, above_to(0, kLargest),
       "learning rate of everything that AdamW trains: biases, norms and the matrices that "
       "optimizer.matrices leaves out; follows the schedule like lr")
      .of({"muon"});
  f.integer("ns_steps", o.ns_steps, between(1, 20), "Newton-Schulz steps; fewer are coarser")
      .of({"muon"});
  f.number("l1", o.l1, between(0, kLargest), "weight of the l1 norm of the weights")
      .of({"qcmd-adagrad", "qrda-adagrad"});
  f.number("delta", o.delta, above_to(0, kLargest), "added to the root of the sum of squares")
      .of({"qcmd-adagrad", "qrda-adagrad"});
  f.choice<Center>(
       "center", o.center, {{"init", Center::Init}, {"zero", Center::Zero}},
       "weights that the scaled gradient sum is subtracted from")
      .of({"qrda-adagrad"});
  return f;
}

Fields fields_of(ScheduleOptions& o) {
  Fields f;
  f.choice("name", o.name, kScheduleNames, "shape of the learning-rate schedule");
  f.duration(
      "warmup_steps", o.warmup_steps, between(0, kMaxSteps),
      "length of the linear warm-up of the learning rate");
  f.number(
      "warmup_from", o.warmup_from, between(0, kLargest),
      "learning rate of the first warm-up step");
  f.number("final_lr", o.final_lr, between(0, kLargest), "learning rate at the end of the run")
      .of({"cosine", "linear"});
  f.number(
       "step_factor", o.step_factor, above_to(0, kLargest),
       "factor applied to the learning rate at each milestone")
      .of({"step"});
  f.numbers("milestones", o.milestones, between(0, 1), "fractions of the run, ascending")
      .of({"step"});
  return f;
}

}  // namespace abtrain::optim
