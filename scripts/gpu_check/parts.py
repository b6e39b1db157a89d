"""The parts of the check. Each is a function of a Context that returns its figures by name,
and raises PartFailed or NotRun. gates.py judges the figures."""
import json
import os
import pathlib
import re
import shutil
import tempfile

import machine
from runner import NotRun, PartFailed
from training import read, train


class Context:
    def __init__(self, build, python, runner, options, work):
        self.build, self.python, self.runner = build, python, runner
        self.rehearse, self.sets = options.rehearse, options.set
        self.work = pathlib.Path(work)
        self.device = "cpu" if options.rehearse else "cuda"

    def needs(self, name):
        program = self.build.program(name)
        if program is None:
            raise NotRun(f"{name} is not among the programs")
        return program

    def script(self, name):
        """The command that runs a script of bench/ with torch's Python."""
        if not self.python:
            raise NotRun("no Python with torch was found (ABTRAIN_PYTHON names one)")
        return [self.python, self.build.script(name)]


def doctor(context):
    output = context.runner.check([context.build.abtrain, "doctor"], limit=120).output
    line = next((row for row in output.splitlines() if row.startswith("CUDA")), "")
    if not context.rehearse and "compiled in" not in line:
        raise PartFailed(f"the program has no CUDA: {line}")
    return {"cuda": " ".join(line.split()[1:])}


class TestProgram:
    """A GoogleTest program and its tests that match the filter *Gpu*."""

    def __init__(self, context, path):
        self.runner, self.path = context.runner, path

    def names(self):
        names, suite = [], ""
        listed = self.runner.check([self.path, "--gtest_list_tests", "--gtest_filter=*Gpu*"],
                                   limit=60).output
        for line in listed.splitlines():
            name = line.split("#")[0].strip()
            if not line.startswith(" "):
                suite = name if name.endswith(".") else ""
            elif suite:
                names.append(suite + name)
        return names

    def run(self, wanted, limit, **variables):
        """Returns (result, {test: passed | skipped | failed}), without tests that did not end."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "tests.json")
            result = self.runner.run(
                [self.path, f"--gtest_filter={wanted}", f"--gtest_output=json:{file}",
                 "--gtest_brief=1"], limit=limit, **variables)
            try:
                with open(file, encoding="utf-8") as handle:
                    suites = json.load(handle)["testsuites"]
            except (OSError, ValueError):
                suites = []
        verdicts = {}
        for suite in suites:
            for test in suite["testsuite"]:
                verdicts[f"{suite['name']}.{test['name']}"] = (
                    "failed" if test.get("failures") else
                    "skipped" if test.get("result") == "SKIPPED" else "passed")
        return result, verdicts


def gpu_tests(context, names=None):
    found = [TestProgram(context, path) for path in context.build.tests()
             if (path.name in names if names else holds_gpu_tests(path))]
    if not found:
        raise NotRun("no test program with GPU tests was built")
    return found


def holds_gpu_tests(path):
    """Looks for the names in the file, because listing them would load LibTorch."""
    return b"Gpu" in path.read_bytes()


def tests(context):
    """Runs all tests that need a GPU; output.log says why a test was skipped."""
    programs = gpu_tests(context)
    verdicts, remarks = {}, []
    for program in programs:
        result, seen = program.run("*Gpu*", limit=120)
        if not seen and result.code != 0:
            remarks.append(f"{program.path.name}: {result.ending()}")
        # An illegal access spoils all that follows in its process, and a test that ends the
        # process hides the others. So each test that did not pass runs again by itself, with
        # launches that report their own errors.
        for name in seen or program.names():
            if seen.get(name) in ("passed", "skipped"):
                continue
            one, again = program.run(name, limit=30, CUDA_LAUNCH_BLOCKING="1")
            verdict = again.get(name, f"failed ({one.ending()})")
            if verdict == "passed" and name in seen:
                remarks.append(f"{name}: failed, but passed by itself")
                verdict = "failed (not by itself)"
            seen[name] = verdict
        verdicts.update(seen)
    failed = [name for name, verdict in verdicts.items() if verdict.startswith("failed")]
    count = lambda kind: sum(verdict == kind for verdict in verdicts.values())
    figures = {"passed": count("passed"), "skipped": count("skipped"),
               "failed": len(failed), "failures": failed, "remarks": remarks,
               "programs": [program.path.name for program in programs]}
    context.runner.say(f"tests: {figures['passed']} passed, {figures['failed']} failed, "
                       f"{figures['skipped']} skipped")
    return figures


def sanitizer(context):
    tool = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer")
    if tool is None:
        raise NotRun("there is no compute-sanitizer")
    [program] = gpu_tests(context, ["test_ops"])  # it launches our own kernels directly
    figures = {}
    for kind in ("memcheck", "racecheck"):
        # Only our own kernels: LibTorch's would take minutes.
        for extra in (["--kernel-name", "kns=abtrain"], []):
            result = context.runner.run(
                [tool, "--tool", kind, *extra, "--report-api-errors", "no",
                 "--error-exitcode", "99", program.path, "--gtest_filter=*Gpu*",
                 "--gtest_brief=1"], limit=60)
            rows = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", result.output)
            # Older versions do not know --kernel-name, and only say so.
            if rows or result.timed_out:
                break
        if not figures and re.search("not supported|No attachable process", result.output):
            raise NotRun("this machine does not let compute-sanitizer in: "
                         + result.output.strip().splitlines()[-1])
        figures[kind] = rows[-1] if rows else result.ending()
        figures[f"{kind}_clean"] = bool(
            rows and result.code == 0 and re.search(r"SUMMARY: 0 ", rows[-1]))
        context.runner.say(f"{kind}: {figures[kind]}")
    return figures


def kernels(context):
    """The worst share of a copy's bandwidth among the rows of the largest batch."""
    command = [context.needs("bench_kernels"), "--device", context.device]
    if context.rehearse:
        command += ["--images", 256, "--repeats", 3]
    output = context.runner.check(command, limit=180, show=True).output
    rows = re.findall(r"^(\w+(?:, [\w ]+?)?) +(\S+|4 bits) +(\d+)( (?:x|/|of) \S+)? +[0-9.]+ "
                      r"+\d+ +[0-9.]+ +([0-9.]+) %$", output, re.M)
    batches = [int(batch) for name, _, batch, *_ in rows if name == "augment"]
    if not batches:
        raise PartFailed("bench_kernels printed no row 'augment TYPE N x SIZE ... S %'")
    worst = lambda form: min((float(share) / 100 for name, _, batch, _, share in rows
                              if int(batch) == max(batches) and name == form), default=None)
    # The kernels that transform, pack or unpack all numbers.
    packing = {f"{name} {batch}{rest}": float(share) / 100 for name, _, batch, rest, share in rows
               if re.fullmatch("(thc|signs|codes|bytes|sums), (encode|decode|mean of 4)", name)}
    return {"batch": max(batches), "augment_share": worst("augment"),
            "augment_erase_share": worst("augment, erase"), "packing_shares": packing,
            "table": output}


