"""Milliseconds and bytes of trained networks outside abtrain: factored against merged, which has
the dense network's layers.

    bench/inference.py RUN...    # with torch, onnx, onnxscript and onnxruntime; `abtrain` in PATH

Prints a table in Markdown. A time is the median of the passes of at least a second; the two
forms take turns, so that both see the same machine.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import onnxruntime
import torch


def export(run, folder, form, ending):
    path = folder / f"{form}{ending}"
    subprocess.run(["abtrain", "export", run, "-o", path, "--form", form], check=True,
                   stdout=subprocess.DEVNULL)
    return path


def eager(path, example):
    module = torch.export.load(path).module()
    return lambda: module(example)


def compiled(path, example):
    torch._dynamo.reset()
    module = torch.compile(torch.export.load(path).module())
    module(example)
    return lambda: module(example)


def onnx(path, example):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options)
    feed = {session.get_inputs()[0].name: example.numpy()}
    return lambda: session.run(None, feed)


def milliseconds(calls, least=1.0):
    """The median of each call's times, in turns."""
    times = [[] for _ in calls]
    for call in calls:
        call()
    begin = time.perf_counter()
    while time.perf_counter() - begin < least * len(calls) or len(times[0]) < 5:
        for call, taken in zip(calls, times):
            start = time.perf_counter()
            call()
            taken.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(taken) for taken in times]


def example_of(path, batch):
    """Inputs in the form that the program takes."""
    about = {"abtrain.json": ""}
    torch.export.load(path, extra_files=about)
    about = json.loads(about["abtrain.json"])
    if "context" in about:
        return torch.randint(0, int(about["vocabulary"]), (batch, int(about["context"])))
    return torch.randn(batch, *map(int, about["input"].split(",")))


def measure(run):
    forms = ("merged", "factored")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = {(form, ending): export(run, folder, form, ending)
                 for form in forms for ending in (".pt2", ".onnx")}
        sizes = [f"{files[form, '.onnx'].stat().st_size / 1e6:.2f} MB" for form in forms]
        summary = json.loads((pathlib.Path(run) / "summary.json").read_text())
        print(f"\n**{pathlib.Path(run).name}**, {summary['compression_ratio']:.1f}:1, merged "
              f"{sizes[0]}, factored {sizes[1]}\n\n| batch, threads | runtime | merged | factored | "
              "ratio |\n| --- | --- | --- | --- | --- |", flush=True)
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for batch in (1, 64):
                example = example_of(files["merged", ".pt2"], batch)
                runtimes = [(eager, ".pt2"), (onnx, ".onnx")]
                if threads == 2:  # compiling takes a minute
                    runtimes.insert(1, (compiled, ".pt2"))
                for runtime, ending in runtimes:
                    one, other = milliseconds(
                        [runtime(files[form, ending], example) for form in forms])
                    print(f"| {batch}, {threads} | {runtime.__name__} | {one:.2f} ms | {other:.2f} ms "
                          f"| {other / one:.2f} |", flush=True)


if __name__ == "__main__":
    with torch.no_grad():
        for each in sys.argv[1:]:
            measure(each)
