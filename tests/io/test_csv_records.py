"""Records of comma-separated values; their fields are those of ``decode_csv``."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import InvalidArgumentError
from headrace_io.csv_records import read_csv_records

CONTENTS = {
    "lines": (b"a,b\nc,d\n", [b"a,b", b"c,d"]),
    "last line without an end": (b"a,b\nc,d", [b"a,b", b"c,d"]),
    "returns": (b"a,b\rc,d\r", [b"a,b", b"c,d"]),
    "both": (b"a,b\r\nc,d\r\n\r\n", [b"a,b", b"c,d", b""]),
    "mixed": (b"a\rb\nc\r\nd", [b"a", b"b", b"c", b"d"]),
    "empty lines": (b"\n\na\n\n", [b"", b"", b"a", b""]),
    "nothing": (b"", []),
    "ends in quotes": (b'a,"b\nc"\nd\n', [b'a,"b\nc"', b"d"]),
    "all ends in quotes": (b'"\r\n\n\r",x\r\ny\r\n', [b'"\r\n\n\r",x', b"y"]),
    "doubled quotes": (b'"a""\n""b",c\nd', [b'"a""\n""b",c', b"d"]),
    "open quotes": (b'a,"b\nc\n', [b'a,"b\nc\n']),
    "quotes inside of a field": (b'a"b,"c\nd,e\n', [b'a"b,"c', b"d,e"]),
    "text behind quotes": (b'"a"x,"b\rc\n', [b'"a"x,"b', b"c"]),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("compressed", [False, True])
def test_records(name: str, compressed: bool, tmp_path: Path) -> None:
    content, expected = CONTENTS[name]
    path = tmp_path / "f.csv"
    path.write_bytes(gzip.compress(content) if compressed else content)
    found = list(read_csv_records(str(path), "GZIP" if compressed else ""))
    assert [item for _, _, item in found] == expected
    # They follow one another, and each can be begun at.
    assert [begin for begin, _, _ in found[1:]] == [end for _, end, _ in found[:-1]]
    for i, (_, end, _) in enumerate(found):
        rest = read_csv_records(str(path), "GZIP" if compressed else "", start=end)
        assert [item for _, _, item in rest] == expected[i + 1 :]


def _read(path: Path, content: bytes, **settings: Any) -> list[bytes]:
    path.write_bytes(content)
    return [item for _, _, item in read_csv_records(str(path), **settings)]


def test_settings_of_records(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    assert _read(path, b'a,"b\nc"\n', quotes=False) == [b'a,"b', b'c"']
    assert _read(path, b'a;"b\nc";d', delimiter=";") == [b'a;"b\nc";d']
    assert _read(path, b"h,i\na,b\n", header=True) == [b"a,b"]
    assert _read(path, b"h,i", header=True) == []
    with pytest.raises(InvalidArgumentError, match="cannot read the header of the file"):
        _read(path, b"", header=True)


def test_a_quoted_field_across_pieces_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    field = b"x\n" * 400_000
    assert _read(path, b'a,"' + field + b'"\nb,c\n') == [b'a,"' + field + b'"', b"b,c"]
