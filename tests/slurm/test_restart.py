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
            process = self.start("--max-restarts", "3", "--", "stops")
            self.wait_for("running")
            process.send_signal(getattr(signal, "SIG" + name))
            errors = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 75, errors)
            self.assertEqual(self.lines("signals"), [name])
            self.assertIn(f"exit code 75 after SIG{name}: no restart", errors)
        self.assertEqual(self.lines("pauses"), [])

    def test_a_stopped_command_that_fails_is_not_started_again(self):
        self.script("stops", STOPS.replace("exit 75", "exit 1"))
        process = self.start("--", "stops")
        self.wait_for("running")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)

    def test_a_signal_during_the_pause_ends_it(self):
        self.script("sleep",
                    "#!/bin/bash\ntouch pausing\nexec /bin/sleep 60\n")
        (self.folder / "codes").write_text("69\n")
        process = self.start("--", "fails")
        self.wait_for("pausing")
        process.send_signal(signal.SIGUSR1)
        errors = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, 75, errors)
        self.assertIn("SIGUSR1 during the pause after exit code 69", errors)
        self.assertEqual(len(self.lines("calls")), 1)

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
