"""The module abtrain and its command, on what the real program writes.

    test_module.py PROGRAM    # with the Python of LibTorch's environment
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
try:
    import numpy
    import pandas
    import safetensors.torch
    import torch
    import abtrain
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --tests installs it")
    sys.exit(77)


class LoadWeights(unittest.TestCase):
    """Against the weights that were decomposed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def decomposed(self, weights, *options):
        dense, small = self.folder / "dense.safetensors", self.folder / "small.safetensors"
        safetensors.torch.save_file(weights, dense)
        subprocess.run([PROGRAM, "decompose", dense, "-o", small, *options], check=True,
                       capture_output=True, timeout=120)
        self.assertLess(small.stat().st_size, dense.stat().st_size)
        return abtrain.load_weights(small)

    def test_factors_are_multiplied_out(self):
        torch.manual_seed(1)
        product = lambda m, n: torch.randn(m, 3) @ torch.randn(3, n)
        weights = {"tall.weight": product(120, 40), "wide.weight": product(40, 120),
                   "conv.weight": product(64, 288).reshape(64, 32, 3, 3), "bias": torch.randn(9)}
        loaded = self.decomposed(weights, "--rule", "fixed", "--rank", "3")
        self.assertEqual(set(loaded), set(weights))
        for name, weight in weights.items():
            self.assertEqual(loaded[name].shape, weight.shape)
            torch.testing.assert_close(loaded[name], weight, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(loaded["bias"], weights["bias"], rtol=0, atol=0)

    def test_zeros_are_filled_in(self):
        """On the file of a run that ends with exact zeros."""
        subprocess.run([PROGRAM, "fashion_mnist_softmax_qrda", "train.steps=40", "device=cpu",
                        "evaluate.every=0", "--output", self.folder, "--name", "run"],
                       check=True, capture_output=True, timeout=120)
        sparse = abtrain.load_weights(self.folder / "run/model.sparse.safetensors")
        dense = abtrain.load_weights(self.folder / "run/model.safetensors")
        self.assertEqual(set(sparse), set(dense))
        self.assertTrue(any((weight == 0).any() for weight in dense.values()))
        for name, weight in dense.items():
            torch.testing.assert_close(sparse[name], weight, rtol=0, atol=0)

    def test_other_files_are_returned_as_they_are(self):
        weights = {"a.A": torch.ones(2, 2), "b": torch.zeros(3, dtype=torch.bfloat16)}
        safetensors.torch.save_file(weights, self.folder / "own.safetensors")
        loaded = abtrain.load_weights(self.folder / "own.safetensors")
        self.assertEqual(set(loaded), set(weights))
        self.assertEqual(loaded["b"].dtype, torch.bfloat16)


class SaveArrays(unittest.TestCase):
    """Read back by safetensors, and by a run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "set"

    def read(self, part="train"):
        path = self.folder / f"{part}.safetensors"
        with safetensors.safe_open(path, "pt") as file:
            return file.get_tensor("x"), file.get_tensor("y"), file.metadata()

    def test_what_is_saved(self):
        torch.manual_seed(1)
        classes = torch.arange(5000) % 3
        for x in (torch.randint(256, (5000, 2, 3), dtype=torch.uint8), torch.randn(5000, 4).half(),
                  torch.randn(5000, 4).bfloat16(), torch.randn(4, 5000).double().T,
                  torch.randint(9, (5000, 4))):
            abtrain.save_arrays(self.folder, x, classes, x[:9], classes[:9], overwrite=True)
            saved = self.read()
            self.assertTrue(torch.equal(saved[0], x) and saved[0].dtype == x.dtype)
            self.assertTrue(torch.equal(saved[1], classes))
            self.assertTrue(torch.equal(self.read("test")[0], x[:9]))
        big_endian = numpy.arange(6, dtype=">f4").reshape(3, 2)[:, ::-1]
        abtrain.save_arrays(self.folder, big_endian, [2, 1, 0], class_names="abc", overwrite=True)
        x, y, about = self.read()
        self.assertEqual(x.tolist(), big_endian.tolist())
        self.assertEqual(y.tolist(), [2, 1, 0])
        self.assertEqual(about, {"classes": '["a", "b", "c"]'})
        self.assertFalse((self.folder / "test.safetensors").exists())

    def test_refusals(self):
        x, y = numpy.zeros((4, 2, 2), "uint8"), numpy.zeros(4, "int64")
        cases = [((x, y[:3]), "4 x and 3 y"), ((x + 1j, y), "complex128"),
                 ((numpy.array(["a"] * 4), y), "unknown dtype"), ((x.astype("int64"), y), "tokens"),
                 ((x, y - 1), "got -1"), ((x, x), "expected N integer classes"),
                 ((x[:0], y[:0]), "at least one"), ((x, y, x), "both test_x and test_y"),
                 ((x, y, x[:, :1], y), "test: expected uint8"), ((x, y + 2, None, None, "ab"), "got 2")]
        for arguments, message in cases:
            with self.assertRaisesRegex(ValueError, message):
                abtrain.save_arrays(self.folder, *arguments)
            self.assertFalse(self.folder.exists())
        abtrain.save_arrays(self.folder, x, y)
        with self.assertRaisesRegex(ValueError, "exists already.*overwrite=True"):
            abtrain.save_arrays(self.folder, x, y)

    def test_a_run_on_them(self):
        """The classes are the sign of one number: a run must find that out."""
        x = numpy.random.default_rng(1).normal(size=(600, 5)).astype("float32")
        y = (x[:, 2] > 0).astype("uint8")
        abtrain.save_arrays(self.folder, x[:500], y[:500], x[500:], y[500:])
        run = self.folder / "runs"
        (self.folder / "c.yaml").write_text(
            "name: run\nworkers: 2\nmodel: {name: mlp, hidden: [32]}\nmethod: {name: ddp}\n"
            f"data: {{name: arrays, root: {self.folder}, batch_size: 25}}\n"
            "optimizer: {name: adamw, lr: 1e-2}\ntrain: {epochs: 10}\n")
        subprocess.run([PROGRAM, "--config", self.folder / "c.yaml", "device=cpu", "--output", run],
                       check=True, capture_output=True, timeout=120)
        _, summary = abtrain.load_run(run / "run")
        self.assertGreater(summary["accuracy"], 0.9)


class Net(torch.nn.Module):
    """Numbers to numbers, with all that differs between training and evaluation."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Linear(6, 32), torch.nn.BatchNorm1d(32), torch.nn.GELU(),
            torch.nn.Dropout(0.05), torch.nn.Linear(32, 32), torch.nn.ReLU())
        self.head = torch.nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.body(x.flatten(1)))


