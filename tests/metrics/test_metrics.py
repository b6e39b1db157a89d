"""What runs write while they go on, read as others read it: metrics.jsonl and
summary.json by their schemas, the events file by TensorBoard."""
import copy
import json
import logging
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import jsonschema
    from tensorboard.backend.event_processing import event_accumulator, event_file_loader
    from tensorboard.compat.tensorflow_stub import errors, pywrap_tensorflow
    from tensorboard.plugins.hparams import api_pb2, metadata
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --tests installs it")
    sys.exit(1 if os.environ.get("ABTRAIN_TESTS_COMPLETE") else 77)

logging.getLogger("tensorboard").setLevel(logging.ERROR)
PROGRAM = sys.argv.pop(1)
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SMALL = [
    "workers=2", "model.hidden=[16,16]", "data.batch_size=8", "data.subset=400",
    "train.steps=9", "train.log_every=2", "train.threads=1", "device=cpu",
    "schedule.warmup_steps=2", "evaluate.every=4", "checkpoint.every=4", "checkpoint.keep=3",
    "method.group_size=1", "method.warmup_steps=2", "method.sync_every=4",
    "method.full_rank_steps=1", "method.rank={rule: fixed, rank: 3}",
]
# Together these runs write every event, and every key of the summary.
RUNS = {
    "ab": ["data.validation=50", "evaluate.train=true", "optimizer.name=sgd",
           "method.full_phase.reducer.name=powersgd"],
    "thc": ["method.name=ddp", "reducer.name=thc", "reducer.evaluate_every=2"],
    "powersgd": ["method.name=ddp", "reducer.name=powersgd", "reducer.evaluate_every=3"],
    "branch": ["method.name=ddp", "reducer.name=powersgd", "reducer.evaluate_every=3",
               "optimizer.lr=0.01", "branch_from=FOLDER/powersgd@step-4"],  # the run before it
    "local_sgd": ["method.name=local-sgd", "method.average=params+moments"],
    "diloco": ["method.name=diloco", "method.fragments=2"],
    "cd_grab": ["method.name=ddp", "order.name=cd-grab"],
    "sparse": ["method.name=ddp", "optimizer.name=qcmd-adagrad", "reducer.name=threshold",
               "optimizer.l1=1e-4"],
    "balance": ["method.name=ddp", "balance=[1, 0.5]"],
    "alone": ["method.name=ddp", "workers=1"],
    "tuned": ["model.weights=FOLDER/alone/model.safetensors", "model.frozen=['*']",  # the run before it
              "method.remainder=freeze", "method.warmup_steps=0", "method.full_rank_steps=0"],
    "text": ["data.name=text", f"data.root={DOCS}", "data.context=16",
             "data.test_share=0.002", "data.validation=9",
             "model.name=gpt-nano", "model.layers=1", "model.heads=2", "model.features=16"],
    "regression": ["data.name=arrays", "data.root=FOLDER", "data.subset=0", "data.test_share=0.2"],
}


def save_numbers(folder):
    """Arrays for a regression, as numpy.save writes them."""
    for name, width in (("x", 3), ("y", 2)):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (99, {width}), }}"
        numbers = [(i * 37 % 11) / 8 for i in range(99 * width)]
        (folder / f"train_{name}.npy").write_bytes(
            b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(numbers)}f", *numbers))


