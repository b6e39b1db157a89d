#!/usr/bin/env python3
"""Trains over hosts with slow links: time to an accuracy, and bytes sent.

    sudo bench/network.py --hosts 4 --rate 100mbit --target 0.88 \\
        --run ab=fashion_mnist_mlp \\
        --run ddp=fashion_mnist_mlp,method.name=ddp
    sudo bench/network.py --compare fp32 bf16 thc --target 0.85 --continue
    sudo bench/network.py --plan --rate 100mbit 1gbit --repeats 1 \\
        --run ddp=fashion_mnist_mlp,method.name=ddp,train.steps=60 \\
        --run ab=fashion_mnist_mlp,train.steps=330
    sudo bench/network.py --self-test --rate 100mbit

The hosts are network namespaces of this machine on one bridge; tbf limits both
directions of every link, so they share the cores but not a link. Each run is
started with mpirun, with one worker per host. Prints a table of medians over the
repeats and writes all runs to OUTPUT/network.json. A later call with the same
OUTPUT adds to it, and with --continue skips the runs that it holds already, so
that a long comparison can be made in parts. Needs root, iproute2 and Open MPI.

--compare trains configs/compare/NAME.yaml (without names: all of them for the
CPU) to the end, evaluated as often as configured, and prints for each rate the
table of `abtrain report`: first the time to the target, then the figures that
explain it, including runs that did not reach it.

--plan compares each run with what `abtrain plan` predicts; the compute
time is measured again, with as many workers at once as there are hosts here.

In a table "metered" is what a worker reports as sent, including measurements
during training; "links" is what the hosts' interfaces counted in the whole run,
mean and largest, including the start (some 10 KB); "without headers" is links /
metered after 66 bytes per packet are subtracted. Where the system hands over many
segments as one packet, the interfaces count one header for all of them; in the
file, "wire_bytes" counts every header. For PyTorch "metered" is from a formula.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import netns
from network_runs import RIVALS, folder_name, predict, train, train_torch
from network_table import draw, plan_table, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH = pathlib.Path.home() / ".cache/abtrain/torch-2.11.0/bin/python"


def parse_run(text):
    """NAME=CONFIG[,key=value...]; values may contain commas, as [8, 8] does."""
    name, found, rest = text.partition("=")
    config, *settings = re.split(r",(?=[a-z_.0-9]+=)", rest)
    if not (re.fullmatch(r"[\w.-]+", name) and found and config):
        raise argparse.ArgumentTypeError(
            f"{text}: expected NAME=CONFIG[,key=value...]")
    return {"name": name, "config": config, "set": settings}


def compared(names):
    """The runs of --compare; without names all configurations for the CPU."""
    folder = ROOT / "configs/compare"
    every = sorted(p.stem for p in folder.glob("*.yaml")
                   if p.stem != "base" and not p.stem.startswith("cifar10"))
    for name in names:
        if not (folder / f"{name}.yaml").exists():
            raise ValueError(f"--compare {name}: expected one of "
                             + ", ".join(every))
    return [{"name": n, "config": f"compare/{n}", "set": []}
            for n in names or every]


def report(rows, arguments):
    """Prints the table of `abtrain report` for the runs at each rate."""
    for rate in arguments.rate:
        folders = [arguments.output / folder_name(
            r["name"], r["hosts"], rate, r["seed"])
            for r in rows if r["rate"] == rate and r["name"] not in RIVALS
            and r["hosts"] == arguments.hosts]
        # A run that failed before its first step left nothing.
        folders = [f for f in folders if (f / "metrics.jsonl").exists()]
        if not folders:
            continue
        target = ["--target", str(arguments.target)] if arguments.target else []
        done = subprocess.run([arguments.program, "report", "--columns", "all", *target,
                               *folders],
                              stdout=subprocess.PIPE, text=True, check=True)
        print(f"\n{arguments.hosts} hosts, {rate}\n\n{done.stdout}", end="")
    for row in rows:
        if row["status"] in ("failed", "diverged"):
            print(f"{row['name']}, {row['rate']}, seed {row['seed']}: "
                  f"{row['status']}, exit code {row.get('exit_code')}")


def measure(network, arguments):
    """Runs everything in turn, so that a drift of the machine's speed affects all
    runs alike. Returns the rows of this and earlier calls."""
    path = arguments.output / "network.json"
    rows = json.loads(path.read_text())["runs"] if path.exists() else []

    def add(row, rate, seed):
        row.update(rate=rate, seed=seed, hosts=len(network.hosts))
        key = ("name", "hosts", "rate", "seed")
        rows[:] = [r for r in rows if any(r[k] != row[k] for k in key)]
        rows.append(row)
        path.write_text(json.dumps({
            "cores": os.cpu_count(), "congestion": network.congestion,
            "runs": rows}, indent=1))
        print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)

    def is_there(run, rate, seed):
        """A failed run does not count: that may be the machine's fault."""
        keys = ("name", "config", "set", "hosts", "rate", "seed")
        wanted = dict(run, hosts=len(network.hosts), rate=rate, seed=seed)
        return arguments.go_on and any(
            r["status"] != "failed"
            and all(r.get(k) == wanted.get(k) for k in keys) for r in rows)

    for rate in arguments.rate:
        network.set_rate(rate)
        for seed in arguments.seeds:
            for run in arguments.run:
                if is_there(run, rate, seed):
                    continue
                row = train(network, arguments, run, seed, rate)
                if arguments.plan and row["status"] == "done":
                    row.update(rate=rate, hosts=len(network.hosts))
                    predict(row, arguments.output / folder_name(
                        run["name"], len(network.hosts), rate, seed), arguments)
                add(row, rate, seed)
            for rival in RIVALS if arguments.torch else []:
                if is_there({"name": rival}, rate, seed):
                    continue
                add(train_torch(network, arguments, rival, seed), rate, seed)
    return rows


