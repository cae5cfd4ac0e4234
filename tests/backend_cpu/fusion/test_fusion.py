"""Fused kernels against the plain kernels, on a table of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.common_subexpressions import dedupe
from headrace.passes.constant_folding import fold
from headrace.passes.evaluate import evaluate
from headrace.passes.inline_calls import inline_calls
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import StepGraph
from headrace.plugins.host import host
from headrace_cpu.fusion import kernel as fused_kernel
from headrace_cpu.fusion.group import match_fused
from headrace_cpu.fusion.interpret import interpret
from headrace_cpu.fusion.kernel import FusedKernel
from headrace_cpu.native.memory import allocate
from headrace_cpu.program.instruction import Addresses
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.settings import CompileSettings

pytest.importorskip("headrace_autodiff")
pytest.importorskip("headrace_train")

Arrays = list[Any]
VARIABLES = ("AssignVariable", "AssignAddVariable", "AssignSubVariable")


def aligned(array: Any) -> Any:
    """Return a copy at a multiple of 64 bytes."""
    array = np.asarray(array)
    memory = allocate(max(array.nbytes, 1))
    copy = memory[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Places(Addresses):
    """Where the tensors of one instruction are."""

    def __init__(self, arrays: Mapping[Tensor, Any], scratch: int) -> None:
        self.arrays = arrays
        self.memory = allocate(max(scratch, 1))

    def of(self, tensor: Tensor) -> int | None:
        array = self.arrays.get(tensor)
        return None if array is None else int(array.ctypes.data)

    def scratch(self) -> int:
        return int(self.memory.ctypes.data)


@dataclass
class Machine:
    """Runs a step's operations: those of fused kernels by these, the others with NumPy."""

    step: StepGraph
    threads: int = 1
    compiled: bool = True
    fuse: bool = True
    share_reads: bool = False
    kernels: list[FusedKernel] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    values: dict[Tensor, Any] = field(default_factory=dict)
    places: Places | None = None

    def run(self, feeds: Arrays) -> Arrays:
        graph = self.step.graph
        given = ("Feed", "Const", "VarHandle")
        ops = [op for op in graph.operations if op.type not in given]
        matches = Matches(ops, self.step.fetches)
        if self.fuse:
            match_fused(matches, CompileSettings(threads=self.threads))
        self.kernels = [k for k in matches.instructions if isinstance(k, FusedKernel)]
        self.values.update(zip(self.step.feeds, map(aligned, feeds), strict=True))
        for op in graph.operations:
            if op.type == "Const":
                self.values[op.outputs[0]] = aligned(op.attrs["value"])
        owner: dict[Operation, FusedKernel] = {op: k for k in self.kernels for op in k.ops}
        items = list(dict.fromkeys(owner.get(op, op) for op in ops))
        done = {op for op in graph.operations if op.type in given}
        while items:
            ready = [item for item in items if self._waits(item) <= done]
            assert ready, "instructions wait for each other"
            # Who reads a variable comes before who changes it, as in a program.
            ready.sort(key=lambda i: isinstance(i, FusedKernel) and bool(i.updates))
            item = ready[0]
            items.remove(item)
            if isinstance(item, FusedKernel):
                self._fused(item)
                done.update(item.ops)
            else:
                self._plain(item)
                done.add(item)
        return [self.values[tensor] for tensor in self.step.fetches]

    @staticmethod
    def _waits(item: FusedKernel | Operation) -> set[Operation]:
        ops = item.ops if isinstance(item, FusedKernel) else (item,)
        return {o for op in ops for o in (*(t.op for t in op.inputs), *op.control_inputs)} - {*ops}

    def _fused(self, kernel: FusedKernel) -> None:
        taken: set[Tensor] = set()
        for tensor in kernel.writes:
            self.values[tensor] = aligned(np.zeros(tensor.shape.known, tensor.dtype.numpy))
            for written, read in kernel.reuses:
                free = self.share_reads and read not in taken and self._last(read, kernel)
                if written is tensor and free:
                    self.values[tensor] = self.values[read]
                    taken.add(read)
                    break
        if self.compiled:
            kernel.prepare()
        places = Places(self.values, kernel.scratch)
        bound = kernel.bind(places)
        for handle in kernel.updates:
            bound.point[handle](int(self._variable(handle).ctypes.data))
        # Scratch memory lives as long as this.
        self.places = places
        bound.call()

    def _last(self, read: Tensor, kernel: FusedKernel) -> bool:
        """Whether nobody but a kernel reads a tensor, and it may be overwritten."""
        users = {op for op in self.step.graph.operations if read in op.inputs}
        return users <= set(kernel.ops) and read not in self.step.fetches

    def _variable(self, handle: Tensor) -> Any:
        return self.variables[handle.op.attrs["shared_name"]]

    def _plain(self, op: Operation) -> None:
        if op.type == "ReadVariable":
            held = self._variable(op.inputs[0])
            self.values[op.outputs[0]] = held if self.share_reads else aligned(held)
        elif op.type in VARIABLES:
            held, given = self._variable(op.inputs[0]), self.values[op.inputs[1]]
            changed = {"AssignVariable": given, "AssignAddVariable": held + given}
            held[...] = changed.get(op.type, held - given)
            self.values[op.outputs[0]] = aligned(held)
        elif op.type != "NoOp":
            made = {t: np.empty(t.shape.known, t.dtype.numpy) for t in op.outputs}
            interpret([op], self.values.__getitem__, made, op.outputs)
            self.values.update({tensor: aligned(array) for tensor, array in made.items()})


