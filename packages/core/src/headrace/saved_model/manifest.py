"""The manifest of a saved model: one JSON file that says what there is, written last."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from headrace.dtypes import as_dtype
from headrace.errors import (
    HeadraceError,
    SavedModelDamagedError,
    SavedModelNotFoundError,
    shown,
)
from headrace.graph.attributes import brief, is_integer
from headrace.saved_model import constants
from headrace.saved_model.arrays import StoredArray
from headrace.saved_model.files import FileRecord, write_file
from headrace.saved_model.messages import (
    CooSparse,
    Dimension,
    SignatureDef,
    TensorInfo,
    TensorShape,
)
from headrace.version import __version__

FORMAT = "headrace.saved_model"
VERSION = 1
VARIABLES_FILE = f"{constants.VARIABLES_DIRECTORY}/{constants.VARIABLES_FILENAME}.npz"
_MAX_BYTES = 1 << 28
_FILES = re.compile(rf"graphs/[0-9]{{1,6}}\.json|{re.escape(VARIABLES_FILE)}|assets/[^/\\\0]+")


@final
@dataclass(frozen=True, slots=True)
class Restored:
    """How a variable gets its value.

    Attributes:
        name: Under which it was saved.
        feed: The tensor that takes the value.
        operation: The operation that assigns it.
    """

    name: str
    feed: str
    operation: str


@final
@dataclass(frozen=True, slots=True)
class GraphRecord:
    """One graph of a saved model.

    Attributes:
        tags: What it is for.
        document: The file with its graph.
        signatures: Its signatures by name.
        collections: What is in its collections besides variables, as ``encode_item`` gives it.
        variables: What is restored.
        assets: Files by the names of the tensors that hold their paths.
    """

    tags: tuple[str, ...]
    document: str
    signatures: dict[str, SignatureDef]
    collections: dict[str, list[dict[str, Any]]]
    variables: tuple[Restored, ...]
    assets: dict[str, str]


@final
@dataclass(slots=True)
class Manifest:
    """What a saved model holds.

    Attributes:
        graphs: Its graphs.
        arrays: The values of variables.
        files: Every file of the model by its name relative to the folder.
    """

    graphs: list[GraphRecord] = field(default_factory=list)
    arrays: dict[str, StoredArray] = field(default_factory=dict)
    files: dict[str, FileRecord] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Write the manifest, with which the model is there; return its path."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "producer": f"headrace-core {__version__}",
            "graphs": [_graph_data(graph) for graph in self.graphs],
            "arrays": {name: _array_data(array) for name, array in self.arrays.items()},
            "files": {
                name: {"bytes": record.bytes, "crc32": record.crc32}
                for name, record in self.files.items()
            },
        }
        text = json.dumps(data, indent=1, sort_keys=True, allow_nan=False)
        path = folder / constants.SAVED_MODEL_FILENAME_JSON
        write_file(path, lambda file: _write_text(file, text))
        return path

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a saved model.

        Raises:
            SavedModelNotFoundError: if the folder holds none.
            SavedModelDamagedError: if it is damaged, or of an unknown version.
        """
        path = folder / constants.SAVED_MODEL_FILENAME_JSON
        data = _parsed(path, _content(path, folder))
        with _blaming(path):
            files = {
                _file_name(name): FileRecord(_size(item["bytes"]), _size(item["crc32"]))
                for name, item in _object(data["files"], "files").items()
            }
            arrays = {
                name: _array_of(item) for name, item in _object(data["arrays"], "arrays").items()
            }
            graphs = [_graph_of(item, files, arrays) for item in _list(data["graphs"], "graphs")]
            if not graphs:
                raise SavedModelDamagedError("it lists no graphs")
            if arrays and VARIABLES_FILE not in files:
                raise SavedModelDamagedError(f"it does not list {VARIABLES_FILE!r}")
            return cls(graphs, arrays, files)


def encode_text(item: str | bytes) -> dict[str, str]:
    """Return the form of a text or of bytes in a collection."""
    if isinstance(item, str):
        return {"text": item}
    return {"bytes": base64.b64encode(item).decode("ascii")}


def decode_bytes(text: Any) -> bytes:
    """Return the bytes that ``encode_text`` wrote."""
    return base64.b64decode(_text(text), validate=True)


# -- writing


def _write_text(file: Any, text: str) -> None:
    file.write(text.encode() + b"\n")


def _graph_data(graph: GraphRecord) -> dict[str, Any]:
    return {
        "tags": list(graph.tags),
        "document": graph.document,
        "signatures": {
            name: {
                "inputs": {key: _info_data(info) for key, info in signature.inputs.items()},
                "outputs": {key: _info_data(info) for key, info in signature.outputs.items()},
                "method_name": signature.method_name,
            }
            for name, signature in graph.signatures.items()
        },
        "collections": graph.collections,
        "variables": {v.name: [v.feed, v.operation] for v in graph.variables},
        "assets": graph.assets,
    }


def _info_data(info: TensorInfo) -> dict[str, Any]:
    shape = info.tensor_shape
    data: dict[str, Any] = {
        "dtype": as_dtype(info.dtype).name if info.dtype else "",
        "shape": None if shape.unknown_rank else [dim.size for dim in shape.dim],
    }
    sparse = info.coo_sparse
    if sparse is None:
        return {**data, "name": info.name}
    return {
        **data,
        "values": sparse.values_tensor_name,
        "indices": sparse.indices_tensor_name,
        "dense_shape": sparse.dense_shape_tensor_name,
    }


def _array_data(array: StoredArray) -> dict[str, Any]:
    data: dict[str, Any] = {"dtype": array.dtype, "shape": list(array.shape)}
    return data if array.lengths is None else {**data, "lengths": list(array.lengths)}


