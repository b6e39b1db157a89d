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
    sys.exit(1 if os.environ.get("ABTRAIN_TESTS_COMPLETE") else 77)


class MatchSize(unittest.TestCase):
    """Against a search of all widths."""

    @staticmethod
    def make(width):
        return torch.nn.Sequential(
            torch.nn.Linear(20, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
            torch.nn.ReLU(), torch.nn.Linear(width, 10))

    @staticmethod
    def parameters(width):  # of make(width)
        return 21 * width + (width + 1) * width + (width + 1) * 10

    def test_no_other_width_is_nearer(self):
        for target in (self.parameters(1), 500, 1234, self.parameters(37), 99_999):
            module, width = abtrain.match_size(self.make, target)
            nearest = min(range(1, 400), key=lambda w: abs(self.parameters(w) - target))
            self.assertEqual(width, nearest)
            self.assertEqual(
                sum(p.numel() for p in module.parameters()), self.parameters(nearest))

    def test_the_module_is_what_make_returns(self):
        """The search draws no random numbers from the caller's generator."""
        torch.manual_seed(3)
        module, width = abtrain.match_size(self.make, 1234)
        torch.manual_seed(3)
        for found, wanted in zip(module.parameters(), self.make(width).parameters(), strict=True):
            self.assertTrue(torch.equal(found, wanted))

    def test_frozen_and_tied_parameters(self):
        def make(width):
            module = torch.nn.ModuleList([torch.nn.Linear(width, 5), torch.nn.Linear(9, 9)])
            module[1].requires_grad_(False)
            module.append(module[0])
            return module
        self.assertEqual(abtrain.match_size(make, 5 * 12 + 5)[1], 12)

    def test_what_cannot_be(self):
        with self.assertRaisesRegex(ValueError, r"make\(1\) has 43 parameters already; .*got 42"):
            abtrain.match_size(self.make, 42)
        with self.assertRaisesRegex(ValueError, r"make\(2\) has 6 parameters, no more than make\(1\)"):
            abtrain.match_size(lambda width: torch.nn.Linear(5, 1), 100)


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

    def test_factors_of_float64_are_multiplied_in_float64(self):
        torch.manual_seed(1)
        weight = 1e60 * torch.randn(60, 3, dtype=torch.float64) @ torch.randn(3, 40, dtype=torch.float64)
        loaded = self.decomposed({"w.weight": weight}, "--rule", "fixed", "--rank", "3")["w.weight"]
        torch.testing.assert_close(loaded, weight, rtol=1e-11, atol=1e-11 * weight.abs().max().item())

    def test_factors_in_a_grid_are_multiplied_out(self):
        torch.manual_seed(1)
        # Every block of 4 x 4 has rank 2.
        grid = lambda m, n: torch.cat([torch.cat([
            torch.randn(m // 4, 2) @ torch.randn(2, n // 4) for _ in range(4)], 1)
            for _ in range(4)])
        weights = {"tall.weight": grid(120, 40), "wide.weight": grid(40, 120),
                   "conv.weight": grid(64, 288).reshape(64, 32, 3, 3)}
        loaded = self.decomposed(weights, "--blocks", "4", "--rule", "fixed", "--rank", "8")
        for name, weight in weights.items():
            torch.testing.assert_close(loaded[name], weight, rtol=1e-3, atol=1e-3)

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
        metadata = self.folder / "site/abtrain-0.1.0+torch2.11.cpu.dist-info/METADATA"
        metadata.parent.mkdir()
        metadata.write_text("Name: abtrain\nVersion: 0.1.0+torch2.11.cpu\n")

    def torch_in(self, site, version="2.11.1+cu130"):
        for path in ("torch/lib/libtorch_cpu.so", "nvidia/nccl/lib/libnccl.so.2"):
            file = self.folder / site / path
            file.parent.mkdir(parents=True)
            file.touch()
        (self.folder / site / "torch/version.py").write_text(f"__version__ = '{version}'\n")

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

    def test_another_torch(self):
        self.torch_in("site", "2.5.1+cu121")
        done = self.call("site")
        self.assertEqual((done.returncode, done.stdout), (78, ""))
        self.assertRegex(done.stderr, r"^abtrain: this program is built for torch 2\.11, and \S+ has torch "
                                      r"2\.5\.1\+cu121; run `pip install torch==2\.11\.\*`, or install the "
                                      r"wheel of abtrain for torch 2\.5 \(there are .* 2\.9 to 2\.15\)\n$")

    def test_glibc_too_old(self):
        self.torch_in("site")
        for version, code in (("2.27", 78), ("2.28", 75), ("3.0", 75)):
            done = self.call("site", before=f"os.confstr = lambda name: 'glibc {version}'")
            self.assertEqual(done.returncode, code, done.stderr)
        done = self.call("site", before="os.confstr = lambda name: 'glibc 2.9'")
        self.assertIn("needs glibc 2.28 or newer", done.stderr)
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
