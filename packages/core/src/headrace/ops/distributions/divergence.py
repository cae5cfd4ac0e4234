"""How far two distributions are apart: the Kullback-Leibler divergence, for pairs of classes.

Kullback and Leibler, On information and sufficiency, 1951.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, final

from headrace.errors import ArgumentTypeError, AttributeValueError, UnimplementedError, shown
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.elementwise import is_nan, logical_not
from headrace.ops.identity import identity
from headrace.ops.reduce import reduce_any
from headrace.ops.report import assert_true

_Divergence = Callable[..., Tensor]
_KNOWN: dict[tuple[type, type], _Divergence] = {}


def _found(a: type, b: type) -> _Divergence | None:
    """Return what is known of two classes, or of the nearest pair of what they derive from."""
    above_a, above_b = inspect.getmro(a), inspect.getmro(b)
    pairs = [
        (i + j, i, _KNOWN[x, y])
        for i, x in enumerate(above_a)
        for j, y in enumerate(above_b)
        if (x, y) in _KNOWN
    ]
    return min(pairs, key=lambda pair: pair[:2])[2] if pairs else None


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """Return the mean of ``log(a(x) / b(x))`` over samples of the first distribution, exactly.

    Args:
        distribution_a: The distribution that samples are of.
        distribution_b: The other one.
        allow_nan_stats: Whether the result may be NaN; a step fails otherwise.
        name: The name of the scope.

    Returns:
        In nats, in the shape of both batches broadcast.

    Raises:
        UnimplementedError: if nothing is known of such a pair: ``hr.distributions.RegisterKL``
            teaches it.
    """
    known = _found(type(distribution_a), type(distribution_b))
    if known is None:
        kinds = type(distribution_a).__name__, type(distribution_b).__name__
        raise UnimplementedError(
            f"No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{kinds[0]} and distribution_b type {kinds[1]}"
        )
    with name_scope("KullbackLeibler"):
        found = known(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return found
        names = f"{distribution_a.name} and {distribution_b.name}"
        said = f"KL calculation between {names} returned NaN values (and was called with "
        said += "allow_nan_stats=False). Values:"
        sound = logical_not(reduce_any(is_nan(found)))
        with control_dependencies([assert_true(sound, [said, found])]):
            return identity(found, name="checked_kl")


def cross_entropy(
    ref: Any, other: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """Return the mean of ``-other.log_prob(x)`` over samples of ``ref``, exactly."""
    with name_scope(name or "cross_entropy"):
        apart = kl_divergence(ref, other, allow_nan_stats)
        total: Tensor = ref.entropy() + apart
        return total


@final
class RegisterKL:
    """Decorates the function that computes the divergence of two classes of distributions.

    Example:
        ::

            @hr.distributions.RegisterKL(Triangle, hr.distributions.Normal)
            def divergence(a, b, name=None):
                ...
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        """Name the classes.

        Args:
            dist_cls_a: That of the first distribution.
            dist_cls_b: That of the second.
        """
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: _Divergence) -> _Divergence:
        """Let a function compute it, and return the function.

        Args:
            kl_fn: Takes both distributions and ``name``.

        Raises:
            ArgumentTypeError: if it cannot be called.
            AttributeValueError: if another one computes it already.
        """
        if not callable(kl_fn):
            raise ArgumentTypeError(f"kl_fn must be callable, received: {shown(kl_fn)}")
        if self._key in _KNOWN:
            a, b = (each.__name__ for each in self._key)
            raise AttributeValueError(
                f"KL({a} || {b}) has already been registered to: {shown(_KNOWN[self._key])}"
            )
        _KNOWN[self._key] = kl_fn
        return kl_fn
