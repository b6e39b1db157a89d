"""A Slurm in a folder: its own key, socket, ports and daemons.

Needs root and the Debian packages slurm-wlm and munge; nothing of an installed
Slurm is touched. For trying a batch script by hand:
    python3 tests/slurm/local_slurm.py [--nodes 2] COMMAND...
runs the command with SLURM_CONF set, and ends the Slurm after it. Several nodes have
a host name and a network of their own each, joined by a bridge; they share all files.
"""

import argparse
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

NETWORK = "10.77.0"
PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue",
            "scontrol", "scancel", "sinfo"]

# cred_expire: how long a requeued job waits (120 s else). The second partition
# preempts the first.
CONFIG = """
ClusterName=local
SlurmctldHost={controller}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={requeue_wait}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool_%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd_%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd_%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MailProg=/bin/true
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait={kill_wait}
MinJobAge=3600
OverTimeLimit=0
PlugStackConfig={folder}/plugstack.conf
ReturnToService=2
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=2
"""

# What becomes one of several nodes: it waits for its end of the cable. PMIx would use
# one folder for all nodes.
NODE = """
set -e
read -r _
hostname "$1"
ip link set lo up
ip link set "$1" name eth0 up
ip address add "$2/24" dev eth0
mount --bind "$3/pmix_$1" "$3/pmix"
exec slurmd -D -N "$1"
"""


def missing():
    """Why no Slurm can be started here; empty where one can."""
    if os.geteuid() != 0:
        return "starting a Slurm needs root"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    absent = [p for p in PROGRAMS if not shutil.which(p, path=path)]
    if absent:
        return "not installed: " + ", ".join(absent)
    return ""


def enter_own_processes(nodes=1):
    """Starts this program again as the first of its own process ids, where the
    system allows that: then no daemon can outlive it, however it ends. Several nodes
    need a network of their own too."""
    if os.environ.get("LOCAL_SLURM_INSIDE"):
        return
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if nodes > 1:
        unshare.append("--net")
    if subprocess.run(unshare + ["true"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode == 0:
        os.environ["LOCAL_SLURM_INSIDE"] = "1"
        # A Ctrl-C reaches the inner one by itself, other signals from here.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = subprocess.Popen(unshare + [sys.executable] + sys.argv,
                                 preexec_fn=_inside_of_parent)

        def hand_on(number, frame):
            for pid in _children_of(child.pid):
                os.kill(pid, number)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, hand_on)
        sys.exit(child.wait())


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _die_with_parent():
    _libc().prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _inside_of_parent():
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _children_of(parent):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[1]) == parent:
                    found.append(int(entry.name))
        except (OSError, ValueError):
            pass
    return found


