#!/usr/bin/env python3
"""Disturbs many small runs at random moments and compares what they come to.

  ABTRAIN=build/release/abtrain tests/hosts/endurance.py --kills 200 --starts 20

Runs whose workers are threads, or 2 or 4 processes under mpirun, get SIGKILL, SIGTERM or
SIGSTOP and SIGCONT, are started again with --resume auto until they are done, and must then
equal an undisturbed run: model.safetensors to the byte, metrics.jsonl and summary.json apart
from times. Then pairs of programs start one run at random distances: one of them refuses, or
comes when all is done, and what the other leaves must be whole.

The last line counts. The exit code is 1 where anything differs, anything is left running, or
an exit code is none of those that docs/commands.md lists. A process that was killed from outside has -9, or
137 from mpirun; one that got SIGTERM while it was still being loaded, -15 or 143."""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from runs import LIMIT, PROGRAM, SMALL, environment, pids_of

SETTINGS = [*SMALL, "data.subset=2048", "train.steps=240", "evaluate.every=100",
            "checkpoint.every=7"]
TIMES = {"seconds", "duration", "train_seconds", "images_per_second", "evaluate_seconds"}
# (workers, whether each is a process)
FORMS = [(2, False), (4, False), (2, True), (4, True)]
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP]
DOCUMENTED = {0, 69, 75}


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    if isinstance(value, list):
        return [without_times(v) for v in value]
    return value


