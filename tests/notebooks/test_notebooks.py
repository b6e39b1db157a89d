"""The notebooks, executed on tiny runs of the real program; and as they are committed.

    test_notebooks.py PROGRAM    # with the Python of LibTorch's environment
"""
import concurrent.futures
import contextlib
import io
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import nbclient  # noqa: F401
    import nbformat
    import numpy as np
    import pandas  # noqa: F401
    import yaml  # noqa: F401
    from safetensors.numpy import load_file
    os.environ["MPLBACKEND"] = "agg"
    import matplotlib  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}; scripts/setup.sh --tests installs it")
    sys.exit(1 if os.environ.get("ABTRAIN_TESTS_COMPLETE") else 77)

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = ("compare_runs", "ranks_and_spectra", "group_size_and_rank")
# Decompositions after the steps 4, 11 and 16: nothing is trained after the last.
LAST_STEP = 16
TINY = ["workers=4", "model.hidden=[24, 17]", "data.batch_size=8", "data.subset=600",
        f"train.steps={LAST_STEP}",
        "method.warmup_steps=4", "method.sync_every=5", "method.full_rank_steps=2",
        "schedule.warmup_steps=2", "evaluate.every=6", "checkpoint.every=0",
        "train.log_every=5", "device=cpu"]
SEEDS = (1, 2)
POINTS = {f"group_size={size},keep={keep:g}": [
    f"method.group_size={size}", f"method.rank={{rule: energy, keep: {keep:g}}}"]
    for size in (1, 2) for keep in (0.5, 0.8)}
SETTINGS = POINTS | {"ddp": ["method.name=ddp"]}


def write_idx(path, array):
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.tobytes())


def make_images(folder):
    """Files of Fashion-MNIST: ten pictures, and noise on them."""
    random = np.random.default_rng(1)
    pictures = random.integers(0, 128, (10, 28, 28), np.uint8)
    for part, count in (("train", 60_000), ("t10k", 10_000)):
        labels = random.integers(0, 10, count, np.uint8)
        noise = random.integers(0, 128, (count, 28, 28), np.uint8)
        write_idx(folder / f"{part}-images-idx3-ubyte", pictures[labels] + noise)
        write_idx(folder / f"{part}-labels-idx1-ubyte", labels)


def train(program, data, output, name, values):
    command = [program, "--config", SOURCE / "configs/fashion_mnist_mlp.yaml", "--output", output,
               "--name", name]
    for value in [*TINY, *values, f"data.root={data}"]:
        command += ["--set", value]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{name}: exit code {done.returncode}\n{done.stderr}")


def make_runs(program, folder):
    """Ten runs that end well, and folders that must be left out: {name: part of the reason}."""
    data = folder / "images"
    data.mkdir()
    make_images(data)
    runs = folder / "runs"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda run: train(program, data, runs, *run), [
            (f"{name}_{seed}", [*values, f"seed={seed}"])
            for name, values in SETTINGS.items() for seed in SEEDS]))
    good = runs / "ddp_1"
    broken = {"cut_off": "summary.json: damaged", "failed": "exit code 70: loss is not finite",
              "unfinished": "not finished", "torn": "metrics.jsonl:2: damaged",
              "keyless": "lacks a key: 'traffic'", "yamlless": "config.yaml: "}
    for name in broken:
        shutil.copytree(good, runs / name)
    (runs / "cut_off/summary.json").write_text((good / "summary.json").read_text()[:200])
    (runs / "failed/failure.json").write_text('{"exit_code": 70, "message": "loss is not finite"}')
    (runs / "unfinished/summary.json").unlink()
    lines = (good / "metrics.jsonl").read_text().split("\n")
    (runs / "torn/metrics.jsonl").write_text("\n".join([lines[0], lines[1][:-9], *lines[2:]]))
    (runs / "keyless/summary.json").write_text('{"method": "ddp", "seed": 1, "workers": 4, '
                                               '"steps": 1, "accuracy": 1, "loss": 1}')
    (runs / "yamlless/config.yaml").write_text("name: [")
    (runs / "no_run").mkdir()
    return runs, broken


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def of_type(notebook, kind):
    return ["".join(output.data[kind]) for output in outputs(notebook)
            if kind in output.get("data", {})]


def printed(notebook):
    return "".join(output.text for output in outputs(notebook) if output.output_type == "stream")


