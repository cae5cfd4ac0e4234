"""Graph documents from strangers: every fault is a DocumentError, and nothing is ever executed."""

from __future__ import annotations

import builtins
import copy
import json
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.documents import reader
from headrace.documents.document import dump, load
from headrace.errors import MAX_LINES, DocumentError
from headrace.ops.queue import fifo_queue, queue_dequeue
from headrace.shapes import Shape


def make_base() -> str:
    with hr.Graph().as_default() as graph:
        hr.set_random_seed(1)
        x = hr.placeholder(hr.float32, [None, 6, 6, 2], name="x")
        kernel = hr.Variable(hr.random_normal([3, 3, 2, 4]), name="kernel")
        with hr.device("/cpu:0"), hr.colocate_with(kernel):
            hidden = hr.nn.max_pool(
                hr.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"), [1, 2, 2, 1], [1, 2, 2, 1], "VALID"
            )
        flat = hr.reshape(hidden, [-1, 36])
        parts = hr.split(hr.transpose(flat), [30, 6])
        with hr.control_dependencies([kernel.assign_add(kernel)]):
            hr.reduce_mean(parts[0][1:, ..., None], axis=[0], keepdims=True)
        hr.unstack(hr.one_hot(hr.argmax(flat, 1), 3), axis=1)
        hr.switch(hr.constant(["a", "b"]), hr.constant(True))
        queue_dequeue(
            fifo_queue(2, (hr.float32,), (Shape([2]),), "", "q"), (hr.float32,), (Shape([2]),)
        )
        hr.pad(flat, [[1, 1], [0, 2]], constant_values=0.5)
        hr.concat([hr.range(0, 5), hr.tile(hr.constant([1]), [3])], 0)
        scale = hr.constant(0.5, name="scale")
        twice = hr.function(lambda x: x * scale, name="twice")
        hr.while_loop(
            lambda i, a, t: i < 3,
            lambda i, a, t: (i + 1, hr.cond(a > 1, lambda: twice(a), lambda: a + 1), t.write(i, a)),
            (0, scale, hr.TensorArray(hr.float32, 3)),
        )
    return dump(graph)


BASE = make_base()
DATA = json.loads(BASE)


def with_changes(**changes: object) -> str:
    return json.dumps({**DATA, **changes})


def with_function(name: str, /, **changes: object) -> str:
    """A document in which the record of a function is another."""
    records = [{**f, **changes} if f["name"] == name else f for f in DATA["functions"]]
    assert records != DATA["functions"]
    return with_changes(functions=records)


PRODUCT = next(f for f in DATA["functions"] if f["name"] == "twice")["results"][0][:-2]


def without_result(name: str) -> str:
    return with_function(name, results=[])


def with_operations(*records: dict[str, object], variables: object = ()) -> str:
    return with_changes(operations=list(records), variables=list(variables))


X = {
    "name": "x",
    "type": "Placeholder",
    "attrs": {"dtype": {"dtype": "float32"}, "shape": {"shape": [2]}},
}
V = {
    "name": "v",
    "type": "VarHandle",
    "attrs": {**X["attrs"], "container": "", "shared_name": "v"},
}


def const(data: object) -> dict[str, object]:
    return {"name": "c", "type": "Const", "attrs": {"value": data}}


def array(**changes: object) -> dict[str, object]:
    data = {"dtype": "float32", "shape": [2], "data": "AAAAAAAAAAA=", **changes}
    return const({"array": {k: v for k, v in data.items() if v is not None}})