Build = Callable[..., Any]


def prepared(build: Build, feeds: Arrays) -> StepGraph:
    """Return the step graph of a program on placeholders."""
    with hr.Graph().as_default():
        placeholders = [hr.placeholder(array.dtype, array.shape) for array in feeds]
        made = build(*placeholders)
        fetches = list(made) if isinstance(made, list | tuple) else [made]
    tensors = [f for f in fetches if isinstance(f, Tensor)]
    targets = [f for f in fetches if isinstance(f, Operation)]
    step = inline_calls(extract(placeholders, tensors, targets))
    kernels = host().kernels
    return prune(dedupe(fold(step, lambda op, inputs: evaluate(op, inputs, kernels))))


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed + len(shape)).normal(size=shape).astype(dtype)


def compare(
    build: Build,
    feeds: Arrays,
    *,
    kernels: int | None = None,
    variables: Mapping[str, Any] | None = None,
    share: bool = True,
    rtol: float = 2e-5,
    atol: float = 1e-5,
) -> list[FusedKernel]:
    """Run a program plain, interpreted and compiled, on one thread and on two."""
    step = prepared(build, feeds)
    plain = Machine(step, fuse=False, variables=_copied(variables))
    wanted = plain.run(feeds)
    found: list[FusedKernel] = []
    for options in (
        {"compiled": False},
        {},
        {"threads": 2},
        {"share_reads": share},
        {"share_reads": share, "threads": 2},
        {"share_reads": share, "compiled": False},
    ):
        machine = Machine(step, variables=_copied(variables), **options)
        results = machine.run(feeds)
        for tensor, got, want in zip(step.fetches, results, wanted, strict=True):
            assert got.dtype == want.dtype, tensor
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=str(options))
        for name, want in plain.variables.items():
            np.testing.assert_allclose(machine.variables[name], want, rtol=rtol, atol=atol)
        found = machine.kernels
    if kernels is not None:
        assert len(found) == kernels, "\n".join(k.source() for k in found)
    return found


def _copied(variables: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: aligned(array) for name, array in (variables or {}).items()}


