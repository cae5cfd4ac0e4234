"""What libraries use of TensorFlow's private modules, against plain computations."""

from __future__ import annotations

import collections
import inspect
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import GraphError
from headrace_tensorflow.helpers import (
    averages,
    cells,
    compat,
    conditions,
    constants,
    context,
    conversions,
    decorators,
    device_lib,
    dimensions,
    errors,
    functions,
    gradients,
    inspection,
    metrics,
    parsing,
    ragged,
    shapes,
    splits,
    strings,
    structures,
    timeline,
    variables,
)

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


@pytest.mark.parametrize("zero_debias", [True, False])
def test_averages_move_towards_values(zero_debias: bool) -> None:
    average = hr.get_variable("average", initializer=hr.zeros([2]))
    value = hr.placeholder(hr.float32, [2])
    moved = averages.assign_moving_average(average, value, 0.9, zero_debias=zero_debias)
    rows = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    biased, total = np.zeros(2), 0.0
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        for row in rows:
            biased = 0.9 * biased + 0.1 * row
            total = 0.9 * total + 0.1
            wanted = biased / total if zero_debias else biased
            np.testing.assert_allclose(session.run(moved, {value: row}), wanted, rtol=1e-5)
        np.testing.assert_allclose(session.run(average), wanted, rtol=1e-5)
    assert not [v for v in hr.trainable_variables() if v is not average]


@pytest.mark.parametrize(
    ("pred", "known"),
    [(True, True), (0, False), (hr.constant, True), (hr.placeholder_with_default, None)],
)
def test_known_conditions_choose_at_once(pred: Any, known: bool | None) -> None:
    if pred is hr.constant:
        pred = hr.constant(True)
    elif pred is hr.placeholder_with_default:
        pred = hr.placeholder_with_default(False, [])
    assert conditions.smart_constant_value(pred) is known
    calls = []
    result = conditions.smart_cond(
        pred, lambda: calls.append(1) or hr.constant(1), lambda: calls.append(2) or hr.constant(2)
    )
    assert calls == {True: [1], False: [2], None: [1, 2]}[known]
    with hr.Session():
        assert result.eval() == {True: 1, False: 2, None: 2}[known]


def test_dependencies_come_first() -> None:
    v = hr.Variable(1.0)
    after = conditions.with_dependencies([v.assign(5.0)], v)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        assert session.run(after) == 5.0


SHAPES = [
    ([4, 1], [4], 0, [4], [4]),
    ([4], [4, 1], 0, [4], [4]),
    ([4], [4, 3], 1, [4], [4, 3]),
    ([4, 1], [4, 3], 1, [4], [4, 3]),
    ([4, 2], [4, 2], 0, [4, 2], [4, 2]),
]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("labels", "predictions", "more", "wanted", "others"), SHAPES)
def test_a_last_axis_of_one_is_dropped(
    labels: list[int],
    predictions: list[int],
    more: int,
    wanted: list[int],
    others: list[int],
    known: bool,
) -> None:
    x = hr.placeholder(hr.float32, labels if known else None)
    y = hr.placeholder(hr.float32, predictions if known else None)
    both = metrics.remove_squeezable_dimensions(x, y, more)
    with hr.Session() as session:
        found = session.run(both, {x: np.ones(labels), y: np.ones(predictions)})
    assert [list(array.shape) for array in found] == [wanted, others]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("weights", "wanted"), [([], []), ([4, 3], [4, 3]), ([4], [4, 1]), ([4, 3, 1], [4, 3])]
)
def test_weights_are_made_to_fit(weights: list[int], wanted: list[int], known: bool) -> None:
    w = hr.placeholder(hr.float32, weights if known else None)
    x = hr.placeholder(hr.float32, [4, 3])
    found = metrics._remove_squeezable_dimensions(x, hr.ones([4, 3]), w)[2]
    with hr.Session() as session:
        array = session.run(found, {w: np.ones(weights), x: np.ones([4, 3])})
    assert list(array.shape) == wanted


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shape", [[], [2, 1], [1, 3], [2, 3]])
def test_weights_are_broadcast(shape: list[int], known: bool) -> None:
    array = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    weights = hr.placeholder(hr.float32, shape if known else None)
    found = metrics.broadcast_weights(weights, np.zeros([2, 3], np.float32))
    with hr.Session() as session:
        np.testing.assert_array_equal(
            session.run(found, {weights: array}), np.broadcast_to(array, [2, 3])
        )


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        metrics.assert_broadcastable(np.ones([3]), np.ones([2, 3]))
    weights = hr.placeholder(hr.float32)
    found = metrics.broadcast_weights(weights, np.ones([2, 3], np.float32))
    with (
        hr.Session() as session,
        pytest.raises(hr.errors.InvalidArgumentError, match="weights can not be broadcast"),
    ):
        session.run(found, {weights: np.ones([3])})


