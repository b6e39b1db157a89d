#!/usr/bin/env python3
"""Compares a training step on CIFAR-10 shapes: abtrain's dense step and its AB step
with PyTorch eager, which take turns.

    bench/step_vs_torch.py [MODEL ...] [--program build/release/bench/bench_step]
                           [--threads 2] [--rounds 5] [--batch N] [--ratio 10]
    bench/step_vs_torch.py --device cuda [MODEL ...] [--batch 256] [--ratio 10]

The models are vgg16 (torchvision's, 134 million parameters), vgg16-small, resnet18 (CIFAR
stem) and vit-tiny (patches of 4); by default the last three. For other models
(mlp, lenet5, resnet50, ...) only abtrain's dense and AB steps are compared.
Figures are medians over the rounds of each round's median step. PyTorch trains
torchvision's or timm's model with the same loss and optimizer, and its fastest
variant counts. abtrain's steps run its whole loop with the loader; PyTorch's take
a ready batch. Needs a Python with torch, torchvision and timm.

On the CPU both run in the same precision, PyTorch eager and compiled
(torch.compile), in both memory layouts, with fused AdamW. With --device cuda both
run in bf16: PyTorch under autocast, channels-last, with fused AdamW, its batch ready
on the GPU, eager with and without cudnn.benchmark, and compiled; abtrain with and
without graphs. Both clip gradients to norm 1. There the models may include gpt-small
(GPT-2's 124 million parameters, windows of 1024 tokens, the vocabulary
rounded up to 50304 as in nanoGPT), and --kernels N also prints
the kernels that take most of the time in abtrain's steps.
--forms chooses among what is compared there, and --json prints a line of JSON after each.
"""
import argparse
import contextlib
import json
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


def vgg16():
    # Not timm's, whose first linear layer is a convolution of 7 x 7.
    import torchvision
    return torchvision.models.vgg16(num_classes=10, dropout=0.0)


RIVALS = {"vgg16-small": vgg16_small, "resnet18": resnet18,
          "vit-tiny": vit_tiny, "vgg16": vgg16}
SMALL = ["vgg16-small", "resnet18", "vit-tiny"]


class TorchSteps:
    """PyTorch on the CPU: eager or compiled, in fp32 or under bf16's autocast."""

    def __init__(self, build, batch, layout, compiled, precision):
        self.model = build().to(memory_format=layout).train()
        self.forward = torch.compile(self.model) if compiled else self.model
        self.images = torch.randn(batch, 3, 32, 32).to(memory_format=layout)
        self.labels = torch.randint(10, (batch,))
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
        self.precision = contextlib.nullcontext
        if precision == "bf16":
            self.precision = lambda: torch.autocast("cpu", torch.bfloat16)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.precision():
            loss = nn.functional.cross_entropy(
                self.forward(self.images).float(), self.labels)
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


