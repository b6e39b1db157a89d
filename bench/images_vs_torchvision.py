#!/usr/bin/env python3
"""Images per second and core: compares abtrain's image-folder with torchvision's
ImageFolder, its default loader and the same transforms. The two take turns.

    bench/images_vs_torchvision.py --images FOLDER [--images FOLDER ...]
        [--program build/release/bench/bench_images] [--count 1000]
        [--rounds 5] [--core 0]

FOLDER holds train/CLASS/*.jpg and val/CLASS/*.jpg. A further set is made from the
first one: 100 images of each part, scaled to 500 x 375 pixels, with noise, at
quality 90. Both sides run on the same core with one thread and read the same
images; abtrain also assembles batches, torchvision does not. Prints medians over
the rounds.
Training: RandomResizedCrop(224), flip, ToTensor, Normalize; evaluation:
Resize(256), CenterCrop(224), ToTensor, Normalize. Needs a Python with
torchvision.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
from PIL import Image
from torchvision import datasets, transforms

NORMALIZE = [transforms.ToTensor(),
             transforms.Normalize([0.485, 0.456, 0.406],
                                  [0.229, 0.224, 0.225])]
FORMS = {
    "crop-flip": ("train", [transforms.RandomResizedCrop(224),
                            transforms.RandomHorizontalFlip()]),
    "evaluation": ("val", [transforms.Resize(256),
                           transforms.CenterCrop(224)]),
}


class Rival:
    def __init__(self, root, form, count):
        part, steps = FORMS[form]
        self.data = datasets.ImageFolder(
            os.path.join(root, part), transforms.Compose(steps + NORMALIZE))
        count = min(count, len(self.data))
        # The same images as bench_images takes.
        spread = len(self.data) if form == "crop-flip" else count
        self.indices = [i * spread // count for i in range(count)]

    def rate(self):
        for i in self.indices[:20]:
            self.data[i]
        start = time.perf_counter()
        for i in self.indices:
            self.data[i]
        return len(self.indices) / (time.perf_counter() - start)


def program_rates(arguments, root):
    rows = subprocess.run(
        [arguments.program, root, str(arguments.count)],
        check=True, capture_output=True, text=True).stdout.splitlines()
    return {row.split()[0]: float(row.split()[1]) for row in rows}


def make_large(root, target, count):
    for part in ("train", "val"):
        files = sorted(pathlib.Path(root, part).glob("*/*.jp*g"))
        for path in files[::max(1, len(files) // count)][:count]:
            image = Image.open(path).convert("RGB")
            image = image.resize((500, 375), Image.Resampling.BICUBIC)
            noise = Image.effect_noise(image.size, 24)
            image = Image.blend(image, Image.merge("RGB", [noise] * 3), 0.15)
            folder = pathlib.Path(target, part, path.parent.name)
            folder.mkdir(parents=True, exist_ok=True)
            image.save(folder / path.name, quality=90)


def compare(arguments, name, root):
    rivals = {form: Rival(root, form, arguments.count) for form in FORMS}
    ours = {form: [] for form in FORMS}
    theirs = {form: [] for form in FORMS}
    program_rates(arguments, root)  # fills the file cache
    for _ in range(arguments.rounds):
        for form, rival in rivals.items():
            theirs[form].append(rival.rate())
        for form, rate in program_rates(arguments, root).items():
            ours[form].append(rate)
    for form in FORMS:
        a, b = statistics.median(ours[form]), statistics.median(theirs[form])
        ratios = [x / y for x, y in zip(ours[form], theirs[form])]
        print(f"{name}, {form:10}  abtrain {a:7.0f}/s  torchvision {b:7.0f}/s"
              f"  ratio {statistics.median(ratios):5.2f}"
              f"  ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", required=True, action="append")
    parser.add_argument("--program",
                        default="build/release/bench/bench_images")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int,
                        default=max(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {arguments.core})  # the program inherits it
    for root in arguments.images:
        compare(arguments, pathlib.Path(root).name, root)
    with tempfile.TemporaryDirectory() as large:
        make_large(arguments.images[0], large, 100)
        compare(arguments, "500 x 375", large)


if __name__ == "__main__":
    main()
