"""What libraries use of TensorFlow's private module of linear operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace_tensorflow.helpers import matrices

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

RNG = np.random.default_rng(0)
SQUARES = RNG.normal(size=(3, 1, 4, 4)) + 4 * np.eye(4)
SIDES = RNG.normal(size=(2, 4, 5))


@pytest.fixture(params=["known", "fed"])
def tensors(request: Any) -> tuple[Any, Any]:
    """Matrices and right sides whose batches broadcast, of known and of unknown shapes."""
    if request.param == "known":
        return hr.constant(SQUARES), hr.constant(SIDES)
    return hr.placeholder_with_default(SQUARES, None), hr.placeholder_with_default(SIDES, None)


def test_batches_become_alike(tensors: Any) -> None:
    with hr.Session() as session:
        one, other = session.run(matrices.broadcast_matrix_batch_dims(list(tensors)))
    np.testing.assert_array_equal(one, np.broadcast_to(SQUARES, (3, 2, 4, 4)))
    np.testing.assert_array_equal(other, np.broadcast_to(SIDES, (3, 2, 4, 5)))


def test_batches_that_are_alike_stay() -> None:
    one, other = hr.constant(SIDES), hr.zeros([2, 1, 1], hr.float64)
    assert matrices.broadcast_matrix_batch_dims([one, other]) == [one, other]
    assert matrices.broadcast_matrix_batch_dims([one]) == [one]
    assert matrices.broadcast_matrix_batch_dims([]) == []
    with pytest.raises(ValueError, match="has two axes at least"):
        matrices.broadcast_matrix_batch_dims([one, [1.0]])


@pytest.mark.parametrize("adjoint", [False, True])
def test_systems_of_batches_are_solved(tensors: Any, adjoint: bool) -> None:
    turned = np.swapaxes(SQUARES, -1, -2) if adjoint else SQUARES
    lower = np.swapaxes(np.triu(SQUARES), -1, -2) if adjoint else np.triu(SQUARES)
    with hr.Session() as session:
        found, triangular = session.run(
            [
                matrices.matrix_solve_with_broadcast(*tensors, adjoint=adjoint),
                matrices.matrix_triangular_solve_with_broadcast(
                    *tensors, lower=False, adjoint=adjoint
                ),
            ]
        )
    np.testing.assert_allclose(turned @ found, np.broadcast_to(SIDES, (3, 2, 4, 5)))
    np.testing.assert_allclose(lower @ triangular, np.broadcast_to(SIDES, (3, 2, 4, 5)))


def test_systems_of_factors_are_solved() -> None:
    factor = np.tril(SQUARES)
    with hr.Session() as session:
        found = session.run(matrices.cholesky_solve_with_broadcast(factor, SIDES))
    product = factor @ np.swapaxes(factor, -1, -2)
    np.testing.assert_allclose(product @ found, np.broadcast_to(SIDES, (3, 2, 4, 5)))


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (matrices.assert_no_entries_with_modulus_zero, [1.0, -2.0], [1.0, 0.0]),
        (matrices.assert_no_entries_with_modulus_zero, [1j, 2], [1j, 0]),
        (matrices.assert_zero_imag_part, [1 + 0j], [1 + 2j]),
        (
            lambda x, message: matrices.assert_compatible_matrix_dimensions(
                hr.linalg.LinearOperatorIdentity(2), x
            ),
            [[1.0], [2.0]],
            [[1.0]],
        ),
    ],
)
def test_checks_fail_in_the_step(check: Any, good: Any, bad: Any) -> None:
    with hr.Session() as session:
        session.run(check(hr.placeholder_with_default(good, None), message="not this"))
        failing = check(hr.placeholder_with_default(bad, None), message="not this")
        with pytest.raises(hr.errors.InvalidArgumentError, match=r"not this|number of columns"):
            session.run(failing)
        session.run(matrices.assert_zero_imag_part([1.0]))


def test_what_can_change_stays_as_it_is() -> None:
    class Held(hr.Module):
        dtype = hr.float32
        shape = hr.TensorShape([])

    variable, module = hr.Variable(1.0), Held()
    assert matrices.convert_nonref_to_tensor(variable) is variable
    assert matrices.convert_nonref_to_tensor(module, hr.float32) is module
    assert matrices.convert_nonref_to_tensor(None) is None
    assert matrices.convert_nonref_to_tensor(1, dtype_hint=hr.int64).dtype == hr.int64
    with pytest.raises(TypeError, match="has dtype float32, expected float64"):
        matrices.convert_nonref_to_tensor(variable, "float64")
    matrices.assert_not_ref_type(hr.constant(1.0), "x")
    with pytest.raises(TypeError, match="x must not be able to change"):
        matrices.assert_not_ref_type(variable, "x")
    assert matrices.shape_tensor([]).dtype == hr.int32
    assert matrices.shape_tensor(np.array([2])).dtype == hr.int64


@pytest.mark.parametrize(
    ("said", "given", "both"),
    [(True, None, True), (None, False, False), (None, None, None), (False, False, False)],
)
def test_hints_are_joined(said: Any, given: Any, both: Any) -> None:
    operator = hr.linalg.LinearOperatorFullMatrix([[1.0]], is_self_adjoint=said)
    join = matrices.use_operator_or_provided_hint_unless_contradicting
    assert join(operator, "is_self_adjoint", given, "no") is both


def test_hints_that_contradict_are_refused() -> None:
    operator = hr.linalg.LinearOperatorFullMatrix([[1.0]], is_self_adjoint=True)
    with pytest.raises(ValueError, match="it is, and it is not"):
        matrices.use_operator_or_provided_hint_unless_contradicting(
            operator, "is_self_adjoint", False, "it is, and it is not"
        )
