#!/usr/bin/env python3
"""The rival of bench/network.py: PyTorch's DistributedDataParallel over Gloo.

One process a host, started by bench/network.py inside its namespace. Trains
fashion_mnist_mlp.yaml's network (batch a worker, AdamW, clipped gradients) on
random images and prints, from rank 0, one JSON object: seconds a step and the
bytes that the hosts' links counted in the timed steps.
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


def mlp(hidden):
    widths = [784, *hidden]
    layers = [nn.Flatten()]
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 10))


def sent(link):
    """Bytes and packets that left through the link so far."""
    values = []
    for what in ("bytes", "packets"):
        with open(COUNTERS.format(link, what)) as file:
            values.append(int(file.read()))
    return torch.tensor(values, dtype=torch.int64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--address", required=True, help="of rank 0")
    parser.add_argument("--link", default="eth0")
    parser.add_argument("--hook", choices=["none", *HOOKS], default="none")
    parser.add_argument("--hidden", type=int, nargs="+", default=[1024] * 3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    os.environ["GLOO_SOCKET_IFNAME"] = arguments.link
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://{arguments.address}:29500",
        rank=arguments.rank, world_size=arguments.world)
    torch.manual_seed(arguments.seed)
    bare = mlp(arguments.hidden)
    model = nn.parallel.DistributedDataParallel(bare)
    if arguments.hook != "none":
        model.register_comm_hook(None, HOOKS[arguments.hook])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                                  weight_decay=0.05)
    torch.manual_seed(arguments.seed * 1000 + arguments.rank)
    images = torch.randn(arguments.batch, 1, 28, 28)
    labels = torch.randint(10, (arguments.batch,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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
    # Until the others are done this host may still be sending for them.
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
            "median_step": statistics.median(times),
            "formula_bytes": share * numbers * width * arguments.steps,
            "link_bytes": [int(h[0]) for h in hosts],
            "link_packets": [int(h[1]) for h in hosts]}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
