"""torch.optim.Muon, for parity.py and test_muon.cpp.

    muon.py FOLDER STEPS SHAPE... (30x12 16x3x3x3) steps the matrices of
    before.f32, which lie one after the other, with gradient_T.f32 and the
    settings of case.json, and writes after.f32
"""
import json
import math
import pathlib
import sys

import numpy
import torch

# PyTorch orthogonalizes in bfloat16. All else of it is used as it is, but in
# the type of the parameters. The first is for versions before 2.15.
torch.Tensor.bfloat16 = torch.Tensor.clone
plain_to = torch.Tensor.to
torch.Tensor.to = lambda self, *arguments, **named: (
    self.clone() if named.get("dtype") == torch.bfloat16 else plain_to(self, *arguments, **named))


class Muon:
    """torch.optim.Muon on matrices and on convolutions, as matrices of their
    outputs; AdamW on all others."""

    def __init__(self, case, groups):
        self.pairs, matrices, others = [], [], []
        for group in groups:
            [tensor] = group["params"]
            if tensor.dim() in (2, 4):
                matrix = tensor.detach().view(len(tensor), -1)  # same memory
                self.pairs.append((tensor, matrix))
                matrices.append({**group, "params": [matrix]})
            else:
                others.append({**group, "lr": case["other_lr"]})
        self.optimizers = [torch.optim.Muon(
            matrices, momentum=case["momentum"], nesterov=case["nesterov"],
            adjust_lr_fn=case["adjust_lr_fn"])]
        if others:
            self.optimizers.append(torch.optim.AdamW(others, eps=case["eps"]))

    def zero_grad(self):
        for tensor, _ in self.pairs:
            tensor.grad = None
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for tensor, matrix in self.pairs:
            matrix.grad = tensor.grad.reshape(matrix.shape)
        for optimizer in self.optimizers:
            optimizer.step()


def main():
    torch.set_num_threads(1)
    folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    shapes = [[int(n) for n in text.split("x")] for text in sys.argv[3:]]
    case = json.loads((folder / "case.json").read_text())

    def tensors(name):
        flat = torch.from_numpy(numpy.fromfile(folder / name, numpy.float32))
        parts = flat.split([math.prod(shape) for shape in shapes])
        return [part.reshape(shape) for part, shape in zip(parts, shapes)]

    values = tensors("before.f32")
    optimizer = Muon(case, [
        {"params": [value], "lr": case["lr"],
         "weight_decay": case["weight_decay"]} for value in values])
    for step in range(steps):
        for value, gradient in zip(values, tensors(f"gradient_{step}.f32")):
            value.grad = gradient
        optimizer.step()
    torch.cat([v.flatten() for v in values]).numpy().tofile(
        folder / "after.f32")


if __name__ == "__main__":
    main()
