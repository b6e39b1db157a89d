#!/usr/bin/env python3
"""Compares data parallel training over MPI with PyTorch's DDP over Gloo, and 16
bits per gradient with 32.

    bench/ddp_vs_torch.py [mlp cnn vgg16-small] [--rounds 5] [--steps 30]
    sudo bench/ddp_vs_torch.py --links 100mbit 1gbit [--rounds 3] [--steps 20]

The first form runs local processes, one per worker with one thread each, with the
same network, batch and optimizer in fp32; the two programs take turns. A step of
abtrain is its whole loop with the loader; PyTorch takes a ready batch, in
channels-last memory, with fused optimizers. Prints the median step of each, and
the median over the rounds of abtrain / PyTorch; fails if that is above --at-most.

The second form runs abtrain in fp32, fp16 and bf16, and PyTorch with and without
its fp16 hook, over hosts with slow links (bench/network.py; needs root). Fails if
16 bits take as long as 32, or longer, on a link that is the bottleneck, that is,
one which alone takes more than half of the fp32 step.

mlp is that of fashion_mnist_mlp.yaml, batch 64, AdamW, clipped; cnn is that of
compare/base.yaml, batch 16, SGD; vgg16-small is on CIFAR-10, batch 16, AdamW,
clipped, --width 0.25. Needs Open MPI, and the data sets where abtrain finds them.
--json FILE keeps all figures.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import netns
import network
import network_runs

ROOT = network.ROOT
COMMON = ["method.name=ddp", "reducer.dtype=fp32", "evaluate.every=0",
          "checkpoint.every=0", "train.log_every=1", "train.threads=1",
          "schedule.warmup_steps=0", "device=cpu"]
CASES = {
    "mlp": {
        "config": "fashion_mnist_mlp", "set": [],
        "torch": ["--model", "mlp", "--batch", "64"]},
    "cnn": {
        "config": "compare/base", "set": [],
        "torch": ["--model", "cnn", "--batch", "16", "--hidden", "128",
                  "--optimizer", "sgd", "--clip", "0"]},
    "vgg16-small": {
        "config": "vgg16_small_cifar10",
        "set": ["method.name=ddp", "data.batch_size=16", "train.label_smoothing=0"],
        "torch": ["--model", "vgg16-small", "--batch", "16"]},
}
WARM_UP = 5


def environment():
    return dict(os.environ, OMP_NUM_THREADS="1", TORCH_CPP_LOG_LEVEL="ERROR",
                OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def checked(command, **more):
    done = subprocess.run([str(word) for word in command], text=True,
                          capture_output=True, env=environment(), **more)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: "
                           f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def median_step(folder):
    """The median, in milliseconds, of the steps that a run logged."""
    steps = network_runs.events(folder / "metrics.jsonl", "step")[WARM_UP:]
    if len(steps) < 2:
        raise RuntimeError(f"{folder}: too few steps, give more --steps")
    return 1e3 * statistics.median(
        b["seconds"] - a["seconds"] for a, b in zip(steps, steps[1:]))


def settings(case, arguments, name, output):
    sets = [*COMMON, *case["set"], f"workers={arguments.workers}",
            f"train.steps={arguments.steps + WARM_UP + 1}"]
    if "vgg" in case["config"]:
        sets.append(f"model.width={arguments.width}")
    return ["--config", case["config"], "--name", name, "--output", output,
            "--resume", "none", "--overwrite", *(w for s in sets for w in ("--set", s))]


def run_abtrain(case, arguments, output):
    checked(["mpirun", "--oversubscribe", "--bind-to", "none",
             "-np", arguments.workers, arguments.program, "train",
             *settings(case, arguments, "ddp", output), "--set", "comm=mpi"])
    return median_step(output / "ddp")


def run_torch(case, arguments, port):
    words = [*case["torch"], "--width", arguments.width, "--warmup", WARM_UP,
             "--steps", arguments.steps, "--world", arguments.workers,
             "--address", "127.0.0.1", "--link", "lo", "--port", port]
    ranks = [subprocess.Popen(
        [str(w) for w in (arguments.torch_python,
                          ROOT / "bench/network_torch.py", "--rank", rank,
                          *words)],
        env=environment(), stdout=subprocess.PIPE, text=True)
        for rank in range(arguments.workers)]
    printed = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise RuntimeError("PyTorch's DDP failed, see above")
    return 1e3 * json.loads(printed[0])["median_step"]


def compare_locally(name, arguments, output):
    case = CASES[name]
    ours, theirs = [], []
    for number in range(arguments.rounds):
        ours.append(run_abtrain(case, arguments, output))
        theirs.append(run_torch(case, arguments, 29500 + number % 50))
    ratios = [a / b for a, b in zip(ours, theirs)]
    row = {"model": name, "abtrain_ms": ours, "torch_ms": theirs,
           "ratio": statistics.median(ratios)}
    print(f"| {name} | {statistics.median(ours):.1f} | "
          f"{statistics.median(theirs):.1f} | {row['ratio']:.3f} | "
          f"{min(ratios):.3f} to {max(ratios):.3f} |", flush=True)
    row["good"] = row["ratio"] <= arguments.at_most
    return row


def locally(arguments):
    print(f"{arguments.workers} processes on {os.cpu_count()} cores, "
          f"{arguments.rounds} rounds of {arguments.steps} steps\n\n"
          "| model | abtrain, ms | PyTorch, ms | ratio | range |\n"
          "| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as output:
        return [compare_locally(name, arguments, pathlib.Path(output))
                for name in arguments.models]


def run_over_links(hosts, words, case, dtype, arguments, output):
    checked([*network_runs.mpirun(hosts, words), arguments.program,
             *settings(case, arguments, "links", output),
             "--set", f"reducer.dtype={dtype}"])
    summary = json.loads((output / "links/summary.json").read_text())
    return (median_step(output / "links"),
            summary["traffic"]["bytes_per_worker"] / summary["steps"])


def over_links(arguments):
    words = network.parse(["--run", "x=y", "--torch-steps", str(arguments.steps),
                           "--torch-python", str(arguments.torch_python)])
    rows = []
    with tempfile.TemporaryDirectory() as folder, \
            netns.Network(arguments.workers) as hosts:
        output = pathlib.Path(folder)
        for rate in arguments.links:
            hosts.set_rate(rate)
            for name in arguments.models:
                rows.append(compare_over(
                    hosts, words, name, rate, arguments, output))
    return rows


def compare_over(hosts, words, name, rate, arguments, output):
    times = {dtype: [] for dtype in ("fp32", "fp16", "bf16")}
    rivals = {rival: [] for rival in network_runs.RIVALS if name == "mlp"}
    sent = {}
    for number in range(arguments.rounds):
        for dtype in times:
            ms, sent[dtype] = run_over_links(
                hosts, words, CASES[name], dtype, arguments, output)
            times[dtype].append(ms)
        for rival in rivals:
            row = network_runs.train_torch(hosts, words, rival, number + 1)
            if row["status"] == "failed":
                raise RuntimeError(f"{rival} failed, see above")
            rivals[rival].append(row["median_ms"])
    medians = {k: statistics.median(v) for k, v in {**times, **rivals}.items()}
    # The milliseconds that the link alone takes for the bytes of an fp32 step.
    least = 8e3 * sent["fp32"] / netns.bits(rate)
    bound = least > 0.5 * medians["fp32"]
    print(f"\n{name}, {arguments.workers} hosts, {rate} (an fp32 step: at least "
          f"{least:.1f} ms{'' if bound else '; the link is not the bottleneck'})\n\n"
          "| run | ms per step | of fp32 | MB sent per step |\n"
          "| --- | ---: | ---: | ---: |")
    for key, ms in medians.items():
        bytes_ = f"{sent[key] / 1e6:.2f}" if key in sent else "-"
        print(f"| {key} | {ms:.1f} | {ms / medians['fp32']:.3f} | {bytes_} |",
              flush=True)
    faster = all(medians[k] < medians["fp32"] for k in ("fp16", "bf16"))
    return {"model": name, "rate": rate, "bottleneck": bound, "ms": medians,
            "rounds": {**times, **rivals}, "good": faster or not bound}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("models", nargs="*", default=[], metavar="MODEL",
        help=", ".join(CASES) + " (default: all of them; with --links only mlp)")
    add("--links", nargs="+", metavar="RATE", help="link rates as for tc, such as 100mbit or 1gbit")
    add("--workers", type=int, default=4)
    add("--rounds", type=int, default=5)
    add("--steps", type=int, default=30)
    add("--width", type=float, default=0.25, help="width of vgg16-small")
    add("--at-most", type=float, default=1.1)
    add("--program", type=pathlib.Path,
        default=ROOT / "build/release/abtrain")
    add("--torch-python", type=pathlib.Path, default=network.TORCH)
    add("--json", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    for name in arguments.models:
        if name not in CASES:
            parser.error(f"{name}: expected one of {', '.join(CASES)}")
    for rate in arguments.links or []:
        try:
            netns.bits(rate)
        except ValueError as error:
            parser.error(str(error))
    arguments.models = arguments.models or (
        ["mlp"] if arguments.links else list(CASES))
    arguments.program = arguments.program.resolve()
    if arguments.links:
        netns.leave_on_signals()
    rows = over_links(arguments) if arguments.links else locally(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(
            {"cores": os.cpu_count(), "workers": arguments.workers,
             "steps": arguments.steps, "rows": rows}, indent=1))
    for row in rows:
        if not row["good"]:
            print(f"{row['model']}: not good enough", file=sys.stderr)
    return 0 if all(row["good"] for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        sys.exit(f"ddp_vs_torch.py: {error}")
