"""scripts/restart.sh with commands that fail as told. Nothing here sleeps: a
`sleep` of our own, found first, notes how long it was asked to."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/restart.sh"

# Ends with the codes that stand in the file `codes`, one a call, then with 0.
COMMAND = """#!/bin/bash
echo "$*" >>calls
code=$(head -n 1 codes)
sed -i 1d codes
if [[ $code == killed ]]; then kill -9 $$; fi
exit "${code:-0}"
"""

# Says that it runs, and ends with 75 at a signal, as abtrain does.
STOPS = """#!/bin/bash
for name in TERM INT USR1; do
  trap "echo $name >>signals; exit 75" "$name"
done
touch running
while :; do /bin/sleep 0.01; done
"""


class Restart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="abtrain_restart_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script("fails", COMMAND)
        self.script("stops", STOPS)
        self.script("sleep", '#!/bin/bash\necho "$1" >>pauses\n')
        self.env = os.environ | {
            "PATH": f"{self.folder}:{os.environ['PATH']}"}

    def script(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def lines(self, name):
        path = self.folder / name
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def start(self, *arguments):
        return subprocess.Popen(
            [SCRIPT, *arguments], cwd=self.folder, env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_with(self, codes, *arguments):
        (self.folder / "codes").write_text("".join(f"{c}\n" for c in codes))
        process = self.start(*arguments)
        out, self.errors = process.communicate(timeout=60)
        self.assertEqual(out, "")
        return process.returncode

    def wait_for(self, name):
        until = time.monotonic() + 30
        while not (self.folder / name).exists():
            self.assertLess(time.monotonic(), until, name)
            time.sleep(0.01)

    def ended_by(self, number, code, begun, *arguments):
        """What it says when a signal ends it once there is the file `begun`."""
        process = self.start(*arguments)
        self.wait_for(begun)
        process.send_signal(number)
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, code, errors)
        return errors

    def test_success_is_not_repeated(self):
        self.assertEqual(self.run_with([0], "--", "fails", "a b", "c"), 0)
        self.assertEqual(self.lines("calls"), ["a b c"])
        self.assertEqual(self.errors, "")

    def test_what_would_fail_again_is_not_repeated(self):
        for code in (2, 65, 66, 70, 78):
            self.assertEqual(self.run_with([code], "--", "fails"), code)
        self.assertEqual(len(self.lines("calls")), 5)
        self.assertEqual(self.lines("pauses"), [])

    def test_failures_are_started_again(self):
        codes = [69, 1, 74, "killed", 75]
        self.assertEqual(
            self.run_with(codes, "--max-restarts", "5", "--", "fails"), 0)
        self.assertEqual(len(self.lines("calls")), 6)
        for code in (69, 1, 74, 137, 75):
            self.assertIn(f"exit code {code}: restart ", self.errors)

    def test_at_most_so_many_times(self):
        for count in (0, 1, 4):
            (self.folder / "calls").write_text("")
            self.assertEqual(self.run_with(
                [69] * 9, "--max-restarts", str(count), "--", "fails"), 69)
            self.assertEqual(len(self.lines("calls")), count + 1)
            self.assertIn(f"after {count} restarts: giving up", self.errors)

    def test_the_last_code_counts(self):
        self.assertEqual(self.run_with([69, 74, 78], "--", "fails"), 78)

    def test_pauses_grow_to_a_minute(self):
        self.run_with([1] * 8, "--max-restarts", "8", "--", "fails")
        self.assertEqual(self.lines("pauses"),
                         ["1", "2", "4", "8", "16", "32", "60", "60"])

    def test_more_codes_can_be_final(self):
        arguments = ["--final", "75", "--final", "9", "--", "fails"]
        self.assertEqual(self.run_with([75], *arguments), 75)
        self.assertEqual(self.run_with([9], *arguments), 9)
        self.assertEqual(self.lines("pauses"), [])

    def test_signals_are_handed_on_and_end_it(self):
        for name in ("TERM", "INT", "USR1"):
            for file in ("running", "signals"):
                (self.folder / file).unlink(missing_ok=True)
            errors = self.ended_by(getattr(signal, "SIG" + name), 75, "running",
                                   "--max-restarts", "3", "--", "stops")
            self.assertEqual(self.lines("signals"), [name])
            self.assertIn(f"exit code 75 after SIG{name}: no restart", errors)
        self.assertEqual(self.lines("pauses"), [])

    def test_a_stopped_command_that_fails_is_not_started_again(self):
        self.script("stops", STOPS.replace("exit 75", "exit 1"))
        self.ended_by(signal.SIGTERM, 1, "running", "--", "stops")

    def test_a_signal_during_the_pause_ends_it(self):
        self.script("sleep",
                    "#!/bin/bash\ntouch pausing\nexec /bin/sleep 100\n")
        (self.folder / "codes").write_text("69\n")
        errors = self.ended_by(signal.SIGUSR1, 75, "pausing", "--", "fails")
        self.assertIn("SIGUSR1 during the pause after exit code 69", errors)
        self.assertEqual(len(self.lines("calls")), 1)

    # -- hosts

    def with_hosts(self, codes, hosts, *arguments, down=()):
        """Of hosts, of which some do not answer: a list of sets, one per start."""
        (self.folder / "hosts.txt").write_text(hosts)
        self.script("asks", """#!/bin/bash
            echo "$1" >>asked
            starts=$(cat calls 2>/dev/null | wc -l)
            if grep -qx "$starts $1" down; then echo "no route to $1" >&2; exit 255; fi
            """.replace("\n            ", "\n"))
        # Notes the file that it is given too.
        self.script("trains", COMMAND.replace(
            'echo "$*" >>calls', 'echo "$1 $(tr "\\n" "," <"$2")" >>calls'))
        (self.folder / "down").write_text("".join(
            f"{start} {host}\n" for start, names in enumerate(down) for host in names))
        self.env["ABTRAIN_HOST_CHECK"] = str(self.folder / "asks")
        return self.run_with(codes, "--hosts", "hosts.txt", *arguments,
                             "--", "trains", "{workers}", "{hosts}")

    def test_it_starts_with_the_hosts_that_answer(self):
        hosts = "a slots=2  # the first\n\n# none\nb:3\nc\nd max_slots=9 slots = 4"
        self.assertEqual(self.with_hosts([69, 1, 0], hosts, down=[(), ("b", "c")]), 0)
        self.assertEqual(self.lines("calls"), [
            "10 a slots=2  ,b:3,c,d max_slots=9 slots = 4,",
            "6 a slots=2  ,d max_slots=9 slots = 4,",
            "10 a slots=2  ,b:3,c,d max_slots=9 slots = 4,"])  # they are back
        self.assertIn("b does not answer: no route to b\n", self.errors)
        self.assertIn("2 of 4 hosts answer: 6 of 10 workers", self.errors)
        self.assertEqual(sorted(self.lines("asked")), sorted("abcd" * 3))

    def test_a_number_of_workers_that_is_refused_is_lowered(self):
        self.assertEqual(
            self.with_hosts([78, 78, 0], "a:2\nb:3\nc:2", down=[("c",)] * 3), 0)
        self.assertEqual([line.split()[0] for line in self.lines("calls")], ["5", "4", "3"])
        self.assertIn("exit code 78 with 5 of 7 workers: trying 4", self.errors)
        self.assertEqual(self.lines("pauses"), [])
        # With all of them it is the configuration that is wrong.
        (self.folder / "calls").unlink()
        self.assertEqual(self.with_hosts([78], "a:2\nb:2"), 78)
        self.assertEqual(len(self.lines("calls")), 1)
        # Not below what is wanted.
        (self.folder / "calls").unlink()
        self.assertEqual(self.with_hosts(
            [78] * 9, "a:2\nb:2\nc:2", "--min-workers", "3", down=[("c",)] * 9), 78)
        self.assertEqual([line.split()[0] for line in self.lines("calls")], ["4", "3"])

    def test_too_few_workers_are_a_failure(self):
        self.assertEqual(self.with_hosts(
            [69], "a\nb", "--min-workers", "2", "--max-restarts", "2",
            down=[(), ("b",)]), 69)
        self.assertEqual(len(self.lines("calls")), 1)
        self.assertIn("1 workers are fewer than --min-workers 2", self.errors)
        self.assertIn("exit code 69 after 2 restarts: giving up", self.errors)
        (self.folder / "calls").unlink()
        self.assertEqual(
            self.with_hosts([], "a\nb", "--max-restarts", "0", down=[("a", "b")]), 69)
        self.assertEqual(self.lines("calls"), [])

    def test_hosts_are_asked_by_ssh_but_for_this_one(self):
        self.script("ssh", '#!/bin/bash\necho "$*" >>asked\n')
        here = os.uname().nodename
        (self.folder / "hosts.txt").write_text(f"localhost\n{here}\nfar\n")
        self.env.pop("ABTRAIN_HOST_CHECK", None)
        self.assertEqual(
            self.run_with([0], "--hosts", "hosts.txt", "--", "fails", "{workers}"), 0)
        self.assertEqual(self.lines("asked"), ["-o BatchMode=yes -o ConnectTimeout=5 far true"])
        self.assertEqual(self.lines("calls"), ["3"])

    def test_a_signal_while_hosts_are_asked_ends_it(self):
        (self.folder / "hosts.txt").write_text("a\n")
        self.env["ABTRAIN_HOST_CHECK"] = "touch asking; exec /bin/sleep 10 #"
        process = self.start("--hosts", "hosts.txt", "--", "fails", "{workers}")
        self.wait_for("asking")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=8), 75)
        self.assertEqual(self.lines("calls"), [])
        process.communicate(timeout=30)

    def test_wrong_hosts(self):
        for text, code, says in (("a slots=2\n-o x\n", 65, "hosts.txt:2: expected 'HOST'"),
                                 ("# none\n", 2, "names no host")):
            self.assertEqual(self.with_hosts([], text), code)
            self.assertIn(says, self.errors)
        for arguments, says in ((["--hosts", "none.txt"], "a file, got 'none.txt'"),
                                (["--hosts"], "a file, got '--'"),
                                (["--min-workers", "x"], "takes a number, got 'x'"),
                                (["--hosts", "hosts.txt"], "needs {workers}")):
            self.assertEqual(self.run_with([], *arguments, "--", "fails"), 2, arguments)
            self.assertIn(says, self.errors)
        self.assertEqual(self.lines("calls"), [])

    def test_wrong_use(self):
        for arguments, says in (
                ([], "no command"), (["--"], "no command"),
                (["--max-restarts", "x", "--", "fails"], "'x'"),
                (["--max-restarts"], "takes a number"),
                (["fails"], "unknown argument 'fails'")):
            self.assertEqual(self.run_with([], *arguments), 2, arguments)
            self.assertIn(says, self.errors)
        self.assertEqual(self.run_with([], "--", "no_such_command"), 127)
        self.assertIn("no such command: no_such_command", self.errors)
        self.assertEqual(self.lines("calls"), [])


if __name__ == "__main__":
    unittest.main()
