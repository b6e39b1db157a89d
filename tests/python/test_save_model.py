"""abtrain.save_model, and what the program says of the modules that it takes and refuses.

    test_save_model.py PROGRAM    # with the Python of LibTorch's environment
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
try:
    import numpy
    import pandas  # for load_run
    import safetensors
    import torch
    import abtrain
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --tests installs it")
    sys.exit(1 if os.environ.get("ABTRAIN_TESTS_COMPLETE") else 77)


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


def array_of(file, name):
    with safetensors.safe_open(file, "pt") as arrays:
        return arrays.get_tensor(name)


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

    def test_small_rivals_of_an_exported_model(self):
        """From two files to a verdict; a file of another size is refused with both counts."""
        def make(width):
            return torch.nn.Sequential(
                torch.nn.Flatten(), torch.nn.Linear(30, width), torch.nn.ReLU(),
                torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))

        torch.manual_seed(1)
        x = torch.randn(600, 5, 6)
        y = x.flatten(1)[:, :4].argmax(1)
        abtrain.save_arrays(self.folder / "data", x[:500], y[:500], x[500:], y[500:])
        abtrain.save_model(make(60), x[:4], self.folder / "large.pt2")
        (self.folder / "c.yaml").write_text(
            f"name: c\nworkers: 2\nmodel: {{name: exported, file: {self.folder}/large.pt2}}\n"
            f"data: {{name: arrays, root: {self.folder}/data, batch_size: 16}}\n"
            "method: {name: ab, group_size: 1, warmup_steps: 20 %, sync_every: 25 %,\n"
            "  full_rank_steps: 0, keep_dense: [\"5\"], rank: {rule: fixed, rank: 10}}\n"
            "optimizer: {name: adamw, lr: 1e-2}\ntrain: {precision: fp32}\n")
        # Both factors of each layer, the last layer and the biases.
        stored = 10 * (30 + 60) + 10 * (60 + 60) + 60 * 4 + 60 + 60 + 4

        def rivals(*options):
            return subprocess.run(
                [PROGRAM, "rivals", self.folder / "c.yaml", "device=cpu", *options],
                capture_output=True, text=True, timeout=120, cwd=self.folder)

        said = rivals("--dry-run")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn(f"AB-training stores {stored:,} parameters", said.stdout)
        missing = ("the strongest kind of rival, a smaller dense network, did not run, because an "
                   f"exported model cannot be narrowed here: export one with about {stored:,}")
        self.assertEqual(said.stderr.count(missing), 1, said.stderr)
        self.assertNotIn("small_ddp", said.stdout)

        small, width = abtrain.match_size(make, stored)
        for name, module in (("small.pt2", small), ("wrong.pt2", make(width - 5))):
            abtrain.save_model(module, x[:4], self.folder / name)
        found = sum(p.numel() for p in make(width - 5).parameters())
        said = rivals("--dry-run", "--small", "wrong.pt2")
        self.assertEqual(said.returncode, 78, said.stderr)
        self.assertRegex(said.stderr, f"--small: expected .* {stored:,} up to 3 %; .*wrong.pt2 has "
                                      f"{found:,}")
        abtrain.save_model(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(30, 5)), x[:4],
                           self.folder / "five.pt2")
        said = rivals("--dry-run", "--small", "five.pt2")
        self.assertEqual(said.returncode, 78, said.stderr)
        self.assertIn("the model returns any x 5, but the data set needs any x 4", said.stderr)

        trained = ("--steps", "24", "--tune", "1", "--seeds", "1", "--run", "--output", "runs")
        said = rivals("--small", "small.pt2", "--only", "ab,small_ddp", "-o", "r.yaml", *trained)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertRegex(said.stdout, "^In 24 steps, .*small_ddp")
        self.assertNotIn("did not run", said.stdout)
        (summary,) = self.folder.glob("runs/c_rivals/*small_ddp*/summary.json")
        self.assertEqual(json.loads(summary.read_text())["parameters"]["stored"],
                         sum(p.numel() for p in small.parameters()))
        # Without the file, the report says so too.
        said = rivals("--only", "ab,small_ddp", "-o", "s.yaml", "--name", "s", *trained)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn(missing, " ".join(said.stdout.split()))

    def test_parameters_that_are_no_weights(self):
        """A convolution whose padding is a word, and a transposed one, are not factored; the mean
        over the workers is that of their numbers, in a score, a checkpoint and the model."""
        torch.manual_seed(3)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 5, 3, padding="same"), torch.nn.ReLU(),
            torch.nn.ConvTranspose2d(5, 4, 2), torch.nn.Flatten(), torch.nn.Linear(4 * 49, 16),
            torch.nn.Linear(16, 3))
        x, y = torch.randn(64, 3, 6, 6), torch.arange(64) % 3
        abtrain.save_arrays(self.folder / "data", x, y, x, y)
        abtrain.save_model(net, x[:4], self.folder / "net.pt2")
        for method, groups in (("diloco", ""), ("ab", ", group_size: 1")):
            with self.subTest(method):
                (self.folder / "c.yaml").write_text(
                    f"name: {method}\nworkers: 2\nmodel: {{name: exported, file: {self.folder}/net.pt2}}\n"
                    f"data: {{name: arrays, root: {self.folder}/data, batch_size: 8}}\n"
                    f"method: {{name: {method}, sync_every: 50{groups}}}\nevaluate: {{every: 4}}\n"
                    "checkpoint: {every: 4, keep: 9}\noptimizer: {name: sgd, lr: 0.1}\n"
                    "train: {steps: 10, precision: fp32}\n")
                subprocess.run([PROGRAM, "--config", self.folder / "c.yaml", "device=cpu",
                                "--output", self.folder], check=True, capture_output=True, timeout=120)
                events = [json.loads(line) for line in
                          (self.folder / method / "metrics.jsonl").read_text().splitlines()]
                scores = {one["step"]: one["loss"] for one in events if one["event"] == "evaluate"}
                for step, name in ((4, "@step-4"), (8, "@step-8"), (10, "")):
                    found = json.loads(subprocess.run(
                        [PROGRAM, "evaluate", f"{self.folder}/{method}{name}", "--json"], check=True,
                        capture_output=True, text=True, timeout=120).stdout)
                    self.assertAlmostEqual(found["loss"], scores[step], places=4)

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

        class Counts(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x) * (2 if x.shape[0] > 8 else 1)

        class Even(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x) * (2 if x.shape[0] % 2 == 0 else 1)

        class Length(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x).view(len(x), -1)

        class Grows(torch.nn.Linear):
            def forward(self, x):
                if not hasattr(self, "mask"):
                    self.register_buffer("mask", torch.ones(4))
                return super().forward(x) * self.mask

        class Infinite(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x) / (x - x)

        x = torch.randn(3, 4)
        path = self.folder / "m.pt2"
        cases = [(torch.nn.Linear(4, 4), x[:1], "at least two inputs"),
                 (Branches(4, 4), x, "torch.export cannot export this module: .*data-dependent"),
                 (Trains(4, 4), x, "in evaluation, the exported module does not compute"),
                 (Two(4, 4), x, "returns 2 values"),
                 (Counts(4, 4), x, r"some sizes of batches only \(.*8"),
                 (Even(4, 4), torch.randn(4, 4), r"some sizes of batches only \(.*% 2"),
                 (Length(4, 4), x, r"for batches of 3 inputs only, .*len\(x\)"),
                 (Grows(4, 4), x, "makes the buffer 'mask'"),
                 (Infinite(4, 4), x, "returns nan or infinity"),
                 (Chooses(4, 4), x, "operator cond, File .*test_save_model.py.*: .*torch.where")]
        for module, example, message in cases:
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                abtrain.save_model(module, example, path)
            self.assertFalse(path.exists())
        with self.assertRaisesRegex(ValueError, r"torch.export cannot .*size\(\)\[1\]"):
            abtrain.save_model(torch.nn.Linear(4, 4), x, path, any_length=True)
        abtrain.save_model(torch.nn.Linear(4, 4), x, path)
        with self.assertRaisesRegex(ValueError, "overwrite=True"):
            abtrain.save_model(torch.nn.Linear(4, 4), x, path)
        with self.assertRaisesRegex(ValueError, "example: expected float32 .* got torch.float64"):
            abtrain.save_model(torch.nn.Linear(4, 4).double(), x.double(), self.folder / "n.pt2")

    def train(self, file, name, *options):
        """A short run of an exported model of 4 numbers to 3 classes."""
        data = self.folder / "data"
        if not data.exists():
            torch.manual_seed(2)
            x = torch.randn(64, 4)
            abtrain.save_arrays(data, x, x[:, :3].argmax(1), x[:16], x[:16, :3].argmax(1))
        (self.folder / "c.yaml").write_text(
            f"name: {name}\nworkers: 1\nmodel: {{name: exported, file: {file}}}\n"
            f"data: {{name: arrays, root: {data}, batch_size: 16}}\nmethod: {{name: ddp}}\n"
            "optimizer: {name: sgd, lr: 0.1}\ntrain: {steps: 4, precision: fp32}\n")
        return subprocess.run([PROGRAM, "--config", self.folder / "c.yaml", "device=cpu", *options,
                               "--output", self.folder], capture_output=True, text=True, timeout=60)

    def expect_like_pytorch(self, name, module, x):
        """Four training steps of SGD and an evaluation, beside PyTorch's own."""
        y = torch.arange(len(x)) % 3
        folder = self.folder / name
        folder.mkdir()
        abtrain.save_arrays(folder / "data", x, y, x, y)
        abtrain.save_model(module, x[:4], folder / "net.pt2")
        (folder / "c.yaml").write_text(
            f"name: run\nworkers: 1\nmodel: {{name: exported, file: {folder}/net.pt2}}\n"
            f"data: {{name: arrays, root: {folder}/data, batch_size: 4}}\nmethod: {{name: ddp}}\n"
            "optimizer: {name: sgd, lr: 0.1, momentum: 0, weight_decay: 0}\n"
            "schedule: {name: constant}\norder: {name: sequential}\n"
            "train: {steps: 4, precision: fp32, log_every: 1, threads: 1}\n")
        done = subprocess.run([PROGRAM, folder / "c.yaml", "device=cpu", "--output", folder],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        metrics, summary = abtrain.load_run(folder / "run")
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        losses = []
        for step in range(4):
            optimizer.zero_grad()
            part = slice(step % (len(x) // 4) * 4, step % (len(x) // 4) * 4 + 4)
            loss = torch.nn.functional.cross_entropy(module(x[part].clone()), y[part])
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        with torch.no_grad():
            losses.append(float(torch.nn.functional.cross_entropy(module.eval()(x.clone()), y)))
        found = [*metrics[metrics.event == "step"].loss, summary["loss"]]
        torch.testing.assert_close(torch.tensor(found), torch.tensor(losses), rtol=1e-4, atol=1e-5)

    def test_memory_of_images(self):
        """Images and results of convolutions lie in memory otherwise here. That decides whether
        reshape() is a view, which writes in place show."""
        def flattened(x):
            y = x.flatten(1)
            y.mul_(2)
            return x.reshape(len_of(x), -1) + y

        def copied(x):
            y = x.permute(0, 2, 3, 1).contiguous()
            torch.relu_(y)
            return y.flatten(1) + x.flatten(1)

        def in_eval(x):
            y = torch.nn.functional.dropout(x.reshape(len_of(x), -1), 0.0)
            y.add_(1)
            return x.flatten(1)

        def from_input(x):
            y = x.permute(0, 2, 3, 1).reshape(len_of(x), -1, 8)
            y *= 2
            return x.flatten(1)

        def viewed(x):
            return torch.relu_(x.view(len_of(x), -1))

        def as_complex(x):
            return torch.view_as_complex(x.reshape(len_of(x), 8, -1, 2)).abs().repeat(1, 1, 2).flatten(1)

        def views(x):  # no write: memory stays channels-last
            return x.view(len_of(x), -1) + x.view_as(torch.empty(len_of(x), 8 * 36))

        def len_of(x):
            return x.shape[0]

        class Convolves(torch.nn.Module):
            def __init__(self, then):
                super().__init__()
                self.then = then
                self.convolution, self.head = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(8 * 36, 3)

            def forward(self, x):
                if self.then is copied:
                    x.permute(0, 2, 3, 1).contiguous().sub_(0.5)  # the input stays
                return self.head(self.then(self.convolution(x)))

        torch.manual_seed(5)
        x = torch.randn(16, 3, 8, 8)
        for then in (flattened, copied, in_eval, from_input, viewed, as_complex, views):
            with self.subTest(then.__name__):
                self.expect_like_pytorch(then.__name__, Convolves(then), x)
        with self.subTest("a module in channels-last memory"):
            module = Convolves(flattened).to(memory_format=torch.channels_last)
            self.expect_like_pytorch("channels_last", module, x)

    def test_types_and_sizes_as_in_pytorch(self):
        """Complex numbers, buffers and parameters in other types than fp32, sizes by values."""
        class Types(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
                self.exact = torch.nn.Linear(8, 8).double()
                self.matrix = torch.nn.Parameter(torch.randn(8, 8, dtype=torch.double) / 3)
                self.register_buffer("table", torch.randn(8, 8, dtype=torch.double))
                self.register_buffer("rough", torch.randn(8, 8).half() / 3)
                self.frozen = torch.nn.Linear(8, 8).bfloat16().requires_grad_(False)

            def forward(self, x):
                x = torch.tanh(self.body(x))
                pairs = torch.view_as_complex(x.view(-1, 4, 2)) * (1 + 2j)
                x = torch.view_as_real(pairs + x.view(-1, 4, 2)[..., 0].to(torch.complex64)).flatten(1)
                x = x * x[x > 0].mean() + x.masked_select(x < 0).sum() / 100
                y = self.exact(x.double() @ self.table)
                x = (y + torch.einsum("bi,ij->bj", y, self.matrix)).float()
                x = torch.tanh(x).half() @ self.rough
                return self.head(x.float() + self.frozen(x.bfloat16()).float())

        torch.manual_seed(6)
        self.expect_like_pytorch("types", Types(), torch.randn(16, 4))

    def test_frozen_norms(self):
        """The statistics of frozen norms stay as they are, bit by bit, through averages of three
        workers and the renewal of other norms' statistics."""
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(),
                                  torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8),
                                  torch.nn.Linear(8, 3))
        net[1].running_mean.uniform_(-1, 1)
        net[1].running_var.uniform_(0.5, 2)
        net[1].eval()
        frozen = {name: value.clone() for name, value in net[1].named_buffers()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            abtrain.save_model(net, torch.randn(4, 4), self.folder / "net.pt2")
        done = self.train(self.folder / "net.pt2", "run", "workers=3", "data.batch_size=4",
                          "method.name=local-sgd", "method.sync_every=2 steps",
                          "evaluate.norm_batches=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        net.load_state_dict(abtrain.load_weights(self.folder / "run/model.safetensors"),
                            strict=False)
        for name in ("running_mean", "running_var"):
            self.assertTrue(torch.equal(getattr(net[1], name), frozen[name]), name)
            self.assertFalse(torch.equal(getattr(net[4], name), frozen[name]), name)
        x = array_of(self.folder / "data/test.safetensors", "x")
        y = array_of(self.folder / "data/test.safetensors", "y")
        with torch.no_grad():
            loss = float(torch.nn.functional.cross_entropy(net.eval()(x), y.long()))
        self.assertAlmostEqual(abtrain.load_run(self.folder / "run")[1]["loss"], loss, delta=1e-5)

    def test_lengths_and_batches_other_than_at_export(self):
        class Language(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = torch.nn.Embedding(256, 8)
                self.head = torch.nn.Linear(8, 256)

            def forward(self, tokens):
                x = self.embedding(tokens)
                mask = torch.ones(tokens.shape[1], tokens.shape[1]).tril()  # T x T, without batch
                scores = (x @ x.mT).masked_fill(mask == 0, -1e9)            # B x T x T
                return self.head(scores.softmax(-1) @ x)

        torch.manual_seed(4)
        abtrain.save_model(Language(), torch.randint(256, (8, 16)), self.folder / "net.pt2",
                           any_length=True)
        (self.folder / "text").write_bytes(bytes(torch.randint(97, 123, (3000,)).tolist()))
        (self.folder / "c.yaml").write_text(
            f"name: run\nmodel: {{name: exported, file: {self.folder}/net.pt2}}\n"
            f"data: {{name: text, root: {self.folder}/text, context: 64, batch_size: 4,\n"
            "  test_share: 0.2}\nmethod: {name: ddp}\ntrain: {steps: 3, threads: 1}\n"
            "evaluate: {batch_size: 4}\n")  # the last of 9 windows is a batch of its own
        done = subprocess.run([PROGRAM, self.folder / "c.yaml", "device=cpu", "--output", self.folder],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_refused_as_by_the_program(self):
        """What training refuses is refused when it is saved, with what to do."""
        utils = torch.nn.utils

        class Sign(torch.autograd.Function):
            @staticmethod
            def forward(_, x):
                return x.sign()

            @staticmethod
            def backward(_, gradient):
                return gradient

        class Changed(torch.nn.Module):
            def __init__(self, change):
                super().__init__()
                self.change = change
                self.body, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
                self.scale = torch.nn.Parameter(torch.ones(8))
                self.register_buffer("seen", torch.zeros(8))
                if change == "complex":
                    self.scale = torch.nn.Parameter(torch.ones(3, dtype=torch.cfloat))
                if change in ("weight_norm", "spectral_norm"):
                    self.body = getattr(utils.parametrizations, change)(self.body)
                if change == "lstm":
                    self.body = torch.nn.LSTM(4, 8, 2, dropout=0.5, batch_first=True)
                if change == "max_norm":
                    self.body = torch.nn.Embedding(4, 8, max_norm=1.0)

            def forward(self, x):
                if self.change == "complex":
                    x = torch.fft.irfft(torch.fft.rfft(x) * self.scale, n=4)
                if self.change == "max_norm":
                    return self.head(self.body((x > 0).long()).sum(1))
                if self.change == "lstm":
                    return self.head(self.body(x[:, None])[0][:, 0])
                z = torch.relu(self.body(x))
                if self.change == "buffer":
                    self.seen.lerp_(z.mean(0).detach(), 0.1)
                    z = z - self.seen
                if self.change == "random":
                    z = z + torch.rand_like(z)
                if self.change == "detached":
                    z = z.detach()
                    return z[:, :3]
                if self.change == "operator":
                    z = torch.special.i1(z)
                if self.change == "straight_through":
                    z = Sign.apply(z)
                if self.change == "straight_through_by_operators":
                    z = z + (z.sign() - z).detach()
                return self.head(z)

        path = self.folder / "m.pt2"
        cases = {"weight_norm": "layer 'body': weight normalization .*remove_parametrizations",
                 "spectral_norm": "layer 'body': spectral normalization .*remove_parametrizations",
                 "max_norm": "layer 'body': max_norm .*leave max_norm out",
                 "complex": "scale holds complex numbers.*view_as_real",
                 "buffer": "changes the buffer 'seen'",
                 "random": "operator aten.rand_like.*test_save_model.py.*draws random numbers",
                 "lstm": "operator aten.lstm.*draws random numbers",
                 "detached": "does not depend on any trained parameter",
                 "operator": "operator aten.special_i1.*test_save_model.py.*not among the operators"}
        for change, message in cases.items():
            with self.subTest(change):
                torch.manual_seed(1)
                module, x = Changed(change), torch.randn(3, 4)
                before = {name: value.clone() for name, value in module.state_dict().items()}
                with self.assertRaisesRegex(ValueError, message):
                    abtrain.save_model(module, x, path)
                self.assertFalse(path.exists())
                for name, value in module.state_dict().items():
                    self.assertTrue(torch.equal(value, before[name]), name)
                file = self.folder / f"{change}.pt2"
                torch.export.save(torch.export.export(
                    module, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)), file)
                done = self.train(file, change)
                self.assertEqual(done.returncode, 78, done.stderr)
        # The program cannot know of it.
        with self.assertRaisesRegex(
                ValueError, "gradient of body.weight is not .*autograd.Function .*detach"):
            abtrain.save_model(Changed("straight_through"), torch.randn(3, 4), path)
        abtrain.save_model(Changed("straight_through_by_operators"), torch.randn(3, 4), path)
        path.unlink()
        for normalize in (utils.weight_norm, utils.spectral_norm):
            module = torch.nn.Sequential(normalize(torch.nn.Linear(4, 4)))
            with self.assertRaisesRegex(ValueError, f"layer '0': .*{normalize.__name__}.layer"):
                abtrain.save_model(module, torch.randn(3, 4), path)
        norm = torch.nn.Sequential(torch.nn.BatchNorm1d(4, momentum=None), torch.nn.Linear(4, 4))
        with self.assertRaisesRegex(ValueError, "layer '0': momentum=None"):
            abtrain.save_model(norm, torch.randn(3, 4), path)

    def test_inputs_changed_in_place(self):
        """The caller's example stays as it is, and training is that of a module that copies."""

        class Shifts(torch.nn.Linear):
            in_place = True

            def forward(self, x):
                x = x if self.in_place else x.clone()
                return super().forward(x.view(-1, 4).sub_(0.5))

        losses = {}
        for in_place in (True, False):
            torch.manual_seed(1)
            module, x = Shifts(4, 3), torch.randn(3, 4)
            module.in_place = in_place
            before = x.clone()
            file = self.folder / f"shifts{in_place}.pt2"
            abtrain.save_model(module, x, file)
            self.assertTrue(torch.equal(x, before))
            done = self.train(file, f"shifts{in_place}")
            self.assertEqual(done.returncode, 0, done.stderr)
            metrics, summary = abtrain.load_run(self.folder / f"shifts{in_place}")
            losses[in_place] = [*metrics[metrics.event == "step"].loss, summary["loss"]]
        self.assertEqual(losses[True], losses[False])

    def test_a_module_that_differs_from_call_to_call(self):
        class Alternates(torch.nn.Linear):
            calls = [0]

            def forward(self, x):
                if not torch.compiler.is_compiling():
                    self.calls[0] += 1
                return super().forward(x) * (1 + self.calls[0])

        with self.assertRaisesRegex(ValueError, "in training.*does not even repeat its own result"):
            abtrain.save_model(Alternates(4, 4), torch.randn(3, 4), self.folder / "m.pt2")

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
        self.assertRegex(said.stderr, "model.file: .*2.pt2: nothing .*is in training mode.*frozen.*"
                                      "model.eval_mode: true")
        arguments.append("model.eval_mode=true")
        said = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        self.assertEqual(said.returncode, 0, said.stderr)
        said = subprocess.run([*arguments, "name=drops", "model.drop_rate=0.5"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(said.returncode, 78, said.stderr)
        self.assertRegex(said.stderr, "model.drop_rate: .*own dropout.*got 0.5")

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


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
