"""`abtrain export RUN -o FILE.pt2` and FILE.onnx: the programs have the losses that `abtrain
evaluate` measures.

    test_export.py PROGRAM    # with the Python of LibTorch's environment
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
try:
    import numpy
    import onnxruntime
    import safetensors.torch
    import torch
    import abtrain
    from abtrain import _export
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --tests installs it")
    sys.exit(1 if os.environ.get("ABTRAIN_TESTS_COMPLETE") else 77)
from torch import nn
from torch.nn import functional

torch.set_num_threads(2)
AB = ["method.name=ab", "method.group_size=1", "method.full_rank_steps=0", "method.ramp=none",
      "method.warmup_steps=2", "method.sync_every=2", "method.rank={rule: ratio, ratio: 4}"]
GRID = [*AB, "method.blocks=2"]
ADAPTER = ["method.remainder=freeze", "model.frozen=['*', '!fc4']", "method.only=[fc1, fc2]",
           "method.full_rank_steps=0", "method.warmup_steps=0", "method.ramp=none", "method.start=zero",
           "method.sync_every=2", "method.group_size=1", "method.rank={rule: fixed, rank: 4}",
           "method.name=ab"]


class Own(nn.Module):
    """A module with whatever an evaluation changes, and what has no weight."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(32)
        self.more = nn.Conv2d(32, 64, 3, padding=1, dilation=1)
        self.attention = nn.MultiheadAttention(64, 4, dropout=0.1, batch_first=True)
        self.unused = nn.Linear(3, 4)
        self.drop = nn.Dropout(0.3)
        self.register_buffer("shift", torch.linspace(-1, 1, 64))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = functional.gelu(self.more(self.norm(self.conv(x)).relu()), approximate="tanh")
        x = x.flatten(2).transpose(1, 2) + self.shift
        x = x.masked_fill(x > 3, float("inf")).clamp(max=3) + (x > 0) * 0.5
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.head(self.drop(x.mean(1)))


class Language(nn.Module):
    """Attention with a mask of its own, over rows of any length."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50, 32)
        self.query, self.value, self.head = nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 50)

    def forward(self, tokens):
        x = self.tokens(tokens)
        steps = torch.arange(x.shape[1])
        scores = self.query(x) @ x.transpose(1, 2) / 32**0.5
        scores = scores.masked_fill(steps[None, :] > steps[:, None], float("-inf"))
        return self.head(x + scores.softmax(-1) @ self.value(x))


class Halves(nn.Module):
    """Its steps depend on the number of examples in a way that no formula of them says."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(48, 10)

    def forward(self, x):
        x = x.mean((2, 3)).repeat(1, 16)
        return self.fc(x) * (x.shape[0] * x.shape[0])


class Signal(nn.Module):
    """Takes rows of channels, and moves a buffer to them."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv1d(6, 8, 3), nn.Linear(8, 10)
        self.register_buffer("shift", torch.arange(8))

    def forward(self, x):
        return self.head(self.conv(x).relu().mean(2) + self.shift.to(x.device, x.dtype))


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv3d(1, 8, 3), nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.conv(x).relu().mean((2, 3, 4)))


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        torch.manual_seed(1)
        draw = lambda *sizes: torch.randint(0, 256, sizes, dtype=torch.uint8)
        labels = lambda n: torch.randint(0, 10, (n,))
        cls.images, cls.labels = draw(40, 3, 32, 32), labels(40)
        abtrain.save_arrays(cls.folder / "images", draw(64, 3, 32, 32), labels(64), cls.images,
                            cls.labels)
        tokens = lambda n: torch.randint(0, 50, (n, 12), dtype=torch.int32)
        rows = tokens(64), tokens(40)
        cls.rows = rows[1].long()
        abtrain.save_arrays(cls.folder / "tokens", rows[0], rows[0].long().roll(-1, 1), rows[1],
                            rows[1].long().roll(-1, 1))
        abtrain.save_model(Own(), torch.randn(2, 3, 32, 32), cls.folder / "own_module.pt2")
        abtrain.save_model(Language(), cls.rows[:2], cls.folder / "language.pt2", any_length=True)
        abtrain.save_model(Halves(), torch.randn(3, 3, 32, 32), cls.folder / "halves.pt2")
        # Takes Python's place and keeps what Python would get: starting Python takes seconds.
        cls.keeper = cls.folder / "keeper"
        cls.keeper.write_text(f"#!/bin/sh\nrm -rf '{cls.folder}/kept'; cp -r \"$2\" '{cls.folder}/kept'\n")
        cls.keeper.chmod(0o755)

    def call(self, *command, code=0):
        done = subprocess.run([PROGRAM, *map(str, command)], capture_output=True, text=True,
                              cwd=self.folder, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def trained(self, name, data, *sets):
        config = self.folder / "config.yaml"
        config.write_text(f"""
