"""Pictures of what TensorBoard shows of the example with summaries, in Chromium.

``python tests/docs/look_in_tensorboard.py FOLDER``, or ``nox -s tensorboard``, writes a
PNG file for each dashboard. It fails where TensorBoard does not have what it should show; that it
shows it well is for people to see.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from browser import Browser, find_browser

EXAMPLE = Path(__file__).parents[2] / "examples" / "mnist_summaries.py"
DASHBOARDS = ("scalars", "histograms", "images", "graphs")
# TensorBoard draws after the page is loaded, and does not say when it is done.
DRAWING_S = 8.0
START_S = 60.0


def free_port() -> int:
    """Return the number of a port that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def ask(address: str) -> Any:
    """Return what TensorBoard answers, waiting for it to start."""
    end = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return json.load(answer)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def main() -> None:
    """Train, start TensorBoard, and take the pictures."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    program = find_browser()
    if program is None:
        raise SystemExit("there is no Chromium here; its path may be in CHROMIUM")
    with tempfile.TemporaryDirectory() as logs:
        subprocess.run([sys.executable, str(EXAMPLE), f"--logdir={logs}"], check=True, timeout=200)
        port = free_port()
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", logs, "--port", str(port)]
        server = subprocess.Popen([*command, "--host", "127.0.0.1", "--load_fast", "false"])
        try:
            address = f"http://127.0.0.1:{port}"
            runs = ask(f"{address}/data/runs")
            while sorted(runs) != ["test", "train"]:
                time.sleep(1.0)
                runs = ask(f"{address}/data/runs")
            tags = ask(f"{address}/data/plugin/scalars/tags")
            assert "cross_entropy" in tags["train"], tags
            with Browser(program, timeout_s=60.0) as browser:
                browser.size(1400, 900, "light")
                for name in DASHBOARDS:
                    browser.open(f"{address}/?picture={name}#{name}")
                    time.sleep(DRAWING_S)
                    (folder / f"{name}.png").write_bytes(browser.picture())
        finally:
            server.terminate()
            server.wait(30)
    names = ", ".join(f"{name}.png" for name in DASHBOARDS)
    sys.stdout.write(f"look at {names} in {folder}\n")


if __name__ == "__main__":
    main()
