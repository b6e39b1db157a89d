"""scripts/gpu_check.sh with a GPU, programs and scripts that only say what they are told:
what it makes of their output, their failures and its budget."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
PYTHON = f"#!{sys.executable}\n"

# A run: `runs` in the folder of the programs says how each ends.
ABTRAIN = PYTHON + """
import json, pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
if sys.argv[1] == "doctor":
    print("CUDA           compiled in, toolkit 13.0\\nfashion-mnist  not found")
    sys.exit(0)
if sys.argv[1] == "plan":
    print(json.dumps({"shapes": [{"name": "narrow", "set": ["model.width=0.1"]},
                                 {"name": "folded", "set": ["model.folded_head=true"]}]}))
    sys.exit(0)
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder = pathlib.Path(words["--output"]) / words["--name"]
plan = json.loads((here / "runs.json").read_text())[words["--name"]]
with open(here / "started", "a") as file:
    print(" ".join(sys.argv[1:]), file=file)
(folder / "metrics.jsonl").write_text('{"event": "step", "step": 700}\\n')
if plan == "hangs":
    def save(*_):
        (folder / "saved").touch()
        sys.exit(75)
    signal.signal(signal.SIGTERM, save)
    while True:
        time.sleep(0.01)
if plan == "fails":
    sys.exit(70)
if plan == "odd":
    (folder / "summary.json").write_text('{"accuracy": 1}')
    sys.exit(0)
accuracy, ratio, traffic, steps = plan
(folder / "config.yaml").write_text("name: x\\n")
(folder / "model.safetensors").write_text("large")
(folder / "summary.json").write_text(json.dumps({
    "accuracy": accuracy, "loss": 0.5, "steps": steps, "workers": 4,
    "compression_ratio": ratio, "traffic": {"vs_fp32": traffic, "bytes_per_worker": 9},
    "seconds": {"train": 300.0}}))
"""

# A GoogleTest program with three tests; the file `crashes` makes Two end it.
TESTS = PYTHON + """
import json, os, pathlib, sys
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
if "--gtest_list_tests" in sys.argv:
    print("Running main()\\nGpuOps.\\n  One\\n  Two\\nSizes/GpuMore.\\n  Three/0  # GetParam() = 4")
    sys.exit(0)
names = ["GpuOps.One", "GpuOps.Two", "Sizes/GpuMore.Three/0"]
chosen = [n for n in names if words["gtest_filter"] in ("*Gpu*", n)]
here = pathlib.Path(__file__).parent
if "GpuOps.Two" in chosen and (here / "crashes").exists():
    os.abort()
cases = [{"name": n.rsplit(".", 1)[1], "result": "SKIPPED" if "Three" in n else "COMPLETED",
          **({"failures": [{}]} if (here / ("fails_" + n)).exists() else {})} for n in chosen]
suites = [{"name": n.rsplit(".", 1)[0], "testsuite": [c]} for n, c in zip(chosen, cases)]
pathlib.Path(words["gtest_output"][5:]).write_text(json.dumps({"testsuites": suites}))
sys.exit(any("failures" in c for c in cases))
"""

# The file `uncompiled` makes torch.compile fail.
STEPS = """
import json, pathlib, sys
ms = {"torch_eager": 22.0, "torch_benchmark": 20.0, "torch_compiled": 15.0, "dense": 21.0,
      "dense_graphs": 18.0, "ab": 9.0, "ab_graphs": 6.0}
print("a table")
for form in sys.argv[sys.argv.index("--forms") + 1:]:
    if form == "torch_compiled" and (pathlib.Path(__file__).parent / "uncompiled").exists():
        sys.exit(1)
    print(json.dumps({"model": sys.argv[1], "form": form, "ms": ms[form]}))
"""

BENCH_SVD = PYTHON + """
print("4 matrices on cuda\\northogonal sigma    2000.0 ms, worst\\nkaiming    sigma     200.0 ms, worst")
print("    25088 x 4096: rank 5\\nkaiming    ratio     190.0 ms\\ntrained    sigma     250.0 ms")
"""

# The file `slow` makes it fail after the first driver.
SVD = """
import pathlib, sys
print("torch.linalg.svd, driver default: 2.000 s", flush=True)
if (pathlib.Path(__file__).parent / "slow").exists():
    sys.exit(1)