class GpuSteps:
    """PyTorch under autocast, channels-last, as it is on a GPU; on the CPU it is timed by
    the clock."""

    def __init__(self, model, arguments, form):
        self.device, self.benchmark = arguments.device, form != "eager"
        self.model, inputs, labels = gpu_rival(model, arguments)
        self.forward = torch.compile(self.model) if form == "compiled" else self.model
        self.inputs, self.labels = inputs.to(self.device), labels.to(self.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
        self.precision = contextlib.nullcontext
        if arguments.precision == "bf16":
            self.precision = lambda: torch.autocast(self.device, torch.bfloat16)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.precision():
            loss = nn.functional.cross_entropy(
                self.forward(self.inputs).flatten(0, -2), self.labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def mean(self, steps, warmup):
        """Milliseconds per step, timed over all steps without waiting in between."""
        torch.backends.cudnn.benchmark = self.benchmark
        for _ in range(warmup):
            self.step()
        if self.device == "cpu":
            start = time.perf_counter()
            for _ in range(steps):
                self.step()
            return (time.perf_counter() - start) * 1e3 / steps
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(steps):
            self.step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / steps


def gpu_rival(model, arguments):
    """(network on the device, its inputs, its labels)"""
    if model == "gpt-small":
        from text_vs_torch import Gpt
        window = torch.randint(50304, (arguments.batch, 1025))
        return (Gpt(768, 12, 50304, 1024, 12).to(arguments.device), window[:, :-1].contiguous(),
                window[:, 1:].contiguous())
    layout = torch.channels_last
    network = RIVALS[model]().to(arguments.device, memory_format=layout).train()
    images = torch.randn(arguments.batch, 3, 32, 32)
    return (network, images.contiguous(memory_format=layout),
            torch.randint(10, (arguments.batch,)))


def program_on_gpu(arguments, model, mode, graphs):
    command = [arguments.program, model, mode, "--graphs", graphs, "--precision",
               arguments.precision, "--device", arguments.device, "--threads",
               str(arguments.threads), "--batch", str(arguments.batch), "--ratio",
               str(arguments.ratio), "--steps", str(arguments.steps), "--clip", "1",
               "--kernels", str(arguments.kernels)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"exit code {done.returncode}: {' '.join(command)}")
    first, *kernels = done.stdout.splitlines()
    if kernels:
        print("\n".join(kernels), flush=True)
    return float(first.split()[4])


# Form: (mode, graphs) of bench_step.
OURS = {"dense": ("dense", False), "dense_graphs": ("dense", True),
        "ab": ("only-b", False), "ab_graphs": ("only-b", True)}
TORCH = ("torch_eager", "torch_benchmark", "torch_compiled")


def compare_on_gpu(model, arguments):
    print(f"{model}, batch {arguments.batch}, {arguments.precision}, ratio "
          f"{arguments.ratio:g}:1, {arguments.device}", flush=True)
    ms = {}
    for form in arguments.forms:
        if form in OURS:
            mode, graphs = OURS[form]
            graphs = "on" if graphs and arguments.device == "cuda" else "off"
            one = lambda: program_on_gpu(arguments, model, mode, graphs)
        elif model in RIVALS or model == "gpt-small":
            rival = GpuSteps(model, arguments, form.removeprefix("torch_"))
            one = lambda: rival.mean(arguments.steps, 20 if arguments.device == "cuda" else 1)
        else:
            continue
        values = [one() for _ in range(arguments.rounds)]
        ms[form] = statistics.median(values)
        print(f"  {form.replace('_', ', '):22} {ms[form]:9.3f} ms  ({min(values):.3f} to "
              f"{max(values):.3f})", flush=True)
        if arguments.json:
            print(json.dumps({"model": model, "form": form, "ms": ms[form], "low": min(values),
                              "high": max(values)}), flush=True)
    for label, over, under in (
            ("dense / torch, eager", "dense_graphs", "torch_eager"),
            ("dense / torch, benchmark", "dense_graphs", "torch_benchmark"),
            ("dense / torch, compiled", "dense_graphs", "torch_compiled"),
            ("AB / dense", "ab_graphs", "dense_graphs"),
            ("AB without / with graphs", "ab", "ab_graphs"),
            ("dense without / with", "dense", "dense_graphs")):
        if over in ms and under in ms:
            print(f"  {label:26} {ms[over] / ms[under]:.3f}")


def best_rival(model, arguments):
    rivals = {}
    for layout, name in ((torch.contiguous_format, "NCHW"),
                         (torch.channels_last, "channels-last")):
        for form in ("eager", "compiled"):
            steps = TorchSteps(RIVALS[model], arguments.batch, layout, form == "compiled",
                               arguments.precision)
            rivals[f"torch {name} {form}"] = (steps, steps.median(2))
    best = min(rivals, key=lambda name: rivals[name][1])
    return best, rivals[best][0]


def program(arguments, model, mode, workers, threads):
    row = subprocess.run(
        [arguments.program, model, mode, "--workers", str(workers),
         "--threads", str(threads), "--batch", str(arguments.batch),
         "--ratio", str(arguments.ratio), "--steps", str(arguments.steps),
         "--precision", arguments.precision],
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
    print(f"{model}, batch {arguments.batch}, {arguments.precision}, "
          f"ratio {arguments.ratio:g}:1")
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
    parser.add_argument("models", nargs="*", default=SMALL)
    parser.add_argument("--program", default="build/release/bench/bench_step")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, help="default: 5; with cuda 1")
    parser.add_argument("--steps", type=int, help="steps per round (default: 5; with cuda 50)")
    parser.add_argument("--batch", type=int, help="default: 128; with cuda 256, gpt-small 12")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16",
                        help="of both programs")
    parser.add_argument("--ratio", type=float, default=10)
    parser.add_argument("--pairs", action="store_true",
                        help="also compare two workers of one thread each")
    parser.add_argument("--gpu-form", action="store_true",
                        help="the comparison of --device cuda, also on the CPU")
    parser.add_argument("--kernels", type=int, default=0, metavar="N")
    parser.add_argument("--forms", nargs="+", choices=[*OURS, *TORCH], default=[*OURS, *TORCH])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    on_gpu = arguments.device == "cuda" or arguments.gpu_form
    for name, cpu, cuda in (("rounds", 5, 1), ("steps", 5, 50)):
        if getattr(arguments, name) is None:
            setattr(arguments, name, cuda if on_gpu else cpu)
    torch.set_num_threads(arguments.threads)
    batch = arguments.batch
    for model in arguments.models:
        usual = 128 if not on_gpu else 12 if model == "gpt-small" else 256
        arguments.batch = batch or usual
        if on_gpu:
            compare_on_gpu(model, arguments)
        else:
            compare(model, arguments)


if __name__ == "__main__":
    main()
