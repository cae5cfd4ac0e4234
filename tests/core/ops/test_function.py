"""Functions that are traced once and called like ops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, DTypeError, GraphError, ShapeError
from headrace.graph.spec import TensorSpec, as_shape
from tests.steps import run_ready

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def test_a_call_is_one_node_and_traced_once(graph):
    traces = []

    @hr.function
    def f(x, y):
        traces.append(x)
        return hr.tanh(x) * y

    a = f(hr.constant(1.0), hr.constant(2.0))
    b = f(hr.constant(3.0), hr.constant(4.0))
    assert len(traces) == 1
    assert [op.type for op in graph.operations].count("Call") == 2
    np.testing.assert_allclose(run_ready([a, b]), [2 * np.tanh(1), 4 * np.tanh(3)], rtol=1e-6)
    f(hr.constant([1.0]), hr.constant(2.0))
    assert len(traces) == 2, "another shape, another trace"


def test_python_values_are_constants_of_the_trace():
    @hr.function
    def power(x, n, *, scale=1.0):
        found = x
        for _ in range(n - 1):
            found = found * x
        return found * scale

    powers = [power(hr.constant(2.0), 3), power(hr.constant(2.0), 4, scale=0.5)]
    assert run_ready(powers) == [8.0, 8.0]


def test_structures_in_and_out():
    @hr.function
    def f(pair, *, extra):
        return {"sum": pair[0] + pair[1], "rest": [extra["x"], 1.0]}

    made = f((hr.constant(1.0), hr.constant(2.0)), extra={"x": hr.constant(5.0)})
    assert run_ready(made) == {"sum": 3.0, "rest": [5.0, 1.0]}


def test_arrays_and_variables_are_passed_on():
    v = hr.Variable([1.0, 2.0])

    @hr.function
    def f(x, y):
        return x + y

    np.testing.assert_array_equal(run_ready(f(v, np.float32([10.0, 20.0]))), [11, 22])


def test_captured_tensors_and_variables_have_gradients():
    x = hr.constant(2.0)
    w = hr.Variable(3.0)
    outside = hr.constant(5.0)

    @hr.function
    def f(a):
        return a * a * w * outside

    y = f(x)
    first = hr.gradients(y, [x, w, outside])
    (second,) = hr.gradients(first[0], [x])
    assert run_ready([y, *first, second]) == [60.0, 60.0, 20.0, 12.0, 30.0]


def test_what_changes_state_runs_with_every_call():
    v = hr.Variable(0)

    @hr.function
    def count(x):
        v.assign_add(1)
        return x * 2.0

    a, b = count(hr.constant(1.0)), count(hr.constant(2.0))
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run([a, b])
        assert session.run(v) == 2


def test_what_uses_state_keeps_the_order_of_the_program():
    v, w = hr.Variable(1.0), hr.Variable(10.0)

    @hr.function
    def both(x):
        before, other = v + 0.0, w.read_value()
        v.assign_add(x)
        between = v * 1.0
        hr.cond(x > 1.0, lambda: v.assign_add(x), lambda: w.assign_add(x))
        w.assign(v.read_value())
        return [before, between, v.read_value(), other, w.read_value()]

    found = both(hr.constant(2.0))
    function = found[0].op.attrs["function"]
    reads = [op for op in function.operations if op.type == "ReadVariable"]
    # Reads wait for changes only, not for one another.
    assert [len(op.control_inputs) for op in reads] == [0, 0, 1, 1, 1, 1]
    for config in (hr.Config(executor="plain"), hr.Config(compile_after=0)):
        with hr.Session(config=config) as session:
            session.run(hr.global_variables_initializer())
            assert session.run(found) == [1.0, 3.0, 5.0, 10.0, 5.0]


@pytest.mark.parametrize("config", [hr.Config(executor="plain"), hr.Config(compile_after=0)])
def test_what_prints_and_calls_python_keeps_the_order_of_the_program(config):
    seen = []

    def note(value):
        seen.append(int(value))
        return value

    @hr.function
    def told(x):
        for i in range(4):
            hr.py_func(note, [x + i], hr.int32)
        hr.cond(x > 0, lambda: hr.py_func(note, [100], hr.int32), lambda: 0)
        hr.py_func(note, [200], hr.int32)
        return x

    with hr.Session(config=config) as session:
        for start in (10, -10):
            seen.clear()
            assert session.run(told(hr.constant(start))) == start
            chosen = [100] if start > 0 else []
            assert seen == [start, start + 1, start + 2, start + 3, *chosen, 200]


def test_a_function_may_return_nothing():
    v = hr.Variable(1.0)

    @hr.function
    def more(x):
        v.assign_add(x)

    @hr.function
    def none(x):
        return None, [x, None]

    done = more(2.0)
    assert isinstance(done, hr.Operation)
    first, (x, last) = none(hr.constant(4))
    assert first is last is None
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        assert session.run(done) is None
        assert session.run([v, x]) == [3.0, 4]


def test_functions_call_functions_in_branches_and_loops():
    @hr.function
    def square(x):
        return x * x

    @hr.function
    def quartic(x):
        return square(square(x))

    x = hr.placeholder(hr.float64, [])
    y = hr.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, quartic(s)), (0, x))[1]
    z = hr.cond(x > 1, lambda: quartic(x), lambda: square(x))
    slopes = [hr.gradients(t, [x])[0] for t in (y, z)]
    assert run_ready([y, z, *slopes], {x: 1.5}) == pytest.approx(
        [1.5**16, 1.5**4, 16 * 1.5**15, 4 * 1.5**3]
    )


def test_random_numbers_differ_from_call_to_call():
    @hr.function
    def noise(x):
        return x + hr.random_normal([])

    found = run_ready([noise(hr.constant(0.0)) for _ in range(3)])
    assert len(set(found)) == 3


def test_one_trace_for_all_that_fits_a_signature():
    traces = []

    @hr.function(input_signature=[([None], hr.float32)])
    def total(x):
        traces.append(x.shape.as_list())
        return hr.reduce_sum(x)

    assert run_ready([total(hr.ones([2])), total(hr.ones([5]))]) == [2.0, 5.0]
    assert traces == [[None]]
    with pytest.raises(GraphError, match="by its input_signature, got float64"):
        total(hr.ones([2], hr.float64))
    with pytest.raises(GraphError, match="takes 1 tensors by its input_signature, got 2"):
        total(hr.ones([2]), hr.ones([2]))


TWO = [hr.TensorSpec([], hr.float32)] * 2


def test_what_a_signature_states_is_given_by_name_or_as_data():
    @hr.function(input_signature=TWO)
    def less(a, b, c=1.0):
        return (a - b) * c

    found = run_ready([less(5.0, b=2), less(b=2.0, a=np.float32(5.0)), less(hr.constant(5.0), 2.0)])
    assert found == [3.0, 3.0, 3.0]
    # What follows is a constant of the trace.
    assert run_ready(less(5.0, 2.0, c=2.0)) == 6.0


def test_a_list_makes_one_tensor_of_a_signature():
    @hr.function(input_signature=[hr.TensorSpec(None, hr.int32)] * 2)
    def repeated(array, repeats):
        return hr.repeat(array, repeats, 0)

    found = run_ready(repeated(hr.constant([[1, 2], [3, 4]]), [1, 2]))
    np.testing.assert_array_equal(found, [[1, 2], [3, 4], [3, 4]])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda f: f(c=1.0), "missing a required argument: 'a'"),
        (lambda f: f(1.0, b=2.0, d=3.0), "unexpected keyword argument 'd'"),
        (lambda f: f("a", "b"), "argument 0 of 'less' is .* by its input_signature"),
    ],
)
def test_what_a_signature_does_not_take(call, match):
    @hr.function(input_signature=TWO)
    def less(a, b):
        return a - b

    with pytest.raises(ArgumentTypeError, match=match):
        call(less)


def test_fewer_tensors_than_a_signature_has():
    @hr.function(input_signature=TWO)
    def less(*several):
        return several[0]

    with pytest.raises(GraphError, match="takes 2 tensors by its input_signature, got 1"):
        less(1.0)


def test_a_concrete_function_is_one_trace():
    traces = []

    @hr.function
    def scaled(x, y, times):
        traces.append(times)
        return {"sum": (x + y) * times, "none": None, "more": [x]}

    spec = hr.TensorSpec([None], hr.float32)
    concrete = scaled.get_concrete_function(spec, y=hr.TensorSpec([], hr.float32), times=3)
    x, y = hr.constant([1.0, 2.0]), hr.constant(1.0)
    found = run_ready([concrete(x, y)["sum"], concrete(x, y=y)["more"][0]])
    np.testing.assert_array_equal(found, [[6.0, 9.0], [1.0, 2.0]])
    assert traces == [3]
    assert concrete.name == "scaled"
    assert [t.dtype for t in concrete.inputs] == [hr.float32, hr.float32]
    assert {t.graph for t in (*concrete.inputs, *concrete.outputs)} == {concrete.graph}
    assert concrete.output_dtypes == {"sum": hr.float32, "none": None, "more": [hr.float32]}
    assert concrete.output_shapes["more"][0].as_list() == [None]
    assert concrete.structured_outputs["sum"] in concrete.outputs
    assert repr(concrete) == "<headrace concrete function 'scaled'>"


def test_a_concrete_function_of_a_signature_a_method_and_of_nothing():
    v = hr.Variable(4.0)

    class Model:
        @hr.function(input_signature=[hr.TensorSpec([], hr.float32, name="x")])
        def times(self, x):
            return x * v

    model = Model()
    concrete = model.times.get_concrete_function()
    assert run_ready([concrete(x=hr.constant(2.0)), model.times(2.0), concrete(v)]) == [8, 8, 16]
    assert concrete.captured_inputs == [v.handle]
    silent = hr.function(lambda: None).get_concrete_function()
    assert (silent.outputs, silent.structured_outputs) == ([], None)
    assert isinstance(silent(), hr.Operation)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda f: f(1.0), ArgumentTypeError, "called with tensors alone, got 1.0"),
        (lambda f: f(), ArgumentTypeError, "takes 1 tensors, x; got 0"),
        (lambda f: f(x=hr.zeros([2]), y=1), ArgumentTypeError, "got 1, and 'y' besides"),
        (lambda f: f(hr.zeros([3])), ShapeError, r"has shape \[2\], got \[3\]"),
        (lambda f: f(hr.zeros([2], hr.int32)), DTypeError, "is float32, got int32"),
    ],
)
def test_what_a_concrete_function_does_not_take(call, error, match):
    concrete = hr.function(lambda x: x).get_concrete_function(hr.TensorSpec([2], hr.float32))
    with pytest.raises(error, match=match):
        call(concrete)


def test_methods():
    class Model:
        def __init__(self):
            self.w = hr.Variable(4.0)

        @hr.function
        def __call__(self, x):
            return x * self.w

    assert run_ready(Model()(hr.constant(2.0))) == 8.0


def test_mistakes():
    @hr.function
    def endless(x):
        return endless(x - 1.0)

    with pytest.raises(GraphError, match="calls itself while it is traced"):
        endless(hr.constant(3.0))
    with pytest.raises(DTypeError, match="object"):
        hr.function(lambda x: object())(hr.constant(1.0))
    with pytest.raises(GraphError, match="there is no autograph"):
        hr.function(lambda x: x, autograph=True)
    with pytest.raises((DTypeError, ShapeError), match="matmul"):
        hr.function(lambda x: hr.matmul(x, x))(hr.constant(1.0))


def test_graphs_with_functions_survive_as_documents(graph):
    w = hr.Variable(2.0)
    x = hr.placeholder(hr.float32, [], name="x")

    @hr.function
    def f(a):
        return hr.cond(a > 0, lambda: a * w, lambda: a)

    y = hr.while_loop(lambda s: hr.abs(s) < 50.0, lambda s: f(s) * 2.0, [x])
    (slope,) = hr.gradients(y, [x])
    document = graph.to_document()
    other = hr.Graph.from_document(document)
    assert other.to_document() == document
    with hr.Session(graph=other) as session:
        session.run([v.initializer for v in other.variables])
        found = session.run([y.name, slope.name], {"x:0": 1.0})
    assert found == run_ready([y, slope], {x: 1.0}) == [64.0, 64.0]


def test_a_finished_function_takes_in_nothing_more(graph):
    late = hr.placeholder(hr.float32, [])
    made = hr.cond(hr.placeholder(hr.bool, []), lambda: hr.constant(1.0), lambda: hr.constant(2.0))
    branch = made.op.attrs["then_branch"]
    with branch.as_default(), pytest.raises(GraphError, match="any more: it is complete"):
        hr.identity(late)


def test_a_vector_longer_than_any_shape_is_no_shape():
    assert as_shape(TensorSpec(hr.int32, hr.Shape([1 << 40]))).rank is None
    assert as_shape(TensorSpec(hr.int32, hr.Shape([3]))).as_list() == [None, None, None]