class Endurance:
    def __init__(self, program, mpiexec, folder, seed, show=print):
        self.program, self.mpiexec, self.folder = program, mpiexec, Path(folder)
        self.rng = random.Random(seed)
        self.show = show
        self.forms = [form for form in FORMS if mpiexec or not form[1]]
        self.wanted, self.seconds = {}, {}
        self.kills, self.codes, self.pairs = Counter(), Counter(), Counter()
        self.runs = 0
        self.problems = []

    # -- single starts

    def start(self, name, form, *extra):
        workers, processes = form
        words = [self.program, "--config", "fashion_mnist_mlp", "--name", name,
                 "--output", str(self.folder), "--resume", "auto"]
        for entry in [*SETTINGS, f"workers={workers}"]:
            words += ["--set", entry]
        if processes:
            words = [self.mpiexec, "--oversubscribe", "--bind-to", "none", "-np", str(workers),
                     *words]
        return subprocess.Popen([*words, *extra], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, start_new_session=True,
                                env=environment())

    def finish(self, process, name, allowed):
        """Exit code and standard error; what is wrong with them is noted."""
        try:
            _, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.problem(name, f"hangs for {LIMIT} s")
            os.killpg(process.pid, signal.SIGKILL)
            _, err = process.communicate()
        code = process.returncode
        self.codes[code] += 1
        if code not in allowed:
            self.problem(name, f"exit code {code}\n{err}")
        for word in ("internal error", "Segmentation", "terminate called", "what():"):
            if word in err:
                self.problem(name, err)
        for _ in range(200):  # the launcher may end before its processes
            if not self.workers_of(name):
                break
            time.sleep(0.1)
        else:
            self.problem(name, "processes are left running")
        return code, err

    def workers_of(self, name):
        return pids_of((self.program,), name)

    def problem(self, name, text):
        self.problems.append(name)
        self.show(f"{name}: {text}")

    # -- what a run leaves

    def left_by(self, name):
        place = self.folder / name
        events = [json.loads(line)
                  for line in (place / "metrics.jsonl").read_text().splitlines()]
        summary = json.loads((place / "summary.json").read_text())
        summary.get("traffic", {}).get("by_purpose", {}).pop("metrics", None)  # saves send some
        return {
            "model": (place / "model.safetensors").read_bytes(),
            # How often it was saved and started again is the disturbance itself, and
            # what the workers spent is nothing but times.
            "events": [without_times(e) for e in events
                       if e["event"] not in ("resume", "checkpoint", "workers")],
            "summary": {k: without_times(summary[k])
                        for k in ("steps", "workers", "accuracy", "loss", "layers", "traffic")},
        }

    def compare(self, name, form, may_be_locked=False):
        try:
            found = self.left_by(name)
        except (OSError, ValueError, KeyError) as error:
            self.problem(name, f"is not whole: {error!r}")
            return
        for part, wanted in self.wanted[form[0]].items():
            if found[part] != wanted:
                self.problem(name, f"{part} differs from that of the undisturbed run")
        junk = [p.name for p in (self.folder / name).iterdir() if p.name.startswith("lock")]
        if junk and not (may_be_locked and junk == ["lock.json"]):
            self.problem(name, f"left behind: {junk}")
        if name not in self.problems:
            shutil.rmtree(self.folder / name)

    def undisturbed(self):
        for form in self.forms:
            name = f"whole{form[0]}{'p' if form[1] else 't'}"
            begin = time.monotonic()
            self.finish(self.start(name, form), name, {0})
            self.seconds[form] = time.monotonic() - begin
            self.wanted.setdefault(form[0], self.left_by(name))
            self.compare(name, form)

    # -- disturbances

    def disturb(self, process, name, form):
        """Sends one signal at a random moment; False where the run was faster."""
        time.sleep(self.rng.uniform(0, self.seconds[form]))
        kind = self.rng.choice(SIGNALS)
        pids = self.workers_of(name)
        if not pids or process.poll() is not None:
            return False
        pid = self.rng.choice(pids)
        try:
            os.kill(pid, kind)
            self.kills[kind.name] += 1
            if kind == signal.SIGSTOP:
                time.sleep(self.rng.uniform(0, 0.5))
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return False
        return True

    def kill(self, count):
        while sum(self.kills.values()) < count:
            form = self.forms[self.runs % len(self.forms)]
            name = f"killed{self.runs}"
            self.runs += 1
            allowed = DOCUMENTED | ({137, 143} if form[1] else {-9, -15})
            for start in range(50):
                process = self.start(name, form)
                disturbed = start < 8 and self.rng.random() < 0.85 and self.disturb(
                    process, name, form)
                code, err = self.finish(process, name, allowed if disturbed else {0})
                if code == 0:
                    break
            # Killed when all was written: the next start only reads.
            self.compare(name, form, may_be_locked="this run has finished" in err)
            self.show(f"{name}: {start + 1} starts; {sum(self.kills.values())} of {count} kills")

    def start_twice(self, count):
        for k in range(count):
            forms = [self.rng.choice(self.forms)]
            forms += [self.rng.choice([f for f in self.forms if f[0] == forms[0][0]])]
            longest = self.seconds[forms[0]]
            distance = self.rng.choice([self.rng.uniform(0, 0.05),
                                        self.rng.uniform(0, 1.1 * longest)])
            name = f"twice{k}"
            first = self.start(name, forms[0])
            time.sleep(distance)
            second = self.start(name, forms[1])
            ends = [self.finish(p, name, {0, 75}) for p in (first, second)]
            refused = [e for e in ends if e[0] == 75 and " is in use" in e[1]]
            late = [e for e in ends if e[0] == 0 and "this run has finished" in e[1]]
            if len(refused) + len(late) != 1 or sorted(e[0] for e in ends) not in ([0, 75], [0, 0]):
                self.problem(name, f"after {distance:.3f} s: {ends}")
            self.pairs["refused" if refused else "came late"] += 1
            self.compare(name, forms[0])
            self.show(f"{name}: after {distance:.3f} s the other "
                      f"{'was refused' if refused else 'came late'}")

    def result(self):
        kinds = ", ".join(f"{n} {k}" for k, n in sorted(self.kills.items()))
        pairs = ", ".join(f"{n} {k}" for k, n in sorted(self.pairs.items()))
        codes = ", ".join(f"{n} x {k}" for k, n in sorted(self.codes.items()))
        return (f"{sum(self.kills.values())} kills ({kinds}) of {self.runs} runs, "
                f"{sum(self.pairs.values())} pairs of starts ({pairs}), exit codes {codes}: "
                f"{len(self.problems)} problems")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("--mpiexec", default=os.environ.get("MPIEXEC", shutil.which("mpirun")),
                        help="'' leaves out the runs of several processes")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="abtrain-endurance-")
    trial = Endurance(os.path.abspath(arguments.program), arguments.mpiexec, folder,
                      arguments.seed, lambda text: print(text, flush=True))
    trial.undisturbed()
    trial.kill(arguments.kills)
    trial.start_twice(arguments.starts)
    if trial.problems:
        print(f"what is wrong lies in {folder}: {', '.join(sorted(set(trial.problems)))}")
    else:
        shutil.rmtree(folder)
    print(trial.result())
    return 1 if trial.problems else 0


if __name__ == "__main__":
    sys.exit(main())
