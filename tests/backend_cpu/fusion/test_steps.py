"""Steps through sessions: what fused kernels, products and plain kernels hand to each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import dtypes
from headrace.graph.schema import OPS
from headrace.graph.tensor import Tensor
from headrace.session.config import Config
from headrace_cpu.fusion import group
from headrace_cpu.fusion.kernel import FusedKernel
from headrace_cpu.fusion.repeats import structure_of
from headrace_cpu.kernels import ARRAY_KERNELS
from headrace_cpu.native.compiler import KernelError

pytest.importorskip("headrace_autodiff")
pytest.importorskip("headrace_train")

RNG = np.random.default_rng(3)


def compare(fetches: Any, feeds: dict[Tensor, Any]) -> list[Any]:
    """Run a step with the plain kernels and compiled, three times, and compare."""
    graph = hr.get_default_graph()
    with hr.Session(graph=graph, config=Config(executor="plain")) as session:
        wanted = session.run(fetches, feeds)
    with hr.Session(graph=graph, config=Config(compile_after=0, verify=True)) as session:
        for _ in range(3):
            results = session.run(fetches, feeds)
            for got, want in zip(results, wanted, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    return list(results)


def test_constants_whose_axes_are_in_another_order_in_memory() -> None:
    x = hr.placeholder("float64", [3, 4])
    turned = np.asfortranarray(RNG.normal(size=(3, 4)))
    repeated = hr.broadcast_to(hr.constant(RNG.normal(size=(3, 1))), [3, 4])
    back = hr.transpose(hr.constant(RNG.normal(size=(4, 3))))
    fetches = [hr.reduce_sum(x * c + 1.0, axis=0) for c in (hr.constant(turned), repeated, back)]
    compare(fetches, {x: RNG.normal(size=(3, 4))})


def test_results_that_are_views_of_buffers() -> None:
    """The buffer of the first product is not the second one's, since a view of it is returned."""
    x, y = (hr.placeholder("float64", [5, 5]) for _ in range(2))
    first = hr.transpose(hr.matmul(x, y))
    second = hr.transpose(hr.matmul(y, x))
    third = hr.transpose(hr.matmul(y, y))
    compare([first, second, third], {x: RNG.normal(size=(5, 5)), y: RNG.normal(size=(5, 5))})


def test_gradients_of_tensordot_of_unknown_shapes() -> None:
    x, y = (hr.placeholder("float64", None) for _ in range(2))
    grads = hr.gradients(hr.tensordot(x, y, [[1, 2], [1, 0]]), [x, y])
    compare(grads, {x: RNG.normal(size=(2, 3, 4)), y: RNG.normal(size=(4, 3, 5))})


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int32", "int64", "uint8"])
def test_casts_of_floats_to_integers(source: str, target: str) -> None:
    x = hr.placeholder(source, [40, 50])
    whole = hr.cast(hr.abs(x) * 20.0, target)
    (got,) = compare([hr.cast(whole, "float64") * 0.5 + 1.0], {x: RNG.normal(size=(40, 50))})
    assert got.any()


def test_elementwise_kernels_that_return_their_input_are_known() -> None:
    plain = {k.op: k.function for k in ARRAY_KERNELS if k.style == "plain"}
    found = set()
    for name in plain:
        schema = OPS.get(name)
        if schema is None or not schema.elementwise:
            continue
        for kind in ("float32", "float64", "int32", "bool", "float16"):
            arrays = [np.ones((2, 3), kind) for _ in schema.inputs]
            attrs: dict[str, Any] = {"Cast": {"dtype": dtypes.as_dtype(kind)}}.get(name, {})
            if name == "CheckNumerics":
                attrs = {"message": ""}
            given: list[Any] = [arrays[:1]] if name == "AddN" else arrays
            with np.errstate(all="ignore"):
                try:
                    result = plain[name](np, *given, **attrs)
                except (TypeError, ValueError, AttributeError, OverflowError):
                    continue
            results = result if isinstance(result, list | tuple) else [result]
            if any(np.shares_memory(r, a) for r in results for a in arrays):
                found.add(name)
    # Other tests declare ops of their own.
    declared = (s for s in OPS if s.where.startswith("headrace."))
    assert found == {s.type for s in declared if s.elementwise and s.aliases}


