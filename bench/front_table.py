"""What bench/front.py prints and draws: points, fronts, equal time, three panels.

A point is a run at one length: its scores by seed, the median of its training seconds,
means of the rest. A score is an accuracy, or minus the bits per byte of a text. A run that
diverged has no figures, and its point is on no front and within no budget: a method that
diverges with some seed did not get there.
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
                 "scores": [run["score"] for run in good],
                 "is_text": any(run["is_text"] for run in good)}
        if good:
            point |= {key: statistics.mean(run[key] for run in good)
                      for key in ("score", "bytes", "stored", "compression")}
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
        o["score"] >= p["score"] and o[cost] <= p[cost]
        and (o["score"], o[cost]) != (p["score"], p[cost]) for o in points)),
        key=lambda p: p[cost])


def within(points, name, cost, budget):
    """The best length of a method that costs no more than the budget, or None. Nothing is
    interpolated: a schedule that was cut short would have ended elsewhere."""
    own = [p for p in points if p["name"] == name and counts(p) and p[cost] <= budget]
    return max(own, key=lambda p: p["score"], default=None)


def markdown(head, rows, texts=1):
    """`texts`: how many columns there are before those of numbers."""
    rule = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])


def shown(point, score):
    """A score as its measure: percent, or bits per byte."""
    return -score if point["is_text"] else 100 * score


def measure(points):
    return "bits per byte" if any(p["is_text"] for p in points) else "accuracy, %"


def score_text(point):
    digits = 4 if point["is_text"] else 2
    ends = sorted(shown(point, score) for score in point["scores"])
    spread = f" ({ends[0]:.{digits}f} to {ends[-1]:.{digits}f})" if len(ends) > 1 else ""
    return f"{shown(point, point['score']):.{digits}f}{spread}"


def seeds_text(point):
    return f"{point['seeds']}" + (
        f", {point['diverged']} diverged" if point["diverged"] else "")


def table(points, unit, target=None):
    """A row for each point; the last cell names the fronts, of all points, that it is on."""
    fronts = {word: front(points, cost) for word, cost in
              (("seconds", "seconds"), ("bytes", "bytes"), ("parameters", "stored"))}
    head = ["run", unit, "seeds", measure(points), "training, s", "MB sent", "compression",
            "parameters"]
    rows = []
    for p in points:
        row = [p["name"], f"{p['length']}", seeds_text(p)]
        if p["seeds"]:
            row += [score_text(p), f"{p['seconds']:.1f}", f"{p['bytes'] / 1e6:,.1f}",
                    f"{p['compression']:.2f}", f"{p['stored']:,.0f}"]
            late = "not reached" if math.isinf(p["to_target"]) else f"{p['to_target']:.1f}"
        else:
            row, late = row + ["-"] * 5, "-"
        row += [late] if target else []
        rows.append(row + [", ".join(word for word, those in fronts.items() if p in those)])
    if target:
        head += [f"s to {target:g}" if any(p["is_text"] for p in points) else
                 f"s to {100 * target:g} %"]
    return markdown([*head, "front"], rows)


def equal_table(points, reference, unit):
    """What each method reaches in the time of the reference point, and with its bytes."""
    budgets = (("seconds", 1, "s"), ("bytes", 1e6, "MB"))
    head = ["run"]
    columns = []
    names = list(dict.fromkeys(p["name"] for p in points))
    for (cost, factor, word), how in zip(budgets, ("in its time", "with its bytes")):
        head += [f"{how}: {measure(points)}", unit, word]
        best = [within(points, name, cost, reference[cost]) for name in names]
        highest = max(p["score"] for p in best if p)
        columns.append([
            ["-"] * 3 if p is None else
            [f"**{score_text(p)}**" if p["score"] == highest else score_text(p),
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
        positive = [p for p in points if p[cost] > 0]
        best = front(positive, cost)
        for name, own in style.items():
            axes.plot([], [], label=name, **own)
            mine = [p for p in positive if p["name"] == name]
            joined = front(mine, cost)
            axes.plot([p[cost] / factor for p in joined],
                      [shown(p, p["score"]) for p in joined], color=own["color"])
            for p in mine:
                x, y = p[cost] / factor, shown(p, p["score"])
                values = [shown(p, score) for score in p["scores"]]
                ends = [[max(0, y - min(values))], [max(0, max(values) - y)]]
                axes.errorbar([x], [y], yerr=ends,
                              color=own["color"], capsize=2, linewidth=1,
                              marker=own["marker"],
                              markerfacecolor=own["color"] if p in best else "white")
        if target:
            is_text = any(p["is_text"] for p in points)
            axes.axhline(target if is_text else 100 * target, color="black", linestyle=":", linewidth=1)
        if positive:
            plots.log_scale(axes.xaxis)
        axes.set_xlabel(label)
    panels[0].set_ylabel("test " + measure(points))
    plots.legend_of_all(figure, panels)
    figure.savefig(path, dpi=110)
