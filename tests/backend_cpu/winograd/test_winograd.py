"""Convolutions by Winograd's algorithm against the sum over taps, in float64."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.compiler import KernelError
from headrace_cpu.native.threads import open_mp
from headrace_cpu.onednn.library import load
from headrace_cpu.program import kernel as kernel_module
from headrace_cpu.program import matching
from headrace_cpu.program.kernel import KernelInstruction
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import match
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.winograd import match as match_module
from headrace_cpu.winograd.match import pays, tiling_of
from headrace_cpu.winograd.tiling import PANEL, Activations, Tiling
from headrace_cpu.winograd.transforms import SCHEMES, both_ways
from tests.children import run_program

pytest.importorskip("headrace_autodiff")

native = pytest.mark.skipif(
    vector_bytes() < 32 or open_mp() is None,
    reason="the kernels want vectors of 32 bytes and OpenMP",
)
COMPILED = hr.Config(compile_after=0, verify=True)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Small convolutions will do."""
    monkeypatch.setattr(match_module, "pays", lambda *_, **__: True)


# -- the transforms, on numbers


@pytest.mark.parametrize("taps", [3, 5])
def test_the_transforms_yield_a_convolution(taps):
    scheme, rng = SCHEMES[taps], np.random.default_rng(0)
    tile, g = rng.standard_normal((scheme.side,) * 2), rng.standard_normal((taps, taps))
    product = np.multiply(both_ways(scheme.inputs, tile), both_ways(scheme.filter, g))
    found = both_ways(scheme.results, product.reshape(tile.shape))
    wanted = [(tile[i : i + taps, j : j + taps] * g).sum() for i in range(2) for j in range(2)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("taps", [3, 5])
def test_the_gradients_of_the_transforms_are_their_transposes(taps):
    scheme = SCHEMES[taps]
    pairs = [
        (scheme.results, scheme.results_back, scheme.side),
        (scheme.filter, scheme.filter_back, taps),
    ]
    for forward, back, size in pairs:
        matrix = np.array(forward(list(np.eye(size))))
        transposed = np.array(back(list(np.eye(len(matrix)))))
        np.testing.assert_allclose(transposed, matrix.T, rtol=1e-15)


# -- whole convolutions


@dataclass(frozen=True)
class Case:
    """A convolution: sizes in panels of channels, and what lies around the images."""

    batch: int = 1
    height: int = 8
    width: int = 8
    taken: int = 1
    given: int = 1
    padding: object = "SAME"
    side: int = 3

    @property
    def images(self):
        return (self.batch, self.height, self.width, self.taken * PANEL)

    @property
    def taps(self):
        return (self.side, self.side, self.taken * PANEL, self.given * PANEL)

    @property
    def before(self):
        """Rows and columns of zeros before and after."""
        if self.padding == "SAME":
            half = self.side // 2
            return ((half, half), (half, half))
        return ((0, 0), (0, 0)) if self.padding == "VALID" else self.padding

    def build(self, x, w):
        padding = self.padding
        if not isinstance(padding, str):
            padding = ((0, 0), *padding, (0, 0))
        return hr.nn.conv2d(x, w, 1, padding)


CASES = [
    Case(),
    Case(batch=3, height=7, width=9),
    Case(batch=2, height=5, width=4, taken=2, given=3),
    Case(height=13, width=6, taken=3, given=2, padding="VALID"),
    Case(batch=2, height=3, width=3, padding="VALID"),
    Case(height=1, width=1),
    Case(height=1, width=17, given=2),
    Case(height=6, width=5, padding=((2, 0), (0, 2))),
    Case(height=6, width=5, padding=((0, 1), (2, 4))),
    Case(batch=40, height=8, width=8),
    Case(batch=2, height=7, width=9, side=5),
    Case(height=5, width=12, taken=2, given=3, side=5),
    Case(batch=3, height=6, width=8, padding="VALID", side=5),
    Case(height=3, width=2, side=5),
    Case(height=6, width=5, padding=((4, 0), (1, 3)), side=5),
]


def direct(case, x, w, seed):
    """Return the convolution and its gradients, summed over taps."""
    x, w, seed = (a.astype(np.float64) for a in (x, w, seed))
    padded = np.pad(x, ((0, 0), *case.before, (0, 0)))
    high, wide = (size - case.side + 1 for size in padded.shape[1:3])
    out = np.zeros((case.batch, high, wide, w.shape[3]))
    back, dw = np.zeros(padded.shape), np.zeros(w.shape)
    for i in range(case.side):
        for j in range(case.side):
            window = (slice(None), slice(i, i + high), slice(j, j + wide))
            out += padded[window] @ w[i, j]
            if seed.size == out.size:
                back[window] += seed @ w[i, j].T
                dw[i, j] = np.tensordot(padded[window], seed, ([0, 1, 2], [0, 1, 2]))
    (top, _), (left, _) = case.before
    return out, back[:, top : top + case.height, left : left + case.width], dw


def near(found, wanted, side=3):
    """Check that results are about as near as those of a sum over taps in float32."""
    scale = max(1e-30, float(np.abs(wanted).max()))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=(4e-6 if side == 3 else 1e-5) * scale)


