"""The backends of the matrix: which device the samples run on, and what is set for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import headrace as hr
from headrace.extend.plugins import host, use_host
from headrace_testing.plugin_checks.fake_devices import count_of, host_with_stand_in
from headrace_testing.sessions import use_target

EXECUTORS = {
    "plain": {"HEADRACE_EXECUTOR": "plain"},
    "compiled": {"HEADRACE_EXECUTOR": "plan"},
    "compiled at once": {"HEADRACE_EXECUTOR": "plan", "HEADRACE_COMPILE_AFTER": "0"},
}
# Environments of backends; any other name is a kind of devices that is installed.
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "cpu": {"HEADRACE_ONEDNN": "/dev/null"},
    "cpu with oneDNN": {},
    "cuda, pretended": {},
    "cpu of another rank": {},
}


@dataclass(frozen=True, slots=True)
class Ready:
    """A backend that samples can run on.

    Attributes:
        device: The device's name.
        ends: Whether this process runs the samples; the other ranks of a job only serve.
    """

    device: str
    ends: bool = True


def why_not(backend: str) -> str:
    """Return why a backend cannot be had here, empty where it can."""
    if backend == "cpu with oneDNN":
        found = _onednn()
        return "" if found and "not installed" not in found else "oneDNN is not installed"
    if backend == "cuda, pretended":
        return "" if host_with_stand_in("cuda") else "headrace-backend-cuda is not installed"
    if backend == "cpu of another rank":
        return "" if find_spec("headrace_mpi") else "headrace-dist-mpi is not installed"
    if backend in ENVIRONMENTS:
        return "" if count_of(backend) else f"there is no {backend}"
    kind = host().devices.get(backend)
    if kind is None:
        there = ", ".join(found.name for found in host().devices)
        return f"no plugin provides devices of the kind {backend!r} (there are: {there})"
    count, why = host().count_devices(kind)
    return "" if count else why or f"there is no {backend}"


@contextmanager
def opened(backend: str) -> Iterator[Ready]:
    """Make a backend the one in use."""
    if backend == "cpu of another rank":
        cluster: Any = hr.dist.Cluster(ps=1)
        with cluster, use_target(cluster.target):
            yield Ready("/job:ps/task:0/device:cpu:0", cluster.is_chief)
        return
    plugins = host_with_stand_in("cuda") if backend == "cuda, pretended" else None
    kind = "cuda" if plugins else "cpu" if backend in ENVIRONMENTS else backend
    with use_host(plugins) if plugins else nullcontext():
        yield Ready(f"{kind}:0")


def _onednn() -> str:
    """Return what the plugin of the cpu says of oneDNN, empty where it says nothing."""
    return next((str(r["onednn"]) for r in host().diagnoses() if "onednn" in r), "")
