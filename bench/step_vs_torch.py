#!/usr/bin/env python3
"""A training step of vgg16-small, batch 128, CIFAR-10 shapes: abtrain's dense
step and its AB step beside PyTorch eager, turn by turn in one run.

    bench/step_vs_torch.py [--program build/release/bench/bench_step]
                           [--threads 2] [--rounds 5] [--width 1]

Medians over the rounds of each round's median step. PyTorch trains the same
model, loss and optimizer (AdamW, the faster of fused and foreach) in both
memory layouts; the faster one counts. abtrain's steps run its whole loop, the
loader included; PyTorch's take a ready batch. Needs a Python with torch.
"""
import argparse
import statistics
import subprocess
import time

import torch
from torch import nn

PLAN = [64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M",
        512, 512, 512, "M"]


def vgg16_small(width):
    layers, channels = [], 3
    for entry in PLAN:
        if entry == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        out = max(1, round(entry * width))
        layers += [nn.Conv2d(channels, out, 3, padding=1, bias=False),
                   nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
        channels = out
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 10))


class TorchSteps:
    def __init__(self, width, batch, layout, fused):
        self.model = vgg16_small(width).to(memory_format=layout)
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


def program(arguments, mode, workers, threads):
    row = subprocess.run(
        [arguments.program, mode, str(workers), str(threads),
         str(arguments.width), str(arguments.batch), str(arguments.steps)],
        check=True, capture_output=True, text=True).stdout
    return float(row.split()[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/bench/bench_step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--width", type=float, default=1)
    parser.add_argument("--batch", type=int, default=128)
    arguments = parser.parse_args()
    threads = arguments.threads
    torch.set_num_threads(threads)

    rivals = {}
    for layout, name in ((torch.contiguous_format, "NCHW"),
                         (torch.channels_last, "channels-last")):
        for fused in (True, False):
            steps = TorchSteps(arguments.width, arguments.batch, layout, fused)
            label = f"torch {name} {'fused' if fused else 'foreach'}"
            rivals[label] = (steps, steps.median(2))
    best = min(rivals, key=lambda name: rivals[name][1])
    rival = rivals[best][0]

    ours = {
        f"dense, 1 worker x {threads}": ("dense", 1, threads),
        f"AB only-b, 1 worker x {threads}": ("only-b", 1, threads),
        "dense, 2 workers x 1": ("dense", 2, 1),
        "AB roles A and B, 2 workers x 1": ("ab", 2, 1),
    }
    times = {name: [] for name in [best, *ours]}
    for _ in range(arguments.rounds):
        times[best].append(rival.median(arguments.steps))
        for name, (mode, workers, each) in ours.items():
            times[name].append(program(arguments, mode, workers, each))
    medians = {name: statistics.median(t) for name, t in times.items()}
    for name, value in medians.items():
        low, high = min(times[name]), max(times[name])
        print(f"{name:34} {value:9.1f} ms  ({low:.1f} to {high:.1f})")
    one, ab_one, two, ab_two = [medians[name] for name in ours]
    print(f"dense / torch          {one / medians[best]:.3f}")
    print(f"only-b / dense         {ab_one / one:.3f}  (1/{one / ab_one:.2f})")
    print(f"AB pair / dense pair   {ab_two / two:.3f}  (1/{two / ab_two:.2f})")


if __name__ == "__main__":
    main()