@pytest.fixture(autouse=True)
def _eager_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small kernels use threads, too."""
    monkeypatch.setattr(fused_kernel, "_WORTH_A_THREAD", 1)


# -- programs


def chain(a: Any, b: Any, c: Any) -> Any:
    return hr.tanh(a * b + c) * hr.exp(-a)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + hr.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = hr.reduce_mean(x, axis=-1, keepdims=True)
    away = x - mean
    variance = hr.reduce_mean(hr.square(away), axis=-1, keepdims=True)
    return away * hr.rsqrt(variance + 1e-5) * scale + shift


def batch_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean = hr.reduce_mean(x, axis=0)
    variance = hr.reduce_mean(hr.square(x - mean), axis=0)
    return (x - mean) * hr.rsqrt(variance + 1e-5) * scale + shift, mean, variance


def image_norm(x: Any, scale: Any) -> Any:
    axes = (0, 2, 3)
    mean = hr.reduce_mean(x, axis=axes, keepdims=True)
    variance = hr.reduce_mean(hr.square(x - mean), axis=axes, keepdims=True)
    return (x - mean) * hr.rsqrt(variance + 1e-5) * scale


def naive_loss(logits: Any, labels: Any) -> Any:
    chances = hr.nn.softmax(logits)
    loss = hr.reduce_mean(-hr.reduce_sum(labels * hr.log(chances), axis=1))
    return loss, hr.gradients(loss, logits)[0]


def dense_loss(logits: Any, labels: Any) -> Any:
    each = hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = hr.reduce_mean(each)
    slope = hr.gradients(loss, logits)[0]
    return loss, slope, hr.reduce_sum(slope, axis=0)


def sparse_loss(logits: Any, labels: Any) -> Any:
    each = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = hr.reduce_mean(each)
    slope = hr.gradients(loss, logits)[0]
    return loss, slope, hr.reduce_sum(slope, axis=0)


def gates(x: Any, bias: Any, memory: Any) -> Any:
    i, j, f, o = hr.split(x + bias, 4, axis=1)
    new = memory * hr.sigmoid(f + 1.0) + hr.sigmoid(i) * hr.tanh(j)
    return new, hr.concat([hr.tanh(new) * hr.sigmoid(o), memory], 1)


def choices(x: Any, y: Any) -> Any:
    high = hr.logical_and(x > 0.1, hr.logical_not(y > x))
    return hr.where_v2(high, x * y, hr.zeros_like(x)), hr.reduce_any(high, axis=1), high


def many_folds(x: Any) -> Any:
    return (
        hr.reduce_sum(x),
        hr.reduce_max(x, axis=0),
        hr.reduce_min(x, axis=1),
        hr.reduce_mean(x * x, axis=(0, 2)),
        hr.reduce_prod(x, axis=2, keepdims=True),
        hr.reduce_sum(x, axis=(1, 2)),
        hr.reduce_logsumexp(x, axis=-1),
    )


def whole_numbers(x: Any, y: Any) -> Any:
    return (
        x * y - x,
        hr.reduce_sum(x * y, axis=0),
        hr.reduce_max(x - y, axis=1),
        hr.abs(x) + hr.sign(y),
        hr.cast(hr.maximum(x, y), "float32") * 0.5,
    )


def attention(memory: Any, query: Any) -> Any:
    scores = hr.reduce_sum(memory * hr.expand_dims(query, 1), axis=2)
    shares = hr.nn.softmax(scores * 0.25)
    return shares, hr.reduce_sum(memory * hr.expand_dims(shares, 2), axis=1)


def attention_grad(memory: Any, query: Any) -> Any:
    shares, context = attention(memory, query)
    return shares, *hr.gradients(hr.reduce_sum(context * context), [query, memory])


def centred_twice(x: Any) -> Any:
    """Reductions of one step, then of what came of them, then of all."""
    centred = x - hr.reduce_mean(x, axis=1, keepdims=True)
    scaled = centred / (1.0 + hr.reduce_max(hr.abs(centred), axis=(1, 2), keepdims=True))
    return scaled, hr.reduce_sum(scaled, axis=1), hr.reduce_sum(scaled, axis=0)


def labels_of(n: int, classes: int) -> Any:
    return np.random.default_rng(1).integers(0, classes, n)


def shares(n: int, classes: int) -> Any:
    return np.eye(classes, dtype=np.float32)[labels_of(n, classes)]


PROGRAMS: dict[str, tuple[Build, Arrays, int]] = {
    "chain": (chain, [normal(1000, seed=i) for i in range(3)], 1),
    "chain of 1": (chain, [normal(1, seed=i) for i in range(3)], 1),
    "chain in float64": (chain, [normal(7, 3, seed=i, dtype="float64") for i in range(3)], 1),
    "gelu": (gelu, [normal(33, 65)], 1),
    "layer norm": (layer_norm, [normal(17, 129), normal(129), normal(129, seed=3)], 1),
    "layer norm of 5": (layer_norm, [normal(17, 5), normal(5), normal(5, seed=3)], 1),
    "batch norm": (batch_norm, [normal(31, 70), normal(70), normal(70, seed=3)], 1),
    "image norm": (image_norm, [normal(3, 5, 8, 9), normal(5, 1, 1)], 1),
    "naive loss": (naive_loss, [normal(20, 10), shares(20, 10)], 1),
    "dense loss": (dense_loss, [normal(20, 10), shares(20, 10)], 1),
    "dense loss of 300": (dense_loss, [normal(9, 300), shares(9, 300)], 1),
    "sparse loss": (sparse_loss, [normal(20, 10), labels_of(20, 10)], 1),
    "sparse loss of 1 row": (sparse_loss, [normal(1, 10), labels_of(1, 10)], 1),
    "softmax of an inner axis": (lambda x: hr.nn.softmax(x, axis=1), [normal(4, 7, 11)], 1),
    "log softmax": (lambda x: hr.nn.log_softmax(x) * 2.0, [normal(5, 100)], 1),
    "gates": (gates, [normal(6, 80), normal(80), normal(6, 20)], 1),
    "choices": (choices, [normal(9, 14), normal(9, 14, seed=4)], 1),
    "folds": (many_folds, [normal(4, 5, 6)], 1),
    "long folds": (many_folds, [normal(2, 3, 3000)], 1),
    "int32": (whole_numbers, [labels_of(60, 9).reshape(6, 10).astype("int32")] * 2, 1),
    "int64": (whole_numbers, [labels_of(60, 9).reshape(6, 10) - 4, labels_of(60, 5)[:10]], 1),
    "outer product": (
        lambda x, y: hr.reduce_sum(hr.exp(x[:, None] - y[None, :]), axis=1),
        [normal(9), normal(8)],
        1,
    ),
    "one hot": (lambda i: hr.one_hot(i, 7) * 3.0 + 1.0, [labels_of(12, 9)], 1),
    "transposed": (lambda x, y: hr.transpose(x) * y + 1.0, [normal(5, 40), normal(40, 5)], 1),
    "attention": (attention, [normal(16, 7, 20), normal(16, 20)], 1),
    "attention over 70 of 65": (attention, [normal(9, 70, 65), normal(9, 65)], 1),
    "attention of 3": (attention, [normal(3, 5, 4), normal(3, 4)], 1),
    "attention in float64": (
        attention,
        [normal(8, 5, 4, dtype="float64"), normal(8, 4, dtype="float64")],
        1,
    ),
    "gradient of attention": (attention_grad, [normal(16, 7, 20), normal(16, 20)], 1),
    "centred twice": (centred_twice, [normal(16, 6, 10)], 1),
    "broadcast both ways": (lambda x, y: hr.tanh(x + y), [normal(5, 1, 3), normal(4, 1)], 1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("build", "feeds", "banded"),
    [
        (attention, [normal(16, 7, 20), normal(16, 20)], True),
        # Two threads would get 3 steps, and one of them twice as many as the other.
        (attention, [normal(3, 7, 20), normal(3, 20)], False),
        # The first nest reduces over the outermost dimension.
        (lambda x: x - hr.reduce_mean(x, axis=0), [normal(16, 12)], False),
    ],
)
def test_nests_of_one_outermost_dimension_run_step_by_step(build, feeds, banded) -> None:
    kernels = compare(build, feeds, kernels=1)
    assert bool(kernels[0].schedule.bands) == banded
    assert ("for turn in range(first, last):" in kernels[0].source()) == banded


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    build, feeds, kernels = PROGRAMS[name]
    compare(build, feeds, kernels=kernels)


def test_specials() -> None:
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-42, 3e38]
    x, y = (part.ravel().astype(np.float32) for part in np.meshgrid(values, values))

    def build(x: Any, y: Any) -> Any:
        return (
            hr.maximum(x, y) + 0.0,
            hr.minimum(x, y) * 1.0,
            hr.nn.relu(x) + y,
            hr.sign(x) - hr.sign(y),
            hr.div_no_nan(x, y) + hr.math.xdivy(x, y),
            hr.multiply_no_nan(x, y),
            hr.cast(hr.logical_or(hr.is_nan(x), hr.is_inf(y)), "float32") + 0.0,
            hr.reduce_max(x + y),
            hr.nn.softplus(x) + hr.sigmoid(y),
            hr.cast(hr.cast(x, "bool"), "int32") + 1,
        )

    compare(build, [x, y])


def test_softmax_with_infinite_logits() -> None:
    logits = normal(5, 40)
    logits[1, 3] = np.inf
    logits[2] = -np.inf
    logits[3, 4] = np.nan
    compare(lambda x: hr.nn.softmax(x) + 0.0, [logits])


def test_empty_tensors_stay_outside() -> None:
    kernels = compare(lambda x: hr.reduce_sum(hr.exp(x) * 2.0, axis=0), [np.zeros((0, 3), "f4")])
    assert not kernels


def test_wrong_labels_raise() -> None:
    step = prepared(sparse_loss, [normal(4, 3), labels_of(4, 3)])
    bad = np.array([0, 1, 3, 2])
    for options in ({}, {"threads": 2}, {"compiled": False}):
        with pytest.raises(IndexError, match=r"out of range \[0, 3\) of the 3 classes"):
            Machine(step, **options).run([normal(4, 3), bad])


def test_long_sums_are_exact_enough() -> None:
    values = np.random.default_rng(0).random(1 << 20).astype(np.float32)
    step = prepared(lambda x: hr.reduce_sum(x * 1.0), [values])
    (found,) = Machine(step).run([values])
    exact = values.astype(np.float64).sum()
    assert abs(found - exact) <= abs(values.sum() - exact) + np.spacing(np.float32(exact))


# -- updates


def training(optimizer: Callable[[], Any]) -> tuple[Build, dict[str, Any]]:
    def build(x: Any, y: Any) -> Any:
        w = hr.Variable(hr.zeros([12, 7]), name="w")
        b = hr.Variable(hr.zeros([7]), name="b")
        loss = hr.reduce_mean(hr.square(hr.matmul(x, w) + b - y))
        return loss, optimizer().minimize(loss)

    variables = {"w": normal(12, 7, seed=5), "b": normal(7, seed=6)}
    for slot in ("Adam", "Adam_1", "Momentum"):
        variables |= {f"{v}/{slot}": np.abs(variables[v]) * 0.1 for v in ("w", "b")}
    powers = {"beta1_power": np.float32(0.9), "beta2_power": np.float32(0.99)}
    return build, variables | powers


@pytest.mark.parametrize(
    ("name", "optimizer", "kernels"),
    [
        ("sgd", lambda: hr.train.GradientDescentOptimizer(0.5), 2),
        ("momentum", lambda: hr.train.MomentumOptimizer(0.5, 0.9), 2),
        ("adam", lambda: hr.train.AdamOptimizer(0.5), 5),
    ],
)
def test_training_step(name: str, optimizer: Callable[[], Any], kernels: int) -> None:
    build, variables = training(optimizer)
    found = compare(build, [normal(9, 12), normal(9, 7)], variables=variables, kernels=kernels)
    assert {h.op.attrs["shared_name"] for k in found for h in k.updates} >= {"w", "b"}
    # Slots are read where they are updated, and never copied.
    for kernel in found:
        for tensor in kernel.reads:
            handle = tensor.op.inputs[0] if tensor.op.type == "ReadVariable" else None
            assert handle is None or handle not in kernel.updates or name == "sgd"


def test_lstm_step() -> None:
    def build(x: Any, memory: Any, output: Any) -> Any:
        cell = hr.nn.rnn_cell.BasicLSTMCell(24)
        state = hr.nn.rnn_cell.LSTMStateTuple(memory, output)
        _, state = cell(x, state)
        result, _ = cell(x, state)
        loss = hr.reduce_sum(hr.square(result))
        variables = hr.trainable_variables()
        slopes, _ = hr.clip_by_global_norm(hr.gradients(loss, variables), 5.0)
        pairs = zip(slopes, variables, strict=True)
        return loss, hr.train.GradientDescentOptimizer(0.5).apply_gradients(pairs)

    feeds = [normal(5, 24, seed=seed) for seed in range(3)]
    scope = "basic_lstm_cell"
    variables = {f"{scope}/kernel": 0.1 * normal(48, 96), f"{scope}/bias": 0.1 * normal(96)}
    compare(build, feeds, variables=variables, kernels=7)


def test_updates_of_one_form_share_a_kernel() -> None:
    def build(*gradients: Any) -> list[Any]:
        optimizer = hr.train.GradientDescentOptimizer(0.5)
        pairs = [
            (g, hr.Variable(hr.zeros(g.shape.known), name=f"v{i}")) for i, g in enumerate(gradients)
        ]
        return [optimizer.apply_gradients(pairs)]

    feeds = [normal(100), normal(20, 30), normal(3, 4, 50)]
    variables = {f"v{i}": normal(*g.shape, seed=9) for i, g in enumerate(feeds)}
    found = compare(build, feeds, variables=variables, kernels=3)
    assert len({k.kernel.text for k in found}) == 1


def test_old_value_read_after_the_update_is_not_fused_with_it() -> None:
    def build(x: Any) -> list[Any]:
        v = hr.Variable(hr.zeros([5, 8]), name="v")
        old = v.value()
        total = hr.reduce_sum(x * 2.0, axis=0)
        with hr.control_dependencies([old]):
            change = v.assign(x * 3.0 + 1.0)
        # The old value is read by columns, in another order than it is written.
        return [hr.reduce_sum(old * total + x, axis=0), change]

    variables = {"v": normal(5, 8, seed=2)}
    kernels = compare(build, [normal(5, 8)], variables=variables, share=False)
    for kernel in kernels:
        reads = {tensor.op.type for tensor in kernel.reads}
        assert not kernel.updates or "ReadVariable" not in reads


@pytest.mark.parametrize(
    ("build", "shared"),
    [
        (lambda x: hr.nn.softmax(x * 2.0), True),
        (lambda x: (x - hr.reduce_mean(x, axis=1, keepdims=True)) * 2.0, True),
        (lambda x: (x - hr.reduce_mean(x, axis=0)) * 2.0, True),
        (lambda x: x * 2.0 + hr.transpose(x), False),
    ],
    ids=["softmax", "rows", "columns", "transposed"],
)
def test_results_take_the_place_of_inputs_that_are_read_before(build: Build, shared: bool) -> None:
    kernels = compare(build, [normal(12, 12)])
    last = kernels[-1]
    assert [(w, r) for w, r in last.reuses if r in last.reads] == list(last.reuses)
    assert bool(last.reuses) is shared


def test_results_stay_away_from_inputs_that_are_read_again() -> None:
    def build(x: Any) -> list[Any]:
        powers = hr.exp(x)
        # The sum is known after all powers are stored, and x is read once more.
        return [powers, x * hr.reduce_sum(powers)]

    for kernel in compare(build, [normal(12, 30)]):
        for written, _ in kernel.reuses:
            assert written.op.type != "Exp"


def test_source_says_what_it_does() -> None:
    (kernel,) = compare(layer_norm, [normal(17, 129), normal(129), normal(129, seed=3)])
    source = kernel.source()
    assert "# space 17 x 129" in source
    assert "17x129 in 3 phases" in source
    assert "def fused(block):" in source
    assert kernel.flops() > 5 * 17 * 129
    assert kernel.bytes() == 4 * (2 * 17 * 129 + 2 * 129)
