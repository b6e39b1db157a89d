"""`abtrain decompose` and `export` beside PyTorch, their files read by
abtrain.load_weights.

    weights.py decompose PROGRAM MODEL    weights of a torchvision model: random and
                                          with flat spectra; of a small trained
                                          network: ranks, errors and sizes beside
                                          torch.linalg.svd in float64
    weights.py export FOLDER MODEL        FOLDER/factored.safetensors and merged.safetensors
                                          load strictly and are the same model
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch
import torchvision
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from abtrain import load_weights

TOLERANCE = 1e-5


def matrix(tensor):
    return tensor.double().flatten(1)


def flat(tensor):
    """The same shape with equal singular values, some of them twice as large."""
    m = matrix(torch.randn_like(tensor))
    wide = m.shape[0] < m.shape[1]
    q = torch.linalg.qr(m.T if wide else m)[0]
    q[:, ::3] *= 2
    return (q.T if wide else q).reshape(tensor.shape).to(tensor.dtype)


def trained():
    """A small network after some hundred steps on data that it can learn."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 5, stride=2), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 48, 3), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(48 * 16, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10))
    means = torch.randn(10, 1, 16, 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    for _ in range(150):
        labels = torch.randint(10, (64,))
        images = means[labels] + torch.randn(64, 1, 16, 16)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return {k: v.detach().clone() for k, v in model.state_dict().items()}


def rank_by_energy(values, keep):
    tails = values.square().flip(0).cumsum(0).flip(0) / values.square().sum()
    return int((tails > (1 - keep) * (1 + 1e-9)).sum())


def compare(program, weights, rule, rank_of=None):
    """Returns the largest difference of an error from float64's."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = f"{folder}/in.safetensors", f"{folder}/out.safetensors"
        save_file({k: v.contiguous() for k, v in weights.items()}, before)
        report = json.loads(subprocess.run(
            [program, "decompose", before, "-o", after, "--format", "json",
             *rule], check=True, stdout=subprocess.PIPE).stdout)
        size = pathlib.Path(after).stat().st_size
        merged = load_weights(after)
    assert report["totals"]["file_after"] == size
    assert merged.keys() == weights.keys()
    largest, cut = 0, 0
    rows = {row["name"]: row for row in report["tensors"]}
    for name, w in weights.items():
        assert merged[name].shape == w.shape and merged[name].dtype == w.dtype
        row = rows.get(name)
        if row is None or row["rank"] == 0:
            assert torch.equal(merged[name], w), name
            continue
        cut += 1
        values = torch.linalg.svdvals(matrix(w))
        want = float(values[row["rank"]:].norm() / values.norm())
        really = float((merged[name].double() - w.double()).norm()
                       / w.double().norm())
        for got in (row["error"], row["truncation_error"], really,
                    math.sqrt(max(0, 1 - row["energy"]))):
            largest = max(largest, abs(got - want))
            assert abs(got - want) < TOLERANCE, (name, row, want, really)
        if rank_of:
            assert row["rank"] == rank_of(values), (name, row)
    assert cut > 0, report
    return largest, cut, size


def decompose(program, name):
    torch.manual_seed(1)
    model = getattr(torchvision.models, name)()
    random = model.state_dict()
    spectra = {
        "random": random,
        "flat": {k: flat(v) if v.dim() > 1 else v for k, v in random.items()},
        "trained": trained()}
    rules = {
        "energy": ["--rule", "energy", "--keep", "0.6"],
        "budget": ["--rule", "budget", "--ratio", "3"]}
    for kind, weights in spectra.items():
        for rule, arguments in rules.items():
            if kind == "random" and rule == "budget" and name == "resnet50":
                continue  # the long one; flat spectra are harder to share out
            rank_of = ((lambda s: rank_by_energy(s, 0.6))
                       if rule == "energy" and kind != "flat" else None)
            largest, cut, size = compare(program, weights, arguments, rank_of)
            print(f"{kind}, {rule}: {cut} cut, {size} bytes, "
                  f"errors within {largest:.1e}", flush=True)
    # What is read back goes into the model as it is.
    model.load_state_dict(spectra["random"], strict=True)


def export(folder, name):
    import zoo  # with timm, which the rest does not need

    folder = pathlib.Path(folder)
    images = torch.randn(2, 3, zoo.MODELS[name][1], zoo.MODELS[name][1])
    logits = []
    for weights in (load_weights(folder / "factored.safetensors"),
                    load_file(folder / "merged.safetensors")):
        model = zoo.MODELS[name][0]().eval()
        model.load_state_dict(weights, strict=True)
        with torch.no_grad():
            logits.append(model(images))
    difference = float((logits[0] - logits[1]).abs().max())
    assert difference < 1e-4 * float(logits[1].abs().max()), difference
    print("the same model")


if __name__ == "__main__":
    {"decompose": decompose, "export": export}[sys.argv[1]](*sys.argv[2:])