def train(folder, name, *sets, extra=()):
    words = [PROGRAM, "--config", str(ROOT / "configs/fashion_mnist_mlp.yaml"),
             "--name", name, "--output", str(folder), "--overwrite"]
    for entry in [*SMALL, *sets]:
        words += ["--set", entry.replace("FOLDER", str(folder))]
    done = subprocess.run([*words, *extra], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{name}: exit code {done.returncode}\n{done.stderr}")
    return Path(folder) / name


def metrics_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


class RunsCase(unittest.TestCase):
    """Has the runs in one folder, each trained when first asked for."""

    folder = Path(tempfile.mkdtemp(prefix="abtrain-"))
    save_numbers(folder)

    def run_of(self, name):
        run = self.folder / name
        return run if run.exists() else train(self.folder, name, *RUNS[name])


def tearDownModule():
    shutil.rmtree(RunsCase.folder, ignore_errors=True)


def schema_of(name):
    schema = json.loads((DOCS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


class Schemas(RunsCase):
    metrics = schema_of("metrics")
    summary = schema_of("summary")

    def faults(self, line):
        """Of one event: by its own definition, which names the key at fault."""
        name = line.get("event")
        if name not in self.events():
            return [f"event {name!r} is not in docs/metrics.schema.json"]
        schema = {**self.metrics, "$ref": f"#/$defs/{name}"}
        del schema["oneOf"]
        found = jsonschema.Draft202012Validator(schema).iter_errors(line)
        return [f"{name}.{fault.json_path}: {fault.message}" for fault in found]

    def events(self):
        return [one["$ref"].rsplit("/", 1)[1] for one in self.metrics["oneOf"]]

    def test_every_line_and_summary(self):
        whole = jsonschema.Draft202012Validator(self.metrics)
        summary = jsonschema.Draft202012Validator(self.summary)
        seen, keys = {}, {}
        for name in RUNS:
            run = self.run_of(name)
            if name == "ab":  # again from the middle: a resumed run
                train(self.folder, name, *RUNS[name],
                      extra=["--resume", str(run / "checkpoints/step-0000000004")])
            for line in metrics_of(run):
                self.assertEqual(self.faults(line), [], f"{name}: {line}")
                self.assertTrue(whole.is_valid(line))
                seen.setdefault(line["event"], line)
                keys.setdefault(line["event"], set()).update(line)
            figures = json.loads((run / "summary.json").read_text())
            faults = [f"{f.json_path}: {f.message}" for f in summary.iter_errors(figures)]
            self.assertEqual(faults, [], name)
            keys.setdefault("summary", set()).update(figures)
        # Of a run of processes: tests/hosts/losses.py looks at it.
        self.assertEqual(sorted([*seen, "lost"]), sorted(self.events()))
        # No key is described that no run writes.
        for event in seen:
            self.assertEqual(keys[event], set(self.metrics["$defs"][event]["properties"]))
        self.assertEqual(keys["summary"], set(self.summary["properties"]))
        # What is not described is refused, and so is what lacks a key.
        for event, line in seen.items():
            self.assertNotEqual(self.faults({**line, "extra": 1}), [], event)
            for key in self.metrics["$defs"][event]["required"]:
                short = {k: v for k, v in line.items() if k != key}
                self.assertFalse(whole.is_valid(short), f"{event} without {key}")
        layer = copy.deepcopy(seen["decompose"])
        layer["layers"][0]["extra"] = 1
        self.assertNotEqual(self.faults(layer), [])
        layer = copy.deepcopy(seen["decompose"])
        for values, right in (([2.5, 1], True), ([2.5, -1], False), ([], False)):
            layer["layers"][0]["singular_values"] = {"index": [1, 7], "value": values}
            self.assertEqual(self.faults(layer) == [], right, values)

    def test_summary_names_the_reducer_of_dense_steps(self):
        for name, reducer in (("ab", "powersgd"), ("thc", "thc"), ("diloco", "plain fp32")):
            figures = json.loads((self.run_of(name) / "summary.json").read_text())
            self.assertEqual(figures["reducer"]["name"], reducer, name)

    def test_the_times_of_a_worker_add_up(self):
        for name in ("ab", "diloco"):
            figures = json.loads((self.run_of(name) / "summary.json").read_text())
            workers, mean = figures["by_worker"], figures["seconds"]
            self.assertEqual(len(workers), 2)
            for key in ("compute", "svd", "data"):
                self.assertAlmostEqual(sum(w[key] for w in workers) / 2, mean[key])
            blocked = sum(w["waiting"] + w["communication"] for w in workers) / 2
            self.assertAlmostEqual(blocked, mean["communication"])
            self.assertEqual(workers[figures["slowest_worker"]]["waiting"], 0)
            last = [e for e in metrics_of(self.run_of(name)) if e["event"] == "workers"][-1]
            self.assertEqual(last["waiting"], [w["waiting"] for w in workers])
        alone = json.loads((self.run_of("alone") / "summary.json").read_text())
        self.assertNotIn("by_worker", alone)

    def test_pages_name_every_key(self):
        page = (DOCS / "metrics.md").read_text()
        for event in self.events():
            rows = [row for row in page.splitlines() if row.startswith(f"| `{event}` |")]
            self.assertEqual(len(rows), 1, event)
            for key in self.metrics["$defs"][event]["properties"]:
                if key not in ("event", "step", "seconds"):
                    self.assertIn(f"`{key}`", rows[0], f"{event}.{key}")
        for part in ("layer", "singular_values"):
            for key in self.metrics["$defs"][part]["properties"]:
                self.assertIn(f"`{key}`", page)
        page = (DOCS / "report.md").read_text()
        for key in self.summary["properties"]:
            self.assertRegex(page, rf"`{re.escape(key)}[.`\[]", key)


def accumulate(run):
    reader = event_accumulator.EventAccumulator(
        str(run), size_guidance={"scalars": 0})
    reader.Reload()
    return reader


SCORES = ("accuracy", "bits_per_byte", "perplexity", "loss")


def expected_scalars(events):
    """Tag to [(step, seconds, value)], by docs/metrics.md."""
    tags = {}

    def add(tag, event, value):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            tags.setdefault(tag, []).append((event["step"], event["seconds"], value))

    for event in events:
        name = event["event"]
        for key, value in event.items():
            if key in ("event", "step", "seconds"):
                continue
            tag = f"{name}/{key}"
            add(tag, event, value)
            if name in ("workers", "balance"):
                for i, one in enumerate(value):
                    add(f"{tag}/{i}", event, one)
            if key == "layers":
                for layer in value:
                    for what in ("rank", "energy"):
                        add(f"{what}/{layer['name']}", event, layer[what])
    return tags


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def events_file(run):
    (path,) = [p for p in run.glob("events.out.tfevents.*") if p.stat().st_size > 0]
    return path


class TensorBoardReads(RunsCase):
    def check_scalars(self, run, reader=None):
        reader = reader or accumulate(run)
        expected = expected_scalars(metrics_of(run))
        shown = [tag for tag in reader.Tags()["scalars"] if reader.Scalars(tag)]
        self.assertEqual(sorted(shown), sorted(expected))
        start = float(events_file(run).name.split(".")[3])
        for tag, points in expected.items():
            got = reader.Scalars(tag)
            self.assertEqual([p.step for p in got], [p[0] for p in points], tag)
            self.assertEqual([p.value for p in got], [float32(p[2]) for p in points], tag)
            for point, wanted in zip(got, points):
                self.assertLess(abs(point.wall_time - start - wanted[1]), 1e-5, tag)

    def test_scalars_are_those_of_the_metrics(self):
        for name in RUNS:
            with self.subTest(name):
                self.check_scalars(self.run_of(name))

    def test_hyperparameters_are_the_configuration(self):
        run = self.run_of("ab")
        reader = accumulate(run)
        content = {tag: data.plugin_data.content
                   for tag, data in reader.summary_metadata.items()
                   if data.plugin_data.plugin_name == "hparams"}
        begin = metadata.parse_session_start_info_plugin_data(
            content[metadata.SESSION_START_INFO_TAG])
        self.assertEqual(begin.hparams["optimizer.name"].string_value, "sgd")
        self.assertEqual(begin.hparams["workers"].number_value, 2)
        self.assertIs(begin.hparams["evaluate.train"].bool_value, True)
        self.assertNotIn("output", begin.hparams)
        end = metadata.parse_session_end_info_plugin_data(
            content[metadata.SESSION_END_INFO_TAG])
        self.assertEqual(end.status, api_pb2.STATUS_SUCCESS)
        self.assertLessEqual(begin.start_time_secs, end.end_time_secs)
        # Without a tensor TensorBoard's own loader finds no hyperparameters.
        tensors = 0
        for event in event_file_loader.RawEventFileLoader(str(events_file(run))).Load():
            for value in event_accumulator.event_pb2.Event.FromString(event).summary.value:
                tensors += value.tag.startswith("_hparams_") and value.HasField("tensor")
        self.assertEqual(tensors, 2)

    def test_a_resumed_run_shows_no_step_twice(self):
        run = train(self.folder, "resumed", "checkpoint.keep=5")
        start = events_file(run).name.split(".")[3]
        watcher = accumulate(run)
        train(self.folder, "resumed", "checkpoint.keep=5",
              extra=["--resume", str(run / "checkpoints/step-0000000004")])
        self.assertEqual([e["event"] for e in metrics_of(run)].count("resume"), 1)
        self.check_scalars(run)
        self.assertEqual(events_file(run).name.split(".")[3], start)
        # One that has been there all the time sees the same.
        watcher.Reload()
        self.check_scalars(run, watcher)
        # Begun anew, nothing of it stays; told so, there is no file.
        for _ in range(2):
            train(self.folder, "resumed")
            self.check_scalars(run)
            watcher.Reload()
            self.check_scalars(run, watcher)
            self.assertEqual(len(list(run.glob("*tfevents*"))), 2)
        train(self.folder, "resumed", "train.tensorboard=false")
        self.assertEqual(list(run.glob("*tfevents*")), [])

    def test_damage_is_noticed(self):
        run = self.run_of("alone")
        path = events_file(run)
        whole = path.read_bytes()

        def records(data):
            place = self.folder / "damaged"
            place.write_bytes(data)
            reader = pywrap_tensorflow.PyRecordReader_New(str(place))
            count = 0
            try:
                while True:
                    reader.GetNext()
                    count += 1
            except errors.OutOfRangeError:
                return count

        lines = len([e for e in metrics_of(run) if e["event"] != "sync"])
        self.assertEqual(records(whole), 3 + lines)
        self.assertEqual(records(b""), 0)
        for at in (0, 9, 12, 20, len(whole) // 2, len(whole) - 1):
            damaged = bytearray(whole)
            damaged[at] ^= 1
            with self.assertRaises(errors.DataLossError, msg=at):
                records(bytes(damaged))

    def test_a_run_that_has_just_begun(self):
        run = self.run_of("alone")
        data, at = events_file(run).read_bytes(), 0
        for _ in range(3):  # before the first event
            at += struct.unpack("<Q", data[at:at + 8])[0] + 16
        begun = self.folder / "begun"
        begun.mkdir()
        (begun / events_file(run).name).write_bytes(data[:at])
        reader = accumulate(begun)
        self.assertEqual(reader.Tags()["scalars"], [])
        self.assertEqual(reader.Tags()["tensors"], [metadata.SESSION_START_INFO_TAG])
        self.assertTrue(math.isfinite(reader.FirstEventTimestamp()))


if __name__ == "__main__":
    unittest.main()
