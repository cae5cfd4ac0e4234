"""Kernels and ops of other packages in compiled steps: honoured, fused, and named."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import headrace as hr
from headrace.errors import NoKernelError
from headrace.extend import Floating, KernelTable, Spec, TensorSpec, hookimpl, op
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.testing import uses_kernel

OURS = "headrace-backend-cpu"
THEIRS = "fast-softplus"
WHY = "it is faster"
# A kernel of theirs is asked for shapes with this first dimension, and refuses.
REFUSED = 13
CALLS: list[tuple[int, ...]] = []


@op(
    "TestSharp",
    elementwise=True,
    expression=lambda s, x, *, beta: s.log1p(s.exp(beta * x)) / beta,
)
def sharp(x: Floating, *, beta: float = 2.0) -> Spec:
    """``log(1 + exp(beta * x)) / beta``."""
    return x


@op("TestSpread", elementwise=True, expression=lambda s, x, y: s.where(x > 0, x, 0 * y))
def spread(x: Floating, y: Floating) -> Spec:
    """``x`` where positive, 0 elsewhere, in the shape of ``y``."""
    return TensorSpec(x.dtype, y.shape)


@op("TestThird", elementwise=True, expression=lambda s, x: x * x * x)
def third(x: Floating) -> Spec:
    """``x * x * x``, with a plain kernel of its own, too."""
    return x


third_kernels = KernelTable()


@third_kernels.plain("TestThird")
def third_kernel(xp, x):
    CALLS.append(x.shape)
    return x * x * x


specialized = KernelTable()


@specialized.specialized("Softplus", dtypes=["float32"], priority=50, override=WHY)
def special_softplus(node):
    shape = node.op.outputs[0].shape
    if shape.rank and shape[0] == REFUSED:
        return None

    def run(x):
        CALLS.append(x.shape)
        return np.logaddexp(np.float32(0), x)

    return run


plain = KernelTable()


@plain.plain("Softplus", dtypes=["float32"], priority=50, override=WHY)
def plain_softplus(xp, x):
    CALLS.append(x.shape)
    return xp.logaddexp(x.dtype.type(0), x)


@plain.plain("Reshape", priority=50, override=WHY)
def reshape(xp, x, shape):
    CALLS.append(x.shape)
    return x.reshape(shape)


class Entry:
    """An entry point of a package that is not installed."""

    def __init__(self, table):
        @hookimpl
        def headrace_register_kernels(registry):
            registry.add("cpu", table)

        self.name, self.value = "fast_softplus", __name__
        about = {"Name": THEIRS, "Version": "1.0"}
        self.dist = SimpleNamespace(name=THEIRS, version="1.0", metadata=about)
        self.plugin = SimpleNamespace(headrace_register_kernels=headrace_register_kernels)
        self.module = __name__

    def load(self):
        return self.plugin


@pytest.fixture(params=["plain", "specialized"])
def installed(request, monkeypatch):
    install(monkeypatch, {"plain": plain, "specialized": specialized}[request.param])
    return request.param


def install(monkeypatch, table):
    entries = [*host_module.host()._collection.found(), Entry(table)]
    monkeypatch.setattr(host_module, "_HOST", PluginHost(entries))
    CALLS.clear()


# Executor -> how a session runs.
RUNS = {
    "plain": {"executor": "plain"},
    "as written": {"optimize": False},
    "compiled": {},
    "at once": {"compile_after": 0},
}
NUMBERS = np.linspace(-3, 3, 6, dtype=np.float32)


def softplus_of(x):
    return np.logaddexp(0, x.astype(np.float64))


def _alone(x):
    return hr.nn.softplus(x), softplus_of(NUMBERS), 1


def _beside(x):
    y = hr.exp(hr.nn.softplus(x * 2) + 1) - x
    return y, np.exp(softplus_of(NUMBERS * 2) + 1) - NUMBERS, 1


def _loop(x):
    _, y = hr.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, hr.nn.softplus(a) * 0.5), [0, x])
    wanted = NUMBERS
    for _ in range(3):
        wanted = softplus_of(wanted) * 0.5
    return y, wanted, 3


def _branch(x):
    y = hr.cond(hr.reduce_sum(x) < 1e6, lambda: hr.nn.softplus(x) + 1, lambda: x)
    return y, softplus_of(NUMBERS) + 1, 1


def _gradient(x):
    # The gradient's rule computes with x alone: the loss must be fetched for the op to run.
    y = hr.nn.softplus(x) * 2 + x
    (slope,) = hr.gradients(hr.reduce_sum(y * y), [x])
    z = softplus_of(NUMBERS) * 2 + NUMBERS
    return slope, 2 * z * (2 / (1 + np.exp(-NUMBERS.astype(np.float64))) + 1), 1


PLACES = {f.__name__[1:]: f for f in (_alone, _beside, _loop, _branch, _gradient)}


@pytest.mark.parametrize("executor", RUNS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.needs("autodiff")
def test_a_kernel_of_another_package_is_used_wherever_its_op_stands(installed, place, executor):
    x = hr.placeholder(hr.float32, [None])
    y, wanted, count = PLACES[place](x)
    with hr.Session(config=hr.Config(**RUNS[executor])) as session:
        for _ in range(4):
            CALLS.clear()
            np.testing.assert_allclose(session.run(y, {x: NUMBERS}), wanted, rtol=1e-5)
            assert [NUMBERS.shape] * count == CALLS
        assert uses_kernel(y, "Softplus", THEIRS, {x: NUMBERS}, session=session)


def test_what_stands_around_such_an_operation_is_fused(installed):
    x = hr.placeholder(hr.float32, [None])
    y = hr.exp(hr.sin(hr.nn.softplus(hr.cos(x) * 2)) + 1)
    with hr.Session() as session:
        kernels = session.explain(y, {x: NUMBERS}).kernels
    assert [sorted({o.type for o in k.ops}) for k in kernels] == [
        ["Cos", "Mul"],
        ["Add", "Exp", "Sin"],
    ]
    assert {k.package for k in kernels} == {OURS}


@pytest.mark.parametrize("executor", RUNS)
def test_a_factory_that_refuses_gives_the_node_back(monkeypatch, executor):
    install(monkeypatch, specialized)
    x = hr.placeholder(hr.float32, [REFUSED])
    y = hr.nn.softplus(x) + 1
    many = np.linspace(-3, 3, REFUSED, dtype=np.float32)
    with hr.Session(config=hr.Config(**RUNS[executor])) as session:
        np.testing.assert_allclose(session.run(y, {x: many}), softplus_of(many) + 1, rtol=1e-5)
        assert CALLS == []
        assert uses_kernel(y, "Softplus", OURS, {x: many}, session=session)
        compiled = len(session.explain(y, {x: many}).kernels)
        assert compiled == (1 if executor in ("compiled", "at once") else 0)


@pytest.mark.parametrize("executor", RUNS)
@pytest.mark.needs("autodiff")
def test_no_matcher_takes_products_of_another_package(monkeypatch, executor):
    table = KernelTable()

    @table.plain("MatMul", priority=50, override=WHY)
    def matmul(xp, a, b, *, transpose_a, transpose_b):
        CALLS.append(a.shape)
        return xp.matmul(a.T if transpose_a else a, b.T if transpose_b else b)

    install(monkeypatch, table)
    x = hr.placeholder(hr.float32, [32, 64])
    w = hr.Variable(np.full((64, 48), 0.01, np.float32))
    loss = hr.reduce_sum(hr.nn.relu(hr.matmul(x, w) + 1.0))
    (slope,) = hr.gradients(loss, [w])
    step = w.assign_sub(1e-4 * slope)
    feed = {x: np.ones((32, 64), np.float32)}
    with hr.Session(config=hr.Config(**RUNS[executor])) as session:
        session.run(w.initializer)
        for _ in range(3):
            CALLS.clear()
            session.run(step, feed)
            assert len(CALLS) == 2
        assert uses_kernel(step, "MatMul", THEIRS, feed, session=session)
        assert session.run(w)[0, 0] == pytest.approx(0.01 - 3 * 1e-4 * 32, rel=1e-3)


def test_other_dtypes_stay_the_devices(installed):
    x = hr.placeholder(hr.float64, [None])
    y = hr.nn.softplus(x) + 1
    assert uses_kernel(y, "Softplus", OURS, {x: NUMBERS.astype(np.float64)})


def test_a_factory_works_once_for_each_instance_of_a_program(monkeypatch):
    made = []
    table = KernelTable()

    @table.specialized("Softplus", priority=50, override=WHY)
    def factory(node):
        made.append(node.op.name)
        return lambda x: np.logaddexp(np.float32(0), x)

    install(monkeypatch, table)
    x = hr.placeholder(hr.float32, [6])
    y = hr.nn.softplus(x) + 1
    with hr.Session(config=hr.Config(compile_after=0)) as session:
        session.explain(y)
        for _ in range(3):
            session.run(y, {x: NUMBERS})
    assert len(made) == 1


def test_a_view_of_another_package_is_called(monkeypatch):
    install(monkeypatch, plain)
    x = hr.placeholder(hr.float32, [6])
    y = hr.reshape(x * 2, [3, 2]) + 1
    with hr.Session() as session:
        for _ in range(3):
            CALLS.clear()
            found = session.run(y, {x: NUMBERS})
            assert CALLS == [(6,)]
        assert uses_kernel(y, "Reshape", THEIRS, session=session)
    np.testing.assert_array_equal(found, (NUMBERS * 2 + 1).reshape(3, 2))


def test_what_such_a_kernel_returns_of_its_inputs_is_not_overwritten(monkeypatch):
    table = KernelTable()
    table.plain("Relu", priority=50, override=WHY)(lambda xp, x: x)
    install(monkeypatch, table)
    x = hr.placeholder(hr.float32, [1 << 15])
    y = hr.nn.relu(hr.exp(x) * 2 + 1)
    with hr.Session(config=hr.Config(compile_after=0)) as session:
        first = session.run(y, {x: np.zeros(1 << 15, np.float32)})
        session.run(y, {x: np.ones(1 << 15, np.float32)})
    assert set(first.tolist()) == {3.0}


# -- ops of other packages


def composite(x):
    return hr.log1p(hr.exp(2.0 * x)) / 2.0


@pytest.mark.parametrize("executor", RUNS)
def test_an_op_with_an_expression_needs_no_kernel(executor):
    x = hr.placeholder(hr.float32, [None])
    y, same = sharp(x), composite(x)
    with hr.Session(config=hr.Config(**RUNS[executor])) as session:
        for _ in range(4):
            found, wanted = session.run([y, same], {x: NUMBERS})
            assert found.tobytes() == wanted.tobytes()


def test_an_op_with_an_expression_fuses_as_a_composite_does():
    x = hr.placeholder(hr.float32, [1 << 15])
    with hr.Session() as session:
        works = [
            [part.works for part in session.explain(hr.exp(f(x) + 1) * x).parts]
            for f in (sharp, composite)
        ]
    for ((work,),) in works:
        assert work.fused
        assert work.package == OURS
    assert works[0][0][0].flops == works[1][0][0].flops


def test_small_operations_that_are_computed_step_by_step_are_worth_a_kernel():
    x = hr.placeholder(hr.float32, [4])
    with hr.Session() as session:
        assert len(session.explain(sharp(x)).kernels) == 1


def test_a_plain_kernel_of_who_states_the_expression_is_for_where_nothing_compiles(monkeypatch):
    install(monkeypatch, third_kernels)
    x = hr.placeholder(hr.float32, [6])
    y = third(x) + 1
    with hr.Session() as session:
        assert uses_kernel(y, "TestThird", OURS, session=session)
    with hr.Session(config=hr.Config(executor="plain")) as session:
        assert uses_kernel(y, "TestThird", THEIRS, session=session)
        np.testing.assert_allclose(session.run(y, {x: NUMBERS}), NUMBERS**3 + 1, rtol=1e-6)
    assert CALLS == [(6,)]


def test_a_specialized_kernel_of_who_states_the_expression_is_used(monkeypatch):
    table = KernelTable()

    @table.specialized("TestThird")
    def made(node):
        return lambda x: x**3

    install(monkeypatch, table)
    x = hr.placeholder(hr.float32, [6])
    assert uses_kernel(third(x) + 1, "TestThird", THEIRS)


def test_inputs_that_have_no_part_in_an_element_give_its_shape():
    x = hr.placeholder(hr.float32, [3])
    y = hr.placeholder(hr.float32, [2, 3])
    z = spread(x, y) * 2
    row, grid = np.float32([-1, 2, 3]), np.ones((2, 3), np.float32)
    for config in RUNS.values():
        with hr.Session(config=hr.Config(**config)) as session:
            assert session.run(z, {x: row, y: grid}).tolist() == [[0, 4, 6]] * 2


def test_dtypes_for_which_there_are_no_kernels_are_refused():
    @op("TestHalves", elementwise=True, expression=lambda s, x: s.cast(x, "int32"))
    def halves(x: Floating) -> Spec:
        """Truncates."""
        return TensorSpec(hr.int32, x.shape)

    assert hr.Session().run(halves(hr.constant([1.5, -2.5]))).tolist() == [1, -2]

    @op("TestNoExpression", elementwise=True)
    def none(x: Floating) -> Spec:
        """Has neither."""
        return x

    with pytest.raises(NoKernelError, match="TestNoExpression"):
        hr.Session().run(none(hr.constant(1.0)))


def test_uses_kernel_says_what_it_cannot_know():
    x = hr.placeholder(hr.float32, [None])
    with pytest.raises(ValueError, match="no kernel for MatMul is known: the step computes Exp"):
        uses_kernel(hr.exp(x), "MatMul", OURS, {x: NUMBERS})
    with pytest.raises(ValueError, match="no kernel for Exp is known: the step is not compiled"):
        uses_kernel(hr.exp(x), "Exp", OURS)
