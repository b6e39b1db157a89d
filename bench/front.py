#!/usr/bin/env python3
"""Accuracy against seconds, bytes and parameters: methods at several lengths and seeds.
Of language models, bits per byte take the place of the accuracy.

    bench/front.py runs/front --steps 200 400 800 --seeds 1 2 3 --plot front.png \\
        --run ab=fashion_mnist_mlp --run ddp=fashion_mnist_mlp,method.name=ddp \\
        --equal-time ddp:400
    bench/front.py runs/front --time-limit 30 ...    # again and again, until it ends with 0

A run keeps its folder OUTPUT/NAME_LENGTH_SEED: what has finished (or diverged) is not
repeated, what was stopped goes on from its checkpoint. A folder whose run had other
settings is refused. With --time-limit, or on SIGTERM or Ctrl-C, the run in progress is
stopped with a checkpoint, the table of what there is is printed, and the exit code is 75;
--time-limit 0 starts nothing. Warm-ups and intervals are the configurations' business: of
a length, only train.steps or train.epochs is set. A run that gives that key itself, as
--run small=CONFIG,model.width=0.1,train.steps=1320, has only this length: so runs whose
steps take different times can be trained for the same time.

The table has one row per run and length: means over the seeds (lowest to highest), the
median of the training seconds on abtrain's own clock, without evaluations and checkpoints.
Its last column names what it is on the front of: no other row is at least as accurate for
as little. --equal-time RUN:LENGTH adds what each run reaches in the time of that one, and
with its bytes: the best of its lengths that costs no more, nothing interpolated. --plot
draws all three, and each method's own front as a line (with matplotlib and numpy).
"""
import argparse
import json
import math
import pathlib
import signal
import subprocess
import sys
import time

from front_table import counts, draw, equal_table, points_of, table
from network import parse_run
from network_runs import DIVERGED, STOPPED, events, reached

ROOT = pathlib.Path(__file__).resolve().parent.parent
OWN_KEYS = ("name", "output", "seed", "train.steps", "train.epochs", "checkpoint.every")
# Where and how often it saves is no part of what a run learns.
FREE_KEYS = ("name", "output", "checkpoint.every", "checkpoint.keep")


def number(text):
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return int(value) if value.is_integer() else value


