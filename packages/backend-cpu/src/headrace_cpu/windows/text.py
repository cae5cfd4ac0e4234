"""Texts of kernels on windows: what all of them have in common.

A kernel gets its numbers as words of its block. Lists of names say which word is which, both to the
text, which reads them, and to the instruction, which writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from headrace_cpu.native.source import KernelSource
from headrace_cpu.windows.vocabulary import GEMM

CODES = {"float32": "f32", "float64": "f64"}
SIZES = {"float32": 4, "float64": 8}

# In front of every block: how to find one's number and how many there are, and how many have room
# in scratch memory; the others are idle.
TEAM = ("number_of", "count_of", "barrier", "most")
# Windows over images; ``x`` are the images.
WINDOWS = (
    *("images", "height", "width", "channels", "out_height", "out_width"),
    *("window_height", "window_width", "stride_y", "stride_x", "step_y", "step_x", "top", "left"),
)

_TEAM = """\
me, team = 0, 1
if number_of != 0:
    me, team = ask(number_of), minimum(most, ask(count_of))
if me >= team:
    me = 1 << 40
"""


def kernel(
    name: str, words: Sequence[str], body: str, dtype: str, **constants: int
) -> KernelSource:
    """Return the source of a kernel.

    Args:
        name: Of the kernel.
        words: Names of the words of its block, behind those of ``TEAM``.
        body: Python source, in which ``T`` ends the names of loads and stores, ``SIZE`` is the
            size of an element, and ``zero``, ``one`` and ``infinity`` are elements.
        dtype: "float32" or "float64".
        **constants: Values for further names in capitals in the body.
    """
    reads = "".join(f"{each} = word(block, {i})\n" for i, each in enumerate((*TEAM, *words)))
    text = reads + _TEAM + body
    text = text.replace("_T(", f"_{CODES[dtype]}(")
    for key, value in {"SIZE": SIZES[dtype], **constants}.items():
        text = text.replace(key, str(value))
    full = "_".join([name, CODES[dtype], *(str(v) for v in constants.values())])
    head = "".join(
        f"{each} = np.{dtype}({value!r})\n"
        for each, value in (("zero", 0.0), ("one", 1.0), ("infinity", "inf"))
    )
    function = f"{head}\n\ndef {full}(block):\n" + indent(text, "    ")
    return KernelSource(full, function, vocabulary=GEMM, slp=True)