FAULTS = {
    "nothing": ("", "no JSON"),
    "truncated": (BASE[: len(BASE) // 2], "no JSON"),
    "not a document": ("[]", "not a graph document"),
    "another format": (with_changes(format="tensorboard"), "not a graph document"),
    "newer": (with_changes(version=2), r"of version 2, this Headrace reads version 1"),
    "version as float": (with_changes(version=1.0), "of version 1.0"),
    "unknown key": (with_changes(extra=1), "check 'extra'"),
    "missing key": (json.dumps({k: v for k, v in DATA.items() if k != "seed"}), "check 'seed'"),
    "key twice": (BASE.replace('"seed":1', '"seed":1,"seed":2'), "the key 'seed' twice"),
    "bytes": (b"\xff\xfe{}", "not UTF-8"),
    "another type": (12, "str or bytes, got int"),
    "nested deeply": ("[" * 200_000, "nested too deeply"),
    "NaN": (with_changes(seed=float("nan")), "NaN, which is no JSON"),
    "digits": (BASE.replace('"seed":1', '"seed":' + "9" * 9999), "too many digits"),
    "big seed": (with_changes(seed=2**400), "'seed' must be an integer or null, got an integer of"),
    "seed": (with_changes(seed="1"), "'seed' must be an integer or null, got '1'"),
    "operations": (with_changes(operations={}), "'operations' must be a list"),
    "no record": (with_operations(7), "operation 0 must be an object with a name"),
    "no name": (with_operations({"type": "NoOp"}), "operation 0 must be an object with a name"),
    "empty name": (with_operations({**X, "name": ""}), "name '' is empty"),
    "same name": (with_operations(X, X), "operation 1: the name 'x' is given to two"),
    "odd key": (with_operations({**X, "code": "exit()"}), "unknown keys 'code'"),
    "no type": (with_operations({"name": "x"}), "'type' must be the name of an op, got None"),
    "unknown op": (with_operations({**X, "type": "Exec"}), "operation 0 'x': no op 'Exec'"),
    "missing attribute": (
        with_operations({**X, "attrs": {"dtype": {"dtype": "float32"}}}),
        "operation 0 'x': Placeholder: attributes 'shape' are missing",
    ),
    "unknown attribute": (
        with_operations({**X, "attrs": {**X["attrs"], "y": 1}}),
        "has no attributes 'y'; it has 'dtype', 'shape'",
    ),
    "attributes": (with_operations({**X, "attrs": []}), "'attrs' must be an object"),
    "attribute's type": (
        with_operations({**X, "attrs": {**X["attrs"], "dtype": "float32"}}),
        "attribute 'dtype': expected DType, got 'float32'",
    ),
    "dtype": (with_operations({**X, "attrs": {**X["attrs"], "dtype": {"dtype": "f"}}}), "'f'"),
    "no value": (const({"pickle": "gASVAAAA"}), None),
    "inputs": (with_operations({**X, "inputs": "x"}), "'inputs' must be a list"),
    "input": (with_operations({"name": "n", "type": "Neg", "inputs": ["x"]}), "'operation:index'"),
    "input's index": (
        with_operations(X, {"name": "n", "type": "Neg", "inputs": ["x:1"]}),
        "'x:1' does not exist: Placeholder 'x' has 1 outputs",
    ),
    "too many inputs": (
        with_operations(X, {"name": "n", "type": "Neg", "inputs": ["x:0", "x:0"]}),
        r"it takes \(x\), the document gives 2 inputs",
    ),
    "arity": (
        with_operations(X, {"name": "n", "type": "Neg", "inputs": ["x:0"], "arity": [True]}),
        r"it takes \(x\)",
    ),
    "cycle": (
        with_operations(
            {"name": "a", "type": "Neg", "inputs": ["b:0"]},
            {"name": "b", "type": "Neg", "inputs": ["a:0"]},
        ),
        "operation 0 'a': Neg: it depends on 'b', which does not come before it: a cycle",
    ),
    "functions": (with_changes(functions={}), "'functions' must be a list"),
    "no function": (with_changes(functions=[7]), "function 0 must be an object with"),
    "function's key": (with_function("twice", code="exit()"), "must be an object with"),
    "function's name": (with_function("twice", name=""), "'' is no name, or given twice"),
    "same function": (with_function("while/body", name="twice"), "'twice' is no name, or given"),
    "unknown function": (with_function("twice", name="thrice"), "'twice'"),
    "functions' order": (
        with_changes(functions=[*reversed(DATA["functions"])]),
        "function 'while/body': operation",
    ),
    "parameters": (with_function("twice", parameters=[]), "must be all Parameter operations"),
    "parameters' order": (
        with_function("while/cond", parameters=["loop_var_1", "loop_var", "loop_var_2"]),
        "must be all Parameter operations, by index",
    ),
    "no parameter": (with_function("twice", parameters=[PRODUCT]), "must be all Parameter"),
    "parameter": (with_function("twice", parameters=["x"]), "'x', which is not in the document"),
    "result": (with_function("twice", results=["x:0"]), "'x', which is not in the document"),
    "condition's result": (without_result("while/cond"), "cond must return one bool scalar"),
    "condition's dtype": (
        with_function("while/cond", results=["loop_var:0"]),
        "cond must return one bool scalar",
    ),
    "body's results": (without_result("while/body"), "body takes 3 loop variables and returns 0"),
    "body's dtypes": (
        with_function("while/body", results=["loop_var_1:0", "loop_var:0", "loop_var_2:0"]),
        "loop variable 0 is int32, and float32 afterwards",
    ),
    "branches' results": (without_result("while/cond/then"), "branches return 0 and 1"),
    "itself": (with_operations({"name": "a", "type": "Neg", "inputs": ["a:0"]}), "a cycle"),
    "stranger": (
        with_operations({"name": "a", "type": "Neg", "inputs": ["b:0"]}),
        "depends on 'b', which is not in the document",
    ),
    "control": (with_operations({**X, "control": ["y"]}), "'y', which is not in the document"),
    "colocated": (with_operations({**X, "colocated": [1]}), "name of an operation, got 1"),
    "device": (with_operations({**X, "device": "over there"}), "not a device name"),
    "origin": (with_operations({**X, "origin": 1}), "'origin' must be a string"),
    "site": (with_operations({**X, "site": ["f", "1", ""]}), r"\[file, line, text\]"),
    "shapes": (with_operations({**X, "shapes": [None, None]}), "2 entries for 1 outputs"),
    "shape": (
        with_operations({**X, "shapes": [{"shape": [3]}]}),
        r"shapes \[2\] and \[3\] are incompatible",
    ),
    "kind": (
        with_operations(const({"bytes": "YQ=="}), {"name": "n", "type": "Neg", "inputs": ["c:0"]}),
        "attribute 'value': expected ndarray",
    ),
    "input's kind": (
        with_operations(X, {"name": "n", "type": "LogicalNot", "inputs": ["x:0"]}),
        "x must be bool, got float32",
    ),
    "mixed dtypes": (
        with_operations(
            X,
            array(dtype="float64", shape=[1]),
            {"name": "a", "type": "Add", "inputs": ["x:0", "c:0"]},
        ),
        "y is float64, the inputs before it are float32",
    ),
    "rule": (
        with_operations(
            X,
            array(shape=[1, 2]),
            {
                "name": "m",
                "type": "MatMul",
                "inputs": ["x:0", "c:0"],
                "attrs": {"transpose_a": False, "transpose_b": False},
            },
        ),
        "operation 2 'm': MatMul: ",
    ),
    "array without data": (with_operations(array(data=None)), "has the keys"),
    "array of no dtype": (with_operations(array(dtype=None)), "name of a dtype, got None"),
    "array of resources": (with_operations(array(dtype="resource")), "has the keys"),
    "short array": (with_operations(array(data="AAAAAA==")), "takes 8 bytes, .* holds 4"),
    "huge array": (with_operations(array(shape=[2**40, 2**40])), "the document holds 8"),
    "huge nothing": (
        with_operations(array(shape=[0, 2**62, 2**62], data="")),
        "no array has the shape",
    ),
    "ranks": (with_operations(array(shape=[1] * 99)), "at most 64 sizes"),
    "unknown size": (with_operations(array(shape=[None])), "must be fully known"),
    "negative size": (with_operations(array(shape=[-1])), "size >= 0 or null, got -1"),
    "true size": (with_operations(array(shape=[True])), "size >= 0 or null, got True"),
    "no base64": (with_operations(array(data="!")), "expected base64 text"),
    "loose base64": (with_operations(array(data="AAAAAAAAAAB=")), "shortest form"),
    "bool": (with_operations(array(dtype="bool", data="AQI=")), "other than 0 and 1"),
    "strings": (
        with_operations(const({"array": {"dtype": "string", "shape": [2], "items": ["YQ=="]}})),
        "has 2 elements, the document holds 1",
    ),
    "float": (with_operations(const({"float": "1_0"})), "a float as text"),
    "bare float": (with_operations(const(0.5)), "expected an attribute's value"),
    "nested tuples": (with_operations(const([[[[[[[[[[]]]]]]]]]])), "nested more than 8 deep"),
    "trap": (
        with_operations(
            {**X, "attrs": {**X["attrs"], "shape": {"shape": None}}},
            {"name": "u", "type": "Unstack", "inputs": ["x:0"], "attrs": {"num": 10**9, "axis": 0}},
        ),
        "num must be between 0 and 65536",
    ),
    "variables": (with_changes(variables={}), "'variables' must be a list"),
    "variable": (with_operations(X, variables=[{}]), "variable 0: expected an object with"),
    "no handle": (
        with_operations(
            X,
            variables=[
                {
                    "handle": "x:0",
                    "initial_value": "x:0",
                    "initializer": "x",
                    "snapshot": "x:0",
                    "trainable": True,
                }
            ],
        ),
        r"'x:0' \(Placeholder\) is no handle of a variable",
    ),
    "variable of another dtype": (
        with_operations(
            V,
            {"name": "r", "type": "VariableInitialized", "inputs": ["v:0"]},
            variables=[
                {
                    "handle": "v:0",
                    "initial_value": "r:0",
                    "initializer": "r",
                    "snapshot": "r:0",
                    "trainable": True,
                }
            ],
        ),
        "'initial_value' is bool, the variable holds float32",
    ),
}
FAULTS["no value"] = (with_operations(FAULTS["no value"][0]), "an object of 1")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_place(fault: str) -> None:
    document, message = FAULTS[fault]
    with pytest.raises(DocumentError, match=message) as caught:
        load(document)
    assert len(str(caught.value).splitlines()) <= MAX_LINES
    assert len(str(caught.value)) < 2000


def test_the_base_document_is_sound() -> None:
    assert dump(load(BASE)) == BASE


def test_a_variable_is_listed_once() -> None:
    (variable,) = DATA["variables"]
    with pytest.raises(DocumentError, match="is the handle of two variables"):
        load(with_changes(variables=[variable, variable]))


def test_a_claim_of_a_huge_array_takes_no_memory_or_time() -> None:
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(DocumentError, match="the document holds"):
        load(with_operations(array(shape=[2**33])))
    assert tracemalloc.get_traced_memory()[1] < 2**21
    assert time.process_time() - started < 5
    tracemalloc.stop()


def test_a_few_letters_stand_for_a_bounded_number_of_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert reader._MOST_OUTPUTS == 131_072
    monkeypatch.setattr(reader, "_MOST_OUTPUTS", 200)

    def wide(sizes: list[int]) -> str:
        with hr.Graph().as_default() as graph:
            for size in sizes:
                hr.dynamic_partition(hr.constant([1.0, 2.0]), hr.constant([0, 1]), size)
        return dump(graph)

    for sizes in ([100, 100], [64] * 10, [200, 64, 2]):
        assert dump(load(wide(sizes))) == wide(sizes)
    for sizes in ([100, 101], [65] * 4, [201], [64, 150, 2, 150]):
        with pytest.raises(DocumentError, match="more than 200 in all, which is refused in a file"):
            load(wide(sizes))


def test_nothing_is_executed(monkeypatch) -> None:
    """Neither opening files, nor importing, nor evaluating is needed to read a document."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"called with {args}")

    text = dump(load(BASE), sites=True)
    with monkeypatch.context() as patch:
        for name in ("open", "eval", "exec", "compile"):
            patch.setattr(builtins, name, refuse)
        load(text)


# -- mutations

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**31, 2**63, 10**18, -(2**63), 10**4000]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["x:0", "x", "kernel:0", "Const:0", "float64", "resource", "string"]),
    st.sampled_from(
        [[], {}, [[1]], [None], {"shape": None}, {"shape": [2, None]}, {"float": "nan"}]
    ),
    st.builds(lambda n: {"dtype": n}, st.sampled_from(["float64", "int32", "string", "resource"])),
    st.lists(st.integers(-2, 9), max_size=4),
)


def paths(data: object, here: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [here] if here else []
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items if isinstance(data, dict | list) else ():
        found += paths(value, (*here, key)) if isinstance(value, dict | list) else [(*here, key)]
    return found


PATHS = paths(DATA)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A document in which a few values were replaced, removed, doubled or exchanged."""
    data = copy.deepcopy(DATA)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PATHS))
        parent = data
        try:
            for key in path[:-1]:
                parent = parent[key]
            value = parent[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
        action = draw(st.sampled_from(["replace", "replace", "remove", "double", "borrow"]))
        if isinstance(parent, str):
            continue
        if action == "replace":
            parent[path[-1]] = draw(JUNK)
        elif action == "remove":
            del parent[path[-1]]
        elif action == "double" and isinstance(parent, list):
            parent.insert(path[-1], copy.deepcopy(value))
        else:
            other = DATA
            for key in draw(st.sampled_from(PATHS)):
                other = other[key]
            parent[path[-1]] = copy.deepcopy(other)
    return write(data)


def write(data: object) -> str:
    """JSON text, integers of any size included."""
    if isinstance(data, dict):
        return "{" + ",".join(f"{json.dumps(str(k))}:{write(v)}" for k, v in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ",".join(map(write, data)) + "]"
    return json.dumps(data)


def check_loads_or_refuses(document: str | bytes) -> None:
    started = time.process_time()
    message = ""
    try:
        again = dump(load(document))
        assert dump(load(again)) == again
    except DocumentError as error:
        message = str(error)
    assert len(message.splitlines()) <= MAX_LINES
    assert len(message) < 4000
    assert time.process_time() - started < 5


THOROUGH = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@THOROUGH
@given(mutated())
def test_changed_values_load_or_are_refused(document: str) -> None:
    check_loads_or_refuses(document)


@THOROUGH
@given(st.data())
def test_changed_bytes_load_or_are_refused(data: st.DataObject) -> None:
    raw = bytearray(BASE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        end = data.draw(st.integers(at, min(at + 3, len(raw))))
        raw[at:end] = data.draw(st.binary(max_size=3) | st.sampled_from([b'"', b"]", b"}", b"9"]))
    check_loads_or_refuses(bytes(raw))


@given(st.recursive(JUNK, lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_any_json_is_refused(data: object) -> None:
    with pytest.raises(DocumentError, match="document"):
        load(write(data))


def test_ten_thousand_operations_are_read_quickly(graph) -> None:
    value = hr.constant(np.float32(1))
    for _ in range(10_000):
        value = hr.negative(value)
    text = dump(graph)
    started = time.process_time()
    assert len(load(text)) == 10_001
    assert time.process_time() - started < 10
