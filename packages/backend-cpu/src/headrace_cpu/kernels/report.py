"""Kernels that print and check values. They are on the host."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError, ResourceError, ShapeError
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext, both_ends, first_elements
from headrace_cpu.kernels.numeric import Array
from headrace_cpu.kernels.text import filled, one_string

KERNELS = KernelTable()

# Lines of steps that run at the same time stay whole.
_WRITING = threading.Lock()


class Counter:
    """How often an operation has printed."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start anew."""
        self.draws = itertools.count()


def _host(array: Array) -> Array:
    return np.asarray(array, object) if isinstance(array, bytes) else np.asarray(array)


@KERNELS.stateful("Print")
def print_identity(
    ctx: KernelContext,
    input: Array,
    data: list[Array],
    *,
    message: str,
    first_n: int,
    summarize: int,
) -> Array:
    """Print, and return the input."""
    if first_n >= 0:
        counter = ctx.container("").get_or_create(f"_print/{ctx.op_name}", Counter, Counter)
        if next(counter.draws) >= first_n:
            return input
    shown = "".join(f"[{first_elements(_host(array), summarize)}]" for array in data)
    _write("stderr", f"{message}{shown}\n")
    return input


@KERNELS.plain("StringFormat")
def string_format(
    xp: Any, inputs: list[Array], *, template: str, placeholder: str, summarize: int
) -> Array:
    """Put tensors into a text."""
    texts = template.split(placeholder)
    shown = [both_ends(_host(array), summarize) for array in inputs]
    parts = [texts[0]]
    for value, text in zip(shown, texts[1:], strict=True):
        parts += [value, text]
    return filled(["".join(parts).encode(errors="surrogateescape")], ())


@KERNELS.stateful("PrintText")
def print_text(ctx: KernelContext, text: Array, *, output_stream: str, end: str) -> None:
    """Print a text."""
    _write(output_stream, one_string(text, "text").decode(errors="replace") + end)


def _write(stream: str, text: str) -> None:
    # Streams do not take what stands for bytes that are no text.
    text = _printable(text)
    if stream.startswith("log("):
        level = logging.getLevelName(stream[4:-1].upper())
        logging.getLogger("headrace").log(level if isinstance(level, int) else logging.INFO, text)
        return
    if stream.startswith("file://"):
        try:
            with _WRITING, Path(stream.removeprefix("file://")).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ResourceError(f"cannot print to {stream!r}: {error}") from None
        return
    with _WRITING:
        # What programs have put in place of the streams is asked for each time.
        out = sys.stdout if stream == "stdout" else sys.stderr
        out.write(text)
        out.flush()


def _printable(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


@KERNELS.stateful("Assert")
def check(ctx: KernelContext, condition: Array, data: list[Array], *, summarize: int) -> None:
    """Raise unless the condition holds."""
    if np.ndim(condition):
        raise ShapeError(f"condition must be a scalar, got shape {list(np.shape(condition))}")
    if not condition:
        shown = " ".join(f"[{first_elements(_host(array), summarize)}]" for array in data)
        raise InvalidArgumentError(f"assertion failed: {_printable(shown)}")


@KERNELS.stateful("Timestamp")
def timestamp(ctx: KernelContext) -> Array:
    """Return the time."""
    return np.asarray(time.time(), np.float64)
