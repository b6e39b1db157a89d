"""Single runs of bench/network.py: on all hosts of a network, with abtrain or with
PyTorch. A row holds what is known of one run."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import netns

STOPPED, DIVERGED = 75, 70  # exit codes: after SIGUSR1; a loss of NaN
RIVALS = {"torch ddp": "none", "torch ddp, fp16 hook": "fp16"}


def mpirun(network, arguments):
    """The command line that starts a program on every host, run on the first."""
    hosts = ",".join(f"{netns.address(h)}:1" for h in network.hosts)
    mca = {"plm_rsh_agent": network.rsh, "btl": "tcp,self",
           "btl_tcp_if_include": netns.CIDR, "oob_tcp_if_include": netns.CIDR,
           # With "put" a pair of hosts sends and receives in turns, not at once.
           "btl_tcp_flags": "send"}
    if len(network.hosts) > os.cpu_count():
        # Open MPI sets this where it sees that the workers share cores.
        mca["mpi_yield_when_idle"] = "1"
    mca.update(pair.split("=", 1) for pair in arguments.mca)
    words = [w for key, value in mca.items() for w in ("--mca", key, value)]
    return [*network.inside(1), "mpirun", *words, "-host", hosts,
            "-np", str(len(network.hosts)), "--bind-to", "none",
            "-x", "OMP_NUM_THREADS=1"]


def events(path, kind):
    """The events of one kind so far; the last line may be incomplete."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [e for e in map(json.loads, lines) if e["event"] == kind]


def reached(evaluations, target):
    """The first evaluation that is at least as good as the target: an accuracy, or the
    bits per byte of a text."""
    return next((e for e in evaluations if target and (
        e["bits_per_byte"] <= target if "bits_per_byte" in e
        else e["accuracy"] >= target)), None)


def is_enough(evaluations, arguments):
    """Whether a run has reached the target of --stop-at-target, or --give-up."""
    if arguments.stop_at_target and reached(evaluations, arguments.target):
        return True
    return bool(arguments.give_up and evaluations and
                evaluations[-1]["train_seconds"] > arguments.give_up)


def wait(process, metrics, arguments):
    """Waits for a run, and asks it to stop when is_enough(); returns its exit code."""
    until = time.monotonic() + arguments.limit
    asked = False
    while process.poll() is None:
        time.sleep(0.2)
        if time.monotonic() > until:
            # mpirun first ends its workers; it is killed if it takes too long.
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            return process.wait()
        if not asked and is_enough(events(metrics, "evaluate"), arguments):
            process.send_signal(signal.SIGUSR1)
            asked, until = True, min(until, time.monotonic() + 60)
    return process.returncode


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def summarize_links(row, hosts):
    """Adds what the hosts' interfaces counted, and its ratios to the meter."""
    row["links"] = hosts
    for key in ("link", "payload", "wire"):
        values = [h[f"{key}_bytes"] for h in hosts if f"{key}_bytes" in h]
        if not values:
            continue
        row[f"{key}_mean"], row[f"{key}_max"] = mean(values), max(values)
        if row.get("metered"):
            row[f"{key}_ratio"] = row[f"{key}_mean"] / row["metered"]


def folder_name(run, hosts, rate, seed):
    return f"{run}_{hosts}x{rate}_{seed}"