def test_quotients_and_values_of_metrics() -> None:
    v = metrics.metric_variable([], hr.float32)
    value = metrics._aggregate_variable(v, ["listed"])
    assert hr.get_collection("listed") == [value]
    quotients = [metrics._safe_scalar_div(6.0, value, "q"), metrics._safe_scalar_div(6.0, 2.0, "r")]
    with hr.Session() as session:
        session.run(v.initializer)
        assert session.run(quotients) == [0.0, 3.0]


def test_variables_of_metrics_are_local() -> None:
    v = metrics.metric_variable([2], hr.float32, name="total")
    assert hr.local_variables() == [v]
    assert hr.get_collection(hr.GraphKeys.METRIC_VARIABLES) == [v]
    assert isinstance(v, variables.ResourceVariable)
    assert variables.is_resource_variable(v)
    with hr.Session() as session:
        session.run(hr.local_variables_initializer())
        assert session.run(v).tolist() == [0, 0]


def test_shapes_are_tensors() -> None:
    x = hr.placeholder(hr.float32)
    with hr.Session() as session:
        found = session.run(
            [
                shapes.shape_internal(x, out_type=hr.int64),
                shapes.size_internal(x, optimize=False),
                shapes.rank_internal(x),
            ],
            {x: np.ones([2, 3])},
        )
    assert [np.asarray(value).tolist() for value in found] == [[2, 3], 6, 2]
    assert found[0].dtype == np.int64


def test_what_counts_as_a_tensor() -> None:
    sparse = hr.SparseTensor([[0]], [1.0], [2])
    assert isinstance(sparse, conversions._TensorLike)
    assert not conversions.is_dense_tensor_like(sparse)
    assert conversions.is_dense_tensor_like(hr.Variable(1.0))
    with hr.Graph().as_default() as graph:
        x = hr.constant(1.0)
    assert conversions._get_graph_from_inputs([1, x]) is graph
    assert conversions._get_graph_from_inputs([1]) is hr.get_default_graph()


def test_decorators_change_nothing() -> None:
    def function(a: int, *, b: int = 2) -> int:
        return a + b

    assert decorators.deprecated("2020", "no")(function) is function
    assert decorators.tf_export("name", v1=[])(function) is function
    made = decorators.make_decorator(function, lambda *args, **kwargs: function(*args, **kwargs))
    assert made(1) == 3
    assert decorators.unwrap(made) == ([], function)
    assert inspection.getargspec(made).args == ["a", "b"]
    assert inspection.isfunction(made) is inspect.isfunction(made)
    assert decorators.deprecated_argument_lookup("new", None, "old", 3) == 3
    with pytest.raises(ValueError, match="Cannot specify both 'old' and 'new'"):
        decorators.deprecated_argument_lookup("new", 1, "old", 3)


@pytest.mark.needs("train")
def test_decorators_of_tests_change_nothing() -> None:
    from headrace_tensorflow.helpers import testing

    def function() -> None:
        pass

    assert testing.run_deprecated_v1(function) is function
    assert testing.run_v1_only("reason")(function) is function
    assert testing.run_in_graph_and_eager_modes(use_gpu=True)(function) is function
    with testing.use_gpu():
        assert testing.TensorFlowTestCase is hr.test.TestCase