name: {name}
workers: 2
data: {{name: arrays, root: {self.folder / data}, batch_size: 8}}
optimizer: {{name: adamw, lr: 1e-3}}
schedule: {{warmup_steps: 0}}
train: {{steps: 6, threads: 1, precision: fp32}}    # as programs compute
checkpoint: {{every: 0}}
evaluate: {{every: 0}}
device: cpu
""")
        self.call("--config", config, *sets, "--overwrite")
        return json.loads(self.call("evaluate", f"runs/{name}", "--json").stdout)

    def normalized(self, name):
        from safetensors import safe_open
        with safe_open(self.folder / f"runs/{name}/model.safetensors", "pt") as file:
            about = file.metadata()
        mean, std = (torch.tensor([float(x) for x in about[key].split(",")]).view(-1, 1, 1)
                     for key in ("mean", "std"))
        return (self.images.float() / 255 - mean) / std

    def outputs(self, path, inputs):
        """In batches of 7, 1 and 32."""
        parts = inputs.split([7, 1, 32])
        if path.suffix == ".pt2":
            module = torch.export.load(path).module()
            with torch.no_grad():
                return torch.cat([module(part) for part in parts])
        session = onnxruntime.InferenceSession(path)
        name = session.get_inputs()[0].name
        return torch.cat([torch.from_numpy(session.run(None, {name: part.numpy()})[0])
                          for part in parts])

    def images_here(self):
        return "--set", f"data.root={self.folder}/images"

    def written(self, name, ending, *options):
        """The program of a run, and the parameters of its module."""
        subprocess.run([PROGRAM, "export", f"runs/{name}", "-o", "unused.pt2", *options],
                       cwd=self.folder, check=True, capture_output=True,
                       env={**os.environ, "ABTRAIN_PYTHON": str(self.keeper)})
        graph = json.loads((self.folder / "kept/graph.json").read_text())
        module = _export.build(graph, safetensors.torch.load_file(
            self.folder / "kept/tensors.safetensors"))
        path = self.folder / f"{name}{ending}"
        write = _export.write_pt2 if ending == ".pt2" else _export.write_onnx
        write(module, graph, False, path)
        return path, sum(p.numel() for p in module.parameters())

    def check(self, name, data, *sets, endings=(".pt2",)):
        wanted = self.trained(name, data, *sets)
        summary = json.loads((self.folder / f"runs/{name}/summary.json").read_text())
        inputs, labels = ((self.normalized(name), self.labels) if data == "images" else
                          (self.rows, self.rows.roll(-1, 1)))
        for ending in endings:
            path, parameters = self.written(name, ending)
            if "weights" not in " ".join(sets):  # adapters are stored without their base
                self.assertEqual(parameters, summary["parameters"]["stored"])
            found = self.outputs(path, inputs)
            loss = float(functional.cross_entropy(found.flatten(0, -2), labels.flatten()))
            self.assertAlmostEqual(loss, wanted["loss"], delta=2e-5 * wanted["loss"])
            if "accuracy" in wanted:
                self.assertEqual(float((found.argmax(-1) == labels).float().mean()),
                                 numpy.float32(wanted["accuracy"]))
        return summary

    def test_families(self):
        for name, sets, endings in (
                ("mlp", ["model.hidden=[48, 40, 32]"], (".onnx",)),
                ("vgg11", ["model.width=0.05"], (".onnx",)),
                ("resnet18", ["model.width=0.2"], (".pt2",))):
            with self.subTest(name):
                summary = self.check(name, "images", f"model.name={name}", *sets, *AB, endings=endings)
                self.assertGreater(summary["compression_ratio"], 1.2)

    def test_inputs_that_are_no_images(self):
        for name, module, sizes in (("signal", Signal(), (6, 9)), ("volume", Volume(), (1, 4, 5, 3))):
            with self.subTest(name):
                x, y = torch.randn(40, *sizes), torch.arange(40) % 10
                abtrain.save_model(module, x[:2], self.folder / f"{name}_module.pt2")
                abtrain.save_arrays(self.folder / f"{name}_data", x, y, x, y)
                wanted = self.trained(name, f"{name}_data", "model.name=exported", "method.name=ddp",
                                      f"model.file={self.folder}/{name}_module.pt2")
                for ending in (".pt2", ".onnx"):
                    path, _ = self.written(name, ending)
                    loss = float(functional.cross_entropy(self.outputs(path, x), y))
                    self.assertAlmostEqual(loss, wanted["loss"], delta=2e-5 * wanted["loss"])

    def test_without_the_files_that_a_run_began_with(self):
        """Arrays are not needed for an export, nor model.weights for a resume."""
        x, y = torch.randn(16, 6, 9), torch.arange(16) % 10
        data, weights = self.folder / "away_data", self.folder / "away.safetensors"
        abtrain.save_model(Signal(), x[:2], self.folder / "away_module.pt2")
        abtrain.save_arrays(data, x, y, x, y)
        sets = ["model.name=exported", "method.name=ddp", f"model.file={self.folder}/away_module.pt2",
                "checkpoint.every=2", "checkpoint.keep=9"]
        self.trained("away", "away_data", *sets)
        data.rename(self.folder / "elsewhere")
        self.call("export", "runs/away", "-o", weights, "--form", "merged")
        self.written("away", ".pt2")
        (self.folder / "elsewhere").rename(data)
        wanted = self.trained("resumed", "away_data", *sets, f"model.weights={weights}")
        weights.unlink()
        run = self.folder / "runs/resumed"
        last = sorted((run / "checkpoints").iterdir())[-1]
        (run / "summary.json").unlink()
        for file in last.iterdir():
            file.unlink()
        last.rmdir()
        self.call("--resume", run)
        self.assertEqual(json.loads(self.call("evaluate", run, "--json").stdout)["loss"], wanted["loss"])

    def test_a_text_with_its_own_test_text(self):
        (self.folder / "train.txt").write_text("hello world, this is a text. " * 200)
        (self.folder / "test.txt").write_text("another text to test the world " * 40)
        (self.folder / "text.yaml").write_text("""
