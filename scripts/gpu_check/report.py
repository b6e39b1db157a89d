"""Writes the results folder: report.md, results.json, machine.txt, output.log, runs.tar.gz.
They are written again after each part, so that nothing is lost when time runs out."""
import json
import os
import tarfile

from gates import GATES


def earlier_figures(folders, rehearse):
    """The parts of earlier calls, {name: entry}; of several folders the last one counts. The
    figures of a rehearsal count only in rehearsals."""
    parts = {}
    for folder in folders:
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            results = json.load(file)
        for name, entry in results["parts"].items():
            if entry["figures"] and results["rehearsed"] == rehearse:
                parts[name] = {**entry, "from": str(folder)}
    return parts


def verdicts(parts, rehearse):
    """Returns rows of gate, wanted, seen and verdict."""
    figures = {name: entry["figures"] for name, entry in parts.items() if entry["figures"]}
    return [(gate.name, gate.wanted, *gate.verdict(figures, rehearse)) for gate in GATES]


def table(header, rows):
    """Text columns that are also a Markdown table."""
    rows = [[str(cell).replace("|", "/") for cell in row] for row in [header, *rows]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
             for row in rows]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines) + "\n"


def gate_table(rows):
    return table(("gate", "wanted", "seen", "reached"), rows)


def part_table(parts):
    rows = []
    for name, entry in parts.items():
        remark = entry.get("remark", "") or ("from " + entry["from"] if "from" in entry else "")
        rows.append((name, entry["state"], f"{entry['seconds']:.0f}", remark))
    return table(("part", "state", "s", "remark"), rows)


def figure_lines(value, indent=0):
    """Nested figures as a Markdown list."""
    lines = []
    for key, item in value.items():
        if isinstance(item, dict):
            lines += ["  " * indent + f"- {key}", *figure_lines(item, indent + 1)]
        elif isinstance(item, str) and "\n" in item:
            lines += ["  " * indent + f"- {key}", "", "```", item.rstrip(), "```", ""]
        else:
            text = f"{item:.6g}" if isinstance(item, float) else str(item)
            lines.append("  " * indent + f"- {key}: {text}")
    return lines


def write(path, text):
    """Writes a file atomically: a reader never finds half of it."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def write_all(folder, kept, about, parts, rehearse):
    rows = verdicts(parts, rehearse)
    text = "# GPU check" + (" (rehearsed, on the CPU)" if rehearse else "") + "\n\n"
    text += table(("machine", ""), about.items())
    text += "\n## Gates\n\n" + gate_table(rows)
    text += "\n## Parts\n\n" + part_table(parts)
    for name, entry in parts.items():
        if entry.get("figures"):
            text += f"\n## {name}\n\n" + "\n".join(figure_lines(entry["figures"])) + "\n"
    write(folder / "report.md", text)
    write(folder / "machine.txt", "".join(f"{k}: {v}\n" for k, v in about.items()))
    write(folder / "results.json", json.dumps({
        "rehearsed": rehearse, "machine": about, "parts": parts,
        "gates": [dict(zip(("gate", "wanted", "seen", "reached"), row)) for row in rows],
    }, indent=1) + "\n")
    if kept.is_dir():
        with tarfile.open(folder / "runs.tar.gz.new", "w:gz") as archive:
            archive.add(kept, arcname="runs")
        os.replace(folder / "runs.tar.gz.new", folder / "runs.tar.gz")
    return rows
