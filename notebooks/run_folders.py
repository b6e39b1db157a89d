"""Run folders of abtrain as pandas tables; what their keys mean: docs/report.md.

    folders = run_folders.read("compare")    # $ABTRAIN_RUNS, else runs/compare
    folders.runs            # a row for each run that has ended well
    folders.evaluations     # a row for each evaluation, and so on

A folder without a good end, or with damaged files, is left out and named with
its reason in `left_out`; so `read` fails only where no run is left. Bytes are
sent bytes, seconds are wall time. Scores are in the unit of `measure`: accuracies in
percent, or bits per byte for language models.
"""
import json
import os
import pathlib
import re
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
try:
    import abtrain
except ImportError:  # its wheel is not installed
    sys.path.append(str(REPOSITORY / "python"))
    import abtrain

FILES = ("config.yaml", "metrics.jsonl", "summary.json", "failure.json")
# Runs that differ in nothing else are repeats of one setting.
NOT_OF_A_SETTING = ("name", "seed", "output")
# The number of each rank rule: its key in method.rank, and what it is.
RANK_NUMBER = {"sigma": ("cut", "share of the largest singular value"),
               "energy": ("keep", "energy kept"), "fixed": ("rank", "rank"),
               "fraction": ("fraction", "share of the full rank"),
               "ratio": ("ratio", "compression of a layer"), "budget": ("ratio", "compression")}


class NoRuns(Exception):
    """No run to show: what was looked for, and where."""


class Unusable(Exception):
    """Why a folder is left out."""


@dataclass(frozen=True)
class Measure:
    """What runs are judged by, and how a score is written."""
    name: str        # as a label names it
    unit: str        # after a score
    difference: str  # after a difference of scores
    column: str      # in summary.json and metrics.jsonl
    factor: int      # from there to the unit
    sign: int        # 1 where higher is better, -1 where lower is
    better: str
    best: str
    step: float      # of a target's last digit
    margin: float    # from the best score to a target

    def shown(self, score):
        return f"{score:.2f}{self.unit}"

    def label(self):
        return f"{self.name},{self.unit}" if self.unit else self.name


ACCURACY = Measure("accuracy", " %", " points", "accuracy", 100, 1, "more accurate", "most accurate", 0.5, 2)
BITS = Measure("bits per byte", "", " bits per byte", "bits_per_byte", 1, -1, "better", "best", 0.05, 0.1)
R2 = Measure("R²", "", "", "r2", 1, 1, "better", "best", 0.005, 0.02)


@dataclass
class RunFolders:
    """`run` is the path of a run folder below the folder that was read; `setting` the
    name that its repeats with other seeds have in common."""
    folder: str                   # as it may be shown
    path: pathlib.Path
    measure: Measure
    runs: pd.DataFrame            # index run
    config: pd.DataFrame          # index run, a column for each key, as in method.rank.keep
    evaluations: pd.DataFrame     # run, setting, seed, step, train_seconds, bytes, score, loss
    decompositions: pd.DataFrame  # run, setting, seed, step, layer, m, n, rank, energy
    spectra: pd.DataFrame         # run, setting, seed, step, layer, index, value
    left_out: pd.DataFrame        # folder, reason

    def overview(self):
        """Says what was found and, of each folder that was not used, why."""
        count = lambda n, what: f"{n} {what}" + ("" if n == 1 else "s")
        print(f"{self.folder}: {count(len(self.runs), 'finished run')} of "
              f"{count(self.runs.setting.nunique(), 'setting')}")
        for row in self.left_out.itertuples():
            print(f"left out: {row.folder}: {row.reason}")

    def arrivals(self, target):
        """The first evaluation of each run that reaches a score; infinite without one."""
        columns = ["step", "train_seconds", "bytes"]
        reached = self.evaluations[self.measure.sign * (self.evaluations.score - target) >= 0]
        first = reached.sort_values("step").groupby("run")[columns].first()
        return first.reindex(self.runs.index).fillna(np.inf)

    def varying(self, runs=None):
        """Keys of the configuration whose values differ among the runs that have them, name, seed and
        output apart."""
        config = self.config if runs is None else self.config.loc[runs]
        return [key for key in config if key not in NOT_OF_A_SETTING
                and config[key].dropna().map(repr).nunique() > 1]


