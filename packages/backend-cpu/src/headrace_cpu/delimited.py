"""Fields of many records of delimited values, found and read by one native pass over their bytes.

The pass knows the usual forms: fields without quotes, or in quotes without quotes inside, decimal
numbers of up to 18 digits. It marks all else, and its caller reads that another way, as it reads
everything until the loop is made and where it cannot be made. So results do not depend on it.

A decimal number of at most 2**53, without its point, is a float64, and so is a power of ten up to
22. One product or quotient of two such numbers is rounded once, as the number itself would be.

References:
    W. D. Clinger, How to read floating point numbers accurately, PLDI 1990,
    https://doi.org/10.1145/93542.93557
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from headrace.extend.records import dataclass
from headrace_cpu.native.later import MadeLater
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import bare_kernel, short_kernel

Array = Any

# What is to be made of a column.
TEXTS, INTEGERS, FLOATS = 0, 1, 2
# What was made of a field: nothing, a value, or nothing of what is a decimal number all the same.
UNREAD, READ, DECIMAL = 0, 1, 2

# From how many fields on the pass is worth its call.
_FEWEST = 32
# Less text is read before another thread could take the interpreter's lock.
_SHORT = 1 << 14
_POWERS = 10.0 ** np.arange(23)
_NAME = "delimited_fields"
_SOURCE = f"""\
def {_NAME}(block):
    text = word(block, 0)
    ends = word(block, 1)
    records = word(block, 2)
    delimiter = word(block, 3)
    quotes = word(block, 4)
    columns = word(block, 5)
    places = word(block, 6)
    kinds = word(block, 7)
    fields = word(block, 8)
    starts = word(block, 9)
    stops = word(block, 10)
    values = word(block, 11)
    states = word(block, 12)
    odd = word(block, 13)
    powers = word(block, 14)
    at = 0
    for row in range(records):
        end = load_i64(ends, row, 1)
        strange = 0
        if at == end:
            strange = 1
        field = 0
        column = 0
        more = 1
        while more == 1:
            start = at
            stop = at
            first = to_i64(load_u8(text, at, 0))
            if quotes == 1 and first == 34 and at < end:
                start = at + 1
                stop = start
                while stop < end and to_i64(load_u8(text, stop, 0)) != 34:
                    stop = stop + 1
                at = stop + 1
                if stop >= end:
                    strange = 1
                    at = end
                if at < end:
                    if to_i64(load_u8(text, at, 0)) != delimiter:
                        strange = 1
                        at = end
            else:
                going = 1
                while going == 1:
                    going = 0
                    if stop < end:
                        byte = to_i64(load_u8(text, stop, 0))
                        if byte != delimiter:
                            going = 1
                            stop = stop + 1
                            if byte == 10 or byte == 13 or (byte == 34 and quotes == 1):
                                strange = 1
                at = stop
            if column < columns:
                if load_i64(places, column, 2) == field:
                    place = column * records + row
                    store_i64(starts, place, start, 4)
                    store_i64(stops, place, stop, 5)
                    kind = load_i64(kinds, column, 3)
                    column = column + 1
                    state = 0
                    if kind > 0:
                        i = start
                        last = stop
                        space = 1
                        while space == 1:
                            space = 0
                            if i < last:
                                byte = to_i64(load_u8(text, i, 0))
                                if byte == 32 or (byte > 8 and byte < 14):
                                    space = 1
                                    i = i + 1
                        space = 1
                        while space == 1:
                            space = 0
                            if i < last:
                                byte = to_i64(load_u8(text, last - 1, 0))
                                if byte == 32 or (byte > 8 and byte < 14):
                                    space = 1
                                    last = last - 1
                        minus = 0
                        if i < last:
                            byte = to_i64(load_u8(text, i, 0))
                            if byte == 45:
                                minus = 1
                            if byte == 45 or byte == 43:
                                i = i + 1
                        number = 0
                        digits = 0
                        long = 0
                        behind = 0
                        point = 0
                        going = 1
                        while going == 1:
                            going = 0
                            if i < last:
                                byte = to_i64(load_u8(text, i, 0))
                                if byte >= 48 and byte <= 57:
                                    going = 1
                                    digits = digits + 1
                                    behind = behind - point
                                    if number < 100000000000000000:
                                        number = number * 10 + (byte - 48)
                                    else:
                                        long = 1
                                if byte == 46 and point == 0 and kind == 2:
                                    going = 1
                                    point = 1
                                i = i + going
                        power = 0
                        wrong = 0
                        if digits == 0:
                            wrong = 1
                        if i < last and kind == 2:
                            byte = to_i64(load_u8(text, i, 0))
                            if byte == 69 or byte == 101:
                                i = i + 1
                                below = 0
                                if i < last:
                                    byte = to_i64(load_u8(text, i, 0))
                                    if byte == 45:
                                        below = 1
                                    if byte == 45 or byte == 43:
                                        i = i + 1
                                if i == last:
                                    wrong = 1
                                going = 1
                                while going == 1:
                                    going = 0
                                    if i < last:
                                        byte = to_i64(load_u8(text, i, 0))
                                        if byte >= 48 and byte <= 57:
                                            going = 1
                                            i = i + 1
                                            if power < 100000:
                                                power = power * 10 + (byte - 48)
                                if below == 1:
                                    power = -power
                        if i == last and wrong == 0:
                            if kind == 1 and long == 0:
                                state = 1
                                store_i64(values, place, where(minus == 1, -number, number), 6)
                            if kind == 2:
                                state = 2
                                power = power + behind
                                exact = long == 0 and number <= 9007199254740992
                                if exact and power >= -22 and power <= 22:
                                    state = 1
                                    real = to_f64(number)
                                    if power < 0:
                                        real = divide(real, load_f64(powers, -power, 9))
                                    else:
                                        real = real * load_f64(powers, power, 9)
                                    if minus == 1:
                                        real = -real
                                    store_i64(values, place, bits_i64(real), 6)
                    store_u8(states, place, to_u8(state), 7)
            field = field + 1
            more = 0
            if at < end:
                more = 1
                at = at + 1
        if fields >= 0 and field != fields:
            strange = 1
        if column < columns:
            strange = 1
        store_u8(odd, row, to_u8(strange), 8)
        at = end
