#!/usr/bin/env python3
"""Compares example orders: shuffle, grab, id-grab, and cd-grab with each wire.

    bench/orders.py softmax [--workers 4] [--rates 0.01 0.02 0.04] [--plot FILE]
    bench/orders.py curves fashion_mnist_mlp --orders shuffle cd-grab-int8
    bench/orders.py herding herding.json --plot herding.png

softmax sweeps learning rates, orders and seeds on fashion_mnist_softmax_cdgrab, a
convex problem, and reports the gap: the training loss less its optimum. curves
does the same with any configuration, and reports the training loss itself and the
test accuracy. herding shows the output of `bench_herding --json`.

Each point is a whole run, which is kept in --output and not repeated. Runs are
made seed by seed, with all orders and rates of a seed next to each other, so that
a drift of the machine's speed affects all alike. Losses and accuracies are means
over the seeds, seconds are medians. --plot FILE draws the results (with
matplotlib, Debian's python3-matplotlib), --json FILE keeps the figures.
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import zlib

OPTIMUM = 0.7398529  # of fashion_mnist_softmax_cdgrab, for any number of workers
DIVERGED = 70  # exit code: a loss of NaN
WIRES = ("fp32", "int8", "sketch")
ORDERS = {name: [f"order.name={name}"] for name in ("shuffle", "grab", "id-grab")}
ORDERS |= {f"cd-grab-{w}": ["order.name=cd-grab", f"order.wire={w}"] for w in WIRES}
COLORS = dict(zip(ORDERS, ("#555555", "#E69F00", "#009E73", "#0072B2", "#D55E00", "#CC79A7")))


def call(arguments, name, words, values):
    """Runs the program. Returns its output, or None where training diverged."""
    command = [arguments.program, *words, "--config", arguments.config]
    for value in [*values, *arguments.set]:
        command += ["--set", value]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == DIVERGED:
        return None
    if done.returncode:
        sys.exit(f"orders.py: {name}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def settings(arguments):
    values = ["evaluate.train=true"]
    return values + [f"workers={arguments.workers}"] * (arguments.workers is not None)


def complete(arguments):
    """Adds the configuration's `rate`, `workers` and steps per `epoch`."""
    text = "".join(
        call(arguments, arguments.config, words, settings(arguments))
        for words in (["plan"], ["plan", "--show-config"]))
    find = lambda pattern: re.search(pattern, text, re.MULTILINE)[1].replace(",", "")
    arguments.rate = float(find(r"^  lr: (\S+)$"))
    arguments.workers = int(find(r"^workers: (\d+)$"))
    arguments.epoch = int(find(r"^  steps .* ([\d,]+) per epoch"))
    arguments.rates = sorted(arguments.rates or [arguments.rate])


def train(arguments, order, rate, seed):
    """Returns a run's summary with its evaluations; None where it diverged."""
    name = (f"{pathlib.Path(arguments.config).stem}_{order}_{rate:g}_"
            f"{arguments.workers}w_{seed}")
    if arguments.set:  # other settings need other folders
        name += f"_{zlib.crc32(json.dumps(arguments.set).encode()):08x}"
    folder = arguments.output / name
    summary, metrics, diverged = (
        folder / file for file in ("summary.json", "metrics.jsonl", "diverged"))
    if not summary.exists() and not diverged.exists():
        metrics.unlink(missing_ok=True)
        values = [f"seed={seed}", f"optimizer.lr={rate:g}", *settings(arguments), *ORDERS[order]]
        words = ["train", "--name", name, "--output", arguments.output, "--resume", "none", "--overwrite"]
        if call(arguments, name, words, values) is None:
            diverged.touch()
        print(f"orders.py: {name}", file=sys.stderr, flush=True)
    if diverged.exists():
        return None
    events = map(json.loads, metrics.read_text().splitlines())
    return json.loads(summary.read_text()) | {
        "evaluations": [e for e in events if e["event"] == "evaluate"]}


def sweep(arguments):
    """Trains all runs. Returns a point for each order and rate."""
    runs = {(order, rate, seed): train(arguments, order, rate, seed)
            for seed in arguments.seeds for order in arguments.orders for rate in arguments.rates}
    points = []
    for order in arguments.orders:
        for rate in arguments.rates:
            own = [runs[order, rate, seed] for seed in arguments.seeds]
            point = {"order": order, "rate": rate, "diverged": own.count(None)}
            own = [run for run in own if run]
            point["seconds"] = [run["seconds"]["train"] for run in own]
            point["bytes"] = [run["traffic"]["by_purpose"].get("orders", 0) for run in own]
            point["losses"] = [run["train_loss"] for run in own]
            point["curve"] = [  # means over the seeds, by evaluation
                {"epoch": same[0]["step"] / arguments.epoch,
                 "seconds": statistics.median(e["train_seconds"] for e in same),
                 "value": statistics.mean(e["train_loss"] for e in same) - arguments.optimum,
                 "accuracy": statistics.mean(e["accuracy"] for e in same)}
                for same in zip(*(run["evaluations"] for run in own))]
            if any(e["value"] <= 0 for e in point["curve"]):
                sys.exit(f"orders.py: {order} at {rate:g}: a loss below the optimum, "
                         f"{arguments.optimum}; give --optimum")
            points.append(point)
    return points


