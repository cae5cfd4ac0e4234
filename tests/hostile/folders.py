"""Strange things where files and folders should be, and disks that are full or may not be written.

Each use of the library meets each of them: it works, or is refused; it does not block, and what was
there before is there afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import resource
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace.cli.main import main
from headrace.errors import PluginError

from .campaign import Campaign, WrongResultError, environment

PLACE = "place"
_NOBODY = 65534


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


KINDS: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda path: None,
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a folder": Path.mkdir,
    "an empty file": Path.touch,
    "a file of zeros": lambda path: path.write_bytes(bytes(4096)),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to a folder": lambda path: path.symlink_to("."),
    "a link to an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to a full device": lambda path: path.symlink_to("/dev/full"),
    "a link to memory": lambda path: path.symlink_to("/proc/self/mem"),
    "a file that may not be read": lambda path: (path.write_bytes(b"x"), path.chmod(0)),
    "a folder that may not be read": lambda path: (path.mkdir(), path.chmod(0)),
}


def _model() -> Any:
    v = hr.Variable(np.ones(2000, np.float32), name="v")
    return v, hr.train.Saver()


def _with_model(use: Callable[[Any, Any], Any]) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        v, saver = _model()
        session.run(v.initializer)
        use(session, saver)


def _run(build: Callable[[], Any]) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        fetch = build()
        session.run(hr.tables_initializer())
        session.run(fetch)


def _lookup() -> Any:
    return hr.lookup.index_table_from_file(PLACE).lookup(hr.constant(["a"]))


def _idx() -> None:
    from headrace_train.datasets import read_idx

    read_idx(PLACE)


def _command(*words: str) -> None:
    with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
        code = main([*words, PLACE])
    if code:
        raise PluginError("the command says what is wrong")


def _compiled() -> None:
    cache = f"{Path.cwd()}/{PLACE}"
    with (
        environment(HEADRACE_CACHE=cache, HEADRACE_COMPILE_AFTER="0"),
        hr.Graph().as_default(),
        hr.Session() as session,
    ):
        x = hr.placeholder(hr.float32, [None])
        if session.run(hr.sin(x) * 2.0 + 1.0, {x: [0.0]}).tolist() != [1.0]:
            raise WrongResultError("2 sin(0) + 1 is not 1")


def _monitored() -> None:
    with hr.Graph().as_default():
        step = hr.train.create_global_step()
        go = hr.assign_add(step, 1)
        with hr.train.MonitoredTrainingSession(checkpoint_dir=PLACE) as session:
            session.run(go)


def _summaries() -> None:
    writer = hr.summary.FileWriter(PLACE)
    writer.add_summary(hr.Summary(), 1)
    writer.close()


def _saved_model(session: Any, saver: Any) -> None:
    v = hr.global_variables()[0]
    hr.saved_model.simple_save(session, PLACE, {"x": v.value()}, {"y": v * 2.0})


def _loaded() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        hr.saved_model.load(session, ["serve"], PLACE)


def _written_records() -> None:
    with hr.python_io.TFRecordWriter(PLACE) as writer:
        writer.write(b"x" * 8192)


READS: dict[str, Callable[[], Any]] = {
    "restore": lambda: _with_model(lambda session, saver: saver.restore(session, PLACE)),
    "latest_checkpoint": lambda: hr.train.latest_checkpoint(PLACE),
    "checkpoint_exists": lambda: hr.train.checkpoint_exists(PLACE),
    "get_checkpoint_state": lambda: hr.train.get_checkpoint_state(PLACE),
    "load_checkpoint": lambda: hr.train.load_checkpoint(PLACE),
    "list_variables": lambda: hr.train.list_variables(PLACE),
    "import_meta_graph": lambda: hr.train.import_meta_graph(PLACE),
    "saved_model.load": _loaded,
    "lookup": lambda: _run(_lookup),
    "read_idx": _idx,
    "checkpoint ls": lambda: _command("checkpoint", "ls"),
    "show": lambda: _command("show"),
    "draw": lambda: _command("draw", "graph"),
    "HEADRACE_CACHE": _compiled,
    "HEADRACE_DATA": lambda: _with_data(),
}
WRITES: dict[str, Callable[[], Any]] = {
    "save": lambda: _with_model(lambda session, saver: saver.save(session, PLACE)),
    "save into": lambda: _with_model(lambda session, saver: saver.save(session, f"{PLACE}/model")),
    "export_meta_graph": lambda: _with_model(lambda s, saver: saver.export_meta_graph(PLACE)),
    "write_graph": lambda: hr.train.write_graph(hr.Graph(), ".", PLACE),
    "simple_save": lambda: _with_model(_saved_model),
    "FileWriter": _summaries,
    "TFRecordWriter": _written_records,
    "MonitoredTrainingSession": _monitored,
}


def _with_data() -> None:
    with environment(HEADRACE_DATA=PLACE):
        hr.train.datasets.load_mnist()


@contextlib.contextmanager
def _small_files(most: int) -> Iterator[None]:
    """Let no file grow beyond a size in the block: the disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@contextlib.contextmanager
