"""``Distribution``: what all distributions can do, by way of a few methods of each.

A distribution has parameters, which may be batches: ``batch_shape`` is theirs, and each of the
batch is a distribution of its own. One value of it has the shape ``event_shape``: scalars have
``[]``. Samples have the shape ``sample_shape + batch_shape + event_shape``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

from headrace.dtypes import DType, as_dtype, int32
from headrace.errors import AttributeValueError, UnimplementedError, shown
from headrace.graph.convert import convert_to_tensor, is_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import reshape, shape, size
from headrace.ops.distributions import divergence
from headrace.ops.elementwise import equal, square
from headrace.ops.joining import concat
from headrace.ops.reduce import reduce_prod
from headrace.ops.transcendental import exp, log, log1p, sqrt


@final
class ReparameterizationType:
    """Whether gradients of samples with respect to parameters are those of the distribution."""

    def __init__(self, rep_type: str) -> None:
        """Give it a name.

        Args:
            rep_type: The name.
        """
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"

    def __eq__(self, other: object) -> bool:
        """Whether it is the other one: types of one name are two."""
        return self is other

    def __hash__(self) -> int:
        return id(self)


# Samples are a function of the parameters and of what was drawn: gradients go through them.
FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
# Samples have no gradients.
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


class Distribution:
    """A distribution, or a batch of them.

    A subclass states its shapes in ``_batch_shape``, ``_batch_shape_tensor``, ``_event_shape`` and
    ``_event_shape_tensor``, draws in ``_sample_n``, and states of ``_log_prob``, ``_prob``,
    ``_cdf``, ``_mean`` and so on what it knows: what follows from others need not be said.
    """

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: Mapping[str, Any] | None = None,
        graph_parents: Sequence[Any] | None = None,
        name: str | None = None,
    ) -> None:
        """State what holds of it.

        Args:
            dtype: The dtype of samples; None for any.
            reparameterization_type: Whether samples have gradients.
            validate_args: Whether parameters and values are checked in each step.
            allow_nan_stats: Whether a statistic that is not defined is NaN; it fails otherwise.
            parameters: What it was made with, by name.
            graph_parents: The tensors of which it is made.
            name: The name of the scope of what it computes; that of its class if None.

        Raises:
            AttributeValueError: if a parent is no tensor.
        """
        parents = [] if graph_parents is None else list(graph_parents)
        for i, each in enumerate(parents):
            if not is_tensor(each):
                raise AttributeValueError(f"Graph parent item {i} is not a Tensor; {shown(each)}.")
        if not name or not name.endswith("/"):
            with name_scope(name or type(self).__name__) as scope:
                name = scope
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._reparameterization_type = reparameterization_type
        self._validate_args = validate_args
        self._allow_nan_stats = allow_nan_stats
        self._parameters = given_to(parameters or {})
        self._graph_parents = parents
        self._name = name

    @contextmanager
    def _scoped(self, name: str | None) -> Iterator[str]:
        with name_scope(self._name), name_scope(name) as scope:
            yield scope

    def _unknown(self, what: str) -> UnimplementedError:
        return UnimplementedError(f"{what} is not implemented: {type(self).__name__}")

    # -- what it is

    @property
    def name(self) -> str:
        """The scope of what it computes."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The dtype of samples."""
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was made with, by name."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        """Whether samples have gradients."""
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        """Whether a statistic that is not defined is NaN; it fails otherwise."""
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        """Whether parameters and values are checked in each step."""
        return self._validate_args

    def copy(self, **override_parameters_kwargs: Any) -> Distribution:
        """Return another one of its class.

        Args:
            **override_parameters_kwargs: Parameters that it is to have instead.
        """
        return type(self)(**{**self.parameters, **override_parameters_kwargs})

    @classmethod
    def param_shapes(
        cls, sample_shape: Any, name: str = "DistributionParamShapes"
    ) -> dict[str, Tensor]:
        """Return which shapes parameters need for one sample to have a shape.

        Args:
            sample_shape: The shape.
            name: The name of the scope.

        Raises:
            UnimplementedError: if the class does not say.
        """
        with name_scope(name):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """Return what ``param_shapes`` does, as static shapes.

        Args:
            sample_shape: The shape, fully known.

        Raises:
            AttributeValueError: if the shape is not fully known.
            UnimplementedError: if the class does not say.
        """
        if isinstance(sample_shape, TensorShape):
            if not sample_shape.is_fully_defined():
                raise AttributeValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        found = {}
        for name, dims in cls.param_shapes(sample_shape).items():
            known = dims.spec.value
            if known is None:
                raise AttributeValueError(
                    "sample_shape must be a fully-defined TensorShape or list/tuple"
                )
            found[name] = TensorShape(known.tolist())
        return found

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        raise UnimplementedError("_param_shapes not implemented")

    # -- shapes

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Return the shape of the batch as a tensor.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            known = self.batch_shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtype=int32, name="batch_shape")
            return self._batch_shape_tensor()

    def _batch_shape_tensor(self) -> Tensor:
        raise self._unknown("batch_shape_tensor")

    @property
    def batch_shape(self) -> TensorShape:
        """The static shape of the batch."""
        return TensorShape(self._batch_shape())

    def _batch_shape(self) -> Any:
        return None

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """Return the shape of one value as a tensor.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            known = self.event_shape
            if known.is_fully_defined():
                return convert_to_tensor(known.as_list(), dtype=int32, name="event_shape")
            return self._event_shape_tensor()

    def _event_shape_tensor(self) -> Tensor:
        raise self._unknown("event_shape_tensor")

    @property
    def event_shape(self) -> TensorShape:
        """The static shape of one value."""
        return TensorShape(self._event_shape())

    def _event_shape(self) -> Any:
        return None

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Return whether values are scalars, a bool.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return _is_scalar(self.event_shape, self.event_shape_tensor)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Return whether it is one distribution and no batch, a bool.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return _is_scalar(self.batch_shape, self.batch_shape_tensor)

    # -- samples

    def sample(
        self, sample_shape: Any = (), seed: int | None = None, name: str = "sample"
    ) -> Tensor:
        """Draw.

        Args:
            sample_shape: How many values, in which shape: a whole number or a vector.
            seed: As for ``hr.random_normal``.
            name: The name of the scope.

        Returns:
            ``sample_shape + batch_shape + event_shape``, of the distribution's dtype.

        Raises:
            AttributeValueError: if ``sample_shape`` is a matrix.
        """
        with self._scoped(name):
            wanted = convert_to_tensor(sample_shape, dtype=int32, name="sample_shape")
            rank = wanted.shape.ndims
            if rank is not None and rank > 1:
                raise AttributeValueError(
                    f"Input is neither scalar nor vector: sample_shape is {wanted.spec}"
                )
            known = wanted.spec.value
            dims: Any = reshape(wanted, [-1])
            count: Any = reduce_prod(wanted) if known is None else int(known.prod())
            drawn = self._sample_n(count, seed)
            found = reshape(drawn, concat([dims, shape(drawn)[1:]], 0))
            front = TensorShape(None) if known is None else TensorShape(known.reshape(-1).tolist())
            found.set_shape(front.concatenate(self.batch_shape).concatenate(self.event_shape))
            return found

    def _sample_n(self, n: Any, seed: int | None = None) -> Tensor:
        raise self._unknown("sample_n")

    # -- probabilities

    def _of_value(self, value: Any, name: str, *ways: Callable[[Any], Tensor]) -> Tensor:
        """Return what the first way that is known tells of a value."""
        with self._scoped(name):
            given = convert_to_tensor(value, preferred_dtype=self.dtype, name="value")
            return _first_known(*((way, (given,)) for way in ways))

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """Return the logarithm of the density of values, or of their probability.

        Args:
            value: Broadcast with ``batch_shape + event_shape``.
            name: The name of the scope.

        Returns:
            The shape of ``value`` and the batch, without that of the event.
        """
        return self._of_value(value, name, self._log_prob, lambda x: log(self._prob(x)))

    def _log_prob(self, value: Any) -> Tensor:
        raise self._unknown("log_prob")

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """Return the density of values, or their probability; arguments as of ``log_prob``."""
        return self._of_value(value, name, self._prob, lambda x: exp(self._log_prob(x)))

    def _prob(self, value: Any) -> Tensor:
        raise self._unknown("prob")

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """Return the logarithm of ``cdf``, more exactly where that is small."""
        return self._of_value(value, name, self._log_cdf, lambda x: log(self._cdf(x)))

    def _log_cdf(self, value: Any) -> Tensor:
        raise self._unknown("log_cdf")

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """Return how probable it is that a sample is at most a value.

        Args:
            value: Broadcast with ``batch_shape``.
            name: The name of the scope.
        """
        return self._of_value(value, name, self._cdf, lambda x: exp(self._log_cdf(x)))

    def _cdf(self, value: Any) -> Tensor:
        raise self._unknown("cdf")

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """Return the logarithm of ``survival_function``, more exactly where that is small."""
        rest = lambda x: log1p(-self.cdf(x))  # noqa: E731
        return self._of_value(value, name, self._log_survival_function, rest)

    def _log_survival_function(self, value: Any) -> Tensor:
        raise self._unknown("log_survival_function")

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """Return how probable it is that a sample is more than a value; arguments as of ``cdf``."""
        rest = lambda x: 1.0 - self.cdf(x)  # noqa: E731
        return self._of_value(value, name, self._survival_function, rest)

    def _survival_function(self, value: Any) -> Tensor:
        raise self._unknown("survival_function")

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """Return the value of which ``cdf`` is a probability.

        Args:
            value: Probabilities, between 0 and 1.
            name: The name of the scope.
        """
        return self._of_value(value, name, self._quantile)

    def _quantile(self, value: Any) -> Tensor:
        raise self._unknown("quantile")

    # -- statistics

    def entropy(self, name: str = "entropy") -> Tensor:
        """Return Shannon's entropy in nats, in the shape of the batch."""
        with self._scoped(name):
            return self._entropy()

    def _entropy(self) -> Tensor:
        raise self._unknown("entropy")

    def mean(self, name: str = "mean") -> Tensor:
        """Return the mean, ``batch_shape + event_shape``."""
        with self._scoped(name):
            return self._mean()

    def _mean(self) -> Tensor:
        raise self._unknown("mean")

    def variance(self, name: str = "variance") -> Tensor:
        """Return the variance of each element, ``batch_shape + event_shape``."""
        with self._scoped(name):
            return _first_known((self._variance, ()), (lambda: square(self._stddev()), ()))

    def _variance(self) -> Tensor:
        raise self._unknown("variance")

    def stddev(self, name: str = "stddev") -> Tensor:
        """Return the standard deviation of each element, ``batch_shape + event_shape``."""
        with self._scoped(name):
            return _first_known((self._stddev, ()), (lambda: sqrt(self._variance()), ()))

    def _stddev(self) -> Tensor:
        raise self._unknown("stddev")

    def covariance(self, name: str = "covariance") -> Tensor:
        """Return the covariances of the elements of an event, ``batch_shape + [k, k]``."""
        with self._scoped(name):
            return self._covariance()

    def _covariance(self) -> Tensor:
        raise self._unknown("covariance")

    def mode(self, name: str = "mode") -> Tensor:
        """Return the most probable value, ``batch_shape + event_shape``."""
        with self._scoped(name):
            return self._mode()

    def _mode(self) -> Tensor:
        raise self._unknown("mode")

    def cross_entropy(self, other: Distribution, name: str = "cross_entropy") -> Tensor:
        """Return the mean of ``-other.log_prob(x)`` over samples of this one, exactly.

        Args:
            other: Another distribution.
            name: The name of the scope.

        Raises:
            UnimplementedError: if nothing is known of such a pair.
        """
        with self._scoped(name):
            return self._cross_entropy(other)

    def _cross_entropy(self, other: Distribution) -> Tensor:
        return divergence.cross_entropy(self, other, self.allow_nan_stats)

    def kl_divergence(self, other: Distribution, name: str = "kl_divergence") -> Tensor:
        """Return ``hr.distributions.kl_divergence`` of this one from another.

        Args:
            other: The other distribution.
            name: The name of the scope.

        Raises:
            UnimplementedError: if nothing is known of such a pair.
        """
        with self._scoped(name):
            return self._kl_divergence(other)

    def _kl_divergence(self, other: Distribution) -> Tensor:
        return divergence.kl_divergence(self, other, self.allow_nan_stats)

    # -- text

    def _facts(self) -> tuple[str, str, str]:
        dtype = self.dtype.name if isinstance(self.dtype, DType) else str(self.dtype)
        return str(self.batch_shape), str(self.event_shape), dtype

    def __str__(self) -> str:
        batch, event, dtype = self._facts()
        known = "" if self.batch_shape.ndims is None else f", batch_shape={batch}"
        known += "" if self.event_shape.ndims is None else f", event_shape={event}"
        return f'hr.distributions.{type(self).__name__}("{self.name}"{known}, dtype={dtype})'

    def __repr__(self) -> str:
        batch, event, dtype = self._facts()
        what = f"hr.distributions.{type(self).__name__} {self.name!r}"
        return f"<{what} batch_shape={batch} event_shape={event} dtype={dtype}>"


def given_to(names: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a distribution was made with, of the names of its ``__init__``."""
    return {k: v for k, v in names.items() if not k.startswith("__") and k != "self"}


def _first_known(*ways: tuple[Callable[..., Tensor], tuple[Any, ...]]) -> Tensor:
    """Return what the first way yields that is implemented; the first one's error if none is."""
    first: NotImplementedError | None = None
    for way, given in ways:
        try:
            return way(*given)
        except NotImplementedError as error:
            first = first or error
    assert first is not None
    raise first


def _is_scalar(known: TensorShape, dims: Callable[[], Tensor]) -> Tensor:
    if known.ndims is not None:
        return convert_to_tensor(known.ndims == 0)
    return equal(size(dims()), 0)