print("torch.linalg.svd, driver gesvd: 1.100 s")
"""

KERNELS = PYTHON + """
print("Card X, median of 9\\nkernel  type  size  ms  bytes moved  GB/s  of copy")
for kernel, size, share in (("augment", "256 x 3x32x32", 21), ("augment", "8192 x 3x32x32", 90.5),
                            ("augment, erase", "8192 x 3x32x32", 61),
                            ("augment", "8192 x 1x28x28", 70.0), ("reduce", "2 x 33", 5),
                            ("thc, decode", "64 x 1024", 75), ("thc, encode", "64 x 1024", 60.0),
                            ("thc, norms", "64 x 1024", 9), ("codes, mean of 4", "65536", 80.5)):
    print(f"{kernel:16} fp32       {size:22} 0.1 99 4.5 {share:6.1f} %")
"""

COMPRESS = PYTHON + """
import json
print(json.dumps({"step_ms": 20.0, "parameters": 9, "schemes": [
    {"scheme": "thc", "encode_ms": 1.0, "decode_ms": 0.5, "share_of_step": 0.075, "x": 1}]}))
"""

ADAGRAD = PYTHON + """
import json
print(json.dumps({"quantizers": [
    {"quantizer": "threshold", "passes_ms": 1.0, "encode_ms": 0.05, "decode_ms": 0.05,
     "update_ms": 0.05, "share_of_step": 0.13}]}))
"""

# One that knows no --kernel-name; `hazards` says what it finds.
SANITIZER = PYTHON + """
import pathlib, sys
if "--kernel-name" in sys.argv:
    sys.exit("unrecognized option")
found = (pathlib.Path(__file__).parent / "hazards").exists()
print("========= RACECHECK SUMMARY: %d hazards displayed" % found if "racecheck" in sys.argv
      else "========= ERROR SUMMARY: 0 errors")
