"""A harness: single instructions on NumPy buffers, and what the plain kernels make of the same."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.program.instruction import Addresses
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import match
from headrace_cpu.program.settings import CompileSettings

ALIGNMENT = 64


def buffer(size):
    block = np.empty(size + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + size]


class Places(Addresses):
    """Buffers of tensors, and the scratch memory of one instruction.

    Those of ``late`` are handed over by setters, as those of feeds are.
    """

    def __init__(self, instruction, late=()):
        tensors = (*instruction.reads, *instruction.writes)
        sizes = getattr(instruction, "sizes", {})
        self.buffers = {
            t: buffer(sizes.get(t, int(np.prod(t.shape.known)) * t.dtype.itemsize))
            for t in dict.fromkeys(tensors)
        }
        self.late = set(late)
        self._scratch = buffer(instruction.scratch)
        self._scratch[:] = 0xFF  # NaN: nobody may count on zeros.

    def of(self, tensor):
        return None if tensor in self.late else self.address(tensor)

    def address(self, tensor):
        return self.buffers[tensor].ctypes.data

    def array(self, tensor):
        count = int(np.prod(tensor.shape.known)) * tensor.dtype.itemsize
        flat = self.buffers[tensor][:count].view(tensor.dtype.numpy)
        return flat.reshape(tensor.shape.known)

    def scratch(self):
        return self._scratch.ctypes.data


def matched(results, *, threads=2, operations=None, onednn=True):
    """Return the instructions of a graph."""
    if operations is None:
        operations = results[0].op.graph.operations
    matches = Matches(operations, results)
    names = {each.name for each in MATCHERS if each.name.startswith("onednn")}
    match(matches, CompileSettings(threads=threads, onednn=onednn), MATCHERS, names)
    return matches.instructions


def run(instruction, values: Mapping[hr.Tensor, np.ndarray], late=()):
    """Run an instruction on arrays, and return what it wrote."""
    places = Places(instruction, late)
    for tensor in instruction.reads:
        places.array(tensor)[...] = values[tensor]
    for tensor in instruction.writes:
        places.buffers[tensor][:] = 0xFF
    bound = instruction.bind(places)
    assert set(bound.point) == set(late)
    for tensor, point in bound.point.items():
        point(places.address(tensor))
    bound.call()
    return {t: places.array(t).copy() for t in instruction.writes}


def plain(tensors, feeds):
    """Return what the plain executor computes."""
    with hr.Session(config=hr.Config(**_PLAIN)) as session:
        return session.run(list(tensors), feeds)


_PLAIN = {"executor": "plain"} if "executor" in hr.Config.__dataclass_fields__ else {}


def compare(results, feeds, *, threads=2, late=False):
    """Check every instruction of a graph against the plain kernels; return the instructions."""
    instructions = matched(results, threads=threads)
    for instruction in instructions:
        wanted = [*instruction.reads, *instruction.writes]
        found = plain(wanted, feeds)
        values = dict(zip(wanted, found, strict=True))
        chosen = wanted if late else ()
        for tensor, array in run(instruction, values, dict.fromkeys(chosen)).items():
            scale = max(1.0, float(np.abs(values[tensor]).max(initial=0)))
            np.testing.assert_allclose(array, values[tensor], rtol=2e-5, atol=2e-5 * scale)
    return instructions


@pytest.fixture(scope="session")
def harness():
    return SimpleNamespace(Places=Places, matched=matched, run=run, plain=plain, compare=compare)
