"""IDX files: what is written reads back, and what is damaged is refused."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headrace.errors import DatasetError
from headrace_train.datasets import read_idx, write_idx

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["array.idx", "array.idx.gz"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0, 7)])
def test_round_trip(tmp_path: Path, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape)).reshape(shape) - 3).astype(dtype)
    write_idx(tmp_path / name, array)
    result = read_idx(tmp_path / name)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


def test_bytes_are_those_of_the_format(tmp_path: Path) -> None:
    write_idx(tmp_path / "a", np.array([[1, 2], [3, -4]], np.int16))
    expected = "00000b02 00000002 00000002 0001 0002 0003 fffc"
    assert (tmp_path / "a").read_bytes() == bytes.fromhex(expected)


def test_reads_a_byte_swapped_array_written(tmp_path: Path) -> None:
    write_idx(tmp_path / "a", np.array([1, 2], ">i4")[::-1])
    assert read_idx(tmp_path / "a").tolist() == [2, 1]


def test_gzip_is_seen_from_the_content(tmp_path: Path) -> None:
    write_idx(tmp_path / "a.gz", np.arange(3, dtype=np.uint8))
    (tmp_path / "a.gz").rename(tmp_path / "plain")
    assert read_idx(tmp_path / "plain").tolist() == [0, 1, 2]


GOOD = bytes.fromhex("00000802 00000002 00000003 010203040506")
# Without the time of day: test processes that work side by side must collect the same names.
ZIPPED = gzip.compress(GOOD, mtime=0)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", r"is not an IDX file: it starts with the bytes \(none\)"),
        (
            b"\x89HDF\r\n",
            "is not an IDX file: it starts with the bytes 89 48 44 46, expected 00 00",
        ),
        (bytes.fromhex("00000702 00000001"), "is not an IDX file"),
        (bytes.fromhex("00000800"), "is not an IDX file"),
        (GOOD[:10], "ends inside its header, which announces 2 dimensions"),
        (GOOD[:-1], r"is truncated: its header announces uint8 \[2, 3\].* 6 bytes, and 5 follow"),
        (GOOD + b"\0", r"has trailing bytes: .* 6 bytes, and more follow"),
        (bytes.fromhex("00000803") + b"\xff" * 12, "is truncated: .* and 0 follow"),
        (ZIPPED[:-9], "is a damaged gzip file"),
        (ZIPPED[:-8] + b"\0" * 8, "is a damaged gzip file"),
        (ZIPPED[:10] + b"\xff" * 20, "is a damaged gzip file"),
        (gzip.compress(GOOD[:-1], mtime=0), "is truncated"),
        (gzip.compress(GOOD + b"\0", mtime=0), "has trailing bytes"),
    ],
)
def test_refuses_damaged_files(tmp_path: Path, content: bytes, match: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DatasetError, match=match):
        read_idx(tmp_path / "a")


def test_refuses_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"there is no file .*nowhere"):
        read_idx(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_idx(tmp_path)


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.zeros(2, np.complex64), "cannot hold complex64; it holds uint8, int8"),
        (np.zeros((), np.uint8), r"cannot hold an array of shape \(\)"),
    ],
)
def test_refuses_to_write_what_the_format_lacks(
    tmp_path: Path, array: np.ndarray, match: str
) -> None:
    with pytest.raises(DatasetError, match=match):
        write_idx(tmp_path / "a", array)
    assert not (tmp_path / "a").exists()