"""

GOOD = {"vgg16_ab": (0.930, 44.6, 0.351, 15000), "vgg16_ddp": (0.934, 1.0, 1.0, 15000),
        "vgg16_ddp_time": (0.929, 1.0, 1.0, 9000), "vgg16_small_time": (0.931, 1.0, 0.1, 40000),
        "vgg16_frugal": (0.928, 44.2, 0.157, 15000), "small_ab": (0.93, 10, 0.3, 8000),
        "small_ddp": (0.93, 1, 1, 8000), "resnet18_ab": (0.93, 10, 0.3, 8000),
        "resnet18_ddp": (0.93, 1, 1, 8000),
        **{f"compare_{name}": (0.93, 1, 0.5, 2900) for name in (
            "fp16", "powersgd_r4", "topk_chunked_b2", "thc", "local_sgd", "diloco", "ab")}}


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="abtrain_gpu_check_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "build/bin"
        self.write("build/bin/abtrain", ABTRAIN)
        self.write("build/bin/test_ops", TESTS)
        self.write("build/bin/bench_step", PYTHON)
        self.write("build/bin/bench_svd", BENCH_SVD)
        self.write("build/bin/bench_kernels", KERNELS)
        self.write("build/bin/bench_compress", COMPRESS)
        self.write("build/bin/bench_adagrad", ADAGRAD)
        self.write("build/bench/step_vs_torch.py", STEPS)
        self.write("build/bench/svd_vs_torch.py", SVD)
        self.write("build/REVISION", "abc123\n")
        self.write("tools/nvidia-smi", "#!/bin/sh\necho 'Card X, 143771 MiB, 580.1'\n")
        self.write("tools/compute-sanitizer", SANITIZER)
        self.write("python/torch/__init__.py", "")
        self.write("python/torch/version.py", "__version__ = '2.11.0+cu130'\n")
        self.write("data/cifar-10-batches-bin/test_batch.bin", "")
        self.runs(**GOOD)
        self.env = os.environ | {
            "PATH": f"{self.folder}/tools:/usr/bin:/bin", "ABTRAIN_PYTHON": sys.executable,
            "PYTHONPATH": f"{self.folder}/python", "ABTRAIN_DATA": f"{self.folder}/data"}

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        path.chmod(0o755)

    def runs(self, **plans):
        (self.bin / "runs.json").write_text(json.dumps({**GOOD, **plans}))

    def check(self, *arguments, out="out"):
        """(exit code, results.json, what it has printed)."""
        done = subprocess.run(
            [SCRIPTS / "gpu_check.sh", "--build", self.folder / "build", "--out",
             self.folder / out, *arguments], env=self.env, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        file = self.folder / out / "results.json"
        return done.returncode, json.loads(file.read_text()) if file.exists() else {}, done.stdout

    def gates(self, results):
        return {gate["gate"]: gate["reached"] for gate in results["gates"]}

    def test_all_is_well(self):
        code, results, printed = self.check("--budget", "900")
        self.assertEqual(code, 0, printed)
        self.assertEqual(set(self.gates(results).values()), {"yes"}, printed)
        states = {name: part["state"] for name, part in results["parts"].items()}
        self.assertEqual({n for n, s in states.items() if s != "done"}, {"quickstart", "nccl"})
        self.assertEqual(results["machine"]["revision"], "abc123")
        self.assertEqual(results["machine"]["torch"], "2.11.0+cu130")
        self.assertEqual(results["machine"]["GPU"], "Card X, 143771 MiB, 580.1")
        out = self.folder / "out"
        self.assertEqual({p.name for p in out.iterdir()},
                         {"report.md", "results.json", "machine.txt", "output.log", "runs.tar.gz"})
        with tarfile.open(out / "runs.tar.gz") as archive:
            names = archive.getnames()
        self.assertIn("runs/vgg16_ab/summary.json", names)
        self.assertFalse([n for n in names if "safetensors" in n])
        self.assertIn("| augmentation kernel ", (out / "report.md").read_text())
        started = (self.bin / "started").read_text()
        self.assertIn("--config vgg16_cifar10_frugal --name vgg16_frugal", started)
        self.assertNotIn("model.width", started)  # no toy size outside a rehearsal
        small = next(line for line in started.splitlines() if "vgg16_small_time" in line)
        self.assertIn("--set train.seconds=300.0 --set model.folded_head=true", small)
        seen = {gate["gate"]: gate["seen"] for gate in results["gates"]}
        self.assertEqual(seen["VGG16 accuracy at equal time, AB, merged model"],
                         "93.00 %, data parallel 92.90 %, small dense network 93.10 %")

    def test_equal_time_needs_the_reference(self):
        code, results, _ = self.check("--parts", "vgg16_ddp_time")
        self.assertEqual((code, results["parts"]["vgg16_ddp_time"]["state"]), (0, "not run"))
        self.runs(vgg16_ab=(0.9, 44.6, 0.351, 15000))
        code, results, _ = self.check("--parts", "vgg16_ab,vgg16_ddp_time")
        self.assertEqual(self.gates(results)["VGG16 accuracy at equal time, AB, merged model"], "no")

    def test_gates_that_are_missed(self):
        self.runs(vgg16_ab=(0.9285, 43.9, 0.41, 15000), vgg16_frugal=(0.93, 45, 0.21, 15000))
        code, results, _ = self.check("--budget", "900", "--parts",
                                      "vgg16_ab,vgg16_ddp,vgg16_frugal")
        self.assertEqual(code, 1)
        missed = [name for name, reached in self.gates(results).items() if reached == "no"]
        self.assertEqual(missed, ["VGG16 accuracy, AB, merged model", "VGG16 compression",
                                  "VGG16 traffic, AB", "VGG16 traffic, frugal"])
        self.assertEqual(self.gates(results)["augmentation kernel"], "not measured")

    def test_decompositions(self):
        code, results, _ = self.check("--parts", "svd,svd_torch")
        seen = {gate["gate"]: gate["seen"] for gate in results["gates"]}
        self.assertEqual(code, 0)
        self.assertEqual(seen["ResNet-50 decomposition"], "0.250 s")
        ratio = "VGG16 decomposition, torch.linalg.svd / abtrain"
        self.assertEqual(seen[ratio], "5.50 times (1.100 s there)")
        # Our own time stands, whatever happens to the rival.
        (self.folder / "build/bench/slow").touch()
        code, results, _ = self.check("--parts", "svd,svd_torch")
        self.assertEqual((code, results["parts"]["svd_torch"]["state"]), (1, "failed"))
        self.assertEqual(self.gates(results)["VGG16 decomposition"], "yes")
        self.assertEqual(results["parts"]["svd_torch"]["figures"]["vgg16"]["torch_s"], 2.0)

    def test_steps(self):
        code, results, _ = self.check("--parts", "step,step_torch")
        seen = {gate["gate"]: gate["seen"] for gate in results["gates"]}
        self.assertEqual(code, 0)
        self.assertEqual(seen["vgg16 step, AB / dense"], "0.333 (6.00 and 18.00 ms)")
        # The faster eager form counts; compiled is for information.
        self.assertEqual(seen["gpt-small step, dense / PyTorch"], "0.900 (18.00 and 20.00 ms)")
        (self.folder / "build/bench/uncompiled").touch()
        code, results, _ = self.check("--parts", "step,step_torch")
        self.assertEqual((code, results["parts"]["step_torch"]["state"]), (1, "failed"))
        self.assertEqual(self.gates(results)["vit-tiny step, dense / PyTorch"], "yes")
        # Without PyTorch there is no ratio to it.
        code, results, _ = self.check("--parts", "step")
        self.assertEqual(self.gates(results)["vgg16 step, AB / dense"], "yes")
        self.assertEqual(self.gates(results)["vgg16 step, dense / PyTorch"], "not measured")

    def test_smoke(self):
        code, results, printed = self.check("--parts", "smoke")
        self.assertEqual((code, printed.count("== sanitizer:")), (0, 1))
        self.assertEqual(list(results["parts"]),
                         ["doctor", "tests", "kernels", "step", "svd", "sanitizer"])

    def test_cifar10_in_pieces(self):
        with tempfile.TemporaryDirectory() as folder:
            inside = pathlib.Path(folder) / "cifar-10-batches-bin"
            inside.mkdir()
            (inside / "test_batch.bin").write_text("images")
            with tarfile.open(self.folder / "whole.tar.gz", "w:gz") as archive:
                archive.add(inside, arcname="cifar-10-batches-bin")
        whole = (self.folder / "whole.tar.gz").read_bytes()
        pieces = [self.folder / "a", self.folder / "b"]
        for piece, part in zip(pieces, (whole[:20], whole[20:])):
            piece.write_bytes(part)
        del self.env["ABTRAIN_DATA"]
        code, _, printed = self.check("--parts", "small_ab", "--data", *pieces)
        self.assertEqual(code, 1)
        self.assertIn("another MD5 sum", printed)
        # The real archive is not here: this one takes its place.
        program = self.folder / "gpu_check"
        shutil.copytree(SCRIPTS / "gpu_check", program)
        text = (program / "machine.py").read_text()
        (program / "machine.py").write_text(
            text.replace("c32a1d4ab5d03f1284b67883e8d87530", hashlib.md5(whole).hexdigest()))
        done = subprocess.run(
            [sys.executable, program, "--build", self.folder / "build", "--out",
             self.folder / "out", "--parts", "small_ab", "--data", *pieces],
            env=self.env, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        unpacked = self.folder / "out.work/data/cifar-10-batches-bin/test_batch.bin"
        self.assertEqual(unpacked.read_text(), "images")

    def test_the_worst_of_the_large_batches_counts(self):
        self.write("build/bin/bench_kernels", KERNELS.replace("70.0", "69.9"))
        code, results, _ = self.check("--parts", "kernels")
        self.assertEqual((code, self.gates(results)["augmentation kernel"]), (1, "no"))
        self.assertEqual(results["parts"]["kernels"]["figures"]["augment_erase_share"], 0.61)

    def test_the_worst_of_the_packing_kernels_counts(self):
        code, results, _ = self.check("--parts", "kernels")
        figures = results["parts"]["kernels"]["figures"]["packing_shares"]
        self.assertEqual(figures, {"thc, decode 64 x 1024": 0.75, "thc, encode 64 x 1024": 0.6,
                                   "codes, mean of 4 65536": 0.805})
        self.write("build/bin/bench_kernels", KERNELS.replace("60.0", "59.9"))
        code, results, _ = self.check("--parts", "kernels")
        self.assertEqual((code, self.gates(results)["packing kernels"]), (1, "no"))

    def test_the_cost_of_compression(self):
        code, results, _ = self.check("--parts", "compress")
        self.assertEqual(code, 0)
        self.assertEqual(results["parts"]["compress"]["figures"]["thc"]["share_of_step"], 0.075)
        self.write("build/bin/bench_compress", PYTHON + "print('{}')\n")
        code, results, _ = self.check("--parts", "compress")
        self.assertEqual((code, results["parts"]["compress"]["state"]), (1, "failed"))

    def test_the_cost_of_quantized_adagrad(self):
        code, results, _ = self.check("--parts", "adagrad")
        self.assertEqual((code, self.gates(results)["quantized Adagrad's own work"]), (0, "yes"))
        self.write("build/bin/bench_adagrad", ADAGRAD.replace("0.13", "0.16"))
        code, results, _ = self.check("--parts", "adagrad")
        self.assertEqual((code, self.gates(results)["quantized Adagrad's own work"]), (1, "no"))
        self.write("build/bin/bench_adagrad", PYTHON + "print('nothing')\n")
        code, results, _ = self.check("--parts", "adagrad")
        self.assertEqual((code, results["parts"]["adagrad"]["state"]), (1, "failed"))

    def test_a_shorter_run_decides_nothing(self):
        self.runs(vgg16_ab=(0.99, 50, 0.1, 1500))
        code, results, _ = self.check("--budget", "900", "--parts", "vgg16_ab")
        self.assertEqual((code, self.gates(results)["VGG16 compression"]), (1, "no"))
        seen = {gate["gate"]: gate["seen"] for gate in results["gates"]}
        self.assertIn("only 1500 of 15000", seen["VGG16 compression"])

    def test_a_crash_hides_no_other_test(self):
        (self.bin / "crashes").touch()
        code, results, _ = self.check("--parts", "tests")
        figures = results["parts"]["tests"]["figures"]
        self.assertEqual((code, figures["passed"], figures["skipped"]), (1, 1, 1))
        self.assertEqual(figures["failures"], ["GpuOps.Two"])
        self.assertIn("SIGABRT", figures["remarks"][0])
        self.assertEqual(self.gates(results)["tests labeled gpu"], "no")

    def test_a_failed_test(self):
        (self.bin / "fails_GpuOps.One").touch()
        code, results, _ = self.check("--parts", "tests")
        self.assertEqual(code, 1)
        self.assertEqual(results["parts"]["tests"]["figures"]["failures"], ["GpuOps.One"])

    def test_a_hazard(self):
        (self.folder / "tools/hazards").touch()
        code, results, _ = self.check("--parts", "sanitizer")
        gates = self.gates(results)
        self.assertEqual((code, gates["memcheck of the kernels"],
                          gates["racecheck of the kernels"]), (1, "yes", "no"))

    def test_a_sanitizer_that_is_not_allowed(self):
        self.write("tools/compute-sanitizer", PYTHON + "print('Device not supported')\n")
        code, results, _ = self.check("--parts", "sanitizer,tests")
        self.assertEqual((code, results["parts"]["sanitizer"]["state"]), (0, "not run"))
        self.assertIn("Device not supported", results["parts"]["sanitizer"]["remark"])
        self.assertEqual(results["parts"]["tests"]["state"], "done")
        # What ends without a summary for another reason is a failure.
        self.write("tools/compute-sanitizer", PYTHON + "import os; os.abort()\n")
        code, results, _ = self.check("--parts", "sanitizer")
        self.assertEqual((code, self.gates(results)["memcheck of the kernels"]), (1, "no"))

    def test_a_run_that_fails_stops_no_other(self):
        self.runs(vgg16_ab="fails")
        code, results, _ = self.check("--budget", "900", "--parts", "vgg16_ab,vgg16_ddp")
        self.assertEqual(code, 1)
        self.assertEqual(results["parts"]["vgg16_ab"]["state"], "failed")
        self.assertIn("exit code 70 after step 700", results["parts"]["vgg16_ab"]["remark"])
        self.assertEqual(results["parts"]["vgg16_ddp"]["state"], "done")

    def test_output_of_another_shape(self):
        self.write("build/bin/bench_kernels", PYTHON + "print('nothing')\n")
        self.write("build/bench/step_vs_torch.py", "print('nothing')\n")
        self.runs(vgg16_ab="odd")
        code, results, _ = self.check("--parts", "tests,kernels,step,vgg16_ab,vgg16_ddp")
        self.assertEqual(code, 1)
        states = {name: part["state"] for name, part in results["parts"].items()}
        self.assertEqual(states, {"tests": "done", "step": "failed", "kernels": "failed",
                                  "vgg16_ab": "failed", "vgg16_ddp": "done"})

    def test_time_runs_out_and_another_call_goes_on(self):
        self.runs(vgg16_ab="hangs")
        code, results, printed = self.check("--rehearse", "--budget", "6.2", "--parts",
                                            "vgg16_ab,vgg16_ddp")
        self.assertEqual(code, 1, printed)
        self.assertIn("stopped after step 700", results["parts"]["vgg16_ab"]["remark"])
        # It was asked to stop, not killed, and nothing was begun in the seconds that are left.
        self.assertTrue(list(self.folder.glob("out.work/*/vgg16_ab/saved")))
        self.assertEqual(results["parts"]["vgg16_ddp"]["state"], "not run")
        self.runs()
        work = self.folder / "shared"
        for name, seconds in (("vgg16_ab", 590), ("vgg16_ddp", 100)):
            (work / name).mkdir(parents=True)
            (work / name / "wall_seconds").write_text(f"{seconds}\n")
        code, results, _ = self.check("--budget", "900", "--work", work, "--parts", "vgg16_ab")
        self.assertGreaterEqual(results["parts"]["vgg16_ab"]["figures"]["wall_s"], 590)

    def test_earlier_results_count(self):
        self.check("--parts", "vgg16_ddp", out="first")
        code, results, _ = self.check("--parts", "vgg16_ab", "--earlier", self.folder / "first",
                                      out="second")
        self.assertEqual(code, 0)
        self.assertEqual(self.gates(results)["VGG16 accuracy, AB, merged model"], "yes")
        # A rehearsal's do not.
        self.check("--rehearse", "--parts", "vgg16_ddp", out="toy")
        code, results, _ = self.check("--parts", "vgg16_ab", "--earlier", self.folder / "toy",
                                      out="third")
        self.assertEqual(self.gates(results)["VGG16 accuracy, AB, merged model"], "not measured")

    def test_overrides_reach_the_runs(self):
        self.check("--budget", "900", "--parts", "vgg16_ab,vgg16_ddp", "--set", "seed=2",
                   "--set", "vgg16_ab:method.rank.rule=budget")
        ab, ddp = (self.bin / "started").read_text().splitlines()
        self.assertIn("--set seed=2 --set method.rank.rule=budget", ab)
        self.assertIn("--set seed=2", ddp)
        self.assertNotIn("budget", ddp)

    def test_what_is_missing_is_said(self):
        (self.bin / "bench_kernels").unlink()
        (self.folder / "data/cifar-10-batches-bin/test_batch.bin").unlink()
        code, results, _ = self.check("--budget", "900", "--parts", "kernels,vgg16_ab")
        self.assertEqual(code, 0)
        self.assertIn("bench_kernels", results["parts"]["kernels"]["remark"])
        self.assertIn("ABTRAIN_DATA", results["parts"]["vgg16_ab"]["remark"])

    def test_too_little_time_begins_nothing(self):
        code, results, _ = self.check("--budget", "100", "--parts", "vgg16_ab")
        self.assertEqual((code, results["parts"]["vgg16_ab"]["state"]), (0, "not run"))
        self.assertFalse((self.bin / "started").exists())

    def test_no_gpu(self):
        self.write("tools/nvidia-smi", "#!/bin/sh\nexit 9\n")  # as without a driver
        code, results, printed = self.check()
        self.assertEqual((code, results), (66, {}))
        self.assertIn("--rehearse", printed)

    def test_wrong_arguments(self):
        for arguments in (["--parts", "tests,nothing"], ["--earlier", "nowhere"],
                          ["--build", "nowhere"]):
            self.assertEqual(self.check(*arguments)[0], 2, arguments)


if __name__ == "__main__":
    unittest.main()