def keys_of(text):
    """The keys of a resolved configuration: {"train.steps": "400"}."""
    keys, path = {}, []
    for line in text.splitlines():
        key, _, value = line.strip().partition(":")
        path[(len(line) - len(line.lstrip())) // 2:] = [key]
        if value:
            keys[".".join(path)] = value.strip()
    return keys


def state(folder, wanted):
    """What a run folder holds of the run with these keys: "done", "diverged", or "open" if
    it is still to be begun or continued. Throws ValueError if other keys made it."""
    config = folder / "config.yaml"
    if not config.exists():
        return "open"
    there = keys_of(config.read_text())
    # A key that an older program did not know yet had its default.
    differ = [f"  {key}: {there[key]} there, {value} now" for key, value in wanted.items()
              if key not in FREE_KEYS and there.get(key, value) != value]
    if differ:
        raise ValueError("\n".join([
            f"{folder} holds a run with other settings:", *differ,
            "Choose another OUTPUT or NAME, or move it away."]))
    if (folder / "summary.json").exists():
        return "done"
    failure = folder / "failure.json"
    if failure.exists() and json.loads(failure.read_text()).get("exit_code") == DIVERGED:
        return "diverged"
    return "open"


def settings(arguments, run, length):
    """The --set words of a run but its seed."""
    values = [*run["set"], *arguments.set, f"train.{arguments.unit}={length}",
              "checkpoint.every=20 %"]
    if arguments.unit == "epochs":
        values.append("train.steps=0")  # which would win over epochs
    return [word for value in values for word in ("--set", value)]


def planned(arguments):
    """All runs, seed by seed and short ones first, with all methods of a length next to
    each other, so that a drift of the machine's speed affects them alike."""
    resolved = {}
    for run in arguments.run:
        for length in run["lengths"]:
            done = subprocess.run(
                [arguments.program, "plan", "--config", run["config"], "--show-config",
                 *settings(arguments, run, length)], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{run['name']} at {length} {arguments.unit}: exit code "
                                   f"{done.returncode}\n{done.stderr.strip()}")
            resolved[run["name"], length] = keys_of(done.stdout)
    return [{"name": run["name"], "length": length, "seed": seed,
             "folder": arguments.output / f"{run['name']}_{length}{arguments.unit}_{seed}",
             "keys": resolved[run["name"], length] | {"seed": str(seed)},
             "words": ["--config", run["config"], *settings(arguments, run, length),
                       "--set", f"seed={seed}"]}
            for seed in arguments.seeds
            for length in sorted({length for run in arguments.run for length in run["lengths"]})
            for run in arguments.run if length in run["lengths"]]


def train(arguments, run, deadline):
    """Trains until the end or the deadline. Returns whether it was stopped."""
    folder = run["folder"]
    log = folder.with_name(folder.name + ".log")
    command = [arguments.program, "train", *run["words"], "--name", folder.name,
               "--output", arguments.output, "--resume", "auto"]
    print(f"front.py: {folder.name}", file=sys.stderr, flush=True)
    asked = False
    with open(log, "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            left = deadline - time.monotonic()
            code = process.wait(None if left == math.inf else max(0, left))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            asked = True
            process.terminate()
            code = process.wait()
    if code in (0, DIVERGED):
        return asked
    if asked or code == STOPPED:
        return True
    raise RuntimeError(f"{folder.name}: exit code {code}, see {log}")


def figures(run, target):
    """What the tables take of a run that has ended."""
    own = {key: run[key] for key in ("name", "length", "seed")}
    if run["state"] == "diverged":
        return own | {"diverged": True}
    summary = json.loads((run["folder"] / "summary.json").read_text())
    hit = reached(events(run["folder"] / "metrics.jsonl", "evaluate"), target)
    # More is better in a score, so that of bits per byte is negative.
    is_text = "bits_per_byte" in summary
    return own | {
        "score": -summary["bits_per_byte"] if is_text else summary["accuracy"],
        "is_text": is_text, "seconds": summary["seconds"]["train"],
        "bytes": summary["traffic"]["bytes_per_worker"],
        "compression": summary["compression_ratio"],
        "stored": summary["parameters"]["stored"],
        "to_target": hit["train_seconds"] if hit else math.inf}


def train_all(arguments, runs, deadline):
    """Trains what is open, and brings the states up to date."""
    for run in runs:  # all folders are looked at before anything is trained
        run["state"] = state(run["folder"], run["keys"])
    for run in runs:
        if run["state"] == "open" and time.monotonic() < deadline:
            stopped = train(arguments, run, deadline)
            run["state"] = state(run["folder"], run["keys"])
            if stopped:
                break


def show(arguments, runs):
    ended = [run for run in runs if run["state"] != "open"]
    order = {run["name"]: i for i, run in enumerate(arguments.run)}
    ended.sort(key=lambda run: (order[run["name"]], run["length"], run["seed"]))
    points = points_of([figures(run, arguments.target) for run in ended])
    if points:
        print(table(points, arguments.unit, arguments.target))
    for name, length in arguments.equal_time:
        there = [p for p in points if (p["name"], p["length"]) == (name, length) and counts(p)]
        print("\n" + (equal_table(points, there[0], arguments.unit) if there else
                      f"--equal-time {name}:{length}: no figures of it yet, or it diverged"))
    if arguments.json:
        # JSON has no infinity: a target that was missed is null.
        clean = [{key: None if value == math.inf else value for key, value in p.items()}
                 for p in points]
        arguments.json.write_text(json.dumps(
            {"unit": arguments.unit, "target": arguments.target, "points": clean}, indent=1)
            + "\n")
    if arguments.plot and points:
        draw(points, arguments.plot, arguments.target)
    left = [run["folder"].name for run in runs if run["state"] == "open"]
    if left:
        print(f"\n{len(left)} of {len(runs)} runs are left; the same command goes on: "
              + ", ".join(left[:8]) + (", ..." if len(left) > 8 else ""))
    return STOPPED if left else 0


def own_lengths(run, unit):
    """Takes the run's own train.steps or train.epochs out of its settings."""
    key = f"train.{unit}="
    words = [value for value in run["set"] if value.startswith(key)]
    run["set"] = [value for value in run["set"] if value not in words]
    return [number(value.removeprefix(key)) for value in words]


def point_name(text):
    name, found, length = text.rpartition(":")
    if not (found and name):
        raise argparse.ArgumentTypeError(f"{text}: expected RUN:LENGTH")
    return name, number(length)


def parse(words=None):
    """Returns the checked arguments; None: those of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("output", type=pathlib.Path, metavar="OUTPUT", help="folder for the runs")
    add("--run", type=parse_run, action="append", required=True,
        metavar="NAME=CONFIG[,key=value...]", help="a method; may be repeated")
    lengths = parser.add_mutually_exclusive_group(required=True)
    lengths.add_argument("--steps", type=int, nargs="+", metavar="N")
    lengths.add_argument("--epochs", type=number, nargs="+", metavar="N")
    add("--seeds", type=int, nargs="+", default=[1], metavar="SEED")
    add("--set", action="append", default=[], metavar="KEY=VALUE",
        help="override a key in every run; may be repeated")
    add("--target", type=float, metavar="VALUE",
        help="also print the seconds to this accuracy, 0 to 1, or to these bits per byte: "
             "medians")
    add("--equal-time", type=point_name, action="append", default=[], metavar="RUN:LENGTH",
        help="also print what each run reaches in that one's time; may be repeated")
    add("--time-limit", type=float, default=math.inf, metavar="MINUTES",
        help="of this call; what is left then is for the next one")
    add("--program", type=pathlib.Path, default=ROOT / "build/release/abtrain")
    add("--json", type=pathlib.Path, metavar="FILE", help="file for the figures")
    add("--plot", type=pathlib.Path, metavar="FILE", help="picture, such as front.png")
    arguments = parser.parse_args(words)
    arguments.unit = "steps" if arguments.steps else "epochs"
    arguments.lengths = sorted(set(arguments.steps or arguments.epochs))
    arguments.seeds = list(dict.fromkeys(arguments.seeds))
    names = [run["name"] for run in arguments.run]
    if len(set(names)) < len(names):
        parser.error("--run: each NAME once")
    if arguments.lengths[0] < 1 and arguments.unit == "steps":
        parser.error("--steps: expected numbers above 0")
    for run in arguments.run:
        try:
            run["lengths"] = own_lengths(run, arguments.unit) or arguments.lengths
        except (ValueError, argparse.ArgumentTypeError):
            parser.error(f"--run {run['name']}: train.{arguments.unit}: expected a number above 0")
    if arguments.target is not None and not 0 < arguments.target <= 8:
        parser.error("--target: expected an accuracy above 0 and at most 1, such as 0.88, or "
                     "bits per byte, at most 8")
    for value in [v for run in arguments.run for v in run["set"]] + arguments.set:
        if value.partition("=")[0].strip() in OWN_KEYS:
            parser.error(f"{value}: this script sets {', '.join(OWN_KEYS)} itself")
    for name, length in arguments.equal_time:
        if not any(run["name"] == name and length in run["lengths"] for run in arguments.run):
            parser.error(f"--equal-time {name}:{length}: expected a NAME of --run and one of "
                         f"its {arguments.unit}")
    arguments.program = arguments.program.resolve()
    arguments.output = arguments.output.resolve()
    return arguments


def main():
    arguments = parse()
    deadline = time.monotonic() + 60 * arguments.time_limit
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    arguments.output.mkdir(parents=True, exist_ok=True)
    runs = planned(arguments)
    train_all(arguments, runs, deadline)
    return show(arguments, runs)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"front.py: {error}")
