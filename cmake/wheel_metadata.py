"""What depends on torch in the wheel's metadata, for scikit-build-core (pyproject.toml): a wheel is
linked with one minor version of LibTorch, whose interface differs between them. Variables of the
environment, which scripts/wheel.sh sets: ABTRAIN_TORCH_VERSION, and ABTRAIN_WHEEL_CPU without CUDA."""
import os
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[1]


def found(pattern, file):
    return re.search(pattern, (SOURCE / file).read_text(), re.MULTILINE)[1]


def dynamic_metadata(settings, project):
    del settings, project
    version = found(r"^project\(abtrain VERSION ([0-9.]+)", "CMakeLists.txt")
    torch = os.environ.get("ABTRAIN_TORCH_VERSION") or found(
        r"^set\(ABTRAIN_TORCH_VERSION ([0-9.]+) ", "cmake/Torch.cmake")
    major, minor = map(int, torch.split(".")[:2])
    cpu = ".cpu" if os.environ.get("ABTRAIN_WHEEL_CPU") else ""
    return {"version": f"{version}+torch{major}.{minor}{cpu}",
            "dependencies": [f"torch>={major}.{minor},<{major}.{minor + 1}", "safetensors>=0.4", "numpy"]}