"""
_LOOP = MadeLater(_NAME, lambda: KernelSource(_NAME, _SOURCE), before=3)


@final
@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of records, as far as they are of the usual forms.

    Attributes:
        text: The records, one after the other.
        odd: [n], whether a record is to be read another way, wholly.
        starts: [columns, n], where in the text each field begins, without its quotes.
        stops: [columns, n], where it ends.
        values: [columns, n], int64: numbers; of columns of floats the bits of float64.
        states: [columns, n], what was made of each: ``UNREAD``, ``READ`` or ``DECIMAL``.
    """

    text: bytes
    odd: Array
    starts: Array
    stops: Array
    values: Array
    states: Array

    def texts(self, column: int, rows: Array) -> list[bytes]:
        """Return the fields of a column in some records, as they stand there."""
        text = self.text
        starts, stops = self.starts[column, rows], self.stops[column, rows]
        return [text[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]

    def equal(self, column: int, word: bytes) -> Array:
        """Return, for each record, whether the field of a column is a word, [n]."""
        starts = self.starts[column]
        found = self.stops[column] - starts == len(word)
        rows = np.flatnonzero(found)
        if len(word) and len(rows):
            there = np.frombuffer(self.text, np.uint8)[starts[rows, None] + np.arange(len(word))]
            found[rows] = (there == np.frombuffer(word, np.uint8)).all(axis=1)
        return found


def fields_of(
    records: Sequence[bytes],
    delimiter: bytes,
    kinds: Sequence[int],
    places: Sequence[int],
    *,
    quotes: bool,
) -> Fields | None:
    """Find the fields of records; None where they are few, or the loop is not there.

    Args:
        records: The records.
        delimiter: The byte between fields.
        kinds: For each column what is to be made of it.
        places: Which fields these columns are, ascending; there may be others. Records have all
            columns and no more fields if it is empty.
        quotes: Whether fields may stand in double quotes.
    """
    count, columns = len(records), len(kinds)
    kernel = _LOOP.address() if count * columns >= _FEWEST else None
    if kernel is None:
        return None
    # One byte more, which the loop may look at.
    text = b"".join([*records, b"\n"])
    ends = np.cumsum(np.fromiter(map(len, records), np.int64, count))
    of_columns = np.array([places or range(columns), kinds], np.int64)
    # Nothing is found in what is short of columns.
    starts, stops, values = np.zeros((3, columns, count), np.int64)
    states, odd = np.zeros((columns, count), np.uint8), np.empty(count, np.uint8)
    bytes_of = np.frombuffer(text, np.uint8)
    arrays: list[Array] = [starts, stops, values, states, odd, _POWERS]
    block = (ctypes.c_int64 * 15)(
        address(bytes_of),
        address(ends),
        count,
        delimiter[0],
        int(quotes),
        columns,
        address(of_columns[0]),
        address(of_columns[1]),
        -1 if places else columns,
        *map(address, arrays),
    )
    run = short_kernel if len(text) < _SHORT else bare_kernel
    run(kernel)(ctypes.addressof(block))
    return Fields(text, odd.astype(bool), starts, stops, values, states)
