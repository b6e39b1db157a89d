"""bench/front.py with a program that only writes what it is told to write: fronts, equal
time, what a folder holds, and a comparison that is made in parts."""
import contextlib
import io
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import front  # noqa: E402
import front_table  # noqa: E402

# `hangs` beside it names a run that only ends when it is stopped, with a checkpoint, and
# ends well when it goes on; `diverges` one that diverges.
PROGRAM = f"#!{sys.executable}\n" + """
import json, pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
values = dict(w.split("=", 1) for f, w in zip(sys.argv, sys.argv[1:]) if f == "--set")
config = (f"name: x\\nseed: {values.get('seed', 1)}\\noutput: runs\\nmethod:\\n  name: "
          f"{values.get('method.name', 'ab')}\\n  rank:\\n    rule: fixed\\n"
          f"train:\\n  epochs: 6\\n  steps: {values['train.steps']}\\n")
if sys.argv[1] == "plan":
    assert "--show-config" in sys.argv
    print(config, end="")
    sys.exit(0)
words = dict(zip(sys.argv, sys.argv[1:]))
assert words["--resume"] == "auto" and values["checkpoint.every"] == "20 %"
name = words["--name"]
folder = pathlib.Path(words["--output"]) / name
with open(here / "started", "a") as file:
    print(name, file=file)
told = lambda what: (here / what).exists() and (here / what).read_text() == name
folder.mkdir(exist_ok=True)
(folder / "config.yaml").write_text(config.replace("name: x", "name: " + name))
(folder / "metrics.jsonl").write_text(
    '{"event": "evaluate", "accuracy": 0.5, "train_seconds": 1.5}\\n')
if told("diverges"):
    (folder / "failure.json").write_text('{"exit_code": 70, "message": "inf"}')
    sys.exit(70)
if told("hangs") and not (folder / "checkpoint").exists():
    def save(*_):
        (folder / "checkpoint").touch()
        sys.exit(75)
    signal.signal(signal.SIGTERM, save)
    (here / "ready").touch()
    while True:
        time.sleep(0.01)
steps, is_ddp = int(values["train.steps"]), values.get("method.name") == "ddp"
(folder / "summary.json").write_text(json.dumps({
    "accuracy": 0.6 + steps / 1000 + 0.05 * is_ddp + 0.001 * int(values["seed"]),
    "compression_ratio": 1 if is_ddp else 8, "parameters": {"stored": 800 if is_ddp else 100},
    "traffic": {"bytes_per_worker": steps * (1000 if is_ddp else 100)},
    "seconds": {"train": steps / (10 if is_ddp else 40)}}))
"""


def run(name, length, seed, score, seconds, sent=1, stored=1):
    return {"name": name, "length": length, "seed": seed, "score": score,
            "is_text": score < 0, "seconds": seconds, "bytes": sent, "stored": stored, "compression": 1,
            "to_target": math.inf}


