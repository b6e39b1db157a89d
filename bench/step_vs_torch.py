#!/usr/bin/env python3
"""A training step on CIFAR-10 shapes: abtrain's dense step and its AB step beside
PyTorch eager, turn by turn in one run.

    bench/step_vs_torch.py [MODEL ...] [--program build/release/bench/bench_step]
                           [--threads 2] [--rounds 5] [--batch N] [--ratio 10]

Models: vgg16-small, resnet18 (CIFAR stem), vit-tiny (patches of 4); all three
unless named. Of others (mlp, lenet5, vgg16, resnet50, ...) only abtrain's dense
and AB steps are compared. Medians over the rounds of each round's median step.
PyTorch trains torchvision's or timm's model with the same loss and optimizer
(AdamW, the faster of fused and foreach) in both memory layouts; the fastest of
the four counts. abtrain's steps run its whole loop, the loader included;
PyTorch's take a ready batch. Needs a Python with torch, torchvision and timm.
"""
import argparse
import statistics
import subprocess
import time

import torch
from torch import nn


def vgg16_small():
    layers, channels = [], 3
    for entry in [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512,
                  "M", 512, 512, 512, "M"]:
        if entry == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, entry, 3, padding=1, bias=False),
                   nn.BatchNorm2d(entry), nn.ReLU(inplace=True)]
        channels = entry
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 10))


def resnet18():
    import torchvision
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def vit_tiny():
    import timm
    return timm.create_model("vit_tiny_patch16_224", img_size=32, patch_size=4,
                             num_classes=10)


RIVALS = {"vgg16-small": vgg16_small, "resnet18": resnet18,
          "vit-tiny": vit_tiny}


class TorchSteps:
    def __init__(self, build, batch, layout, fused):
        self.model = build().to(memory_format=layout).train()
        self.images = torch.randn(batch, 3, 32, 32).to(memory_format=layout)
        self.labels = torch.randint(10, (batch,))
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, weight_decay=0.01,
            fused=fused, foreach=not fused)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(
            self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def median(self, steps):
        self.step()
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds) * 1e3


def best_rival(model, arguments):
    rivals = {}
    for layout, name in ((torch.contiguous_format, "NCHW"),
                         (torch.channels_last, "channels-last")):
        for fused in (True, False):
            steps = TorchSteps(RIVALS[model], arguments.batch, layout, fused)
            label = f"torch {name} {'fused' if fused else 'foreach'}"
            rivals[label] = (steps, steps.median(2))
    best = min(rivals, key=lambda name: rivals[name][1])
    return best, rivals[best][0]


def program(arguments, model, mode, workers, threads):
    row = subprocess.run(
        [arguments.program, model, mode, "--workers", str(workers),
         "--threads", str(threads), "--batch", str(arguments.batch),
         "--ratio", str(arguments.ratio), "--steps", str(arguments.steps)],
        check=True, capture_output=True, text=True).stdout
    return float(row.split()[4])


def compare(model, arguments):
    threads = arguments.threads
    ours = {
        f"dense, 1 worker x {threads}": ("dense", 1, threads),
        f"AB only-b, 1 worker x {threads}": ("only-b", 1, threads),
    }
    if arguments.pairs:
        ours["dense, 2 workers x 1"] = ("dense", 2, 1)
        ours["AB roles A and B, 2 workers x 1"] = ("ab", 2, 1)
    times = {name: [] for name in ours}
    best = None
    if model in RIVALS:
        best, rival = best_rival(model, arguments)
        times = {best: [], **times}
    for _ in range(arguments.rounds):
        if best:
            times[best].append(rival.median(arguments.steps))
        for name, (mode, workers, each) in ours.items():
            times[name].append(program(arguments, model, mode, workers, each))
    medians = {name: statistics.median(t) for name, t in times.items()}
    print(f"{model}, batch {arguments.batch}, ratio {arguments.ratio:g}:1")
    for name, value in medians.items():
        low, high = min(times[name]), max(times[name])
        print(f"  {name:34} {value:9.1f} ms  ({low:.1f} to {high:.1f})")
    names = list(ours)
    if best:
        print(f"  dense / torch          {medians[names[0]] / medians[best]:.3f}")
    for kind, dense, ab in zip(("only-b / dense ", "AB pair / dense pair"),
                               names[::2], names[1::2]):
        print(f"  {kind:22} {medians[ab] / medians[dense]:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(RIVALS))
    parser.add_argument("--program", default="build/release/bench/bench_step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--ratio", type=float, default=10)
    parser.add_argument("--pairs", action="store_true",
                        help="also two workers of one thread each")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for model in arguments.models:
        compare(model, arguments)


if __name__ == "__main__":
    main()