def compress(context):
    """The cost of encoding and decoding, as a share of the training step."""
    command = [context.needs("bench_compress"), "--device", context.device, "--json"]
    command += (["--width", 0.1, "--batch", 4, "--rounds", 2] if context.rehearse
                else ["--precision", "bf16", "--batch", 512])
    output = context.runner.check(command, limit=180, show=True).output
    try:
        found = json.loads(output[output.index("{"):])
        return {"step_ms": found["step_ms"], "parameters": found["parameters"],
                **{row["scheme"]: {key: row[key] for key in (
                    "encode_ms", "decode_ms", "share_of_step")} for row in found["schemes"]}}
    except (ValueError, KeyError, TypeError) as error:
        raise PartFailed(f"bench_compress printed no JSON of schemes: {error!r}") from error


def adagrad(context):
    """What quantized Adagrad adds to a step of the MLP at 64 images."""
    command = [context.needs("bench_adagrad"), "--device", context.device,
               "--rounds", 2 if context.rehearse else 100, "--json"]
    output = context.runner.check(command, limit=120, show=True).output
    try:
        found = json.loads(output[output.index("{"):])
        return {row["quantizer"]: {key: row[key] for key in (
            "passes_ms", "encode_ms", "decode_ms", "update_ms", "share_of_step")}
            for row in found["quantizers"]}
    except (ValueError, KeyError, TypeError) as error:
        raise PartFailed(f"bench_adagrad printed no JSON of quantizers: {error!r}") from error


def svd_models(context):
    """(model, arguments of bench_svd) for each model."""
    toy = ["--threads", 2, "--repeats", 1] if context.rehearse else []
    return [(model, ["--model", model, "--device", context.device, *toy])
            for model in (("resnet50",) if context.rehearse else ("resnet50", "vgg16"))]


def svd(context):
    figures = {}
    for model, arguments in svd_models(context):
        output = context.runner.check(
            [context.needs("bench_svd"), *arguments, "--check", 0], limit=60, show=True).output
        rows = re.findall(r"^(orthogonal|kaiming|trained) +(\w+) +([0-9.]+) ms", output, re.M)
        times = {f"{spectrum} {rule}": float(ms) / 1e3 for spectrum, rule, ms in rows}
        if not times:
            raise PartFailed("bench_svd printed no row 'SPECTRUM RULE X ms'", figures)
        # The other side has kaiming matrices; those of a run are trained.
        slowest = lambda *kinds: max(t for name, t in times.items() if name.split()[0] in kinds)
        figures[model] = {"abtrain_s": slowest("kaiming", "trained"),
                          "abtrain_kaiming_s": slowest("kaiming"), "rows": times}
    return figures


