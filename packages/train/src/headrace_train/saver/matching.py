"""Comparing what is asked for with what is in a checkpoint, all of it at once."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from headrace import Shape
from headrace.errors import (
    CheckpointError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    listing,
    shorten,
)
from headrace.extend.ops import DType
from headrace_train.checkpoint.opening import OpenCheckpoint, StoredTensor
from headrace_train.checkpoint.slices import Slice


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """A tensor that is asked for.

    Attributes:
        name: Its name in the checkpoint.
        dtype: The dtype that it must have.
        shape: The shape that it must have, as far as it is known.
        reshape: Whether another shape of as many elements will do.
    """

    name: str
    dtype: DType
    shape: Shape
    reshape: bool = False


@final
@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What ``Saver.restore(..., strict=False)`` did.

    Attributes:
        restored: Names of the tensors that were restored.
        missing: Names that are asked for and not in the checkpoint; for each the nearest one in
            it, or "".
        unexpected: Names in the checkpoint that nothing asks for.
        mismatched: Names that are there with another dtype or shape; for each what differs.
    """

    restored: tuple[str, ...]
    missing: Mapping[str, str]
    unexpected: tuple[str, ...]
    mismatched: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"restored {len(self.restored)}"]
        lines += [f"  {line}" for line in faults(self)]
        return shorten(lines, 40)


def compare(wanted: Iterable[Wanted], tensors: Mapping[str, StoredTensor]) -> RestoreReport:
    """Return which of the tensors in a checkpoint fit what is asked for."""
    restored, missing, mismatched = [], {}, {}
    asked = set()
    for one in wanted:
        asked.add(one.name)
        entry = tensors.get(one.name)
        if entry is None:
            close = difflib.get_close_matches(one.name, tensors, n=1)
            missing[one.name] = close[0] if close else ""
        elif fault := _fault(one, entry):
            mismatched[one.name] = fault
        else:
            restored.append(one.name)
    unexpected = tuple(name for name in tensors if name not in asked)
    return RestoreReport(tuple(dict.fromkeys(restored)), missing, unexpected, mismatched)


def faults(report: RestoreReport) -> list[str]:
    """Return a line for everything that does not fit, and one for what nothing asks for."""
    lines = [f"{name!r} {fault}" for name, fault in report.mismatched.items()]
    for name, close in report.missing.items():
        lines.append(f"{name!r} is not in it" + (f", did you mean {close!r}?" if close else ""))
    if report.unexpected and lines:
        # Beside what is missing, for one name may stand for the other.
        lines.append(f"in it and not asked for: {listing(map(repr, report.unexpected))}")
    return lines


def refusal(report: RestoreReport, where: object) -> CheckpointError:
    """Return the error for what cannot be restored."""
    count = len(report.missing) + len(report.mismatched)
    total = count + len(report.restored)
    first = f"{count} of {total} variables cannot be restored from {where}; nothing was changed:"
    kind = CheckpointNotFoundError if report.missing else CheckpointMismatchError
    listed = faults(report)
    # The last line, of the names that nothing asks for, must not fall to the limit.
    last = [listed.pop()] if report.unexpected and len(listed) > 1 else []
    lines = [first, *(f"  {line}" for line in listed)]
    return kind("\n".join([shorten(lines, 12 - len(last)), *(f"  {line}" for line in last)]))


def check_all(
    reader: OpenCheckpoint,
    names: Sequence[str],
    dtypes: Sequence[DType],
    slices: Sequence[Slice],
) -> None:
    """Refuse to read what is not there, or not of the dtype and shape that are asked for.

    Raises:
        CheckpointError: if anything cannot be read; all of it is named.
    """
    wanted = [
        Wanted(name, dtype, Shape(part.whole))
        for name, dtype, part in zip(names, dtypes, slices, strict=True)
    ]
    report = compare(wanted, reader.tensors)
    if report.missing or report.mismatched:
        raise refusal(report, reader.path)


def _fault(wanted: Wanted, entry: StoredTensor) -> str:
    """Say how a tensor differs from what is asked for, empty if it does not."""
    # Of quantized variables, the integers that stand for levels are saved.
    if entry.dtype not in (wanted.dtype.name, wanted.dtype.storage.name):
        return f"has dtype {wanted.dtype}, in the checkpoint {entry.dtype}"
    if wanted.shape.is_compatible_with(entry.shape):
        return ""
    if wanted.reshape and wanted.shape.num_elements() in (None, math.prod(entry.shape)):
        return ""
    count = f" ({math.prod(entry.shape)} elements)" if wanted.reshape else ""
    return f"has shape {wanted.shape}, in the checkpoint {list(entry.shape)}{count}"
