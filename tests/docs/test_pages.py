"""Links, commands and configurations in the pages of the documentation.

    test_pages.py ABTRAIN

Each command of abtrain is given to the program, without what would take long: training
becomes a dry run, a sweep a list of its points. Of other programs, the files and options
of the repository are looked up.
"""
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import pages
from pages import ROOT

PROGRAM = None
# What else the pages call, beside abtrain and the scripts of the repository.
OTHERS = {"cmake", "ctest", "cd", "cp", "export", "echo", "git", "mkdir", "openssl", "python3",
          "module", "sbatch", "scancel", "source", "squeue", "tail", "tar", "tensorboard", "umask", "jupyter",
          "rsync", "scp", "ssh"}
# Placeholders of the pages, and what stands for them here.
MEANT = {"CONFIG": "fashion_mnist_mlp", "SWEEP": "fashion_mnist_groups"}
SECTIONS = "data|model|method|optimizer|schedule|reducer|order|train|checkpoint|evaluate"


def run(words, folder):
    return subprocess.run([str(w) for w in words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=120,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})


def quick(program):
    """A client that stands for the program, where $FORK_CLIENT names one: what it runs does not
    load LibTorch again (tests/cli/fork_server.cpp)."""
    if "FORK_CLIENT" not in os.environ:
        return program
    name = f"abtrain-docs-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind("\0" + name)
        listening.listen(64)
        os.environ["ABTRAIN_SERVER"] = name
        subprocess.Popen(
            [program], pass_fds=[listening.fileno()],
            env={**os.environ, "OMP_NUM_THREADS": "1", "LD_PRELOAD": os.environ["FORK_SERVER"],
                 "ABTRAIN_SERVE": str(listening.fileno())})
    return os.environ["FORK_CLIENT"]