def read(default):
    """The runs below $ABTRAIN_RUNS, or else below runs/`default`; a relative path counts
    from the repository, wherever a notebook's kernel was started."""
    named = pathlib.Path(os.environ.get("ABTRAIN_RUNS") or f"runs/{default}")
    path = REPOSITORY / named
    # No path of somebody's machine ends up in a notebook's outputs.
    shown = named.name if named.is_absolute() else named.as_posix()
    if not path.is_dir():
        raise NoRuns(
            f"{shown}: no such folder; name one with run folders in ABTRAIN_RUNS, or make "
            "the runs of these notebooks with notebooks/make_runs.sh")
    records, left_out = [], []
    for folder in find(path):
        name = folder.relative_to(path).as_posix()
        name = shown if name == "." else name
        try:
            records.append(read_run(folder, name))
        except Unusable as reason:
            left_out.append({"folder": name, "reason": str(reason)})
    measure = records[0]["measure"] if records else None
    left_out += [{"folder": record["name"], "reason":
                  f"measured by its {record['measure'].name}, {records[0]['name']} by {measure.name}"}
                 for record in records if record["measure"] != measure]
    records = [record for record in records if record["measure"] == measure]
    if not records:
        raise NoRuns(
            "\n".join([f"{shown}: no finished run in it"] +
                      [f"{row['folder']}: {row['reason']}" for row in left_out]))
    return tables(shown, path, measure, records, pd.DataFrame(left_out, columns=["folder", "reason"]))


def find(path, levels=2):
    """Run folders at or below a folder, as far down as `abtrain report` looks."""
    if any((path / file).exists() for file in FILES):
        return [path]
    if levels == 0:
        return []
    inside = sorted(entry for entry in path.iterdir() if entry.is_dir())
    return [run for folder in inside for run in find(folder, levels - 1)]


def read_run(folder, name):
    """The files of a run that has ended well, as they are."""
    if (folder / "failure.json").exists():
        raise Unusable(failure_of(folder))
    if not (folder / "summary.json").exists():
        raise Unusable("not finished: no summary.json")
    try:
        run = abtrain.load_run(folder)
    except OSError as error:
        raise Unusable(f"{pathlib.Path(error.filename).name}: {error.strerror}") from None
    except ValueError as error:
        raise Unusable(str(error).removeprefix(f"{folder}/")) from None
    record = {"name": name, "config": flat(read_config(folder)), "summary": run.summary,
              "events": run.metrics.to_dict("records")}
    try:
        measure = (BITS if "bits_per_byte" in run.summary else
                   R2 if "r2" in run.summary else ACCURACY)
        record["measure"] = measure
        record["row"] = run_row(record["summary"], measure)
        record["evaluations"] = evaluation_rows(record["events"], measure)
        record["decompositions"], record["spectra"] = decomposition_rows(record["events"])
    except (KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"summary.json or metrics.jsonl lacks a key: {error}") from None
    return record


def failure_of(folder):
    try:
        failure = json.loads((folder / "failure.json").read_text())
        return (f"failed with exit code {failure.get('exit_code', '?')}: "
                f"{failure.get('message', 'no message')}")
    except (OSError, ValueError, AttributeError):
        return "failed, and failure.json is damaged"


