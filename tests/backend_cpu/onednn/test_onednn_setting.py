"""A library that ``HEADRACE_ONEDNN`` names and that cannot be used is said once, and by doctor."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from headrace import settings
from headrace_cpu.diagnosis import diagnose
from headrace_cpu.onednn import library


def _missing(folder: Path) -> str:
    return str(folder / "nosuch.so")


def _folder(folder: Path) -> str:
    return str(folder)


def _text(folder: Path) -> str:
    (folder / "text.so").write_text("no library")
    return str(folder / "text.so")


def _empty(folder: Path) -> str:
    (folder / "empty.so").touch()
    return str(folder / "empty.so")


def _cut(folder: Path) -> str:
    (folder / "cut.so").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(20))
    return str(folder / "cut.so")


def _dangling(folder: Path) -> str:
    (folder / "link.so").symlink_to(folder / "nowhere")
    return str(folder / "link.so")


def _pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe.so")
    return str(folder / "pipe.so")


def _bare(folder: Path) -> str:
    return "libnosuch.so.77"


def _other(folder: Path) -> str:
    return "libc.so.6"


CASES = (_missing, _folder, _text, _empty, _cut, _dangling, _pipe, _bare, _other)


@pytest.mark.parametrize("case", CASES)
def test_what_is_no_library_is_said_once_and_by_doctor(case, tmp_path, monkeypatch):
    value = case(tmp_path)
    monkeypatch.setenv("HEADRACE_ONEDNN", value)
    monkeypatch.setattr(settings, "_TOLD", set())
    library._find.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert library.load() is None
            assert library.load() is None
        assert len(said) == 1
        assert f"HEADRACE_ONEDNN is {value!r}, which" in str(said[0].message)
        problems = diagnose()["problems"]
        assert any("oneDNN cannot be used" in what for what, _ in problems)
    finally:
        library._find.cache_clear()
