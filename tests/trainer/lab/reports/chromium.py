"""A real headless Chromium, driven through the DevTools protocol over its pipe: what a page asks for and says."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
)


@dataclass
class Visit:
    """What a page did while it was open.

    Attributes:
        requests: every URL that was asked for, the page's own first; refused ones too.
        complaints: errors and warnings on the console, exceptions, refusals by the content security policy.
        answers: what the expressions gave, in order.
    """

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)


def visit(
    page: Path, profile: Path, expressions: list[str], *, width: int = 1100, dark: bool = False, seconds: float = 60.0
) -> Visit:
    """Open a file in a window of ``width`` pixels, wait until it is loaded, evaluate JavaScript expressions in it."""
    assert EXECUTABLE is not None
    to_browser, ours_out = os.pipe()
    ours_in, from_browser = os.pipe()
    command = f'exec "{EXECUTABLE}" {QUIET} --user-data-dir="{profile}" 3<&{to_browser} 4>&{from_browser}'
    browser = subprocess.Popen(
        ["/bin/bash", "-c", command],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        return _Session(ours_in, ours_out, time.monotonic() + seconds).run(page, expressions, width, dark)
    finally:
        browser.kill()
        browser.wait()
        os.close(ours_in)
        os.close(ours_out)


class _Session:
    def __init__(self, incoming: int, outgoing: int, deadline: float) -> None:
        self.incoming, self.outgoing, self.deadline = incoming, outgoing, deadline
        os.set_blocking(incoming, False)
        self.buffer = b""
        self.number = 0
        self.session: str | None = None
        self.seen = Visit()
        self.loaded = False

    def run(self, page: Path, expressions: list[str], width: int, dark: bool) -> Visit:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Network", "Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 640
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.loaded = False
        self.call("Page.navigate", url=page.as_uri())
        while not self.loaded:
            self.handle(self.next())
        for expression in expressions:
            result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
            self.seen.answers.append(result["result"].get("value"))
        return self.seen

    def call(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        os.write(
            self.outgoing, json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode() + b"\0"
        )
        while True:
            answer = self.next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.handle(answer)

    def handle(self, event: dict[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.seen.requests.append(found["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.seen.complaints.append(found["exceptionDetails"]["text"])
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
            self.seen.complaints.append(found["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning"):
            self.seen.complaints.append(str(found["args"]))

    def next(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            if time.monotonic() > self.deadline:
                raise TimeoutError("Chromium did not answer in time")
            try:
                self.buffer += os.read(self.incoming, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)
