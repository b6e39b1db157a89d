"""The sweep of three group sizes, three energies and two seeds on Fashion-MNIST,
from one command here and as an array on a real Slurm of one node:
    python3 tests/slurm/test_sweep.py PROGRAM [unittest's arguments]
Both are interrupted and called again, which must repeat nothing; both must come
to the same table. A sweep with halving comes to the same choices either way. Ends
with 77 where no Slurm can be started.
"""

import json
import re
import shutil
import signal
import statistics
import subprocess

from batch_jobs import ROOT, BatchJobs, main

SHORT = ["--set", "train={steps: 60, log_every: 5}",
         "--set", "model.hidden=[64, 64]",
         "--set", "method={warmup_steps: 10, sync_every: 20, full_rank_steps: 2}",
         "--set", "schedule.warmup_steps=5",
         "--set", "checkpoint.every=20",
         "--set", "evaluate={every: 0, batch_size: 500}"]
POINTS = 18
RIVALS = """
base: fashion_mnist_mlp
name: weighed
set:
  workers: 2
  model.hidden: [64, 64]
  schedule.warmup_steps: 5 %
  checkpoint.every: 0
  evaluate: {every: 0, batch_size: 500}
halving:
  pilot: {data.validation: 1000}
  rivals:
    ddp:
      set: {method.name: ddp, train.steps: 48}
      tune: [{}, {optimizer.lr: 4e-3}, {optimizer.lr: 1e-2}]
    local:
      set: {method.name: local-sgd, method.warmup_steps: 0, method.sync_every: 4, train.steps: 48}
      tune: [{}, {optimizer.lr: 4e-3}, {optimizer.lr: 1e-2}]
seeds: 2
"""

# The first of five points diverges at once.
RATES = """
base: fashion_mnist_mlp
name: rates
set: {workers: 2, method.name: ddp, model.hidden: [64, 64], train.steps: 400,
      schedule.warmup_steps: 0, checkpoint.every: 50, evaluate: {every: 0, batch_size: 500}}
grid:
  optimizer.lr: [1.0e+30, 1.0e-3, 2.0e-3, 3.0e-3, 4.0e-3]
"""
# An image whose run script is the program, as that of packaging/apptainer.def.
APPTAINER = """#!/bin/sh
test "$1 $2 $(cat "$3")" = "run --nv image" || exit 99
shift 3
exec {program} "$@"
"""


