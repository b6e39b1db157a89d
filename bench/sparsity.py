#!/usr/bin/env python3
"""Accuracy against sparsity of QCMD or QRDA Adagrad by l1, with each quantizer.

    bench/sparsity.py mlp --l1 0 1e-5 3e-5 1e-4 3e-4 [--seeds 1 2 3]
    bench/sparsity.py softmax --l1 0 3e-4 1e-3 3e-3 --plot sparsity.png

mlp trains fashion_mnist_mlp_qcmd.yaml, softmax fashion_mnist_softmax_qrda.yaml.
Each point is a whole run, which is kept in --output and not repeated. Prints a
table of means over the seeds; --plot FILE draws it (with matplotlib, Debian's
python3-matplotlib), --json FILE keeps the figures. The configuration's error
feedback is used for threshold; the other quantizers have their default.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

CONFIGS = {"mlp": "fashion_mnist_mlp_qcmd", "softmax": "fashion_mnist_softmax_qrda"}
QUANTIZERS = ("plain", "threshold", "ternary")


def run(arguments, quantizer, l1, seed):
    """Trains one point, unless that is done, and returns its summary."""
    name = f"{arguments.model}_{quantizer}_{l1:g}_{seed}"
    summary = arguments.output / name / "summary.json"
    if not summary.exists():
        command = [arguments.program, "--config", CONFIGS[arguments.model], "--name", name,
                   "--output", arguments.output, "--resume", "none", "--overwrite"]
        values = [f"seed={seed}", f"optimizer.l1={l1:g}", f"reducer.name={quantizer}",
                  "reducer.evaluate_every=50"]
        if quantizer != "threshold":  # the configuration's value is for threshold
            values.append("reducer.error_feedback=auto")
        for value in values + arguments.set:
            command += ["--set", value]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True)
        if done.returncode:
            sys.exit(f"sparsity.py: {name}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(summary.read_text())


def point(arguments, quantizer, l1):
    runs = [run(arguments, quantizer, l1, seed) for seed in arguments.seeds]
    mean = lambda values: statistics.mean(list(values))
    return {
        "quantizer": quantizer, "l1": l1,
        "accuracy": [r["accuracy"] for r in runs],
        "zeros": mean(r["sparsity"]["zeros"] if "sparsity" in r else 0 for r in runs),
        "nonzero": mean(r["sparsity"]["nonzero_parameters"] if "sparsity" in r
                        else r["parameters"]["dense"] for r in runs),
        "bytes": mean(r["traffic"]["vs_fp32"] or 0 for r in runs),
        "error": mean(r["reducer"]["vnmse"] or 0 for r in runs)}


def table(points):
    lines = ["| quantizer | l1 | accuracy, % | zeros, % | parameters that are not 0 | "
             "gradient error | bytes of fp32's, % |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for p in points:
        accuracy = [100 * a for a in p["accuracy"]]
        spread = "" if len(accuracy) == 1 else f" ({min(accuracy):.2f} to {max(accuracy):.2f})"
        lines.append(
            f"| {p['quantizer']} | {p['l1']:g} | {statistics.mean(accuracy):.2f}{spread} | "
            f"{100 * p['zeros']:.1f} | {p['nonzero']:,.0f} | {p['error']:.3f} | "
            f"{100 * p['bytes']:.2f} |")
    return "\n".join(lines)


def plot(points, arguments):
    try:
        import matplotlib
    except ImportError:
        sys.exit("sparsity.py: --plot needs matplotlib (Debian: python3-matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    places = [(4, 5), (-8, -12), (-34, -3)]  # of labels, beside the points
    for quantizer, marker, place in zip(QUANTIZERS, "os^", places):
        own = [p for p in points if p["quantizer"] == quantizer]
        x = [100 * p["zeros"] for p in own]
        y = [100 * statistics.mean(p["accuracy"]) for p in own]
        ends = [[v - 100 * min(p["accuracy"]) for v, p in zip(y, own)],
                [100 * max(p["accuracy"]) - v for v, p in zip(y, own)]]
        axes.errorbar(x, y, yerr=ends, marker=marker, capsize=3, label=quantizer)
        for p, a, b in zip(own, x, y):
            axes.annotate(f"{p['l1']:g}", (a, b), textcoords="offset points", xytext=place,
                          fontsize=7)
    axes.set_xlabel("weights that are exactly 0, %")
    axes.set_ylabel("test accuracy, %")
    axes.set_title(f"{CONFIGS[arguments.model]}, by l1 "
                   f"({len(arguments.seeds)} seed{'s' * (len(arguments.seeds) > 1)})")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(arguments.plot, dpi=140)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", choices=CONFIGS)
    add("--l1", type=float, nargs="+", default=[0, 1e-5, 3e-5, 1e-4, 3e-4])
    add("--quantizers", nargs="+", choices=QUANTIZERS, default=QUANTIZERS)
    add("--seeds", type=int, nargs="+", default=[1])
    add("--set", action="append", default=[], metavar="KEY=VALUE")
    add("--program", type=pathlib.Path, default="build/release/abtrain")
    add("--output", type=pathlib.Path, default="runs/sparsity")
    add("--json", type=pathlib.Path)
    add("--plot", type=pathlib.Path)
    arguments = parser.parse_args()
    points = [point(arguments, q, l1) for q in arguments.quantizers for l1 in arguments.l1]
    print(table(points))
    if arguments.json:
        arguments.json.write_text(json.dumps(points, indent=1) + "\n")
    if arguments.plot:
        plot(points, arguments)


if __name__ == "__main__":
    main()