def svd_torch(context):
    """torch.linalg.svd of the same matrices, driver after driver as long as there is time."""
    figures, faults = {}, []
    for model, arguments in svd_models(context):
        result = context.runner.run(
            context.script("svd_vs_torch.py") + ["--program", context.needs("bench_svd"),
                                                 "--repeats", 1, *arguments],
            limit=60, show=True)
        rivals = re.findall(r"^torch\.linalg\.svd, driver (\w+): ([0-9.]+) s|"
                            r"torch\.linalg\.svd ([0-9.]+) s", result.output, re.M)
        if rivals:
            figures[model] = {"torch_s": min(float(gpu or cpu) for _, gpu, cpu in rivals),
                              "torch_drivers": ", ".join(name for name, *_ in rivals if name)}
        if result.code != 0 or result.timed_out:
            faults.append(f"svd_vs_torch.py of {model}: {result.ending()}")
    if faults:
        raise PartFailed("; ".join(faults), figures)
    return figures


# Models whose steps are timed, and their compression ratios.
STEP_MODELS = {"vgg16": 44, "vgg16-small": 10, "resnet18": 10, "vit-tiny": 10, "gpt-small": 10}


def step_part(*commands):
    """A part that times steps; each of the commands times some forms of every model."""
    def part(context):
        figures, faults = {}, []
        for model, ratio in STEP_MODELS.items():
            toy = "vgg16-small" if model == "vgg16" else "lenet5"
            for forms in commands:
                command = context.script("step_vs_torch.py") + [
                    toy if context.rehearse else model, "--program", context.needs("bench_step"),
                    "--device", context.device, "--ratio", ratio, "--json"]
                if context.rehearse:
                    command += ["--gpu-form", "--batch", 2, "--steps", 2, "--precision", "fp32"]
                result = context.runner.run([*command, "--forms", *forms], limit=60, show=True)
                for line in result.output.splitlines():
                    if line.startswith("{"):
                        row = json.loads(line)
                        figures.setdefault(model, {})[row["form"]] = row
                if result.code != 0 or result.timed_out:
                    faults.append(f"{model}, {' '.join(forms)}: {result.ending()}")
        if faults or not figures:
            raise PartFailed("; ".join(faults) or "step_vs_torch.py printed no line of JSON", figures)
        return figures
    return part


def quickstart(context):
    """Trains on Fashion-MNIST, with AB-training and data parallel."""
    listed = context.runner.check([context.build.abtrain, "doctor"], limit=120).output
    if not re.search(r"^fashion-mnist\s+/", listed, re.M):
        raise NotRun("fashion-mnist was not found")
    toy = ["train.steps=30", "workers=2", "method.group_size=1", "method.warmup_steps=10",
           "method.sync_every=10", "method.full_rank_steps=2", "schedule.warmup_steps=5",
           "evaluate.every=0"]
    figures = {"ab": train(context, "fashion_ab", "fashion_mnist_mlp", toy, limit=200)}
    figures["ddp"] = train(context, "fashion_ddp", "fashion_mnist_mlp", toy, limit=200,
                           sets=["method.name=ddp"])
    return figures


def cifar_part(name, config, sets=(), width=0.0625):
    """A part that is one training run on CIFAR-10."""
    def part(context):
        if not machine.has_cifar10():
            raise NotRun("ABTRAIN_DATA/cifar-10-batches-bin does not exist")
        toy = ["train.steps=12", "workers=2", "method.group_size=1", "data.batch_size=4",
               f"model.width={width}", "train.precision=fp32", "evaluate.every=0",
               "train.threads=1", "method.warmup_steps=3", "method.sync_every=4",
               "method.full_rank_steps=0", "method.anchor=warmup", "method.rank.rule=ratio",
               "method.rank.ratio=4"]
        return train(context, name, config, toy, sets=sets)
    return part


def equal_time_part(name, config, shape=""):
    """A run that trains for as long as vgg16_ab's did, which must lie in --work; with a shape, of
    the dense network of this shape that has as many parameters as that run stores."""
    def part(context):
        reference = context.work / "vgg16_ab"
        seconds = json.loads(read(reference / "summary.json") or "{}").get("seconds")
        if seconds is None:
            raise NotRun("needs the finished run of vgg16_ab in --work")
        sets = [f"train.seconds={seconds['train']:.1f}"]
        if shape:
            planned = json.loads(context.runner.check(
                [context.build.abtrain, "plan", "--same-size-as", reference, "--json"],
                limit=60).output)
            sets += next((s["set"] for s in planned["shapes"] if s["name"] == shape), [])
            if len(sets) == 1:
                raise PartFailed(f"abtrain plan --same-size-as knows no shape {shape}")
        return cifar_part(name, config, sets)(context)
    return part


