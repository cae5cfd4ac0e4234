"""The cache of compiled kernels: whole entries only, bounded, shared by many processes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time

import pytest

from headrace.errors import ConfigError
from headrace.settings import CACHE_SIZE
from headrace_cpu.native import build as build_module
from headrace_cpu.native import report
from headrace_cpu.native.build import KernelSource, Vocabulary, build
from headrace_cpu.native.cache import KernelCache, kernel_cache
from tests.children import run_program

ADD = """
define void @add(i64 %block) {
  %words = inttoptr i64 %block to ptr
  %old = load i64, ptr %words
  %new = add i64 %old, 41
  store i64 %new, ptr %words
  ret void
}
"""


@pytest.fixture
def cache(tmp_path):
    return KernelCache(tmp_path / "kernels", 10_000)


def entries(folder):
    return sorted(folder.glob("*.kernel"))


def reset(monkeypatch):
    monkeypatch.setattr(build_module, "_ADDRESSES", {})


def test_what_is_put_is_got(cache):
    assert cache.get("a") is None
    cache.put("a", b"code")
    assert cache.get("a") == b"code"
    assert cache.get("b") is None
    cache.put("a", b"")
    assert cache.get("a") == b""
    cache.drop("a")
    assert cache.get("a") is None
    cache.drop("a")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
        lambda data: b"another program's file",
    ],
    ids=["empty", "cut early", "cut late", "longer", "a bit", "foreign"],
)
def test_damaged_entries_are_removed(cache, damage):
    cache.put("a", bytes(range(200)))
    (place,) = entries(cache.folder)
    place.write_bytes(damage(place.read_bytes()))
    assert cache.get("a") is None
    assert not place.exists()
    cache.put("a", b"again")
    assert cache.get("a") == b"again"


def test_the_entries_used_least_recently_go(cache):
    for index in range(9):
        cache.put(f"k{index}", bytes(1000))
        os.utime(cache.folder / f"k{index}.kernel", (1000 + index, 1000 + index))
    assert cache.get("k0") is not None  # It is the one used last now.
    cache.limit = 5000
    assert cache.shrink() <= 4000
    left = {p.stem for p in entries(cache.folder)}
    assert left == {"k0", "k7", "k8"}
    assert cache.size() <= 4000


def test_writing_keeps_the_cache_within_its_limit(tmp_path):
    cache = KernelCache(tmp_path, 20_000)
    for index in range(100):
        cache.put(f"k{index}", bytes(900))
    assert cache.size() <= 20_000 * 1.3
    assert cache.get("k99") is not None


def test_drafts_of_dead_writers_are_removed(cache):
    cache.put("a", b"code")
    old, young = cache.folder / "b.1.x.tmp", cache.folder / "b.2.x.tmp"
    for draft in (old, young):
        draft.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.shrink()
    assert not old.exists()
    assert young.exists()
    assert cache.get("a") == b"code"


def test_clearing_removes_all(cache):
    cache.put("a", b"code")
    cache.put("b", b"code")
    cache.clear()
    assert cache.size() == 0


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(report, "_said", set())
    monkeypatch.setattr(report, "_told", False)
    monkeypatch.delenv("HEADRACE_QUIET", raising=False)
    file = tmp_path / "file"
    file.write_text("no folder")
    cache = KernelCache(file / "kernels", 1000)
    with caplog.at_level(logging.INFO, "headrace"):
        cache.put("a", b"code")
        cache.put("b", b"code")
    assert cache.get("a") is None
    assert cache.size() == 0
    assert len(caplog.messages) == 1
    assert "HEADRACE_CACHE" in caplog.messages[0]


def test_kernels_run_where_nothing_can_be_kept(tmp_path, monkeypatch, fresh, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("HEADRACE_CACHE", str(blocked))
    with caplog.at_level(logging.INFO, "headrace"):
        (place,) = build([KernelSource("add", ADD, "llvm")])
    assert called(place) == 42
    kept, compiled = caplog.messages
    assert kept.startswith("compiled kernels are not kept on disk: ")
    assert compiled.startswith("compiled 1 kernel in ")


def called(place):
    import numpy as np

    from headrace_cpu.native.memory import address
    from headrace_cpu.native.threads import launch

    block = np.array([1], np.int64)
    launch(place, address(block))()
    return int(block[0])


def test_a_second_process_takes_kernels_from_the_cache(fresh, monkeypatch, caplog):
    source = KernelSource("add", ADD, "llvm")
    with caplog.at_level(logging.INFO, "headrace"):
        (first,) = build([source])
        assert build([source]) == [first]
        reset(monkeypatch)
        (second,) = build([source])
    assert called(first) == called(second) == 42
    assert len(entries(fresh)) == 1
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("compiled 1 kernel in ")


@pytest.mark.parametrize("content", [b"not an object file", None])
def test_entries_that_cannot_be_loaded_are_compiled_again(fresh, monkeypatch, content):
    source = KernelSource("add", ADD, "llvm")
    build([source])
    (place,) = entries(fresh)
    key = place.stem
    # Whole by its checksum, and yet of no use: another format, or another kernel's code.
    other = KernelSource("other", ADD.replace("@add", "@other"), "llvm")
    build([other])
    (foreign,) = [p for p in entries(fresh) if p != place]
    kernel_cache().put(key, content or kernel_cache().get(foreign.stem))
    reset(monkeypatch)
    (address,) = build([source])
    assert called(address) == 42
    reset(monkeypatch)
    assert called(build([source])[0]) == 42


def test_keys_depend_on_text_name_language_environment_and_toolchain(fresh, monkeypatch, tmp_path):
    source = KernelSource("add", ADD, "llvm")
    build([source])
    monkeypatch.setattr(build_module, "toolchain", lambda: "another LLVM, another processor")
    reset(monkeypatch)
    build([source])
    assert len(entries(fresh)) == 2
    build([KernelSource("add", ADD.replace("41", "40"), "llvm")])
    assert len(entries(fresh)) == 3
    monkeypatch.undo()

    module = tmp_path / "kernel_words.py"
    monkeypatch.syspath_prepend(tmp_path)
    found = set()
    for text in ("x = 1\n", "x = 2\n"):
        module.write_text(text)
        build_module.version.cache_clear()
        found.add(build_module.version(("kernel_words",)))
    assert len(found) == 2
    assert "kernel_words" not in sys.modules


def test_a_missing_environment_is_named(fresh):
    with pytest.raises(ModuleNotFoundError, match="kernels need the module no_such_words"):
        build([KernelSource("k", "def k(block): 0", vocabulary=Vocabulary(("no_such_words",)))])


def test_the_size_of_the_cache_is_a_setting(monkeypatch):
    monkeypatch.setenv("HEADRACE_CACHE_SIZE", "2MiB")
    assert kernel_cache().limit == 2 * 2**20
    monkeypatch.delenv("HEADRACE_CACHE_SIZE")
    assert CACHE_SIZE.read() == 256 * 2**20
    monkeypatch.setenv("HEADRACE_CACHE_SIZE", "much")
    with pytest.raises(ConfigError, match="HEADRACE_CACHE_SIZE must be a number of bytes"):
        kernel_cache()


WORKER = """
import sys, time
from pathlib import Path
from headrace_cpu.native.cache import kernel_cache
me = int(sys.argv[1])
gate = Path(sys.argv[2])
cache = kernel_cache()
while not gate.exists():
    time.sleep(0.001)
