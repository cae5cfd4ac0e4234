"""Chromium, driven by its own protocol over a pipe: no driver, no further package.

References:
    Chrome DevTools Protocol, https://chromedevtools.github.io/devtools-protocol/: messages are
    JSON, each ended by a zero byte, on the file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Names of colour schemes as the protocol has them.


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe, away from the descriptors that the browser is going to have."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


class BrowserError(RuntimeError):
    """The browser ended, did not answer in time, or refused a command."""


def find_browser() -> str | None:
    """Return the Chromium of this machine: ``$CHROMIUM``, or one of the usual names."""
    return next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *NAMES))), None)


class Browser:
    """A headless Chromium with one page.

    Args:
        program: The program to start.
        timeout_s: Seconds within which it must answer each command.

    Attributes:
        messages: Errors and warnings of the console since they were last taken, and exceptions.
        requests: The addresses that were asked for since they were last taken.
    """

    def __init__(self, program: str, timeout_s: float = 30.0) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._timeout_s = timeout_s
        self._numbers = itertools.count(1)
        self._rest = b""
        self._events: list[str] = []
        # Processes of the browser that outlive it for a moment may still write there.
        self._profile = tempfile.TemporaryDirectory(
            prefix="headrace-site-", ignore_cleanup_errors=True
        )
        read_end, self._to = _pipe()
        self._from, write_end = _pipe()
        # The browser expects its ends as descriptors 3 and 4; the shell puts them there.
        shell = f'exec "$0" "$@" 3<&{read_end} 4>&{write_end} {read_end}<&- {write_end}>&-'
        flags = ["--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--hide-scrollbars"]
        flags += ["--no-sandbox", "--no-first-run", "--disable-dev-shm-usage"]
        flags += ["--disable-background-networking", "--disable-component-update"]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, program, *flags, f"--user-data-dir={self._profile.name}"],
            pass_fds=(read_end, write_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        os.close(write_end)
        self._session: str | None = None
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    # -- what callers do

    def size(self, width: int, height: int, scheme: str) -> None:
        """Give the page a size in pixels and a colour scheme, "light" or "dark"."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, address: str) -> None:
        """Show a page, and wait until it is loaded."""
        self._events.clear()
        self.call("Page.navigate", url=address)
        self._wait(lambda: "Page.loadEventFired" in self._events)

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression, as JSON gives it."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"a check failed in the page: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self, *, whole: bool = False) -> bytes:
        """Return what is seen, or the whole page, as PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    # -- the protocol

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the browser's answer to a command."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answers: list[dict[str, Any]] = []
        self._wait(lambda: bool(answers), number, answers)
        if "error" in answers[0]:
            raise BrowserError(f"{method}: {answers[0]['error']}")
        result: dict[str, Any] = answers[0]["result"]
        return result

    def _wait(
        self,
        done: Callable[[], bool],
        number: int | None = None,
        answers: list[dict[str, Any]] | None = None,
    ) -> None:
        end = time.monotonic() + self._timeout_s
        while not done():
            for message in self._read(end):
                if answers is not None and message.get("id") == number:
                    answers.append(message)
                elif "method" in message:
                    self._event(message["method"], message["params"])

    def _read(self, end: float) -> list[dict[str, Any]]:
        ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise BrowserError(f"the browser did not answer within {self._timeout_s:g} s")
        new = os.read(self._from, 1 << 20)
        if not new:
            raise BrowserError("the browser ended")
        *whole, self._rest = (self._rest + new).split(b"\0")
        return [json.loads(text) for text in whole]

    def _event(self, name: str, told: dict[str, Any]) -> None:
        self._events.append(name)
        if name == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif name == "Runtime.exceptionThrown":
            self.messages.append(f"exception: {told['exceptionDetails'].get('text', '')}")
        elif name == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            words = [str(arg.get("value", arg.get("description", ""))) for arg in told["args"]]
            self.messages.append(f"{told['type']}: {' '.join(words)}")
        elif name == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            entry = told["entry"]
            self.messages.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