def test_losses_of_turned_labels_are_fused_with_the_bias() -> None:
    logits = hr.placeholder("float32", [12, 30])
    bias, labels = hr.placeholder("float32", [30]), hr.placeholder("int32", [3, 4])
    turned = hr.reshape(hr.transpose(labels), [-1])
    each = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=turned, logits=logits + bias)
    fetches = [hr.reduce_mean(each), *hr.gradients(each, [logits, bias])]
    given = RNG.integers(0, 30, [3, 4])
    feeds = {logits: RNG.normal(size=(12, 30)), bias: RNG.normal(size=30), labels: given}
    compare(fetches, feeds)
    with hr.Session(config=Config(compile_after=0)) as session:
        session.run(fetches, feeds)
        report = str(session.explain(fetches, feeds))
    fused = [line for line in report.splitlines() if line.lstrip().startswith("fused_")]
    assert len(fused) == 1
    assert "Add" in fused[0]
    assert "SparseSoftmaxCrossEntropyWithLogits" in fused[0]


def test_repeated_groups_have_one_kernel_on_memory_of_their_own() -> None:
    x = hr.placeholder("float64", [6, 8])
    weights = [hr.Variable(RNG.normal(size=(8, 8))) for _ in range(4)]
    biases = [hr.Variable(RNG.normal(size=8)) for _ in range(4)]
    fetches, y = [], x
    for place, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        # One of them differs in a constant only.
        y = hr.sin(hr.matmul(y, weight) + bias) * (2.0 if place == 2 else 1.5)
        fetches.append(hr.reduce_sum(y, axis=0))
    fetches += [bias.assign_sub(0.1 * total) for bias, total in zip(biases, fetches, strict=True)]
    feed = {x: RNG.normal(size=(6, 8))}
    results = []
    for config in (Config(executor="plain"), Config(compile_after=0, verify=True)):
        with hr.Session(config=config) as session:
            session.run([v.initializer for v in (*weights, *biases)])
            results.append([session.run(fetches, feed) for _ in range(3)])
            program = session.explain(fetches, feed) if config.executor == "plan" else None
    for want, got in zip(*results, strict=True):
        for left, right in zip(want, got, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-9)
    assert str(program).count("fused_") >= 4


def test_kernels_that_differ_in_numbers_only_are_not_made_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[FusedKernel] = []

    def noted(*args: Any) -> FusedKernel:
        made.append(FusedKernel(*args))
        return made[-1]

    monkeypatch.setattr(group, "FusedKernel", noted)
    monkeypatch.setattr(group, "_MOST_ALIKE", 2)
    xs = [hr.placeholder("float64", [5, 3]) for _ in range(6)]
    # Factors and exponents, scalars and whole arrays of one number.
    fetches = [hr.sin(x * (i + 2.0)) ** (i % 7 + 0.5) + 1.0 for i, x in enumerate(map(hr.abs, xs))]
    fetches += [hr.reduce_sum(hr.exp(x) * hr.fill([5, 3], i + 0.25), 1) for i, x in enumerate(xs)]
    compare(fetches, {x: RNG.uniform(0.1, 0.2, size=(5, 3)) for x in xs})
    # Two that have them inside, and one that reads them from memory.
    assert len(made) == 3


def test_structures_tell_apart_what_needs_another_kernel() -> None:
    x, y = (hr.placeholder("float64", [6, 8]) for _ in range(2))
    programs = [
        (hr.reduce_sum(x * y, axis=0),),
        (hr.reduce_sum(x * y, axis=1),),
        (hr.reduce_sum(x * x, axis=0),),
        (hr.reduce_sum(x * 2.0, axis=0),),
        (hr.reduce_sum(x * 3.0, axis=0),),
        (hr.reduce_sum(x + y, axis=0),),
    ]
    keys = []
    for (total,) in programs:
        ops = [total.op.inputs[0].op, total.op]
        keys += [structure_of(ops, [total]).key, structure_of(ops, [ops[0].outputs[0], total]).key]
    assert len(set(keys)) == len(keys)
    (total,), other = programs[0], hr.reduce_sum(y * x, axis=0)
    ops = [other.op.inputs[0].op, other.op]
    same = structure_of(ops, [other])
    assert same.key == keys[0]
    assert same.tensors[:2] == (y, x)


