"""Reads model files: their tensors as they are, and factored weights as pairs of factors."""
import math
import typing

import torch


class Factors(typing.NamedTuple):
    """A weight W ~= A B in a safetensors file, or its transpose, as k x k blocks (docs/weights.md)."""
    shape: tuple[int, ...]   # of the weight: outputs, inputs, kernel; or as its library has it
    inner: torch.Tensor      # k x r x columns/k: applied first, if rows of the weight are outputs
    outer: torch.Tensor      # k x rows/k x r

    @property
    def turned(self):
        """The factors of the transposed matrix."""
        return Factors((math.prod(self.shape[1:]), self.shape[0]), self.outer.mT, self.inner.mT)

    def product(self):
        dtype = torch.promote_types(self.inner.dtype, torch.float32)
        return product(self.inner.to(dtype), self.outer.to(dtype)).reshape(self.shape).to(
            self.inner.dtype)

    def numel(self):
        return self.inner.numel() + self.outer.numel()


def product(inner, outer):
    """The matrix, rows x columns, of factors k x r x columns/k and k x rows/k x r."""
    k = len(inner)
    if k == 1:
        return outer[0] @ inner[0]
    blocks = torch.einsum("orit,iotc->oric", outer.unflatten(2, (k, -1)),
                          inner.unflatten(1, (k, -1)))
    return blocks.flatten(2).flatten(0, 1)


def read(path):
    """Returns ({name: tensor or Factors}, metadata). Raises ValueError for the file of a run whose
    base is frozen, and for factors that do not fit their shape."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}
        about = file.metadata() or {}
    if "base" in about:
        raise ValueError(
            f"{path} holds only what a run has trained, and not the base that it began with; "
            "expected what `abtrain export RUN --form merged` or `--form adapter` writes")
    for key in about:
        if key.startswith("shape:"):
            name = key.removeprefix("shape:")
            shape = tuple(int(size) for size in about[key].split(","))
            if name + ".indices" in tensors and name + ".values" in tensors:
                values = tensors.pop(name + ".values")
                dense = torch.zeros(shape, dtype=values.dtype)
                dense.view(-1)[tensors.pop(name + ".indices").long()] = values
                tensors[name] = dense
            else:
                tensors[name] = _factors(path, name, shape, tensors)
    return tensors, about


def _factors(path, name, shape, tensors):
    a, b = (tensors.pop(f"{name}.{part}", None) for part in "AB")
    if a is not None and b is not None:
        a, b = (part if part.dim() == 3 else part[None] for part in (a, b))
        rows, columns = shape[0], math.prod(shape[1:])
        long, short = len(a) * a.size(1), len(b) * b.size(-1)
        if len(a) == len(b) and a.size(2) == b.size(1) and a.size(2) % len(a) == 0 and (
                all(size % len(a) == 0 for size in shape[:2])):
            if (long, short) == (rows, columns):
                return Factors(shape, b, a)
            if (long, short) == (columns, rows):  # of the transposed matrix
                return Factors(shape, a.mT, b.mT)
    raise ValueError(f"{path}: damaged: '{name}.A' and '{name}.B' are not factors of a weight of "
                     f"{sizes(shape)}")


def sizes(shape):
    return " x ".join(map(str, shape)) or "a single number"