class Executed(unittest.TestCase):
    """Each notebook as a whole, in a kernel, on the tiny runs."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.runs, cls.broken = make_runs(PROGRAM, cls.folder)
        shutil.copytree(SOURCE / "notebooks", cls.folder / "notebooks",
                        ignore=shutil.ignore_patterns("__pycache__"))
        # A kernel draws into the notebook, this process nowhere.
        environment = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"}
        environment["PYTHONPATH"] = str(SOURCE / "python")

        def execute(name, runs=cls.runs):
            return subprocess.run(
                [sys.executable, cls.folder / "notebooks/execute.py",
                 cls.folder / f"notebooks/{name}.ipynb"],
                env=environment | {"ABTRAIN_RUNS": str(runs)}, capture_output=True, text=True,
                timeout=240)

        shutil.copy(cls.folder / "notebooks/compare_runs.ipynb", cls.folder / "notebooks/failing.ipynb")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failing = pool.submit(execute, "failing", cls.runs / "cut_off")
            cls.done = dict(zip(NOTEBOOKS, pool.map(execute, NOTEBOOKS)))
        cls.failing = failing.result()
        cls.notebooks = {name: nbformat.read(cls.folder / f"notebooks/{name}.ipynb", as_version=4)
                         for name in NOTEBOOKS}

    def setUp(self):
        for name, done in self.done.items():
            self.assertEqual(done.returncode, 0, f"{name}\n{done.stderr}")
        sys.path.insert(0, str(SOURCE / "notebooks"))
        self.addCleanup(sys.path.remove, str(SOURCE / "notebooks"))

    def summary(self, run):
        return json.loads((self.runs / run / "summary.json").read_text())

    def test_nothing_fails_or_warns(self):
        for name, notebook in self.notebooks.items():
            for output in outputs(notebook):
                self.assertNotEqual(output.output_type, "error", name)
                self.assertNotEqual(output.get("name"), "stderr", f"{name}: {output}")
            self.assertNotIn(str(self.folder), nbformat.writes(notebook))

    def test_failing_cell_leaves_the_notebook(self):
        self.assertEqual(self.failing.returncode, 1)
        self.assertRegex(self.failing.stderr, r"^execute.py: failing.ipynb: cut_off: no finished run in "
                         r"it\ncut_off: summary.json: damaged: .*\n$")
        self.assertEqual((self.folder / "notebooks/failing.ipynb").read_bytes(),
                         (SOURCE / "notebooks/compare_runs.ipynb").read_bytes())

    def test_figures_tables_and_words(self):
        for name, figures, tables in (("compare_runs", 3, 1), ("ranks_and_spectra", 4, 2),
                                      ("group_size_and_rank", 2, 1)):
            notebook = self.notebooks[name]
            self.assertEqual(len(of_type(notebook, "image/png")), figures, name)
            self.assertEqual(len(of_type(notebook, "text/html")), tables, name)
            self.assertEqual(len(of_type(notebook, "text/markdown")), 1, name)

    def test_broken_folders_are_named(self):
        for name, notebook in self.notebooks.items():
            text = printed(notebook)
            self.assertIn("10 finished runs of 5 settings", text, name)
            for folder, reason in self.broken.items():
                self.assertRegex(text, rf"left out: {folder}: .*{re.escape(reason)}", name)

    def test_table_of_runs(self):
        table = of_type(self.notebooks["compare_runs"], "text/html")[0]
        for setting in SETTINGS:
            self.assertIn(setting, table)
            values = [100 * self.summary(f"{setting}_{seed}")["accuracy"] for seed in SEEDS]
            self.assertIn(f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}", table)
        words = of_type(self.notebooks["compare_runs"], "text/markdown")[0]
        best = max(SETTINGS, key=lambda s: sum(self.summary(f"{s}_{seed}")["accuracy"] for seed in SEEDS))
        self.assertIn(f"**{best}** is the most accurate", words)

    def test_grid(self):
        notebook = self.notebooks["group_size_and_rank"]
        self.assertIn("4 points", printed(notebook))
        table = of_type(notebook, "text/html")[0]
        for setting in POINTS:
            values = [self.summary(f"{setting}_{seed}")["compression_ratio"] for seed in SEEDS]
            self.assertIn(f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}", table)

    def test_model_agrees_with_the_log(self):
        """Nothing is trained after the last decomposition here: so these are equal."""
        words = of_type(self.notebooks["ranks_and_spectra"], "text/markdown")[0]
        self.assertIn("the factors in the file have the ranks", words)
        self.assertIn("8 of 8 files hold as many", words)
        self.assertIn("nothing is decomposed in: ddp", printed(self.notebooks["ranks_and_spectra"]))
        change = float(re.search(r"values differ by ([\d.e-]+) %", words).group(1))
        self.assertLess(change, 0.01)

    def test_reader(self):
        import run_folders
        folders = read_runs(run_folders, self.runs)
        self.assertEqual(set(folders.varying()), {
            "method.name", "method.group_size", "method.rank.keep"})
        self.assertEqual(set(folders.left_out.folder), set(self.broken))
        for run, row in folders.runs.iterrows():
            summary = self.summary(run)
            self.assertEqual(f"{row.setting}_{row.seed}", run)
            self.assertEqual(row.bytes, summary["traffic"]["bytes_per_worker"])
            last = folders.evaluations[folders.evaluations.run == run].iloc[-1]
            self.assertEqual((last.step, last.score), (summary["steps"], 100 * summary["accuracy"]))
        never = folders.arrivals(101)
        self.assertTrue(np.isinf(never.train_seconds).all() and len(never) == 10)
        self.assertTrue((folders.arrivals(0).step == 6).all())

    def test_energy_and_spectrum(self):
        """From singular values, and against a dense product and its SVD."""
        import run_folders
        self.assertAlmostEqual(run_folders.energy_kept([1, 2, 3], [3, 2, 1], 2), 13 / 14)
        self.assertAlmostEqual(run_folders.energy_kept([1], [5], 1), 1)
        folders = read_runs(run_folders, self.runs)
        compared = 0
        for (run, step, layer), rows in folders.spectra.groupby(["run", "step", "layer"]):
            cuts = folders.decompositions
            cut = cuts[(cuts.run == run) & (cuts.step == step) & (cuts.layer == layer)].iloc[0]
            kept = run_folders.energy_kept(rows["index"], rows.value, cut["rank"])
            self.assertAlmostEqual(kept, cut.energy, delta=2e-5)
            if step != LAST_STEP:
                continue
            compared += 1
            model = load_file(self.runs / run / "model.safetensors")
            product = model[f"{layer}.weight.A"].astype(float) @ model[f"{layer}.weight.B"].astype(float)
            values = np.linalg.svd(product, compute_uv=False)[:cut["rank"]]
            np.testing.assert_allclose(values, rows.value[:cut["rank"]], rtol=2e-5)
        self.assertEqual(compared, 2 * 8)

    def test_names_of_settings(self):
        import run_folders
        for name, seed, expected in (("thc_3", 3, "thc"), ("thc_13", 3, "thc_13"), ("3", 3, "3"),
                                     ("keep=0.7,seed=2-0123abcd", 2, "keep=0.7"),
                                     ("sweep/ab-1", 1, "ab"), ("seed=1", 1, "seed=1")):
            self.assertEqual(run_folders.stem(name, seed), expected)
        self.assertEqual(run_folders.mean_std([1]), "1.00")
        self.assertEqual(run_folders.mean_std([1, 3], 1), "2.0 ± 1.4")

    def cells(self, name, *runs):
        """What the code prints on some of the runs, without a kernel."""
        with tempfile.TemporaryDirectory() as folder:
            for run in runs:
                shutil.copytree(self.runs / run, pathlib.Path(folder, run))
            os.environ["ABTRAIN_RUNS"] = folder
            self.addCleanup(os.environ.pop, "ABTRAIN_RUNS", None)
            return self.cells_of(name)

    def cells_of(self, name):
        """The same on the runs of ABTRAIN_RUNS."""
        text, names = io.StringIO(), {}
        notebook = nbformat.read(SOURCE / f"notebooks/{name}.ipynb", as_version=4)
        with contextlib.redirect_stdout(text):
            import matplotlib.pyplot as plt
            for cell in notebook.cells:
                if cell.cell_type == "code":
                    exec(compile(cell.source, name, "exec"), names)
                    plt.close("all")
        return text.getvalue(), "\n".join(names["lines"])

    def test_one_run(self):
        run = "group_size=1,keep=0.8_1"
        for name in NOTEBOOKS:
            text, words = self.cells(name, run)
            self.assertIn("1 finished run of 1 setting\n", text)
            self.assertNotIn("nan", words)

    def test_language_models(self):
        """Fewer bits per byte are better; runs with accuracies are left out beside them."""
        folder = self.folder / "text"
        folder.mkdir()
        words = np.random.default_rng(1).choice(["one", "two", "three", "four"], 4000)
        (folder / "text.txt").write_text(" ".join(words))
        runs = {"0_ab": [], "ddp": ["method.name=ddp"], "untrained": ["method.name=ddp", "optimizer.lr=1e-9",
                                                                       "optimizer.other_lr=1e-9"]}
        for name, values in runs.items():
            command = [PROGRAM, "--config", SOURCE / "configs/gcide_gpt.yaml", "--output", folder / "runs",
                       "--name", name]
            for value in ["data.name=text", f"data.root={folder / 'text.txt'}", "data.context=16",
                          "data.test_share=0.2", "model.features=64", "model.layers=1",
                          "method.keep_dense=[default]", "train.steps=30",
                          "evaluate.every=10", *values]:
                command += ["--set", value]
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        shutil.copytree(self.runs / "ddp_1", folder / "runs/with_accuracy")
        os.environ["ABTRAIN_RUNS"] = str(folder / "runs")
        self.addCleanup(os.environ.pop, "ABTRAIN_RUNS", None)
        import run_folders
        folders = run_folders.read("compare")
        self.assertEqual(folders.left_out.reason.tolist(),
                         ["measured by its accuracy, 0_ab by bits per byte"])
        summary = json.loads((folder / "runs/ddp/summary.json").read_text())
        self.assertEqual(folders.runs.score["ddp"], summary["bits_per_byte"])
        self.assertGreater(folders.runs.score["untrained"], folders.runs.score["ddp"])
        seconds = folders.arrivals(folders.runs.score["ddp"]).train_seconds
        self.assertTrue(np.isfinite(seconds["ddp"]) and np.isinf(seconds["untrained"]))
        text, words = self.cells_of("compare_runs")
        best = folders.runs.score.idxmin()
        self.assertIn(f"**{best}** is the best, with {folders.runs.score[best]:.2f}.", words)
        self.assertRegex(words, "The target is missed by .*untrained")
        text, words = self.cells_of("group_size_and_rank")
        self.assertIn("1 point of workers in a group", text)
        self.assertIn(f"Best: groups of 1 with compression 3, {folders.runs.score['0_ab']:.2f},", words)

    def test_runs_that_do_not_fit(self):
        for name in NOTEBOOKS:
            with self.assertRaisesRegex(Exception, "no finished run.*\n.*cut_off: summary.json"):
                self.cells(name, "cut_off")
            if name != "compare_runs":
                with self.assertRaisesRegex(Exception, "no run of method ab"):
                    self.cells(name, "ddp_1", "ddp_2")
        os.environ["ABTRAIN_RUNS"] = "nowhere"
        import run_folders
        with self.assertRaisesRegex(run_folders.NoRuns, "nowhere: no such folder.*make_runs.sh"):
            run_folders.read("compare")


def read_runs(run_folders, runs):
    os.environ["ABTRAIN_RUNS"] = str(runs)
    try:
        return run_folders.read("compare")
    finally:
        del os.environ["ABTRAIN_RUNS"]


class Committed(unittest.TestCase):
    """The notebooks of the repository, with the outputs of real runs."""

    def test_whole_and_clean(self):
        found = sorted(path.stem for path in (SOURCE / "notebooks").glob("*.ipynb"))
        self.assertEqual(found, sorted(NOTEBOOKS))
        for name in NOTEBOOKS:
            path = SOURCE / f"notebooks/{name}.ipynb"
            self.assertLess(path.stat().st_size, 1_500_000)
            notebook = nbformat.read(path, as_version=4)
            nbformat.validate(notebook)
            counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
            self.assertEqual(counts, list(range(1, len(counts) + 1)), name)
            self.assertGreater(len(of_type(notebook, "image/png")), 1, name)
            self.assertNotIn("left out", printed(notebook))
            for output in outputs(notebook):
                self.assertNotEqual(output.output_type, "error", name)
                self.assertNotEqual(output.get("name"), "stderr", name)
                # A figure's base64 may hold any letters.
                shown = {kind: value for kind, value in output.get("data", {}).items()
                         if kind != "image/png"}
                self.assertNotRegex(str(shown) + output.get("text", ""),
                                    r"/(root|home|tmp|work|usr|Users|var)/", name)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