def write_weights(path):
    """A small safetensors file with the names that the pages mention."""
    sides = {"conv1.weight": 4, "fc.weight": 4, "wte.weight": 4, "wpe.weight": 4,
             "h.0.attn.c_attn.weight": 64, "blocks.0.weight": 64}
    header, end = {}, 0
    for name, side in sides.items():
        header[name] = {"dtype": "F32", "shape": [side, side],
                        "data_offsets": [end, end := end + 4 * side * side]}
    header = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack(
        f"<{end // 4}f", *((i * i) % 97 / 97 for i in range(end // 4))))


class Links(unittest.TestCase):
    def test_they_lead_to_files_and_headings(self):
        found = 0
        for page in pages.PAGES:
            for path, anchor in pages.links(page):
                found += 1
                with self.subTest(f"{page.relative_to(ROOT)}: {path}#{anchor}"):
                    target = page.parent / path if path else page
                    self.assertTrue(target.is_file(), "expected a file")
                    if anchor:
                        self.assertIn(anchor, pages.anchors(target))
        self.assertGreater(found, 100)

    def test_files_in_code_are_there(self):
        folders = "apps|bench|cmake|configs|docs|kernels|lib|notebooks|scripts|slurm|tests"
        found = 0
        for page in pages.PAGES:
            for path in re.findall(rf"`((?:{folders})/[\w./*-]*)[^`]*`", pages.prose(page)):
                found += 1
                pattern = re.sub(r"[A-Z]{4,}|\.\.\.", "*", path).rstrip("/.")
                places = [ROOT, ROOT / "lib", ROOT / "tests"]
                with self.subTest(f"{page.relative_to(ROOT)}: {path}"):
                    self.assertTrue(any(any(place.glob(pattern)) for place in places))
            for name in re.findall(r"`(bench_\w+)", pages.prose(page)):
                self.assertTrue((ROOT / "bench" / f"{name}.cpp").exists(), f"{page}: {name}")
        self.assertGreater(found, 100)

    def test_keys_in_code_exist(self):
        keys = set(re.findall(r"^\| `([\w.]+)` \|", (ROOT / "docs/config.md").read_text(), re.M))
        reducer = {key.split(".")[1] for key in keys if key.startswith("reducer.")}
        keys |= {f"{place}.{key}" for key in reducer
                 for place in ("method.outer.wire", "method.full_phase.reducer")}
        sections = {key.rsplit(".", i)[0] for key in keys for i in range(1, key.count(".") + 1)}
        for page in pages.PAGES:
            if page.name in ("architecture.md", "CONTRIBUTING.md"):
                continue  # they name files, too
            for key in re.findall(rf"`((?:{SECTIONS})\.[a-z_0-9.]+)(?=[`:= ])", pages.prose(page)):
                if key.endswith((".safetensors", ".sbatch", ".json", ".yaml", ".bin")):
                    continue
                if page.name in ("report.md", "adagrad.md") and re.match(r"reducer\.(\w+_seconds|vnmse)", key):
                    continue  # of summary.json
                with self.subTest(f"{page.relative_to(ROOT)}: {key}"):
                    self.assertIn(key, keys | sections)


class Readme(unittest.TestCase):
    def test_it_says_how_to_train_and_how_to_test_and_how_long_that_takes(self):
        section = re.search(r"^## Try it\n(.*?)^## ", (ROOT / "README.md").read_text(),
                            re.MULTILINE | re.DOTALL)[1]
        blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        for script in ("scripts/quickstart.sh", "scripts/test.sh"):
            with self.subTest(script):
                self.assertTrue(any(script in block.splitlines() for block in blocks))
                self.assertRegex(section, rf"`{script}`[^`]*?\d+ minutes")


def write_export(path):
    """A network of two linear maps for 28 x 28 pixels, as torch.export.save() writes it."""
    def name(text):
        return {"as_tensor": {"name": text}}

    def node(target, result, **inputs):
        return {"target": f"torch.ops.aten.{target}", "outputs": [name(result)], "metadata": {},
                "inputs": [{"name": key, "arg": value} for key, value in inputs.items()]}

    def linear(given, layer, result):
        return node("linear.default", result, input=name(given), weight=name(f"{layer}_weight"),
                    bias=name(f"{layer}_bias"))

    def meta(*sizes):
        batch = {"as_expr": {"expr_str": "s0"}}
        return {"dtype": 7, "sizes": [batch] + [{"as_int": size} for size in sizes]}

    sizes = {"hidden.weight": [64, 784], "hidden.bias": [64], "head.weight": [10, 64],
             "head.bias": [10]}
    specs = [{"parameter": {"arg": {"name": key.replace(".", "_")}, "parameter_name": key}}
             for key in sizes]
    program = {"graph_module": {
        "graph": {
            "nodes": [node("flatten.using_ints", "flat", self=name("x"), start_dim={"as_int": 1}),
                      linear("flat", "hidden", "a"), node("relu.default", "b", self=name("a")),
                      linear("b", "head", "out")],
            "tensor_values": {"x": meta(1, 28, 28), "out": meta(10)}},
        "signature": {"input_specs": [*specs, {"user_input": {"arg": name("x")}}],
                      "output_specs": [{"user_output": {"arg": name("out")}}]}}}
    config = {}
    with zipfile.ZipFile(path, "w") as file:
        for key, shape in sizes.items():
            strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
            config[key] = {"path_name": key, "use_pickle": False, "tensor_meta": {
                "dtype": 7, "sizes": [{"as_int": n} for n in shape],
                "strides": [{"as_int": n} for n in strides], "storage_offset": {"as_int": 0}}}
            file.writestr(f"net/data/weights/{key}", bytes(4 * math.prod(shape)))
        file.writestr("net/data/weights/model_weights_config.json", json.dumps({"config": config}))
        file.writestr("net/data/constants/model_constants_config.json", '{"config": {}}')
        file.writestr("net/models/model.json", json.dumps(program))
        file.writestr("net/byteorder", "little")
        file.writestr("net/.data/version", "3\n")


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="abtrain-docs-")
        cls.addClassCleanup(place.cleanup)
        cls.place = pathlib.Path(place.name)
        (cls.place / "letters.txt").write_text("Dear reader, " * 4000)
        short = ["train.steps=4", "evaluate.every=0", "checkpoint.every=0",
                 "method.warmup_steps=1", "schedule.warmup_steps=0", "method.sync_every=1",
                 "method.full_rank_steps=0"]
        cls.runs = {}
        for kind, config, sets in (
                ("images", "fashion_mnist_mlp_frugal",
                 ["data.subset=256", "model.hidden=[16,16,16]"]),
                ("text", "gcide_gpt",
                 ["data.name=text", "data.root=letters.txt", "data.test_share=0.1",
                  "model.features=32", "model.layers=1", "method.keep_dense=[default]",
                  "method.rank={rule: fixed, rank: 4}", "method.anneal_steps=0"]),
                ("adapters", "fashion_mnist_mlp_frugal",
                 ["data.subset=256", "model.hidden=[16,16,16]", "method.remainder=freeze",
                  "method.warmup_steps=0", "method.anneal_steps=0", "method.keep_variance=false",
                  "method.rank={rule: fixed, rank: 4}", "model.frozen=['*']"])):
            done = run([PROGRAM, "--config", config, "--name", kind, "--output", "made",
                        *(w for s in short + sets for w in ("--set", s))], cls.place)
            if done.returncode:
                raise AssertionError(f"{config}: exit code {done.returncode}\n{done.stderr}")
            cls.runs[kind] = cls.place / "made" / kind

    def prepare(self, folder, words):
        """Makes the runs and weights that a command reads."""
        for before, word in zip(["", *words], words):
            if re.fullmatch(r"runs/\S+", word) and not (folder / word).exists():
                kind = ("text" if re.search("gpt|letters", word)
                        else "adapters" if "tuned" in word else "images")
                shutil.copytree(self.runs[kind], folder / word)
            elif word == "runs" and not (folder / "runs/made").exists():
                shutil.copytree(self.runs["images"], folder / "runs/made")
            elif "safetensors" in word and before != "-o":
                write_weights(folder / word.rpartition("=")[2])
            elif words[0] == "predict" and before != "-o" and (
                    word == "photos" or word.endswith(".jpg")):
                image = folder / word / "one.jpg" if word == "photos" else folder / word
                image.parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / "tests/fuzz/corpus/jpeg/baseline", image)

    def changed(self, words):
        """The command without what takes long."""
        words = [MEANT.get(word, word) for word in words
                 if not re.search(r"^\[|\.\.\.\]?$", word)]
        verb = words[0] if not words[0].startswith("-") else "train"
        options = {"--resume": 2, "--overwrite": 1} if verb == "train" else {}
        if verb == "sweep" and "--emit-slurm" not in words:
            options = {"--jobs": 2}
            words += ["--list"] * ("--list" not in words)
        for option, count in options.items():
            if option in words:
                at = words.index(option)
                del words[at:at + count]
        if verb == "train":
            words.append("--dry-run")
        if verb == "rivals":  # by steps, since only seconds are measured
            words = [w for w in words if w != "--run"]
            if "--seconds" in words:
                at = words.index("--seconds")
                words[at:at + 2] = ["--steps", "1000"]
            if "--small" in words:  # a file of the right size, which the reader has made
                at = words.index("--small")
                del words[at:at + 2]
        measures = {"--nodes", "--bandwidth"} & set(words)
        if verb == "plan" and measures and not {"--compute", "--methods"} & set(words):
            words += ["--compute", "10ms,5ms,1s"]
        return words

    def check_abtrain(self, folder, line, words):
        words = self.changed(words)
        self.prepare(folder, words)
        done = run([PROGRAM, *words], folder)
        if done.returncode == 66 and re.search(
                r"data.root|data/fineweb|model.file: gpt2\.pt2", done.stderr):
            return None  # a data set that this machine does not have, or a model of the reader's
        return None if done.returncode == 0 else (
            f"{line}\n  abtrain {' '.join(words)}\n  exit code {done.returncode}\n{done.stderr}")

    def check_script(self, line, words):
        script = ROOT / words[0]
        if not (script.is_file() and (os.access(script, os.X_OK) or script.suffix == ".py")):
            return f"{line}\n  no program {words[0]}"
        text = "".join(p.read_text() for p in script.parent.rglob("*.[ps][yh]"))
        unknown = [w for w in words[1:]
                   if w.startswith("-") and w != "--" and w.partition("=")[0] not in text]
        if "--" in words or script.name in ("quickstart.sh", "test.sh"):
            unknown = []  # they pass options on
        return f"{line}\n  {words[0]} does not know {unknown}" if unknown else None

    def job(self, folder, line, words):
        """What is wrong with a command, or None."""
        while "=" in words[0] or words[0] in ("sudo", "$"):
            words = words[1:]
            if not words:
                return None
        if words[0].endswith("/bin/python") and words[1].endswith(".py"):
            words = words[1:]
        for at, word in enumerate(words):
            if word in ("abtrain", "~/abtrain-venv/bin/abtrain") \
                    and words[0] not in ("git", "cmake", "cd", "sbatch") \
                    and not words[0].startswith("scripts/"):
                rest = [w for w in words[at + 1:] if w != "..."]
                return self.check_abtrain(folder, line, rest) if rest else None
        batch = [at for at, word in enumerate(words) if word.endswith(".sbatch")]
        if words[0] == "sbatch" and batch:
            script = words[batch[0]].removeprefix("$ABTRAIN_ROOT/")
            if not (ROOT / script).is_file():
                return f"{line}\n  no file {script}"
            return self.check_abtrain(folder, line, ["--config", *words[batch[0] + 1:]])
        if words[0] == "python3" and words[1].endswith(".py"):
            words = words[1:]
            if "/" not in words[0]:  # a program that a page shows
                shown = any(f"\n# {words[0]}\n" in page.read_text()
                            for page in ROOT.glob("docs/**/*.md"))
                return None if shown else f"{line}\n  no page shows {words[0]}"
        if re.match(r"(FOLDER/)?(bench|notebooks|scripts|tests)/", words[0]):
            return self.check_script(line, [words[0].removeprefix("FOLDER/"), *words[1:]])
        if words[0] in OTHERS or re.search(r"/bin/(pip|python)$", words[0]):
            return None
        return f"{line}\n  {words[0]}: a command that this test does not know"

    def test_they_are_right(self):
        jobs, seen = [], set()
        for page in pages.PAGES:
            name = str(page.relative_to(ROOT))
            folder = self.place / name.replace("/", "_")
            (folder / "flowers").mkdir(parents=True)
            shutil.copy(self.place / "letters.txt", folder)
            for file in ("net.pt2", "mixer.pt2"):
                write_export(folder / file)
            for block in pages.blocks(page, "yaml"):
                file = re.match(r"# (\w+\.yaml)\n", block)
                if file:
                    (folder / file[1]).write_text(block)
            # Commands that an earlier page has explained.
            if not (folder / "my.yaml").exists():
                (folder / "my.yaml").write_text("extends: fashion_mnist_mlp.yaml\nname: my\n")
            mine = []
            for line, words in pages.commands(page):
                here = name if ".yaml" in line or "runs/" in line else ""
                if (here, *words) not in seen:  # each once
                    seen.add((here, *words))
                    mine.append((line, words))
            jobs.append((name, folder, mine))

        def check(job):
            name, folder, mine = job
            return [f"{name}: {wrong}" for line, words in mine
                    if (wrong := self.job(folder, line, words))]

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = [one for many in pool.map(check, jobs) for one in many]
        self.assertEqual(wrong, [], "\n\n".join(["", *wrong]))
        self.assertGreater(len(seen), 80)


class Scripts(unittest.TestCase):
    """The scripts of the benchmarks answer --help."""

    def test_they_answer_help(self):
        named = set(re.findall(r"`(bench/\w+\.py)", (ROOT / "docs/benchmarks.md").read_text()))
        self.assertGreater(len(named), 5)
        for script in sorted(named):
            # Those that need PyTorch have another Python.
            if re.search(r"^(import|from) torch", (ROOT / script).read_text(), re.MULTILINE):
                continue
            with self.subTest(script):
                done = run([sys.executable, "-B", ROOT / script, "--help"], ROOT)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("usage:", done.stdout)


if __name__ == "__main__":
    PROGRAM = quick(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