# -- reading


def _content(path: Path, folder: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise SavedModelDamagedError(
                f"{path} has {path.stat().st_size} bytes, the manifest of a saved model has at "
                f"most {_MAX_BYTES}"
            )
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise SavedModelNotFoundError(_missing(folder)) from None
    except OSError as error:
        if isinstance(error, HeadraceError):
            raise
        raise SavedModelNotFoundError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        # NUL, or half of a surrogate pair.
        raise SavedModelNotFoundError(f"{shown(str(folder))} names no folder: {error}") from error


def _missing(folder: Path) -> str:
    name = constants.SAVED_MODEL_FILENAME_JSON
    if (folder / VARIABLES_FILE).is_file():
        return (
            f"the saved model in {folder} was not written to its end: it has variables, and no "
            f"{name!r}; export it again, and call the builder's save()"
        )
    if not folder.exists():
        return (
            f"there is no saved model in {folder}: the folder does not exist; expected one that "
            "hr.saved_model.simple_save or a builder wrote"
        )
    return (
        f"there is no saved model in {folder}: it has no file {name!r}, as "
        "hr.saved_model.simple_save and builders write it"
    )


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Say of which file an error tells, and make one of whatever a wrong form leads to."""
    try:
        yield
    except KeyError as error:
        raise SavedModelDamagedError(
            f"{path} is damaged: {shown(error.args[0])} is missing"
        ) from error
    except (HeadraceError, TypeError, ValueError, AttributeError) as error:
        raise SavedModelDamagedError(f"{path} is damaged: {error}") from error


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SavedModelDamagedError(f"{path} is damaged: it is no JSON ({error})") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SavedModelDamagedError(f"{path} is no manifest: it does not say 'format': {FORMAT!r}")
    if data.get("version") != VERSION:
        raise SavedModelDamagedError(
            f"{path} is of version {shown(data.get('version'), 40)}, this Headrace reads version "
            f"{VERSION}; install a newer headrace-core"
        )
    return data


def _graph_of(
    data: Any, files: Mapping[str, FileRecord], arrays: Mapping[str, StoredArray]
) -> GraphRecord:
    graph = _object(data, "graph")
    document = _text(graph["document"])
    variables = []
    for name, item in _object(graph["variables"], "variables").items():
        feed, operation = map(_text, _list(item, "a variable"))
        if name not in arrays:
            raise SavedModelDamagedError(f"the variable {brief(name)} has no value")
        variables.append(Restored(name, feed, operation))
    assets = {name: _text(file) for name, file in _object(graph["assets"], "assets").items()}
    for file in (document, *(f"{constants.ASSETS_DIRECTORY}/{file}" for file in assets.values())):
        if file not in files:
            raise SavedModelDamagedError(f"it does not list the file {brief(file)}")
    return GraphRecord(
        tuple(map(_text, _list(graph["tags"], "tags"))),
        document,
        {
            name: SignatureDef(
                _infos_of(item["inputs"]), _infos_of(item["outputs"]), _text(item["method_name"])
            )
            for name, item in _object(graph["signatures"], "signatures").items()
        },
        {
            name: [_object(item, "an item") for item in _list(items, name)]
            for name, items in _object(graph["collections"], "collections").items()
        },
        tuple(variables),
        assets,
    )


def _infos_of(data: Any) -> dict[str, TensorInfo]:
    return {name: _info_of(item) for name, item in _object(data, "tensors").items()}


def _info_of(data: Any) -> TensorInfo:
    item = _object(data, "a tensor")
    name = _text(item["dtype"])
    number = as_dtype(name).as_datatype_enum if name else 0
    if item["shape"] is None:
        shape = TensorShape(unknown_rank=True)
    else:
        shape = TensorShape(tuple(Dimension(_size(d, -1)) for d in _list(item["shape"], "a shape")))
    if "name" in item:
        return TensorInfo(_text(item["name"]), number, shape)
    parts = [_text(item[key]) for key in ("values", "indices", "dense_shape")]
    return TensorInfo("", number, shape, CooSparse(*parts))


def _array_of(data: Any) -> StoredArray:
    item = _object(data, "an array")
    shape = tuple(map(_size, _list(item["shape"], "a shape")))
    if len(shape) > 64:
        raise SavedModelDamagedError(f"no array has {len(shape)} dimensions")
    lengths = item.get("lengths")
    dtype = as_dtype(_text(item["dtype"]))
    if dtype.kind in ("resource", "list") or (lengths is None) == (dtype.kind == "string"):
        raise SavedModelDamagedError(f"there are no such arrays of {dtype}")
    known = None if lengths is None else tuple(map(_size, _list(lengths, "lengths")))
    return StoredArray(dtype.name, shape, known)


def _file_name(name: str) -> str:
    if not _FILES.fullmatch(name) or name in ("assets/.", "assets/.."):
        raise SavedModelDamagedError(f"it lists the file {brief(name)}, which no saved model has")
    return name


def _object(data: Any, what: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise SavedModelDamagedError(f"{what} must be an object, got {brief(data)}")
    return data


def _list(data: Any, what: str) -> list[Any]:
    if not isinstance(data, list):
        raise SavedModelDamagedError(f"{what} must be a list, got {brief(data)}")
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise SavedModelDamagedError(f"expected a text, got {brief(data)}")
    return data


def _size(data: Any, least: int = 0) -> int:
    if not is_integer(data) or not least <= data < 2**63:
        raise SavedModelDamagedError(f"expected a size, got {brief(data)}")
    found: int = data
    return found
