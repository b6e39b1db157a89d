#!/usr/bin/env python3
"""Executes notebooks top to bottom and keeps their outputs in them.

    notebooks/execute.py NOTEBOOK.ipynb...    # with the Python of LibTorch's environment

The folder of runs is that of ABTRAIN_RUNS, or each notebook's own. A notebook whose cell
fails stays as it was; the error ends this script.
"""
import os
import pathlib
import sys
import tempfile

try:
    import nbclient
    import nbformat
    from traitlets.config import Config
except ImportError as missing:
    sys.exit(f"execute.py: {missing}; scripts/setup.sh --tests installs it in LibTorch's "
             "environment: call this with that Python")


def execute(path):
    notebook = nbformat.read(path, as_version=4)
    # The kernel is reached by sockets in a folder of this user alone, not by TCP.
    with tempfile.TemporaryDirectory() as sockets:
        client = nbclient.NotebookClient(
            notebook, timeout=300, startup_timeout=180, kernel_name="python3", record_timing=False,
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}}),
            resources={"metadata": {"path": str(path.parent)}})
        client.execute()
    # The kernel's version is that of whoever executed last.
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"],
                         "language_info": {"name": "python"}}
    beside = path.with_name(path.name + ".part")
    nbformat.write(notebook, beside)
    os.replace(beside, path)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: notebooks/execute.py NOTEBOOK.ipynb...")
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        try:
            execute(path)
        except nbclient.exceptions.CellExecutionError as error:
            # Where there are just no runs for it, a traceback would only hide that.
            reason = error.evalue if error.ename == "NoRuns" else f"a cell failed\n{error}"
            sys.exit(f"execute.py: {path.name}: {reason}")
        except OSError as error:
            sys.exit(f"execute.py: {name}: {error.strerror}")
        print(f"executed {path.name}", flush=True)


if __name__ == "__main__":
    main()
