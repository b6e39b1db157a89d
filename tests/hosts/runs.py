"""Starts runs of abtrain, of one or many processes, and looks at what they left."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = os.environ["ABTRAIN"]
FAULTS = os.environ.get("ABTRAIN_FAULTS", "")
MPIEXEC = os.environ.get("MPIEXEC", "")  # Open MPI's
MPIEXEC_MPICH = os.environ.get("MPIEXEC_MPICH", "")
MPIEXEC_ULFM = os.environ.get("MPIEXEC_ULFM", "")  # outlives a lost process
MPIEXEC_INTEL = os.environ.get("MPIEXEC_INTEL", "")
CONFIGS = str(Path(__file__).resolve().parents[2] / "configs")
LIMIT = 120  # seconds for one run: far more than any takes

SMALL = [
    "workers=2", "model.hidden=[24,20]", "data.batch_size=8", "train.steps=60",
    "method.group_size=1", "method.warmup_steps=6", "method.sync_every=9",
    "method.full_rank_steps=2", "method.rank={rule: fixed, rank: 5}",
    "optimizer.lr=5e-3", "schedule.warmup_steps=4", "train.threads=1",
    "train.log_every=5", "evaluate.every=25", "checkpoint.every=10",
    "device=cpu",
]


THREE = ["workers=3", "method.sync=only-b"]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def environment(**more):
    """For runs of the program and of mpiexec."""
    return {**os.environ, "ABTRAIN_CONFIGS": CONFIGS, "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1", **more}


def pids_of(programs, name):
    """Of the processes of a run: not of its launcher."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = entry.joinpath("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].decode(errors="replace") in programs and name.encode() in words:
            found.append(int(entry.name))
    return sorted(found)


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Outcome:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit {self.code}\n{self.out}\n{self.err}"


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="abtrain-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def needs(self, launcher, name):
        if not launcher:
            self.lacks(f"this build has no {name}, or its mpiexec is missing")

    def needs_mpi(self):
        self.needs(MPIEXEC, "Open MPI")

    def lacks(self, what):
        """A part that scripts/setup.sh --tests brings: without it, scripts/test.sh fails."""
        if os.environ.get("ABTRAIN_TESTS_COMPLETE"):
            self.fail(f"{what}: run scripts/setup.sh --tests and configure again")
        self.skipTest(what)

    def command(self, name, *sets, processes=0, program=PROGRAM, extra=(), mpich=False,
                ulfm=False, launcher=()):
        launcher = [*launcher, "-np", str(processes)] if launcher else []
        if launcher:
            pass
        elif ulfm:
            self.needs(MPIEXEC_ULFM, "fault-tolerant Open MPI")
            launcher = [MPIEXEC_ULFM, "--with-ft", "ulfm", "--oversubscribe", "--bind-to", "none",
                        "-np", str(processes)]
        elif mpich:
            self.needs(MPIEXEC_MPICH, "MPICH")
            launcher = [MPIEXEC_MPICH, "-np", str(processes)]
        elif processes:
            self.needs_mpi()
            launcher = [MPIEXEC, "--oversubscribe", "--bind-to", "none", "-np",
                        str(processes)]
        words = [program, "--config", "fashion_mnist_mlp", "--name", name,
                 "--output", str(self.folder / "runs")]
        for entry in [*SMALL, *sets]:
            words += ["--set", entry]
        return [*launcher, *words, *extra]

    def start(self, *args, env=None, **keys):
        return subprocess.Popen(
            self.command(*args, **keys), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            env=environment(**(env or {})))

    def finish(self, process):
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            self.fail(f"hangs:\n{out}\n{err}")
        return Outcome(process.returncode, out, err)

    def run_it(self, *args, code=0, **keys):
        outcome = self.finish(self.start(*args, **keys))
        if code is not None:
            self.assertEqual(outcome.code, code, outcome)
        return outcome

    def resumed(self, *args, extra=(), **keys):
        return self.run_it(*args, extra=("--resume", "auto", *extra), **keys)

    def path(self, name, *parts):
        return self.folder.joinpath("runs", name, *parts)

    def model(self, name):
        return self.path(name, "model.safetensors").read_bytes()

    def summary(self, name):
        return json.loads(self.path(name, "summary.json").read_text())

    def traffic(self, name):
        """Without the metrics, of which saves send some too."""
        traffic = self.summary(name)["traffic"]
        del traffic["by_purpose"]["metrics"]
        return traffic

    def failure(self, name):
        return json.loads(self.path(name, "failure.json").read_text())

    def events(self, name, kind):
        lines = self.path(name, "metrics.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e["event"] == kind]

    def wait_for_step(self, process, name, step):
        """Until the log of the run has passed the step."""
        for _ in range(LIMIT * 50):
            try:
                if any(e["step"] >= step for e in self.events(name, "step")):
                    return
            except (FileNotFoundError, json.JSONDecodeError):
                pass
            if process.poll() is not None:
                return
            time.sleep(0.02)
        self.fail(f"no step {step}")

    def worker_pids(self, name):
        return pids_of((PROGRAM, FAULTS), name)

    def fault(self, **values):
        text = ",".join(f"{k}={v}" for k, v in values.items())
        return {"program": FAULTS, "env": {"ABTRAIN_FAULT": text}}