def test_what_a_check_refuses_changes_no_variable() -> None:
    logits, labels = hr.placeholder("float32", [6, 5]), hr.placeholder("int32", [6])
    bias = hr.Variable(np.ones(5, np.float32))
    each = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits + bias)
    train = bias.assign_sub(hr.gradients(each, bias)[0])
    wrong = {logits: np.ones((6, 5)), labels: [0, 1, 2, 3, 4, 5]}
    right = {**wrong, labels: [0, 1, 2, 3, 4, 4]}
    with hr.Session(config=Config(compile_after=0, verify=True)) as session:
        session.run(bias.initializer)
        with pytest.raises(hr.errors.HeadraceError, match="index 5 is out of range"):
            session.run(train, wrong)
        np.testing.assert_array_equal(session.run(bias), np.ones(5))
        session.run(train, right)
        assert session.run(bias)[4] > session.run(bias)[0]


# -- what cannot be generated


def failing(*_: object) -> None:
    raise TypeError("a fault of the generator")


def losses() -> tuple[list[Tensor], dict[Tensor, Any]]:
    x = hr.placeholder("float32", [30, 40])
    return [hr.reduce_sum(hr.tanh(x) * x, axis=1)], {x: RNG.normal(size=(30, 40))}


@pytest.mark.parametrize(("owner", "name"), [(FusedKernel, "kernels"), (group, "_groups")])
@pytest.mark.filterwarnings("error")
def test_numpy_does_the_work_of_kernels_that_cannot_be_made(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("HEADRACE_QUIET", raising=False)
    monkeypatch.setattr("headrace_cpu.native.report._said", set())
    monkeypatch.setattr(owner, name, failing)
    fetches, feeds = losses()
    ((x, value),) = feeds.items()
    with caplog.at_level("INFO", "headrace"), hr.Session(config=Config(compile_after=0)) as session:
        for _ in range(3):
            (got,) = session.run(fetches, feeds)
    value = value.astype(x.dtype.numpy)
    np.testing.assert_allclose(got, (np.tanh(value) * value).sum(1), rtol=1e-4)
    lines = [record.getMessage() for record in caplog.records]
    said = [line for line in lines if "no kernel can be generated for" in line]
    assert len(said) == 1
    assert "Tanh, Mul, ReduceSum" in said[0]
    assert "a fault of the generator" in said[0]


@pytest.mark.parametrize(("owner", "name"), [(FusedKernel, "kernels"), (group, "_groups")])
def test_it_is_an_error_where_steps_are_verified(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, failing)
    fetches, feeds = losses()
    with (
        hr.Session(config=Config(compile_after=0, verify=True)) as session,
        pytest.raises(KernelError, match="no kernel can be generated for Tanh, Mul, ReduceSum"),
    ):
        session.run(fetches, feeds)


@pytest.mark.parametrize(("axis", "fused"), [(1, True), (0, False)])
@pytest.mark.parametrize("returned", [False, True])
def test_parts_of_rows_that_a_product_reads_are_written_by_the_kernel_that_reads_the_others(
    axis: int, fused: bool, returned: bool
) -> None:
    x, w = (hr.placeholder("float32", [8, 8]) for _ in range(2))
    left, right = hr.split(hr.matmul(x, w), 2, axis)
    # A product of what is computed of one part, added to the other.
    made = hr.tanh(right) * 2.0 + 1.0
    y = left + (hr.matmul(made, w[:4, :4]) if axis else hr.matmul(made, w))
    fetches = [y, left, right] if returned else [y]
    feeds = {x: np.float32(RNG.normal(size=(8, 8))), w: np.float32(RNG.normal(size=(8, 8)))}
    compare(fetches, feeds)
    with hr.Session() as session:
        (kernel,) = [w for w in session.explain(fetches, feeds).kernels if "Tanh" in w.types]
    assert ("Split" in kernel.types) == fused