def _nobody() -> Iterator[None]:
    """Have no rights in the block, also where root runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    _import_all()
    for name in (".", *map(str, Path().iterdir())):
        with contextlib.suppress(OSError):
            os.chown(name, _NOBODY, _NOBODY, follow_symlinks=False)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@functools.cache
def _import_all() -> None:
    """Use everything once: who is nobody may not even read Python's own modules."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for use in (*WRITES.values(), *READS.values()):
            with contextlib.suppress(Exception):
                use()
            shutil.rmtree(PLACE, ignore_errors=True)
        os.chdir(here)


def strange_things(draw: random.Random, number: int) -> None:
    """Let a use of the library meet a strange thing."""
    uses = [*READS.values(), *WRITES.values()]
    use, kind = uses[number // len(KINDS)], list(KINDS)[number % len(KINDS)]
    if use is _written_records and kind == "a pipe":
        return  # Records may be written to whoever reads a pipe, and that one is waited for.
    KINDS[kind](Path(PLACE))
    # Only rights need somebody who lacks them.
    with _nobody() if "may not" in kind else contextlib.nullcontext():
        use()


_SIZES = (0, 1, 100, 1000, 5000, 8000, 20_000)


def full_disks(draw: random.Random, number: int) -> None:
    """Write where only so many bytes fit into a file; what was there before stays as it was."""
    size, write = _SIZES[number % len(_SIZES)], list(WRITES.values())[number // len(_SIZES)]
    with hr.Graph().as_default(), hr.Session() as session:
        v = hr.Variable(3.0, name="before")
        session.run(v.initializer)
        hr.train.Saver().save(session, "./before", 1)
    try:
        with _small_files(size):
            write()
    finally:
        reader = hr.train.load_checkpoint("./before-1")
        if reader.get_tensor("before") != 3.0:
            raise WrongResultError("what was saved before is another value")
        if hr.train.latest_checkpoint(".") is None:
            raise WrongResultError("no checkpoint is left")


def read_only(draw: random.Random, number: int) -> None:
    """Write into a folder that may not be written."""
    write = list(WRITES.values())[number]
    folder = Path.cwd()
    folder.chmod(0o555)
    try:
        with _nobody():
            os.chdir(folder)
            write()
    finally:
        folder.chmod(0o755)
    raise WrongResultError("it wrote where it may not")


CAMPAIGNS = (
    Campaign(
        "folders",
        "strange things where files should be",
        len(KINDS) * (len(READS) + len(WRITES)),
        strange_things,
        False,
    ),
    Campaign("full-disks", "files that may not grow", len(_SIZES) * len(WRITES), full_disks, False),
    Campaign("read-only", "folders that may not be written", len(WRITES), read_only, False),
)
