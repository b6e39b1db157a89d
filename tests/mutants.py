#!/usr/bin/env python3
"""Changes the sources in one place at a time, and counts how often a test fails.

    tests/mutants.py --count 200 --output mutants.jsonl
    tests/mutants.py --report mutants.jsonl

Each mutant changes an operator, a constant or a call in one line of the folders
below, rebuilds their tests, and runs them until one fails ("killed"). A mutant that
does not compile is replaced by another one. What no test notices "survived": either
a test is missing, or the change makes no difference. The score is the share that
was killed. Lines of OUTPUT count; a later call with the same OUTPUT and seed goes on
after them. The tree must have been built, and no changes may be uncommitted.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The tests that a folder's mutants are shown to, in this order.
TESTS = {"lib/compress": ["compress", "methods"],
         "lib/ops": ["ops", "kernels", "compress"],
         "kernels": ["kernels", "ops"],
         "lib/methods/ab": ["methods", "plan", "train"],
         "lib/linalg": ["linalg", "methods"]}
SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
SWAPS = [(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
         (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
         (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "),
         (r" \+= ", " -= "), (r" -= ", " += "), (r" << ", " >> "), (r" >> ", " << "),
         (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
         (r"\bmin\b(?=[<(])", "max"), (r"\bmax\b(?=[<(])", "min"),
         (r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "2"),
         (r"(?<![\w.])2(?![\w.])", "3"), (r"\bbreak;", ";"), (r"\bcontinue;", ";")]


def code_of(line):
    """The line with strings and comments blanked, so that columns stay the same."""
    def blank(match):
        return " " * len(match.group())
    return re.sub(r'"(?:\\.|[^"\\])*"|//.*', blank, line)


def mutants_of(path):
    """All (line number, line after the change) of a file."""
    found, check = [], 0
    for number, line in enumerate(path.read_text().splitlines()):
        code = code_of(line)
        # A failed check is a bug of its caller, which no test provokes.
        if re.search(r"\bABT_(ASSERT|CHECK)\(", code):
            check = code.count("(") - code.count(")")
            continue
        if check > 0:
            check += code.count("(") - code.count(")")
            continue
        if re.match(r"\s*(#|//|template\b|using\b|static_assert\b)", line):
            continue
        for pattern, new in SWAPS:
            for match in re.finditer(pattern, code):
                found.append((number, line[:match.start()] + new + line[match.end():]))
    return found


def choose(count, seed):
    """Mutants in random order, as many from each folder as it has lines of code."""
    every = []
    for folder in TESTS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and "nccl" not in path.parts:
                every += [(folder, path, *one) for one in mutants_of(path)]
    random.Random(seed).shuffle(every)
    return every[:20 * count]  # enough to replace those that do not compile


def run(command, limit):
    try:
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=limit).returncode
    except subprocess.TimeoutExpired:
        return "timeout"


def passes(name, build, limit):
    """Whether these tests pass, or None if they do not compile."""
    program = f"tests/{name}/test_{name}" if name == "kernels" else f"tests/test_{name}"
    if run(["ninja", "-C", str(build), f"test_{name}"], 1200) != 0:
        return None
    return run([str(build / program), "--gtest_fail_fast", "--gtest_brief=1"], limit) == 0


def limit_of(name, build):
    """Seconds after which the tests of a mutant hang. The unchanged ones must pass."""
    if not passes(name, build, 1200):
        sys.exit(f"mutants.py: test_{name} fails even without a change")
    start = time.monotonic()
    passes(name, build, 1200)
    return max(30, 10 * (time.monotonic() - start))


def judge(folder, build, limits):
    """"killed by NAME", "survived", or None for one that does not compile."""
    for name in TESTS[folder]:
        passed = passes(name, build, limits[name])
        if passed is None:
            return None
        if not passed:
            return f"killed by {name}"
    return "survived"


def report(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    counts = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        for key in (row["folder"], "all"):
            counts[key][0] += row["result"] != "survived"
            counts[key][1] += 1
    print("| folder | mutants | killed | score |\n| --- | ---: | ---: | ---: |")
    for key, (killed, total) in sorted(counts.items()):
        print(f"| {key} | {total} | {killed} | {100 * killed / total:.1f} % |")
    for row in rows:
        if row["result"] == "survived":
            print(f"\n{row['file']}:{row['line']}\n- {row['before']}\n+ {row['after']}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("mutants.jsonl"))
    parser.add_argument("--report", type=pathlib.Path, metavar="OUTPUT",
                        help="only print the scores and the survivors")
    arguments = parser.parse_args()
    if arguments.report:
        return report(arguments.report)
    if run(["git", "diff", "--quiet", "HEAD", "--", *TESTS], 60) != 0:
        sys.exit("mutants.py: expected no uncommitted changes in " + ", ".join(TESTS))
    done = (len(arguments.output.read_text().splitlines())
            if arguments.output.exists() else 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))  # the source is restored
    tried, limits = 0, {}
    for folder, path, number, after in choose(arguments.count, arguments.seed):
        if tried == arguments.count:
            break
        text = path.read_text()
        lines = text.split("\n")
        before, lines[number] = lines[number], after
        if tried < done:  # compiled in an earlier call
            row = json.loads(arguments.output.read_text().splitlines()[tried])
            if (row["file"], row["line"], row["after"]) == (
                    str(path.relative_to(ROOT)), number + 1, after.strip()):
                tried += 1
            continue
        for name in TESTS[folder]:
            if name not in limits:
                limits[name] = limit_of(name, arguments.build)
        start = time.monotonic()
        try:
            path.write_text("\n".join(lines))
            result = judge(folder, arguments.build, limits)
        finally:
            path.write_text(text)
        if result is None:
            continue
        tried += 1
        row = {"folder": folder, "file": str(path.relative_to(ROOT)), "line": number + 1,
               "before": before.strip(), "after": after.strip(), "result": result,
               "seconds": round(time.monotonic() - start)}
        with open(arguments.output, "a") as out:
            out.write(json.dumps(row) + "\n")
        print(f"{tried}/{arguments.count} {row['file']}:{row['line']}: {result}, "
              f"{row['seconds']} s", flush=True)
    if tried < min(done, arguments.count):
        sys.exit(f"mutants.py: {arguments.output} is of another seed or of other sources")
    return report(arguments.output)


if __name__ == "__main__":
    main()
