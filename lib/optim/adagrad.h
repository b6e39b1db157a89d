// QCMD and QRDA Adagrad (Xu et al., arXiv 2208.05631; the steps are those of Duchi
// et al. 2011): ops/adagrad.h has the formulas. Their gradient is whatever the
// reducer has made of the workers' ones.
#pragma once

#include <memory>

#include "optim/optimizer.h"

namespace abtrain::optim {

// Weights have the l1 term; what does not decay (biases, norms) has none, unless
// `decay_all`. Weight decay is not theirs.
std::unique_ptr<Optimizer> make_adagrad(const OptimizerOptions& options);

}  // namespace abtrain::optim
