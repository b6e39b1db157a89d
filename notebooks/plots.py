"""What the figures of the notebooks have in common: colors, markers, heat maps."""
import matplotlib.pyplot as plt
import numpy as np

# Okabe and Ito's colors without the yellow one: told apart by color-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
           "#7F7F7F")
MARKERS = "osD^vPX*<"

plt.rcParams.update({
    "figure.dpi": 100, "figure.constrained_layout.use": True, "font.size": 10,
    "axes.grid": True, "grid.color": "#dddddd", "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "lines.linewidth": 1.6, "lines.markersize": 5})


def styles(names):
    """A color and a marker for each name, no pair twice in the first 72."""
    return {name: {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}
            for i, name in enumerate(names)}


def legend_beside(axes, **options):
    """To the right of the axes, so that it covers no line."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), **options)


def legend_of_all(figure, axes):
    """To the right of the figure: each name once, from whichever axes it is in."""
    handles = {}
    for ax in axes:
        handles |= {name: handle for handle, name in zip(*ax.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside right center",
                  ncols=-(-len(handles) // 12))


def log_scale(axis):
    """Logarithmic with plain numbers, also between powers of ten where there are few."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")

    def label(value, _):
        low, high = sorted(axis.get_view_interval())
        digit = round(value / 10 ** np.floor(np.log10(value)))
        few = high < 5 * low
        return f"{value:g}" if few or digit == 1 or (digit in (2, 5) and high < 500 * low) else ""

    axis.set_major_formatter(label)
    axis.set_minor_formatter(label)
    # As far from the axis as those of the longer ticks.
    axis.set_tick_params(which="minor", pad=5)


def grid_of_axes(count, columns=3, width=3.7, height=3.1, **options):
    """A figure with `count` axes in rows; places that are left over stay empty."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows),
                                squeeze=False, **options)
    for empty in axes.flat[count:]:
        empty.set_visible(False)
    return figure, list(axes.flat[:count])


def heat_map(axes, means, texts, title, colors="cividis"):
    """`means`: a table of numbers, NaN where there is no run; `texts`: what its cells say."""
    values = means.to_numpy(dtype=float)
    image = axes.imshow(values, cmap=colors, aspect="auto")
    axes.grid(False)
    axes.set_xticks(range(values.shape[1]), means.columns)
    axes.set_yticks(range(values.shape[0]), means.index)
    axes.set_xlabel(means.columns.name)
    axes.set_ylabel(means.index.name)
    axes.set_title(title)
    for place in np.ndindex(values.shape):
        missing = np.isnan(values[place])
        light = not missing and image.cmap(image.norm(values[place]))[1] > 0.5
        axes.text(place[1], place[0], "no run" if missing else texts.iloc[place],
                  ha="center", va="center", color="black" if light or missing else "white")
