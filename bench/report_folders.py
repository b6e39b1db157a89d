#!/usr/bin/env python3
"""Times `abtrain report` over many run folders, in each format.

    bench/report_folders.py [--program build/release/abtrain] [--runs 500]

Each folder is like that of a long run: 300 lines of metrics, of which 20 are
decompositions of 16 layers with 64 singular values each. The program runs on one
core. Prints the medians of five wall times and processor times.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

LAYERS = 16
POINTS = 64  # singular values per layer, at most


def decomposition(step, chance):
    layers = []
    for i in range(LAYERS):
        index = sorted({round(512 ** (k / (POINTS + 20))) for k in range(POINTS + 21)})[-POINTS:]
        layers.append({
            "name": f"features.{i}", "m": 4608, "n": 512, "rank": max(8, 200 - step // 10),
            "energy": chance.random(), "first_energy": chance.random(),
            "singular_values": {"index": index,
                                "value": [9 * chance.random() / k for k in index]}})
    return {"duration": chance.random(), "layers": layers}


def events(chance):
    """Yields the 300 events of a run: steps, decompositions and evaluations."""
    for i in range(300):
        step, seconds = 10 * i + 10, 1.5 * i + chance.random()
        line = {"step": step, "seconds": seconds}
        if i % 15 == 7:
            yield {"event": "decompose", **line, **decomposition(step, chance)}
        elif i % 10 == 9:
            yield {"event": "evaluate", **line, "loss": 2 / (i + 1),
                   "accuracy": 0.9 - 0.8 / (i + 1) + 0.01 * chance.random(),
                   "bytes_per_worker": 1000003 * step, "train_seconds": seconds}
        else:
            yield {"event": "step", **line, "phase": "ab", "loss": chance.random(), "lr": 1e-3,
                   "images_per_second": 1e4 * chance.random(), "bytes_per_worker": 1000003 * step}


def make_run(folder, config, number, chance):
    folder.mkdir()
    values = {"name": f"run_{number}", "seed": number % 5 + 1,
              "  group_size": (1, 2, 4)[number // 5 % 3], "    rank": 4 * (number // 15) + 4}
    lines = []
    for line in config.splitlines():
        key = line.split(":")[0]
        lines.append(f"{key}: {values[key]}" if key in values else line)
    (folder / "config.yaml").write_text("\n".join(lines) + "\n")
    (folder / "metrics.jsonl").write_text("".join(
        json.dumps(event, separators=(",", ":")) + "\n" for event in events(chance)))
    (folder / "summary.json").write_text(json.dumps({
        "accuracy": 0.85 + 0.1 * chance.random(), "loss": chance.random(),
        "compression_ratio": 9.1, "steps": 3000, "parameters": {"dense": 30000000},
        "traffic": {"bytes_per_worker": 3000009000, "vs_fp32": 0.2},
        "seconds": {"train": 450 + chance.random(), "communication": 50}}, indent=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/abtrain", type=pathlib.Path)
    parser.add_argument("--runs", default=500, type=int)
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    core = min(os.sched_getaffinity(0))
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="abtrain-report-") as place:
        place = pathlib.Path(place)
        config = subprocess.run(
            [program, "plan", "--show-config", "fashion_mnist_mlp", "workers=8",
             "method.rank.rule=fixed"], stdout=subprocess.PIPE, text=True, check=True).stdout
        runs = place / "runs"
        runs.mkdir()
        for number in range(arguments.runs):
            make_run(runs / f"run_{number}", config, number, chance)
        size = sum(file.stat().st_size for file in runs.glob("*/*"))
        print(f"{arguments.runs} run folders, {size / 1e6:.0f} MB")
        for name in ("table", "csv", "json", "markdown", "html"):
            walls, processor = [], []
            for _ in range(5):
                start = time.monotonic()
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = subprocess.run(
                    [program, "report", runs, "--target", "0.88", "-o", place / "report",
                     "--format", name],
                    stderr=subprocess.PIPE, text=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, {core}))
                walls.append(time.monotonic() - start)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                processor.append(after.ru_utime + after.ru_stime
                                 - before.ru_utime - before.ru_stime)
                if done.returncode or done.stderr:
                    sys.exit(f"exit code {done.returncode}: {done.stderr.splitlines()[0]}")
            written = (place / "report").stat().st_size
            print(f"{name:9} {statistics.median(walls):5.2f} s, processor "
                  f"{statistics.median(processor):5.2f} s, {written / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
