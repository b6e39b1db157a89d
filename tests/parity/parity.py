"""Trains as test_parity.cpp did, with torch.nn and torch.optim, and compares.

    parity.py FOLDER    exit code 0 where every tensor agrees

A factored weight is rebuilt as the dense product W = A B in every step, so that
the way in which abtrain applies its factors is checked against plain autograd.
"""
import json
import pathlib
import struct
import sys

import numpy
import torch
from torch.nn import functional as F

import muon

PLAN = [1, 1, 0, 2, 2, 0, 4, 4, 4, 0, 8, 8, 8, 0, 8, 8, 8, 0]  # 0: pooling


def load(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    meta = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + o for o in entry["data_offsets"])
        array = numpy.frombuffer(data[begin:end], numpy.float32)
        tensors[name] = torch.from_numpy(array.copy()).reshape(entry["shape"])
    shapes = {key[6:]: [int(x) for x in value.split(",")]
              for key, value in meta.items() if key.startswith("shape:")}
    return tensors, shapes


class Model:
    def __init__(self, kind, tensors, shapes):
        self.kind, self.tensors, self.shapes = kind, tensors, shapes

    def weight(self, layer):
        name = layer + ".weight"
        if name in self.tensors:
            return self.tensors[name]
        shape = self.shapes[name]
        w = self.tensors[name + ".A"] @ self.tensors[name + ".B"]
        return (w if w.shape[0] == shape[0] else w.T).reshape(shape)

    def linear(self, x, layer):
        return F.linear(x, self.weight(layer), self.tensors[layer + ".bias"])

    def forward(self, x):
        return getattr(self, self.kind.replace("-", "_"))(x)

    def mlp(self, x):
        x = F.relu(self.linear(x.flatten(1), "fc1"))
        return self.linear(F.relu(self.linear(x, "fc2")), "fc3")

    def lenet5(self, x):
        for layer, padding in (("conv1", 2), ("conv2", 0)):
            x = F.conv2d(x, self.weight(layer),
                         self.tensors[layer + ".bias"], padding=padding)
            x = F.max_pool2d(F.relu(x), 2)
        x = F.relu(self.linear(x.flatten(1), "fc1"))
        return self.linear(F.relu(self.linear(x, "fc2")), "fc3")

    def cnn(self, x):
        for layer in ("conv1", "conv2"):
            x = F.conv2d(x, self.weight(layer),
                         self.tensors[layer + ".bias"], padding=1)
            x = F.max_pool2d(F.relu(x), 2)
        return self.mlp(x)

    def vgg16_small(self, x):
        place = 0
        for step in PLAN:
            if step == 0:
                x = F.max_pool2d(x, 2)
                place += 1
                continue
            x = F.conv2d(x, self.weight(f"features.{place}"), padding=1)
            norm = f"features.{place + 1}."
            t = self.tensors
            x = F.batch_norm(x, t[norm + "running_mean"],
                             t[norm + "running_var"], t[norm + "weight"],
                             t[norm + "bias"], training=True)
            x = F.relu(x)
            place += 3
        return self.linear(x.flatten(1), "classifier")


def groups_of(case, tensors):
    """Parameter groups: decay on weights only, a larger rate for factors."""
    groups = []
    for name, tensor in tensors.items():
        if "running_" in name:
            continue
        factor = name.endswith((".A", ".B"))
        if factor and not name.endswith("." + case["trains"]):
            continue
        tensor.requires_grad_()
        decays = name.split(".weight")[0] != name and tensor.dim() > 1
        groups.append({
            "params": [tensor],
            "lr": case["lr"] * (case["factor_scale"] if factor else 1),
            "weight_decay": case["weight_decay"] if decays else 0.0})
    return groups


def optimizer_of(case, groups):
    if case["optimizer"] == "adamw":
        return torch.optim.AdamW(groups, eps=case["eps"])
    if case["optimizer"] == "muon":
        return muon.Muon(case, groups)
    if case["optimizer"] == "qcmd-adagrad":
        return torch.optim.Adagrad([{**g, "weight_decay": 0} for g in groups], eps=case["eps"])
    return torch.optim.SGD(groups, lr=case["lr"], momentum=case["momentum"],
                           nesterov=case["nesterov"])


def train(folder, case, dtype):
    """Tensors before and after, and the losses, with torch in `dtype`."""
    images = torch.from_numpy(numpy.fromfile(
        folder / "images", numpy.float32)).reshape(case["batches"]).to(dtype)
    labels = torch.from_numpy(numpy.fromfile(
        folder / "labels", numpy.int64)).reshape(case["batches"][:2])
    tensors, shapes = load(folder / "before")
    tensors = {name: t.to(dtype) for name, t in tensors.items()}
    start = {name: t.clone() for name, t in tensors.items()}
    model = Model(case["model"], tensors, shapes)
    groups = groups_of(case, tensors)
    optimizer = optimizer_of(case, groups)
    parameters = [p for group in groups for p in group["params"]]
    losses = []
    for x, y in zip(images, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model.forward(x), y,
                               label_smoothing=case["label_smoothing"])
        loss.backward()
        if case["clip_norm"] > 0:
            torch.nn.utils.clip_grad_norm_(parameters, case["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    expected = len(parameters) + sum("running_" in name for name in tensors)
    return start, {k: t.detach() for k, t in tensors.items()}, losses, expected


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    case = json.loads((folder / "case.json").read_text())
    start, exact, losses, expected = train(folder, case, torch.float64)
    _, single, single_losses, _ = train(folder, case, torch.float32)
    ours, _ = load(folder / "after")
    if ours.keys() != exact.keys():
        sys.exit(f"other tensors: {ours.keys() ^ exact.keys()}")
    # Within 5e-3 of the way that a tensor went: a ReLU whose input rounds to
    # the other side of zero costs up to half of that.
    for here, there, rounded in zip(case["losses"], losses, single_losses):
        if abs(here - there) > 1e-5 * there + 4 * abs(rounded - there):
            sys.exit(f"loss {here}, PyTorch {there} (float32: {rounded})")
    moved = 0
    for name, tensor in exact.items():
        way = (tensor - start[name]).norm()
        moved += bool(way > 0)
        difference = (ours[name] - tensor).norm()
        rounding = (single[name] - tensor).norm()
        if difference > 5e-3 * way + 4 * rounding:
            sys.exit(f"{name}: {difference:.3g} apart after a way of {way:.3g}"
                     f" (PyTorch's float32: {rounding:.3g})")
    if moved != expected:
        sys.exit(f"{moved} tensors moved, not {expected}")
    print(f"{len(exact)} tensors agree")


if __name__ == "__main__":
    main()
