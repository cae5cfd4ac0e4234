"""Options of data sets, under TensorFlow's names, also those that choose nothing here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, final

from headrace.errors import ArgumentTypeError, AttributeValueError, UnimplementedError, shown
from headrace_data.errors import UnknownOptionError

O = TypeVar("O", bound="OptionsBase")  # noqa: E741 - the options that two others make


class OptionsBase:
    """Named options, each of one type. A subclass states them in ``TYPES``."""

    __slots__ = ()

    TYPES: ClassVar[Mapping[str, type]] = {}
    # What those are that are not None before they are set.
    DEFAULTS: ClassVar[Mapping[str, Callable[[], Any]]] = {}

    def __init__(self) -> None:
        """Start with nothing set."""
        for name in self.TYPES:
            default = self.DEFAULTS.get(name)
            object.__setattr__(self, name, None if default is None else default())

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an option.

        Raises:
            UnknownOptionError: if there is none of that name.
            ArgumentTypeError: if it is of another type.
        """
        if name not in self.TYPES:
            raise UnknownOptionError(
                f"{type(self).__name__} has no option {name!r}; there are {', '.join(self.TYPES)}"
            )
        wanted = self.TYPES[name]
        if not isinstance(value, wanted):
            raise ArgumentTypeError(
                f"the option {name} must be of type {wanted.__name__}, got {shown(value)}"
            )
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.TYPES
        )

    __hash__ = None  # type: ignore[assignment]


def merged(first: O, second: O) -> O:
    """Return options that are those of both.

    Raises:
        AttributeValueError: if one is set in both, to different values.
    """
    made, fresh = type(first)(), type(first)()
    for name in first.TYPES:
        one, other = getattr(first, name), getattr(second, name)
        default = getattr(fresh, name)
        if isinstance(one, OptionsBase):
            found = merged(one, other)
        elif other in (default, one):
            found = one
        elif one == default:
            found = other
        else:
            raise AttributeValueError(
                f"the option {name} is set to {shown(one)} and to {shown(other)} in one pipeline"
            )
        object.__setattr__(made, name, found)
    return made


@final
class DistributeOptions(OptionsBase):
    """How data sets are distributed. They are not, by themselves: nothing here changes anything.

    Attributes:
        auto_shard: Whether each worker takes a part of the elements by itself; ``shard`` does it.
        num_devices: How many devices are fed.
    """

    auto_shard: bool
    num_devices: int | None

    __slots__ = ("auto_shard", "num_devices")

    TYPES: ClassVar[Mapping[str, type]] = {"auto_shard": bool, "num_devices": int}
    DEFAULTS: ClassVar[Mapping[str, Callable[[], Any]]] = {"auto_shard": lambda: True}


@final
class MapVectorizationOptions(OptionsBase):
    """Whether functions of elements become functions of batches; chosen by itself, bit for bit.

    Attributes:
        enabled: Changes nothing.
        use_choose_fastest: Changes nothing.
    """

    enabled: bool | None
    use_choose_fastest: bool | None

    __slots__ = ("enabled", "use_choose_fastest")

    TYPES: ClassVar[Mapping[str, type]] = {"enabled": bool, "use_choose_fastest": bool}


_PASSES = (
    "filter_fusion",
    "filter_with_random_uniform_fusion",
    "hoist_random_uniform",
    "map_and_batch_fusion",
    "map_and_filter_fusion",
    "map_fusion",
    "map_parallelization",
    "noop_elimination",
    "parallel_batch",
    "shuffle_and_repeat_fusion",
)


