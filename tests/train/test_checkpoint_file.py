"""One checkpoint file: what goes in comes out, and what was damaged is refused."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import CheckpointError
from headrace_train.checkpoint import CheckpointReader, read_checkpoint, write_checkpoint
from headrace_train.checkpoint.encoding import dataset_paths
from headrace_train.checkpoint.files import remove_stale
from tests.children import run_program

if TYPE_CHECKING:
    from pathlib import Path

h5py: Any = pytest.importorskip("h5py")

DTYPES = (
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "bfloat16"),
)


DAMAGE = r"not a Headrace checkpoint|of format|truncated|was changed|is damaged|no sense"


def strings(*items: bytes) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def make(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    numpy_dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return (np.random.default_rng(0).uniform(0, 100, shape)).astype(numpy_dtype)


def sample() -> dict[str, np.ndarray]:
    return {
        "layer/w": make("float32", (3, 4)),
        "layer/w/Adam": make("float32", (3, 4)),
        "scale": make("bfloat16", (5,)),
        "words": strings(b"one", b"", b"t\0wo"),
        "step": np.array(7),
    }


def check_equal(actual: dict[str, np.ndarray], expected: dict[str, Any]) -> None:
    assert list(actual) == list(expected)
    for name, array in expected.items():
        assert actual[name].dtype == np.asarray(array).dtype, name
        assert actual[name].shape == np.asarray(array).shape, name
        np.testing.assert_array_equal(actual[name], array, err_msg=name)


class TestRoundTrip:
    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
    def test_numbers(self, tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        tensors = {"x": make(dtype, shape)}
        write_checkpoint(tmp_path / "a.h5", tensors)
        check_equal(read_checkpoint(tmp_path / "a.h5"), tensors)

    @pytest.mark.parametrize(
        "array",
        [
            strings(b"one", b"", b"t\0wo\0", bytes(range(256))),
            strings(b"a", b"b", b"c", b"d").reshape(2, 2),
            strings(b"alone").reshape(()),
            strings(b"").reshape(()),
            strings(),
        ],
        ids=["vector", "matrix", "scalar", "empty scalar", "empty vector"],
    )
    def test_strings(self, tmp_path: Path, array: np.ndarray) -> None:
        write_checkpoint(tmp_path / "a.h5", {"x": array})
        check_equal(read_checkpoint(tmp_path / "a.h5"), {"x": array})

    def test_text_becomes_bytes(self, tmp_path: Path) -> None:
        tensors = {"o": np.array(["é", "b"], object), "u": np.array(["x"]), "s": np.array([b"y"])}
        write_checkpoint(tmp_path / "a.h5", tensors)
        expected = {"o": strings("é".encode(), b"b"), "u": strings(b"x"), "s": strings(b"y")}
        check_equal(read_checkpoint(tmp_path / "a.h5"), expected)

    def test_layouts_do_not_matter(self, tmp_path: Path) -> None:
        base = np.arange(24.0).reshape(2, 3, 4)
        tensors = {
            "fortran": np.asfortranarray(base),
            "strided": base[:, ::-2],
            "big-endian": base.astype(">f8"),
            "broadcast": np.broadcast_to(np.float32(3), (4, 4)),
        }
        write_checkpoint(tmp_path / "a.h5", tensors)
        expected = tensors | {"big-endian": base}
        check_equal(read_checkpoint(tmp_path / "a.h5"), expected)

    def test_special_values_keep_their_bits(self, tmp_path: Path) -> None:
        bits = np.array([0x7FC00001, 0xFF800000, 0x80000000, 1], np.uint32).view(np.float32)
        write_checkpoint(tmp_path / "a.h5", {"x": bits})
        assert read_checkpoint(tmp_path / "a.h5")["x"].tobytes() == bits.tobytes()

    def test_step_metadata_and_producers(self, tmp_path: Path) -> None:
        metadata = {"epochs": 3, "note": "é", "nested": {"a": [1, None]}}
        write_checkpoint(tmp_path / "a.h5", {}, step=12, metadata=metadata)
        with CheckpointReader(tmp_path / "a.h5") as reader:
            assert (reader.step, reader.metadata) == (12, metadata)
            assert reader.producers["h5py"] == h5py.__version__
            assert set(reader.producers) == {"headrace-core", "headrace-train", "h5py", "numpy"}
        write_checkpoint(tmp_path / "a.h5", {})
        with CheckpointReader(tmp_path / "a.h5") as reader:
            assert (reader.step, reader.metadata) == (None, {})

    def test_many_tensors(self, tmp_path: Path) -> None:
        tensors = {f"block{i // 7}/weight_{i}": np.full(2, i) for i in range(1000)}
        write_checkpoint(tmp_path / "a.h5", tensors)
        check_equal(read_checkpoint(tmp_path / "a.h5"), tensors)

    def test_equal_tensors_give_equal_files(self, tmp_path: Path) -> None:
        for name in ("a.h5", "b.h5"):
            write_checkpoint(tmp_path / name, sample(), step=1)
        assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()

    def test_reads_some_names(self, tmp_path: Path) -> None:
        write_checkpoint(tmp_path / "a.h5", sample())
        assert list(read_checkpoint(tmp_path / "a.h5", ["step", "layer/w"])) == ["step", "layer/w"]

    def test_a_reader_stays_with_the_file_it_opened(self, tmp_path: Path) -> None:
        write_checkpoint(tmp_path / "a.h5", {"x": np.zeros(3)})
        with CheckpointReader(tmp_path / "a.h5") as reader:
            write_checkpoint(tmp_path / "a.h5", {"x": np.ones(3)})
            assert reader.read()["x"].tolist() == [0, 0, 0]


class TestNames:
    @pytest.mark.parametrize(
        "names",
        [
            ["a", "a/b", "a/b/c"],
            ["a/b", "a"],
            ["a", "a/", "a//", "/a", "/"],
            [".", "..", "a/./b", "a/../b", "%2E", "%"],
            ["a", "a/:value", "a/:value/x", ":value"],
            ["x\0y", "x%00y", "ü/Ω", " ", "a:0", "a:1"],
        ],
    )
    def test_any_set_of_names_can_be_stored(self, tmp_path: Path, names: list[str]) -> None:
        tensors = {name: np.array([i]) for i, name in enumerate(names)}
        write_checkpoint(tmp_path / "a.h5", tensors)
        check_equal(read_checkpoint(tmp_path / "a.h5"), tensors)

    @given(st.sets(st.text("a.:%/\0é", min_size=1, max_size=6), max_size=12))
    @settings(max_examples=200, deadline=None)
    def test_paths_never_collide(self, names: set[str]) -> None:
        paths = dataset_paths(names).values()
        assert len(set(paths)) == len(names)
        folders = {path[:i] for path in paths for i, mark in enumerate(path) if mark == "/"}
        assert not folders & set(paths)
        parts = {part for path in paths for part in path.split("/")}
        assert not parts & {"", ".", ".."}

    def test_plain_h5py_finds_tensors_under_their_names(self, tmp_path: Path) -> None:
        tensors = sample()
        write_checkpoint(tmp_path / "a.h5", tensors, step=9)
        with h5py.File(tmp_path / "a.h5") as file:
            assert file.attrs["step"] == 9
            np.testing.assert_array_equal(file["layer/w/Adam"][()], tensors["layer/w/Adam"])
            np.testing.assert_array_equal(file["layer/w/:value"][()], tensors["layer/w"])
            assert file["scale"].attrs["headrace_dtype"] == "bfloat16"
            bits = file["scale"][()].view(ml_dtypes.bfloat16)
            np.testing.assert_array_equal(bits, tensors["scale"])
            assert [item.tobytes() for item in file["words"]] == list(tensors["words"])
            assert file["step"][()] == 7


class TestRefusals:
    def test_names_all_that_cannot_be_stored(self, tmp_path: Path) -> None:
        tensors = {
            "fine": np.zeros(2),
            "time": np.zeros(2, "datetime64[s]"),
            "objects": np.array([1, None], object),
            "\ud800": np.zeros(1),
            "": np.zeros(1),
        }
        with pytest.raises(CheckpointError, match="4 of 5 tensors cannot be stored") as caught:
            write_checkpoint(tmp_path / "a.h5", tensors)
        for part in ("'time': datetime64", "'objects': an object of type int", "not be empty"):
            assert part in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("metadata", [{"x": object()}, {"x": float("nan")}, {"x": b""}])
    def test_metadata_that_is_not_json(self, tmp_path: Path, metadata: dict[str, Any]) -> None:
        with pytest.raises(CheckpointError, match="metadata of a checkpoint must be what JSON"):
            write_checkpoint(tmp_path / "a.h5", {}, metadata=metadata)

    def test_folders_that_are_wrong(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointError, match=r"no folder .*nowhere for the checkpoint a.h5"):
            write_checkpoint(tmp_path / "nowhere" / "a.h5", {})
        with pytest.raises(CheckpointError, match="is a folder, expected the name of a file"):
            write_checkpoint(tmp_path, {})
        with pytest.raises(CheckpointError, match=r"cannot be read: .*Is a folder"):
            read_checkpoint(tmp_path)
        with pytest.raises(CheckpointError, match=r"there is no checkpoint .*a\.h5"):
            read_checkpoint(tmp_path / "a.h5")

    def test_names_that_are_not_there(self, tmp_path: Path) -> None:
        write_checkpoint(tmp_path / "a.h5", sample())
        with pytest.raises(CheckpointError, match="2 of 3 tensors are not in") as caught:
            read_checkpoint(tmp_path / "a.h5", ["layer/v", "step", "zzz"])
        assert "'layer/v', did you mean 'layer/w'?" in str(caught.value)
        assert "'zzz'\n" in f"{caught.value}\n"

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            (b"", "is not a Headrace checkpoint: it is empty"),
            (b"PK\x03\x04 some archive, and more of it", "it starts with b'PK"),
            (b"headrace-check", "its first line is cut off or damaged"),
            (b"headrace-checkpoint one\n" + b"x" * 600, "its first line is cut off or damaged"),
            (b"headrace-checkpoint 9 0000000002 00000000\n{}", "is a checkpoint of format 9"),
            (b"headrace-checkpoint 1 9999999999 00000000\n{}", "ends inside its header"),
        ],
    )
    def test_foreign_files(self, tmp_path: Path, content: bytes, match: str) -> None:
        (tmp_path / "a.h5").write_bytes(content)
        with pytest.raises(CheckpointError, match=match):
            read_checkpoint(tmp_path / "a.h5")

    def test_foreign_hdf5(self, tmp_path: Path) -> None:
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["x"] = np.zeros(3)
        with pytest.raises(CheckpointError, match="an HDF5 file that something else wrote"):
            read_checkpoint(tmp_path / "a.h5")


def tampered(path: Path, change: dict[str, Any], tensor: dict[str, Any]) -> None:
    """Rewrite the header with values a stranger chose and a checksum that fits them."""
    content = path.read_bytes()
    length = int(content[22:32])
    manifest = json.loads(content[42 : 42 + length])
    manifest["tensors"][0].update(tensor)
    manifest.update(change)
    text = json.dumps(manifest, separators=(",", ":")).encode()
    line = b"headrace-checkpoint 1 %010d %08x\n" % (len(text), zlib.crc32(text))
    size = content.index(b"\x89HDF")
    path.write_bytes((line + text).ljust(size, b"\0") + content[size:])


class TestDamage:
    def test_every_flipped_byte_is_noticed(self, tmp_path: Path) -> None:
        file = tmp_path / "a.h5"
        write_checkpoint(file, {"x": make("float32", (40,)), "s": strings(b"ab", b"c")}, step=1)
        content = bytearray(file.read_bytes())
        # Every byte of the header, and a sample of the rest.
        positions = [*range(1100), *range(1100, len(content), 13)]
        for position in positions:
            content[position] ^= 0x41
            file.write_bytes(content)
            with pytest.raises(CheckpointError, match=DAMAGE), CheckpointReader(file) as reader:
                reader.verify()
            content[position] ^= 0x41

    def test_every_truncation_is_noticed(self, tmp_path: Path) -> None:
        file = tmp_path / "a.h5"
        write_checkpoint(file, {"x": make("float32", (40,))})
        content = file.read_bytes()
        for size in [*range(64), *range(64, len(content), 31), len(content) - 1]:
            file.write_bytes(content[:size])
            with pytest.raises(CheckpointError, match=r"truncated|not a Headrace checkpoint"):
                read_checkpoint(file)

    def test_names_the_damaged_tensors(self, tmp_path: Path) -> None:
        file = tmp_path / "a.h5"
        write_checkpoint(file, {name: make("float32", (99,)) + i for i, name in enumerate("abc")})
        with CheckpointReader(file) as reader:
            entries = reader.tensors
        content = bytearray(file.read_bytes())
        for name in "ac":
            content[(entries[name].offset or 0) + 50] ^= 1
        file.write_bytes(content)
        with (
            CheckpointReader(file) as reader,
            pytest.raises(CheckpointError, match=r"is damaged:\n  tensor 'a': .*\n  tensor 'c': "),
        ):
            reader.verify()
        with pytest.raises(CheckpointError, match=r"is damaged: tensor 'a': the checksum is"):
            read_checkpoint(file)
        assert list(read_checkpoint(file, ["b"])) == ["b"]

    def test_hdf5_is_not_given_damaged_structures(self, tmp_path: Path) -> None:
        file = tmp_path / "a.h5"
        write_checkpoint(file, {"x": np.zeros(3)})
        content = bytearray(file.read_bytes())
        content[content.index(b"\x89HDF") + 30] ^= 0xFF
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match="checksum of the structures between its tensors"):
            read_checkpoint(file)

    def test_a_file_edited_with_h5py_is_refused(self, tmp_path: Path) -> None:
        write_checkpoint(tmp_path / "a.h5", {"x": np.zeros(3)})
        with h5py.File(tmp_path / "a.h5", "a") as file:
            file["y"] = np.ones(100)
        with pytest.raises(CheckpointError, match="was changed after it was written"):
            read_checkpoint(tmp_path / "a.h5")

    @pytest.mark.parametrize(
        ("change", "tensor"),
        [
            ({"tensors": None}, {}),
            ({"metadata": []}, {}),
            ({"step": "three"}, {}),
            ({"step": True}, {}),
            ({"block_bytes": -1}, {}),
            ({"producers": {"a": 1}}, {}),
            ({}, {"shape": [2**40]}),
            ({}, {"shape": [2**40], "nbytes": 2**42}),
            ({}, {"shape": [-1]}),
            ({}, {"shape": 4}),
            ({}, {"offset": 0}),
            ({}, {"offset": None}),
            ({}, {"dtype": "float33"}),
            ({}, {"dtype": "resource"}),
            ({}, {"dtype": "string", "offset": None, "shape": [2**30]}),
            ({}, {"name": "y"}),
            ({}, {"name": 3}),
        ],
    )
    def test_headers_that_make_no_sense(
        self, tmp_path: Path, change: dict[str, Any], tensor: dict[str, Any]
    ) -> None:
        file = tmp_path / "a.h5"
        write_checkpoint(file, {"x": np.zeros(4, np.float32), "y": np.zeros(2)})
        tampered(file, change, tensor)
        with pytest.raises(CheckpointError, match="has a header that makes no sense"):
            read_checkpoint(file)

    def test_headers_that_lie_about_the_datasets(self, tmp_path: Path) -> None:
        file = tmp_path / "a.h5"
        for tensor, match in (
            ({"crc32": 7}, "tensor 'x': the checksum is"),
            ({"dtype": "string", "offset": None}, "structures"),
        ):
            write_checkpoint(file, {"x": np.zeros(4, np.float32)})
            tampered(file, {}, tensor)
            with pytest.raises(CheckpointError, match=match):
                read_checkpoint(file)


class TestWriting:
    def test_replaces_an_old_file_and_leaves_nothing_else(self, tmp_path: Path) -> None:
        for value in (1, 2):
            write_checkpoint(tmp_path / "a.h5", {"x": np.full(3, value)})
        assert read_checkpoint(tmp_path / "a.h5")["x"].tolist() == [2, 2, 2]
        assert [file.name for file in tmp_path.iterdir()] == ["a.h5"]
        umask = os.umask(0)
        os.umask(umask)
        assert (tmp_path / "a.h5").stat().st_mode & 0o777 == 0o666 & ~umask

    def test_a_failed_write_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_checkpoint(tmp_path / "a.h5", {"x": np.zeros(3)})

        def refuse(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(
            CheckpointError, match=r"could not be written: .*No space left"
        ) as caught:
            write_checkpoint(tmp_path / "a.h5", {"x": np.ones(3)})
        assert "untouched" in str(caught.value)
        assert read_checkpoint(tmp_path / "a.h5")["x"].tolist() == [0, 0, 0]
        assert [file.name for file in tmp_path.iterdir()] == ["a.h5"]

    def test_a_full_disk_is_one_clear_error(self, tmp_path: Path) -> None:
        write_checkpoint(tmp_path / "a.h5", {"x": np.zeros(3)})
        script = """
            import resource, signal, sys
            import numpy as np
            from headrace.errors import CheckpointError
            from headrace_train.checkpoint import read_checkpoint, write_checkpoint
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            try:
                write_checkpoint(sys.argv[1], {f"x{i}": np.ones(50_000) for i in range(9)})
            except CheckpointError as fault:
                assert "could not be written" in str(fault), fault
                assert len(str(fault).splitlines()) <= 12
                assert read_checkpoint(sys.argv[1])["x"].tolist() == [0, 0, 0]
                print("refused")
        """
        done = run_program(script, tmp_path / "a.h5")
        assert done.stdout == "refused\n", done.stderr
        assert [file.name for file in tmp_path.iterdir()] == ["a.h5"]

    def test_arrays_that_change_meanwhile_are_noticed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        array = np.zeros(1000)
        original = h5py.File.__init__

        def change_first(self: Any, *args: Any, **kwargs: Any) -> None:
            array[:] = 1
            original(self, *args, **kwargs)

        monkeypatch.setattr(h5py.File, "__init__", change_first)
        with pytest.raises(
            CheckpointError, match="'x' was changed while the checkpoint was written"
        ):
            write_checkpoint(tmp_path / "a.h5", {"x": array})
        assert list(tmp_path.iterdir()) == []

    def test_removes_what_killed_processes_left(self, tmp_path: Path) -> None:
        script = """
            import os, signal, sys
            from pathlib import Path
            from headrace_train.checkpoint.files import replaced
            with replaced(Path(sys.argv[1])):
                os.kill(os.getpid(), signal.SIGKILL)
        """
        run_program(script, tmp_path / "a.h5", check=False)
        (left,) = tmp_path.iterdir()
        assert left.name.startswith(".a.h5.")
        mine = left.with_name(left.name.replace(left.name.split(".")[-4], str(os.getpid())))
        foreign = left.with_name(".a.h5.elsewhere.1.00000000.tmp")
        for file in (mine, foreign):
            file.touch()
        assert remove_stale(tmp_path) == []
        assert remove_stale(tmp_path, older_than_s=0) == [left]
        assert sorted(tmp_path.iterdir()) == sorted([mine, foreign])


def test_listing_and_verifying_need_no_h5py(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a.h5", sample())
    script = """
        import sys
        from headrace_train.checkpoint import CheckpointReader
        with CheckpointReader(sys.argv[1]) as reader:
            reader.verify()
            print(len(reader.tensors), "h5py" in sys.modules)
    """
    done = run_program(script, tmp_path / "a.h5")
    assert done.stdout == "5 False\n", done.stderr
