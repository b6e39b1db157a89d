#!/usr/bin/env python3
"""Compares AB-training with data parallel training on the real Fashion-MNIST: the
quickstart's configuration, the frugal one, and ddp with the same steps, in turn.

    bench/fashion_mnist.py [--program build/release/abtrain] [--seeds 1 2 3]

Prints each run, then the mean accuracy and the median time over the seeds.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
RUNS = {
    "ab": ("fashion_mnist_mlp.yaml", []),
    "ddp": ("fashion_mnist_mlp.yaml", ["--set", "method.name=ddp"]),
    "frugal": ("fashion_mnist_mlp_frugal.yaml", []),
}


def train(program, kind, seed, folder):
    config, more = RUNS[kind]
    name = f"{kind}_{seed}"
    subprocess.run(
        [program, "--config", str(CONFIGS / config), "--output", folder,
         "--name", name, "--set", f"seed={seed}", *more],
        check=True, capture_output=True)
    return json.loads(
        pathlib.Path(folder, name, "summary.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/abtrain")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments = parser.parse_args()
    results = {kind: [] for kind in RUNS}
    row = "{:8}{:>6}{:>11}{:>13}{:>10}{:>10}"
    print(row.format("run", "seed", "accuracy", "compression", "traffic",
                     "training"))
    with tempfile.TemporaryDirectory() as folder:
        for seed in arguments.seeds:
            for kind in RUNS:
                s = train(arguments.program, kind, seed, folder)
                results[kind].append(s)
                print(row.format(
                    kind, seed, f"{100 * s['accuracy']:.2f} %",
                    f"{s['compression_ratio']:.2f}:1",
                    f"{100 * s['traffic']['vs_fp32']:.2f} %",
                    f"{s['seconds']['train']:.1f} s"), flush=True)
    for kind, runs in results.items():
        accuracy = statistics.mean(s["accuracy"] for s in runs)
        seconds = statistics.median(s["seconds"]["train"] for s in runs)
        print(f"{kind:8} mean accuracy {100 * accuracy:.2f} %, "
              f"median training {seconds:.1f} s")
        results[kind] = accuracy, seconds
    gap = 100 * (results["ddp"][0] - results["ab"][0])
    share = results["ab"][1] / results["ddp"][1]
    print(f"ab against ddp: {gap:.2f} points below, {share:.2f} of its time")


if __name__ == "__main__":
    main()