def parse(words=None):
    """Returns the checked arguments; None: those of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--run", type=parse_run, action="append", default=[],
        metavar="NAME=CONFIG[,key=value...]", help="may be repeated")
    add("--compare", nargs="*", metavar="NAME",
        help="runs of configs/compare; all of them without names")
    add("--set", action="append", default=[], metavar="KEY=VALUE",
        help="override a key in every run; may be repeated")
    add("--continue", action="store_true", dest="go_on",
        help="skip runs that OUTPUT/network.json holds already")
    add("--torch", action="store_true",
        help="also run PyTorch's DDP over Gloo, with and without its fp16 hook")
    add("--hosts", type=int, default=4)
    add("--rate", nargs="+", default=["100mbit"], help="rate of a link, as for tc")
    add("--repeats", type=int, default=3, help="runs with the seeds 1, 2, ...")
    add("--seeds", type=int, nargs="+", help="use these seeds instead of --repeats")
    add("--target", type=float, help="accuracy, 0 to 1")
    add("--plot", type=pathlib.Path, metavar="FILE",
        help="draw accuracy against seconds and against MB sent, at the first rate")
    add("--stop-at-target", action="store_true")
    add("--give-up", type=float, metavar="SECONDS",
        help="training time after which a run is stopped without the target")
    add("--evaluate-every", type=int, default=50,
        help="steps (default 50; --compare: as configured); 0: as configured")
    add("--limit", type=float, default=7200, help="most seconds that a run may take")
    add("--program", default=str(ROOT / "build/release/abtrain"),
        help="abtrain, as a path or on PATH (default: build/release/abtrain)")
    add("--output", type=pathlib.Path, default=pathlib.Path("runs/network"))
    add("--plan", action="store_true",
        help="also print what `abtrain plan` predicts for each run")
    add("--latency", default="50us", help="latency per message, for --plan")
    add("--mca", action="append", default=[], metavar="KEY=VALUE",
        help="a further option of Open MPI; may be repeated")
    add("--congestion", default="reno", help="TCP's congestion control")
    add("--torch-python", type=pathlib.Path, default=TORCH)
    add("--torch-steps", type=int, default=20)
    add("--self-test", action="store_true",
        help="only check the rate and the counters of the links")
    arguments = parser.parse_args(words)
    if arguments.compare is not None:
        try:
            arguments.run += compared(arguments.compare)
        except ValueError as error:
            parser.error(str(error))
    for run in arguments.run:
        run["set"] = run["set"] + arguments.set
    if not (arguments.run or arguments.torch or arguments.self_test):
        parser.error("nothing to do: expected --run, --compare, --torch or "
                     "--self-test")
    if arguments.stop_at_target and not arguments.target:
        parser.error("--stop-at-target needs a --target")
    for rate in arguments.rate:
        try:
            netns.bits(rate)
        except ValueError as error:
            parser.error(str(error))
    arguments.seeds = arguments.seeds or range(1, arguments.repeats + 1)
    program = shutil.which(arguments.program)
    if arguments.run and program is None:
        parser.error(f"{arguments.program} is missing: build it, or name the program "
                     "with --program")
    arguments.program = pathlib.Path(program or arguments.program).resolve()
    arguments.output = arguments.output.resolve()
    return arguments


def main():
    arguments = parse()
    netns.leave_on_signals()
    with netns.Network(arguments.hosts, arguments.congestion) as network:
        if arguments.self_test:
            good = [netns.self_test(network, r) for r in arguments.rate]
            return 0 if all(good) else 1
        arguments.output.mkdir(parents=True, exist_ok=True)
        rows = measure(network, arguments)
    print(f"{arguments.hosts} hosts on {os.cpu_count()} cores, TCP "
          f"{arguments.congestion}, target {arguments.target}\n")
    print(table(rows))
    if arguments.plan:
        print(f"\n{plan_table(rows)}")
    report(rows, arguments)
    if arguments.plot:
        draw([r for r in rows if r["rate"] == arguments.rate[0]], arguments.plot,
             arguments.target)
    return 1 if any(r["status"] == "failed" for r in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, RuntimeError) as error:
        sys.exit(f"network.py: {error}")
