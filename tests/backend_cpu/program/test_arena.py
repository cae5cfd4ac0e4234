"""The arena: buffers that are needed at one time never share memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace_cpu.program.arena import Lifetime, lay_out, overlaps
from headrace_cpu.program.instruction import ALIGNMENT

COUNT = 12


@st.composite
def lifetimes(draw: st.DrawFn) -> dict[int, Lifetime]:
    found = {}
    for number in range(draw(st.integers(0, 12))):
        first = draw(st.integers(0, COUNT - 1))
        last = draw(st.integers(first, COUNT - 1))
        found[number] = Lifetime(draw(st.integers(0, 1000)), first, last)
    return found


@given(lifetimes())
def test_buffers_of_one_time_are_apart(lives: dict[int, Lifetime]) -> None:
    layout = lay_out(lives, COUNT)
    assert list(overlaps(layout, lives)) == []
    assert all(offset % ALIGNMENT == 0 for offset in layout.offsets.values())
    ends = [layout.offsets[b] + life.size for b, life in lives.items()]
    assert max(ends, default=0) <= layout.size
    assert layout.needed <= layout.size


def test_memory_is_used_again() -> None:
    lives = {i: Lifetime(1 << 20, i, i + 1) for i in range(10)}
    assert lay_out(lives, COUNT).size == 2 << 20


def test_what_is_needed_is_the_peak() -> None:
    lives = {0: Lifetime(64, 0, 5), 1: Lifetime(128, 1, 2), 2: Lifetime(192, 3, 4)}
    assert lay_out(lives, COUNT).needed == 64 + 192