def test_there_are_graphs_only() -> None:
    assert not context.executing_eagerly()
    assert context.in_graph_mode()
    with context.graph_mode():
        assert not context.enabled()


def test_devices_are_those_of_a_session() -> None:
    found = device_lib.list_local_devices()
    assert [device.device_type.upper() for device in found][:1] == ["CPU"]


def test_steps_are_drawn_in_lanes() -> None:
    def node(name: str, start: int, length: int) -> Any:
        return SimpleNamespace(
            node_name=name,
            timeline_label=f"{name} = Op{name}(x)",
            all_start_micros=start,
            all_end_rel_micros=length,
            op_end_rel_micros=length,
        )

    nodes = [node("b", 105, 20), node("a", 100, 10), node("c", 111, 3)]
    stats = SimpleNamespace(dev_stats=[SimpleNamespace(device="cpu:0", node_stats=nodes)])
    events = json.loads(timeline.Timeline(stats).generate_chrome_trace_format())["traceEvents"]
    assert events[0]["args"] == {"name": "cpu:0 Compute"}
    found = [(e["name"], e["tid"], e["ts"], e["dur"], e["args"]["name"]) for e in events[1:]]
    assert found == [
        ("Opa", 0, 100, 10, "a"),
        ("Opb", 1, 105, 20, "b"),
        ("Opc", 0, 111, 3, "c"),
    ]


@pytest.mark.needs("autodiff")
@pytest.mark.parametrize(
    ("options", "function", "wanted"),
    [
        # The gradient is the rule's, not that of what is computed.
        ({"python_grad_func": lambda op, dy: (dy * op.inputs[1], None)}, lambda x, y: x, [2, None]),
        ({"grad_func": lambda x, y, dy: (dy * 5, dy * x)}, lambda x, y: x * y, [5, 3]),
        ({}, lambda x, y: x * y, [2, 3]),
    ],
)
def test_functions_have_gradients_of_their_own(
    options: dict[str, Any], function: Any, wanted: list[float | None]
) -> None:
    made = functions.Defun(hr.float32, hr.float32, func_name="F", **options)(function)
    x, y = hr.constant(3.0), hr.constant(2.0)
    out = made(x, y, name="called")
    assert out.op.name.startswith("called")
    found = hr.gradients(out, [x, y])
    with hr.Session() as session:
        values = [None if g is None or session.run(g) == 0 else session.run(g) for g in found]
    assert values == wanted


@pytest.mark.needs("autodiff")
def test_functions_make_gradients_of_rows_dense() -> None:
    made = functions.Defun(python_grad_func=lambda op, dy: hr.convert_to_tensor(dy))(lambda x: x)
    table = hr.constant([[1.0, 2.0], [3.0, 4.0]])
    (found,) = hr.gradients(hr.gather(made(table), [1, 1]), [table])
    with hr.Session() as session:
        np.testing.assert_array_equal(session.run(found), [[0, 0], [2, 2]])


def test_functions_check_what_they_are_given() -> None:
    made = functions.Defun(hr.float32, hr.float32)(lambda x, y: x + y)
    with pytest.raises(ValueError, match="expected 2 arguments, got 1"):
        made(1.0)
    with pytest.raises(TypeError, match="has dtype int32, expected float32"):
        made(hr.constant(1), 2.0)


