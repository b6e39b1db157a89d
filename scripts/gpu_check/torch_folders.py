"""Prints the library folders of this Python's torch wheel, separated by ':', for
LD_LIBRARY_PATH. Without torch, or with another minor version than that of the
argument, as in 2.11.0, it prints nothing and exits with 1."""
import importlib.util
import pathlib
import re
import sys


def library_folders(version=""):
    found = importlib.util.find_spec("torch")  # does not load torch, which takes seconds
    if found is None or not found.submodule_search_locations:
        return []
    torch = pathlib.Path(found.submodule_search_locations[0])
    minor = ".".join(version.split(".")[:2])
    if minor and not re.search(rf"^__version__ = '{re.escape(minor)}\.",
                               (torch / "version.py").read_text(), re.MULTILINE):
        return []
    # nvidia/cu13/lib, nvidia/nccl/lib, ...: in every folder that holds such packages.
    packages = importlib.util.find_spec("nvidia")
    places = list(packages.submodule_search_locations or []) if packages else []
    folders = [torch / "lib"]
    for place in [*places, torch.parent / "nvidia"]:
        folders += sorted(pathlib.Path(place).glob("*/lib"))
    return list(dict.fromkeys(str(folder) for folder in folders))


if __name__ == "__main__":
    folders = library_folders(*sys.argv[1:])
    print(":".join(folders))
    sys.exit(0 if folders else 1)
