"""What a fault is: a passage of ``mill.py``, and what stands instead of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "mill.py"


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        name: What is wrong.
        old: A passage of ``mill.py``, which stands there once.
        new: What stands there instead.
        match: What the kit says, a regular expression.
        ops: The ops to look at, which saves time; None for all that the plugin brings.
        beside: The source of another plugin, which is installed as well.
        rows: Whether the kit is given the plugin's rows; else it makes inputs itself.
        env: Variables of the environment.
        also: Further passages, and what stands instead of them.
    """

    name: str
    old: str
    new: str
    match: str
    ops: tuple[str, ...] | None = ()
    beside: str = ""
    rows: bool = True
    env: tuple[tuple[str, str], ...] = ()
    also: tuple[tuple[str, str], ...] = ()


# The ops and the rewrite rule of the plugin, which faults look at.
CUBE, BLEND, TOTAL = ("MillCube",), ("MillBlend",), ("MillTotal",)
REWRITE = ("mill-cube-of-negated",)
ROWS, NOISE, COUNT = ("MillRows",), ("MillNoise",), ("MillCounter", "MillCount")
# Passages that several faults change.
CUBE_KERNEL = "def cube_kernel(xp, x):\n    return x * x * x"
BLEND_KERNEL = "    return part * x * y + (x.dtype.type(1) - part) * y"
SLOPE = "    return [gy * 3.0 * x * x]"
RULE = '    return replacement.add("Neg", replacement.add("MillCube", negated.inputs[0]))'
SHOWN = '    rule_case("mill-cube-of-negated", lambda x: mill_cube(-x), "Neg(MillCube(x))"),\n'
HOOK = '    registry.add("cpu", KERNELS)\n'


def source_of(mutant: Mutant) -> str:
    """Return the plugin's source with a fault in it."""
    source = SOURCE.read_text(encoding="utf-8")
    assert source.count(mutant.old) >= 1, f"{mutant.name}: {mutant.old!r} is not in {SOURCE}"
    changed = source
    for old, new in ((mutant.old, mutant.new), *mutant.also):
        changed = changed.replace(old, new, 1)
    # What some faults remember from call to call.
    remembers = "BOX" in mutant.new or "SEEN" in mutant.new
    return f"BOX, SEEN = [0], {{}}\n{changed}" if remembers else changed