def last(point):
    """The value at the end; infinite where a seed diverged."""
    return math.inf if not point or point["diverged"] else point["curve"][-1]["value"]


def best(points, order):
    """The point of the order's own best rate; None where all diverged."""
    point = min((p for p in points if p["order"] == order), key=last)
    return point if last(point) < math.inf else None


def reached(curve, target):
    """(seconds, epochs) at the target, interpolated in the log of the value; those of the
    first evaluation if that is at the target already; None if it was never reached."""
    for i, e in enumerate(curve):
        if e["value"] <= target:
            if i == 0:
                return e["seconds"], e["epoch"]
            b = curve[i - 1]
            part = math.log(b["value"] / target) / math.log(b["value"] / e["value"])
            return tuple(b[k] + part * (e[k] - b[k]) for k in ("seconds", "epoch"))
    return None


def markdown(title, head, rows):
    rule = ["---"] + ["---:"] * (len(head) - 1)
    lines = ["| " + " | ".join(row) + " |" for row in [head, rule, *rows]]
    return "\n".join([f"{title}:", "", *lines, ""])


def results(points, arguments):
    """A table of values by rate, with the best in bold."""
    with_accuracy = not arguments.optimum

    def cell(point, is_best):
        if last(point) == math.inf:
            return "diverged"
        text = f"{last(point):.4f}" if with_accuracy else f"{last(point):.2e}"
        text = f"**{text}**" if is_best else text
        return text + f", {100 * point['curve'][-1]['accuracy']:.2f} %" * with_accuracy

    title = f"{arguments.value} at the last epoch" + ", test accuracy" * with_accuracy
    title += (f", by learning rate ({arguments.config}, {arguments.workers} workers, "
              f"{seeds(arguments)}; bold: the best rate of an order)")
    return markdown(title, ["order", *(f"{r:g}" for r in arguments.rates)], [
        [order, *(cell(p, p is best(points, order)) for p in points if p["order"] == order)]
        for order in arguments.orders])


def ratios(points, arguments):
    def ratio(of, to):
        finite = max(last(of), last(to)) < math.inf
        return f"{last(of) / last(to):.2f}" if finite else "-"

    at_rate = {p["order"]: p for p in points if math.isclose(p["rate"], arguments.rate)}
    at_best = {order: best(points, order) for order in arguments.orders}
    title = f"shuffle's {arguments.value} / the order's, at the last epoch"
    head = ["order", f"both at the configuration's rate, {arguments.rate:g}",
            "each at its own best rate"]
    return markdown(title, head, [
        [order, *(ratio(of.get("shuffle"), of.get(order)) for of in (at_rate, at_best))]
        for order in arguments.orders])


def costs(points, arguments):
    def cell(point, target):
        hit = point and reached(point["curve"], target)
        return f"{hit[0]:.2f} s, {hit[1]:.1f}" if hit else "-"

    targets = arguments.targets or [last(best(points, arguments.orders[0]))]
    rows = []
    for order in arguments.orders:
        own = [p for p in points if p["order"] == order]
        every = lambda key: [v for p in own for v in p[key]] or [math.nan]
        point = best(points, order)
        rows.append([order, f"{statistics.median(every('seconds')):.2f}",
                     f"{statistics.mean(every('bytes')):,.0f}",
                     f"{point['rate']:g}" if point else "-",
                     *(cell(point, target) for target in targets)])
    title = f"Costs, and seconds and epochs to a {arguments.value}, each order at its own best rate"
    return markdown(title, ["order", "seconds of training", "bytes of orders per worker", "rate",
                            *(f"to {t:.4g}: s, epochs" for t in targets)], rows)


def seeds(arguments):
    return f"{len(arguments.seeds)} seed{'s' * (len(arguments.seeds) > 1)}"


def pyplot():
    try:
        import matplotlib
    except ImportError:
        sys.exit("orders.py: --plot needs matplotlib (Debian: python3-matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plot
    plot.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 10})
    return plot