class Sweep(BatchJobs):
    def arguments(self, place):
        return ["fashion_mnist_groups", *SHORT, "--output", place]

    def finished(self, place):
        """What the finished points have written, by folder: times of the
        files."""
        return {
            folder.name: [f.stat().st_mtime_ns for f in sorted(folder.iterdir())
                          if f.is_file() and f.name != "log.txt"]
            for folder in (self.folder / place / "fashion_mnist_groups").iterdir()
            if (folder / "summary.json").exists()}

    def wait_finished(self, place, count):
        folder = self.folder / place / "fashion_mnist_groups"
        self.slurm.wait_for(
            lambda: len(list(folder.glob("*/summary.json"))) >= count,
            300, f"{count} finished points")

    def check_all(self, place, before):
        """All are finished, and those of before were left as they were."""
        after = self.finished(place)
        self.assertEqual(len(after), POINTS)
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertEqual(
            {row[3] for row in self.points(*self.arguments(place))},
            {"finished"})

    def table(self, place):
        """By setting, without the seed: means of what a run has but times."""
        settings = {}
        for index, point, folder, state in self.points(*self.arguments(place)):
            summary = json.loads(
                (self.folder / folder / "summary.json").read_text())
            self.assertEqual(summary["steps"], 60)
            self.assertEqual(summary["workers"], 8)
            settings.setdefault(point.rpartition(",seed=")[0], []).append(
                [summary["accuracy"], summary["loss"],
                 summary["compression_ratio"],
                 summary["traffic"]["bytes_per_worker"],
                 summary["traffic"]["vs_fp32"],
                 *[layer["rank"] for layer in summary["layers"]]])
        self.assertEqual(len(settings), 9)
        return {setting: [statistics.mean(column) for column in zip(*runs)]
                for setting, runs in settings.items()}

    def report(self, place):
        """The table of `abtrain report`, unrounded, without its times."""
        return subprocess.run(
            [self.program, "report", f"{place}/fashion_mnist_groups",
             "--format", "csv", "--columns",
             "accuracy,loss,compression_ratio,bytes,vs_fp32,sent_bits"],
            cwd=self.folder, env=self.slurm.env, text=True,
            capture_output=True, check=True, timeout=60).stdout

    def sweep_here(self):
        """One command, stopped in the middle and called again."""
        command = [self.program, "sweep", *self.arguments("here"), "--jobs", "2"]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.slurm.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_finished("here", 5)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 75, errors)
        before = self.finished("here")
        self.assertLess(len(before), POINTS)
        again = subprocess.run(
            command, cwd=self.folder, env=self.slurm.env, text=True,
            capture_output=True, timeout=600)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(f"{len(before)} of {POINTS} points are finished already",
                      again.stderr)
        self.assertEqual(again.stderr.count(" % in "), POINTS - len(before))
        self.assertIn(f"[{POINTS}/{POINTS}] ", again.stderr)
        self.check_all("here", before)
        # The report of all: a row a setting.
        self.assertEqual(again.stdout.count("keep=0.7"), 3, again.stdout)
        self.assertEqual(again.stdout.count("keep=0.9"), 3, again.stdout)

    def sweep_on_slurm(self):
        """One array, cancelled in the middle and submitted again."""
        arguments = self.arguments("slurm")
        self.sweep(*arguments, "--emit-slurm", "groups.sh")
        script = (self.folder / "groups.sh").read_text()
        self.assertIn(f"#SBATCH --array=0-{POINTS - 1}\n", script)
        self.assertIn("#SBATCH --ntasks=8\n", script)
        job = self.submit("groups.sh")
        self.wait_finished("slurm", 3)
        self.slurm.run("scancel", job)
        self.slurm.wait_for(
            lambda: not self.slurm.run("squeue", "-h").stdout.strip(),
            120, "the end of the cancelled array")
        before = self.finished("slurm")
        self.assertLess(len(before), POINTS)
        again = self.submit("groups.sh")
        for task in range(POINTS):
            self.wait_state(f"{again}_{task}", "COMPLETED", 600)
        self.check_all("slurm", before)

    def chosen(self, place):
        """What each rival's pilots chose, and the accuracies at full length."""
        folder = self.folder / place / "weighed"
        tuning = json.loads((folder / "tuning.json").read_text())
        runs = {path.parent.name: json.loads(path.read_text())
                for path in folder.glob("*/summary.json")}
        return ([(rival["name"], rival["pilots"], rival["chosen"])
                 for rival in tuning["rivals"]],
                {name: (run["steps"], run["accuracy"])
                 for name, run in sorted(runs.items())})

    def test_rounds_here_and_on_slurm_choose_the_same(self):
        (self.folder / "weighed.yaml").write_text(RIVALS)
        self.sweep("weighed.yaml", "--output", "here")
        self.sweep("weighed.yaml", "--output", "slurm", "--emit-slurm", "rounds.sh")
        said = self.slurm.run("bash", "rounds.sh", cwd=self.folder).stdout
        jobs = [line.rpartition(" ")[2] for line in said.splitlines()]
        self.assertEqual(len(jobs), 4, said)
        # Settings, those in place of repeated ones (none is needed), two of each rival with two
        # seeds, then two seeds at full length.
        for job, tasks in zip(jobs, (6, 6, 8, 4)):
            for task in range(tasks):
                self.wait_state(f"{job}_{task}", "COMPLETED", 600)
        chosen, runs = self.chosen("slurm")
        self.assertEqual(len(runs), 4)
        # The job that ends last prints the report, which begins with who is best.
        printed = "".join(path.read_text() for path in self.folder.glob(f"*{jobs[-1]}_*.out"))
        first = self.slurm.run(
            self.program, "report", "slurm/weighed", cwd=self.folder).stdout.split("\n")[0]
        self.assertRegex(first, "^In 48 steps, ")
        self.assertIn(first + "\n\nrun ", printed)
        self.assertTrue((self.folder / "slurm/weighed/report.html").exists())
        self.assertEqual((chosen, runs), self.chosen("here"))

    def test_several_points_per_job_in_an_image_with_options_of_sbatch(self):
        """The program's own scripts are gone when the jobs run, as if they were in the
        image, and only the hook finds the launcher."""
        folder = self.folder / "cluster"
        (folder / "bin").mkdir(parents=True)
        (folder / "rates.yaml").write_text(RATES)
        (folder / "my image.sif").write_text("image")
        (folder / "bin/apptainer").write_text(APPTAINER.format(program=self.program))
        (folder / "bin/apptainer").chmod(0o755)
        (folder / "slurm-hook.sh").write_text("export PATH=$PWD/bin:$PATH; echo $nothing\n")
        for name in ("slurm", "scripts"):
            shutil.copytree(ROOT / name, folder / "image" / name)
        said = self.slurm.run(
            "env", f"ABTRAIN_ROOT={folder}/image", self.program, "sweep", "rates.yaml",
            "--emit-slurm", "rates.sh", "--points-per-job", "2", "--jobs", "3",
            "--launcher", "apptainer run --nv 'my image.sif'",
            "--sbatch", "--comment=two words", "--sbatch=-t 7", cwd=folder).stderr
        self.assertIn("5 points in 3 jobs", said)
        shutil.rmtree(folder / "image")
        job = self.slurm.run("env", "-u", "ABTRAIN", "sbatch", "--parsable", "rates.sh",
                             cwd=folder).stdout.strip()
        # The second job is stopped in its first point and continues.
        points = self.points("cluster/rates.yaml", "--output", "cluster/runs")
        third = self.folder / points[2][2]
        self.slurm.wait_for(lambda: list(third.glob("checkpoints/step-*")), 120, "a checkpoint")
        self.slurm.run("scancel", "--signal=USR1", f"{job}_1")
        self.wait_state(f"{job}_0", "FAILED")
        for task in (1, 2):
            self.wait_state(f"{job}_{task}", "COMPLETED")
        first = self.slurm.job(f"{job}_0")
        self.assertEqual(first["ExitCode"], "70:0")
        self.assertEqual(first["TimeLimit"], "00:07:00")
        self.assertIn("Comment=two words", self.slurm.run(
            "scontrol", "show", "job", f"{job}_0").stdout)
        self.assertEqual(
            [row[3] for row in self.points("cluster/rates.yaml", "--output", "cluster/runs")],
            ["failed", *["finished"] * 4])
        logs = [(folder / f"rates-{job}_{task}.out").read_text() for task in range(3)]
        for log, trained in zip(logs, ([0, 1], [2, 2, 3], [4])):
            self.assertIn("sourcing", log)
            self.assertEqual(re.findall(r": apptainer run --nv my image.sif .* --task (\d+)\n", log),
                             [str(point) for point in trained], log)
        self.assertIn("back into the queue", logs[1])

    def test_here_and_on_slurm_are_the_same_table(self):
        self.sweep_here()
        self.sweep_on_slurm()
        self.assertEqual(self.table("slurm"), self.table("here"))
        report = self.report("here")
        self.assertEqual(report.count("\n"), 10, report)
        self.assertEqual(self.report("slurm"), report)


if __name__ == "__main__":
    main()
