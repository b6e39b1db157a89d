"""The command `abtrain`: replaces this Python by the program that the package holds.

The program looks for LibTorch beside its own package. Where torch is installed in
another folder of sys.path, LD_LIBRARY_PATH tells the program.
"""
import glob
import importlib.metadata
import os
import re
import sys

GLIBC = (2, 28)  # the oldest that the program runs on; scripts/wheel.sh checks it
TORCH = "2.9 to 2.15"  # those that wheels are made for; tests/scripts/test_packaging.py checks it


def minor(version):
    """Two numbers: "2.11" of "2.11.0+cu130", and of the wheel's "0.1.0+torch2.11"."""
    return re.match(r"(?:.*\+torch)?([0-9]+\.[0-9]+)", version)[1]


def version_of(torch):
    with open(os.path.join(torch, "version.py"), encoding="utf-8") as file:
        return re.search(r"^__version__ = '([^']*)'", file.read(), re.MULTILINE)[1]


def main():
    built_for = minor(importlib.metadata.version("abtrain"))
    package = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(package)
    program = os.path.join(package, "bin", "abtrain")
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    if tuple(map(int, glibc.split("."))) < GLIBC:
        print(f"abtrain: this program needs glibc {GLIBC[0]}.{GLIBC[1]} or newer (RHEL 8, Ubuntu "
              f"20.04, Debian 11), and this system has {glibc}; use a container, or build it "
              "on this system", file=sys.stderr)
        return 78
    for site in [beside, *sys.path]:
        torch = os.path.join(site, "torch", "lib")
        if os.path.exists(os.path.join(torch, "libtorch_cpu.so")):
            break
    else:
        print(f"abtrain: torch is not installed for {sys.executable}: expected its folder in "
              f"{beside}; run `pip install torch=={built_for}.*`", file=sys.stderr)
        return 78
    version = version_of(os.path.join(site, "torch"))
    if minor(version) != built_for:
        print(f"abtrain: this program is built for torch {built_for}, and {site} has torch "
              f"{version}; run `pip install torch=={built_for}.*`, or install the wheel of abtrain "
              f"for torch {minor(version)} (there are wheels for torch {TORCH})", file=sys.stderr)
        return 78
    if not os.path.exists(os.path.join(torch, "libtorch_cuda.so")):
        with open(program, "rb") as file:
            if b"libtorch_cuda.so" in file.read():
                print(f"abtrain: the torch in {site} is for CPUs only, and this program is built "
                      f"with CUDA; install the torch {built_for} of PyPI, or a wheel of abtrain "
                      "that `scripts/wheel.sh --cpu` built", file=sys.stderr)
                return 78
    os.environ.setdefault("ABTRAIN_PYTHON", sys.executable)
    if site != beside:
        folders = [torch, *sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))]
        before = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = ":".join(folders + ([before] if before else []))
        # What batch files start in place of the program, which does not find LibTorch alone.
        os.environ["ABTRAIN_LAUNCHER"] = os.path.abspath(sys.argv[0])
    os.execv(program, sys.argv)