bad = 0
for turn in range(12):
    for key in range(6):
        code = bytes([key]) * (20_000 + key)
        found = cache.get(f"k{key}")
        bad += found not in (None, code)
        if found is None or (turn + me) % 7 == key:
            cache.put(f"k{key}", code)
        if me == 0 and turn % 3 == 2:
            place = cache.folder / f"k{key}.kernel"
            place.write_bytes(place.read_bytes()[:1000]) if place.exists() else None
print(bad)
"""


@pytest.mark.slow
def test_sixteen_processes_share_a_folder(tmp_path):
    env = {**os.environ, "HEADRACE_CACHE": str(tmp_path / "c"), "HEADRACE_QUIET": "1"}
    gate = tmp_path / "gate"
    command = [sys.executable, "-c", WORKER]
    jobs = [
        subprocess.Popen([*command, str(i), str(gate)], env=env, stdout=-1, stderr=-1, text=True)
        for i in range(16)
    ]
    gate.write_text("go")
    try:
        results = [job.communicate(timeout=50) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert [out.strip() for out, _ in results] == ["0"] * 16, [e for _, e in results if e]
    assert not list((tmp_path / "c" / "cpu").glob("*.tmp"))


COMPILER = """
import sys, numpy as np
from headrace_cpu.native.build import KernelSource, build
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import launch
sources = [KernelSource("add", sys.argv[1].replace("41", str(40 + i)), "llvm") for i in range(8)]
block = np.zeros(1, np.int64)
for place in build(sources):
    launch(place, address(block))()
