"""The same bits from threads and processes, and after a resume."""
import shutil
import unittest

from pathlib import Path

from runs import PROGRAM, Runs

# A small gpt on the text of a script.
TEXT = ("data.name=text", f"data.root={Path(__file__).with_name('hosts.py')}",
        "data.test_share=0.05", "data.context=16", "model.name=gpt-nano", "model.layers=1",
        "model.heads=2", "model.features=16")


class SameBits(Runs):
    def check_same(self, name, *sets, **launched):
        """From threads, and from processes; returns how these ended."""
        self.run_it(name, *sets)
        outcome = self.run_it(name + "_mpi", *sets, **launched)
        self.assertEqual(self.model(name), self.model(name + "_mpi"), name)
        here, there = self.summary(name), self.summary(name + "_mpi")
        self.assertEqual(here["traffic"], there["traffic"], name)
        self.assertEqual(here["loss"], there["loss"], name)
        return outcome

    def test_threads_and_processes_give_the_same_bits(self):
        for name, *sets in [
                ("ab2", "workers=4", "method.group_size=2"),
                ("balanced", "workers=4", "method.group_size=2", "balance=[1, 1, 0.5, 2]"),
                ("bf16", "workers=4", "reducer.dtype=bf16",
                 "method.outer.wire.dtype=bf16", "method.full_rank_steps=0"),
                ("full", "workers=4", "method.sync=full",
                 "optimizer={name: sgd, momentum: 0.9}"),
                ("streaming", "workers=3", "method.name=diloco",
                 "method.fragments=2", "method.delay=3", "method.mixing=0.5"),
                ("compressed", "workers=3", "method.name=diloco",
                 "method.sync_every=5", "reducer={name: hylo, min_numel: 64}"),
                ("coded", "workers=4", "method.full_rank_steps=0",
                 "method.group_size=2",
                 "method.outer={name: nesterov, wire: {name: int4}}"),
                ("carried", "workers=4", "method.group_size=2",
                 "method.full_rank_steps=0", "method.moments=carry",
                 "method.rank={rule: budget, ratio: 4, floor: 0.7}",
                 "method.anneal_steps=20"),
                ("both", "workers=4", "method.trains=both", "method.group_size=2",
                 "method.full_rank_steps=0",
                 "method.outer={name: nesterov, wire: {name: int2}}",
                 "method.rank={rule: budget, ratio: 4}", "method.anneal_from=1",
                 "method.anneal_steps=20", "optimizer.name=muon"),
                ("blocks", "workers=4", "method.trains=both", "method.group_size=1",
                 "method.blocks=4", "method.full_rank_steps=0",
                 "method.outer={name: nesterov, wire: {name: int2}}",
                 "method.rank={rule: budget, ratio: 4}", "method.anneal_from=1",
                 "method.anneal_steps=20", "optimizer.name=muon", "method.moments=carry"),
                ("ordered", "workers=4", "method.group_size=2",
                 "data.subset=416", "order={name: cd-grab, wire: int8}"),
                ("text", "workers=4", "method.group_size=2", *TEXT)]:
            self.check_same(name, *sets, processes=int(sets[0][-1]))

    def test_processes_say_how_fast_they_are(self):
        self.needs_mpi()
        script = self.folder / "abtrain.sh"
        script.write_text("#!/bin/sh\nABTRAIN_SPEED=$((3 - 2 * OMPI_COMM_WORLD_RANK)) "
                          f"exec '{PROGRAM}' \"$@\"\n")
        script.chmod(0o755)
        self.run_it("given", "balance=[3, 1]")
        outcome = self.run_it("told", "balance=auto", processes=2, program=str(script))
        self.assertIn("balance: batches of 12 and 4; ABTRAIN_SPEED: 3 (", outcome.err)
        self.assertEqual(self.model("given"), self.model("told"))
        [event] = self.events("told", "balance")
        self.assertEqual((event["batches"], event["speeds"]), ([12, 4], [3, 1]))
        self.assertIn("\nbalance: auto\n", self.path("told", "config.yaml").read_text())
        # Averages of a checkpoint's workers are weighted as they were.
        for saved in self.path("told", "checkpoints").glob("step-*/config.yaml"):
            self.assertIn("\nbalance: [12, 4]\n", saved.read_text())

    def test_processes_agree_on_the_length_of_a_run_by_the_clock(self):
        for name, sets in {"ddp": ["method.name=ddp"], "ab": ["method.sync_every=5 %"]}.items():
            self.run_it(name, *sets, "train.seconds=1", "train.check_replicas=1", processes=2)
            steps = self.summary(name)["steps"]
            self.assertGreater(steps, 10)
            self.assertEqual(self.events(name, "evaluate")[-1]["step"], steps)

    def test_mpich_gives_the_same_bits(self):
        outcome = self.check_same("mpich", "workers=3", "method.name=diloco", "method.fragments=2",
                                  "method.delay=3", processes=3, mpich=True)
        self.assertIn("PMI: process 0 of 3", outcome.err)

    # tests/train/test_resumed_runs.cpp tries every method, reducer and order.
    def test_resumed_programs_give_the_same_bits(self):
        for name, *sets in [
                ("muon", "workers=4", "method.group_size=2",
                 "optimizer.name=muon"),
                ("coded", "workers=4", "method.full_rank_steps=0",
                 "method.outer={name: nesterov, wire: {name: int2, "
                 "error_decay: 0.9}}", "optimizer.name=muon"),
                ("carried", "workers=4", "method.group_size=2",
                 "method.full_rank_steps=0", "method.moments=carry",
                 "method.rank={rule: budget, ratio: 4, floor: 0.7}",
                 "method.anneal_steps=20"),
                ("coded_fragments", "method.name=diloco",
                 "method.sync_every=10", "method.fragments=2", "workers=3",
                 "method.delay=4", "method.outer.wire.name=int4"),
                ("mirror", "method.name=ddp", "reducer.name=threshold",
                 "optimizer={name: qcmd-adagrad, l1: 1e-3, lr: 0.02}"),
                ("ordered_groups", "workers=4", "method.group_size=2",
                 "data.subset=416", "order={name: cd-grab, wire: int8}"),
                ("vit", "model.name=vit-tiny", "model.patch_size=7",
                 "model.drop_path=0.2", "train.steps=12", "evaluate.every=0"),
                ("gpt", "workers=4", "method.group_size=2", "train.accumulate=2",
                 "model.drop_rate=0.1", *TEXT),
        ]:
            self.run_it(name, *sets)
            before, whole = self.model(name), self.traffic(name)
            self.lose_the_end(name)
            self.resumed(name, *sets)
            self.assertEqual(before, self.model(name), name)
            self.assertEqual(whole, self.traffic(name), name)
            self.assertEqual(len(self.events(name, "resume")), 1)

    def lose_the_end(self, name):
        """As if killed at the last save before the end: all that came later is gone."""
        end = f"step-{self.summary(name)['steps']:010}"
        shutil.rmtree(self.path(name, "checkpoints", end), ignore_errors=True)
        self.path(name, "summary.json").unlink()
        self.path(name, "model.safetensors").unlink()

    # Those that use the collectives in different ways.
    def test_reducers_give_the_same_bits_in_processes(self):
        common = ["workers=3", "method.name=ddp", "reducer.min_numel=64",
                  "reducer.bucket_mb=0.01", "reducer.block=64", "reducer.bits=4",
                  "reducer.dense_steps=2", "train.steps=24",
                  "optimizer={name: sgd, momentum: 0.9}"]
        for reducer, *sets in [
                ("topk",), ("thc",), ("thc-saturated",), ("powersgd",), ("twobit",),
                ("threshold", "reducer.transport=int8"), ("int4",),
                ("hylo", "reducer.transport=a2a")]:
            self.check_same(reducer, *common, f"reducer.name={reducer}", *sets, processes=3)


if __name__ == "__main__":
    unittest.main()