class SaveModel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_regression_by_ab_training(self):
        """Targets that depend linearly on 2 x 3 numbers, up to noise: R^2 as the formula says, by
        the module itself with the weights that come out."""
        torch.manual_seed(1)
        net = Net()
        x = torch.randn(3000, 2, 3)
        y = 3 + x.flatten(1) @ torch.randn(6, 2) + 0.1 * torch.randn(3000, 2)
        abtrain.save_arrays(self.folder / "data", x[:2600], y[:2600], x[2600:], y[2600:])
        before = {name: value.clone() for name, value in net.state_dict().items()}
        abtrain.save_model(net, x[:4], self.folder / "net.pt2")
        for name, value in net.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertTrue(net.training)
        (self.folder / "c.yaml").write_text(
            f"name: run\nworkers: 4\nmodel: {{name: exported, file: {self.folder}/net.pt2}}\n"
            f"data: {{name: arrays, root: {self.folder}/data, batch_size: 16,\n"
            "  validation: 200}\ncheckpoint: {every: 8 %, keep: 20}\n"
            "method: {name: ab, group_size: 2, warmup_steps: 20 %, sync_every: 10 %,\n"
            "  full_rank_steps: 2, rank: {rule: ratio, ratio: 2}}\n"
            "optimizer: {name: adamw, lr: 1e-2}\ntrain: {epochs: 15, precision: fp32}\n"
            "evaluate: {norm_batches: 10, every: 1 %}\n")

        def abtrain_says(*arguments):
            return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True,
                                  timeout=120).stdout

        said = abtrain_says("--config", self.folder / "c.yaml", "device=cpu", "--output",
                            self.folder)
        self.assertRegex(said, "R² +0.9")
        self.assertRegex(abtrain_says("evaluate", self.folder / "run"), "^R² 0.9.*: 400 examples")
        numpy.save(self.folder / "x.npy", x[2600:2605].numpy())
        predicted = [json.loads(line)["values"] for line in abtrain_says(
            "predict", self.folder / "run", self.folder / "x.npy", "--format", "json").splitlines()]
        best = json.loads(abtrain_says("evaluate", f"{self.folder}/run@best", "--json"))
        self.assertGreater(best["r2"], 0.9)
        found = json.loads(abtrain_says("evaluate", self.folder / "run", "--json"))
        self.assertGreater(found["r2"], 0.9)
        self.assertEqual(found["r2"], found["accuracy"])
        abtrain_says("export", self.folder / "run", "-o", self.folder / "out.safetensors",
                     "--form", "merged")
        net.load_state_dict(abtrain.load_weights(self.folder / "out.safetensors"), strict=True)
        with torch.no_grad():
            outputs = net.eval()(x[2600:])
        torch.testing.assert_close(torch.tensor(predicted), outputs[:5], rtol=1e-4, atol=1e-4)
        error = (outputs - y[2600:]).square().double()
        self.assertAlmostEqual(found["loss"], float(error.mean()), delta=1e-5)
        spread = (y[2600:] - y[2600:].mean(0)).square().double()
        self.assertAlmostEqual(found["r2"], float(1 - error.sum() / spread.sum()), delta=1e-5)

    def test_refusals(self):
        class Branches(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x) if x.sum() > 0 else x

        class Trains(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x) * (2 if self.training else 1)

        class Two(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x), x

        class Chooses(torch.nn.Linear):
            def forward(self, x):
                return torch.cond(x.sum() > 0, torch.sin, torch.cos, (super().forward(x),))

        x = torch.randn(3, 4)
        path = self.folder / "m.pt2"
        cases = [(torch.nn.Linear(4, 4), x[:1], "at least two inputs"),
                 (Branches(4, 4), x, "torch.export cannot export this module: .*data-dependent"),
                 (Trains(4, 4), x, "in evaluation, the exported module does not compute"),
                 (Two(4, 4), x, "returns 2 values"),
                 (Chooses(4, 4), x, "operator cond, File .*test_module.py.*: .*torch.where")]
        for module, example, message in cases:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                abtrain.save_model(module, example, path)
            self.assertFalse(path.exists())
        with self.assertRaisesRegex(ValueError, r"torch.export cannot .*size\(\)\[1\]"):
            abtrain.save_model(torch.nn.Linear(4, 4), x, path, any_length=True)
        abtrain.save_model(torch.nn.Linear(4, 4), x, path)
        with self.assertRaisesRegex(ValueError, "overwrite=True"):
            abtrain.save_model(torch.nn.Linear(4, 4), x, path)


    def test_evaluation_mode(self):
        """What is frozen within a module in training mode stays frozen; a module that is in
        evaluation mode as a whole is not."""
        def net():
            torch.manual_seed(1)
            return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8),
                                       torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))

        def flags(path):
            nodes = torch.export.load(path).graph.nodes
            return [node.args[5] for node in nodes if "batch_norm" in str(node.target)] + [
                node.args[2] for node in nodes if "dropout" in str(node.target)]

        x = torch.randn(4, 4)
        for parts, wanted in [([], [True, True]), ([1], [False, True]), ([1, 2], [False, False])]:
            module = net()
            for part in parts:
                module[part].eval()
            path = self.folder / f"{len(parts)}.pt2"
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                abtrain.save_model(module, x, path)
            said = [str(one.message) for one in said if "evaluation mode" in str(one.message)]
            self.assertEqual(len(said), int(bool(parts)))
            self.assertEqual(flags(path), wanted)
            self.assertEqual([part.training for part in module],
                             [i not in parts for i in range(4)])
        module = net().eval()
        abtrain.save_model(module, x, self.folder / "eval.pt2")
        self.assertEqual(flags(self.folder / "eval.pt2"), [True, True])
        self.assertFalse(any(part.training for part in module))

        # Nothing in "2.pt2" is in training mode.
        abtrain.save_arrays(self.folder / "data", torch.randn(64, 4), torch.arange(64) % 3)
        arguments = [PROGRAM, "fashion_mnist_mlp", "data.name=arrays", "device=cpu",
                     f"data.root={self.folder}/data", "model.name=exported", "workers=2",
                     "data.batch_size=4", "data.augment=none", "train.steps=2", "method.name=ddp",
                     f"model.file={self.folder}/2.pt2", f"output={self.folder}"]
        said = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 78, said.stderr)
        self.assertRegex(said.stderr, "model.file: .*2.pt2: .*exported in evaluation mode.*"
                                      "model.eval_mode: true")
        said = subprocess.run(arguments + ["model.eval_mode=true"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(said.returncode, 0, said.stderr)

    def test_a_compressed_file(self):
        """Records that unpack to more than the file are not unpacked."""
        torch.manual_seed(1)
        abtrain.save_model(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)),
                           torch.randn(2, 1, 28, 28), self.folder / "m.pt2")
        with zipfile.ZipFile(self.folder / "m.pt2") as good, zipfile.ZipFile(
                self.folder / "bomb.pt2", "w", zipfile.ZIP_DEFLATED) as bomb:
            for name in good.namelist():
                bomb.writestr(name, good.read(name))
            bomb.writestr(good.namelist()[0].split("/")[0] + "/more", bytes(10_000_000))
        said = subprocess.run(
            [PROGRAM, "plan", "fashion_mnist_mlp", "model.name=exported",
             f"model.file={self.folder}/bomb.pt2"], capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 65, said.stderr)
        self.assertIn("records are larger than the file", said.stderr)


class LoadRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write('{"event": "step", "step": 1, "loss": 2.5}\n'
                   '{"event": "evaluate", "step": 2, "accuracy": 0.5}\n')

    def write(self, metrics):
        (self.folder / "metrics.jsonl").write_text(metrics)

    def test_events_become_rows(self):
        (self.folder / "summary.json").write_text('{"accuracy": 0.5}')
        metrics, summary = abtrain.load_run(self.folder)
        self.assertEqual(list(metrics.event), ["step", "evaluate"])
        self.assertEqual(list(metrics.step), [1, 2])
        self.assertEqual(metrics.accuracy[1], 0.5)
        self.assertTrue(pandas.isna(metrics.accuracy[0]))
        self.assertEqual(summary, {"accuracy": 0.5})

    def test_a_run_that_goes_on(self):
        self.write('{"event": "step", "step": 1}\n{"event": "st')
        run = abtrain.load_run(str(self.folder))
        self.assertEqual(len(run.metrics), 1)
        self.assertIsNone(run.summary)

    def test_damage_is_named(self):
        self.write('{"event": "step", "step": 1}\n{"event": "st\n')
        with self.assertRaisesRegex(ValueError, "metrics.jsonl:2: damaged: "):
            abtrain.load_run(self.folder)
        self.write("[]\n")
        with self.assertRaisesRegex(ValueError, "metrics.jsonl:1: damaged: expected a JSON object"):
            abtrain.load_run(self.folder)
        (self.folder / "metrics.jsonl").write_bytes(b"\xff\n")
        with self.assertRaisesRegex(ValueError, "metrics.jsonl: no text"):
            abtrain.load_run(self.folder)
        with self.assertRaises(FileNotFoundError):
            abtrain.load_run(self.folder / "nowhere")


