"""Signatures: functions of named arrays, with what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

import headrace as hr
from headrace.errors import ArgumentTypeError, shown
from headrace.extend.arguments import mapping

Array: TypeAlias = "np.ndarray[Any, Any]"
Arrays: TypeAlias = Mapping[str, Array]

# TensorFlow's names: of the signature that requests mean when they name none, and of methods.
DEFAULT_SIGNATURE = "serving_default"
PREDICT = "tensorflow/serving/predict"
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What a signature says of one of its tensors.

    Attributes:
        dtype: Its dtype.
        shape: Its sizes, None for each that is unknown; None where not even the rank is known.
        name: Its name in the graph.
    """

    dtype: hr.DType
    shape: tuple[int | None, ...] | None
    name: str = ""

    @property
    def is_string(self) -> bool:
        """Whether its elements are strings."""
        return self.dtype == hr.string

    @property
    def has_batch_axis(self) -> bool:
        """Whether its first axis may have any size."""
        return bool(self.shape) and self.shape is not None and self.shape[0] is None

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of a shape may stand for it."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            expected in (None, size) for expected, size in zip(self.shape, shape, strict=True)
        )

    @classmethod
    def of(cls, tensor: hr.Tensor) -> TensorInfo:
        """Return what there is to say of a tensor of a graph."""
        sizes = None if tensor.shape.ndims is None else tuple(tensor.shape.as_list())
        return cls(tensor.dtype, sizes, tensor.name)


@dataclass(frozen=True, slots=True)
class Signature:
    """A function of named arrays that a model offers.

    Attributes:
        inputs: What it takes, by name.
        outputs: What it returns, by name.
        call: ``call(arrays)`` returns the outputs by name. It is called from several threads.
        method_name: The method it is for, one of ``PREDICT``, ``CLASSIFY`` and ``REGRESS``.
    """

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    call: Callable[[dict[str, Array]], Arrays] = field(repr=False)
    method_name: str = PREDICT

    @property
    def takes_batches(self) -> bool:
        """Whether the first axis of all that goes in and comes out may have any size.

        Requests for such a signature can be answered by one step that has the rows of them all.
        """
        tensors = [*self.inputs.values(), *self.outputs.values()]
        return bool(self.inputs) and all(tensor.has_batch_axis for tensor in tensors)


def signature_of(
    session: hr.Session,
    inputs: Mapping[str, hr.Tensor],
    outputs: Mapping[str, hr.Tensor],
    *,
    method_name: str = PREDICT,
) -> Signature:
    """Return a signature that runs steps of a session.

    Args:
        session: The session, which must stay open. Steps run from other threads.
        inputs: The tensors that are fed, by the names that requests use.
        outputs: The tensors that are fetched, by the names that answers use.
        method_name: The method it is for.

    Returns:
        The signature.
    """
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(given, Mapping):
            raise ArgumentTypeError(
                f"{what} of a signature must be a dict of tensors by name, got {shown(given)}"
            )
    fetched = mapping(outputs, "outputs")
    fed = mapping(inputs, "inputs")

    def call(arrays: dict[str, Array]) -> Arrays:
        found: dict[str, Array] = session.run(
            fetched, {tensor: arrays[name] for name, tensor in fed.items()}
        )
        return found

    return Signature(
        {name: TensorInfo.of(tensor) for name, tensor in fed.items()},
        {name: TensorInfo.of(tensor) for name, tensor in fetched.items()},
        call,
        method_name,
    )
