"""Reads what abtrain writes: weights for PyTorch, and run folders as tables.

    model.load_state_dict(abtrain.load_weights("small.safetensors"))
    metrics, summary = abtrain.load_run("runs/fashion_mnist_mlp")

Training is done by the program `abtrain`, not by this module.
"""
import json
import pathlib
import typing

__all__ = ["Run", "load_run", "load_weights"]


def load_weights(path):
    """The tensors of a safetensors file as a dictionary for `load_state_dict`. Factors
    that abtrain has stored as NAME.A and NAME.B are multiplied out, and the zeros of
    NAME.indices and NAME.values are filled in; other files, and other tensors, are
    returned as they are."""
    import torch
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        weights = {key: file.get_tensor(key) for key in file.keys()}
        about = file.metadata() or {}
    for key in about:
        if key.startswith("shape:"):
            name = key.removeprefix("shape:")
            shape = [int(size) for size in about[key].split(",")]
            if name + ".indices" in weights:
                values = weights.pop(name + ".values")
                dense = torch.zeros(shape, dtype=values.dtype)
                dense.view(-1)[weights.pop(name + ".indices").long()] = values
                weights[name] = dense
                continue
            a, b = weights.pop(name + ".A"), weights.pop(name + ".B")
            product = a.float() @ b.float()
            # The factors are those of the transposed weight where that is the taller one.
            product = product if len(product) == shape[0] else product.T
            weights[name] = product.reshape(shape).to(a.dtype)
    return weights


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
