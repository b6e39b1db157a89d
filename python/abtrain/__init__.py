"""Hands a model to abtrain, and reads what it writes: weights for PyTorch, and run folders as tables.

    abtrain.save_model(model, images, "my.pt2")
    model.load_state_dict(abtrain.load_weights("small.safetensors"))
    metrics, summary = abtrain.load_run("runs/fashion_mnist_mlp")

Training is done by the program `abtrain`, not by this module.
"""
import json
import pathlib
import typing

__all__ = ["Run", "load_run", "load_weights", "save_model"]


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


def save_model(module, example, path, overwrite=False):
    """Writes a torch.nn.Module as `model: {name: exported, file: PATH}` takes it. `example` is a
    batch of at least two inputs: images as B x C x H x W, tokens as int64, B x T. The module must
    take one tensor and return one: the logits, or the predicted numbers. Raises ValueError, with
    the place in the module's source, for what cannot be exported, and where the exported model
    would not compute what the module does, in training or in evaluation."""
    import torch

    path = pathlib.Path(path)
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists; overwrite=True replaces it")
    if not isinstance(example, torch.Tensor) or example.dim() < 2 or len(example) < 2:
        raise ValueError("example: expected a tensor that holds a batch of at least two inputs")
    modes = [(child, child.training) for child in module.modules()]
    buffers = {name: value.clone() for name, value in module.named_buffers()}
    try:
        module.train()
        try:
            program = torch.export.export(
                module, (example,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
        except Exception as error:  # torch.export raises errors of many classes
            text = str(error).strip().split("\n")
            raise ValueError(
                f"torch.export cannot export this module: {text[0]}\n"
                "Branches on a tensor's values, and sizes taken from the example instead of from "
                "x.shape, are the usual reasons; "
                "https://docs.pytorch.org/docs/stable/export.html lists the others.") from error
        for node in program.graph.nodes:
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and (
                    node.target.namespace != "aten"):
                places = [line for line in (node.stack_trace or "").split("\n") if "File" in line]
                raise ValueError(
                    f"operator {node.target}, {places[-1].strip() if places else ''}: only PyTorch's own (aten) operators run "
                    "in abtrain; replace it in the module")
        _check_same(module, program, example)
    finally:
        for child, mode in modes:
            child.training = mode
        for name, value in module.named_buffers():  # which the program shares
            value.copy_(buffers[name])
    torch.export.save(program, path)


def _check_same(module, program, example):
    """Runs both on the example, in training and, with what abtrain changes then, in evaluation."""
    import torch

    class Evaluation(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.ops.aten.bernoulli_.float:
                return args[0].fill_(args[1])
            if isinstance(target, torch._ops.OpOverload):
                names = [argument.name for argument in target._schema.arguments]
                kwargs = dict(kwargs) | dict(zip(names, args))
                args = ()
                off = {"training": False, "train": False, "dropout_p": 0.0}
                if kwargs.get("running_mean") is not None:
                    off["use_input_stats"] = False
                elif "running_mean" in kwargs:
                    off.pop("training")
                kwargs.update({k: v for k, v in off.items() if kwargs.get(k)})
                if "self" in kwargs:  # no operator takes it by name
                    args = tuple(kwargs.pop(name) for name in names[:names.index("self") + 1])
            return target(*args, **kwargs)

    def output(call, mode):
        module.train(mode)
        torch.manual_seed(0)
        with torch.no_grad():
            found = call(example)
        tensors = [value for value in torch.utils._pytree.tree_leaves(found) if value is not None]
        if len(tensors) != 1 or not isinstance(tensors[0], torch.Tensor):
            raise ValueError(
                f"the module returns {len(tensors)} values; export a module whose forward() "
                "returns one tensor, such as the logits")
        return tensors[0]

    exported = program.module()
    evaluation = Evaluation(exported)
    for name, mode, call in [("training", True, exported), ("evaluation", False, evaluation.run)]:
        wanted, found = output(module, mode), output(call, mode)
        if not torch.allclose(wanted, found, rtol=1e-3, atol=1e-4 * float(wanted.abs().max())):
            raise ValueError(
                f"in {name}, the exported module does not compute what the module does: they differ "
                f"by up to {float((wanted - found).abs().max()):.3g}. A branch on self.training is "
                "the usual reason: the export has only the branch for training, in which dropout, "
                "norms and stochastic depth are the only parts that an evaluation changes.")


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
