"""The tables that bench/network.py prints, and the picture that it draws."""
import pathlib
import statistics
import sys

NOTEBOOKS = pathlib.Path(__file__).resolve().parent.parent / "notebooks"
TRAINED = ("done", "stopped")  # "stopped": at the target, or when the time was up
COLUMNS = [  # title, key, unit (the divisor), digits
    ("steps", "steps", 1, 0), ("ms per step", "ms_per_step", 1, 0),
    ("communicating", "communication_ms", 1, 0),
    ("metered, MB", "metered", 1e6, 1), ("links, MB", "link_mean", 1e6, 1),
    ("largest", "link_max", 1e6, 1), ("links / metered", "link_ratio", 1, 4),
    ("without headers", "payload_ratio", 1, 4),
    ("accuracy, %", "accuracy", 0.01, 2),
    ("s to target", "target_seconds", 1, 1),
    ("MB to target", "target_bytes", 1e6, 1)]


def table(rows):
    """A Markdown table with one row per run and rate: medians over the repeats."""
    titles = ["run", "hosts", "repeats", *(c[0] for c in COLUMNS)]
    lines = [titles, ["---", "---"] + ["---:"] * (len(titles) - 2)]
    groups = {}
    for row in rows:
        groups.setdefault(
            (row["name"], f"{row['hosts']} x {row['rate']}"), []).append(row)
    for (name, hosts), group in groups.items():
        good = [r for r in group if r["status"] in TRAINED]
        if any(r["status"] == "stopped" for r in good):
            name += " (stopped)"
        line = [name, hosts, f"{len(good)} of {len(group)}"]
        for _, key, unit, digits in COLUMNS:
            values = [r[key] / unit for r in good if r.get(key) is not None]
            # There is no median where some repeats missed the target.
            whole = values and len(values) == len(good)
            late = [r["gave_up"] for r in good if "gave_up" in r]
            line.append(f"{statistics.median(values):,.{digits}f}" if whole
                        else f"> {min(late):,.0f}"
                        if late and key == "target_seconds" else "-")
        lines.append(line)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plan_table(rows):
    """A Markdown table of the plan of each run beside its measurements."""
    lines = [["run", "hosts", "seed", "ms per step, planned", "measured", "ratio",
              "MB per worker, planned", "measured", "ratio"],
             ["---", "---"] + ["---:"] * 7]
    for row in rows:
        if "plan" not in row:
            continue
        line = [row["name"], f"{row['hosts']} x {row['rate']}", str(row["seed"])]
        for key, unit, digits in (("ms_per_step", 1, 1),
                                  ("bytes_per_worker", 1e6, 2)):
            value = row["plan"][key]
            line += [f"{value['planned'] / unit:,.{digits}f}",
                     f"{value['measured'] / unit:,.{digits}f}",
                     f"{value['ratio']:.3f}"]
        lines.append(line)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def load_plots():
    """The drawing helpers of the notebooks, for a script without a window; ends the script
    if what they need is missing."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        sys.path.insert(0, str(NOTEBOOKS))
        import plots
    except ImportError as error:
        sys.exit(f"network.py: --plot needs matplotlib and numpy: {error}")
    return plots


def draw(rows, path, target=None):
    """Accuracy against training seconds and against MB sent: of each run the mean over its
    seeds at each evaluation that all of them had, where the clock and the bytes stood on
    average."""
    plots = load_plots()
    runs = {}
    for row in rows:
        if row["status"] in TRAINED and row.get("bytes_curve"):
            runs.setdefault(row["name"], []).append(row)
    style = plots.styles(runs)
    figure, panels = plots.grid_of_axes(2, width=4.6, height=3.6, sharey=True)
    for axes, label in zip(panels, ("training, s", "sent per worker, MB")):
        axes.set_xlabel(label)
        if target:
            axes.axhline(100 * target, color="black", linestyle=":", linewidth=1)
    for name, seeds in runs.items():
        def mean(values):
            return [statistics.mean(at) for at in zip(*values)]
        accuracy = mean([100 * point[1] for point in row["curve"]] for row in seeds)
        seconds = mean([point[0] for point in row["curve"]] for row in seeds)
        sent = mean([count / 1e6 for count in row["bytes_curve"]] for row in seeds)
        panels[0].plot(seconds, accuracy, label=name, **style[name])
        panels[1].plot(sent, accuracy, **style[name])
    plots.log_scale(panels[1].xaxis)
    # What is reached early lies far below what is compared.
    highest = max((100 * point[1] for row in rows for point in row.get("curve") or []),
                  default=100)
    panels[0].set_ylim(highest - 15, highest + 0.5)
    panels[0].set_ylabel("test accuracy, %")
    plots.legend_of_all(figure, panels)
    figure.savefig(path, dpi=110)
