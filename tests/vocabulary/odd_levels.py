"""Programs of levels of ranges, and of crosses of features, whose results are the same to the bit.

Programs are made by chance, and are always the same for a seed. Floats are read as integers, of
which ``generate_outcomes.difference`` takes none for another. Left out is where TensorFlow's
conversions overflow, and what it does with strides that leave elements over (decision 121).
"""

from __future__ import annotations

import random
from typing import Any

INTEGERS = {
    "qint8": ("int8", -128, 127),
    "quint8": ("uint8", 0, 255),
    "qint16": ("int16", -(2**15), 2**15 - 1),
    "quint16": ("uint16", 0, 2**16 - 1),
    # The highest ones are no float32.
    "qint32": ("int32", -(2**31), 2**31 - 256),
}
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
LETTERS = "abcdefgh é_X\n"


class Levels:
    """Makes programs by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def one_of(self, items: Any) -> Any:
        return items[int(self.chance.random() * len(items))]

    def whole(self, low: int, high: int) -> int:
        return low + int(self.chance.random() * (high - low + 1))

    def ends(self) -> tuple[float, float]:
        """Return a range: of nothing, tiny, usual or large."""
        if self.chance.random() < 0.15:
            end = float(self.one_of((0, 1, -2.5, 0.001)))
            return end, end
        width = self.one_of((1e-3, 10.0, 300.0, 1e5))
        low, high = sorted(round((self.chance.random() * 2 - 1) * width, 6) for _ in range(2))
        return self.one_of(((low, high), (low, high), (0.0, abs(high)), (-abs(low), 0.0)))

    def levels(self, dtype: str, *shape: int) -> str:
        kind, low, high = INTEGERS[dtype]
        count = 1
        for size in shape:
            count *= size
        values = [self.one_of((self.whole(low, high), low, high, 0)) for _ in range(count)]
        array = f"np.array({values}, np.{kind}).reshape({shape})"
        return f"T.constant({array}, T.{dtype})"

    def quantized(self) -> str:
        low, high = self.ends()
        dtype, mode = self.one_of(list(INTEGERS)), self.one_of(MODES)
        width = max(abs(low), abs(high), 1e-6)
        values = [
            self.one_of((low, 0.0, 0.5, -1.5, round((self.chance.random() * 3 - 1.5) * width, 5)))
            for _ in range(11)
        ]
        if dtype == "qint32":
            values = [min(value, high - width / 50, -width / 50) for value in values]
        rounding = "HALF_AWAY_FROM_ZERO"
        if mode == "SCALED":
            rounding = self.one_of((rounding, "HALF_TO_EVEN"))
        return (
            f"q = T.quantize(np.array({values}, np.float32), {low}, {high}, T.{dtype}, "
            f"mode={mode!r}, round_mode={rounding!r})\n"
            f"[T.bitcast(q.output, T.{INTEGERS[dtype][0]}), q.output_min, q.output_max]"
        )

    def dequantized(self) -> str:
        (low, high), dtype = self.ends(), self.one_of(list(INTEGERS))
        given = self.levels(dtype, 9)
        # Zeros of both signs are one number.
        found = f"T.dequantize({given}, {low}, {high}, mode={self.one_of(MODES)!r}) + 0.0"
        return f"T.bitcast({found}, T.int32)"

    def concatenated(self) -> str:
        dtype, count = self.one_of(("quint8", "qint32")), self.whole(2, 3)
        ranges = [self.ends() for _ in range(count)]
        if self.chance.random() < 0.2:
            ranges = ranges[:1] * count
        values = ", ".join(self.levels(dtype, self.whole(1, 5)) for _ in range(count))
        lows, highs = ([ends[i] for ends in ranges] for i in range(2))
        return (
            f"q = T.quantized_concat(0, [{values}], {lows}, {highs})\n"
            f"[T.bitcast(q.output, T.{INTEGERS[dtype][0]}), q.output_min, q.output_max]"
        )

    def pooled(self) -> str:
        low, high = self.ends()
        images = self.levels("quint8", self.whole(1, 2), self.whole(3, 7), self.whole(3, 7), 2)
        window, steps = ([1, self.whole(1, 3), self.whole(1, 3), 1] for _ in range(2))
        padding, kind = self.one_of(("SAME", "VALID")), self.one_of(("avg", "max"))
        return (
            f"q = T.nn.quantized_{kind}_pool({images}, {low}, {high}, {window}, {steps}, "
            f"{padding!r})\n[T.bitcast(q[0], T.uint8), q[1], q[2]]"
        )

    def convolved(self) -> str:
        ends = [self.ends() for _ in range(2)]
        # Of images, ranges with 0 in them.
        low, high = min(ends[0][0], 0.0), max(ends[0][1], 0.0) + 1.0
        least, most = ends[1][0], ends[1][1] + 1.0
        images = self.levels("quint8", 1, self.whole(3, 7), self.whole(3, 7), 2)
        filters = self.levels("quint8", self.whole(1, 3), self.whole(1, 3), 2, 3)
        padding = self.one_of(("SAME", "VALID"))
        return (
            f"q = T.nn.quantized_conv2d({images}, {filters}, {low}, {high}, {least}, {most}, "
            f"[1, 1, 1, 1], {padding!r})\n[T.bitcast(q[0], T.int32), q[1], q[2]]"
        )

    def feature(self, kind: str) -> Any:
        if kind == "string":
            size = self.one_of((0, 1, 3, 5, 9, 17, 33, 70, 130))
            return "".join(self.one_of(LETTERS) for _ in range(size)).encode()
        if kind == "float32":
            return round(self.chance.random() * 200 - 100, 3)
        bits = 63 if kind == "int64" else 31
        return self.one_of((self.whole(-5, 5), self.whole(-(2**bits), 2**bits - 1)))

    def crossed(self) -> str:
        rows, lines, names = self.whole(0, 4), [], []
        for i in range(self.whole(1, 4)):
            columns, kind = self.whole(0, 3), self.one_of(("string", "int64", "int32", "float32"))
            places = [[row, column] for row in range(rows) for column in range(columns)]
            name = f"x{i}"
            names.append(name)
            if self.chance.random() < 0.5:
                values = [self.feature(kind) for _ in places]
                made = f"T.constant({values}, T.{kind}, shape=[{rows}, {columns}])"
                lines.append(f"{name} = {made if values else self.nothing(kind, rows, columns)}")
                continue
            kept = [place for place in places if self.chance.random() < 0.7]
            values = [self.feature(kind) for _ in kept]
            made = f"T.constant({values}, T.{kind})" if values else self.nothing(kind, 0)
            at = f"np.array({kept}, np.int64).reshape(-1, 2)"
            lines.append(f"{name} = T.SparseTensor({at}, {made}, [{rows}, {columns}])")
        call = f"T.sparse.cross([{', '.join(names)}])"
        if self.chance.random() < 0.6:
            options = self.one_of(
                (
                    "",
                    ", num_buckets=1000",
                    f", hash_key={self.whole(-(2**63), 2**63 - 1)}",
                    f", num_buckets={self.whole(1, 2**62)}, hash_key={self.whole(0, 2**40)}",
                )
            )
            call = f"T.sparse.cross_hashed([{', '.join(names)}]{options})"
        return "\n".join([*lines, call])

    def nothing(self, kind: str, *shape: int) -> str:
        return f"T.zeros({list(shape)}, T.{kind})"

    def program(self) -> str:
        made: str = self.one_of(
            (
                *(self.quantized, self.quantized, self.dequantized, self.concatenated),
                *(self.pooled, self.convolved, self.crossed, self.crossed),
            )
        )()
        return made


def odd_levels(count: int, seed: int) -> list[str]:
    """Return programs, none twice."""
    made, found = Levels(seed), {}
    while len(found) < count:
        found[made.program()] = None
    return list(found)
