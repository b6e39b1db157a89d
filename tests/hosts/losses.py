"""Runs that lose workers and go on without them.

MPIEXEC_ULFM names the mpiexec of an MPI that is fault-tolerant.
"""
import os
import random
import signal
import time
import unittest

from runs import Runs

# Evaluations keep a run from ending before its workers are killed.
GOES_ON = ["on_lost_worker=continue", "train.steps=200", "checkpoint.every=20",
           "evaluate.every=10"]
METHODS = {
    "ab": ["method.group_size=2", "train.check_replicas=1"],
    "both": ["method.trains=both", "method.group_size=1", "method.full_rank_steps=0",
             "method.outer.wire={name: int4}"],
    "ddp": ["method.name=ddp", "train.check_replicas=1", "reducer.name=powersgd"],
    "ordered": ["method.name=ddp", "order.name=cd-grab"],
    "local_sgd": ["method.name=local-sgd"],
    "diloco": ["method.name=diloco", "method.fragments=2", "method.delay=3"],
}


class Losses(Runs):
    def lose(self, name, *sets, ranks=(1,), number=signal.SIGKILL, code=0, step=45, workers=4):
        process = self.start(name, f"workers={workers}", *GOES_ON, *sets, processes=workers, ulfm=True)
        self.wait_for_step(process, name, 5)
        pids = self.pids_by_rank(name)  # takes a while
        self.wait_for_step(process, name, step)
        for rank in ranks:
            os.kill(pids[rank], number)
        outcome = self.finish(process)
        self.assertEqual(outcome.code, code, outcome)
        return outcome

    def pids_by_rank(self, name):
        ranks = {}
        for pid in self.worker_pids(name):
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                for entry in file.read().split("\0"):
                    if entry.startswith("OMPI_COMM_WORLD_RANK="):
                        ranks[int(entry.split("=")[1])] = pid
        return ranks

    def went_on(self, name, outcome, left, *lost):
        [event] = self.events(name, "lost")
        # As docs/metrics.schema.json describes it.
        self.assertEqual(set(event), {"event", "step", "seconds", "lost", "workers_before",
                                      "workers", "duration"})
        self.assertEqual(event["workers"], left)
        self.assertEqual([one.split(" on ")[0] for one in event["lost"]],
                         [f"worker {rank}" for rank in lost])
        self.assertIn(f"{left} workers go on from step {event['step']}", outcome.err)
        self.assertLess(event["duration"], 10)
        summary = self.summary(name)
        self.assertEqual(summary["workers"], left)
        self.assertEqual(summary["steps"], 200)
        self.assertGreater(summary["accuracy"], 0.5, name)
        self.assertFalse(self.path(name, "failure.json").exists())
        # Nothing is done twice, and nothing is left out.
        steps = [e["step"] for e in self.events(name, "step")]
        self.assertEqual(steps[-1], 200)
        self.assertEqual(steps, sorted(set(steps)))

    def test_the_others_go_on(self):
        for name in ("ab", "ddp", "diloco"):
            with self.subTest(name):
                self.went_on(name, self.lose(name, *METHODS[name]), 3, 1)

    def test_slow_they_go_on_with_each_method(self):
        for name, sets in METHODS.items():
            with self.subTest(name):
                self.went_on(name, self.lose(name, *sets, ranks=(2,)), 3, 2)

    def test_worker_0_may_be_lost(self):
        outcome = self.lose("first", ranks=(0,))
        self.went_on("first", outcome, 3, 0)
        self.assertIn("accuracy", outcome.out)  # the new worker 0 prints the table

    def test_worker_0_is_lost_before_the_report(self):
        sets = ["workers=2", *GOES_ON, "method.name=ddp"]
        dies = {"LD_PRELOAD": os.environ["KILL_AT_LIBRARY"],
                "KILL_AT": "1", "KILL_IN": "summary.json.tmp"}
        outcome = self.run_it("silent", *sets, processes=2, ulfm=True, code=69, env=dies)
        self.assertEqual(outcome.err.count("had not written the report"), 1, outcome)
        self.assertEqual(self.failure("silent")["worker"], 0)
        self.resumed("silent", *sets)

    def test_two_may_be_lost_at_once(self):
        self.went_on("two", self.lose("two", "method.name=diloco", ranks=(1, 3)), 2, 1, 3)

    def test_all_workers_of_a_role_may_be_lost(self):
        for name, ranks in [("a", (0, 1)), ("b", (2, 3))]:
            outcome = self.lose(name, "method.group_size=2", ranks=ranks)
            self.went_on(name, outcome, 2, *ranks)

    def test_a_stopped_worker_is_lost(self):
        outcome = self.lose("stopped", "train.timeout=2", ranks=(2,), number=signal.SIGSTOP)
        self.went_on("stopped", outcome, 3, 2)

    def test_a_hanging_worker_is_lost(self):
        name = "hangs"
        outcome = self.run_it(name, "workers=4", *GOES_ON, "method.name=ddp", "train.timeout=2",
                              processes=4, ulfm=True, **self.fault(rank=3, step=15, kind="hang"))
        self.went_on(name, outcome, 3, 3)

    def test_a_second_loss_and_a_resume(self):
        name = "again"
        process = self.start(name, "workers=4", *GOES_ON, "method.name=ddp", processes=4, ulfm=True)
        self.wait_for_step(process, name, 40)
        pids = self.pids_by_rank(name)
        os.kill(pids[3], signal.SIGKILL)
        self.wait_for_step(process, name, 90)
        os.kill(pids[0], signal.SIGKILL)
        self.wait_for_step(process, name, 120)
        os.kill(pids[2], signal.SIGUSR1)
        self.assertEqual(self.finish(process).code, 75)
        self.assertEqual([e["workers"] for e in self.events(name, "lost")], [3, 2])
        # The checkpoint is one of two workers.
        outcome = self.resumed(name, "workers=2", *GOES_ON, "method.name=ddp")
        self.assertNotIn("saved by", outcome.err)
        self.assertEqual(self.summary(name)["steps"], 200)

    def test_another_is_lost_meanwhile(self):
        """Before the others have gone on without the first one, or right after it."""
        for i, seconds in enumerate([0.01, 0.02, 0.03, 0.04, 0.06, 0.08]):
            name = f"meanwhile{i}"
            sets = [*METHODS[("ab", "ddp", "diloco")[i % 3]], "train.steps=1200"]
            with self.subTest(name, sets=sets):
                process = self.start(name, "workers=4", *GOES_ON, *sets, processes=4, ulfm=True)
                self.wait_for_step(process, name, 10)
                pids = self.pids_by_rank(name)
                os.kill(pids[3], signal.SIGKILL)
                time.sleep(seconds)
                os.kill(pids[0], signal.SIGKILL)
                outcome = self.finish(process)
                self.assertEqual(outcome.code, 0, outcome)
                # Worker 0 may not have had the time to write of worker 3.
                event = self.events(name, "lost")[-1]
                self.assertEqual(event["lost"][0].split(" on ")[0], "worker 0")
                self.assertEqual(event["workers"], 2)
                self.assertEqual(self.summary(name)["steps"], 1200)

    def test_slow_losses_at_random_moments(self):
        random.seed(7)
        for i in range(24):
            name = f"random{i}"
            method = random.choice(list(METHODS))
            ranks = random.sample(range(4), random.choice([1, 1, 2]))
            with self.subTest(name, method=method, ranks=ranks):
                process = self.start(name, "workers=4", *GOES_ON, *METHODS[method],
                                     "train.log_every=1", processes=4, ulfm=True)
                self.wait_for_step(process, name, random.randint(1, 180))
                time.sleep(random.uniform(0, 0.02))
                pids = self.pids_by_rank(name)
                for rank in ranks:
                    if rank in pids:
                        os.kill(pids[rank], signal.SIGKILL)
                        # The second one while the others recover from the first.
                        time.sleep(random.choice([0, random.uniform(0, 0.1)]))
                outcome = self.finish(process)
                self.assertEqual(outcome.code, 0, outcome)
                self.assertGreater(self.summary(name)["accuracy"], 0.5)

    def test_too_few_end_the_run(self):
        for name, sets, ranks, words in [
                ("few", ["min_workers=4"], (1,), "3 workers are left, and min_workers is 4"),
                ("one", ["workers=2"], (1,), "one worker alone cannot train A and B")]:
            workers = 2 if name == "one" else 4
            outcome = self.lose(name, *sets, ranks=ranks, code=69, workers=workers)
            self.assertEqual(outcome.err.count(words), 1, outcome)
            self.assertIn("worker 1 on ", outcome.err)
            failure = self.failure(name)
            self.assertEqual(failure["exit_code"], 69)
            self.assertIn(words, failure["message"])
            self.resumed(name, *GOES_ON, "workers=2", "method.group_size=1")

    def test_an_error_is_no_loss(self):
        outcome = self.lose("nan", "optimizer.lr=1e30", "optimizer.name=sgd", "method.name=ddp",
                            ranks=(), step=1000, code=70)
        self.assertEqual(self.events("nan", "lost"), [], outcome)

    def test_where_it_cannot_go_on_it_says_so(self):
        # Threads; and an MPI that is not fault-tolerant, or not asked to be.
        outcome = self.run_it("threads", *GOES_ON)
        self.assertIn("on_lost_worker: continue is not possible here, because the workers are "
                      "threads", outcome.err)
        outcome = self.run_it("plain", *GOES_ON, processes=2)
        self.assertEqual(outcome.err.count("continue is not possible here"), 1)
        self.assertIn("--with-ft ulfm", outcome.err)


if __name__ == "__main__":
    unittest.main()
