"""The wheel, which scripts/wheel.sh builds first, in a fresh environment, as an ordinary
user without a compiler uses it.

    test_wheel.py [MPIEXEC]    # with the Python of LibTorch's environment

As root, all is done as the user `nobody`, who sees LibTorch through a bind mount.
Skipped where root may not mount.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
NOBODY = "65534"
# By full paths: a user's PATH, below, has none of these.
UNSHARE, MOUNT, SETPRIV, SH = (shutil.which(tool) for tool in ("unshare", "mount", "setpriv", "sh"))
AS_NOBODY = [UNSHARE, "--mount", SH, "-c",
             f'{MOUNT} --bind "$1" "$2" && shift 2 && '
             f'exec {SETPRIV} --reuid {NOBODY} --regid {NOBODY} --clear-groups "$@"', "sh"]
# All that a user's PATH holds beside the environment's own programs.
TOOLS = ("sh", "env", "cat", "uname")
SETTINGS = ("workers=2", "model.hidden=[24,20]", "data.batch_size=8", "data.subset=2000",
            "train.steps=40", "method.group_size=1", "method.warmup_steps=6",
            "method.sync_every=9", "method.full_rank_steps=2",
            "method.rank={rule: fixed, rank: 5}", "schedule.warmup_steps=4", "train.threads=1",
            "checkpoint.every=20", "device=cpu")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o755)
        for name in ("home", "tools", "torch"):
            (cls.folder / name).mkdir()
        for tool in TOOLS:
            (cls.folder / "tools" / tool).symlink_to(shutil.which(tool))
        if MPIEXEC:
            (cls.folder / "tools/mpirun").symlink_to(MPIEXEC)
        cls.site = next(path for path in sys.path if pathlib.Path(path, "torch/lib").is_dir())
        cls.as_user = []
        if os.geteuid() == 0:
            cls.as_user = [*AS_NOBODY, cls.site, str(cls.folder / "torch")]
            cls.site = str(cls.folder / "torch")
            os.chown(cls.folder / "home", int(NOBODY), int(NOBODY))
            if subprocess.run([*cls.as_user, "true"], capture_output=True).returncode:
                raise unittest.SkipTest("root may not mount here")
        cls.venv = cls.folder / "home/venv"
        cls.environment = {
            "HOME": str(cls.folder / "home"), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1",
            "PATH": f"{cls.venv}/bin:{cls.folder}/tools",
            # mpirun looks for ssh even where all processes are on this host.
            "OMPI_MCA_plm_rsh_agent": "sh"}
        wheel = shutil.copy(WHEEL, cls.folder)
        cls.call(os.path.realpath(sys.executable), "-m", "venv", cls.venv)
        # Stands in for `pip install torch`, a download of 5 GB. Below, pip itself checks
        # that this torch is the one that the wheel asks for.
        packages = next(cls.venv.glob("lib/python3*/site-packages"))
        (packages / "torch.pth").write_text(cls.site + "\n")
        cls.call("python", "-m", "pip", "install", "--no-index", "--disable-pip-version-check",
                 wheel)
        cls.settings = [word for setting in SETTINGS for word in ("--set", setting)]
        cls.call("abtrain", "--config", "fashion_mnist_mlp", "--name", "threads", *cls.settings)

    @classmethod
    def call(cls, *command, code=0):
        command = [str(word) for word in command]
        # Looked up in the user's PATH, not in this process's.
        program = shutil.which(command[0], path=cls.environment["PATH"]) or command[0]
        done = subprocess.run([*cls.as_user, program, *command[1:]], env=cls.environment,
                              cwd=cls.folder / "home", capture_output=True, text=True,
                              timeout=300)
        if done.returncode != code:
            raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}\n"
                                 f"{done.stderr}")
        return done

    def runs(self, *parts):
        return self.folder.joinpath("home/runs", *parts)

    def test_there_is_no_compiler(self):
        for tool in ("gcc", "cc", "g++", "nvcc", "cmake"):
            self.assertIsNone(shutil.which(tool, path=self.environment["PATH"]), tool)

    def test_runs_on_rhel_8(self):
        """glibc 2.28, and the libstdc++ of GCC 8."""
        package = next(self.venv.glob("lib/python3*/site-packages/abtrain"))
        for file in (package / "bin/abtrain", *package.glob("lib/abtrain/*.so")):
            for name, newest in ((b"GLIBC", (2, 28)), (b"GLIBCXX", (3, 4, 25))):
                needed = [tuple(map(int, version.split(b"."))) for version in
                          re.findall(rb"\0%s_([0-9.]+)(?=\0)" % name, file.read_bytes())]
                self.assertLessEqual(max(needed, default=newest), newest, (file, name))
        launcher = (package / "_program.py").read_text()
        self.assertIn("GLIBC = (2, 28)", launcher)

    def test_version_and_what_it_finds(self):
        version = WHEEL.name.split("-")[1].partition("+")[0]
        self.assertIn(version, self.call("abtrain", "--version").stdout)
        out = self.call("abtrain", "doctor").stdout
        self.assertIn("LibTorch", out)
        self.assertIn("site-packages/abtrain/share/abtrain/configs", out)

    def test_quickstart_and_use_it(self):
        """Each block of the tutorial "use it", in its order, on what the quickstart trains."""
        self.call("abtrain", "fashion_mnist_mlp_frugal")
        summary = json.loads(self.runs("fashion_mnist_mlp_frugal/summary.json").read_text())
        self.assertGreater(summary["accuracy"], 0.895)
        try:
            import onnxruntime  # noqa: F401
        except ImportError:
            self.skipTest("no onnxruntime: scripts/setup.sh --tests installs it")
        accuracy = json.loads(self.call(
            "abtrain", "evaluate", "runs/fashion_mnist_mlp_frugal", "--json").stdout)["accuracy"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        page = (SOURCE / "docs/tutorial/use_it.md").read_text().replace("8000", port)
        printed = {}
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
            if language == "sh":
                self.call(*block.split())
                continue
            name = re.match(r"# (\w+\.py)\n", block)[1]
            (self.folder / "home" / name).write_text(block)
            if name == "serve.py":
                self.serve(name, int(port))
            else:
                printed[name] = self.call("python", name).stdout.split("\n")
        self.assertEqual(list(printed), ["clothes.py", "check.py", "ask.py", "phone.py", "smaller.py"])
        self.assertIn("320010", printed["clothes.py"][0])
        self.assertEqual(printed["ask.py"][0], "Ankle boot")
        self.assertAlmostEqual(float(re.sub(r"[^0-9.]", "", printed["check.py"][0])), accuracy, 4)
        self.assertAlmostEqual(float(printed["phone.py"][-2]), accuracy, 4)
        self.assertAlmostEqual(float(printed["smaller.py"][-2]), accuracy, delta=0.005)

    def serve(self, name, port):
        server = subprocess.Popen(
            [*self.as_user, self.venv / "bin/python", name], env=self.environment,
            cwd=self.folder / "home", stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for _ in range(600):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            self.assertIsNone(server.poll(), name)
            time.sleep(0.1)
        self.fail(f"{name} does not listen")

    def test_processes_give_the_bits_of_threads(self):
        if not MPIEXEC:
            self.skipTest("no mpiexec of Open MPI")
        done = self.call("mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "abtrain",
                         "--config", "fashion_mnist_mlp", "--name", "mpi", *self.settings)
        self.assertIn("Open MPI: process 0 of 2", done.stderr)
        self.assertEqual(self.runs("threads/model.safetensors").read_bytes(),
                         self.runs("mpi/model.safetensors").read_bytes())

    def test_decompose_and_read_in_python(self):
        self.call("abtrain", "export", "runs/threads", "-o", "merged.safetensors", "--form",
                  "merged")
        self.call("abtrain", "decompose", "merged.safetensors", "-o", "small.safetensors",
                  "--rule", "fixed", "--rank", "5")
        code = ("import abtrain\n"
                "small = abtrain.load_weights('small.safetensors')\n"
                "merged = abtrain.load_weights('merged.safetensors')\n"
                "run = abtrain.load_run('runs/threads')\n"
                "print({k: v.shape for k, v in small.items()} == "
                "{k: v.shape for k, v in merged.items()}, run.summary['steps'], "
                "'evaluate' in set(run.metrics.event))")
        self.assertEqual(self.call("python", "-c", code).stdout, "True 40 True\n")

    def test_report(self):
        self.call("abtrain", "report", "runs/threads", "--format", "html", "-o", "report.html")
        page = (self.folder / "home/report.html").read_text()
        self.assertIn("threads", page)
        self.assertIn("Plotly", page)

    def test_completion(self):
        share = self.venv / "share"
        for file in ("bash-completion/completions/abtrain", "zsh/site-functions/_abtrain",
                     "fish/vendor_completions.d/abtrain.fish"):
            self.assertIn("'abtrain' complete", (share / file).read_text())


if __name__ == "__main__":
    MPIEXEC = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if not DATA.is_dir():
        skip(f"there is no {DATA}; scripts/setup.sh installs it")
    options = [] if shutil.which("nvcc") else ["--cpu"]
    subprocess.run([SOURCE / "scripts/wheel.sh", *options], check=True, stdout=sys.stderr)
    WHEEL = max((SOURCE / "dist").glob("abtrain-*.whl"), key=lambda path: path.stat().st_mtime)
    unittest.main()