def free_ports(count):
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class LocalSlurm:
    """with LocalSlurm() as slurm: slurm.run("sbatch", ...)

    Several nodes only after enter_own_processes(nodes)."""

    def __init__(self, nodes=1, requeue_wait=5, kill_wait=15):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="abtrain_slurm_"))
        host = socket.gethostname().split(".")[0]
        self.controller = f"{host}(127.0.0.1)"
        self.nodes = {host: "127.0.0.1"}
        if nodes > 1:
            self.controller = f"{host}({NETWORK}.1)"
            self.nodes = {f"node{i}": f"{NETWORK}.{i + 1}" for i in range(1, nodes + 1)}
        self.daemons = []
        self.requeue_wait = requeue_wait
        self.kill_wait = kill_wait
        # Nothing of a Slurm or MPI job that this itself runs in.
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(
            ("SLURM", "SBATCH", "SRUN", "PMI", "OMPI"))}
        self.env["PATH"] = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        self.env["SLURM_CONF"] = str(self.folder / "slurm.conf")

    def __enter__(self):
        # Steps that lose their parent become ours, to be ended with the rest.
        _libc().prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda n, frame: sys.exit(128 + n))
        try:
            self._start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def _start(self):
        for name in ("state", "pmix", *(f"pmix_{node}" for node in self.nodes)):
            (self.folder / name).mkdir()
        controller_port, node_port = free_ports(2)
        (self.folder / "slurm.conf").write_text(CONFIG.format(
            folder=self.folder, controller=self.controller,
            requeue_wait=self.requeue_wait, controller_port=controller_port,
            node_port=node_port, kill_wait=self.kill_wait,
            nodes="\n".join(f"NodeName={node} NodeAddr={address} CPUs=8 "
                            "RealMemory=1000000 State=UNKNOWN"
                            for node, address in self.nodes.items())))
        (self.folder / "plugstack.conf").touch()
        # Below /tmp else, where what a killed step left stops a later one.
        (self.folder / "mpi.conf").write_text(
            f"PMIxCliTmpDirBase={self.folder}/pmix\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        f = self.folder
        self._daemon("munged", "--foreground", "--force",
                     f"--key-file={key}", f"--socket={f}/munge.socket",
                     f"--pid-file={f}/munge.pid", f"--log-file={f}/munge.log",
                     f"--seed-file={f}/munge.seed")
        self.wait_for(lambda: (f / "munge.socket").exists(), 20, "munged")
        if len(self.nodes) == 1:
            self._daemon("slurmctld", "-D", "-c")
            self._daemon("slurmd", "-D", "-N", *self.nodes)
        else:
            self._join_nodes()
        self.wait_for(
            lambda: self.run("sinfo", "-h", "-p", "main", "-o", "%D %T",
                             check=False).stdout.strip() == f"{len(self.nodes)} idle",
            60, "idle nodes")

    def _join_nodes(self):
        """Nodes at a bridge, on which the controller is too."""
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {node}\n" for node, address in self.nodes.items()))
        for command in (f"mount --bind {hosts} /etc/hosts", "ip link set lo up",
                        "ip link add bridge type bridge", "ip link set bridge up",
                        f"ip address add {NETWORK}.1/24 dev bridge"):
            self.run(*command.split())
        self._daemon("slurmctld", "-D", "-c")
        for node, address in self.nodes.items():
            process = self._daemon("unshare", "--net", "--uts", "--mount", "sh", "-c", NODE,
                                   "sh", node, address, str(self.folder))
            # Its namespaces are there as soon as it is another program.
            self.wait_for(lambda: os.readlink(f"/proc/{process.pid}/ns/net") !=
                          os.readlink("/proc/self/ns/net"), 20, f"the network of {node}")
            self.run(*f"ip link add bridge_{node} type veth peer name {node} netns "
                     f"{process.pid}".split())
            self.run(*f"ip link set bridge_{node} master bridge up".split())
            process.stdin.write(b"\n")
            process.stdin.close()

    def _daemon(self, *command):
        with open(self.folder / f"{len(self.daemons)}_{command[0]}.out", "w") as out:
            self.daemons.append(subprocess.Popen(
                command, env=self.env, stdin=subprocess.PIPE, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=_die_with_parent))
        return self.daemons[-1]

    def __exit__(self, kind, value, trace):
        if kind not in (None, SystemExit):
            self.print_logs()
        # slurmd before slurmctld: neither may start a job again.
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()
        self._end_descendants()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_descendants(self):
        # slurmstepd and what it runs: orphans come to this process in turn.
        until = time.monotonic() + 20
        while time.monotonic() < until:
            children = _children_of(os.getpid())
            if not children:
                return
            for pid in children:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    pass

    def print_logs(self):
        for path in sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")]):
            lines = path.read_text(errors="replace").splitlines()[-40:]
            print(f"---- {path.name}", *lines, sep="\n", file=sys.stderr)

    def run(self, *command, check=True, cwd=None, timeout=120):
        """Runs a command with this Slurm's configuration; text output."""
        result = subprocess.run(command, env=self.env, cwd=cwd, text=True,
                                capture_output=True, timeout=timeout)
        if check and result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: code {result.returncode}"
                               f"\n{result.stdout}{result.stderr}")
        return result

    def job(self, job_id):
        """What scontrol knows of a job or array task, as a dictionary."""
        text = self.run("scontrol", "show", "job", "--oneliner", job_id,
                        check=False).stdout.strip()
        lines = text.splitlines()
        return dict(part.split("=", 1) for part in lines[0].split()
                    if "=" in part) if lines else {}

    def wait_for(self, condition, seconds, what):
        """Waits until condition() is true; its value is the result."""
        until = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    raise RuntimeError(f"{daemon.args[0]} has ended")
            if time.monotonic() > until:
                raise TimeoutError(f"no sign of {what} in {seconds} s")
            time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1, help="how many (default: 1)")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("wanted: a command")
    if missing():
        sys.exit("local_slurm.py: " + missing())
    enter_own_processes(options.nodes)
    with LocalSlurm(options.nodes) as slurm:
        code = subprocess.run(options.command, env=slurm.env).returncode
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
