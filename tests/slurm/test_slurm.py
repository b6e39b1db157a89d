"""The batch files, unedited, on a real Slurm of one node:
    python3 tests/slurm/test_slurm.py PROGRAM [unittest's arguments]
Jobs are signaled, killed, preempted and cancelled; what they train in the end
must be what a run without all that trains, to the byte. Ends with 77 where no
Slurm can be started.
"""

import json
import os
import signal

from batch_jobs import ROOT, BatchJobs, main

STEPS = 2000

CONFIG = f"""
name: small
seed: 3
device: cpu
data: {{name: fashion-mnist, batch_size: 64}}
model: {{name: mlp, hidden: [512, 512]}}
method:
  name: ab
  group_size: 2
  warmup_steps: 60
  sync_every: 100
  full_rank_steps: 10
  rank: {{rule: ratio, ratio: 4}}
train: {{steps: {STEPS}, log_every: 5, threads: 1}}
checkpoint: {{every: 100 steps, keep: 2}}
evaluate: {{every: 1 epoch}}
"""

SWEEP = """
base: small.yaml
set: {workers: 2, method.group_size: 1}
grid:
  method.rank: [{rule: ratio, ratio: 8}, {rule: ratio, ratio: 3}]
"""
FIRST = ["--set", "method.group_size=1",
         "--set", "method.rank={rule: ratio, ratio: 8}"]
TWO_TASKS = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1"]


