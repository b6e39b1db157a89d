"""Turns what `abtrain export RUN -o FILE.pt2` or FILE.onnx has recorded into that file.

    python _export.py FOLDER OUTPUT [--with-normalization]
"""
import argparse
import io
import json
import operator
import os
import pathlib
import shutil
import signal
import sys
import warnings

USAGE, IO, CONFIG, INTERRUPTED = 2, 74, 78, 130  # the program's exit codes


def main():
    """Removes the folder in the end, even if a signal ends it."""
    for one in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(one, lambda number, _: sys.exit(128 + number))
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--with-normalization", action="store_true")
    args = parser.parse_args()
    try:
        return write(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        shutil.rmtree(args.folder, ignore_errors=True)


def write(args):
    try:
        import torch  # noqa: F401
        import safetensors.torch
    except ImportError as missing:
        return fail(CONFIG, f"{sys.executable} cannot import what {args.output} needs ({missing}); "
                            "ABTRAIN_PYTHON names another Python")
    graph = json.loads((args.folder / "graph.json").read_text(encoding="utf-8"))
    tensors = safetensors.torch.load_file(args.folder / "tensors.safetensors")
    module = build(graph, tensors)
    parameters = sum(p.numel() for p in module.parameters())
    if args.with_normalization:
        about = graph["about"]
        if "normalization" in about or "mean" not in about:
            how = about.get("normalization", "none of images")
            return fail(USAGE, "--with-normalization is for pixels with a mean and a standard deviation "
                               f"per channel, but the run's normalization is {how}; leave it out")
        module = with_normalization(module, about, len(graph["input"]["sizes"]))
        about.pop("config", None)  # its data are not what the program takes
    output = args.output.resolve()  # a link stays
    part = output.with_name(output.name + ".part")
    warnings.simplefilter("ignore")
    try:
        if args.output.suffix == ".pt2":
            write_pt2(module, graph, args.with_normalization, part)
        else:
            write_onnx(module, graph, args.with_normalization, part)
        if output.exists():
            shutil.copymode(output, part)
        os.replace(part, output)
    except ImportError as missing:
        return fail(CONFIG, f"{sys.executable} cannot import what PyTorch's exporter needs ({missing}); "
                            "`pip install onnx onnxscript` installs it")
    except OSError as error:
        return fail(IO, f"{args.output}: {error.strerror or error}")
    except Exception as error:  # the exporters raise errors of many classes
        return fail(CONFIG, f"{args.output}: PyTorch's exporter refuses the network: "
                            + str(error).strip().split("\n")[0])
    finally:
        part.unlink(missing_ok=True)
    print(f"{graph['name']} -> {args.output}\n  a program for "
          f"{'PyTorch' if args.output.suffix == '.pt2' else 'ONNX'}, {describe_input(graph, args)}; "
          f"{parameters:,} parameters, {graph['parameters']:,} if dense, "
          f"{human_bytes(args.output.stat().st_size)}")
    return 0


def fail(code, message):
    print(f"abtrain: error: {message}", file=sys.stderr)
    return code


def human_bytes(count):
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.1f} {unit}" if unit != "B" else f"{count} B"
        count /= 1000


def is_tokens(graph):
    return graph["input"]["dtype"] == "int64"


def is_dynamic(size):
    return isinstance(size, list)


def describe_input(graph, args):
    sizes = [("B", "T")[i] if is_dynamic(size) else str(size)
             for i, size in enumerate(graph["input"]["sizes"])]
    what = ("tokens" if is_tokens(graph) else
            "pixels of 0 to 255" if args.with_normalization else "normalized inputs")
    return f"{what}, {' x '.join(sizes)}"


