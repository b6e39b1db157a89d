// Workers that are threads of this process, over the chosen back end.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "comm/communicator.h"
#include "train/back_end.h"

namespace abtrain::train {

// Local: all workers on `device_of(0)`. Nccl: worker r on device_of(r), one GPU
// each. Errors: as comm::run_workers().
void run_local_workers(
    BackEnd back_end,
    int workers,
    double timeout_seconds,
    const std::function<at::Device(int worker)>& device_of,
    const std::function<void(comm::Communicator&, at::Device)>& body);

}  // namespace abtrain::train
