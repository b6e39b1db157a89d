"""Models of torchvision and timm for test_zoo.cpp.

    zoo.py make FOLDER MODEL    a fresh model: its weights, a batch, logits in
                                training and then in evaluation mode, gradients
                                (in float64) and what float32 makes of them
    zoo.py check FOLDER MODEL   loads FOLDER/ours.safetensors, strictly, and
                                compares every tensor with the one that was made
"""
import copy
import pathlib
import sys

import timm
import torch
import torchvision
from safetensors.torch import load_file, save_file

BATCH = 2

# Ours: (theirs, side of the images, classes)
MODELS = {
    "timm/vgg16": (lambda: timm.create_model("vgg16", num_classes=10), 32, 10),
    "timm/resnet18": (lambda: timm.create_model("resnet18"), 64, 1000),
    "timm/resnet34": (lambda: timm.create_model("resnet34"), 64, 1000),
    "timm/vit-tiny": (lambda: timm.create_model(
        "vit_tiny_patch16_224", img_size=32, patch_size=4, num_classes=10),
        32, 10),
    "timm/vit-base": (lambda: timm.create_model(
        "vit_base_patch16_224", qkv_bias=False), 224, 1000),
    "torchvision/vgg13": (lambda: torchvision.models.vgg13(
        num_classes=10, dropout=0), 32, 10),
    "torchvision/resnet50": (lambda: torchvision.models.resnet50(), 96, 1000),
    "torchvision/vit-tiny": (lambda: torchvision.models.VisionTransformer(
        image_size=32, patch_size=4, num_layers=12, num_heads=3,
        hidden_dim=192, mlp_dim=768, num_classes=10), 32, 10),
}


def gradients(model, images, labels):
    """Logits in training mode and the gradients."""
    model.train()
    model.zero_grad()
    logits = model(images)
    torch.nn.functional.cross_entropy(logits, labels).backward()
    return logits.detach(), {
        k: p.grad.clone(memory_format=torch.contiguous_format)
        for k, p in model.named_parameters()}


def make(folder, name):
    build, side, classes = MODELS[name]
    torch.manual_seed(3)
    model = build()
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            # Fresh zeros and ones (biases, norms, heads) would hide mistakes.
            if tensor.dim() == 1 and tensor.dtype == torch.float32:
                tensor.add_(0.1 * torch.rand_like(tensor))
            elif tensor.dim() == 2 and not tensor.any():
                tensor.normal_(std=0.02)
    images = torch.randn(BATCH, 3, side, side)
    labels = torch.arange(BATCH) % classes
    save_file({k: v.clone() for k, v in model.state_dict().items()},
              folder / "theirs.safetensors", {"format": "pt"})
    exact = gradients(
        copy.deepcopy(model).double(), images.double(), labels)[1]
    logits, single = gradients(model, images, labels)
    model.eval()
    with torch.no_grad():
        after = model(images)
    save_file({"images": images, "logits": logits, "after": after},
              folder / "batch.safetensors")
    # What float32 makes of each gradient here: the allowance for rounding. Where
    # a ReLU falls on the other side of zero is a matter of luck, so the images
    # are also moved by one bit a few times.
    rounding = {k: (single[k] - g).norm()[None] for k, g in exact.items()}
    for _ in range(0 if "vit" in name else 6):
        bits = torch.randint(-1, 2, images.shape)
        moved = gradients(model, images * (1 + 2**-23 * bits), labels)[1]
        rounding = {
            k: torch.maximum(r, (moved[k] - exact[k]).norm()[None])
            for k, r in rounding.items()}
    save_file({k: r.float() for k, r in rounding.items()},
              folder / "rounding.safetensors")
    save_file({k: g.float() for k, g in exact.items()},
              folder / "gradients.safetensors")


def check(folder, name):
    model = MODELS[name][0]()
    model.load_state_dict(load_file(folder / "ours.safetensors"), strict=True)
    made = load_file(folder / "theirs.safetensors")
    for key, tensor in model.state_dict().items():
        if key.endswith("num_batches_tracked"):
            continue
        if not torch.equal(tensor, made[key]):
            sys.exit(f"{name}: {key} came back changed")
    print(f"{len(made)} tensors agree")


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"make": make, "check": check}[sys.argv[1]](
        pathlib.Path(sys.argv[2]), sys.argv[3])
