"""Runs of many processes, with faults and resumes, as a user meets them.

ABTRAIN, ABTRAIN_FAULTS (the build that injects faults), KILL_AT_LIBRARY and
MPIEXEC name what is used.
"""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import unittest

from runs import PROGRAM, THREE, Runs


class Hosts(Runs):
    def test_a_stop_and_a_resume_give_the_same_bits(self):
        self.run_it("whole")
        for processes, number in [(0, signal.SIGTERM), (2, signal.SIGUSR1),
                                  (2, signal.SIGTERM)]:
            name = f"stopped{processes}{int(number)}"
            process = self.start(name, processes=processes)
            self.wait_for_step(process, name, 20)
            # One worker hears of it; all of them stop.
            os.kill(self.worker_pids(name)[-1], number)
            outcome = self.finish(process)
            self.assertEqual(outcome.code, 75, outcome)
            self.assertIn("--resume auto continues", outcome.err)
            self.assertFalse(self.path(name, "summary.json").exists())
            self.resumed(name, processes=processes)
            self.assertEqual(self.model("whole"), self.model(name))
            self.assertEqual(
                [(e["step"], e["loss"]) for e in self.events("whole", "step")],
                [(e["step"], e["loss"]) for e in self.events(name, "step")])
            self.assertEqual(self.traffic("whole"), self.traffic(name))

    def test_another_number_of_workers_goes_on(self):
        for name, first, then, sets in [
                ("halved", 4, 2, ["method.group_size=auto"]),
                ("doubled", 2, 4, []),
                ("alone", 4, 1, ["method.sync=only-b"]),
                ("both", 3, 2, ["method.trains=both", "method.group_size=1", "method.full_rank_steps=0"]),
                ("ddp", 3, 2, ["method.name=ddp"]),
                ("ordered", 3, 2, ["method.name=ddp", "order.name=cd-grab"]),
                ("local_sgd", 3, 2, ["method.name=local-sgd"]),
                ("diloco", 2, 4, ["method.name=diloco", "method.fragments=2",
                                  "method.delay=3"])]:
            sets = [*sets, "train.steps=0", "train.epochs=0.5", "data.batch_size=64"]
            process = self.start(name, f"workers={first}", *sets)
            self.wait_for_step(process, name, 20)
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(self.finish(process).code, 75)
            outcome = self.resumed(name, f"workers={then}", *sets)
            self.assertIn(f"by {first} workers", outcome.err)
            resume = self.events(name, "resume")[0]
            steps = self.summary(name)["steps"]
            self.assertAlmostEqual(steps, 30000 / (64 * then), delta=1)
            self.assertAlmostEqual(
                resume["step"] / steps,
                resume["checkpoint_step"] / (30000 / (64 * first)), delta=0.02)
            self.assertGreater(self.summary(name)["accuracy"], 0.5, name)

    # -- faults

    def test_a_crashed_worker_ends_the_run(self):
        self.run_it("whole", *THREE)
        for rank in (0, 2):
            name = f"crash{rank}"
            outcome = self.run_it(
                name, *THREE, processes=3, code=None,
                **self.fault(rank=rank, step=33, kind="crash"))
            self.assertNotIn(outcome.code, (0, 2, 65, 66, 70, 78))
            self.assertIn(f"worker {rank} on ", outcome.err)
            failure = self.failure(name)
            self.assertEqual(failure["exit_code"], 69)
            self.assertIn(f"worker {rank} on ", failure["message"])
            self.assertIn("is gone", failure["message"])
            self.assertEqual(failure["worker"], rank)
            self.resumed(name, *THREE, processes=3)
            self.assertEqual(self.model("whole"), self.model(name))
            self.assertFalse(self.path(name, "failure.json").exists())

    def test_a_hanging_worker_ends_the_run(self):
        # Of three, two wait in vain.
        for processes, rank in [(2, 1), (3, 0), (3, 1)]:
            name = f"hang{processes}{rank}"
            outcome = self.run_it(
                name, *THREE[:1 if processes == 3 else 0], "method.name=ddp",
                "train.timeout=3", processes=processes, code=69,
                **self.fault(rank=rank, step=15, kind="hang"))
            self.assertEqual(outcome.err.count("waited 3"), 1, outcome)
            self.assertIn(f"for worker {rank}, longer than train.timeout", outcome.err)
            self.assertIn("--resume auto", outcome.err)
            failure = self.failure(name)
            self.assertEqual(failure["exit_code"], 69)
            self.assertEqual(failure["worker"], rank)
            self.assertIn("train.timeout", failure["message"])

    def test_a_slow_worker_is_named(self):
        for name, rank, sets in [("slow1", 1, ["method.name=ddp"]), ("slow2", 2, [])]:
            outcome = self.run_it(name, *THREE, *sets, "train.steps=120", processes=3,
                                  **self.fault(rank=rank, step=0, kind="slow"))
            self.assertEqual(
                outcome.err.count(f"worker {rank} on {socket.gethostname()} makes the others wait"),
                1, outcome)
            self.assertEqual(outcome.err.count("makes the others wait"), 1, outcome)
            self.assertIn(f"; slowest: worker {rank} on", outcome.out)
            summary = self.summary(name)
            self.assertEqual(summary["slowest_worker"], rank)
            waiting = [w["waiting"] for w in summary["by_worker"]]
            self.assertEqual(min(waiting), waiting[rank], waiting)
            last = self.events(name, "workers")[-1]
            self.assertEqual(last["waiting"], waiting)
            for worker in summary["by_worker"]:
                self.assertEqual(worker["host"], socket.gethostname())

    def test_a_loss_that_is_not_finite_ends_the_run(self):
        # ddp: gradients are on their way when the loss is looked at.
        for processes, method in [(0, "ab"), (2, "ab"), (0, "ddp"), (2, "ddp")]:
            name = f"nan{processes}{method}"
            outcome = self.run_it(
                name, f"method.name={method}", processes=processes, code=70,
                **self.fault(rank=1, step=15, kind="nan"))
            self.assertIn("step 16: the loss of worker 1 is nan", outcome.err)
            self.assertEqual(outcome.err.count("the loss of worker 1"), 1)
            failure = self.failure(name)
            self.assertEqual(failure["exit_code"], 70)
            self.assertIn("loss of worker 1 is nan", failure["message"])
            self.assertEqual(failure["worker"], 1)

    def test_an_update_that_breaks_the_factors_ends_the_run(self):
        # The decomposition of their product comes right after it. tests/cli has one of threads.
        outcome = self.run_it(
            "broken", "method.full_rank_steps=0", "method.warmup_steps=10",
            "method.sync_every=10", "method.ramp=none", "train.steps=50",
            "train.clip_norm=0", "optimizer={name: sgd, lr: 1e-3}",
            "schedule={name: step, step_factor: 1e38,"
            " milestones: [0.37, 0.38], warmup_steps: 0}", processes=2, code=70)
        self.assertIn("cannot be decomposed", outcome.err)
        self.assertNotIn("linalg", outcome.err)
        failure = self.failure("broken")
        self.assertEqual(failure["exit_code"], 70)
        self.assertIn("layer 'fc", failure["message"])

    def test_a_damaged_checkpoint_is_left_aside(self):
        self.run_it("whole")
        for rank in (0, 1):
            name = f"corrupt{rank}"
            fault = self.fault(rank=rank, step=35, kind="corrupt-checkpoint")
            # Evaluations keep the run from ending before it is killed.
            sets = ("checkpoint.keep=9", "evaluate.every=5")
            # Step 30 is kept even if step 50 is saved before the run is killed.
            process = self.start(name, *sets, **fault)
            self.wait_for_step(process, name, 45)
            process.kill()
            self.finish(process)
            shutil.rmtree(
                self.path(name, "checkpoints", "step-0000000050"),
                ignore_errors=True)
            outcome = self.resumed(name, *sets)
            self.assertIn("checkpoint skipped", outcome.err)
            self.assertIn(f"worker-0000{rank}.safetensors", outcome.err)
            self.assertEqual(
                self.events(name, "resume")[0]["checkpoint_step"], 30)
            self.assertEqual(self.model("whole"), self.model(name))

    def test_a_full_disk_costs_only_that_checkpoint(self):
        self.run_it("whole")
        for processes, rank in [(0, 0), (2, 1)]:
            name = f"full{processes}"
            outcome = self.run_it(
                name, "checkpoint.keep=9", processes=processes,
                **self.fault(rank=rank, step=35, kind="disk-full"))
            self.assertIn("step 40", outcome.err)
            self.assertIn("File too large", outcome.err)
            there = sorted(p.name for p in self.path(name, "checkpoints").iterdir())
            self.assertEqual(
                there, [f"step-{n:010}" for n in (10, 20, 30, 50, 60)])
            self.assertEqual(
                [e["saved"] for e in self.events(name, "checkpoint")],
                [True, True, True, False, True, True])
            self.assertEqual(self.model("whole"), self.model(name))

    # -- what a user gets wrong

    def test_errors_before_the_start_come_once(self):
        outcome = self.run_it("wrong", "method.sync_evry=3", processes=3, code=78)
        self.assertEqual(outcome.err.count("sync_evry"), 2, outcome)  # key, caret
        outcome = self.run_it("wrong", "workers=2", processes=3, code=78)
        self.assertEqual(outcome.err.count("3 processes"), 1, outcome)
        outcome = self.run_it(
            "wrong", *THREE, "data.root=/nowhere", processes=3, code=66)
        self.assertEqual(outcome.err.count("was not found"), 1, outcome)
        self.assertFalse(self.path("wrong").exists())

    def test_without_plugins_for_mpi_they_are_named(self):
        program = self.folder / "bin/abtrain"
        program.parent.mkdir()
        shutil.copy(PROGRAM, program)
        environment = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2",
                       "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        outcome = self.run_it("wrong", program=str(program), env=environment, code=78)
        self.assertIn("MPI is needed, but not in this build: "
                      "lib/abtrain/abtrain_mpi_openmpi.so (Open MPI)", outcome.err)
        # Threads need none.
        self.run_it("threads", program=str(program))

    def test_back_ends_that_cannot_work_are_refused(self):
        outcome = self.run_it("wrong", "comm=mpi", code=78)
        self.assertIn("mpirun -np 2", outcome.err)
        outcome = self.run_it("wrong", "comm=local", processes=2, code=78)
        self.assertIn("threads of one process", outcome.err)
        environment = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "::",
                       "MASTER_PORT": "x"}
        outcome = self.run_it("wrong", env=environment, code=2)
        self.assertIn("MASTER_PORT", outcome.err)

    def test_the_best_checkpoint_stays(self):
        self.run_it("best", "data.validation=200", "evaluate.every=8",
                    "checkpoint.every=0", "checkpoint.keep=1")
        held = {e["step"]: e["validation_accuracy"]
                for e in self.events("best", "evaluate") if not e["final"]}
        best = max(held.values())
        first_best = min(s for s, a in held.items() if a == best)
        there = [json.loads((p / "manifest.json").read_text())
                 for p in self.path("best", "checkpoints").iterdir()]
        self.assertIn(first_best, [m["step"] for m in there])
        self.assertEqual(max(m["validation_accuracy"] for m in there), best)
        self.assertLessEqual(len(there), 2)

    # -- slow

    def test_slow_another_number_of_workers_is_as_accurate(self):
        def words(name, workers, *extra):
            # The same images per step, whoever takes them.
            return [PROGRAM, "--config", "fashion_mnist_mlp", "--name", name,
                    "--output", str(self.folder / "runs"),
                    "--set", f"workers={workers}", "--set", "method.group_size=auto",
                    "--set", f"data.batch_size={256 // workers}", *extra]

        def run_words(words, code=0):
            outcome = subprocess.run(
                words, capture_output=True, text=True, check=False)
            self.assertEqual(outcome.returncode, code, outcome.stderr)

        for first, then in [(4, 2), (2, 4)]:
            name, whole = f"from{first}to{then}", f"whole{first}"
            run_words(words(whole, first))
            process = subprocess.Popen(
                words(name, first), stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            self.wait_for_step(process, name, 500)
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.wait(), 75)
            run_words(words(name, then, "--resume", "auto"))
            self.assertAlmostEqual(
                self.summary(whole)["accuracy"],
                self.summary(name)["accuracy"], delta=0.005)

    def test_slow_kills_at_random_moments(self):
        self.run_it("whole", "train.steps=240", "checkpoint.every=7")
        rng = random.Random(5)
        for k in range(20):
            name = f"killed{k}"
            process = self.start(
                name, "train.steps=240", "checkpoint.every=7", processes=2)
            self.wait_for_step(process, name, rng.randrange(5, 200))
            time.sleep(rng.random() * 0.2)
            pids = self.worker_pids(name)
            if pids:
                os.kill(rng.choice(pids), signal.SIGKILL)
            self.finish(process)
            self.resumed(name, "train.steps=240", "checkpoint.every=7", processes=2)
            self.assertEqual(self.model("whole"), self.model(name), k)
            shutil.rmtree(self.path(name))

    def test_slow_kills_at_every_system_call_of_a_save(self):
        sets = ["train.steps=12", "checkpoint.every=4", "checkpoint.keep=1",
                "evaluate.every=0", "method.warmup_steps=3", "method.sync_every=4"]
        library = os.environ["KILL_AT_LIBRARY"]
        count = self.folder / "count"
        self.run_it("whole", *sets, env={"LD_PRELOAD": library,
                                         "KILL_COUNT": str(count)})
        calls = int(count.read_text())
        self.assertGreater(calls, 40)
        for k in range(1, calls + 1):
            outcome = self.run_it("killed", *sets, code=None, env={
                "LD_PRELOAD": library, "KILL_AT": str(k)})
            self.assertIn(outcome.code, (-9, 0))
            self.resumed("killed", *sets)
            self.assertEqual(self.model("whole"), self.model("killed"), k)
            left = [p.name for p in self.path("killed", "checkpoints").iterdir()]
            # Killed while it was being removed, the old one may still be there.
            self.assertIn("step-0000000012", left)
            self.assertLessEqual(
                set(left), {"step-0000000008", "step-0000000012"}, k)
            shutil.rmtree(self.path("killed"))


if __name__ == "__main__":
    unittest.main()