def draw(axes, curves, x_label, y_label):
    """Draws curves (order, label, x, y), labeled at their right ends."""
    from matplotlib import ticker
    axes.set_yscale("log")
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.25, linewidth=0.6)
    for order, _, x, y in curves:
        color = COLORS.get(order, "black")
        axes.plot(x, y, color=color, linewidth=1.5, marker="o", markersize=3.5, markevery=[-1])
    low, high = axes.get_ylim()
    if high < 300 * low:  # too few powers of ten to label
        steps = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 5, 6, 8)
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=steps))
        axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_locator(ticker.MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.set_xlim(left=0)
    axes.set_ylim(low, high)
    place = -math.inf  # as a share of the height
    for order, label, x, y in sorted(curves, key=lambda curve: curve[3][-1]):
        place = max(place + 0.055, math.log(y[-1] / low) / math.log(high / low))
        color = COLORS.get(order, "black")
        axes.annotate(label, (x[-1], y[-1]), (1.04, place), textcoords="axes fraction",
                      color=color, va="center", annotation_clip=False, arrowprops={
                          "arrowstyle": "-", "color": color, "linewidth": 0.7,
                          "linestyle": (0, (1, 2)), "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 3})


def plot_curves(points, arguments):
    figure, panels = pyplot().subplots(1, 2, figsize=(12, 4.8))
    own = [p for p in (best(points, order) for order in arguments.orders) if p]
    for axes, x, x_label in zip(panels, ("epoch", "seconds"), ("epoch", "seconds of training")):
        draw(axes, [(p["order"], f"{p['order']}, lr {p['rate']:g}",
                     *([e[key] for e in p["curve"]] for key in (x, "value"))) for p in own],
             x_label, arguments.value)
    figure.suptitle(f"{pathlib.Path(arguments.config).stem}, {arguments.workers} workers, "
                    f"each order at its best rate ({seeds(arguments)})")
    figure.tight_layout()
    figure.savefig(arguments.plot, dpi=150)


def compare(arguments):
    complete(arguments)
    points = sweep(arguments)
    print(results(points, arguments), ratios(points, arguments), costs(points, arguments), sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "config": arguments.config, "workers": arguments.workers, "set": arguments.set,
            "seeds": arguments.seeds, "optimum": arguments.optimum, "points": points},
            indent=1) + "\n")
    if arguments.plot:
        plot_curves(points, arguments)


def herding(arguments):
    data = json.loads(arguments.file.read_text())
    bounds = {row["order"].replace(", ", "-"): row["bound"] for row in data["orders"]}
    rounds = [r for r in (0, 1, 2, 3, 5, 10) if all(r < len(b) for b in bounds.values())]
    title = (f"{data['workers']} workers, {data['units']} vectors of {data['numel']} each: "
             "largest component of a prefix sum")
    print(markdown(title + ", by round", ["order", *map(str, rounds)], [
        [order, *(f"{bound[r]:.2f}" for r in rounds)] for order, bound in bounds.items()]))
    if arguments.plot:
        figure, axes = pyplot().subplots(figsize=(7.5, 4.2))
        draw(axes, [(o, o, range(len(b)), b) for o, b in bounds.items()], "round",
             "largest component of a prefix sum")
        axes.set_title(title.split(":")[0])
        figure.tight_layout()
        figure.savefig(arguments.plot, dpi=150)


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    softmax = commands.add_parser("softmax", help="the gap to the optimum of a convex problem")
    softmax.set_defaults(config="fashion_mnist_softmax_cdgrab", value="gap", main=compare)
    curves = commands.add_parser("curves", help="training loss and accuracy of any configuration")
    curves.add_argument("config", help="a file, or a name in configs/")
    curves.set_defaults(value="training loss", optimum=0, main=compare)
    for command, rates, runs, targets in (
            (softmax, [0.005, 0.01, 0.02, 0.04], [1, 2, 3], [1e-2, 3e-3, 1e-3]),
            (curves, None, [1], None)):
        add = command.add_argument
        add("--orders", nargs="+", choices=ORDERS, default=list(ORDERS), metavar="ORDER",
            help=f"orders to run, of {', '.join(ORDERS)} (default: all)")
        add("--rates", type=float, nargs="+", default=rates, metavar="RATE",
            help="optimizer.lr; default: " + (" ".join(map(str, rates or []))
                                              or "the configuration's"))
        add("--seeds", type=int, nargs="+", default=runs, metavar="SEED")
        add("--workers", type=int, help="default: the configuration's")
        add("--targets", type=float, nargs="+", default=targets, metavar="VALUE",
            help="default: " + (" ".join(f"{t:g}" for t in targets or [])
                                or "the loss with which the first order ends"))
        add("--set", action="append", default=[], metavar="KEY=VALUE",
            help="override a key in every run; may be repeated")
        add("--program", type=pathlib.Path, default="build/release/abtrain")
        add("--output", type=pathlib.Path, default="runs/orders", help="folder for the runs")
        add("--json", type=pathlib.Path, metavar="FILE", help="file for the figures")
    softmax.add_argument("--optimum", type=float, default=OPTIMUM,
                         help="the optimum, if --set changes the problem; default: %(default)s")
    bounds = commands.add_parser("herding", help="the output of `bench_herding --json`")
    bounds.add_argument("file", type=pathlib.Path)
    bounds.set_defaults(main=herding)
    for command in (softmax, curves, bounds):
        command.add_argument("--plot", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        arguments = parse()
        arguments.main(arguments)
    except (OSError, json.JSONDecodeError) as error:
        sys.exit(f"orders.py: {error}")
