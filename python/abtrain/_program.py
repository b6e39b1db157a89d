"""The command `abtrain`: replaces this Python by the program that the package holds.

The program looks for LibTorch beside its own package. Where torch is installed in
another folder of sys.path, LD_LIBRARY_PATH tells the program.
"""
import glob
import os
import sys


def main():
    package = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(package)
    program = os.path.join(package, "bin", "abtrain")
    for site in [beside, *sys.path]:
        torch = os.path.join(site, "torch", "lib")
        if os.path.exists(os.path.join(torch, "libtorch_cpu.so")):
            break
    else:
        print(f"abtrain: torch is not installed for {sys.executable}: expected its folder in "
              f"{beside}; run `pip install abtrain` anew, or `pip install torch==2.11.0`",
              file=sys.stderr)
        return 78
    if site != beside:
        folders = [torch, *sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))]
        before = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = ":".join(folders + ([before] if before else []))
    os.execv(program, sys.argv)
