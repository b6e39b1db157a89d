"""Starts or continues a training run as a part, and reads its results."""
import json
import shutil

from runner import PartFailed

KEPT = ("summary.json", "metrics.jsonl", "config.yaml")


def train(context, name, config, toy, sets=(), limit=None, launcher=()):
    """Returns the figures of the run `name`. A run that is stopped when its time is up saves:
    if its folder is kept, the next call continues from there, and the seconds add up."""
    runner, folder = context.runner, context.work / name
    folder.mkdir(parents=True, exist_ok=True)
    values = [f"device={context.device}", *sets, *(toy if context.rehearse else [])]
    for entry in context.sets:  # KEY=VALUE, or PART:KEY=VALUE
        part, colon, rest = entry.partition(":")
        if colon and "=" not in part:
            values += [rest] if part == name else []
        else:
            values.append(entry)
    command = [*launcher, context.build.abtrain, "--config", config, "--name", name,
               "--output", context.work, "--resume", "auto"]
    for value in values:
        command += ["--set", value]
    before = float(read(folder / "wall_seconds") or 0)
    # A checkpoint of a large model takes seconds: leave time for it in the budget.
    grace = 5 if context.rehearse else 15
    result = runner.run(command, limit=min(limit or runner.left(), runner.left() - grace),
                        grace=grace, show=True)
    seconds = before + result.seconds
    (folder / "wall_seconds").write_text(f"{seconds:.1f}\n")
    keep(context, name, folder)
    metrics = [json.loads(row) for row in (read(folder / "metrics.jsonl") or "").splitlines()
               if row.endswith("}")]
    if result.code == 0 and not result.timed_out:
        summary = json.loads(read(folder / "summary.json") or "{}")
        if "accuracy" not in summary:
            raise PartFailed(f"{name} ended well, but has no summary.json")
        return figures_of(summary, seconds)
    last = max((row.get("step", 0) for row in metrics), default=0)
    if not result.timed_out:
        raise PartFailed(f"{name}: {result.ending()} after step {last}")
    raise PartFailed(f"{name} was not done in {seconds:.0f} s: stopped after step {last}; "
                     "another call on this machine with the same --work continues from there")


def figures_of(summary, seconds):
    steps = summary["steps"]
    return {
        "accuracy": summary["accuracy"],
        "loss": summary["loss"],
        "steps": steps,
        "workers": summary["workers"],
        "compression": summary["compression_ratio"],
        "traffic": summary["traffic"]["vs_fp32"],
        "bytes_per_worker": summary["traffic"]["bytes_per_worker"],
        "wall_s": round(seconds, 1),
        "seconds": summary["seconds"],
        "ms_a_step": round(1e3 * summary["seconds"]["train"] / steps, 3) if steps else None,
    }


def keep(context, name, folder):
    """Copies the run's small files to the results; models and checkpoints stay in place."""
    kept = context.work / "kept" / name
    kept.mkdir(parents=True, exist_ok=True)
    for file in KEPT:
        if (folder / file).is_file():
            shutil.copyfile(folder / file, kept / file)


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None
