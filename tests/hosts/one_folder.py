"""Two programs in one run folder, stops before the first step, and runs that are disturbed at
random moments (endurance.py does much more of that).

ABTRAIN, ABTRAIN_FAULTS and MPIEXEC name what is used.
"""
import json
import os
import signal
import subprocess
import time
import unittest

import endurance
from runs import LIMIT, MPIEXEC, PROGRAM, Runs, environment


class OneFolder(Runs):
    def lock(self, name):
        return json.loads(self.path(name, "lock.json").read_text())

    def test_a_second_program_is_refused(self):
        self.run_it("whole", "train.steps=300")
        for name, first, second in [("tt", 0, 0), ("pt", 2, 0), ("tp", 0, 2)]:
            process = self.start(name, "train.steps=300", processes=first)
            self.wait_for_step(process, name, 5)
            stopped = self.lock(name)["pid"]
            os.kill(stopped, signal.SIGSTOP)  # it must not end before the second comes
            outcome = self.resumed(
                name, "train.steps=300", processes=second, code=75)
            self.assertEqual(outcome.err.count("is in use by process "), 1, outcome)
            self.assertIn(f"process {self.lock(name)['pid']} on ", outcome.err)
            self.assertFalse(self.path(name, "failure.json").exists())
            os.kill(stopped, signal.SIGCONT)
            self.assertEqual(self.finish(process).code, 0)
            self.assertEqual(self.model("whole"), self.model(name))
            self.assertEqual(len(self.events(name, "step")),
                             len(self.events("whole", "step")))
            self.assertFalse(self.path(name, "lock.json").exists())

    def test_a_killed_run_holds_its_folder_no_longer(self):
        self.run_it("whole")
        for processes in (0, 2):
            name = f"killed{processes}"
            process = self.start(name, processes=processes)
            self.wait_for_step(process, name, 20)
            os.kill(self.lock(name)["pid"], signal.SIGKILL)
            self.finish(process)
            self.assertTrue(self.path(name, "lock.json").exists())
            self.resumed(name, processes=processes)
            self.assertEqual(self.model("whole"), self.model(name))

    def test_a_run_without_its_lock_ends(self):
        for processes in (0, 2):
            name = f"robbed{processes}"
            process = self.start(name, "train.steps=1000000", processes=processes)
            self.wait_for_step(process, name, 5)
            thief = self.path(name, "lock.thief")
            thief.write_text(json.dumps({**self.lock(name), "host": "thief"}))
            thief.rename(self.path(name, "lock.json"))
            outcome = self.finish(process)
            self.assertEqual(outcome.code, 74, outcome)
            self.assertIn("it is held by process ", outcome.err)
            self.assertIn(" on thief", outcome.err)
            self.assertEqual(self.lock(name)["host"], "thief")
            self.assertFalse(self.path(name, "failure.json").exists())

    def test_a_signal_ends_set_up(self):
        # An eigendecomposition of 5000 x 5000, in one call of LAPACK.
        slow = ["model.hidden=[5000,5000]", "model.init=orthogonal", "workers=2",
                "method.name=ddp"]
        for processes, number in [(0, signal.SIGTERM), (0, signal.SIGINT),
                                  (2, signal.SIGTERM)]:
            name = f"early{processes}{int(number)}"
            process = self.start(name, *slow, processes=processes)
            for _ in range(LIMIT * 20):
                if self.path(name, "lock.json").exists() or process.poll() is not None:
                    break
                time.sleep(0.05)
            time.sleep(1.5)
            begin = time.monotonic()
            os.kill(self.worker_pids(name)[-1], number)
            outcome = self.finish(process)
            self.assertLess(time.monotonic() - begin, 8)
            self.assertEqual(outcome.code, 75, outcome)
            self.assertEqual(outcome.err.count("before the first step"), 1, outcome)
            self.assertIn(signal.Signals(number).name, outcome.err)
            self.assertFalse(self.path(name).exists())

    def test_a_signal_while_the_program_loads(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            env = {"LD_PRELOAD": os.environ["KILL_AT_LIBRARY"],
                   "RAISE_EARLY": str(int(number))}
            outcome = self.run_it("early", env=env, code=75)
            self.assertIn(f"stopped by {number.name} before the first step", outcome.err)
            self.assertFalse(self.path("early").exists())
            # What is not stopped before its end dies as other programs do.
            plan = subprocess.run([PROGRAM, "plan", "fashion_mnist_mlp"], check=False,
                                  capture_output=True, env=environment(**env))
            self.assertEqual(plan.returncode, -number)

    def test_a_signal_ends_the_wait_for_other_processes(self):
        process = self.start("alone", env={
            "RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"})
        time.sleep(2)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        outcome = self.finish(process)
        self.assertLess(time.monotonic() - begin, 8)
        self.assertEqual(outcome.code, 75, outcome)
        self.assertIn("waiting for the other", outcome.err)

    def test_disturbed_runs_end_as_others_do(self):
        shown = []
        trial = endurance.Endurance(PROGRAM, MPIEXEC, self.folder / "runs", 3, shown.append)
        trial.undisturbed()
        trial.kill(6)
        trial.start_twice(2)
        self.assertFalse(trial.problems, "\n".join(shown))


if __name__ == "__main__":
    unittest.main()
