"""Checkpoints of strangers, folders with strange things in them, and names that no file can have.

Each is one clear error, or is passed over with a warning; nothing blocks, and nothing is touched.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    CheckpointError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from headrace_train.checkpoint import (
    CheckpointReader,
    get_checkpoint_state,
    latest_checkpoint,
    read_checkpoint,
    update_checkpoint_state,
    write_checkpoint,
)
from headrace_train.checkpoint.slices import Slice, joined

h5py: Any = pytest.importorskip("h5py")

pytestmark = pytest.mark.timeout(60)

NAMES = {
    "a zero character": "a\0b",
    "a surrogate": "a\ud800b",
    "nothing but a zero character": "\0",
    "a zero character at the end": "model\0",
    "a low surrogate": "\udc80",
    "a surrogate at the end": "model\udfff",
    "surrogates in the wrong order": "a\udc00\ud800b",
    "300 letters": "x" * 300,
    "300 bytes": "é" * 150,
    "a long folder": "y" * 300 + "/model",
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        server.bind(path.name)
    finally:
        os.chdir(here)
        server.close()


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_a_pipe(path: Path) -> None:
    behind = path.with_name(f".{path.name}.pipe")
    os.mkfifo(behind)
    path.symlink_to(behind)


def link_to_a_folder(path: Path) -> None:
    path.symlink_to(path.parent)


def link_to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name(f".{path.name}.gone"))


KINDS: list[Callable[[Path], None]] = [
    pipe,
    unix_socket,
    Path.mkdir,
    link_to_itself,
    link_to_a_device,
    link_to_a_pipe,
    link_to_a_folder,
    link_to_nothing,
]
IDS = [make.__name__.replace("_", " ") for make in KINDS]


@pytest.mark.needs("backend-cpu")
class TestNames:
    @pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
    def test_are_checked_before_anything_is_touched(self, name: str, tmp_path: Path) -> None:
        with hr.Graph().as_default(), hr.Session() as session:
            v = hr.Variable(1.0)
            session.run(v.initializer)
            saver = hr.train.Saver()
            saver.save(session, tmp_path / "good")
            before = sorted(tmp_path.iterdir())
            path = f"{tmp_path}/{name}"
            message = "holds a zero character|a lone surrogate|expected at most 252"
            uses: list[Callable[[], Any]] = [
                lambda: saver.save(session, path),
                lambda: saver.save(session, path, 1),
                lambda: saver.restore(session, path),
                lambda: CheckpointReader(path),
                lambda: update_checkpoint_state(tmp_path, path),
            ]
            if "/" not in name:
                good = tmp_path / "good"
                uses.append(lambda: saver.save(session, good, latest_filename=name))
            for use in uses:
                with pytest.raises(CheckpointError, match=message) as caught:
                    use()
                assert len(str(caught.value).splitlines()) <= 12
            assert sorted(tmp_path.iterdir()) == before
            assert latest_checkpoint(tmp_path) == f"{tmp_path}/good"
            saver.restore(session, tmp_path / "good")

    def test_a_variable_with_a_surrogate_in_its_name(self) -> None:
        with hr.Graph().as_default():
            v = hr.Variable(1.0)
            with pytest.raises(CheckpointError, match="holds a lone surrogate"):
                hr.train.Saver({"a\udc80": v})

    @pytest.mark.parametrize("path", ["", "folder/", ".", "folder/.."])
    def test_of_no_file(self, path: str) -> None:
        with hr.Graph().as_default(), hr.Session() as session:
            v = hr.Variable(1.0)
            session.run(v.initializer)
            with pytest.raises(CheckpointError, match="expected one that ends in the name of a"):
                hr.train.Saver().save(session, path)


HEAD = '{"format": "headrace-checkpoint-record", "version": 1,'


class TestFolders:
    @pytest.mark.needs("backend-cpu")
    @pytest.mark.parametrize("make", KINDS, ids=IDS)
    def test_only_regular_files_are_opened(
        self, make: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with hr.Graph().as_default(), hr.Session() as session:
            v = hr.Variable(1.0)
            session.run(v.initializer)
            saver = hr.train.Saver(max_to_keep=1)
            for name in ("a.h5", "model-9.h5", "other.index", "b"):
                make(tmp_path / name)
            saver.save(session, tmp_path / "model", 1)
            (tmp_path / "checkpoint").unlink()
            make(tmp_path / "checkpoint")
            assert latest_checkpoint(tmp_path) == f"{tmp_path}/model-1"
            (tmp_path / "checkpoint.json").unlink()
            make(tmp_path / "checkpoint.json")
            assert get_checkpoint_state(tmp_path) is None
            for name in ("a", "model-9", "b"):
                assert not hr.train.checkpoint_exists(f"{tmp_path}/{name}")
                for use in (lambda path: saver.restore(session, path), CheckpointReader):
                    with pytest.raises(
                        CheckpointError, match=r"no regular file|no checkpoint|read|valid"
                    ):
                        use(tmp_path / name)
            saver.restore(session, tmp_path / "model-1")

    @pytest.mark.parametrize(
        "names",
        [["a\0b"], ["../outside"], ["x" * 300], [""], [".."], ["a/b"], ["\ud800"]],
        ids=["zero", "outside", "long", "empty", "parent", "folder", "surrogate"],
    )
    def test_records_with_names_that_cannot_be(
        self, names: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        from headrace_train.checkpoint.record import read_record

        (tmp_path / "outside.h5").write_bytes(b"headrace-checkpoint ")
        entry = {"series": "s", "time": 1.0, "run": "other", "kept": "latest", "metric": None}
        content = {
            "format": "headrace-checkpoint-record",
            "version": 1,
            "checkpoints": [*({**entry, "name": name} for name in names), {**entry, "name": "ok"}],
            "keep_after": {},
        }
        file = tmp_path / "checkpoint.json"
        file.write_text(json.dumps(content))
        with caplog.at_level(logging.WARNING):
            assert [one.name for one in read_record(file).entries] == ["ok"]
        assert "passed over a checkpoint that" in caplog.text

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "[" * 100_000,
            '{"format": "headrace-checkpoint-record", "version": 2}',
            HEAD + ' "checkpoints": 3}',
            HEAD + ' "checkpoints": [{"name": 1}], "keep_after": {}}',
            HEAD + ' "checkpoints": [], "keep_after": {"a": 1' + "0" * 400 + "}}",
        ],
        ids=range(7),
    )
    def test_records_that_make_no_sense(
        self, text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        from headrace_train.checkpoint.record import Record, read_record

        (tmp_path / "checkpoint.json").write_text(text)
        assert read_record(tmp_path / "checkpoint.json") == Record()
        assert "passed over the record" in caplog.text


def seal(path: Path, tensors: dict[str, Any], block: int = 1024, **others: Any) -> None:
    """Put a header of ours, with checksums that fit, before HDF5 that a stranger made."""
    content = path.read_bytes()
    manifest: dict[str, Any] = {
        "step": None,
        "metadata": {},
        "producers": {},
        "tensors": [{"name": name, **entry} for name, entry in tensors.items()],
        "block_bytes": block,
        "file_bytes": len(content),
        "structure_crc32": zlib.crc32(content[block:]),
        **others,
    }
    text = json.dumps(manifest).encode()
    line = b"headrace-checkpoint 1 %010d %08x\n" % (len(text), zlib.crc32(text))
    assert len(line + text) <= block
    path.write_bytes((line + text).ljust(block, b"\0") + content[block:])


VLEN = h5py.vlen_dtype(np.uint8)
WORDS = [np.frombuffer(word, np.uint8) for word in (b"one", b"two", b"three")]


def _filter(file: Any) -> None:
    data = file.create_dataset("x", (3,), VLEN, chunks=(3,), compression="gzip")
    data[:] = WORDS


def _chunks(file: Any) -> None:
    data = file.create_dataset("x", (3,), VLEN, chunks=(1,))
    data[:] = WORDS


def _soft_link(file: Any) -> None:
    file.create_dataset("y", (3,), VLEN)[:] = WORDS
    file["x"] = h5py.SoftLink("/y")


def _external_link(file: Any) -> None:
    file["x"] = h5py.ExternalLink("/etc/passwd", "/x")


def _external_storage(file: Any) -> None:
    file.create_dataset("x", (3,), "u1", external=[("/etc/passwd", 0, 3)])


def _virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((3,), "u1")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (3,))
    file.create_virtual_dataset("x", layout)


def _group(file: Any) -> None:
    file.create_group("x")


def _numbers(file: Any) -> None:
    file.create_dataset("x", data=np.arange(3))


def _other_shape(file: Any) -> None:
    file.create_dataset("x", (4,), VLEN)[:3] = WORDS


def _nothing(file: Any) -> None:
    file.create_group("y")


def _real_text(file: Any) -> None:
    file.create_dataset("x", data=["one", "two", "three"], dtype=h5py.string_dtype())


FORGERIES = [
    (_filter, "laid out as no checkpoint"),
    (_chunks, "laid out as no checkpoint"),
    (_soft_link, "a link to somewhere else"),
    (_external_link, "a link to somewhere else"),
    (_external_storage, "outside of the file"),
    (_virtual, "laid out as no checkpoint"),
    (_group, "it is no dataset"),
    (_numbers, "expected strings"),
    (_other_shape, r"its shape is \(4,\), expected \(3,\)"),
    (_nothing, "tensor 'x'"),
    (_real_text, "expected strings"),
]


class TestForgeries:
    @pytest.mark.parametrize(
        ("make", "match"), FORGERIES, ids=[make.__name__ for make, _ in FORGERIES]
    )
    def test_hdf5_that_our_writer_does_not_make(
        self, make: Callable[[Any], None], match: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.h5"
        with h5py.File(path, "w", userblock_size=1024) as file:
            make(file)
        entry = {"dtype": "string", "shape": [3], "nbytes": 11, "crc32": 0, "offset": None}
        seal(path, {"x": entry})
        with pytest.raises(CheckpointError, match=match):
            read_checkpoint(path)

    def test_one_string_that_stands_for_many(self, tmp_path: Path) -> None:
        # All elements point to one string of a megabyte: read at once they would take 20 GB.
        path = tmp_path / "a.h5"
        count = 20_000
        with h5py.File(path, "w", userblock_size=1024, libver=("v108", "v108")) as file:
            data = file.create_dataset("x", (count,), VLEN)
            data[0] = np.zeros(1 << 20, np.uint8)
            offset = data.id.get_offset()
        content = bytearray(path.read_bytes())
        content[offset : offset + 16 * count] = content[offset : offset + 16] * count
        path.write_bytes(content)
        entry = {"dtype": "string", "shape": [count], "nbytes": 1 << 20, "crc32": 0, "offset": None}
        seal(path, {"x": entry})
        with pytest.raises(CheckpointError, match="more than the 1048576 bytes"):
            read_checkpoint(path)

    def test_more_bytes_than_the_file_has(self, tmp_path: Path) -> None:
        path = tmp_path / "a.h5"
        with h5py.File(path, "w", userblock_size=1024) as file:
            _numbers(file)
        for entry in (
            {"dtype": "int64", "shape": [2**40], "nbytes": 2**43, "crc32": 0, "offset": 1024},
            {"dtype": "int64", "shape": [0, 2**62], "nbytes": 0, "crc32": 1, "offset": None},
            {"dtype": "string", "shape": [2**40], "nbytes": 0, "crc32": 0, "offset": None},
        ):
            copy = tmp_path / "copy.h5"
            copy.write_bytes(path.read_bytes())
            seal(copy, {"x": entry})
            with pytest.raises(CheckpointError, match=r"no sense|is damaged"):
                read_checkpoint(copy)

    @pytest.mark.parametrize(
        ("parts", "match"),
        [
            ([], "lists 0 parts"),
            ("x", "expected list"),
            ([{"file": "../../etc/passwd", "file_bytes": 1, "crc32": 0}], "is no name of a part"),
            ([{"file": "a\0b", "file_bytes": 1, "crc32": 0}], "is no name of a part"),
            ([{"file": "gone.h5", "file_bytes": 1, "crc32": 0}], "gone.h5 is not there"),
            ([{"file": "a.h5", "file_bytes": 1, "crc32": 0}] * 2, "a part is listed twice"),
            ([{"file": "b.h5", "file_bytes": 1, "crc32": 0}], "not the part that was written"),
            ([{"file": "a.h5", "file_bytes": 1, "crc32": 0}], "lists parts itself"),
        ],
        ids=["none", "no list", "outside", "zero", "gone", "twice", "other", "itself"],
    )
    def test_manifests_that_list_what_is_no_part(
        self, parts: Any, match: str, tmp_path: Path
    ) -> None:
        write_checkpoint(tmp_path / "b.h5", {"x": np.zeros(3)})
        path = tmp_path / "a.h5"
        with h5py.File(path, "w", userblock_size=2048) as file:
            file.create_group("y")
        seal(path, {}, 2048, parts=parts)
        content = path.read_bytes()
        path.write_bytes(content.replace(b"headrace-checkpoint 1", b"headrace-checkpoint 2", 1))
        with pytest.raises(CheckpointError, match=match):
            read_checkpoint(path)

    def test_bytes_that_are_no_truths(self, tmp_path: Path) -> None:
        path = tmp_path / "a.h5"
        write_checkpoint(path, {"x": np.array([True, False])})
        with CheckpointReader(path) as reader:
            offset = reader.tensors["x"].offset
        assert offset is not None
        found = read_checkpoint(path)["x"]
        assert found.view(np.uint8).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("x", "is no slice"),
        ("3 0,4", "takes 4 from 0 on, of 3"),
        ("3 4 0,1", "1 ranges for 2 extents"),
        ("3 0,1:0,1", "2 ranges for 1 extents"),
        ("-3 0,1", "is no slice"),
        ("9" * 30 + " -", "is no slice"),
        (" ", "is no slice"),
    ],
)
def test_slices_that_are_none(text: str, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        Slice.parse(text)


@pytest.mark.parametrize(
    ("names", "texts", "match"),
    [
        ("aa", ["", ""], "under one name"),
        ("aa", ["", "4 0,2"], "under one name"),
        ("a", ["4 0,2"], "have 2 of the 4 elements"),
        ("aa", ["4 0,2", "4 0,2"], "the same elements"),
        ("aa", ["4 0,2", "5 2,2"], "beside parts of"),
        ("aa", ["4 0,3", "4 3,1"], "beside parts of"),
    ],
)
def test_parts_that_do_not_fit(names: str, texts: list[str], match: str) -> None:
    slices = [Slice.parse(text) for text in texts]
    with pytest.raises(InvalidArgumentError, match=match):
        joined(list(names), slices, [np.zeros(2)] * len(texts))


@pytest.mark.needs("backend-cpu")
class TestArguments:
    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"builder": object()}, UnimplementedError, "takes no builder"),
            ({"write_version": 7}, InvalidArgumentError, "must be SaverDef.V1 or SaverDef.V2"),
            ({"var_list": "v"}, TypeError, "in a dict or a list, got 'v'"),
            ({"var_list": {"a": [1.0]}}, TypeError, "a list of the parts of a variable, got 1.0"),
            ({"max_to_keep": -1}, ValueError, "max_to_keep must be at least 1"),
            ({"best_is": "good"}, ValueError, "'lowest' or 'highest'"),
        ],
    )
    def test_that_a_saver_refuses(
        self, options: dict[str, Any], error: type[Exception], match: str
    ) -> None:
        with hr.Graph().as_default():
            hr.Variable(1.0)
            with pytest.raises(error, match=match):
                hr.train.Saver(**options)

    def test_that_save_refuses(self, tmp_path: Path) -> None:
        with hr.Graph().as_default(), hr.Session() as session:
            v = hr.Variable(1.0)
            session.run(v.initializer)
            saver = hr.train.Saver()
            path = tmp_path / "model"
            with pytest.raises(UnimplementedError, match="save_debug_info is not written"):
                saver.save(session, path, save_debug_info=True)
            with pytest.raises(TypeError, match="metric must be a number, got 'good'"):
                saver.save(session, path, metric="good")  # type: ignore[arg-type]
            with pytest.raises(CheckpointError, match="must be what JSON can hold"):
                saver.save(session, path, metadata={"x": object()})
            with pytest.raises(NotFoundError, match="not a valid checkpoint"):
                saver.restore(session, path)
            assert list(tmp_path.iterdir()) == []

    def test_a_report_of_what_does_not_fit(self, tmp_path: Path) -> None:
        with hr.Graph().as_default(), hr.Session() as session:
            hr.Variable([1.0, 2.0], name="same")
            hr.Variable([1.0], name="shape")
            hr.Variable(5.0, name="weights")
            session.run(hr.global_variables_initializer())
            path = hr.train.Saver().save(session, tmp_path / "model")
        with hr.Graph().as_default(), hr.Session() as session:
            same = hr.Variable([0.0, 0.0], name="same")
            shape = hr.Variable([0.0, 0.0], name="shape")
            weigths = hr.Variable(0.0, name="weigths")
            session.run(hr.global_variables_initializer())
            for sharded in (False, True):
                session.run(same.initializer)
                saver = hr.train.Saver(sharded=sharded)
                report = saver.restore(session, path, strict=False)
                assert report is not None
                assert report.restored == ("same",)
                assert report.missing == {"weigths": "weights"}
                assert report.unexpected == ("weights",)
                assert list(report.mismatched) == ["shape"]
                assert str(report).splitlines() == [
                    "restored 1",
                    "  'shape' has shape [2], in the checkpoint [1]",
                    "  'weigths' is not in it, did you mean 'weights'?",
                    "  in it and not asked for: 'weights'",
                ]
                assert session.run(same).tolist() == [1.0, 2.0]
                assert session.run([shape, weigths])[1] == 0.0
