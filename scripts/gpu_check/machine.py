"""Finds what the check works with: a Python with torch, a build, a GPU and data."""
import datetime
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent  # of the repository, or of a carried build


def output_of(command, timeout=60, **more):
    """Standard output of a short command, "" where it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **more)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find_python():
    """Returns (a Python with torch, its library folders), or ("", "")."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    candidates = [os.environ.get("ABTRAIN_PYTHON"), shutil.which("python3"), sys.executable,
                  *map(str, cache.glob("abtrain/torch-*/bin/python"))]
    for python in filter(None, candidates):
        folders = output_of([python, str(HERE / "torch_folders.py")])
        if folders:
            return python, folders
    return "", ""


class Build:
    """The programs of a carried build or of a CMake build folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.carried = (self.folder / "bin" / "abtrain").is_file()
        self.abtrain = self.folder / ("bin/abtrain" if self.carried else "abtrain")
        # The root of the scripts that go with these programs.
        self.root = self.folder if self.carried else ROOT

    def program(self, name):
        """The path of a benchmark such as bench_step, or None."""
        path = self.folder / ("bin" if self.carried else "bench") / name
        return path if path.is_file() else None

    def script(self, name):
        path = self.root / "bench" / name
        return path if path.is_file() else None

    def tests(self):
        folder = self.folder / ("bin" if self.carried else "tests")
        return sorted(p for p in folder.glob("test_*")
                      if p.is_file() and os.access(p, os.X_OK))

    def revision(self):
        """The revision of the programs, else of the sources."""
        written = self.folder / "REVISION"
        if written.is_file():
            return written.read_text().strip()
        return output_of(["git", "-C", str(ROOT), "describe", "--always", "--dirty",
                          "--exclude=*", "--abbrev=10"])


def gpus():
    """One line for each GPU that the driver shows: name, memory, driver."""
    rows = output_of(["nvidia-smi", "--query-gpu=name,memory.total,driver_version",
                      "--format=csv,noheader"])
    return [row for row in rows.splitlines() if row]


def has_cifar10():
    root = os.environ.get("ABTRAIN_DATA", "")
    return bool(root) and (pathlib.Path(root) / "cifar-10-batches-bin" / "test_batch.bin").is_file()


# Of https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, as that page says.
CIFAR10_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"


def join_cifar10(pieces, folder):
    """Unpacks the archive that the pieces are, one after the other, and sets ABTRAIN_DATA.
    Returns what is wrong, or ""."""
    data = folder / "data"
    if not (data / "cifar-10-batches-bin/test_batch.bin").is_file():
        joined, digest = io.BytesIO(), hashlib.md5()
        for piece in pieces:
            try:
                part = pathlib.Path(piece).read_bytes()
            except OSError as error:
                return f"{piece}: {error.strerror}"
            joined.write(part)
            digest.update(part)
        if digest.hexdigest() != CIFAR10_MD5:
            return (f"the pieces, {joined.tell():,} bytes in this order, are not "
                    "cifar-10-binary.tar.gz: another MD5 sum")
        joined.seek(0)
        unpacked = folder / "data.new"
        shutil.rmtree(unpacked, ignore_errors=True)
        with tarfile.open(fileobj=joined) as archive:
            archive.extractall(unpacked)
        unpacked.rename(data)
    os.environ["ABTRAIN_DATA"] = str(data)
    return ""


def environment(build, libraries):
    """The environment of all commands. A carried build needs the library folders."""
    values = dict(os.environ)
    values["PYTHONUNBUFFERED"] = "1"
    if build.carried:
        before = values.get("LD_LIBRARY_PATH")
        values["LD_LIBRARY_PATH"] = libraries + (":" + before if before else "")
        values.setdefault("ABTRAIN_CONFIGS", str(build.folder / "share/abtrain/configs"))
    return values


def describe(build, python, libraries, command):
    """The contents of machine.txt as {label: text}."""
    cpu = next((line.split(":", 1)[1].strip()
                for line in read("/proc/cpuinfo").splitlines()
                if line.startswith("model name")), "?")
    # Without loading torch, which may take a minute the first time.
    version = read(pathlib.Path(libraries.split(":")[0]).parent / "version.py")
    torch = next((line.split("'")[1] for line in version.splitlines()
                  if line.startswith("__version__ = '")), "?")
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "GPU": "; ".join(gpus()) or "none",
        "CPU": f"{cpu}, {os.cpu_count()} cores",
        "kernel": " ".join(os.uname()[:3:2]),
        "C library": os.confstr("CS_GNU_LIBC_VERSION") or "?",
        "Python": python or "none with torch",
        "torch": torch,
        "revision": build.revision() or "unknown",
        "programs": f"{build.folder} ({'carried' if build.carried else 'built here'})",
        "data": os.environ.get("ABTRAIN_DATA") or "ABTRAIN_DATA is not set",
        "command": command,
    }


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