def nccl(context):
    """One worker per GPU, as threads and as processes; or two on one GPU, if NCCL lets them share
    it."""
    count = len(machine.gpus())
    if count < 2:
        if os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") != "1":
            raise NotRun("needs two GPUs, or NCCL 2.30.3 and NCCL_MULTI_RANK_GPU_ENABLE=1")
        count = 2
        # The kernels of both workers must fit on the GPU at the same time.
        os.environ.setdefault("NCCL_MAX_CTAS", "4")
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
        os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    sets = [f"workers={count}", "comm=nccl", "method.group_size=auto"]
    figures = {"threads": train(context, "nccl_threads", "fashion_mnist_mlp", [], sets=sets)}
    torchrun = pathlib.Path(context.python).with_name("torchrun")
    if torchrun.is_file():
        figures["processes"] = train(
            context, "nccl_processes", "fashion_mnist_mlp", [], sets=sets,
            launcher=[torchrun, "--standalone", "--nproc-per-node", count, "--no-python"])
    return figures


class Part:
    def __init__(self, name, seconds, run, text):
        self.name, self.seconds, self.run, self.text = name, seconds, run, text


# In the order of importance; `seconds` is the least time left to start a part.
PARTS = [
    Part("doctor", 5, doctor, "what the program finds on this machine"),
    Part("tests", 20, tests, "all tests whose names contain Gpu"),
    Part("kernels", 15, kernels, "kernels beside a copy"),
    Part("step", 40, step_part(("dense", "dense_graphs", "ab", "ab_graphs")),
         "training steps of five models"),
    Part("svd", 20, svd, "decompositions"),
    Part("sanitizer", 40, sanitizer, "memcheck and racecheck of the kernels' tests"),
    Part("step_torch", 40, step_part(("torch_eager",), ("torch_benchmark",), ("torch_compiled",)),
         "the same steps in PyTorch"),
    Part("svd_torch", 30, svd_torch, "the same decompositions by torch.linalg.svd"),
    Part("compress", 20, compress, "encoding and decoding beside a step"),
    Part("adagrad", 10, adagrad, "quantized Adagrad beside the MLP's step"),
    Part("quickstart", 20, quickstart, "Fashion-MNIST, AB and data parallel"),
    Part("vgg16_ab", 240, cifar_part("vgg16_ab", "vgg16_cifar10"),
         "vgg16_cifar10.yaml, the whole run"),
    Part("vgg16_ddp", 240, cifar_part("vgg16_ddp", "vgg16_cifar10_ddp"),
         "the same steps, data parallel"),
    Part("vgg16_ddp_time", 200, equal_time_part("vgg16_ddp_time", "vgg16_cifar10_ddp"),
         "the same time, data parallel"),
    Part("vgg16_small_time", 200,
         equal_time_part("vgg16_small_time", "vgg16_cifar10_ddp", "folded"),
         "the same time, a small dense network, data parallel"),
    Part("vgg16_frugal", 240, cifar_part("vgg16_frugal", "vgg16_cifar10_frugal"),
         "the same steps, 16 bits on the wire"),
    Part("small_ab", 90, cifar_part("small_ab", "vgg16_small_cifar10_gpu"),
         "vgg16_small_cifar10_gpu.yaml"),
    Part("small_ddp", 90, cifar_part("small_ddp", "vgg16_small_cifar10_gpu",
                                     ["method.name=ddp"]), "the same, data parallel"),
    Part("resnet18_ab", 90, cifar_part("resnet18_ab", "resnet18_cifar10_gpu"),
         "resnet18_cifar10_gpu.yaml"),
    Part("resnet18_ddp", 90, cifar_part("resnet18_ddp", "resnet18_cifar10_gpu",
                                        ["method.name=ddp"]), "the same, data parallel"),
    *(Part(f"compare_{name}", 90, cifar_part(f"compare_{name}", f"compare/cifar10_{name}"),
           f"compare/cifar10_{name}.yaml")
      for name in ("fp16", "powersgd_r4", "topk_chunked_b2", "thc", "local_sgd", "diloco", "ab")),
    Part("nccl", 30, nccl, "one worker per GPU, if there are several; or two on one"),
]

# What a first look at a machine needs.
SMOKE = ("doctor", "tests", "kernels", "step", "svd", "sanitizer")
SMOKE_SECONDS = 300
