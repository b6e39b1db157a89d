"""The command `abtrain`: replaces this Python by the program that the package holds.

The program looks for LibTorch beside its own package. Where torch is installed in
another folder of sys.path, LD_LIBRARY_PATH tells the program.
"""
import glob
import os
import sys

GLIBC = (2, 34)  # the oldest that the program runs on; test_wheel.py checks it


def main():
    package = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(package)
    program = os.path.join(package, "bin", "abtrain")
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    if tuple(map(int, glibc.split("."))) < GLIBC:
        print(f"abtrain: this program needs glibc {GLIBC[0]}.{GLIBC[1]} or newer (RHEL 9, Ubuntu "
              f"22.04, Debian 12), and this system has {glibc}; use a container, or build it "
              "on this system", file=sys.stderr)
        return 78
    for site in [beside, *sys.path]:
        torch = os.path.join(site, "torch", "lib")
        if os.path.exists(os.path.join(torch, "libtorch_cpu.so")):
            break
    else:
        print(f"abtrain: torch is not installed for {sys.executable}: expected its folder in "
              f"{beside}; run `pip install abtrain` anew, or `pip install torch==2.11.0`",
              file=sys.stderr)
        return 78
    if not os.path.exists(os.path.join(torch, "libtorch_cuda.so")):
        with open(program, "rb") as file:
            if b"libtorch_cuda.so" in file.read():
                print(f"abtrain: the torch in {site} is for CPUs only, and this program is built "
                      "with CUDA; install the torch 2.11.0 of PyPI, or a wheel of abtrain that "
                      "`scripts/wheel.sh --cpu` built", file=sys.stderr)
                return 78
    os.environ.setdefault("ABTRAIN_PYTHON", sys.executable)
    if site != beside:
        folders = [torch, *sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))]
        before = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = ":".join(folders + ([before] if before else []))
    os.execv(program, sys.argv)