def build(graph, tensors):
    """The recorded network as a torch.nn.Module of PyTorch's operators. `tensors`: the graph's, by
    their names."""
    import torch

    root, recorded = torch.nn.Module(), torch.fx.Graph()
    values = {0: recorded.placeholder("tokens" if is_tokens(graph) else "inputs")}
    for one in graph["tensors"]:
        dtype = getattr(torch, one["dtype"])
        tensor = tensors[one["name"]]
        tensor = tensor.view(dtype) if dtype == torch.float64 else tensor.to(dtype)
        owner, _, attribute = one["name"].rpartition(".")
        module = root
        for name in filter(None, owner.split(".")):
            if name not in module._modules:
                module.add_module(name, torch.nn.Module())
            module = module._modules[name]
        if one["is_trained"] and tensor.is_floating_point():
            module.register_parameter(attribute, torch.nn.Parameter(tensor))
        else:
            module.register_buffer(attribute, tensor)
        values[one["value"]] = recorded.get_attr(one["name"])
    sizes = {}

    def size(dimension):
        if dimension not in sizes:
            sizes[dimension] = recorded.call_function(
                torch.ops.aten.sym_size.int, (values[0], dimension))
        return sizes[dimension]

    def number(given):
        if not is_dynamic(given):
            return given
        constant, of_batch, of_tokens, of_both = given
        terms = [constant] if constant else []
        for factor, dimensions in ((of_batch, (0,)), (of_tokens, (1,)), (of_both, (0, 1))):
            if factor:
                term = size(dimensions[0])
                for dimension in dimensions[1:]:
                    term = recorded.call_function(operator.mul, (term, size(dimension)))
                terms.append(term if factor == 1 else
                             recorded.call_function(operator.mul, (term, factor)))
        total = terms[0]
        for term in terms[1:]:
            total = recorded.call_function(operator.add, (total, term))
        return total

    def argument(given, declared):
        if given is None:
            return None
        kind, value = next(iter(given.items()))
        if kind == "tensor":
            return values[value]
        if kind == "tensors":
            return [None if one is None else values[one] for one in value]
        if kind == "int":
            return number(value)
        if kind == "ints":
            numbers = [number(one) for one in value]
            return numbers * (declared.N or 1) if len(numbers) == 1 else numbers  # of int[2]
        if kind == "float":
            return float(value)
        if kind == "complex":
            return complex(*map(float, value))
        if kind == "floats":
            return [float(one) for one in value]
        if kind in ("dtype", "memory_format"):
            return getattr(torch, value)
        return value

    # The input's own sizes are asked for first, so that every step can use them.
    for dimension, given in enumerate(graph["input"]["sizes"]):
        if is_dynamic(given):
            size(dimension)
    for node in graph["nodes"]:
        packet = getattr(torch.ops.aten, node["op"].removeprefix("aten::"))
        overload, arguments = node["overload"] or "default", node["arguments"]
        if (node["op"], overload) == ("aten::to", "device"):  # stays on the input's device
            overload, arguments = "dtype", [arguments[0], *arguments[2:]]
        target = getattr(packet, overload)
        args, kwargs = [], {}
        for declared, given in zip(target._schema.arguments, arguments, strict=True):
            if declared.kwarg_only:
                kwargs[declared.name] = argument(given, declared)
            else:
                args.append(argument(given, declared))
        result = recorded.call_function(target, tuple(args), kwargs)
        outputs = node["outputs"]
        if len(outputs) == 1 and not node.get("lists"):
            values[outputs[0]] = result
            continue
        for i, output in enumerate(outputs):
            if output is not None:
                values[output] = recorded.call_function(operator.getitem, (result, i))
    recorded.output(values[graph["output"]])
    return torch.fx.GraphModule(root, recorded).eval()


def with_normalization(module, about, dims):
    import torch

    # Rows of numbers have one channel, images B x C x H x W.
    shape = (-1, 1, 1) if dims == 4 else (-1,)

    class Normalized(torch.nn.Module):
        """Takes pixels of 0 to 255, as uint8."""

        def __init__(self):
            super().__init__()
            self.network = module
            for name in ("mean", "std"):
                numbers = [float(one) for one in about[name].split(",")]
                self.register_buffer(name, torch.tensor(numbers).view(shape))

        def forward(self, inputs):
            return self.network((inputs.float() / 255 - self.mean) / self.std)

    return Normalized().eval()


def example_of(graph, normalizes, least=None):
    import torch

    sizes = [sum(one * (1, 2, 3, 6)[i] for i, one in enumerate(size)) if is_dynamic(size) else size
             for size in graph["input"]["sizes"]]  # B = 2, T = 3
    dtype = torch.uint8 if normalizes else getattr(torch, graph["input"]["dtype"])
    dims = (torch.export.Dim("batch", min=least),
            torch.export.Dim("tokens", max=int(graph["about"].get("context", 2))))
    dynamic = {i: dims[i] for i, size in enumerate(graph["input"]["sizes"]) if is_dynamic(size)}
    return torch.zeros(sizes, dtype=dtype), dynamic


def export(module, graph, normalizes):
    import torch

    example, dynamic = example_of(graph, normalizes)
    return torch.export.export(module, (example,), dynamic_shapes=(dynamic,))


def write_pt2(module, graph, normalizes, path):
    import torch

    buffer = io.BytesIO()  # on a full disk, torch's own writer would abort
    torch.export.save(export(module, graph, normalizes), buffer,
                      extra_files={"abtrain.json": json.dumps(graph["about"])})
    path.write_bytes(buffer.getbuffer())


def write_onnx(module, graph, normalizes, path):
    import onnx
    import onnxscript  # noqa: F401
    import torch

    # A program of ONNX takes any batch, but PyTorch before 2.11 finds conditions on a batch of 1.
    example, dynamic = example_of(graph, normalizes, least=2)
    name = "tokens" if is_tokens(graph) else "inputs"
    program = torch.onnx.export(
        module, (example,), dynamo=True, dynamic_shapes=(dynamic,), input_names=[name],
        output_names=["outputs"], verbose=False)
    model = program.model_proto
    own = {one.key: one.value for one in model.metadata_props}
    onnx.helper.set_model_props(model, own | graph["about"])
    onnx.save(model, path)


if __name__ == "__main__":
    sys.exit(main())