class Points(unittest.TestCase):
    def test_means_and_medians_over_the_seeds(self):
        point, = front_table.points_of(
            [run("a", 10, seed, 0.1 * seed, [1, 9, 2][seed - 1], sent=seed) for seed in (1, 2, 3)])
        self.assertAlmostEqual(point["score"], 0.2)
        self.assertEqual(point["seconds"], 2)
        self.assertEqual(point["bytes"], 2)
        self.assertEqual(point["seeds"], 3)
        self.assertTrue(math.isinf(point["to_target"]))

    def test_front(self):
        points = front_table.points_of([
            run("a", 1, 1, 0.9, 10), run("b", 1, 1, 0.8, 2), run("c", 1, 1, 0.8, 2),
            run("d", 1, 1, 0.8, 3), run("e", 1, 1, 0.7, 2), run("f", 1, 1, 0.95, 11),
            {"name": "g", "length": 1, "seed": 1, "diverged": True},
            run("h", 1, 1, 0.99, 1), {"name": "h", "length": 1, "seed": 2, "diverged": True}])
        names = [p["name"] for p in front_table.front(points, "seconds")]
        self.assertEqual(names, ["b", "c", "a", "f"])  # equals do not beat each other
        self.assertEqual([p["diverged"] for p in points[-2:]], [1, 1])

    def test_equal_time_interpolates_nothing(self):
        points = front_table.points_of(
            [run("a", n, 1, 0.7 + n / 100, n, sent=10 * n) for n in (1, 2, 4)]
            + [run("b", n, 1, 0.8 - n / 100, 1.5 * n, sent=n) for n in (1, 2, 4)]
            + [run("c", 1, 1, 0.99, 5)])
        best = lambda name, cost, budget: (
            front_table.within(points, name, cost, budget) or {"length": None})["length"]
        self.assertEqual(best("a", "seconds", 3.99), 2)
        self.assertEqual(best("a", "seconds", 4), 4)  # as long as the budget is within it
        self.assertEqual(best("b", "seconds", 100), 1)  # the best, not the longest
        self.assertIsNone(best("c", "seconds", 4))
        self.assertEqual(best("a", "bytes", 39), 2)
        text = front_table.equal_table(points, points[2], "steps")
        self.assertIn("a at 4 steps: 4.0 s", text)
        self.assertIn("| a | 74.00 | 4 | 4.0 | 74.00 | 4 | 0.0 |", text)
        self.assertIn("| b | **79.00** | 1 | 1.5 |", text)
        self.assertIn("| c | - | - | - | **99.00** | 1 |", text)

    def test_table(self):
        points = front_table.points_of([
            run("a", 10, 1, 0.5, 3, sent=2e6, stored=1234), run("a", 10, 2, 0.6, 5, sent=2e6, stored=1234),
            run("b", 10, 1, 0.5, 9, sent=1e6, stored=1234),
            {"name": "b", "length": 20, "seed": 1, "diverged": True}])
        lines = front_table.table(points, "steps", 0.7).splitlines()
        self.assertEqual(
            lines[2], "| a | 10 | 2 | 55.00 (50.00 to 60.00) | 4.0 | 2.0 | 1.00 | 1,234 | "
            "not reached | seconds, bytes, parameters |")
        self.assertEqual(
            lines[3], "| b | 10 | 1 | 50.00 | 9.0 | 1.0 | 1.00 | 1,234 | not reached | bytes |")
        self.assertEqual(
            lines[4], "| b | 20 | 0, 1 diverged | - | - | - | - | - | - |  |")

    def test_bits_per_byte(self):
        points = front_table.points_of([
            run("a", 10, 1, -2.5, 3), run("a", 10, 2, -2.0, 5), run("b", 10, 1, -2.5, 9)])
        self.assertEqual([p["name"] for p in front_table.front(points, "seconds")], ["a"])
        lines = front_table.table(points, "steps", 2.2).splitlines()
        self.assertIn("| bits per byte |", lines[0])
        self.assertIn("| s to 2.2 |", lines[0])
        self.assertIn("| a | 10 | 2 | 2.2500 (2.0000 to 2.5000) | 4.0 |", lines[2])
        self.assertIn("| b | 10 | 1 | 2.5000 |", lines[3])

    def test_picture(self):
        try:
            import matplotlib  # noqa: F401
            import numpy  # noqa: F401
        except ImportError as missing:
            self.skipTest(str(missing))
        points = front_table.points_of(
            [run("a", n, s, 0.7 + n / 100 + s / 1000, n, sent=10 * n) for n in (1, 2, 4) for s in (1, 2)]
            + [run("one worker", 1, 1, 0.8, 2, sent=0)])
        text = front_table.points_of([run("a", n, 1, n / 10 - 3, n) for n in (1, 2, 4)])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "front.png")
            for those, target in ((points, 0.72), (text, 2.75)):
                front_table.draw(those, path, target)
                self.assertEqual(path.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
                path.unlink()


class Folder(unittest.TestCase):
    def test_state(self):
        text = "name: x\nseed: 2\noutput: runs\ntrain:\n  steps: 400\n  list: [1, 2]\nlast: 1\n"
        keys = front.keys_of(text)
        self.assertEqual(keys, {"name": "x", "seed": "2", "output": "runs", "train.steps": "400",
                                "train.list": "[1, 2]", "last": "1"})
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.assertEqual(front.state(folder / "none", keys), "open")
            (folder / "config.yaml").write_text(text.replace("name: x", "name: y"))
            self.assertEqual(front.state(folder, keys), "open")
            (folder / "failure.json").write_text('{"exit_code": 74}')
            self.assertEqual(front.state(folder, keys), "open")
            (folder / "failure.json").write_text('{"exit_code": 70}')
            self.assertEqual(front.state(folder, keys), "diverged")
            (folder / "summary.json").write_text("{}")
            self.assertEqual(front.state(folder, keys), "done")
            # A key of a newer program, and what does not change a run.
            self.assertEqual(front.state(folder, keys | {"new": "1", "checkpoint.keep": "3"}), "done")
            for other in ({"train.steps": "800"}, {"seed": "3"}):
                with self.assertRaisesRegex(ValueError, "there, "):
                    front.state(folder, keys | other)

    def test_arguments(self):
        good = ["out", "--run", "ab=c", "--steps", "20", "10"]
        self.assertEqual(front.parse(good).lengths, [10, 20])
        self.assertEqual(front.parse([*good[:3], "--epochs", "0.5", "3"]).lengths, [0.5, 3])
        own = front.parse([*good, "--run", "small=c,model.width=0.5,train.steps=30",
                           "--equal-time", "small:30"])
        self.assertEqual([(run["lengths"], run["set"]) for run in own.run],
                         [([10, 20], []), ([30], ["model.width=0.5"])])
        for more, says in ((["--run", "ab=d"], "each NAME once"),
                           (["--set", "train.steps=3"], "sets"),
                           (["--equal-time", "ab:30"], "expected a NAME"),
                           (["--run", "b=c,train.epochs=3"], "sets"),
                           (["--run", "b=c,train.steps=many"], "above 0"),
                           (["--epochs", "3"], "not allowed with"),
                           (["--target", "88"], "--target")):
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit):
                front.parse(good + more)
            self.assertIn(says, errors.getvalue())


