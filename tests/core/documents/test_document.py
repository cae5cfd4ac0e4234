"""Graph documents: round trips, equality, running what was loaded."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import headrace as hr
from headrace import dtypes
from headrace.documents.document import dump, load
from headrace.errors import DocumentError
from headrace.extend import OPS, Floating, Spec, hookimpl, op
from headrace.graph.attributes import canonical, decode, encode, fits
from headrace.graph.scopes import gradient_override_map
from headrace.graph.spec import TensorSpec
from headrace.ops.queue import fifo_queue, queue_dequeue, queue_enqueue
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.shapes import Shape
from tests.children import run_python


def build_program() -> hr.Graph:
    """A graph with every kind of attribute, edge and scope."""
    graph = hr.Graph()
    with graph.as_default():
        hr.set_random_seed(7)
        x = hr.placeholder(hr.float32, [None, 8, 8, 1], name="x")
        labels = hr.placeholder(hr.int64, None, name="labels")
        with hr.name_scope("conv"), hr.device("/job:worker/task:1/device:cpu:0"):
            kernel = hr.Variable(hr.random_normal([3, 3, 1, 2], stddev=0.1), name="kernel")
            hidden = hr.nn.relu(hr.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"))
            pooled = hr.nn.max_pool(hidden, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        flat = hr.reshape(pooled, [-1, 32])
        weights = hr.Variable(np.zeros((32, 3), np.float32), name="weights")
        counter = hr.Variable(np.int64(0), trainable=False, name="counter")
        with hr.container("shared"), hr.colocate_with(weights):
            bias = hr.Variable(hr.zeros([3]), name="bias")
        logits = hr.matmul(flat, weights) + bias
        loss = hr.reduce_mean(
            hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        with hr.control_dependencies([loss, hr.assign_add(counter, 1)]):
            hr.identity(logits[..., 1:, None], name="tail")
        dead, alive = hr.switch(loss, loss > 1.5)
        hr.merge([dead * 2, alive])
        hr.constant(["", b"\x00\xff", "höhe"], name="texts")
        for i, value in enumerate([np.nan, -np.inf, -0.0]):
            hr.constant(value, hr.bfloat16, name=f"odd_{i}")
        hr.pad(x[0, 0], [[1, 2], [0, 0]], constant_values=float("nan"))
        hr.split(weights, [30, 2])
        queue = fifo_queue(4, (hr.float32, hr.string), (Shape([2]), Shape(None)), "", "q")
        queue_enqueue(queue, [hr.ones([2]), hr.constant("s")])
        queue_dequeue(queue, (hr.float32, hr.string), (Shape([2]), Shape(None)))
        with gradient_override_map({"Relu": "GuidedRelu"}):
            hr.nn.relu(loss)
        hr.global_variables_initializer()
    return graph


def describe(graph: hr.Graph) -> list[tuple[object, ...]]:
    """All that a document must keep, arrays as bytes."""
    return [
        (
            op.name,
            op.type,
            [t.name for t in op.inputs],
            op.arity,
            [c.name for c in op.control_inputs],
            [c.name for c in op.colocated_with],
            op.device,
            op.origin,
            op.gradient_rule,
            {k: encode(v) for k, v in op.attrs.items()},
            [(t.spec.dtype, t.shape, t.spec.content, t.spec.dims) for t in op.outputs],
        )
        for op in graph.operations
    ]


def test_a_round_trip_keeps_everything() -> None:
    graph = build_program()
    loaded = load(dump(graph))
    assert describe(loaded) == describe(graph)
    assert loaded.seed == 7
    assert [(v.name, v.trainable, v.dtype, v.shape) for v in loaded.variables] == [
        (v.name, v.trainable, v.dtype, v.shape) for v in graph.variables
    ]


def test_a_round_trip_gives_the_same_text() -> None:
    text = dump(build_program())
    assert dump(load(text)) == text
    assert dump(load(text.encode())) == text


def test_the_same_program_gives_the_same_text() -> None:
    assert dump(build_program()) == dump(build_program())


def test_another_process_gives_the_same_text(tmp_path) -> None:
    program = (
        "import headrace as hr\n"
        "x = hr.placeholder(hr.float32, [None, 2], name='x')\n"
        "w = hr.Variable(hr.random_normal([2, 2], seed=1))\n"
        "y = hr.nn.softmax(x @ w)\n"
        "print(hr.get_default_graph().to_document(), end='')\n"
    )
    texts = []
    for folder, seed in (("one", "1"), ("two", "2")):
        file = tmp_path / folder / "program.py"
        file.parent.mkdir()
        file.write_text(program)
        done = run_python(file, env={"PYTHONHASHSEED": seed})
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert "program.py" not in texts[0]


def test_a_document_holds_one_operation_per_line(graph) -> None:
    hr.constant(1.0, name="one")
    hr.constant(2.0, name="two")
    lines = dump(graph).splitlines()
    assert [json.loads(line.rstrip(","))["name"] for line in lines[2:4]] == ["one", "two"]


def test_an_empty_graph_round_trips(graph) -> None:
    assert len(load(dump(graph))) == 0


def test_sites_are_kept_on_request_with_their_text(graph) -> None:
    made = hr.constant(1.0, name="here")
    kept = load(dump(graph, sites=True)).get_operation_by_name("here").site
    assert (kept.filename, kept.line) == (made.op.site.filename, made.op.site.line)
    assert kept.text == 'made = hr.constant(1.0, name="here")'
    assert dump(load(dump(graph, sites=True)), sites=True) == dump(graph, sites=True)


def test_a_kept_site_looks_no_file_up(graph) -> None:
    hr.constant(1.0, name="x")
    text = dump(graph, sites=True).replace(json.dumps(__file__), '"/dev/zero"')
    site = load(text).operations[0].site
    assert str(site).startswith("/dev/zero:")


def test_without_sites_operations_come_from_the_line_that_loads(graph) -> None:
    hr.constant(1.0)
    assert load(dump(graph)).operations[0].site.filename == __file__


def test_new_nodes_in_a_loaded_graph_get_the_names_they_would_have_had() -> None:
    names = []
    for graph in (first := build_program(), load(dump(first))):
        with graph.as_default(), hr.name_scope("conv"):
            names.append([hr.constant(1.0, name=n).name for n in ("x", "kernel", "Const", "x")])
        with graph.as_default():
            names[-1] += [hr.constant(1.0, name=n).name for n in ("X", "weights", "new", "new")]
    assert names[0] == names[1]


def test_a_shape_known_better_than_the_rule_says_is_kept(graph) -> None:
    dims = hr.placeholder(hr.int32, [2])
    graph.add_operation(
        OPS["Fill"],
        name="f",
        inputs=[dims, hr.constant(1.0)],
        arity=(1, 1),
        attrs={},
        specs=[TensorSpec(hr.float32, Shape([3, 4]))],
    )
    loaded = load(dump(graph))
    assert loaded.get_tensor_by_name("f:0").shape == [3, 4]
    assert dump(loaded) == dump(graph)


def test_a_loaded_graph_runs(graph, mini) -> None:
    x = hr.placeholder(hr.float32, [None, 2], name="x")
    w = hr.Variable([[1.0], [2.0]], name="w")
    hr.matmul(x, w, name="y")
    hr.global_variables_initializer()
    loaded = load(dump(graph))
    with hr.Session(graph=loaded) as session:
        session.run("init")
        assert session.run("y:0", {"x:0": [[3, 4]]}) == 11
        (variable,) = loaded.variables
        assert session.run(variable).tolist() == [[1], [2]]


@pytest.mark.needs("autodiff", "backend-cpu")
def test_a_loaded_graph_has_gradients_of_its_variables(graph) -> None:
    x = hr.placeholder(hr.float32, [None, 2], name="x")
    w = hr.Variable([[1.0], [2.0]], name="w")
    hr.reduce_sum(hr.square(hr.matmul(x, w)), name="loss")
    loaded = load(dump(graph))
    with loaded.as_default():
        (slope,) = hr.gradients(loaded.get_tensor_by_name("loss:0"), loaded.variables)
        init = hr.global_variables_initializer()
    with hr.Session(graph=loaded) as session:
        session.run(init)
        assert session.run(slope, {"x:0": [[3, 4]]}).tolist() == [[66], [88]]


# Declared by a plugin, once it is asked.
class LatePlugin:
    @hookimpl
    def headrace_declare_ops(self) -> None:
        @op("LateScale", public="")
        def late_scale(x: Floating, *, factor: float = 2.0) -> Spec:
            """Scale.

            Args:
                x: [...], floating.
                factor: The factor.

            Returns:
                Like ``x``.
            """
            return x


LATE = """{"format":"headrace.graph","operations":[
{"attrs":{"dtype":{"dtype":"float32"},"shape":{"shape":[3]}},"name":"x","type":"Placeholder"},
{"inputs":["x:0"],"name":"y","type":"LateScale"}],
"producer":"test","seed":null,"variables":[],"version":1}"""


def test_plugins_declare_their_ops_when_a_document_needs_them(fake_entry, monkeypatch) -> None:
    broken = SimpleNamespace()
    monkeypatch.setattr(
        host_module,
        "_HOST",
        PluginHost([fake_entry("late", ImportError("no such library")), fake_entry("x", broken)]),
    )
    with pytest.raises(DocumentError, match=r"'y': no op 'LateScale'[^\0]*'late'.*no such library"):
        load(LATE)
    monkeypatch.setattr(host_module, "_HOST", PluginHost([fake_entry("late", LatePlugin())]))
    scaled = load(LATE).get_operation_by_name("y")
    # An attribute that the op got after the document was written has its default.
    assert scaled.attrs["factor"] == 2.0
    assert scaled.outputs[0].shape == [3]


# -- attributes

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.text(),
    st.binary(),
    st.sampled_from([hr.float32, hr.bfloat16, hr.bool, hr.string, hr.complex128, hr.resource]),
    st.builds(Shape, st.none() | st.lists(st.none() | st.integers(0, 2**40), max_size=5)),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8)


@given(VALUES)
def test_attributes_round_trip_through_json(value) -> None:
    data = json.loads(json.dumps(encode(value)))
    found = decode(data)
    assert encode(found) == data
    # NaN differs from itself, and 1 equals 1.0 and True: the text tells them apart.
    assert repr(found) == repr(value)


@settings(max_examples=50)
@given(
    st.sampled_from([dtype for dtype in dtypes.ALL if dtype.numpy.kind != "O"]),
    hnp.array_shapes(min_dims=0, min_side=0, max_side=3),
    st.randoms(use_true_random=False),
)
def test_arrays_of_every_dtype_round_trip(dtype, shape, random) -> None:
    raw = random.randbytes(int(np.prod(shape)) * dtype.itemsize)
    if dtype.is_bool:
        raw = bytes(b & 1 for b in raw)
    array = np.frombuffer(raw, dtype.numpy).reshape(shape)
    found = decode(json.loads(json.dumps(encode(array))))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == raw
    assert not found.flags.writeable


def test_arrays_of_any_layout_round_trip() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4).T[::2]
    assert (decode(encode(array)) == array).all()


def test_strings_of_any_rank_round_trip() -> None:
    for shape in [(), (0,), (2, 1)]:
        array = np.empty(shape, object)
        array.fill(b"\xff\x00")
        found = decode(encode(array))
        assert found.shape == shape
        assert found.tolist() == array.tolist()


def test_numpy_scalars_become_python_numbers() -> None:
    for value in (np.float64(0.5), np.int8(3), np.bool_(True), np.str_("a")):
        assert type(canonical(value)) is type(value.item())


@pytest.mark.parametrize(
    "value", [object(), np.array([object()]), np.array(["2026"], "M8[D]"), {}, 2**300]
)
def test_values_without_a_document_form_are_refused(value) -> None:
    with pytest.raises(DocumentError, match="document"):
        encode(value)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, int, True),
        (True, int, False),
        (1, float, True),
        ("a", int | None, False),
        (None, int | None, True),
        ((1, 2), tuple[int, int], True),
        ((1, 2, 3), tuple[int, int], False),
        ((1, 2, 3), tuple[int, ...], True),
        ((1, "x"), tuple[int, ...], False),
        (hr.float32, hr.DType, True),
        ("float32", hr.DType, False),
    ],
)
def test_values_are_checked_against_annotations(value, hint, expected) -> None:
    assert fits(value, hint) is expected


def test_a_program_cannot_give_an_attribute_of_another_type(graph) -> None:
    with pytest.raises(hr.errors.AttributeValueError, match=r"width must be int, got 'x'"):
        hr.as_string(hr.zeros([2, 3]), width="x")


def test_integer_arrays_are_taken_where_tuples_are(graph) -> None:
    turned = hr.transpose(hr.zeros([2, 3]), np.array([1, 0]))
    assert turned.op.attrs["perm"] == (1, 0)
    assert load(dump(graph)).get_operation_by_name(turned.op.name).attrs["perm"] == (1, 0)


@pytest.mark.parametrize("texts", [[b"a\x00", b"\x00"], ["", b"\xff\x00", "höhe"]])
def test_strings_keep_all_their_bytes(graph, texts) -> None:
    found = hr.constant(texts).op.attrs["value"].tolist()
    assert found == [t if isinstance(t, bytes) else t.encode() for t in texts]
    assert load(dump(graph)).operations[0].attrs["value"].tolist() == found


def test_numbers_among_strings_are_refused(graph) -> None:
    with pytest.raises(hr.errors.DTypeError, match="int elements have no dtype"):
        hr.constant(["a", 1])
