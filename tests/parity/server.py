"""Runs scripts of this folder for the tests: each in a fork of a process that has
imported the libraries which the script names, since an import takes seconds.

A line of standard input is a JSON list, the script and its arguments; the answer, on
standard output, is one line too: {"status": exit code, "text": both outputs}.
"""
import contextlib
import importlib
import json
import os
import pathlib
import runpy
import sys
import tempfile

LIBRARIES = ("peft", "safetensors.torch", "timm", "torch", "torchvision", "transformers")
HERE = pathlib.Path(__file__).resolve().parent


def in_fork(script, arguments, output):
    """Never returns in the fork: the script's end is its end."""
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")
    sys.exit()


def main():
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        text = (HERE / name).read_text()
        for library in LIBRARIES:
            if library in text:
                with contextlib.suppress(ImportError):  # the script's own import says it
                    importlib.import_module(library)
        with tempfile.TemporaryFile() as output:
            status = in_fork(HERE / name, arguments, output.fileno())
            output.seek(0)
            said = output.read().decode(errors="replace")
        print(json.dumps({"status": status, "text": said}), flush=True)


if __name__ == "__main__":
    main()