def arrays(case):
    rng = np.random.default_rng(7)
    x, w = (rng.standard_normal(s, np.float32) for s in (case.images, case.taps))
    shape = direct(case, x, w, np.zeros(0))[0].shape
    return x, w, rng.standard_normal(shape, np.float32)


def used(session, fetches, feeds):
    """Return how many instructions of a step compute by Winograd's algorithm."""
    return session.explain(fetches, feeds).source().count("Winograd F(2x2, ")


@native
@pytest.mark.parametrize("onednn", [True, False], ids=["onednn", "alone"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolutions_and_gradients_equal_the_sum_over_taps(case, onednn):
    values = arrays(case)
    x, w, seed = (hr.placeholder(hr.float32, v.shape) for v in values)
    y = case.build(x, w)
    fetches = [y, *hr.gradients([y], [x, w], grad_ys=[seed])]
    feeds = dict(zip((x, w, seed), values, strict=True))
    config = hr.Config(compile_after=0, verify=True, onednn=onednn)
    with hr.Session(config=config) as session:
        found = session.run(fetches, feeds)
        assert used(session, fetches, feeds) == 3
    for one, other in zip(found, direct(case, *values), strict=True):
        near(one, other, case.side)


@native
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_what_follows_is_computed_at_once(bias, addend, relu):
    case = Case(batch=2, height=5, width=7, given=2)
    xs, ws, more = arrays(case)
    bs = np.random.default_rng(1).standard_normal(case.taps[3], np.float32)
    x, w, a, b = (hr.placeholder(hr.float32, v.shape) for v in (xs, ws, more, bs))
    y = case.build(x, w)
    wanted = direct(case, xs, ws, more)[0]
    if bias:
        y, wanted = y + b, wanted + bs
    if addend:
        y, wanted = y + a, wanted + more
    if relu:
        y, wanted = hr.nn.relu(y), np.maximum(wanted, 0)
    feeds = {x: xs, w: ws}
    feeds |= ({b: bs} if bias else {}) | ({a: more} if addend else {})
    with hr.Session(config=COMPILED) as session:
        near(session.run(y, feeds), wanted)
    if load() is not None:
        (found,) = instructions([y])
        assert len(found.ops) == 1 + bias + addend + relu


def instructions(results, **settings):
    matches = Matches(results[0].graph.operations, results)
    match(matches, CompileSettings(**{"threads": 2, **settings}), MATCHERS, {"winograd"})
    return matches.instructions


@native
def test_each_step_may_bring_other_arrays():
    case = Case(height=4, width=4)
    x, w = hr.placeholder(hr.float32, case.images), hr.placeholder(hr.float32, case.taps)
    y = case.build(x, w)
    rng = np.random.default_rng(0)
    with hr.Session(config=COMPILED) as session:
        kept = []
        for _ in range(5):
            values = [rng.standard_normal(s, np.float32) for s in (case.images, case.taps)]
            kept.append((session.run(y, dict(zip((x, w), values, strict=True))), values))
    for found, values in kept:
        near(found, direct(case, *values, np.zeros(0))[0])


@native
@pytest.mark.parametrize("onednn", [True, False], ids=["onednn", "alone"])
def test_the_direct_way_serves_until_the_kernel_is_compiled(onednn):
    case = Case()
    values = arrays(case)
    x, w, seed = (hr.placeholder(hr.float32, v.shape) for v in values)
    y = case.build(x, w)
    fetches = [hr.nn.relu(y + 0.5), *hr.gradients([y], [x, w], grad_ys=[seed])]
    out, *wanted = direct(case, *values)
    config = hr.Config(compile_after=2, verify=True, onednn=onednn)
    with hr.Session(config=config) as session:
        for _ in range(5):
            found = session.run(fetches, dict(zip((x, w, seed), values, strict=True)))
            for one, other in zip(found, [np.maximum(out + 0.5, 0), *wanted], strict=True):
                near(one, other)


def without_kernels(monkeypatch):
    def fails(*_):
        raise KernelError("no such thing")

    monkeypatch.delenv("HEADRACE_QUIET", raising=False)
    monkeypatch.setattr("headrace_cpu.native.report._said", set())
    monkeypatch.setattr(kernel_module.KernelInstruction, "kernels", fails)


@native
def test_the_direct_way_stays_where_no_kernel_can_be_made(monkeypatch, caplog):
    without_kernels(monkeypatch)
    case = Case(height=4, width=4)
    values = arrays(case)[:2]
    x, w = (hr.placeholder(hr.float32, v.shape) for v in values)
    y = case.build(x, w)
    with caplog.at_level("INFO", "headrace"), hr.Session(config=hr.Config(compile_after=0)) as s:
        for _ in range(2):
            found = s.run(y, dict(zip((x, w), values, strict=True)))
            near(found, direct(case, *values, np.zeros(0))[0])
    said = [record.getMessage() for record in caplog.records]
    assert sum("no kernel can be generated for Conv2D" in line for line in said) == 1


@native
def test_that_is_an_error_where_steps_are_verified(monkeypatch):
    without_kernels(monkeypatch)
    case = Case(height=4, width=4)
    x, w = hr.placeholder(hr.float32, case.images), hr.placeholder(hr.float32, case.taps)
    feeds = dict(zip((x, w), arrays(case)[:2], strict=True))
    with (
        hr.Session(config=COMPILED) as session,
        pytest.raises(KernelError, match="no kernel can be generated for Conv2D"),
    ):
        session.run(case.build(x, w), feeds)


@native
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_more_threads_change_no_bit_of_results(threads):
    case = Case(batch=3, height=9, width=7, taken=2)
    values = arrays(case)
    x, w, seed = (hr.placeholder(hr.float32, v.shape) for v in values)
    y = case.build(x, w)
    fetches = [y, *hr.gradients([y], [x], grad_ys=[seed])]
    feeds = dict(zip((x, w, seed), values, strict=True))
    found = []
    for count in (1, threads):
        config = hr.Config(compile_after=0, verify=True, threads=count)
        with hr.Session(config=config) as session:
            found.append(session.run(fetches, feeds))
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


@native
def test_equal_runs_give_equal_gradients_of_filters():
    case = Case(batch=5, height=9, width=9)
    values = arrays(case)
    x, w, seed = (hr.placeholder(hr.float32, v.shape) for v in values)
    (dw,) = hr.gradients([case.build(x, w)], [w], grad_ys=[seed])
    feeds = dict(zip((x, w, seed), values, strict=True))
    with hr.Session(config=hr.Config(deterministic=True, verify=True, threads=2)) as session:
        first, *others = [session.run(dw, feeds).tobytes() for _ in range(4)]
    assert all(other == first for other in others)


@native
@pytest.mark.timeout(120)
def test_steps_beside_each_other():
    case = Case(batch=4)
    values = arrays(case)[:2]
    x, w = (hr.placeholder(hr.float32, v.shape) for v in values)
    y = case.build(x, w)
    wanted = direct(case, *values, np.zeros(0))[0]
    problems = []
    with hr.Session(config=COMPILED) as session:

        def work(factor):
            try:
                for _ in range(20):
                    near(session.run(y, {x: values[0] * factor, w: values[1]}), wanted * factor)
            except BaseException as problem:
                problems.append(problem)

        workers = [threading.Thread(target=work, args=(np.float32(f),)) for f in (1, 2, 4, 8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not problems


@native
def test_nan_stays_nan():
    case = Case(height=6, width=6)
    values = list(arrays(case)[:2])
    values[0][0, 0, 0, 0] = np.nan
    x, w = (hr.placeholder(hr.float32, v.shape) for v in values)
    y = hr.nn.relu(case.build(x, w))
    with hr.Session(config=COMPILED) as session:
        found = session.run(y, dict(zip((x, w), values, strict=True)))
    # The pixel counts in two by two results; the algorithm knows no less than a tile.
    assert np.isnan(found[0, :2, :2]).all()
    assert np.isfinite(found[0, 4:, 4:]).all()


# -- what is matched


def convolution(images=(1, 8, 8, PANEL), taps=(3, 3, PANEL, PANEL), dtype="float32", **options):
    x, w = hr.placeholder(dtype, images), hr.placeholder(dtype, taps)
    return hr.nn.conv2d(x, w, **{"strides": 1, "padding": "SAME", **options})


@native
@pytest.mark.parametrize(
    "options",
    [
        {"strides": 2},
        {"dilations": 2},
        {"padding": ((0, 0), (3, 0), (0, 0), (0, 0))},
        {"images": (1, PANEL, 8, 8), "data_format": "NCHW"},
        {"taps": (7, 7, PANEL, PANEL)},
        {"taps": (3, 5, PANEL, PANEL)},
        {"taps": (3, 3, PANEL // 2, PANEL)},
        {"taps": (3, 3, PANEL, PANEL // 2)},
        {"images": (1, 8, 8, 3), "taps": (3, 3, 3, PANEL)},
        {"dtype": "float64"},
    ],
    ids=str,
)
def test_what_the_kernels_are_not_made_for_is_left(options):
    y = convolution(**options)
    assert instructions([y]) == []


@native
def test_what_they_are_made_for_is_taken():
    y = convolution()
    (found,) = instructions([y])
    assert isinstance(found, KernelInstruction)
    assert found.flops() == 2 * 8 * 8 * 9 * PANEL * PANEL
    assert tiling_of(y.op) == Tiling(
        SCHEMES[3], Activations(1, 8, 8, PANEL), Activations(1, 8, 8, PANEL), 1, 1
    )
    assert "Winograd F(2x2, 3x3)" in found.source()


@native
def test_machines_without_the_means_leave_them(monkeypatch):
    y = convolution()
    monkeypatch.setattr(matching, "vector_bytes", lambda: 16)
    assert instructions([y]) == []
    monkeypatch.undo()
    monkeypatch.setattr(matching, "open_mp", lambda: None)
    assert instructions([y]) == []


def square(batch, size, channels):
    images = Activations(batch, size, size, channels)
    return Tiling(SCHEMES[3], images, images, 1, 1)


@pytest.mark.parametrize(
    ("tiling", "forward", "to_filter"),
    [
        (square(8, 56, 64), True, True),
        (square(8, 14, 256), True, True),
        (square(4, 14, 512), True, False),
        (square(8, 7, 512), False, False),
        (square(1, 8, 64), False, False),
        (square(0, 8, 64), False, False),
    ],
    ids=["large", "middle", "deep", "deepest", "small", "empty"],
)
def test_few_tiles_of_many_channels_are_left(tiling, forward, to_filter):
    assert pays(tiling, 2, to_filter=False) is forward
    assert pays(tiling, 2, to_filter=True) is to_filter


def test_the_sums_of_many_threads_stay_smaller_than_what_they_sum():
    tiling = square(4, 28, 512)
    assert pays(tiling, 4, to_filter=True)
    assert not pays(tiling, 64, to_filter=True)
    assert not pays(tiling, 64, to_filter=False)


_NARROWER = """
import sys
from headrace_cpu.native import assembly
assembly.vector_bytes = lambda: 32
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", sys.argv[1], "-k", sys.argv[2]]))
"""


@pytest.mark.slow
@native
@pytest.mark.skipif(PANEL == 16, reason="these are the vectors of this machine")
@pytest.mark.timeout(300)
def test_kernels_for_vectors_of_half_the_width():
    chosen = "sum_over_taps and alone or at_once and True-True-True"
    done = run_program(_NARROWER, __file__, chosen, timeout_s=280.0)
    assert f"{len(CASES) + 1} passed" in done.stdout
