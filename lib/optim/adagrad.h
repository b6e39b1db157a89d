// QCMD and QRDA Adagrad (Xu et al., arXiv 2208.05631; the steps are those of
// Duchi et al. 2011). ops/adagrad.h has the formulas. The gradient is whatever
// the reducer has made of the workers' gradients.
#pragma once

#include <memory>

#include "optim/optimizer.h"

namespace abtrain::optim {

// The l1 term applies to the weights. Parameters that do not decay (biases,
// norms) have none, unless `decay_all` is set. These optimizers have no weight
// decay.
std::unique_ptr<Optimizer> make_adagrad(const OptimizerOptions& options);

}  // namespace abtrain::optim