def read_config(folder):
    try:
        config = yaml.safe_load((folder / "config.yaml").read_text())
    except yaml.YAMLError as error:
        raise Unusable(f"config.yaml: damaged: {getattr(error, 'problem', error)}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise Unusable(f"config.yaml: {reason}") from None
    if not isinstance(config, dict):
        raise Unusable("config.yaml: damaged: expected keys and values")
    return config


def flat(config, prefix=""):
    """{"method": {"name": "ab"}} as {"method.name": "ab"}."""
    keys = {}
    for key, value in config.items():
        if isinstance(value, dict):
            keys.update(flat(value, f"{prefix}{key}."))
        else:
            keys[f"{prefix}{key}"] = value
    return keys


def run_row(summary, measure):
    traffic, seconds = summary["traffic"], summary["seconds"]
    row = {key: summary[key] for key in
           ("method", "seed", "workers", "steps", "loss")}
    row |= {"score": measure.factor * summary[measure.column],
            "compression": summary["compression_ratio"],
            "stored": summary["parameters"]["stored"],
            "bytes": traffic["bytes_per_worker"],
            "vs_fp32": np.nan if traffic["vs_fp32"] is None else traffic["vs_fp32"]}
    row |= {f"{key}_bytes": traffic["by_purpose"].get(key, 0)
            for key in ("gradient", "sync", "factors", "orders")}
    row |= {f"{key}_seconds": seconds[key]
            for key in ("train", "compute", "communication", "svd", "data")}
    return row


def evaluation_rows(events, measure):
    return [{"step": e["step"], "train_seconds": e["train_seconds"],
             "bytes": e["bytes_per_worker"], "loss": e["loss"],
             "score": measure.factor * e[measure.column]}
            for e in events if e["event"] == "evaluate"]


def decomposition_rows(events):
    """Rows of layers, and rows of their singular values where these were logged."""
    layers, values = [], []
    for event in events:
        if event["event"] != "decompose":
            continue
        for layer in event["layers"]:
            place = {"step": event["step"], "layer": layer["name"]}
            layers.append(place | {key: layer[key] for key in ("m", "n", "rank", "energy")})
            sample = layer.get("singular_values", {"index": [], "value": []})
            values += [place | {"index": i, "value": v}
                       for i, v in zip(sample["index"], sample["value"], strict=True)]
    return layers, values


def tables(shown, path, measure, records, left_out):
    settings = name_settings(records)
    runs = pd.DataFrame([record["row"] for record in records],
                        index=pd.Index([record["name"] for record in records], name="run"))
    runs.insert(0, "setting", settings)

    def stacked(kind, columns):
        rows = [{"run": record["name"], "setting": setting, "seed": record["row"]["seed"], **row}
                for record, setting in zip(records, settings) for row in record[kind]]
        return pd.DataFrame(rows, columns=["run", "setting", "seed", *columns])

    return RunFolders(
        shown, path, measure, runs,
        pd.DataFrame([record["config"] for record in records], index=runs.index),
        stacked("evaluations", ["step", "train_seconds", "bytes", "score", "loss"]),
        stacked("decompositions", ["step", "layer", "m", "n", "rank", "energy"]),
        stacked("spectra", ["step", "layer", "index", "value"]), left_out)


def stem(name, seed):
    """The name of a run without its seed: "thc_3", "keep=0.7,seed=3-1f2e3d4c"."""
    name = re.sub(r"-[0-9a-f]{8,16}$", "", name.rsplit("/", 1)[-1])
    short = re.sub(rf"(,?seed=|[-_.,]s?){seed}$", "", name)
    return short or name


def name_settings(records):
    """A name a run: the same for runs whose configurations differ in nothing but the seed."""
    settings = {}
    for record in records:
        key = repr(sorted((k, v) for k, v in record["config"].items()
                          if k not in NOT_OF_A_SETTING))
        settings.setdefault(key, []).append(record)
    names, taken = {}, {}
    for members in settings.values():
        stems = [stem(record["name"], record["row"]["seed"]) for record in members]
        name = stems[0] if len(set(stems)) == 1 else f"{stems[0]}, ..."
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            name += f" ({taken[name]})"
        names |= {record["name"]: name for record in members}
    return [names[record["name"]] for record in records]


def mean_std(values, digits=2, factor=1):
    """"88.66 ± 0.09": mean and standard deviation of the sample (n - 1)."""
    values = np.asarray(values, dtype=float) * factor
    text = f"{values.mean():,.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {values.std(ddof=1):,.{digits}f}"


def energy_kept(index, value, rank):
    """Share of the squared singular values' sum in the first `rank` of them. Between the
    values that were logged, their logarithms are interpolated over that of the index."""
    every = np.arange(1, max(index) + 1)
    logs = np.interp(np.log(every), np.log(index), np.log(np.maximum(value, 1e-300)))
    squares = np.exp(2 * logs)
    return squares[:rank].sum() / squares.sum()
