"""Arguments: every parameter of every public function and class, with values that none expects.

A case makes a call that works, or comes as near as guesses go, and puts a hostile value into the
place of one argument. What may come out is an error of Headrace, the exception that the program's
own object raised, or Python's own word on a value of a wrong type: ``TypeError``,
``AttributeError``, NumPy's on the truth of an array, and a dict's that changes as it is read. All
others are forbidden.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib.util
import inspect
import os
import random
import tempfile
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import HeadraceError

from .campaign import Campaign
from .values import VALUES, OwnError

# What is not called: it ends, waits, listens, starts processes, writes where the machine's user
# keeps files, or is a decorator's or a test's own.
_LEFT_OUT = {
    "main",
    "run_tests",
    "run",
    "serve",
    "spawn",
    "join",
    "create_local_cluster",
    "Server",
    "Cluster",
    "ModelServer",
    "breakpoint",
    "app",
    "train_loop",
    "launch",
    "fuzz",
    # It waits for a further checkpoint.
    "checkpoints_iterator",
}


@dataclass(frozen=True, slots=True)
class Callee:
    """Something public that is called.

    Attributes:
        name: Its name.
        make: Returns it, in the default graph: a function, a class, or the method of an object.
        names: Its parameters without ``self``.
        spread: Whether the last one is ``*args``.
    """

    name: str
    make: Callable[[], Any]
    names: tuple[str, ...]


# -- guesses


def _number(shape: list[int]) -> Any:
    return hr.constant(np.ones(shape, np.float32))


_BY_NAME: dict[str, Callable[[], Any]] = {
    "name": lambda: "n",
    "shape": lambda: [2, 2],
    "dtype": lambda: hr.float32,
    "dtypes": lambda: [hr.float32],
    "component_types": lambda: [hr.float32],
    "shapes": lambda: [[2]],
    "capacity": lambda: 5,
    "min_after_dequeue": lambda: 1,
    "batch_size": lambda: 2,
    "learning_rate": lambda: 0.1,
    "global_step": lambda: hr.train.get_or_create_global_step(),
    "axis": lambda: 0,
    "axes": lambda: [0],
    "dim": lambda: 0,
    "perm": lambda: [1, 0],
    "indices": lambda: hr.constant([0, 1]),
    "segment_ids": lambda: hr.constant([0, 1]),
    "num_segments": lambda: 2,
    "sp_input": lambda: hr.SparseTensor([[0, 0]], [1.0], [2, 2]),
    "sparse_tensor": lambda: hr.SparseTensor([[0, 0]], [1.0], [2, 2]),
    "sess": hr.Session,
    "session": hr.Session,
    "graph": hr.get_default_graph,
    "num_epochs": lambda: 1,
    "string_tensor": lambda: hr.constant(["a"]),
    "string_input": lambda: hr.constant(["a"]),
    "input_bytes": lambda: hr.constant(["abcd"]),
    "serialized": lambda: hr.constant([b""]),
    "features": lambda: {"a": hr.FixedLenFeature([], hr.float32, 0.0)},
    "contents": lambda: hr.constant(b"x"),
    "filename": lambda: "place",
    "filenames": lambda: ["place"],
    "path": lambda: "place",
    "save_path": lambda: "place",
    "checkpoint_dir": lambda: "place",
    "directory": lambda: "place",
    "logdir": lambda: "place",
    "export_dir": lambda: "place",
    "labels": lambda: hr.constant([[1.0, 0.0], [0.0, 1.0]]),
    "logits": lambda: _number([2, 2]),
    "predictions": lambda: _number([2, 2]),
    "image": lambda: _number([4, 4, 3]),
    "images": lambda: _number([1, 4, 4, 3]),
    "units": lambda: 3,
    "num_units": lambda: 3,
    "filters": lambda: 3,
    "kernel_size": lambda: 2,
    "pool_size": lambda: 2,
    "strides": lambda: 1,
    "padding": lambda: "SAME",
    "cell": lambda: hr.nn.rnn_cell.BasicRNNCell(3),
    "cells": lambda: [hr.nn.rnn_cell.BasicRNNCell(3)],
    "fn": lambda: lambda *a: a[0],
    "func": lambda: lambda *a: a[0],
    "f": lambda: lambda *a: a[0],
    "map_func": lambda: lambda *a: a[0],
    "predicate": lambda: lambda *a: hr.constant(True),
    "cond": lambda: lambda *a: hr.constant(False),
    "body": lambda: lambda *a: a,
    "true_fn": lambda: lambda: hr.constant(1.0),
    "false_fn": lambda: lambda: hr.constant(2.0),
    "pred": lambda: hr.constant(True),
    "condition": lambda: hr.constant([[True, False], [True, True]]),
    "loop_vars": lambda: [hr.constant(1.0)],
    "elems": lambda: _number([2, 2]),
    "tensors": lambda: [_number([2, 2]), _number([2, 2])],
    "values": lambda: [_number([2, 2]), _number([2, 2])],
    "inputs": lambda: _number([2, 2]),
    "loss": lambda: hr.reduce_sum(hr.get_variable("w", [2], hr.float32)),
    "var_list": lambda: None,
    "variables": lambda: [hr.get_variable("w", [2], hr.float32)],
    "ref": lambda: hr.get_variable("w", [2], hr.float32),
    "var": lambda: hr.get_variable("w", [2], hr.float32),
    "ys": lambda: hr.reduce_sum(hr.get_variable("w", [2], hr.float32)),
    "xs": lambda: [hr.get_variable("w", [2], hr.float32)],
    "opt": lambda: hr.train.GradientDescentOptimizer(0.1),
    "optimizer": lambda: hr.train.GradientDescentOptimizer(0.1),
    "grads_and_vars": lambda: [(_number([2]), hr.get_variable("w", [2], hr.float32))],
    "initializer": lambda: hr.zeros_initializer(),
    "initial_value": lambda: [1.0, 2.0],
    "key": lambda: "k",
    "keys": lambda: ["a", "b"],
    "tag": lambda: "t",
    "device_name_or_function": lambda: "/cpu:0",
    "seed": lambda: 1,
    "maxval": lambda: 5,
    "minval": lambda: 0,
    "paddings": lambda: [[1, 1], [0, 0]],
    "multiples": lambda: [1, 2],
    "size": lambda: [1, 1],
    "begin": lambda: [0, 0],
    "num_or_size_splits": lambda: 2,
    "depth": lambda: 3,
    "equation": lambda: "ij,jk->ik",
    "pattern": lambda: "a*",
    "delimiter": lambda: ",",
    "op": hr.no_op,
    "ops": lambda: [hr.no_op()],
    "lower": lambda: 0.0,
    "decay": lambda: 0.9,
    "decay_rate": lambda: 0.9,
    "decay_steps": lambda: 10,
    "boundaries": lambda: [1, 2],
    "num": lambda: 3,
    "structure": lambda: [1, 2],
    "dataset": lambda: hr.data.Dataset.range(3),
    "datasets": lambda: hr.data.Dataset.range(3),
    "collections": lambda: None,
    "signature_def_map": dict,
    "tags": lambda: ["serve"],
    "vocabulary_file": lambda: "place",
    "vocabulary_list": lambda: ["a", "b"],
    "mapping": lambda: ["a", "b"],
    "default_value": lambda: -1,
}
_OTHERS: tuple[Callable[[], Any], ...] = (
    lambda: _number([2, 2]),
    lambda: 1,
    lambda: "place",
    lambda: [_number([2, 2])],
    lambda: hr.constant([0, 1]),
    lambda: hr.constant(["a", "b"]),
    lambda: lambda *a: a[0],
    lambda: [1, 2],
    dict,
    lambda: _number([1, 4, 4, 3]),
    lambda: hr.float32,
    lambda: hr.constant([True, False]),
)


# -- what there is


def _tools() -> types.ModuleType:
    path = Path(__file__).parents[2] / "tools" / "api.py"
    spec = importlib.util.spec_from_file_location("hostile_api", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _parameters(function: Any) -> tuple[str, ...] | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    kinds = inspect.Parameter
    return tuple(
        ("*" if p.kind is kinds.VAR_POSITIONAL else "") + p.name
        for p in signature.parameters.values()
        if p.kind is not kinds.VAR_KEYWORD
    )


# Objects whose methods are called, made in an empty graph.
OBJECTS: dict[str, Callable[[], Any]] = {
    "Graph": hr.get_default_graph,
    "Session": hr.Session,
    "Tensor": lambda: _number([2, 2]),
    "IntTensor": lambda: hr.constant([[1, 2], [3, 4]]),
    "Variable": lambda: hr.Variable([[1.0, 2.0], [3.0, 4.0]]),
    "SparseTensor": lambda: hr.SparseTensor([[0, 0]], [1.0], [2, 2]),
    "IndexedSlices": lambda: hr.IndexedSlices(_number([1, 2]), hr.constant([0])),
    "TensorShape": lambda: hr.TensorShape([2, None]),
    "Dimension": lambda: hr.Dimension(2),
    "DType": lambda: hr.float32,
    "Operation": hr.no_op,
    "FIFOQueue": lambda: hr.FIFOQueue(5, [hr.float32], [[2]]),
    "TensorArray": lambda: hr.TensorArray(hr.float32, 3),
    "VariableScope": hr.get_variable_scope,
    "Saver": lambda: (hr.Variable(1.0), hr.train.Saver())[1],
    "Optimizer": lambda: hr.train.AdamOptimizer(0.1),
    "Coordinator": hr.train.Coordinator,
    "Dataset": lambda: hr.data.Dataset.range(10),
    "Dense": lambda: hr.layers.Dense(3),
    "Conv2D": lambda: hr.layers.Conv2D(3, 2),
    "LSTMCell": lambda: hr.nn.rnn_cell.LSTMCell(3),
    "HashTable": lambda: hr.lookup.HashTable(
        hr.lookup.KeyValueTensorInitializer(["a"], hr.constant([1], hr.int64)), -1
    ),
    "FileWriter": lambda: hr.summary.FileWriter("place"),
    "Iterator": lambda: hr.data.Dataset.range(3).make_one_shot_iterator(),
    "Checkpoint": lambda: hr.train.Checkpoint(v=hr.Variable(1.0)),
    "ExponentialMovingAverage": lambda: hr.train.ExponentialMovingAverage(0.9),
    "TFRecordWriter": lambda: hr.python_io.TFRecordWriter("records"),
    "SavedModelBuilder": lambda: hr.saved_model.builder.SavedModelBuilder("export"),
    "ConditionalAccumulator": lambda: hr.ConditionalAccumulator(hr.float32, [2]),
    "Barrier": lambda: hr.Barrier(hr.float32) if hasattr(hr, "Barrier") else hr.no_op(),
}
# They wait, or need what this has not: a step that runs, threads that were started.
_METHODS_LEFT_OUT = {"join", "wait_for_stop", "run_loop", "test_session", "get_controller"}


@functools.cache
def callees() -> tuple[Callee, ...]:
    """Return all public functions and classes, and the methods of some objects."""
    tools = _tools()
    found: dict[int, Callee] = {}
    for module in tools.modules():
        if module.startswith(("headrace.testing", "headrace.extend")):
            continue
        for name, value in tools.public(importlib.import_module(module)).items():
            if isinstance(value, types.ModuleType) or not callable(value) or name in _LEFT_OUT:
                continue
            if not tools.is_ours(value) or id(value) in found or _is_odd(value):
                continue
            names = _parameters(value)
            if names:
                found[id(value)] = Callee(
                    f"{module}.{name}", functools.partial(lambda v: v, value), names
                )
    # Some of the objects make files.
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        return (*found.values(), *_methods())


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _is_odd(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, (BaseException, enum.Enum))


def _methods() -> Iterator[Callee]:
    for label, make in OBJECTS.items():
        with hr.Graph().as_default():
            kind = type(make())
        for name in sorted(dir(kind)):
            special = name in ("__call__", "__getitem__", "__add__", "__eq__", "__pow__")
            if (name.startswith("_") and not special) or name in _METHODS_LEFT_OUT:
                continue
            if next(k for k in kind.__mro__ if name in vars(k)).__module__ == "builtins":
                continue  # Python's own, such as int.from_bytes, answers in Python's own words.
            static = inspect.getattr_static(kind, name)
            if isinstance(static, property) or not callable(getattr(kind, name, None)):
                continue
            bound = not isinstance(static, (classmethod, staticmethod))
            names = _parameters(getattr(kind, name)) or ()
            names = names[1:] if bound else names
            if names:
                yield Callee(f"{label}().{name}", functools.partial(_method, make, name), names)


def _method(make: Callable[[], Any], name: str) -> Any:
    return getattr(make(), name)


# -- calls


@functools.cache
def _working(place: int) -> dict[str, Callable[[], Any]]:
    """Return makers of arguments with which a callee works, or comes far."""
    callee = callees()[place]
    with hr.Graph().as_default():
        function = callee.make()
    signature = inspect.signature(function)
    needed = [
        p.name
        for p in signature.parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    best: dict[str, Callable[[], Any]] = {}
    draw = random.Random(place)
    for attempt in range(40):
        guess: dict[str, Callable[[], Any]] = {}
        for name in needed:
            known = _BY_NAME.get(name)
            use = known is not None and (attempt < 8 or draw.random() < 0.6)
            guess[name] = (
                known
                if use and known
                else _OTHERS[attempt if attempt < len(_OTHERS) else draw.randrange(len(_OTHERS))]
            )
        best = best or guess
        with hr.Graph().as_default():
            try:
                _call(callee, guess)
            except Exception:
                continue
        return guess
    return best


def _call(callee: Callee, makers: dict[str, Callable[[], Any]]) -> Any:
    function = callee.make()
    given = {name: make() for name, make in makers.items()}
    positional: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY and name in given:
            positional.append(given.pop(name))
        if parameter.kind is parameter.VAR_POSITIONAL and f"*{name}" in given:
            # What stands before ``*args`` comes by its place.
            every = list(inspect.signature(function).parameters)
            before = every[: every.index(name)]
            positional += [given.pop(n) for n in before if n in given]
            positional.append(given.pop(f"*{name}"))
    made = function(*positional, **given)
    if inspect.isgenerator(made):
        next(made, None)
    if (
        hasattr(made, "__enter__")
        and hasattr(made, "__exit__")
        and not isinstance(made, hr.Session)
    ):
        with made:
            pass
    return made


@functools.cache
def places() -> tuple[tuple[int, str], ...]:
    """Return every parameter, by the number of its callee."""
    return tuple((i, name) for i, callee in enumerate(callees()) for name in callee.names)


def every_argument(draw: random.Random, number: int) -> None:
    """Call something with one hostile argument; the numbers go through all of them."""
    # A prime, so that few numbers are of all callees and all values.
    index = number * 1_000_003 % (len(places()) * len(VALUES))
    place, kind = divmod(index, len(VALUES))
    callee, name = places()[place]
    _try(callee, {name: list(VALUES)[kind]})


def hostile_arguments(draw: random.Random, number: int) -> None:
    """Call something with two hostile arguments."""
    place = draw.randrange(len(callees()))
    names = callees()[place].names
    _try(place, {n: draw.choice(list(VALUES)) for n in draw.sample(names, min(2, len(names)))})


def _try(place: int, kinds: dict[str, str]) -> None:
    callee = callees()[place]
    makers = dict(_working(place))
    with hr.Graph().as_default():
        for name, kind in kinds.items():
            makers[name] = functools.partial(lambda value: value, VALUES[kind]())
        try:
            _call(callee, makers)
        except (OwnError, HeadraceError) as error:
            # A range of 10^18 numbers, or as many threads, may well be more than there is.
            if not isinstance(error, OwnError | MemoryError):
                raise
        except Exception as error:
            # What a type says that was given for a function.
            own = "a type" in kinds.values() and "invalid literal for int()" in str(error)
            if not own and not _is_of_a_type(error):
                told = ", ".join(f"{name}={kind}" for name, kind in kinds.items())
                error.add_note(f"{callee.name}({told})")
                raise


def _is_of_a_type(error: Exception) -> bool:
    """Whether Python or NumPy says that a value is of a type that something does not take."""
    if isinstance(error, ValueError):
        return "The truth value of an" in str(error)
    if isinstance(error, RuntimeError) and "changed size during iteration" in str(error):
        return True  # The program's own dict says so.
    # What ``repr`` and ``str`` return is no affair of the call's.
    return isinstance(error, TypeError | AttributeError) and "returned non-string" not in str(error)


CAMPAIGNS = (
    Campaign(
        "arguments",
        "public calls with one odd argument, at least every one",
        600_000,
        every_argument,
        prepare=places,
    ),
    Campaign(
        "argument-pairs",
        "public calls with two odd arguments",
        200_000,
        hostile_arguments,
        prepare=places,
    ),
)
