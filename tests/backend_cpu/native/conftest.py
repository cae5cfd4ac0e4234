"""Processes that have compiled nothing yet."""

from __future__ import annotations

import pytest

from headrace_cpu.native import build as build_module
from headrace_cpu.native import report


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A process that has compiled nothing yet, with a cache of its own; it is this folder."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr(build_module, "_ADDRESSES", {})
    monkeypatch.setattr(report, "_said", set())
    monkeypatch.setattr(report, "_told", False)
    monkeypatch.delenv("HEADRACE_QUIET", raising=False)
    return tmp_path / "own" / "cpu"
