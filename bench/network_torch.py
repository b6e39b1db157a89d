#!/usr/bin/env python3
"""Trains with PyTorch's DistributedDataParallel over Gloo, for comparison.

There is one process per worker, started by bench/network.py inside its hosts'
namespaces or by bench/ddp_vs_torch.py locally (--link lo). It trains a network of
the configurations (by default that of fashion_mnist_mlp.yaml, with AdamW and
clipped gradients) on random images. Rank 0 prints one JSON object: seconds per
step and the bytes that the hosts' links counted in the timed steps.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

HOOKS = {"fp16": default_hooks.fp16_compress_hook,
         "bf16": default_hooks.bf16_compress_hook}
COUNTERS = "/sys/class/net/{}/statistics/tx_{}"


def mlp(hidden, inputs=784):
    widths = [inputs, *hidden]
    layers = [nn.Flatten()]
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 10))


def cnn(channels, hidden):
    """abtrain's model `cnn` for images of 28x28."""
    layers, before, side = [], 1, 28
    for after in channels:
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(),
                   nn.MaxPool2d(2)]
        before, side = after, side // 2
    return nn.Sequential(*layers, mlp(hidden, before * side * side))


def vgg16_small(width):
    """abtrain's vgg16-small for CIFAR-10."""
    layers, before = [], 3
    for stage, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        after = max(1, round(stage * width))
        for _ in range(count):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False),
                       nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
            before = after
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before, 10))


def make_model(arguments):
    """Returns the network and the shape of its images."""
    if arguments.model == "mlp":
        return mlp(arguments.hidden), (1, 28, 28)
    if arguments.model == "cnn":
        return cnn(arguments.channels, arguments.hidden), (1, 28, 28)
    return vgg16_small(arguments.width), (3, 32, 32)


def sent(link):
    """Bytes and packets that the link has sent so far."""
    values = []
    for what in ("bytes", "packets"):
        with open(COUNTERS.format(link, what)) as file:
            values.append(int(file.read()))
    return torch.tensor(values, dtype=torch.int64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--address", required=True, help="address of rank 0")
    parser.add_argument("--link", default="eth0")
    parser.add_argument("--hook", choices=["none", *HOOKS], default="none")
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--model", choices=["mlp", "cnn", "vgg16-small"],
                        default="mlp")
    parser.add_argument("--channels", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--width", type=float, default=1)
    parser.add_argument("--optimizer", choices=["adamw", "sgd"],
                        default="adamw")
    parser.add_argument("--clip", type=float, default=1.0, help="gradient norm; 0: no clipping")
    parser.add_argument("--hidden", type=int, nargs="+", default=[1024] * 3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    os.environ["GLOO_SOCKET_IFNAME"] = arguments.link
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://{arguments.address}:{arguments.port}",
        rank=arguments.rank, world_size=arguments.world)
    torch.manual_seed(arguments.seed)
    bare, shape = make_model(arguments)
    # Convolutions are faster in this layout, and abtrain uses it too.
    bare = bare.to(memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(bare)
    if arguments.hook != "none":
        model.register_comm_hook(None, HOOKS[arguments.hook])
    if arguments.optimizer == "adamw":
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                                      weight_decay=0.05, fused=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9,
                                    fused=True)
    torch.manual_seed(arguments.seed * 1000 + arguments.rank)
    images = torch.randn(arguments.batch, *shape).contiguous(
        memory_format=torch.channels_last)
    labels = torch.randint(10, (arguments.batch,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        if arguments.clip > 0:
            nn.utils.clip_grad_norm_(model.parameters(), arguments.clip)
        optimizer.step()
        return loss.item()

    for _ in range(arguments.warmup):
        step()
    dist.barrier()
    before, times, start = sent(arguments.link), [], time.perf_counter()
    for _ in range(arguments.steps):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    total = time.perf_counter() - start
    # This host may still be sending until the others are done.
    dist.barrier()
    moved = sent(arguments.link) - before
    hosts = [torch.empty_like(moved) for _ in range(arguments.world)]
    dist.all_gather(hosts, moved)
    if arguments.rank == 0:
        numbers = sum(p.numel() for p in bare.parameters())
        width = 4 if arguments.hook == "none" else 2
        share = 2 * (arguments.world - 1) / arguments.world
        print(json.dumps({
            "steps": arguments.steps, "seconds": total,
            "median_step": statistics.median(times), "parameters": numbers,
            "formula_bytes": share * numbers * width * arguments.steps,
            "link_bytes": [int(h[0]) for h in hosts],
            "link_packets": [int(h[1]) for h in hosts]}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