name: text
data: {name: text, root: train.txt, test: test.txt, context: 16, batch_size: 4}
model: {name: gpt-nano, width: 0.25}
method: {name: ddp}
train: {steps: 1, precision: fp32}
device: cpu
""")
        self.call("text.yaml")
        one, other = (json.loads(self.call("evaluate", path, "--json").stdout)
                      for path in ("runs/text", "runs/text/model.safetensors"))
        self.assertEqual(one["windows"], other["windows"])

    def test_adapters_beside_layers_with_like_names(self):
        class Names(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.x = nn.Linear(9, 8), nn.ModuleDict({"fc": nn.Linear(8, 8)})
                self.head, self.myhead = nn.Linear(8, 8), nn.Linear(8, 10)

            def forward(self, x):
                return self.myhead(self.head(self.x["fc"](self.fc(x).tanh()).tanh()).tanh())

        x, y = torch.randn(16, 9), torch.arange(16) % 10
        abtrain.save_model(Names(), x[:2], self.folder / "names.pt2")
        abtrain.save_arrays(self.folder / "names_data", x, y, x, y)
        for frozen, code in (("!myhead", 0), ("!head", 78)):
            self.trained("names", "names_data", "model.name=exported", *ADAPTER, "method.only=[fc]",
                         f"model.file={self.folder}/names.pt2", f"model.frozen=['*', '{frozen}']")
            done = self.call("export", "runs/names", "-o", "adapter", "--form", "adapter", code=code)
            if code == 0:
                config = json.loads((self.folder / "adapter/adapter_config.json").read_text())
                self.assertEqual(config["target_modules"], "fc")  # an expression for whole names
            else:
                self.assertIn("PEFT would also replace 'myhead'", done.stderr)

    def test_data_with_other_classes(self):
        from PIL import Image
        for part in ("train", "test"):
            for kind in ("cat", "dog"):
                folder = self.folder / "animals" / part / kind
                folder.mkdir(parents=True)
                for i in range(4):
                    Image.new("RGB", (16, 16), (i, 9 * i, 50)).save(folder / f"{i}.png")
        (self.folder / "animals.yaml").write_text("""
