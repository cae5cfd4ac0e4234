"""Sort keys: unsigned numbers that are in the order of other numbers.

Zeros of either sign have one key, and so have all NaN: the largest. A *pair* is a key with a place
below it, so that pairs are distinct and in the stable order.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.native_loops.native_loop import SIZES

_UNSIGNED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a dtype.

    Attributes:
        code: The dtype's code.
    """

    code: str

    @property
    def key(self) -> str:
        """The code of keys."""
        return _UNSIGNED[SIZES[self.code]]

    @property
    def bits(self) -> int:
        """The bits of a key."""
        return 8 * SIZES[self.code]

    @property
    def pair(self) -> str:
        """The code of pairs."""
        return "u128" if self.bits > 32 else "u64"

    @property
    def shift(self) -> int:
        """How many bits of a pair are below its key."""
        return 64 if self.bits > 32 else 32

    @property
    def text(self) -> str:
        """Statements that make ``key`` of ``value``."""
        key, bits = self.key, self.bits
        if self.code == "b8":
            return "key = to_u8(value)\n"
        if self.code[0] == "u":
            return "key = value\n"
        sign = f"to_{key}({1 << bits - 1})" if bits < 64 else "to_u64(1) << 63"
        if self.code[0] == "i":
            return f"key = bits_{key}(value) ^ ({sign})\n"
        signed, zero = key.replace("u", "i"), f"to_{self.code}(0.0)"
        return (
            f"key = bits_{key}(bits_{signed}(value) >> {bits - 1})\n"
            f"key = bits_{key}(value) ^ (key | ({sign}))\n"
            f"key = where(value == {zero}, {sign}, key)\n"
            f"key = where(value != value, to_{key}(-1), key)\n"
        )