@final
class OptimizationOptions(OptionsBase):
    """Which passes rewrite a pipeline. There are none to choose: nothing here changes anything.

    Attributes:
        apply_default_optimizations: Whether those of TensorFlow's default run.
        autotune: Whether numbers of calls and sizes of buffers are chosen.
        autotune_algorithm: How.
        autotune_buffers: Whether sizes of buffers are.
        autotune_cpu_budget: For how many processors.
        filter_fusion: A pass.
        filter_with_random_uniform_fusion: A pass.
        hoist_random_uniform: A pass.
        map_and_batch_fusion: A pass.
        map_and_filter_fusion: A pass.
        map_fusion: A pass.
        map_parallelization: A pass.
        map_vectorization: A pass with options of its own.
        noop_elimination: A pass.
        parallel_batch: A pass.
        shuffle_and_repeat_fusion: A pass.
    """

    map_vectorization: MapVectorizationOptions

    __slots__ = (
        "apply_default_optimizations",
        "autotune",
        "autotune_algorithm",
        "autotune_buffers",
        "autotune_cpu_budget",
        "filter_fusion",
        "filter_with_random_uniform_fusion",
        "hoist_random_uniform",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "map_vectorization",
        "noop_elimination",
        "parallel_batch",
        "shuffle_and_repeat_fusion",
    )

    TYPES: ClassVar[Mapping[str, type]] = {
        "apply_default_optimizations": bool,
        "autotune": bool,
        "autotune_algorithm": int,
        "autotune_buffers": bool,
        "autotune_cpu_budget": int,
        **dict.fromkeys(_PASSES, bool),
        "map_vectorization": MapVectorizationOptions,
    }
    DEFAULTS: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "map_vectorization": MapVectorizationOptions
    }


@final
class ThreadingOptions(OptionsBase):
    """How many threads a pipeline has. Each transformation has its own: this changes nothing.

    Attributes:
        max_intra_op_parallelism: How many threads an operation may use.
        private_threadpool_size: How many threads the pipeline has to itself.
    """

    max_intra_op_parallelism: int | None
    private_threadpool_size: int | None

    __slots__ = ("max_intra_op_parallelism", "private_threadpool_size")

    TYPES: ClassVar[Mapping[str, type]] = {
        "max_intra_op_parallelism": int,
        "private_threadpool_size": int,
    }


@final
class Options(OptionsBase):
    """What ``with_options`` takes.

    Attributes:
        experimental_deterministic: Whether elements come in a fixed order: True, or None for the
            same. With False those of ``map`` and ``interleave`` with ``num_parallel_calls`` may
            come in the order in which they are ready, in all of a pipeline; a saved position
            resumes what was not delivered.
        experimental_distribute: An ``experimental.DistributeOptions``; changes nothing.
        experimental_optimization: An ``experimental.OptimizationOptions``; changes nothing.
        experimental_slack: Whether prefetching may leave room at first. It has no use without
            devices that are fed, and changes nothing.
        experimental_stateful_whitelist: Taken and without effect: functions may be stateful.
        experimental_threading: An ``experimental.ThreadingOptions``; changes nothing.
    """

    experimental_deterministic: bool | None
    experimental_distribute: DistributeOptions
    experimental_optimization: OptimizationOptions
    experimental_slack: bool | None
    experimental_stateful_whitelist: list[Any] | None
    experimental_threading: ThreadingOptions

    __slots__ = (
        "experimental_deterministic",
        "experimental_distribute",
        "experimental_optimization",
        "experimental_slack",
        "experimental_stateful_whitelist",
        "experimental_threading",
    )

    TYPES: ClassVar[Mapping[str, type]] = {
        "experimental_deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_stateful_whitelist": list,
        "experimental_threading": ThreadingOptions,
    }
    DEFAULTS: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_threading": ThreadingOptions,
    }

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an option.

        Raises:
            UnimplementedError: if it is the one of TensorFlow's that is not there.
            UnknownOptionError: if there is none of that name.
            ArgumentTypeError: if it is of another type.
        """
        if name == "experimental_stats":
            raise UnimplementedError(
                "hr.data.Options has no experimental_stats: pipelines gather no statistics; "
                "Config(trace=...) measures steps"
            )
        super().__setattr__(name, value)

    def merge(self, options: Options) -> Options:
        """Return options that are these and others.

        Args:
            options: The others.

        Raises:
            ArgumentTypeError: if they are something else.
            AttributeValueError: if one is set in both, to different values.
        """
        if not isinstance(options, Options):
            raise ArgumentTypeError(f"expected an hr.data.Options, got {shown(options)}")
        return merged(self, options)
