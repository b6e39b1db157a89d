"""Hands models and data to abtrain, and reads what it writes: weights for PyTorch, and run folders
as tables.

    abtrain.save_model(model, images, "my.pt2")
    small, width = abtrain.match_size(make, 50_000)   # a smaller model to compare it with
    model = abtrain.load_model(model, "small.safetensors")            # stays factored
    model.load_state_dict(abtrain.load_weights("small.safetensors"))  # multiplied out
    metrics, summary = abtrain.load_run("runs/fashion_mnist_mlp")
    abtrain.save_arrays("flowers", x, y)          # data: {name: arrays, root: flowers}

Training is done by the program `abtrain`, not by this module.
"""
import json
import os
import pathlib
import typing

__all__ = ["Run", "load_model", "load_run", "load_weights", "match_size", "save_arrays",
           "save_model"]


def save_model(module, example, path, overwrite=False, any_length=False):
    """Writes a torch.nn.Module as `model: {name: exported, file: PATH}` takes it. `example` is a
    batch of at least two inputs: images as B x C x H x W, tokens as int64, B x T. The module must
    take one tensor and return one: the logits, or the predicted numbers. With `any_length`, the
    second size, such as T, may differ in the data, not only B. Raises ValueError, with
    the place in the module's source, for what cannot be exported, for what abtrain refuses to
    train, and where the exported model would not compute what the module does, in training or in
    evaluation.

    A module in evaluation mode is exported in training mode. Norms and dropout that are in
    evaluation mode within a module in training mode stay as they are, which a warning says: the
    norms keep their running statistics, and nothing is dropped."""
    from . import _save_model  # needs torch

    _save_model.save_model(module, example, path, overwrite, any_length)


def match_size(make, target):
    """Returns (module, width): the width, an integer of at least 1, at which the torch.nn.Module
    that `make(width)` returns has as nearly `target` trained parameters as whole widths allow, and
    that module. Of two widths that are equally near, the smaller one. The number of parameters must
    grow with the width. Raises ValueError where a width of 1 has more than `target` already, or
    where the parameters do not grow."""
    import torch

    def count(width):
        with torch.random.fork_rng(devices=[]):  # the search draws nothing from the caller
            return sum(p.numel() for p in make(width).parameters() if p.requires_grad)

    smallest = below = count(1)
    if smallest > target:
        raise ValueError(f"make(1) has {smallest:,} parameters already; expected a target of at "
                         f"least that, got {target:,}")
    low, high = 1, 2
    while (above := count(high)) <= target:
        if above <= below:
            raise ValueError(f"make({high}) has {above:,} parameters, no more than make({low}); "
                             "expected a module whose parameters grow with the width")
        low, below, high = high, above, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if (parameters := count(middle)) <= target:
            low, below = middle, parameters
        else:
            high, above = middle, parameters
    width = high if above - target < target - below else low
    return make(width), width


def load_weights(path):
    """The tensors of a safetensors file as a dictionary for `load_state_dict`. Factors
    that abtrain has stored as NAME.A and NAME.B are multiplied out, and the zeros of
    NAME.indices and NAME.values are filled in; other files, and other tensors, are
    returned as they are. Raises ValueError for the file of a run whose base is frozen."""
    from . import _factors

    tensors, _ = _factors.read(path)
    return {name: value.product() if isinstance(value, _factors.Factors) else value
            for name, value in tensors.items()}


def load_model(module, path):
    """Loads a model file that abtrain has written into a torch.nn.Module with the same names, and
    returns the module: layers whose weights are factored in the file become pairs of plain layers,
    as in

        model = abtrain.load_model(timm.create_model("resnet18", num_classes=10), "model.safetensors")

    A Linear, or a Conv1D of transformers, becomes two Linear; a convolution one to r channels and
    one of 1 x 1 from there; in a grid of blocks both are grouped; an Embedding one of r features
    and a matrix. Other factored parameters, such as those of nn.MultiheadAttention, are multiplied
    out in each call. Tied weights stay tied. The module is changed in place; only where it is
    itself such a layer, a new one is returned. Raises ValueError, and has changed nothing, where
    names or shapes of the file and the module differ."""
    from . import _load_model

    return _load_model.load_model(module, path)


class Run(typing.NamedTuple):
    metrics: "pandas.DataFrame"  # a row for each event, a column for each key of an event
    summary: dict | None         # None: the run has not ended


def load_run(folder):
    """The metrics.jsonl and summary.json of a run folder. Raises OSError where
    metrics.jsonl cannot be read, and ValueError with file and line where a file is
    damaged."""
    import pandas

    folder = pathlib.Path(folder)
    path = folder / "metrics.jsonl"
    lines = _text(path).split("\n")
    # What follows the last newline is still being written.
    events = [_object(line, f"{path}:{number}") for number, line in enumerate(lines[:-1], 1)]
    path = folder / "summary.json"
    summary = _object(_text(path), path) if path.exists() else None
    return Run(pandas.DataFrame(events), summary)


# The dtypes that the data set `arrays` reads, and their names in a safetensors file.
_DTYPES = {"uint8": "U8", "int8": "I8", "bool": "BOOL", "uint16": "U16", "int16": "I16",
           "uint32": "U32", "int32": "I32", "int64": "I64", "float16": "F16",
           "bfloat16": "BF16", "float32": "F32", "float64": "F64"}
