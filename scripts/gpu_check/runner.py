"""Runs commands one after the other within a budget of seconds, and logs their output."""
import os
import selectors
import shlex
import signal
import subprocess
import time


class NotRun(Exception):
    """Raised for a part that cannot run here, with the reason."""


class PartFailed(Exception):
    """Raised for a command that failed, or output that was not as expected; the `figures`
    found before still count."""

    def __init__(self, reason, figures=None):
        super().__init__(reason)
        self.figures = figures or {}


class Result:
    def __init__(self, code, output, seconds, timed_out):
        self.code, self.output = code, output
        self.seconds, self.timed_out = seconds, timed_out

    def ending(self):
        if self.timed_out:
            return f"stopped after {self.seconds:.0f} s"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        return f"exit code {self.code}"


class Runner:
    def __init__(self, log, start, budget, environment):
        self.log, self.environment = log, environment
        self.start, self.end = start, start + budget
        self.child = None

    def spent(self):
        return time.monotonic() - self.start

    def left(self):
        return self.end - time.monotonic()

    def say(self, text):
        self.write(f"[{self.spent():3.0f} s] {text}\n", show=True)

    def write(self, text, show=False):
        self.log.write(text)
        self.log.flush()
        if show:
            print(text, end="", flush=True)

    def run(self, command, limit=None, grace=10, show=False, **variables):
        """Runs a command for at most `limit` seconds, and never past the budget. Then it gets
        SIGTERM and, after `grace` seconds, SIGKILL, with all that it started."""
        command = [str(word) for word in command]
        self.say("$ " + shlex.join(command))
        limit = min(limit or self.left(), self.left())
        began = time.monotonic()
        try:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
                env={**self.environment, **variables})
        except OSError as error:
            raise PartFailed(f"{command[0]}: {error.strerror}") from error
        try:
            output, timed_out = self.collect(began + limit, grace, show)
            try:
                self.child.wait(timeout=0 if timed_out else grace)
            except subprocess.TimeoutExpired:
                timed_out = True
        finally:
            self.kill(signal.SIGKILL)  # also whatever it may have left behind
            code = self.child.wait()
            self.child.stdout.close()
            self.child = None
        return Result(code, output, time.monotonic() - began, timed_out)

    def collect(self, end, grace, show):
        """Returns the output until the command ends, and whether it had to be stopped."""
        parts, stopped_at = [], None
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            while True:
                now = time.monotonic()
                if stopped_at is None and now >= end:
                    stopped_at = now
                    self.write("[time is up]\n", show)
                    self.kill(signal.SIGTERM)
                if stopped_at is not None and now >= stopped_at + grace:
                    break
                if selector.select(timeout=0.2):
                    data = os.read(self.child.stdout.fileno(), 65536)
                    if not data:
                        break
                    text = data.decode(errors="replace")
                    parts.append(text)
                    self.write(text, show)
                elif self.child.poll() is not None and stopped_at is not None:
                    break
        return "".join(parts), stopped_at is not None

    def kill(self, number):
        try:
            os.killpg(self.child.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def check(self, command, **more):
        """Like run(), but raises PartFailed if the command fails."""
        result = self.run(command, **more)
        if result.code != 0 or result.timed_out:
            last = (result.output.strip().splitlines() or [""])[-1].strip()[:200]
            names = [os.path.basename(str(word)) for word in command[:2]]
            raise PartFailed(f"{' '.join(names)}: {result.ending()}: {last}")
        return result
