"""Hosts on one machine: network namespaces on a bridge, with a rate on every link.

    with Network(4) as network:
        network.set_rate("100mbit")
        subprocess.run([*network.inside(1), "hostname"])

Needs root, iproute2 and the kernel's veth, bridge and tbf. The bridge has its own
namespace too, so nothing appears among the machine's own interfaces.
"""
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

PREFIX = "abnet-"  # of all our namespaces; any with this prefix may be removed
SUBNET = "10.77.0"
CIDR = f"{SUBNET}.0/24"
HEADERS = 14 + 20 + 32  # Ethernet, IPv4, TCP with time stamps
LOCK, AGENT = "/run/abnet.lock", "/run/abnet.rsh"
CLEANING = threading.Event()


def address(host):
    return f"{SUBNET}.{host}"


def bits(rate):
    """Bits per second of a rate as tc writes it: 100mbit, 1gbit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg])bit", rate)
    if not match:
        raise ValueError(f"{rate}: expected a rate, such as 100mbit or 1gbit")
    return float(match[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[match[2]]


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def leave_on_signals():
    """Makes a terminated program clean up, like one stopped by Ctrl-C."""
    def leave(number, frame):
        if not CLEANING.is_set():
            sys.exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)


def namespaces():
    lines = call("ip", "netns", "list").splitlines()
    return [n for n in (line.split()[0] for line in lines if line)
            if n.startswith(PREFIX)]


def end_programs(patience=3.0):
    """Ends the processes in our namespaces."""
    def running():
        return [int(p) for n in namespaces()
                for p in call("ip", "netns", "pids", n).split()]
    until = time.monotonic() + patience
    while pids := running():
        late = time.monotonic() > until
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            except ProcessLookupError:
                pass
        time.sleep(0.2)


class Network:
    """Hosts 1 to n with the addresses SUBNET.1 to SUBNET.n and one link `eth0` each."""

    def __init__(self, hosts, congestion="reno"):
        self.hosts = range(1, hosts + 1)
        self.congestion = congestion
        self.lock = None
        self.rsh = f"sh {AGENT}"

    def __enter__(self):
        if os.geteuid() != 0:
            raise PermissionError("network namespaces need root")
        self.lock = open(LOCK, "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.close()
            raise RuntimeError("another program is using the network of hosts") from None
        try:
            # A program that was killed leaves its namespaces behind.
            self.remove()
            self.create()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        CLEANING.set()
        try:
            self.remove()
        finally:
            self.lock.close()
            CLEANING.clear()

    def remove(self):
        end_programs()
        for name in namespaces():
            call("ip", "netns", "del", name)
        if os.path.exists(AGENT):
            os.remove(AGENT)

    def create(self):
        # Replaces ssh for mpirun: takes an address, then a command line.
        with open(AGENT, "w") as agent:
            agent.write(f"name={self.name('${1##*.}')}; shift\n"
                        "exec ip netns exec $name unshare --uts "
                        'sh -c "hostname $name; $*"\n')
        switch = PREFIX + "sw"
        call("ip", "netns", "add", switch)
        call("ip", "-n", switch, "link", "add", "name", "br0", "type", "bridge")
        call("ip", "-n", switch, "link", "set", "br0", "up")
        for host in self.hosts:
            name, port = self.name(host), f"p{host}"
            call("ip", "netns", "add", name)
            call("ip", "link", "add", port, "netns", switch, "type", "veth",
                 "peer", "name", "eth0", "netns", name)
            call("ip", "-n", switch, "link", "set", port, "master", "br0", "up")
            # No IPv6 addresses, so that nothing uses them or looks for routers.
            call("ip", "-n", name, "link", "set", "eth0", "addrgenmode", "none")
            call("ip", "-n", name, "addr", "add", f"{address(host)}/24",
                 "dev", "eth0")
            call("ip", "-n", name, "link", "set", "lo", "up")
            call("ip", "-n", name, "link", "set", "eth0", "up")
            # The machine's default may be bbr, which takes tbf for a policer and
            # falls to half the rate; reno is always available to namespaces.
            call("ip", "netns", "exec", name, "sysctl", "-w",
                 f"net.ipv4.tcp_congestion_control={self.congestion}")

    def name(self, host):
        return f"{PREFIX}h{host}"

    def inside(self, host):
        """Words to put before a command to run it on a host; it keeps its process id."""
        name = self.name(host)
        return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c",
                f'hostname {name}; exec "$@"', "sh"]

    def set_rate(self, rate):
        # What a link may send at once after a pause: as little as a busy machine
        # can do with, which serves the queue's timer late, because no real link
        # catches up on what it did not send while its workers computed.
        burst = max(4096, int(bits(rate) / 8 * 0.001))
        links = [(self.name(host), "eth0") for host in self.hosts]
        links += [(PREFIX + "sw", f"p{host}") for host in self.hosts]
        for name, link in links:
            call("tc", "-n", name, "qdisc", "replace", "dev", link, "root",
                 "tbf", "rate", rate, "burst", str(burst), "latency", "200ms")

    def counters(self):
        """What each host has sent since its creation, as a list of dicts.

        link_bytes and link_packets are the interface's own counters. It hands
        over up to 64 KiB with one header (segmentation offload); wire_bytes
        is the queue's count, with a header for every TCP segment.
        """
        hosts = []
        for host in self.hosts:
            name = self.name(host)
            link = json.loads(call("ip", "-n", name, "-j", "-s", "link",
                                   "show", "dev", "eth0"))[0]["stats64"]["tx"]
            queues = [(name, "eth0"), (PREFIX + "sw", f"p{host}")]
            queue, port = (json.loads(call(
                "tc", "-n", n, "-j", "-s", "qdisc", "show", "dev", dev))[0]
                for n, dev in queues)
            keys, values = [
                line.split() for line in call(
                    "ip", "netns", "exec", name, "cat", "/proc/net/snmp"
                ).splitlines() if line.startswith("Tcp:")]
            tcp = dict(zip(keys, values))
            hosts.append({
                "link_bytes": link["bytes"],
                "link_packets": link["packets"],
                "payload_bytes": link["bytes"] - HEADERS * link["packets"],
                "wire_bytes": queue["bytes"],
                "retransmitted": int(tcp["RetransSegs"]),
                "dropped": queue["drops"] + port["drops"]})
        return hosts


def sent(before, after):
    return [{key: b[key] - a[key] for key in a}
            for a, b in zip(before, after)]


def peer(network, host, *words):
    return subprocess.Popen(
        [*network.inside(host), sys.executable, __file__,
         *map(str, words)], stdout=subprocess.PIPE, text=True)


def transfer(network, pairs, size):
    """Sends `size` bytes along each (from, to) at once. Returns the bits per
    second that each receiver saw."""
    targets = sorted({to for _, to in pairs})
    receivers = []
    for to in targets:
        count = sum(1 for pair in pairs if pair[1] == to)
        receivers.append(peer(network, to, "receive", count))
        receivers[-1].stdout.readline()
    senders = [peer(network, a, "send", address(b), size) for a, b in pairs]
    rates = []
    for receiver in receivers:
        received, seconds = receiver.communicate()[0].split()
        rates.append(int(received) * 8 / float(seconds))
    for sender in senders:
        if sender.wait():
            raise RuntimeError("a sender of the self-test failed")
    return rates


def self_test(network, rate):
    """Checks that links carry `rate` both ways and that the counters agree; prints."""
    size = int(bits(rate) / 8 * 5)
    network.set_rate(rate)
    hosts = list(network.hosts)
    ring = list(zip(hosts, hosts[1:] + hosts[:1]))
    right = True

    def check(what, value, wanted, tolerance):
        nonlocal right
        good = abs(value / wanted - 1) <= tolerance
        right = right and good
        print(f"{rate:>9}  {what:44} {value / wanted:7.4f}  "
              f"{'ok' if good else f'WRONG: beyond {tolerance:.0%}'}")

    before = network.counters()
    rates = transfer(network, ring, size)
    moved = sent(before, network.counters())
    for pick, name in ((min, "smallest"), (max, "largest")):
        check(f"payload counted / sent, {name}",
              pick(m["payload_bytes"] for m in moved), size, 0.01)
        check(f"bytes on the wire / (sent * 1514/1448), {name}",
              pick(m["wire_bytes"] for m in moved), size * 1514 / 1448, 0.05)
        check(f"a ring: received / rate * 1514/1448, {name}",
              pick(rates) * 1514 / 1448, bits(rate), 0.10)
    rates = transfer(network, [(h, 1) for h in hosts[1:]], size)
    check("all to one: received / rate * 1514/1448",
          rates[0] * 1514 / 1448, bits(rate), 0.10)
    return right


def receive(count):
    listener = socket.create_server(("0.0.0.0", 7077))
    print("ready", flush=True)
    connections = [listener.accept()[0] for _ in range(count)]
    start, totals = time.monotonic(), []

    def drain(connection):
        total = 0
        while block := connection.recv(1 << 20):
            total += len(block)
        totals.append(total)

    threads = [threading.Thread(target=drain, args=(c,)) for c in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(totals), time.monotonic() - start)


def send(to, size):
    with socket.create_connection((to, 7077)) as connection:
        connection.sendall(bytes(size))


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(sys.argv[2], int(sys.argv[3]))
