"""abtrain.load_model, against load_state_dict of the same weights multiplied out.

    test_load_model.py PROGRAM    # with the Python of LibTorch's environment
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
try:
    import safetensors.torch
    import timm
    import torch
    import torchvision
    import transformers
    import abtrain
    from abtrain import _factors
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --tests installs it")
    sys.exit(1 if os.environ.get("ABTRAIN_TESTS_COMPLETE") else 77)
from torch import nn
from torch.nn import functional

torch.set_num_threads(2)


class Tied(nn.Module):
    """Two layers that share their weight but not their bias, and a layer under two names."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(48, 48), nn.Linear(48, 48)
        self.second.weight = self.first.weight
        self.third = nn.Sequential(nn.Linear(48, 64), nn.GELU(), nn.Linear(64, 48))
        self.again = self.third
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        x = self.again(self.second(self.first(x).relu()))
        return self.head(self.third(x))


class Autoencoder(nn.Module):
    """An embedding whose weight is the head's, too, and code that reads a layer's weight."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(80, 40), nn.Linear(40, 80, bias=False)
        self.head.weight = self.embedding.weight
        self.body = nn.Linear(40, 40)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.body(x).tanh() @ self.body.weight
        return self.head(x)


class Signal(nn.Module):
    """Convolutions of one and three dimensions, and attention that reads its own parameters."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(16, 48, 5, stride=2, padding=2, padding_mode="circular")
        self.attention = nn.MultiheadAttention(48, 4, batch_first=True)
        self.volume = nn.Conv3d(24, 40, 3, padding="same", dilation=2)
        self.head = nn.Linear(40, 24)

    def forward(self, x):
        x = self.conv(x).transpose(1, 2)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.head(self.volume(x.reshape(len(x), 24, 4, 4, -1)).mean((2, 3, 4)))


def logits(module, x):
    out = module(x)
    return getattr(out, "logits", out)


def model_of(name):
    """The module, and a batch for it."""
    torch.manual_seed(1)
    images = torch.randn(2, 3, 64, 64)
    tokens = torch.randint(0, 80, (2, 12))
    if name == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=80, n_positions=16, n_embd=48, n_layer=2, n_head=4)
        return transformers.GPT2LMHeadModel(config), tokens
    if name == "bert":
        config = transformers.BertConfig(
            vocab_size=80, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=96, max_position_embeddings=16)
        return transformers.BertForSequenceClassification(config), tokens
    if name == "mobilenet_v3":
        return torchvision.models.mobilenet_v3_small(num_classes=10), images
    if name == "tied":
        return Tied(), torch.randn(3, 48)
    if name == "autoencoder":
        return Autoencoder(), tokens
    if name == "signal":
        return Signal(), torch.randn(2, 16, 64)
    options = {"vit_tiny_patch16_224": {"img_size": 64, "depth": 3}}.get(name, {})
    return timm.create_model(name, num_classes=10, **options), images


NAMES = ("resnet10t", "vit_tiny_patch16_224", "convnext_atto", "mobilenet_v3", "gpt2", "bert",
         "tied", "autoencoder", "signal")


class LoadModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def decomposed(self, name, module, *options):
        dense, small = self.folder / "dense.safetensors", self.folder / f"{name}.safetensors"
        tensors, seen = {}, set()
        for key, value in module.state_dict().items():
            if value.data_ptr() not in seen or not value.numel():  # tied tensors once
                seen.add(value.data_ptr())
                tensors[key] = value.contiguous().clone()
        safetensors.torch.save_file(tensors, dense)
        subprocess.run([PROGRAM, "decompose", dense, "-o", small, "--force", *options], check=True,
                       capture_output=True, timeout=120)
        return small

    def check(self, name, *options):
        module, batch = model_of(name)
        module.eval()
        path = self.decomposed(name, module, *options)
        merged = copy.deepcopy(module)
        missing = merged.load_state_dict(abtrain.load_weights(path), strict=False)
        self.assertEqual(missing.unexpected_keys, [])
        before = module.state_dict().keys()
        loaded = abtrain.load_model(module, path)
        tensors, _ = _factors.read(path)
        parameters = dict(merged.named_parameters())
        stored = sum(tensors[key].numel() for key in parameters)
        self.assertEqual(sum(p.numel() for p in loaded.parameters()), stored)
        self.assertLess(stored, sum(p.numel() for p in merged.parameters()))
        with torch.no_grad():
            wanted, found = logits(merged, batch), logits(loaded, batch)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))
        return loaded, batch, before

    def test_models_of_others_and_own_ones(self):
        for name in NAMES:
            with self.subTest(name):
                self.check(name, "--rule", "fixed", "--rank", "5")

    def test_in_blocks(self):
        for name in ("resnet10t", "gpt2", "autoencoder", "tied", "signal"):
            with self.subTest(name):
                self.check(name, "--blocks", "4", "--rule", "fixed", "--rank", "4")


    def test_the_layers_are_ordinary_modules(self):
        loaded, batch, _ = self.check("resnet10t", "--rule", "fixed", "--rank", "5")
        pair = loaded.layer1[0].conv1
        self.assertEqual([type(layer) for layer in pair], [nn.Conv2d, nn.Conv2d])
        self.assertEqual((pair.in_channels, pair.stride, pair[0].stride, pair[1].kernel_size),
                         (64, (1, 1), (1, 1), (1, 1)))
        with torch.no_grad():
            wanted = loaded(batch)
            other = copy.deepcopy(loaded)
            for parameter in other.parameters():
                parameter.zero_()
            other.load_state_dict(loaded.state_dict())
            program = torch.export.export(loaded, (batch,)).module()
            compiled = torch.compile(loaded, backend="aot_eager")
            for module in (other, program, compiled):
                torch.testing.assert_close(module(batch), wanted, rtol=1e-4, atol=1e-4)
        loaded.train()(batch).square().sum().backward()
        self.assertTrue(all(p.grad is not None for p in pair.parameters()))

    def test_linear_layers_are_quantized(self):
        loaded, batch, _ = self.check("vit_tiny_patch16_224", "--rule", "fixed", "--rank", "5")
        from torch.ao.quantization import quantize_dynamic
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small = quantize_dynamic(copy.deepcopy(loaded), {nn.Linear}, torch.qint8)
        pair = small.blocks[0].mlp.fc1
        self.assertTrue(all("quantized" in type(layer).__module__ for layer in pair))
        with torch.no_grad():
            torch.testing.assert_close(small(batch), loaded(batch), rtol=0.2, atol=0.2)

    def test_type_device_mode_and_gradients_are_those_of_the_module(self):
        module = nn.Sequential(nn.Linear(40, 60), nn.Linear(60, 10)).bfloat16()
        path = self.decomposed("small", module.float(), "--rule", "fixed", "--rank", "3")
        module.bfloat16().eval()
        module[0].requires_grad_(False)
        bias = module[1].bias
        abtrain.load_model(module, path)
        self.assertEqual({p.dtype for p in module.parameters()}, {torch.bfloat16})
        self.assertEqual([p.requires_grad for p in module.parameters()], 3 * [False] + 3 * [True])
        self.assertFalse(any(layer.training for layer in module.modules()))
        self.assertIs(module[1].bias, bias)
        with torch.device("meta"):
            module = nn.Sequential(nn.Linear(40, 60), nn.Linear(60, 10))
        x = torch.randn(2, 40)
        wanted = abtrain.load_weights(path)
        first = functional.linear(x, wanted["0.weight"], wanted["0.bias"])
        torch.testing.assert_close(
            abtrain.load_model(module, path)(x),
            functional.linear(first, wanted["1.weight"], wanted["1.bias"]), rtol=1e-4, atol=1e-5)

    def test_a_layer_alone(self):
        layer = nn.Linear(40, 60)
        path = self.decomposed("one", layer, "--rule", "fixed", "--rank", "3")
        loaded = abtrain.load_model(layer, path)
        weights = abtrain.load_weights(path)
        x = torch.randn(2, 40)
        torch.testing.assert_close(
            loaded(x), functional.linear(x, weights["weight"], weights["bias"]),
            rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(loaded.weight, weights["weight"], rtol=1e-4, atol=1e-5)

    def test_what_does_not_fit(self):
        make = lambda: nn.Sequential(nn.Linear(40, 60), nn.BatchNorm1d(60), nn.Linear(60, 10))
        path = self.decomposed("fits", make(), "--rule", "fixed", "--rank", "3")
        cases = {
            r"layer '2', weight: the module has 12 x 60, the file 10 x 60 \(and 1 more\)":
                nn.Sequential(nn.Linear(40, 60), nn.BatchNorm1d(60), nn.Linear(60, 12)),
            r"layer '3', weight: the module has 5 x 10, and the file nothing of this name":
                nn.Sequential(*make(), nn.Linear(10, 5)),
            r"layer '2', \w+: the module has nothing of this name, the file 10":
                make()[:2],
        }
        for message, module in cases.items():
            before = {name: value.clone() for name, value in module.state_dict().items()}
            with self.assertRaisesRegex(ValueError, "fits.safetensors does not fit .*" + message):
                abtrain.load_model(module, path)
            self.assertEqual(module.state_dict().keys(), before.keys())
            for name, value in module.state_dict().items():
                self.assertTrue(torch.equal(value, before[name]), name)

    def test_layers_that_are_more_than_layers(self):
        """Hooks still run, and what a subclass adds is still there."""
        class Scaled(nn.Linear):
            scale = 2.0

            def scaled(self, x):
                return self.scale * self(x)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = nn.Linear(40, 60), Scaled(60, 50), nn.Linear(50, 30)

            def forward(self, x):
                return self.c(self.b.scaled(self.a(x)))

        module = Net()
        path = self.decomposed("more", module, "--rule", "fixed", "--rank", "3")
        calls = []
        module.a.register_forward_hook(lambda *_: calls.append(1))
        merged = copy.deepcopy(module)
        merged.load_state_dict(abtrain.load_weights(path))
        old = module.c
        loaded = abtrain.load_model(module, path)
        x = torch.randn(2, 40)
        calls.clear()
        torch.testing.assert_close(loaded(x), merged(x), rtol=1e-4, atol=1e-4)
        self.assertEqual(len(calls), 2)
        self.assertEqual(sum(p.numel() for p in loaded.parameters()),
                         3 * (40 + 60 + 60 + 50 + 50 + 30) + 60 + 50 + 30)
        with self.assertRaises(TypeError):  # not the weights from before
            old(torch.randn(2, 50))

    def test_tied_tensors_that_differ(self):
        path = self.folder / "untied.safetensors"
        safetensors.torch.save_file({"first": torch.ones(3), "second": torch.zeros(3)}, path)
        module = nn.Module()
        module.first = module.second = nn.Parameter(torch.zeros(3))
        with self.assertRaisesRegex(ValueError, "one tensor with 'first', the file two different"):
            abtrain.load_model(module, path)

    def test_damaged_factors(self):
        path = self.folder / "damaged.safetensors"
        safetensors.torch.save_file(
            {"weight.A": torch.ones(7, 2), "weight.B": torch.ones(2, 4)}, path,
            {"shape:weight": "4,6"})
        with self.assertRaisesRegex(ValueError, "'weight.A' and 'weight.B' are not factors of .*4 x 6"):
            abtrain.load_model(nn.Linear(6, 4), path)

    def test_the_run_of_a_program(self):
        """The module has as many parameters as the run says that it has stored."""
        subprocess.run([PROGRAM, "fashion_mnist_mlp", "train.steps=20", "method.warmup_steps=5",
                        "method.sync_every=12", "evaluate.every=0", "device=cpu", "--output", self.folder,
                        "--name", "run"], check=True, capture_output=True, timeout=120)
        summary = json.loads((self.folder / "run/summary.json").read_text())
        module = nn.Sequential()
        for i in range(4):
            module.add_module(f"fc{i + 1}", nn.Linear(1024 if i else 784, 10 if i == 3 else 1024))
        loaded = abtrain.load_model(module, self.folder / "run/model.safetensors")
        self.assertEqual(sum(p.numel() for p in loaded.parameters()),
                         summary["parameters"]["stored"])
        self.assertEqual(len(loaded.fc2), 2)

    def test_what_is_not_trained_is_that_of_the_run(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.norm, self.head = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
                self.body.requires_grad_(False)
                self.register_buffer("shift", torch.randn(8))
                self.register_buffer("order", torch.randperm(8))
                self.register_buffer("mask", torch.rand(8) > 0.3)

            def forward(self, x):
                x = self.norm((self.body(x) + self.shift)[:, self.order])
                return self.head(self.norm(x.masked_fill(self.mask, 0)))  # the same norm again

        torch.manual_seed(1)
        x, y = torch.randn(16, 6), torch.arange(16) % 3
        abtrain.save_model(Net(), x[:4], self.folder / "frozen.pt2")
        abtrain.save_arrays(self.folder / "rows", x, y, x, y)
        run = self.folder / "frozen"
        (self.folder / "frozen.yaml").write_text(f"""
name: frozen
output: {self.folder}
data: {{name: arrays, root: {self.folder}/rows, batch_size: 8}}
model: {{name: exported, file: {self.folder}/frozen.pt2}}
method: {{name: ddp}}
train: {{steps: 3, precision: fp32}}
device: cpu
""")
        subprocess.run([PROGRAM, self.folder / "frozen.yaml"], check=True, capture_output=True,
                       timeout=120)
        loss = json.loads((run / "summary.json").read_text())["loss"]
        for device in ("cpu", "meta"):
            with torch.device(device):
                module = Net()
            module = abtrain.load_model(module, run / "model.safetensors").eval()
            self.assertFalse(any(value.is_meta for value in module.state_dict().values()))
            with torch.no_grad():
                found = functional.cross_entropy(module(x), y)
            self.assertAlmostEqual(float(found), loss, places=4)
        other = abtrain.load_weights(run / "model.safetensors")
        other["shift"] += 1
        safetensors.torch.save_file(other, self.folder / "other.safetensors")
        done = subprocess.run([PROGRAM, "evaluate", run, "--model", self.folder / "other.safetensors"],
                              capture_output=True, text=True, timeout=120)
        self.assertIn("'shift' has other values in model.file", done.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