def train(network, arguments, run, seed, rate):
    name = folder_name(run["name"], len(network.hosts), rate, seed)
    folder = arguments.output / name
    # Each worker sees all cores as its own, but the hosts share them.
    threads = max(1, os.cpu_count() // len(network.hosts))
    sets = [f"seed={seed}", f"workers={len(network.hosts)}",
            f"train.threads={threads}"]
    if arguments.evaluate_every and not run["config"].startswith("compare/"):
        sets.append(f"evaluate.every={arguments.evaluate_every}")
    metrics, summary = folder / "metrics.jsonl", folder / "summary.json"
    for old in (metrics, summary):
        old.unlink(missing_ok=True)
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    log = arguments.output / f"{name}.log"
    load = os.getloadavg()[0]
    before, start = network.counters(), time.monotonic()
    with open(log, "w") as out:
        code = wait(subprocess.Popen(
            [*mpirun(network, arguments), arguments.program,
             "--config", run["config"], "--name", name, "--resume", "none", "--overwrite",
             "--output", arguments.output,
             *(w for s in [*sets, *run["set"]] for w in ("--set", s))],
            env=environment, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True), metrics, arguments)
    netns.end_programs()  # whatever outlived a failed run
    moved = netns.sent(before, network.counters())
    tests = events(metrics, "evaluate")
    row = {"name": run["name"], "config": run["config"], "set": run["set"],
           "exit_code": code, "wall_seconds": time.monotonic() - start,
           "load_before": load,
           "curve": [[e["train_seconds"], e["accuracy"]] for e in tests],
           "bytes_curve": [e["bytes_per_worker"] for e in tests],
           "steps_curve": [e["step"] for e in tests]}
    if hit := reached(tests, arguments.target):
        row.update(target=arguments.target,
                   target_seconds=hit["train_seconds"],
                   target_steps=hit["step"],
                   target_bytes=hit["bytes_per_worker"])
    if code == 0:
        s = json.loads(summary.read_text())
        traffic = s["traffic"]
        row.update(status="done", steps=s["steps"], accuracy=s["accuracy"],
                   seconds=s["seconds"], traffic=traffic,
                   ms_per_step=s["seconds"]["train"] / s["steps"] * 1e3,
                   communication_ms=s["seconds"]["communication"]
                   / s["steps"] * 1e3,
                   metered=traffic["bytes_per_worker"]
                   + traffic["by_purpose"].get("metrics", 0))
    elif is_enough(tests, arguments):
        if code != STOPPED:
            print(f"{name}: exit code {code} when stopped", file=sys.stderr)
        last = tests[-1]
        row.update(status="stopped", steps=last["step"],
                   accuracy=last["accuracy"],
                   ms_per_step=last["train_seconds"] / last["step"] * 1e3)
        if not hit:
            row["gave_up"] = last["train_seconds"]
    else:
        # A diverged run is a result: it would diverge again.
        row["status"] = "diverged" if code == DIVERGED else "failed"
        print(f"{name}: exit code {code}, see {log}", file=sys.stderr)
    summarize_links(row, moved)
    return row


def predict(row, folder, arguments):
    """Adds what `abtrain plan` predicts for a finished run, beside what it measured."""
    done = subprocess.run(
        [arguments.program, "plan", f"{folder}/config.yaml", "--format", "json",
         "--nodes", str(row["hosts"]), "--workers-here", str(row["hosts"]),
         "--bandwidth", row["rate"], "--latency", arguments.latency],
        stdout=subprocess.PIPE, text=True, check=True)
    plan = json.loads(done.stdout)
    summary = json.loads((pathlib.Path(folder) / "summary.json").read_text())
    row["plan"] = {
        key: {"planned": planned, "measured": measured, "ratio": planned / measured}
        for key, planned, measured in (
            ("ms_per_step", 1e3 * plan["seconds"]["average_step"],
             1e3 * summary["seconds"]["train"] / summary["steps"]),
            ("bytes_per_worker", plan["traffic"]["whole_run"],
             summary["traffic"]["bytes_per_worker"]))}


def train_torch(network, arguments, rival, seed):
    """Trains with DistributedDataParallel in the same network: time per step."""
    # It would complain that the hosts have no DNS.
    environment = dict(os.environ, TORCH_CPP_LOG_LEVEL="ERROR")
    ranks = [subprocess.Popen(
        [*network.inside(h), arguments.torch_python,
         pathlib.Path(__file__).with_name("network_torch.py"), "--rank", str(h - 1),
         "--world", str(len(network.hosts)), "--address", netns.address(1),
         "--hook", RIVALS[rival], "--seed", str(seed),
         "--steps", str(arguments.torch_steps)],
        env=environment, stdout=subprocess.PIPE, text=True)
        for h in network.hosts]
    printed = [rank.communicate()[0] for rank in ranks]
    row = {"name": rival, "status": "done"}
    if any(rank.returncode for rank in ranks):
        return {**row, "status": "failed"}
    result = json.loads(printed[0])
    row.update(steps=result["steps"], metered=result["formula_bytes"],
               ms_per_step=result["seconds"] / result["steps"] * 1e3,
               median_ms=result["median_step"] * 1e3)
    summarize_links(row, [
        {"link_bytes": b, "payload_bytes": b - netns.HEADERS * p}
        for b, p in zip(result["link_bytes"], result["link_packets"])])
    return row
