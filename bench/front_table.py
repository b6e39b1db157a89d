"""What bench/front.py prints and draws: points, fronts, equal time, three panels.

A point is a run at one length: its accuracies by seed, the median of its training
seconds, means of the rest. A run that diverged has no figures, and its point is on
no front and within no budget: a method that diverges with some seed did not get there.
"""
import math
import pathlib
import statistics
import sys

NOTEBOOKS = pathlib.Path(__file__).resolve().parent.parent / "notebooks"
COSTS = {"seconds": ("training, s", 1), "bytes": ("sent per worker, MB", 1e6),
         "stored": ("parameters stored, millions", 1e6)}


def points_of(runs):
    """A point for each name and length, in the order of the runs."""
    groups = {}
    for run in runs:
        groups.setdefault((run["name"], run["length"]), []).append(run)
    points = []
    for (name, length), group in groups.items():
        good = [run for run in group if not run.get("diverged")]
        point = {"name": name, "length": length, "seeds": len(good),
                 "diverged": len(group) - len(good),
                 "accuracies": [run["accuracy"] for run in good]}
        if good:
            point |= {key: statistics.mean(run[key] for run in good)
                      for key in ("accuracy", "bytes", "stored", "compression")}
            point |= {key: statistics.median(run[key] for run in good)
                      for key in ("seconds", "to_target")}
        points.append(point)
    return points


def counts(point):
    return point["seeds"] > 0 and point["diverged"] == 0


def front(points, cost):
    """The points that no other one beats, cheapest first. A point is beaten by one that is
    at least as accurate, costs no more, and is better in one of the two."""
    points = [p for p in points if counts(p)]
    return sorted((p for p in points if not any(
        o["accuracy"] >= p["accuracy"] and o[cost] <= p[cost]
        and (o["accuracy"], o[cost]) != (p["accuracy"], p[cost]) for o in points)),
        key=lambda p: p[cost])


def within(points, name, cost, budget):
    """The best length of a method that costs no more than the budget, or None. Nothing is
    interpolated: a schedule that was cut short would have ended elsewhere."""
    own = [p for p in points if p["name"] == name and counts(p) and p[cost] <= budget]
    return max(own, key=lambda p: p["accuracy"], default=None)


def markdown(head, rows, texts=1):
    """`texts`: how many columns there are before those of numbers."""
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])


def percents(point):
    values = point["accuracies"]
    spread = (f" ({100 * min(values):.2f} to {100 * max(values):.2f})" if len(values) > 1 else "")
    return f"{100 * point['accuracy']:.2f}{spread}"


def seeds_text(point):
    return f"{point['seeds']}" + (
        f", {point['diverged']} diverged" if point["diverged"] else "")


def table(points, unit, target=None):
    """A row for each point; the last cell names the fronts, of all points, that it is on."""
    fronts = {word: front(points, cost) for word, cost in
              (("seconds", "seconds"), ("bytes", "bytes"), ("parameters", "stored"))}
    head = ["run", unit, "seeds", "accuracy, %", "training, s", "MB sent", "compression",
            "parameters"]
    rows = []
    for p in points:
        row = [p["name"], f"{p['length']}", seeds_text(p)]
        if p["seeds"]:
            row += [percents(p), f"{p['seconds']:.1f}", f"{p['bytes'] / 1e6:,.1f}",
                    f"{p['compression']:.2f}", f"{p['stored']:,.0f}"]
            late = "not reached" if math.isinf(p["to_target"]) else f"{p['to_target']:.1f}"
        else:
            row, late = row + ["-"] * 5, "-"
        row += [late] if target else []
        rows.append(row + [", ".join(word for word, those in fronts.items() if p in those)])
    head += [f"s to {100 * target:g} %"] if target else []
    return markdown([*head, "front"], rows)


def equal_table(points, reference, unit):
    """What each method reaches in the time of the reference point, and with its bytes."""
    budgets = (("seconds", 1, "s"), ("bytes", 1e6, "MB"))
    head = ["run"]
    columns = []
    names = list(dict.fromkeys(p["name"] for p in points))
    for (cost, factor, word), how in zip(budgets, ("in its time", "with its bytes")):
        head += [f"{how}: accuracy, %", unit, word]
        best = [within(points, name, cost, reference[cost]) for name in names]
        highest = max(p["accuracy"] for p in best if p)
        columns.append([
            ["-"] * 3 if p is None else
            [f"**{percents(p)}**" if p["accuracy"] == highest else percents(p),
             f"{p['length']}", f"{p[cost] / factor:,.1f}"] for p in best])
    title = (f"{reference['name']} at {reference['length']} {unit}: "
             f"{reference['seconds']:.1f} s, {reference['bytes'] / 1e6:,.1f} MB per worker. "
             "The best that each run reaches with no more:")
    return title + "\n\n" + markdown(
        head, [[name, *time, *sent] for name, time, sent in zip(names, *columns)])


def load_plots(script):
    """The drawing helpers of the notebooks, for a script without a window; ends the script
    if what they need is missing."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        sys.path.insert(0, str(NOTEBOOKS))
        import plots
    except ImportError as error:
        sys.exit(f"{script}: --plot needs matplotlib and numpy: {error}")
    return plots


def draw(points, path, target=None):
    """Three panels: a mark per point, from the lowest to the highest seed, and a line along
    each method's own front. Filled: on the front of all."""
    plots = load_plots("front.py")
    points = [p for p in points if p["seeds"]]
    style = plots.styles(dict.fromkeys(p["name"] for p in points))
    figure, panels = plots.grid_of_axes(len(COSTS), sharey=True)
    for axes, (cost, (label, factor)) in zip(panels, COSTS.items()):
        # One worker sends nothing, which a logarithmic axis cannot show.
        shown = [p for p in points if p[cost] > 0]
        best = front(shown, cost)
        for name, own in style.items():
            axes.plot([], [], label=name, **own)
            mine = [p for p in shown if p["name"] == name]
            joined = front(mine, cost)
            axes.plot([p[cost] / factor for p in joined], [100 * p["accuracy"] for p in joined],
                      color=own["color"])
            for p in mine:
                x, y = p[cost] / factor, 100 * p["accuracy"]
                ends = [[y - 100 * min(p["accuracies"])], [100 * max(p["accuracies"]) - y]]
                axes.errorbar([x], [y], yerr=[[max(0, end) for end in side] for side in ends],
                              color=own["color"], capsize=2, linewidth=1,
                              marker=own["marker"],
                              markerfacecolor=own["color"] if p in best else "white")
        if target:
            axes.axhline(100 * target, color="black", linestyle=":", linewidth=1)
        if shown:
            plots.log_scale(axes.xaxis)
        axes.set_xlabel(label)
    panels[0].set_ylabel("test accuracy, %")
    plots.legend_of_all(figure, panels)
    figure.savefig(path, dpi=110)