_VALUES = ("uint8", "float16", "bfloat16", "float32", "float64")
_TOKENS = ("uint16", "int16", "uint32", "int32", "int64")


def save_arrays(folder, x, y, test_x=None, test_y=None, class_names=None, overwrite=False):
    """Writes numpy arrays or torch tensors as the data set `data: {name: arrays, root:
    FOLDER}`: train.safetensors and, where test arrays are given, test.safetensors.

    x, N x anything: uint8 (for images N x C x H x W or N x H x W) or floating-point
    values, or N x T tokens of another integer type. y: N integer classes; with tokens
    also N x T, of which -100 does not count; or N or N x K floating-point targets.
    Raises ValueError for anything else, and for files that exist already unless
    `overwrite` is true."""
    if (test_x is None) != (test_y is None):
        raise ValueError("expected both test_x and test_y, or neither")
    parts = {"train": (x, y)} if test_x is None else {"train": (x, y), "test": (test_x, test_y)}
    names = None if class_names is None else [str(name) for name in class_names]
    parts = {part: _checked(part, _Array(x), _Array(y), names) for part, (x, y) in parts.items()}
    first = parts["train"]
    for array, like in zip(parts.get("test", ()), first):
        if (array.dtype, array.shape[1:]) != (like.dtype, like.shape[1:]):
            raise ValueError(f"test: expected {like.dtype} of {like.shape[1:]} as for training, "
                             f"got {array.dtype} of {array.shape[1:]}")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in [folder / f"{part}.safetensors" for part in ("train", "test")]:
        if path.exists() and not overwrite:
            raise ValueError(f"{path} exists already; expected another folder, or overwrite=True")
    for part in ("train", "test"):
        path = folder / f"{part}.safetensors"
        if part in parts:
            _write_safetensors(path, dict(zip("xy", parts[part])), names)
        else:
            path.unlink(missing_ok=True)  # of an earlier data set


class _Array:
    """The dtype, the shape and, in pieces, the bytes of a numpy array or a torch tensor."""

    def __init__(self, array):
        self.is_torch = hasattr(array, "detach")
        if self.is_torch:
            array = array.detach()
        else:
            import numpy
            array = numpy.asarray(array)
        self.array = array
        self.dtype = str(array.dtype).removeprefix("torch.") if self.is_torch else array.dtype.name
        self.shape = tuple(array.shape)
        self.nbytes = array.nbytes
        self.width = array.itemsize

    def pieces(self, rows=4096):
        import numpy
        for begin in range(0, len(self.array), rows):
            piece = self.array[begin:begin + rows]
            if self.is_torch:
                import torch
                piece = piece.cpu().contiguous()
                piece = (piece.view(torch.int16) if self.dtype == "bfloat16" else piece).numpy()
            else:
                piece = piece.astype(piece.dtype.newbyteorder("<"), copy=False)
            yield numpy.ascontiguousarray(piece).tobytes()

    def bounds(self):
        array = self.array.long() if self.is_torch else self.array
        return int(array.min()), int(array.max())


def _checked(part, x, y, names):
    for name, array in (("x", x), ("y", y)):
        if array.dtype not in _DTYPES:
            raise ValueError(f"{part} {name}: unknown dtype {array.dtype}; expected one of "
                             f"{', '.join(_DTYPES)}")
        if not array.shape or 0 in array.shape:
            raise ValueError(f"{part} {name}: expected at least one example, got the shape "
                             f"{array.shape}")
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"{part}: expected as many y as x, got {x.shape[0]} x and {y.shape[0]} y")
    tokens = x.dtype in _TOKENS
    if not tokens and x.dtype not in _VALUES:
        raise ValueError(f"{part} x: expected values of {', '.join(_VALUES)}, or tokens of "
                         f"{', '.join(_TOKENS)}; got {x.dtype}")
    if tokens and len(x.shape) != 2:
        raise ValueError(f"{part} x: {x.dtype} is for tokens, N x T, but the shape is {x.shape}; "
                         "values must be uint8 or floating point")
    if "float" in y.dtype:
        if len(y.shape) > 2:
            raise ValueError(f"{part} y: expected N or N x K targets, got the shape {y.shape}")
        return x, y
    if len(y.shape) != 1 and not (tokens and y.shape == x.shape):
        raise ValueError(f"{part} y: expected N integer classes{' or N x T' if tokens else ''}, "
                         f"got the shape {y.shape}")
    if y.dtype != "bool":
        low, high = y.bounds()
        if low < 0 and not (len(y.shape) == 2 and low == -100):
            raise ValueError(f"{part} y: expected classes 0, 1, ..., got {low}")
        if names is not None and high >= len(names):
            raise ValueError(f"{part} y: expected classes below the {len(names)} of class_names, "
                             f"got {high}")
    return x, y


def _write_safetensors(path, arrays, names):
    header, end = {}, 0
    if names is not None:
        header["__metadata__"] = {"classes": json.dumps(names)}
    # Wide elements first, so that all are aligned.
    order = sorted(arrays, key=lambda name: -arrays[name].width)
    for name in order:
        array = arrays[name]
        header[name] = {"dtype": _DTYPES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            for piece in arrays[name].pieces():
                file.write(piece)
    os.replace(part, path)


def _text(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: no text") from None


def _object(text, place):
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}: damaged: {error.msg}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{place}: damaged: expected a JSON object")
    return value
