"""Models of torchvision and timm for test_zoo.cpp.

    zoo.py make FOLDER MODEL    a fresh model: its weights, a batch, logits in
                                training and then in evaluation mode, gradients
                                (in float64) and what float32 makes of them
    zoo.py check FOLDER MODEL   FOLDER/ours.safetensors has every tensor of the
                                state dict that was made and no other, so that it
                                loads strictly
"""
import copy
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file

BATCH = 2


def timm_model(name, **options):
    import timm
    return timm.create_model(name, **options)


def quarter(channels):
    return [n if n == "M" else n // 4 for n in channels]


def narrow_vgg16():
    """timm's VGG16 at a quarter of its width, the head of 4096 channels too."""
    from timm.models import vgg
    model = vgg.VGG(quarter(vgg.cfgs["vgg16"]), num_classes=10)
    model.pre_logits = vgg.ConvMlp(128, 1024, 7, drop_rate=0)
    model.head = vgg.ClassifierHead(1024, 10)
    return model


def narrow_vgg13():
    """torchvision's VGG13 at a quarter of its width, the hidden layers too."""
    from torch.nn import Linear
    from torchvision.models import vgg
    model = vgg.VGG(vgg.make_layers(quarter(vgg.cfgs["B"])), 10, False, 0)
    model.classifier[0] = Linear(128 * 7 * 7, 1024)
    model.classifier[3] = Linear(1024, 1024)
    model.classifier[6] = Linear(1024, 10)
    return model


def torchvision_model(name, **options):
    import torchvision
    return getattr(torchvision.models, name)(**options)


# Ours: (theirs, side of the images, classes)
MODELS = {
    "timm/vgg16": (narrow_vgg16, 32, 10),
    "timm/resnet18": (lambda: timm_model("resnet18"), 64, 1000),
    "timm/resnet34": (lambda: timm_model("resnet34"), 64, 1000),
    "timm/vit-tiny": (lambda: timm_model(
        "vit_tiny_patch16_224", img_size=32, patch_size=4, num_classes=10),
        32, 10),
    # Heads of 31 features, not of 64.
    "timm/vit-small": (lambda: timm_model(
        "vit_small_patch16_224", qkv_bias=False, embed_dim=186, num_heads=6),
        224, 1000),
    "torchvision/vgg13": (narrow_vgg13, 32, 10),
    "torchvision/resnet50": (lambda: torchvision_model("resnet50"), 96, 1000),
    "torchvision/vit-tiny": (lambda: torchvision_model(
        "VisionTransformer", image_size=32, patch_size=4, num_layers=12,
        num_heads=3, hidden_dim=192, mlp_dim=768, num_classes=10), 32, 10),
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
    ours, theirs = (load_file(folder / f"{which}.safetensors")
                    for which in ("ours", "theirs"))
    # A strict load does without the counters of batches, which ours leaves out.
    theirs = {key: tensor for key, tensor in theirs.items()
              if not key.endswith("num_batches_tracked")}
    if different := set(ours) ^ set(theirs):
        sys.exit(f"{name}: only one has {', '.join(sorted(different))}")
    for key, tensor in theirs.items():
        if not torch.equal(ours[key], tensor):
            sys.exit(f"{name}: {key} came back changed")
    print(f"{len(theirs)} tensors agree")


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"make": make, "check": check}[sys.argv[1]](
        pathlib.Path(sys.argv[2]), sys.argv[3])