print(block[0], "headrace_cpu.native.translate" in sys.modules)
"""


def test_processes_compile_the_same_kernels(tmp_path):
    env = {**os.environ, "HEADRACE_CACHE": str(tmp_path), "HEADRACE_QUIET": "1"}
    command = [sys.executable, "-c", COMPILER, ADD]
    jobs = [subprocess.Popen(command, env=env, stdout=-1, stderr=-1, text=True) for _ in range(6)]
    try:
        results = [job.communicate(timeout=55) for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    total = sum(40 + i for i in range(8))
    assert [out.strip() for out, _ in results] == [f"{total} False"] * 6, results[0][1]
    assert len(entries(tmp_path / "cpu")) == 8


def test_threads_compile_a_kernel_once(fresh, caplog):
    found = []
    with caplog.at_level(logging.INFO, "headrace"):
        threads = [
            threading.Thread(target=lambda: found.append(build([KernelSource("add", ADD, "llvm")])))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 8
    assert len({tuple(f) for f in found}) == 1
    assert len(caplog.messages) == 1


def test_reports_of_one_block_are_one_line(fresh, caplog):
    with caplog.at_level(logging.INFO, "headrace"), report.compiling():
        for number in (1, 2, 3):
            build([KernelSource("add", ADD.replace("41", str(number)), "llvm")])
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("compiled 3 kernels in ")


def test_only_the_first_report_of_a_program_is_for_everybody(fresh, caplog):
    with caplog.at_level(logging.DEBUG, "headrace"):
        for number in (1, 2, 3):
            build([KernelSource("add", ADD.replace("41", str(number)), "llvm")])
    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.INFO, logging.DEBUG, logging.DEBUG]
    assert all(text.startswith("compiled 1 kernel in ") for text in caplog.messages)


def test_reports_name_what_came_from_the_cache():
    assert str(report.Compiled(12, 0.84, 0)) == "compiled 12 kernels in 0.8 s"
    assert str(report.Compiled(1, 2.0, 3)) == "compiled 1 kernel in 2.0 s, 3 from the cache"


@pytest.mark.parametrize(("quiet", "expected"), [("", True), ("0", True), ("1", False)])
def test_reports_are_seen_on_stderr_unless_silenced(quiet, expected):
    code = "from headrace_cpu.native.report import notice; notice('hello'); notice('hello')"
    done = run_program(code, env={"HEADRACE_QUIET": quiet})
    assert done.stderr == ("headrace: hello\n" if expected else "")


def test_reports_follow_the_programs_own_logging():
    code = (
        "import logging; logging.basicConfig(level=logging.WARNING)\n"
        "from headrace_cpu.native.report import notice; notice('hello')"
    )
    done = run_program(code)
    assert done.stderr == ""


def test_used_entries_become_younger(cache):
    cache.put("a", b"code")
    (place,) = entries(cache.folder)
    os.utime(place, (1000, 1000))
    assert cache.get("a") == b"code"
    assert place.stat().st_mtime > time.time() - 3600


def test_kernels_are_written_without_looking_at_all_others(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    looks = []
    monkeypatch.setattr(KernelCache, "shrink", lambda self: looks.append(1) or 0)
    for number in range(200):
        kernel_cache().put(f"{number:064x}", b"code" * 100)
    # Together they are far smaller than the share of the limit after which it looks again.
    assert len(looks) <= 1
    assert len(list((tmp_path / "cpu").iterdir())) == 200
