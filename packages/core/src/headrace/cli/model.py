"""``python -m headrace show`` and ``run``: what a saved model takes, and what it answers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headrace.cli.tables import facts, print_json
from headrace.dtypes import as_dtype
from headrace.errors import (
    AttributeValueError,
    FeedError,
    HeadraceError,
    SavedModelError,
    listing,
)
from headrace.errors import shown as _shown
from headrace.saved_model.directory import SavedModelDirectory
from headrace.saved_model.manifest import GraphRecord
from headrace.saved_model.messages import SignatureDef, TensorInfo
from headrace.saved_model.model import Model
from headrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY

_Array = np.ndarray[Any, np.dtype[Any]]


def add_show_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``show`` takes."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the folder of a saved model")
    parser.add_argument("--json", action="store_true", help="print JSON")


def show(options: argparse.Namespace) -> int:
    """Print the graphs of a model with their tags and signatures; nothing of it is run."""
    model = SavedModelDirectory(options.model)
    graphs = [_described(graph) for graph in model.manifest.graphs]
    arrays = model.manifest.arrays.values()
    variables = {
        "number": len(arrays),
        "elements": sum(int(np.prod(array.shape, dtype=object)) for array in arrays),
    }
    if options.json:
        print_json({"model": str(options.model), "variables": variables, "graphs": graphs})
        return 0
    print(f"{options.model}: {variables['number']} variables of {variables['elements']} elements")
    for graph in graphs:
        print(f"\ntags: {', '.join(graph['tags']) or 'none'}")
        for name, signature in graph["signatures"].items():
            print(f"  signature {name}  {signature['method_name']}".rstrip())
            for part in ("inputs", "outputs"):
                print(f"    {part}")
                tensors = signature[part].items()
                shown = {key: f"{t['dtype']}{t['shape']}  {t['tensor']}" for key, t in tensors}
                print("\n".join(facts(shown, "      ")))
        if not graph["signatures"]:
            print("  no signatures")
    return 0


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``run`` takes."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the folder of a saved model")
    parser.add_argument(
        "--signature",
        default=DEFAULT_SERVING_SIGNATURE_DEF_KEY,
        metavar="NAME",
        help="what to compute; default: %(default)s",
    )
    parser.add_argument(
        "--tags",
        help="tags of the graph, separated by commas; that for serving, or the only one, if "
        "left out",
    )
    parser.add_argument(
        "--input",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=FILE",
        help="an input, as in x=x.npy, or x=data.npz:key",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE.npz",
        help="the file that gets the outputs; they are printed if left out",
    )


def run(options: argparse.Namespace) -> int:
    """Call a signature of a model with arrays from files."""
    if options.output is not None and options.output.suffix != ".npz":
        raise AttributeValueError(f"--output is a file named *.npz, got {options.output}")
    inputs = dict(_input(word) for word in options.input)
    tags = None if options.tags is None else [tag for tag in options.tags.split(",") if tag]
    with Model(options.model, tags) as model:
        signature = model.signatures.get(options.signature)
        if signature is None:
            there = listing(map(repr, model.signatures)) or "none"
            raise SavedModelError(
                f"{options.model} has no signature {options.signature!r}; it has {there}"
            )
        answer = signature(inputs)
    outputs = dict(_output(name, value) for name, value in answer.items())
    if options.output is None:
        for name, value in outputs.items():
            print(f"{name} = {np.array2string(value, separator=', ')}")
        return 0
    try:
        save: Any = np.savez
        save(options.output, **outputs)
    except OSError as error:
        raise SavedModelError(f"cannot write {options.output}: {error.strerror}") from error
    print(f"wrote {listing(outputs)} to {options.output}")
    return 0


def names_program(words: Sequence[str]) -> bool:
    """Return whether the words after ``run`` are of a program to start, not of a saved model.

    A program is a file ``*.py``, or a module after ``-m``; and a number of ranks is of a program.
    """
    return any(word in ("-n", "-m") or word.endswith(".py") for word in words)


def _described(graph: GraphRecord) -> dict[str, Any]:
    return {
        "tags": list(graph.tags),
        "signatures": {name: _signature(made) for name, made in sorted(graph.signatures.items())},
    }


def _signature(signature: SignatureDef) -> dict[str, Any]:
    return {
        "method_name": signature.method_name,
        "inputs": _tensors(signature.inputs),
        "outputs": _tensors(signature.outputs),
    }


def _tensors(infos: Mapping[str, TensorInfo]) -> dict[str, Any]:
    return {
        name: {
            "tensor": ", ".join(info.names),
            "dtype": as_dtype(info.dtype).name,
            "shape": str(info.shape),
        }
        for name, info in sorted(infos.items())
    }


def _input(word: str) -> tuple[str, _Array]:
    name, separator, place = word.partition("=")
    if not separator or not name or not place:
        raise FeedError(f"--input: expected NAME=FILE.npy or NAME=FILE.npz:KEY, got {_shown(word)}")
    file, colon, key = place.rpartition(":")
    if not colon or not file.endswith(".npz"):
        file, key = place, ""
    try:
        found = np.load(file, allow_pickle=False)
    except OSError as error:
        raise FeedError(f"--input {name}: cannot read {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise FeedError(f"--input {name}: {file} holds no array without pickles") from error
    if isinstance(found, np.ndarray):
        return name, _as_fed(found)
    with found:
        return name, _as_fed(_member(found, name, file, key))


def _member(archive: Any, name: str, file: str, key: str) -> _Array:
    """Return the array of a file that is asked for, or the only one."""
    keys: Iterable[str] = archive.files
    chosen = key or (archive.files[0] if len(archive.files) == 1 else name)
    if chosen not in archive.files:
        raise FeedError(
            f"--input {name}: {file} has no array {chosen!r}; it has {listing(map(repr, keys))}"
        )
    try:
        array: _Array = archive[chosen]
    except (ValueError, OSError, HeadraceError) as error:
        raise FeedError(f"--input {name}: {chosen!r} of {file} cannot be read: {error}") from error
    return array


def _as_fed(array: _Array) -> _Array:
    """Return an array as steps take it: texts as objects of bytes."""
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    return array.astype(object) if array.dtype.kind == "S" else array


def _output(name: str, value: Any) -> tuple[str, _Array]:
    """Return an output as NumPy stores it without pickles."""
    if not isinstance(value, np.ndarray | np.generic):
        raise SavedModelError(
            f"the output {name!r} is a sparse tensor, which no array of a file holds; call the "
            "signature in a program, with hr.saved_model.Model"
        )
    array: _Array = np.asarray(value)
    if array.dtype == object:
        texts = np.array(array.tolist(), "S").reshape(array.shape)
        if texts.astype(object).tolist() != array.tolist():
            raise SavedModelError(
                f"the output {name!r} has strings that end in zero bytes, which NumPy's files drop"
            )
        return name, texts
    if array.dtype.kind == "V" or as_dtype(array.dtype).name == "bfloat16":
        # NumPy's files have no such numbers; float32 holds each of them.
        array = array.astype(np.float32)
    return name, array