class Command(unittest.TestCase):
    """The entry point, with a program that prints how it was started."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        package = self.folder / "site/abtrain"
        (package / "bin").mkdir(parents=True)
        for file in ("__init__.py", "_program.py"):
            shutil.copy(SOURCE / "python/abtrain" / file, package)
        program = package / "bin/abtrain"
        program.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH|$*"\nexit 75\n')
        program.chmod(0o755)
        self.program = program

    def torch_in(self, site):
        for path in ("torch/lib/libtorch_cpu.so", "nvidia/nccl/lib/libnccl.so.2"):
            file = self.folder / site / path
            file.parent.mkdir(parents=True)
            file.touch()

    def call(self, *sites, before=""):
        path = ":".join(str(self.folder / site) for site in sites)
        environment = {key: value for key, value in os.environ.items()
                       if key != "LD_LIBRARY_PATH"} | {"PYTHONPATH": path}
        code = f"import os, sys, abtrain._program\n{before}\nsys.exit(abtrain._program.main())"
        return subprocess.run([sys.executable, "-S", "-c", code, "plan", "a b"], text=True,
                              env=environment, capture_output=True, timeout=60)

    def test_torch_beside_the_package(self):
        self.torch_in("site")
        done = self.call("site")
        self.assertEqual((done.returncode, done.stdout), (75, "|plan a b\n"), done.stderr)

    def test_torch_elsewhere(self):
        self.torch_in("other")
        done = self.call("site", "other")
        folders = f"{self.folder}/other/torch/lib:{self.folder}/other/nvidia/nccl/lib"
        self.assertEqual((done.returncode, done.stdout), (75, f"{folders}|plan a b\n"))

    def test_no_torch(self):
        done = self.call("site")
        self.assertEqual(done.returncode, 78)
        self.assertIn("torch is not installed", done.stderr)

    def test_glibc_too_old(self):
        self.torch_in("site")
        for version, code in (("2.33", 78), ("2.34", 75), ("3.0", 75)):
            done = self.call("site", before=f"os.confstr = lambda name: 'glibc {version}'")
            self.assertEqual(done.returncode, code, done.stderr)
        done = self.call("site", before="os.confstr = lambda name: 'glibc 2.9'")
        self.assertIn("needs glibc 2.34 or newer", done.stderr)
        self.assertIn("has 2.9;", done.stderr)

    def test_torch_without_cuda(self):
        self.torch_in("site")
        self.program.write_text(self.program.read_text() + "# libtorch_cuda.so\n")
        done = self.call("site")
        self.assertEqual(done.returncode, 78)
        self.assertIn("is for CPUs only", done.stderr)
        (self.folder / "site/torch/lib/libtorch_cuda.so").touch()
        self.assertEqual(self.call("site").returncode, 75)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
