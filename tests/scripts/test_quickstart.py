"""scripts/quickstart.sh with a setup, a CMake and a program that only print."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """#!/bin/bash
echo "program: $*"
trap 'echo stopped; kill $!; exit 75' TERM
if [[ " $* " == *' wait '* ]]; then sleep 60 & touch waits; wait; fi
exit ${EXIT_CODE:-0}
"""


class Quickstart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "scripts").mkdir()
        (self.root / "build/release").mkdir(parents=True)
        (self.root / "build/release/build.ninja").touch()
        for name in ("quickstart", "common", "pass_signals"):
            shutil.copy(SOURCE / f"scripts/{name}.sh", self.root / "scripts")
        self.write("scripts/setup.sh", "#!/bin/sh\n")
        self.write("tools/cmake", f"#!/bin/sh\necho \"$*\" >>{self.root}/cmake.log\n")
        self.write("build/release/abtrain", PROGRAM)
        self.path = f"{self.root}/tools:{os.environ['PATH']}"

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def start(self, *arguments, **variables):
        environment = {**os.environ, "PATH": self.path, "HOME": f"{self.root}/home", **variables}
        return subprocess.Popen([self.root / "scripts/quickstart.sh", *arguments], text=True,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def lines(self, *arguments, code=0, **variables):
        process = self.start(*arguments, **variables)
        text = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, code, text)
        return text.splitlines()

    def test_ends_with_the_line_for_path(self):
        lines = self.lines("--set", "workers=2")
        self.assertIn("program: --config configs/fashion_mnist_mlp_frugal.yaml --resume auto "
                      "--set workers=2", lines)
        self.assertTrue(lines[-1].endswith(f'export PATH="{self.root}/build/release:$PATH"'), lines)

    def test_starts_nothing_after_a_signal(self):
        done = subprocess.run(
            ["bash", "-c", f"source {SOURCE}/scripts/pass_signals.sh; kill -USR1 $$; "
             "run_passing_signals echo started; echo $code"], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("75\n", ""))

    def test_says_nothing_where_it_is_on_path_already(self):
        self.path = f"{self.root}/build/release:{self.path}"
        self.assertTrue(self.lines()[-1].startswith("program: "))

    def test_installs_when_asked(self):
        lines = self.lines("--install", "--overwrite")
        self.assertEqual((self.root / "cmake.log").read_text().splitlines()[-1],
                         f"--install build/release --prefix {self.root}/home/.local")
        self.assertIn("program: --config configs/fashion_mnist_mlp_frugal.yaml --overwrite", lines)
        self.assertTrue(lines[-1].endswith(f'export PATH="{self.root}/home/.local/bin:$PATH"'), lines)

    def test_a_failed_run_is_the_last_word(self):
        self.assertTrue(self.lines(code=70, EXIT_CODE="70")[-1].startswith("program: "))

    def test_other_commands_are_passed_on(self):
        self.assertEqual(self.lines("plan", "--config", "a")[-1], "program: plan --config a")

    def test_signals_reach_the_run(self):
        process = self.start("--set", "wait")
        while not (self.root / "waits").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        text = process.communicate(timeout=60)[0]
        self.assertEqual((process.returncode, text.splitlines()[-1]), (75, "stopped"))


if __name__ == "__main__":
    unittest.main()