def test_structures_end_where_another_one_does() -> None:
    shallow, deep = {"a": 0, "b": [0, 0]}, {"b": [(1, 2), 3], "a": [4, 5]}
    assert structures.flatten_up_to(shallow, deep) == [[4, 5], (1, 2), 3]
    structures.assert_shallow_structure(shallow, deep)
    packed = structures.map_structure_up_to([0, 0], lambda x, y: (x, y), [[1], 2], ["a", ["b"]])
    assert packed == [([1], "a"), (2, ["b"])]
    assert structures.flatten_dict_items({"a": 1, ("b", "c"): (2, 3)}) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("shallow", "deep", "error", "message"),
    [
        ([0], 1, TypeError, "input must also be a sequence. Input has type: int"),
        ([0], (1,), TypeError, "same sequence type. Input structure has type tuple"),
        ([0, 0], [1], ValueError, "same sequence length. Input structure has length 1"),
        ({"a": 0}, {"b": 0}, ValueError, "same keys. Input structure has keys"),
    ],
)
def test_structures_that_differ_are_refused(
    shallow: Any, deep: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        structures.assert_shallow_structure(shallow, deep)


@pytest.mark.parametrize(
    ("given", "message"),
    [({("a", "b"): [1]}, "Key had 2 elements"), ({"a": 1, ("a",): [2]}, "key a is not unique")],
)
def test_dicts_that_do_not_flatten_are_refused(given: dict[Any, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        structures.flatten_dict_items(given)


def test_structures_of_none_are_refused() -> None:
    with pytest.raises(ValueError, match="Cannot map over no sequences"):
        structures.map_structure_up_to([0], lambda x: x)


def test_signatures_are_those_of_what_is_decorated() -> None:
    spec = inspection.getfullargspec(hr.cast)
    assert (spec.args, spec.annotations) == (["x", "dtype", "name"], {})


def test_states_begin_with_zeros() -> None:
    count = hr.placeholder(hr.int32, [])
    state = cells._zero_state_tensors((3, hr.TensorShape([2, 1])), count, hr.float32)
    assert [t.shape.as_list() for t in state] == [[None, 3], [None, 2, 1]]
    fixed = cells._zero_state_tensors([4], 2, hr.int32)
    with hr.Session() as session:
        values = session.run([*state, *fixed], {count: 5})
    assert [v.shape for v in values] == [(5, 3), (5, 2, 1), (2, 4)]
    assert not any(v.any() for v in values)


def test_name_scopes_are_told() -> None:
    with hr.name_scope("a"), hr.name_scope("b"):
        assert conversions.get_name_scope() == "a/b"


def test_jacobians_of_functions_are_computed_twice() -> None:
    def f(a: Any, b: Any) -> Any:
        return a * b + hr.sin(a)

    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    with hr.Session():
        exact, moved = gradients.compute_gradient(f, [a, b])
        np.testing.assert_allclose(exact[0], np.diag(b + np.cos(a)))
        np.testing.assert_allclose(exact[1], np.diag(a))
        assert 0 < gradients.max_error(exact, moved) < 1e-6
        (rows,), _ = gradients.compute_gradient(lambda x: hr.gather(x, [1, 1]), [[1.0, 2.0]])
        assert rows.tolist() == [[0.0, 0.0], [1.0, 1.0]]
        (parts,), _ = gradients.compute_gradient(hr.square, [np.array([1 + 2j])])
        assert parts.tolist() == [[2.0, 4.0], [-4.0, 2.0]]
        none = gradients.compute_gradient(lambda x: x[:0], [np.ones(2)])
        assert none[0][0].shape == none[1][0].shape == (2, 0)
        assert gradients.max_error(*none) == 0


def test_jacobians_of_functions_need_a_list_and_a_session() -> None:
    with pytest.raises(ValueError, match="x must be a list of the arguments of f, got ndarray"):
        gradients.compute_gradient(hr.square, np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="runs in the default session: call it in 'with session"):
        gradients.compute_gradient(hr.square, [1.0])


@pytest.mark.parametrize(
    ("given", "options", "wanted"),
    [
        ([" a b", "c"], {}, [[b"a", b"b"], [b"c"]]),
        ([["a-b"], ["c"]], {"sep": "-"}, [[[b"a", b"b"]], [[b"c"]]]),
        (["a,,b"], {"sep": ",", "maxsplit": 1}, [[b"a", b",b"]]),
        ([], {}, []),
    ],
)
def test_split_strings_are_ragged(given: Any, options: Any, wanted: Any) -> None:
    pieces = strings.string_split_v2(given, **options)
    assert isinstance(pieces, hr.RaggedTensor)
    with hr.Session() as session:
        assert session.run(pieces).to_list() == wanted
        ragged = strings.string_split_v2(hr.ragged.constant([["a b"], []]))
        assert session.run(ragged).to_list() == [[[b"a", b"b"]], []]
        assert session.run(strings.string_split_v2("a b")).tolist() == [b"a", b"b"]


def test_tensors_used_as_values_are_an_error_by_tensorflows_name() -> None:
    with pytest.raises(errors.OperatorNotAllowedInGraphError, match="has no truth value"):
        bool(hr.placeholder(hr.bool, []))
    assert issubclass(errors.OperatorNotAllowedInGraphError, TypeError)


def test_constants_are_filled() -> None:
    with hr.Session() as session:
        filled = constants.constant(1.5, shape=[2, 2]), constants.constant([1], hr.int64, [2])
        assert [x.tolist() for x in session.run(filled)] == [[[1.5, 1.5], [1.5, 1.5]], [1, 1]]
        turned = constants.constant([1, 2], shape=[2, 1], name="turned")
        assert turned.op.name == "turned"
        assert session.run(turned).tolist() == [[1], [2]]
        assert session.run(constants.constant([1, 2])).tolist() == [1, 2]
        assert session.run(constants.constant([1, 2], shape=[0])).tolist() == []


@pytest.mark.parametrize("shape", [[5], [2], [3, 3], []])
def test_constants_that_are_not_filled_are_refused(shape: list[int]) -> None:
    with pytest.raises(TypeError, match=r"a value of shape \[3\] does not fill"):
        constants.constant([1, 2, 3], shape=shape)


def test_constants_of_unknown_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="is not fully defined"):
        constants.constant([1, 2], shape=[None])


@pytest.mark.parametrize(
    ("split", "given", "options", "pieces", "shape"),
    [
        (splits.string_split, ["a b", "c"], {}, [b"a", b"b", b"c"], [2, 2]),
        (splits.string_split, ["a,;b"], {"sep": ",;"}, [b"a", b"b"], [1, 2]),
        (splits.string_split, ["a,"], {"delimiter": ",", "skip_empty": False}, [b"a", b""], [1, 2]),
        (splits.string_split, [], {"sep": ""}, [], [0, 0]),
        (splits.string_split_v2, ["a  b c"], {"maxsplit": 1}, [b"a", b"b c"], [1, 2]),
        (splits.string_split_v2, ["a--b"], {"sep": "-"}, [b"a", b"", b"b"], [1, 3]),
    ],
)
def test_split_strings_are_sparse(
    split: Any, given: Any, options: Any, pieces: Any, shape: Any
) -> None:
    with hr.Session() as session:
        found = session.run(split(given, **options))
    assert found.values.tolist() == pieces
    assert found.dense_shape.tolist() == shape


def test_shapes_are_made_of_sizes() -> None:
    assert dimensions.unknown_shape().ndims is None
    assert dimensions.unknown_shape(2).as_list() == [None, None]
    assert dimensions.unknown_shape(ndims=1).as_list() == [None]
    assert dimensions.scalar().as_list() == []
    assert dimensions.vector(3).as_list() == [3]
    assert dimensions.matrix(2, None).as_list() == [2, None]
    shape = hr.TensorShape([2])
    assert dimensions.as_shape(shape) is shape
    assert dimensions.as_shape([2, None]).as_list() == [2, None]
    assert dimensions.as_shape(None).ndims is None
    size = hr.Dimension(2)
    assert dimensions.as_dimension(size) is size
    assert dimensions.as_dimension(3).value == 3
    with pytest.raises(TypeError, match="unknown_shape takes a rank, got name, too"):
        dimensions.unknown_shape(name="x")


def test_kinds_of_containers_are_pythons() -> None:
    assert issubclass(dict, compat.collections_abc.Mapping)


def test_what_is_ragged() -> None:
    rows = hr.ragged.constant([[1, 2], [3]])
    with hr.Session() as session:
        value = session.run(rows)
        again = ragged.convert_to_tensor_or_ragged_tensor(value, hr.int64)
        assert session.run(again).to_list() == [[1, 2], [3]]
    assert ragged.is_ragged(rows)
    assert ragged.is_ragged(value)
    assert ragged.is_ragged(again)
    assert again.dtype == hr.int64
    assert not ragged.is_ragged([[1, 2], [3]])
    assert ragged.convert_to_tensor_or_ragged_tensor(rows) is rows
    dense = ragged.convert_to_tensor_or_ragged_tensor([1], preferred_dtype=hr.int64)
    assert not ragged.is_ragged(dense)
    assert dense.dtype == hr.int64
    with pytest.raises(ValueError, match="has dtype int32, expected float32"):
        ragged.convert_to_tensor_or_ragged_tensor(rows, hr.float32)


def test_segments_of_ragged_tensors_take_their_number() -> None:
    rows, ids = hr.ragged.constant([[1, 2], [3]]), hr.ragged.constant([[1, 2], [0]])
    with hr.Session() as session:
        assert session.run(ragged.segment_sum(rows, ids, 4)).tolist() == [3, 1, 2, 0]
        assert session.run(ragged.to_tensor(rows, default_value=9)).tolist() == [[1, 2], [3, 9]]
        padded = ragged.from_tensor([[1, 0], [2, 3]], padding=0)
        assert session.run(padded).to_list() == [[1], [2, 3]]


@pytest.mark.needs("io")
def test_strings_of_bytes_are_cut_and_filled() -> None:
    text = [b"\x01\x02\x03\x04\x05", b"\x01", b""]
    with hr.Session() as session:
        whole = session.run(parsing.decode_raw(["\x01\x02"], hr.uint16))
        filled = session.run(parsing.decode_raw(text, hr.int16, fixed_length=4))
        turned = session.run(parsing.decode_raw(text, hr.int16, False, fixed_length=4))
    assert whole.tolist() == [[0x201]]
    assert filled.tolist() == [[0x201, 0x403], [1, 0], [0, 0]]
    assert turned.tolist() == [[0x102, 0x304], [0x100, 0], [0, 0]]
    with pytest.raises(ValueError, match="fixed_length must be a positive multiple of 2"):
        parsing.decode_raw(text, hr.int16, fixed_length=3)


def test_leaves_come_with_their_paths() -> None:
    pair = collections.namedtuple("pair", "left right")  # noqa: PYI024 - what programs have
    deep = {"b": [1, (2,)], "a": pair(3, {"c": 4})}
    paths = [("a", "left"), ("a", "right", "c"), ("b", 0), ("b", 1, 0)]
    assert structures.flatten_with_tuple_paths(deep) == list(zip(paths, [3, 4, 1, 2], strict=True))
    joined = structures.flatten_with_joined_string_paths(deep, separator=".")
    assert joined == [("a.left", 3), ("a.right.c", 4), ("b.0", 1), ("b.1.0", 2)]
    assert structures.flatten_with_tuple_paths(5) == [((), 5)]
    shown = structures.map_structure_with_paths(lambda path, x: f"{path}={x}", deep)
    assert shown == {"b": ["b/0=1", ("b/1/0=2",)], "a": pair("a/left=3", {"c": "a/right/c=4"})}
    sums = structures.map_structure_with_tuple_paths(
        lambda path, x, y, more: (path, x + y + more), [1, 2], (3, 4), check_types=False, more=5
    )
    assert sums == [((0,), 9), ((1,), 11)]


def test_structures_that_are_not_alike_are_not_mapped() -> None:
    with pytest.raises(TypeError, match="func must be callable, got int"):
        structures.map_structure_with_paths(5, [1])
    with pytest.raises(TypeError, match="func must be callable, got int"):
        structures.map_structure_with_tuple_paths(5, [1])
    with pytest.raises(ValueError, match="there is no structure to map over"):
        structures.map_structure_with_tuple_paths(print)
    with pytest.raises(TypeError, match="the structures differ: list and tuple"):
        structures.map_structure_with_tuple_paths(print, [1], (1,))
    with pytest.raises(ValueError, match="structure"):
        structures.map_structure_with_tuple_paths(print, [1], [1, 2])
