"""The cache of compiled kernels runs nothing that another user may have written."""

from __future__ import annotations

import logging
import os
import stat

import numpy as np
import pytest

from headrace_cpu.native import build as build_module
from headrace_cpu.native import report
from headrace_cpu.native.build import KernelSource, build
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import launch

SOURCE = """
define void @{name}(i64 %block) {{
  %words = inttoptr i64 %block to ptr
  %old = load i64, ptr %words
  %new = add i64 %old, {number}
  store i64 %new, ptr %words
  ret void
}}
"""


def source(number: int) -> KernelSource:
    name = f"kernel{number}"
    return KernelSource(name, SOURCE.format(name=name, number=number), "llvm")


def called(place: int) -> int:
    block = np.array([1], np.int64)
    launch(place, address(block))()
    return int(block[0])


def again(monkeypatch, number, caplog):
    """Build in what is a new process to the cache; return the result and the lines of notices."""
    monkeypatch.setattr(build_module, "_ADDRESSES", {})
    monkeypatch.setattr(report, "_told", False)
    caplog.clear()
    with caplog.at_level(logging.INFO, "headrace"):
        (place,) = build([source(number)])
    return called(place), caplog.messages


def test_folders_and_files_are_the_users_alone(fresh):
    before = os.umask(0)
    try:
        build([source(1)])
    finally:
        os.umask(before)
    (entry,) = fresh.glob("*.kernel")
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (fresh.parent, fresh, entry)]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o707, 0o720, 0o1777])
def test_a_folder_that_others_may_write_is_not_used(fresh, monkeypatch, caplog, bits):
    build([source(1)])
    (entry,) = fresh.glob("*.kernel")
    planted = entry.read_bytes()
    fresh.chmod(bits)
    value, said = again(monkeypatch, 1, caplog)
    assert value == 2
    refused, compiled = said
    assert refused.startswith("compiled kernels on disk are not used: ")
    assert "may be written by others" in refused
    assert "HEADRACE_CACHE to a folder that only you can write" in refused
    assert compiled.startswith("compiled 1 kernel")
    assert entry.read_bytes() == planted
    # Once in the life of a process.
    assert len(again(monkeypatch, 1, caplog)[1]) == 1


@pytest.mark.parametrize("bits", [0o666, 0o660, 0o606, 0o620, 0o602])
def test_a_planted_entry_is_not_run(fresh, monkeypatch, caplog, bits):
    """Another kernel's code, with a right checksum, in a file that others can write."""
    build([source(1)])
    (entry,) = fresh.glob("*.kernel")
    build([source(5)])
    (other,) = set(fresh.glob("*.kernel")) - {entry}
    entry.write_bytes(other.read_bytes())
    entry.chmod(bits)
    value, said = again(monkeypatch, 1, caplog)
    assert value == 2
    assert said[0].startswith("compiled kernels on disk are not used: ")
    # It was written anew, for the user alone.
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert again(monkeypatch, 1, caplog) == (2, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["entry", "folder", "base"])
def test_what_belongs_to_another_user_is_not_run(fresh, monkeypatch, caplog, which):
    build([source(1)])
    (entry,) = fresh.glob("*.kernel")
    os.chown({"entry": entry, "folder": fresh, "base": fresh.parent}[which], 12345, 12345)
    value, said = again(monkeypatch, 1, caplog)
    assert value == 2
    assert "belongs to another user (uid 12345)" in said[0]
