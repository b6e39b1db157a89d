"""Runs on disks that fail: no error of a save costs more than that checkpoint, and no error of a
start costs what was there.

ABTRAIN and KILL_AT_LIBRARY name what is used.
"""
import errno
import os
import shutil
import unittest

from runs import Runs

LIBRARY = os.environ["KILL_AT_LIBRARY"]
SHORT = ["train.steps=12", "checkpoint.every=4", "checkpoint.keep=2", "evaluate.every=6",
         "method.warmup_steps=3", "method.sync_every=4"]


class Disk(Runs):
    def preloaded(self, **variables):
        return {"LD_PRELOAD": LIBRARY, **{k: str(v) for k, v in variables.items()}}

    def calls_of(self, name, *sets, **keys):
        """How many calls a run makes. The errno 0 is none."""
        count = self.folder / "count"
        self.run_it(name, *sets, env=self.preloaded(KILL_COUNT=count, KILL_AT=0, FAIL_WITH=1),
                    **keys)
        return int(count.read_text())

    def saves_fail(self, stride):
        calls = self.calls_of("whole", *SHORT)
        self.assertGreater(calls, 60)
        saved = 0
        for number in (errno.EIO, errno.ESTALE):
            for k in range(1 + number % stride, calls + 1, stride):
                outcome = self.run_it(
                    "failing", *SHORT, code=None,
                    env=self.preloaded(KILL_AT=k, FAIL_WITH=number))
                self.assertIn(outcome.code, (0, 74), f"call {k}\n{outcome}")
                self.assertNotIn("internal error", outcome.err)
                if outcome.code == 74:  # before it began
                    self.assertNotIn("steps of 8 images", outcome.err)
                else:
                    self.assertEqual(self.model("whole"), self.model("failing"), k)
                    saves = [e["saved"] for e in self.events("failing", "checkpoint")]
                    self.assertEqual(outcome.err.count("no checkpoint was saved"),
                                     saves.count(False), outcome)
                    self.assertGreaterEqual(saves.count(True), 2, outcome)
                    saved += saves.count(False)
                shutil.rmtree(self.path("failing"), ignore_errors=True)
        self.assertGreater(saved, 0)

    def test_a_failing_call_of_a_save_costs_only_that_checkpoint(self):
        self.saves_fail(stride=17)

    def test_slow_no_call_of_a_save_costs_more_than_that_checkpoint(self):
        self.saves_fail(stride=1)

    def test_interrupted_calls_are_repeated(self):
        self.run_it("whole", *SHORT)
        outcome = self.run_it("often", *SHORT, env=self.preloaded(
            FAIL_WITH=errno.EINTR, KILL_IN="runs/often"))
        self.assertNotIn("warning", outcome.err)
        self.assertEqual(self.model("whole"), self.model("often"))
        self.assertEqual(
            [e["saved"] for e in self.events("often", "checkpoint")], [True] * 3)

    def starts_over(self, stride):
        def manifests(below):
            return {p.read_text() for p in self.path("again").joinpath(below).rglob("manifest.json")}

        self.run_it("again", *SHORT)
        self.run_it("again", *SHORT, "seed=2", extra=("--overwrite",))
        older, newer = manifests("checkpoints.previous"), manifests("checkpoints")
        self.assertEqual((len(older), len(newer)), (2, 2))
        kept = self.folder / "kept"
        shutil.copytree(self.path("again"), kept)
        third = [*SHORT, "seed=3", "checkpoint.every=0"]
        calls = self.calls_of("again", *third, extra=("--overwrite",))
        self.assertEqual(manifests("checkpoints.previous"), newer)
        self.assertGreater(calls, 10)
        for k in range(1, calls + 1, stride):
            for env in [{"FAIL_WITH": errno.EIO}, {"FAIL_WITH": errno.EIO, "FAIL_MORE": 999}, {}]:
                shutil.rmtree(self.path("again"))
                shutil.copytree(kept, self.path("again"))
                outcome = self.run_it("again", *third, code=None, extra=("--overwrite",),
                                      env=self.preloaded(KILL_AT=k, **env))
                self.assertIn(outcome.code, (-9, 0, 74), f"call {k}\n{outcome}")
                self.assertLessEqual(newer, manifests("."), f"call {k}\n{outcome}")
                if manifests("checkpoints.previous") != newer:
                    self.assertLessEqual(older, manifests("."), f"call {k}\n{outcome}")
                # And the next start finds them in their places.
                self.run_it("again", *third, extra=("--overwrite",))
                self.assertEqual(manifests("."), newer, f"call {k}")

    def test_a_failing_start_loses_no_checkpoints(self):
        self.starts_over(stride=4)

    def test_slow_no_call_of_a_start_loses_checkpoints(self):
        self.starts_over(stride=1)


if __name__ == "__main__":
    unittest.main()
