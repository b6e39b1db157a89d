"""The program behind scripts/gpu_check.sh; see its --help."""
import argparse
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import machine
import report
from parts import PARTS, SMOKE, SMOKE_SECONDS, Context
from runner import NotRun, PartFailed, Runner

NO_GPU = 66

DESCRIPTION = """\
Runs everything that needs a GPU, in one call or several: builds, or takes a carried build
(made by scripts/portable_build.sh), runs the GPU tests, the benchmarks and the full-size
runs within a budget of seconds, and finally prints which gates were reached. Needs only a
GPU and a Python with torch (the version of LibTorch), and no network. The runs on CIFAR-10
need ABTRAIN_DATA, the folder that holds cifar-10-batches-bin, or --data."""

AFTERWORDS = """\
Parts, in their order (a part that would not fit into the remaining budget is left out):
{parts}

The results folder holds report.md, results.json, machine.txt, output.log and runs.tar.gz.
Exit codes: 0 no part failed and every measured gate was reached; 1 otherwise; 2 wrong
arguments; 66 no GPU.

On a machine that allows ten minutes per call:
  scripts/gpu_check.sh --build build/portable --parts smoke --out r0
  scripts/gpu_check.sh --build build/portable --out r1
  scripts/gpu_check.sh --build build/portable --budget 590 --parts vgg16_ddp --out r2
  scripts/gpu_check.sh --build build/portable --budget 590 --parts vgg16_ab --earlier r1 r2 --out r3
Models and checkpoints need gigabytes: if the results are to be copied elsewhere, keep these
in another folder with --work.
"""


def arguments():
    names = [part.name for part in PARTS]
    width = max(map(len, names))
    parser = argparse.ArgumentParser(
        prog="scripts/gpu_check.sh", description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=AFTERWORDS.format(
            parts="\n".join(f"  {p.name:{width}}  {p.text}" for p in PARTS)))
    parser.add_argument("--build", metavar="FOLDER", help="a carried build, or a CMake build "
                        "folder (default: build build/release, as quickstart.sh does)")
    parser.add_argument("--budget", type=float, metavar="SECONDS",
                        help=f"540; of --parts smoke {SMOKE_SECONDS}")
    parser.add_argument("--parts", metavar="A,B,...", help="run only these parts (default: all); "
                        f"smoke: {','.join(SMOKE)}")
    parser.add_argument("--data", nargs="+", default=[], metavar="PIECE", help="files that, one "
                        "after the other, are cifar-10-binary.tar.gz")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path,
                        default=pathlib.Path("build/gpu_check"), help="results (%(default)s)")
    parser.add_argument("--work", metavar="FOLDER", type=pathlib.Path,
                        help="run folders, with models and checkpoints (OUT.work)")
    parser.add_argument("--earlier", metavar="FOLDER", nargs="+", default=[],
                        help="results folders of earlier calls, whose figures count too")
    parser.add_argument("--set", action="append", default=[], metavar="[PART:]KEY=VALUE",
                        help="override a key of all training runs, or of one part's")
    parser.add_argument("--rehearse", action="store_true",
                        help="run all parts at toy size on the CPU: checks only this script")
    options = parser.parse_args()
    smoke = options.parts == "smoke"
    if options.budget is None:
        options.budget = SMOKE_SECONDS if smoke else 540
    chosen = names if options.parts is None else SMOKE if smoke else options.parts.split(",")
    for name in chosen:
        if name not in names:
            parser.error(f"--parts: expected some of {','.join(names)}; got '{name}'")
    options.chosen = [part for part in PARTS if part.name in chosen]
    for folder in options.earlier:
        if not (pathlib.Path(folder) / "results.json").is_file():
            parser.error(f"--earlier: no results.json in {folder}")
    if options.build and not machine.Build(options.build).abtrain.is_file():
        parser.error(f"--build: neither bin/abtrain nor abtrain is in {options.build}")
    if options.work is None:
        options.work = options.out.with_name(options.out.name + ".work")
    return options


def build_here():
    """Builds build/release with the functions of scripts/common.sh."""
    subprocess.run(["bash", "-c", "source scripts/common.sh; scripts/setup.sh; build all"],
                   cwd=machine.ROOT, check=True)
    return machine.ROOT / "build/release"


def run_part(part, context, runner):
    began = time.monotonic()
    entry = {"state": "done", "seconds": 0.0, "figures": {}}
    least = 6 if context.rehearse else part.seconds
    if runner.left() < least:
        entry.update(state="not run", remark=f"{runner.left():.0f} s are left, but it needs at "
                     f"least {least}")
    else:
        runner.say(f"== {part.name}: {part.text}")
        try:
            entry["figures"] = part.run(context)
            if entry["figures"].get("failed"):  # failed tests
                entry["remark"] = "failed: " + ", ".join(entry["figures"]["failures"])
        except NotRun as reason:
            entry.update(state="not run", remark=str(reason))
        except PartFailed as reason:
            entry.update(state="failed", remark=str(reason), figures=reason.figures)
        except (KeyError, ValueError, TypeError, OSError, subprocess.SubprocessError) as reason:
            # Output that this script does not understand: the next part may still be fine.
            entry.update(state="failed", remark=f"{type(reason).__name__}: {reason}")
    entry["seconds"] = time.monotonic() - began
    if entry["state"] != "done":
        runner.say(f"{part.name} {entry['state']}: {entry['remark']}")
    return entry


def main():
    began = time.monotonic()
    options = arguments()
    if not options.rehearse and not machine.gpus():
        print("gpu_check.sh: nvidia-smi shows no GPU here; --rehearse runs the same at toy size "
              "on the CPU", file=sys.stderr)
        return NO_GPU
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.out.mkdir(parents=True, exist_ok=True)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.rehearse:  # never continue an earlier rehearsal
        options.work = options.work / time.strftime("rehearsal-%H%M%S")
    build = machine.Build(options.build or build_here())
    python, libraries = machine.find_python()
    if build.carried and not python:
        print("gpu_check.sh: a carried build needs the LibTorch of a Python's torch; no "
              "python3 here has one (ABTRAIN_PYTHON names another)", file=sys.stderr)
        return 1
    if options.data:
        problem = machine.join_cifar10(options.data, options.work)
        if problem:
            print(f"gpu_check.sh: --data: {problem}", file=sys.stderr)
            return 1
    about = machine.describe(build, python, libraries, shlex.join(["scripts/gpu_check.sh", *sys.argv[1:]]))
    parts = report.earlier_figures(options.earlier, options.rehearse)
    with open(options.out / "output.log", "w", encoding="utf-8") as log:
        runner = Runner(log, began, options.budget, machine.environment(build, libraries))
        for label, text in about.items():
            runner.write(f"{label}: {text}\n", show=True)
        context = Context(build, python, runner, options, options.work)
        kept = options.work / "kept"
        rows = report.write_all(options.out, kept, about, parts, options.rehearse)
        done = {}
        for part in options.chosen:
            done[part.name] = run_part(part, context, runner)
            if part.name not in parts or done[part.name]["state"] != "not run":
                parts[part.name] = done[part.name]
            rows = report.write_all(options.out, kept, about, parts, options.rehearse)
        runner.write("\n" + report.part_table(parts) + "\n" + report.gate_table(rows), show=True)
        runner.say(f"all results are in {options.out}")
    bad = (any(e["state"] == "failed" or e["figures"].get("failed") for e in done.values())
           or any(row[3] == "no" for row in rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