name: animals
data: {name: image-folder, root: animals, batch_size: 4, image_size: 16}
model: {name: cnn, channels: [4]}
method: {name: ddp}
train: {steps: 2}
device: cpu
""")
        self.call("animals.yaml")
        for part in ("train", "test"):
            (self.folder / "animals" / part / "cat").rename(self.folder / "animals" / part / "zebra")
        done = self.call("evaluate", "runs/animals", code=65)
        self.assertIn("number 0 is 'cat'", done.stderr)
        self.assertEqual(self.call("train", "--resume", "runs/animals", "train.steps=4", code=65)
                         .stderr.count("number 0 is 'cat'"), 1)

    def test_texts(self):
        small = ["model.layers=2", "model.heads=2", "model.features=32", "model.name=gpt-nano"]
        for name, endings, sets in (
                ("tied", (".onnx",), ["model.split_qkv=true"]),
                ("llama", (".pt2",), ["model.positions=rotary", "model.activation=swiglu",
                                      "model.tied=false"])):
            with self.subTest(name):
                self.check(name, "tokens", *small, *sets, *AB, endings=endings)
        module = torch.export.load(self.folder / "llama.pt2").module()
        whole = module(self.rows)
        torch.testing.assert_close(module(self.rows[:, :5]), whole[:, :5], rtol=1e-4, atol=1e-5)

    def test_blocks(self):
        for name, ending, sets in (
                ("vgg11", ".pt2", ["model.width=0.125"]),
                ("mlp", ".onnx", ["model.hidden=[48, 40, 32]"])):
            with self.subTest(name):
                self.check(name + "-grid", "images", f"model.name={name}", *sets, *GRID,
                           endings=(ending,))

    def test_modules_of_users(self):
        self.check("own", "images", "model.name=exported", "model.file=own_module.pt2", *AB,
                   "method.rank.ratio=1.5", "method.keep_dense=[head]", endings=(".pt2", ".onnx"))

        module = abtrain.load_model(Own(), self.folder / "runs/own/model.safetensors")
        with torch.no_grad():
            torch.testing.assert_close(
                module.eval()(self.normalized("own")),
                self.outputs(self.folder / "own.pt2", self.normalized("own")), rtol=1e-4, atol=1e-5)

    def test_language_models_of_users(self):
        self.check("language", "tokens", "model.name=exported", "model.file=language.pt2", *AB,
                   "method.rank.ratio=1.5", "method.keep_dense=[head]")
        module = torch.export.load(self.folder / "language.pt2").module()
        whole = module(self.rows)
        torch.testing.assert_close(module(self.rows[:, :5]), whole[:, :5], rtol=1e-4, atol=1e-5)

    def test_steps_that_no_formula_describes(self):
        self.trained("halves", "images", "model.name=exported", "model.file=halves.pt2",
                     "method.name=ddp")
        done = self.call("export", "runs/halves", "-o", "half.pt2", code=78)
        self.assertIn("depends on the sizes of a batch", done.stderr)

    def test_adapters(self):
        self.trained("base", "images", "model.name=mlp", "model.hidden=[48, 40, 32]")
        self.check("adapted", "images", "model.name=mlp", "model.hidden=[48, 40, 32]",
                   "model.weights=runs/base/model.safetensors", *ADAPTER)

    def test_programs_that_normalize(self):
        self.trained("pixels", "images", "model.name=mlp", "model.hidden=[48]", *AB)
        plain, _ = self.written("pixels", ".pt2")
        wanted = self.outputs(plain, self.normalized("pixels"))
        for ending in (".pt2", ".onnx"):
            path = self.folder / f"from_pixels{ending}"
            said = self.call("export", "runs/pixels", "-o", path, "--with-normalization").stdout
            self.assertIn("pixels of 0 to 255, B x 3 x 32 x 32; ", said)
            torch.testing.assert_close(self.outputs(path, self.images), wanted, rtol=1e-4, atol=1e-5)
        extra = {"abtrain.json": ""}
        torch.export.load(self.folder / "from_pixels.pt2", extra_files=extra)
        about = json.loads(extra["abtrain.json"])
        self.assertEqual((about["model"], about["input"], about["classes"]), ("mlp", "3,32,32", "10"))
        session = onnxruntime.InferenceSession(self.folder / "from_pixels.onnx")
        self.assertEqual(session.get_modelmeta().custom_metadata_map["mean"], about["mean"])
        self.assertEqual(session.get_inputs()[0].shape, ["batch", 3, 32, 32])

    def test_files_take_the_place_of_runs(self):
        wanted = self.trained("run", "images", "model.name=cnn", "model.channels=[16, 24]", *AB)
        self.call("export", "runs/run", "-o", "run.safetensors")
        self.written("run", ".pt2")
        for file in ("run.safetensors", "run.pt2"):
            found = json.loads(self.call("evaluate", file, "--json", *self.images_here()).stdout)
            self.assertEqual(found["accuracy"], wanted["accuracy"])
            self.assertAlmostEqual(found["loss"], wanted["loss"], delta=2e-5 * wanted["loss"])
        done = self.call("evaluate", "own_module.pt2", code=2)
        self.assertIn("expected --set data.name=NAME", done.stderr)
        found = json.loads(self.call("evaluate", "own_module.pt2", "--json", "--set", "data.name=arrays",
                                     *self.images_here()).stdout)
        self.assertEqual(found["examples"], 40)

    def test_a_fine_tuned_program_keeps_its_weights(self):
        self.trained("first", "images", "model.name=mlp", "model.hidden=[32]", "method.name=ddp")
        wanted = self.trained("second", "images", "model.name=mlp", "model.hidden=[32]",
                              "method.name=ddp", "model.weights=runs/first/model.safetensors",
                              "model.fresh=[fc2]")
        self.written("second", ".pt2")
        found = json.loads(self.call("evaluate", "second.pt2", "--json", *self.images_here()).stdout)
        self.assertAlmostEqual(found["loss"], wanted["loss"], delta=2e-5 * wanted["loss"])
        from safetensors import safe_open
        with safe_open(self.folder / "runs/second/model.safetensors", "pt") as file:
            said = file.metadata()["config"]
        for word in ("first", str(self.folder), "method", "weights: runs"):
            self.assertNotIn(word, said)

    def test_merged(self):
        self.trained("merges", "images", "model.name=mlp", "model.hidden=[48]", *AB)
        path, parameters = self.written("merges", ".pt2", "--form", "merged")
        self.assertEqual(parameters, 147_994)
        self.assertEqual(set(torch.export.load(path).state_dict),
                         {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})

    def test_a_signal_leaves_nothing(self):
        self.trained("stops", "images", "model.name=mlp", "model.hidden=[48]", *AB)
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(number), tempfile.TemporaryDirectory() as temporary:
                program = subprocess.Popen([PROGRAM, "export", "runs/stops", "-o", "stops.onnx"],
                                           cwd=self.folder, env={**os.environ, "TMPDIR": temporary})
                maps = pathlib.Path(f"/proc/{program.pid}/maps")
                # From then on Python's handlers are in place.
                while "libtorch_python" not in maps.read_text():
                    self.assertIsNone(program.poll())
                    time.sleep(0.01)
                program.send_signal(number)
                self.assertEqual(program.wait(timeout=60), code)
                self.assertEqual(os.listdir(temporary), [])
                self.assertEqual(list(self.folder.glob("stops*")), [])

    def test_nothing_is_left_of_a_checkpoint(self):
        self.trained("keeps", "images", "model.name=mlp", "model.hidden=[48]",
                     "checkpoint.every=4 steps", *AB)
        with tempfile.TemporaryDirectory() as temporary:
            subprocess.run([PROGRAM, "export", "runs/keeps@last", "-o", "keeps.pt2"], check=True,
                           cwd=self.folder, env={**os.environ, "TMPDIR": temporary})
            self.assertEqual(os.listdir(temporary), [])
        self.assertTrue((self.folder / "keeps.pt2").is_file())

    def test_what_is_refused(self):
        self.trained("refuses", "images", "model.name=mlp", "model.hidden=[48]", *AB)
        self.call("export", "runs/refuses", "-o", "a.pt2")
        before = (self.folder / "a.pt2").read_bytes()
        for options, message in (
                (["-o", "a.pt2"], "'a.pt2' already exists"),
                (["-o", "b.pt2", "--dtype", "bf16"], "leave out --names, --dtype"),
                (["-o", "b.safetensors", "--with-normalization"], "goes with -o FILE.pt2"),
                (["-o", "b.pth"], "ends in .pt2 or .onnx"),
                (["-o", "no/folder/b.pt2"], "No such file or directory")):
            done = subprocess.run([PROGRAM, "export", "runs/refuses", *options], cwd=self.folder,
                                  capture_output=True, text=True)
            self.assertIn(done.returncode, (2, 74))
            self.assertIn(message, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        self.assertEqual((self.folder / "a.pt2").read_bytes(), before)
        done = subprocess.run([PROGRAM, "export", "runs/refuses", "-o", "c.pt2"], cwd=self.folder,
                              capture_output=True, text=True,
                              env={**os.environ, "ABTRAIN_PYTHON": "/no/python"})
        self.assertEqual(done.returncode, 66)
        self.assertIn("'/no/python' cannot be run", done.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
