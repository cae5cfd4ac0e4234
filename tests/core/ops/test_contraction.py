"""Contractions by labels and by axes."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(9)
SIZES = {"i": 2, "j": 3, "k": 4, "l": 5, "b": 2, "c": 3}


def operands(equation):
    """Make arrays for an equation; an ellipsis stands for two axes in the first, one in others."""
    made = []
    for n, term in enumerate(equation.replace(" ", "").split("->")[0].split(",")):
        dims = [SIZES[letter] for letter in term.replace("...", "")]
        if "..." in term:
            at = term.index("...")
            dims[at:at] = [3, 2] if n == 0 else [2]
        made.append(RNG.normal(size=dims))
    return made


EQUATIONS = [
    *("ij,jk->ik", "ij,jk", "ij->ji", "ji", "ij->", "->", ",ij->ji", "ij,ij->ij", "ij,ij->"),
    *("bij,bjk->bik", "bij,bjk->ikb", "bij,jk,kl->bil", "i,j->ij", "i,j,k->kji", "ij,k->ikj"),
    *("ijk,ijk->k", "ijk,kl->ijl", "bijk,bjkl->bil", "bijk,blj->bikl", "bb->b", "bb", "bbj->j"),
    *("bibj,b->ij", "...ij,...jk->...ik", "...i->...", "ij...", "...i,i->...", "i...j,j->i..."),
    *("...,...->...", "i j , j k -> i k", "ij,j,ij,i->"),
]


@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("known", [True, False])
def test_einsum(equation, known):
    given = operands(equation)
    shapes = [x.shape if known else [None] * x.ndim for x in given]
    places = [hr.placeholder(hr.float64, shape) for shape in shapes]
    tensor = hr.einsum(equation, *places)
    feeds = dict(zip(places, given, strict=True))
    got = run(tensor, feeds)
    np.testing.assert_allclose(got, np.einsum(equation, *given), atol=1e-12)
    if known:
        assert tensor.shape == got.shape
    weights = RNG.normal(size=got.shape)
    grads = hr.gradients(tensor, places, grad_ys=hr.constant(weights))
    for place, x, grad in zip(places, given, grads, strict=True):
        u = RNG.normal(size=x.shape)
        moved = [u if p is place else y for p, y in zip(places, given, strict=True)]
        # The product is linear in each operand.
        wanted = np.sum(np.einsum(equation, *moved) * weights)
        assert np.sum(run(grad, feeds) * u) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_einsum_without_a_known_rank():
    place = hr.placeholder(hr.float64)
    x = RNG.normal(size=(2, 3, 3))
    for equation in ("bij,bjk->bik", "bii->b", "bij->jbi", "bij,bij->b"):
        count = equation.count(",") + 1
        got = run(hr.einsum(equation, *[place] * count), {place: x})
        np.testing.assert_allclose(got, np.einsum(equation, *[x] * count))


@pytest.mark.parametrize(
    ("equation", "shapes"), [("ij,ij->ij", [(3, 1), (3, 2)]), ("ii->i", [(2, 3)])]
)
def test_axes_that_differ_in_size_are_refused_in_the_step(equation, shapes):
    places = [hr.placeholder(hr.float64, [None] * len(s)) for s in shapes]
    feeds = {place: np.ones(s) for place, s in zip(places, shapes, strict=True)}
    with pytest.raises(ExecutionError, match="Reshape failed"):
        run(hr.einsum(equation, *places), feeds)


def test_einsum_takes_integers_lists_and_a_name():
    tensor = hr.einsum("ij,jk->ik", hr.constant([[1, 2]]), [[3], [4]], name="both")
    assert tensor.op.name.startswith("both")
    assert tensor.dtype == hr.int32
    assert run(tensor).tolist() == [[11]]
    assert run(hr.einsum("ij,j->i", [[1.0, 2.0]], [3.0, 4.0])).tolist() == [11.0]


def test_einsum_of_diagonals_leaves_infinities_out():
    x = np.array([[1.0, np.inf], [np.nan, 2.0]])
    assert run(hr.einsum("ii->i", x)).tolist() == [1.0, 2.0]


X, Y = np.ones((2, 3)), np.ones((3, 4))


REFUSED = [
    (lambda: hr.einsum("ij,jk->i->", X, Y), AttributeValueError, "is no equation"),
    (lambda: hr.einsum("i1->i", X), AttributeValueError, "is no equation"),
    (lambda: hr.einsum("ij,jk->iik", X, Y), AttributeValueError, "stands twice"),
    (lambda: hr.einsum("ij->ik", X), AttributeValueError, "k on the right"),
    (lambda: hr.einsum("ij,jk", X), AttributeValueError, "takes 2 inputs, got 1"),
    (lambda: hr.einsum("...i...->i", X), AttributeValueError, "more than one"),
    (lambda: hr.einsum("i...->i", X), AttributeValueError, "missing on the right"),
    (lambda: hr.einsum("ij", X, other=1), AttributeValueError, "unknown arguments other"),
    (lambda: hr.einsum(3, X), AttributeValueError, "must be a string"),
    (lambda: hr.einsum("ijk->k", X), ShapeError, "names 3 axes"),
    (lambda: hr.einsum("ijk...->k", X), ShapeError, "at least 3 axes"),
    (lambda: hr.einsum("ij,ij->", X, Y), ShapeError, "differ in size"),
    (lambda: hr.einsum("ii->i", X), ShapeError, "differ in size"),
    (lambda: hr.einsum("i->i", [True]), DTypeError, "numeric"),
    (lambda: hr.tensordot(X, Y, -1), AttributeValueError, "at least 0"),
    (lambda: hr.tensordot(X, Y, 3), ShapeError, "3 axes are more"),
    (lambda: hr.tensordot(X, Y, [[0], [0, 1]]), AttributeValueError, "must be pairs"),
    (lambda: hr.tensordot(X, Y, [[0, 0], [0, 1]]), AttributeValueError, "named twice"),
    (lambda: hr.tensordot(X, Y, "ab"), AttributeValueError, "must be a number"),
    (lambda: hr.tensordot(X, Y, [[1.5], [0]]), AttributeValueError, "must be integers"),
    (lambda: hr.tensordot(X, Y, [[0], [0]]), ShapeError, "differ in size"),
    (lambda: hr.tensordot(X, Y, [[2], [0]]), ShapeError, "out of range"),
]


@pytest.mark.parametrize(("build", "error", "match"), REFUSED, ids=range(len(REFUSED)))
def test_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


P, Q = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 3, 5))


@pytest.mark.parametrize(
    ("axes", "same"),
    [
        (0, 0),
        (1, 1),
        ([2, 0], ([2], [0])),
        ([[2], [0]], ([2], [0])),
        ([[1, 2], [1, 0]], ([1, 2], [1, 0])),
        ([[-1, -2], [0, -2]], ([2, 1], [0, 1])),
        (np.array([[2, 1], [0, 1]]), ([2, 1], [0, 1])),
        ([[], []], 0),
    ],
)
@pytest.mark.parametrize("shape", ["known", "dims", "rank"])
def test_tensordot(axes, same, shape):
    shapes = {"known": (P.shape, Q.shape), "dims": ([None] * 3,) * 2, "rank": (None, None)}[shape]
    places = [hr.placeholder(hr.float64, s) for s in shapes]
    tensor = hr.tensordot(*places, axes)
    feeds = dict(zip(places, (P, Q), strict=True))
    got = run(tensor, feeds)
    np.testing.assert_allclose(got, np.tensordot(P, Q, same), atol=1e-12)
    if shape == "known":
        assert tensor.shape == got.shape
    weights = RNG.normal(size=got.shape)
    grads = hr.gradients(tensor, places, grad_ys=hr.constant(weights))
    total = np.sum(got * weights)
    for grad, x in zip(run(grads, feeds), (P, Q), strict=True):
        assert np.sum(grad * x) == pytest.approx(total)


def test_tensordot_takes_a_constant_tensor_of_axes():
    got = run(hr.tensordot(P, Q, hr.constant([[2], [0]])))
    np.testing.assert_allclose(got, np.tensordot(P, Q, 1))
    with pytest.raises(AttributeValueError, match="a row for each tensor"):
        hr.tensordot(P, Q, hr.placeholder(hr.int32, []))


def test_tensordot_of_unknown_ranks_refuses_axes_that_no_tensor_has():
    x = hr.placeholder(hr.float32, None)
    with pytest.raises(AttributeValueError, match=r"no tensor has an axis -4611686018427387904"):
        hr.tensordot(x, hr.constant([1.0]), [2147483647 - 2**31, -(2**62)])


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 3), [[5], [0]]), ((2, 3), [[-3], [0]]), ((), [0, 0]), ((2,), [[1], [0]])],
)
@pytest.mark.parametrize("fed", [False, True])
def test_axes_that_a_tensor_of_unknown_rank_does_not_have_are_refused(shape, axes, fed) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, None)
        given = hr.placeholder_with_default(np.array(axes, np.int32), None) if fed else axes
        y = hr.tensordot(x, np.ones([3, 2], np.float32), given)
        with pytest.raises(hr.errors.InvalidArgumentError, match="tensordot: axes"):
            session.run(y, {x: np.ones(shape, np.float32)})
