"""What torchvision makes of images: FOLDER RESIZE SIDE. FOLDER/list has a line
for each image: its file and the random words that RandomResizedCrop is to
draw. Writes FOLDER/boxes (top left height width, a line each), FOLDER/crops
and FOLDER/centers (SIDE x SIDE x 3 bytes each). Exits with 77 and the reason
where torchvision is not there."""
import pathlib
import sys

try:
    import numpy
    import torch
    from PIL import Image
    from torchvision import transforms
    from torchvision.transforms import functional
except ImportError as error:
    print(error)
    sys.exit(77)


class GivenNumbers:
    """torch, but for the random numbers that get_params draws."""

    def __init__(self, words):
        self.words = list(words)
        self.low = None

    def __getattr__(self, name):
        return getattr(torch, name)

    def empty(self, _):
        return self

    def uniform_(self, low, high):
        share = (self.words.pop(0) >> 8) * 2.0**-24
        low, high = float(low), float(high)
        return torch.tensor([low + (high - low) * share], dtype=torch.float64)

    def randint(self, _, end, size):
        return torch.tensor([(self.words.pop(0) * end) >> 32])


folder, resize, side = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
center = transforms.Compose(
    [transforms.Resize(resize), transforms.CenterCrop(side)])
with open(folder / "boxes", "w") as boxes, \
        open(folder / "crops", "wb") as crops, \
        open(folder / "centers", "wb") as centers:
    for line in open(folder / "list"):
        file, *words = line.split()
        image = Image.open(file).convert("RGB")
        transforms.transforms.torch = GivenNumbers(map(int, words))
        box = transforms.RandomResizedCrop.get_params(
            image, [0.08, 1], [3 / 4, 4 / 3])
        transforms.transforms.torch = torch
        print(*box, file=boxes)
        crops.write(numpy.asarray(
            functional.resized_crop(image, *box, [side, side])).tobytes())
        centers.write(numpy.asarray(center(image)).tobytes())