class BatchFiles(BatchJobs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.folder / "small.yaml").write_text(CONFIG)
        (cls.folder / "sweep.yaml").write_text(SWEEP)
        cls.sweep("sweep.yaml", "--emit-slurm", "sweep.sh")
        # The run without interruptions, for all tests.
        cls.reference = cls.train("reference")
        cls.wait_state(cls.reference, "COMPLETED")

    @classmethod
    def train(cls, name, *options):
        """Submits the run of the sweep's first point under a name."""
        return cls.submit(
            *TWO_TASKS, *options, ROOT / "slurm/train.sbatch", "small.yaml",
            "--name", name, *FIRST)

    def wait_steps(self, job, name, steps=30):
        """Waits until a run has logged so many steps; fails if it has ended."""
        def begun():
            self.assertIn(self.slurm.job(job)["JobState"],
                          ("PENDING", "CONFIGURING", "RUNNING"),
                          f"{name} ended before it was disturbed")
            return any(s >= steps for s in self.steps(name))
        self.slurm.wait_for(begun, 60, f"step {steps} of {name}")

    def wait_job(self, job, seconds=60, **fields):
        def so():
            now = self.slurm.job(job)
            return all(now.get(k) == v for k, v in fields.items())
        self.slurm.wait_for(so, seconds, f"{fields} of job {job}")

    def steps(self, name):
        """The steps of the `step` events; a line being written is left out."""
        path = self.folder / "runs" / name / "metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        events = [json.loads(x) for x in text.split("\n")[:-1]]
        return [e["step"] for e in events if e["event"] == "step"]

    def content(self, name, file="model.safetensors"):
        return (self.folder / "runs" / name / file).read_bytes()

    def check_finished(self, name):
        summary = json.loads(self.content(name, "summary.json"))
        self.assertEqual(summary["steps"], STEPS)
        self.assertEqual(summary["workers"], 2)
        self.assertEqual(self.steps(name), self.steps("reference"))
        return summary

    def check_same_as_reference(self, name):
        summary = self.check_finished(name)
        reference = self.check_finished("reference")
        self.assertEqual(self.content(name), self.content("reference"))
        for key in ("accuracy", "loss"):
            self.assertEqual(summary.get(key), reference.get(key))

    def kill_task(self, job, task):
        """kill -9 for one process of a job's step."""
        rows = self.slurm.run("scontrol", "listpids", job).stdout.split("\n")
        found = [row.split() for row in rows[1:]]
        pids = [int(row[0]) for row in found
                if len(row) == 5 and row[2].isdigit() and row[4] == str(task)]
        self.assertTrue(pids, rows)
        os.kill(pids[0], signal.SIGKILL)

    def test_a_signaled_array_task_is_requeued_and_ends_the_same(self):
        names = [row[2].removeprefix("runs/")
                 for row in self.points("sweep.yaml")]
        job = self.submit("sweep.sh")
        first, second = f"{job}_0", f"{job}_1"
        self.wait_steps(first, names[0])
        self.slurm.run("scancel", "--signal=USR1", first)
        self.wait_job(first, Restarts="1", JobState="PENDING")
        self.assertIn(f"job {first}: exit code 75", self.log(first))
        stopped_at = self.steps(names[0])[-1]
        self.assertLess(stopped_at, STEPS)
        self.assertEqual(self.points("sweep.yaml")[0][3], "started")

        self.wait_state(first, "COMPLETED")
        self.wait_state(second, "COMPLETED")
        self.assertEqual(self.slurm.job(first)["Restarts"], "1")
        self.assertEqual(self.slurm.job(second)["Restarts"], "0")
        self.assertIn(f"job {first}, start 2", self.log(first))
        self.check_same_as_reference(names[0])
        self.check_finished(names[1])
        self.assertNotEqual(self.content(names[1]), self.content(names[0]))
        self.assertEqual([row[3] for row in self.points("sweep.yaml")],
                         ["finished"] * 2)

        # Submitted once more, there is nothing left to do.
        model = self.folder / "runs" / names[0] / "model.safetensors"
        written = model.stat().st_mtime_ns
        again = self.submit("--array=0", "sweep.sh")
        self.wait_state(f"{again}_0", "COMPLETED", 60)
        self.assertEqual(model.stat().st_mtime_ns, written)
        self.assertIn("this run has finished", self.log(f"{again}_0"))
        self.check_same_as_reference(names[0])

    def test_a_killed_worker_is_restarted_within_the_job(self):
        job = self.train("killed")
        self.wait_steps(job, "killed", 120)  # behind the first checkpoint
        self.kill_task(job, 1)
        self.wait_state(job, "COMPLETED")
        self.assertEqual(self.slurm.job(job)["Restarts"], "0")
        self.assertRegex(self.log(job), r"exit code \d+: restart 1 of 3 in 1 s")
        self.assertNotIn("restart 2", self.log(job))
        self.check_same_as_reference("killed")

    def test_a_step_that_is_not_launched_is_no_success(self):
        # What stands there already stops the launch of the next job's first step.
        job = str(int(self.submit("--output=/dev/null", "--wrap=true")) + 1)
        (self.slurm.folder / f"pmix/spmix_appdir_0_{job}.0").mkdir()
        self.assertEqual(self.train("launched"), job)
        self.wait_state(job, "COMPLETED")
        self.assertIn("step.sh: srun started nothing", self.log(job))
        self.assertIn("exit code 69: restart 1 of 3", self.log(job))
        self.check_same_as_reference("launched")

    def test_a_preempted_job_goes_on(self):
        job = self.train("preempted")
        self.wait_steps(job, "preempted")
        urgent = self.slurm.run(
            "sbatch", "--parsable", "--partition=urgent", "--ntasks=8",
            "--output=/dev/null", "--wrap=true").stdout.strip()
        self.wait_state(urgent, "COMPLETED")
        self.wait_state(job, "COMPLETED")
        self.assertEqual(self.slurm.job(job)["Restarts"], "1")
        self.assertIn(f"job {job}: exit code 75", self.log(job))
        self.assertIn("left to Slurm", self.log(job))
        self.check_same_as_reference("preempted")

    def test_a_cancelled_job_stays_cancelled_and_can_be_sent_again(self):
        job = self.train("cancelled")
        self.wait_steps(job, "cancelled")
        self.slurm.run("scancel", job)
        self.wait_state(job, "CANCELLED")
        self.assertIn(f"job {job}: exit code 75", self.log(job))
        self.assertEqual(self.slurm.job(job)["Restarts"], "0")
        again = self.train("cancelled")
        self.wait_state(again, "COMPLETED")
        self.check_same_as_reference("cancelled")

    def test_a_hook_may_set_the_words_that_start_the_program(self):
        folder = self.folder / "hooked"
        folder.mkdir()
        (folder / "slurm-hook.sh").write_text(
            f"echo from $nothing the hook; ABTRAIN=\"env A=1 '{self.program}'\"\n")
        job = self.slurm.run(
            "sbatch", "--parsable", *TWO_TASKS, ROOT / "slurm/train.sbatch", "../small.yaml",
            "--set", "train.steps=4", *FIRST, cwd=folder).stdout.strip()
        self.wait_state(job, "COMPLETED")
        log = (folder / f"abtrain-{job}.out").read_text()
        self.assertIn("from the hook\n", log)
        self.assertIn(f": env A=1 {self.program} train --config ../small.yaml", log)

    def test_what_cannot_be_started_says_why(self):
        train = ROOT / "slurm/train.sbatch"
        script = (self.folder / "sweep.sh").read_text()
        (self.folder / "no_array.sh").write_text(
            script.replace("#SBATCH --array=0-1\n", ""))
        for says, code, arguments in (
                ("no task of this array: sbatch --array=0-1, got '2'", 2,
                 ["--array=2", "sweep.sh"]),
                ("no task of this array: sbatch --array=0-1, got ''", 2, ["no_array.sh"]),
                ("has 2 workers, but the launcher has started 3", 78,
                 ["--array=0", "--ntasks=3", "sweep.sh"]),
                ("no configuration", 2, [*TWO_TASKS, train]),
                ("none.yaml", 66, [*TWO_TASKS, train, "none.yaml"])):
            with self.subTest(says):
                self.check_refused(says, code, *arguments)


if __name__ == "__main__":
    main()