class InParts(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.program = self.place / "abtrain"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def command(self, *more):
        return [sys.executable, "-B", BENCH / "front.py", self.place / "runs", "--program", self.program,
                "--run", "ab=any", "--run", "ddp=any,method.name=ddp", "--steps", "100", "200",
                "--seeds", "1", "2", *more]

    def call(self, *more):
        return subprocess.run(self.command(*more), capture_output=True, text=True, timeout=60)

    def started(self):
        file = self.place / "started"
        return file.read_text().split() if file.exists() else []

    def test_what_has_ended_is_not_repeated(self):
        done = self.call("--time-limit", "0")
        self.assertEqual((done.returncode, self.started()), (75, []), done.stderr)
        self.assertIn("8 of 8 runs are left", done.stdout)
        (self.place / "hangs").write_text("ab_200steps_1")
        (self.place / "diverges").write_text("ddp_100steps_1")
        begun = ["ab_100steps_1", "ddp_100steps_1", "ab_200steps_1"]
        going = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        for _ in range(3000):
            if (self.place / "ready").exists() or going.poll() is not None:
                break
            time.sleep(0.01)
        going.send_signal(signal.SIGTERM)
        out, errors = going.communicate(timeout=60)
        self.assertEqual(going.returncode, 75, errors)
        self.assertEqual(self.started(), begun)
        self.assertIn("6 of 8 runs are left; the same command goes on: ab_200steps_1, ", out)
        self.assertIn("| ddp | 100 | 0, 1 diverged |", out)
        done = self.call("--equal-time", "ab:200", "--target", "0.5", "--json", self.place / "f.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.started()[3:], [
            "ab_200steps_1", "ddp_200steps_1", "ab_100steps_2", "ddp_100steps_2",
            "ab_200steps_2", "ddp_200steps_2"])
        self.assertIn("| ab | 200 | 2 | 80.15 (80.10 to 80.20) | 5.0 | 0.0 | 8.00 | 100 | 1.5 | "
                      "seconds, bytes, parameters |", done.stdout)
        self.assertIn("ab at 200 steps: 5.0 s", done.stdout)
        self.assertIn("| ddp | - | - | - | - | - | - |", done.stdout)
        self.assertEqual(len(json.loads((self.place / "f.json").read_text())["points"]), 4)
        again = self.call()
        self.assertEqual((again.returncode, len(self.started())), (0, 9), again.stderr)

    def test_the_time_limit_stops_a_run(self):
        (self.place / "hangs").write_text("ab_100steps_1")
        done = self.call("--time-limit", "0.03")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("8 of 8 runs are left", done.stdout)
        self.assertLessEqual(len(self.started()), 1)

    def test_other_settings_are_refused(self):
        self.assertEqual(self.call().returncode, 0)
        done = self.call("--set", "method.name=local-sgd")
        self.assertEqual(done.returncode, 1)
        self.assertIn("method.name: ab there, local-sgd now", done.stderr)
        self.assertEqual(len(self.started()), 8)


if __name__ == "__main__":
    os.environ.pop("MPLBACKEND", None)
    unittest.main()
