"""PyTorch's PowerSGD hook, without error feedback, on given gradients.

powersgd.py FOLDER WORKERS STEPS RANK SHAPE... (64x30) reads gradient_W_T.f32
(all tensors of worker W in step T, one after another) and q.f32 (the first Q,
transposed, of all matrices), and writes estimate_T.f32 as worker 0 gets it.
"""

import logging
import multiprocessing
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd


class Bucket:
    """What the hook asks of DistributedDataParallel's bucket."""

    def __init__(self, flat, shapes):
        self.flat, self.shapes = flat, shapes

    def buffer(self):
        return self.flat

    def gradients(self):
        sizes = [torch.Size(shape).numel() for shape in self.shapes]
        return [part.view(shape) for part, shape in zip(self.flat.split(sizes), self.shapes)]

    def index(self):
        return 0

    def is_last(self):
        return True


def read(path):
    with open(path, "rb") as file:
        return torch.frombuffer(bytearray(file.read()), dtype=torch.float32)


def work(worker, folder, workers, steps, rank, shapes):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=worker, world_size=workers)
    state = powersgd.PowerSGDState(
        process_group=None, matrix_approximation_rank=rank, start_powerSGD_iter=2,
        use_error_feedback=False, warm_start=True)
    state.iter = state.start_powerSGD_iter
    # Q as it would be kept from the step before.
    matrices = [(shape[0], torch.Size(shape[1:]).numel()) for shape in shapes if len(shape) > 1]
    parts = read(f"{folder}/q.f32").split([rank * m for _, m in matrices])
    state.q_memory_dict[0] = torch.cat(
        [part.view(rank, m).t().reshape(-1) for part, (_, m) in zip(parts, matrices)])
    state.p_memory_dict[0] = torch.zeros(sum(rank * n for n, _ in matrices))
    for step in range(steps):
        flat = read(f"{folder}/gradient_{worker}_{step}.f32")
        result = powersgd.powerSGD_hook(state, Bucket(flat, shapes)).wait()
        if worker == 0:
            with open(f"{folder}/estimate_{step}.f32", "wb") as file:
                file.write(result.numpy().tobytes())
    dist.barrier()
    dist.destroy_process_group()


def main():
    folder, workers, steps, rank = sys.argv[1], *map(int, sys.argv[2:5])
    shapes = [tuple(map(int, shape.split("x"))) for shape in sys.argv[5:]]
    logging.disable(logging.INFO)
    context = multiprocessing.get_context("fork")
    team = [context.Process(target=work, args=(w, folder, workers, steps, rank, shapes))
            for w in range(workers)]
    for process in team:
        process.start()
    for process in team:
        process.join()
    sys.exit(max(abs(process.exitcode) for process in team))


main()
