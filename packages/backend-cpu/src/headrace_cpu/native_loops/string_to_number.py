"""Parsing of numbers: what strings stand for, read where Python keeps their bytes.

Decimal numbers of up to 15 digits, times or divided by a power of ten up to the 22nd, are two
floats without an error, so that one operation rounds once, as it must (Clinger, "How to read
floating point numbers accurately", PLDI 1990). Integers of up to 18 digits are read as they are.
Where there is another string, the plain kernel reads all, or says what is wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import (
    Call,
    Job,
    NativeLoop,
    code_of,
    set_status,
    team_for,
)
from headrace_cpu.native_loops.string_hash import READ, readable, with_places

_MOST_POWER = 22
_POWERS = np.array([10.0**n for n in range(_MOST_POWER + 1)])

_NUMERALS = """\
for i in range(me * count // team, (me + 1) * count // team):
    object = load_i64(strings, i, 0)
    if load_i64(object + TYPE, 0, 1) != kind:
        STATUS
    else:
        READ
        sign, begin = 0, 0
        if size > 0:
            sign = to_i64(load_u8(at, 0, 1))
            begin = to_i64(either(sign == 43, sign == 45))
        NUMBER
        if wrong:
            STATUS
"""
_WHOLE = """\
wrong, value = either(size == begin, size - begin > 18), 0
if not wrong:
    for place in range(begin, size):
        digit = to_i64(load_u8(at, place, 1)) - 48
        wrong = either(wrong, to_u64(digit) > to_u64(9))
        value = value * 10 + digit
    value = where(sign == 45, 0 - value, value)
    wrong = either(wrong, either(value < low, value > high))
    store_T(out, i, to_T(value), 2)
"""
# The digits before and behind the point are one whole number, and its power of ten is counted.
_DECIMAL = """\
value, digits, behind, power, figures, turn = 0, 0, 0, 0, 0, 0
dotted, minus, wrong = False, False, size > 40
if not wrong:
    for place in range(begin, size):
        letter = to_i64(load_u8(at, place, 1))
        if to_u64(letter - 48) < to_u64(10):
            if turn > 0:
                power, figures = power * 10 + letter - 48, figures + 1
            else:
                value, digits = value * 10 + letter - 48, digits + 1
                behind = behind + to_i64(dotted)
        elif both(letter == 46, not either(dotted, turn > 0)):
            dotted = True
        elif both(either(letter == 101, letter == 69), turn == 0):
            turn = place + 1
        elif both(either(letter == 43, letter == 45), both(turn == place, turn > 0)):
            minus = letter == 45
        else:
            wrong = True
    wrong = either(wrong, either(digits == 0, digits > 15))
    wrong = either(wrong, either(figures > 3, both(turn > 0, figures == 0)))
    power = where(minus, 0 - power, power) - behind
    wrong = either(wrong, either(power > MOST, power < 0 - MOST))
    if not wrong:
        number = to_f64(value)
        if power < 0:
            number = divide(number, load_f64(powers, 0 - power, 3))
        else:
            number = number * load_f64(powers, power, 3)
        number = where(sign == 45, negative(number), number)
        store_T(out, i, to_T(number), 2)
"""
_WORDS = ("strings", "count", "kind", "powers", "low", "high", "out")


@functools.cache
def _numerals(code: str) -> NativeLoop:
    number = (_DECIMAL if code[0] == "f" else _WHOLE).replace("MOST", str(_MOST_POWER))
    parts = {"READ": with_places(READ), "NUMBER": number, "STATUS": set_status()}
    return NativeLoop("numerals", _WORDS, with_places(_NUMERALS), {"T": code}, parts)


def _number_job(op: Operation) -> Job | None:
    dtype = op.attrs["out_type"].numpy
    code = code_of(dtype)
    if code not in ("i32", "i64", "f32", "f64") or not readable():
        return None
    low, high = (0, 0) if code[0] == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)

    def run(calls: Sequence[Call], threads: int, strings: Any) -> Any:
        if not isinstance(strings, np.ndarray) or strings.dtype != object or not strings.size:
            return None
        found = np.empty(strings.shape, dtype)
        strings = np.ascontiguousarray(strings)
        team = team_for(16 * strings.size, threads)
        status = calls[0](
            team, address(strings), strings.size, id(bytes), address(_POWERS), int(low), int(high),
            address(found),
        )  # fmt: skip
        return None if status else found

    return Job((_numerals(code),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {"StringToNumber": _number_job}
