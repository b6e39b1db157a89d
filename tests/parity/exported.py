"""Users' own models for test_exported.cpp, exported by abtrain.save_model().

    exported.py make FOLDER NAME...    NAME.pt2; in NAME.safetensors a batch, the loss of a training
                                       step by PyTorch, its gradients in float64 and what float32
                                       makes of them, and the logits of an evaluation after it
    exported.py check FOLDER NAME...   NAME.out.safetensors, merged, loads strictly and gives the
                                       logits of that evaluation
"""
import copy
import pathlib
import sys
import warnings

import torch
from safetensors.torch import load_file, save_file
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import abtrain  # noqa: E402

warnings.simplefilter("ignore")
CLASSES = 10
WORDS = 50


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 32)
        self.lstm = nn.LSTM(32, 48, 2, batch_first=True)
        self.head = nn.Linear(48, WORDS)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


class Mixed(nn.Module):
    """What the zoos lack: products with parameters, tied maps, tables, blocks without gradients or
    autocast, views of convolutions, sizes computed from the batch."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding="same", dilation=2)
        self.project = nn.Parameter(torch.randn(64, 24) / 8)
        self.first = nn.Linear(24, 24)
        self.second = self.first
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("table", torch.arange(24.0))
        self.register_buffer("places", torch.arange(24))
        self.register_buffer("mask", torch.ones(24, 24).tril().bool(), persistent=False)
        self.register_buffer("far", torch.full((24, 24), float("-inf")).triu(9))
        self.head = nn.Linear(24, CLASSES, bias=False)

    def forward(self, x):
        x = self.conv(x)
        x = x.view(x.shape[0] * 2, 4, -1).view(x.shape[0], 8, -1)
        with torch.no_grad():
            mean = x.mean()
        x = (x[:, :, :64] - mean) @ self.project
        with torch.autocast("cpu", enabled=False):
            x = x * self.scale + self.table[self.places] / 24
        weights = (x.transpose(1, 2) @ x + self.far).masked_fill(~self.mask, float("-inf")).softmax(-1)
        x = (weights @ x.transpose(1, 2)).transpose(1, 2)
        x = torch.addmm(self.first.bias, x.mean(1), self.project[:24, :24])
        x = self.second(torch.relu_(self.first(x)))
        left, right = x.chunk(2, 1)
        return self.head(torch.cat([left, right.clamp(max=float("inf"))], 1))


def hugging_face(kind):
    import transformers
    size = dict(vocab_size=WORDS, attn_implementation="sdpa")
    if kind == "gpt2":
        config = transformers.GPT2Config(
            **size, n_positions=64, n_embd=64, n_layer=2, n_head=4, use_cache=False, resid_pdrop=0,
            embd_pdrop=0, attn_pdrop=0, bos_token_id=None, eos_token_id=None)
        return transformers.GPT2LMHeadModel(config)
    if kind == "llama":
        config = transformers.LlamaConfig(
            **size, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, use_cache=False)
        return transformers.LlamaForCausalLM(config)
    config = transformers.BertConfig(
        **size, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return transformers.BertForMaskedLM(config)


def timm_model(name, **options):
    import timm
    return timm.create_model(name, num_classes=CLASSES, **options)


def torchvision_model(name, **options):
    import torchvision
    return getattr(torchvision.models, name)(num_classes=CLASSES, **options)


# Name: (model, side of the images; 0: tokens)
MODELS = {
    "mixed": (Mixed, 16),
    "lstm": (Lstm, 0),
    "gpt2": (lambda: hugging_face("gpt2"), 0),
    "llama": (lambda: hugging_face("llama"), 0),
    "bert": (lambda: hugging_face("bert"), 0),
    "resnet18": (lambda: torchvision_model("resnet18"), 32),
    "mobilenet": (lambda: torchvision_model("mobilenet_v3_small", dropout=0), 64),
    "vit": (lambda: torchvision_model(
        "VisionTransformer", image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64,
        mlp_dim=128), 32),
    "convnext": (lambda: timm_model("convnext_atto", drop_path_rate=0.0), 64),
    # Larger ones, for the record.
    "resnet50": (lambda: torchvision_model("resnet50"), 64),
    "mobilenet_large": (lambda: torchvision_model("mobilenet_v3_large", dropout=0), 64),
    "vit_b_16": (lambda: torchvision_model("vit_b_16", image_size=64), 64),
    "convnext_tiny": (
        lambda: torchvision_model("convnext_tiny", stochastic_depth_prob=0.0), 64),
    "vit_tiny": (lambda: timm_model("vit_tiny_patch16_224", img_size=32, patch_size=4), 32),
    "mixer": (lambda: timm_model("mixer_s32_224", img_size=64), 64),
}


def loss_of(model, x, y):
    logits = model(x)
    logits = getattr(logits, "logits", logits)
    return nn.functional.cross_entropy(logits.flatten(0, -2), y.flatten())


def gradients(model, x, y):
    """The loss of a training step and its gradients."""
    loss = loss_of(model, x, y)
    loss.backward()
    return loss, {key: parameter.grad.contiguous() for key, parameter in model.named_parameters()
                  if parameter.grad is not None}


def logits_of(model, x):
    with torch.no_grad():
        logits = model.eval()(x)
    return getattr(logits, "logits", logits).contiguous()


def make(folder, name):
    build, side = MODELS[name]
    torch.manual_seed(1)
    model = build()
    for parameter in model.parameters():  # a head of zeros hides all that lies before it
        if not parameter.any():
            nn.init.normal_(parameter, std=0.1)
    x = (torch.randn(4, 3, side, side) if side else torch.randint(WORDS, (4, 32)))
    y = torch.arange(4) % CLASSES if side else torch.randint(WORDS, (4, 32))
    # Some are exported with another length than they are then used with.
    any_length = name in ("gpt2", "bert")
    abtrain.save_model(
        model, x[:, :20] if any_length else x, folder / f"{name}.pt2", any_length=any_length)
    if side and name != "mixed":  # the memory layout in which abtrain computes
        x = x.to(memory_format=torch.channels_last)
        model = model.to(memory_format=torch.channels_last)
    model.train()
    exact = gradients(copy.deepcopy(model).double(), x.double() if side else x, y)[1]
    # What float32 moves each gradient by here. Where a ReLU or the largest of a window falls on
    # the other side is a matter of luck, so images are also moved by one bit a few times.
    rounding = {}
    for nth in range(5 if side else 1):
        moved_x = x * (1 + 2**-23 * torch.randint(-1, 2, x.shape)) if nth else x
        for key, gradient in gradients(copy.deepcopy(model), moved_x, y)[1].items():
            moved = (gradient - exact[key]).norm()[None].float()
            rounding[key] = torch.maximum(rounding.get(key, moved), moved)
    loss, _ = gradients(model, x, y)
    tensors = {"x": x.contiguous().float(), "y": y.float(), "loss": loss.detach()}
    tensors |= {"grad." + key: gradient.float() for key, gradient in exact.items()}
    tensors |= {"rounding." + key: moved for key, moved in rounding.items()}
    tensors["after"] = logits_of(model, x)
    save_file(tensors, folder / f"{name}.safetensors")


def check(folder, name):
    torch.manual_seed(2)
    model = MODELS[name][0]()
    model.load_state_dict(abtrain.load_weights(folder / f"{name}.out.safetensors"), strict=True)
    made = load_file(folder / f"{name}.safetensors")
    x = made["x"] if MODELS[name][1] else made["x"].long()
    found = logits_of(model, x)
    difference = (found - made["after"]).abs().max() / made["after"].abs().max()
    print(f"{name}: logits differ by {difference:.2e}")
    return bool(difference < 1e-4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, folder, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    if what == "make":
        for name in names:
            make(folder, name)
    else:
        sys.exit(0 if all([check(folder, name) for name in names]) else 1)
