"""A headless Chromium, driven over pipes: no port, no driver, no package.

Messages of the DevTools protocol are JSON texts that end with a zero byte; the
browser reads them on its descriptor 3 and writes on 4.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium-headless-shell")


class Browser:
    """One page. `complaints`: errors in its console, exceptions, what the
    browser itself logs. `requests`: all addresses that it asked for."""

    def __init__(self, width=1280, height=900, timeout=60):
        self.timeout = timeout
        self.complaints = []
        self.requests = []
        self.pending = b""
        self.last_id = 0
        self.folder = tempfile.TemporaryDirectory(
            prefix="abtrain-chromium-", ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def descriptors():
            # Out of the way first: one of them may be 3 or 4 already.
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [PROGRAM, "--remote-debugging-pipe", "--disable-gpu", *sandbox,
             "--disable-dev-shm-usage", f"--user-data-dir={self.folder.name}",
             f"--window-size={width},{height}", "about:blank"],
            preexec_fn=descriptors, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call(
            "Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        self.folder.cleanup()

    def message(self):
        deadline = time.monotonic() + self.timeout
        while b"\0" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise EOFError(f"the browser is gone: {self.process.wait()}")
            self.pending += part
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def listen(self, message):
        method, event = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            words = [str(a.get("value", a.get("description"))) for a in event["args"]]
            self.complaints.append("console: " + " ".join(words))
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append("exception: " + details.get("exception", {}).get(
                "description", details["text"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append("log: " + event["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"][:200])

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.last_id:
                break
            self.listen(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def evaluate(self, expression):
        """The value of a JavaScript expression; of a promise, what it gives."""
        answer = self.call("Runtime.evaluate", expression=expression,
                           awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, path):
        self.complaints.clear()
        self.requests.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())

    def wait_for(self, expression):
        deadline = time.monotonic() + self.timeout
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.05)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path=None):
        """The whole page as PNG."""
        picture = base64.b64decode(self.call(
            "Page.captureScreenshot", captureBeyondViewport=True)["data"])
        if path:
            pathlib.Path(path).write_bytes(picture)
        return picture
