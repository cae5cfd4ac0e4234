"""Random bits by a native loop on all threads: those of NumPy's Philox, to the bit.

The loop is made behind the steps once a process has drawn much a few times: until then, and where
it cannot be made, NumPy makes the same bits. So it does not matter for results when it is there.

References:
    J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as
    1, 2, 3, SC 2011, https://doi.org/10.1145/2063384.2063405
"""

from __future__ import annotations

import functools

import numpy as np

from headrace_cpu.native.later import MadeLater
from headrace_cpu.native.memory import Array, address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import Share, launch

# Fewer words than that NumPy has made before a thread is awake.
_FEWEST = 1 << 14
# Draws of as many that are made before the loop is: programs draw their first values once.
_BEFORE = 3
_WORDS_WORTH_A_THREAD = 1 << 13
_WORD = 1 << 64
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_KEY_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10
_NAME = "random_bits"


def bits(key: tuple[int, int], counter: int, count: int) -> Array | None:
    """Return [count] words that ``numpy.random.Philox(key=key, counter=counter)`` makes.

    None where NumPy is to make them.
    """
    low = counter % _WORD
    blocks = -(-count // 4)
    if count < _FEWEST or low + blocks >= _WORD:
        return None
    kernel = _LOOP.address()
    if kernel is None:
        return None
    words = np.empty(4 * blocks, np.uint64)
    # NumPy counts up before it makes a block.
    upper = [counter >> shift & _WORD - 1 for shift in (64, 128, 192)]
    given = [address(words), blocks, low + 1, *upper, *(part % _WORD for part in key)]
    block = np.array(given, np.uint64)
    threads = max(1, min(Share.allowed(), count // _WORDS_WORTH_A_THREAD))
    launch(kernel, address(block), threads)()
    return words[:count]


@functools.cache
def source() -> KernelSource:
    """Return the loop.

    The words of its block are the address of the results, the number of blocks of four words, the
    counter of the first, the upper words of all counters, and the key.
    """
    names = ("words", "blocks", "low", "c1", "c2", "c3", "k0", "k1")
    before = []
    for index, name in enumerate(names):
        before.append(f"%{name}.p = getelementptr i64, ptr %block_, i64 {index}")
        before.append(f"%{name} = load i64, ptr %{name}.p")
    lines: list[str] = ["%c0 = add i64 %low, %i"]
    state, keys = ["%c0", "%c1", "%c2", "%c3"], ["%k0", "%k1"]
    for turn in range(_ROUNDS):
        products = []
        for half, (factor, value) in enumerate(
            zip(_MULTIPLIERS, (state[0], state[2]), strict=True)
        ):
            name = f"%r{turn}_{half}"
            lines += [
                f"{name}.w = zext i64 {value} to i128",
                f"{name}.p = mul i128 {name}.w, {factor}",
                f"{name}.s = lshr i128 {name}.p, 64",
                f"{name}.h = trunc i128 {name}.s to i64",
                f"{name}.l = trunc i128 {name}.p to i64",
            ]
            products.append((f"{name}.h", f"{name}.l"))
        (high0, low0), (high1, low1) = products
        lines += [
            f"%x{turn}_0 = xor i64 {high1}, {state[1]}",
            f"%y{turn}_0 = xor i64 %x{turn}_0, {keys[0]}",
            f"%x{turn}_1 = xor i64 {high0}, {state[3]}",
            f"%y{turn}_1 = xor i64 %x{turn}_1, {keys[1]}",
        ]
        state = [f"%y{turn}_0", low1, f"%y{turn}_1", low0]
        following = []
        for half, step in enumerate(_KEY_STEPS):
            name = f"%key{turn}_{half}"
            lines.append(f"{name} = add i64 {keys[half]}, {_signed(step)}")
            following.append(name)
        keys = following
    lines.append("%first = shl i64 %i, 2")
    for place, value in enumerate(state):
        lines += [
            f"%at{place} = add i64 %first, {place}",
            f"%to{place} = getelementptr i64, ptr %out, i64 %at{place}",
            f"store i64 {value}, ptr %to{place}, align 8",
        ]
    return KernelSource(_NAME, _text(before, lines), language="llvm")


def _signed(word: int) -> int:
    return word - _WORD if word >= _WORD // 2 else word


def _text(before: list[str], body: list[str]) -> str:
    head, inside = ("\n".join(f"  {line}" for line in lines) for lines in (before, body))
    return f"""\
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

define void @{_NAME}(i64 %block) {{
entry:
  %block_ = inttoptr i64 %block to ptr
{head}
  %out = inttoptr i64 %words to ptr
  %me32 = call i32 @omp_get_thread_num()
  %me = sext i32 %me32 to i64
  %team32 = call i32 @omp_get_num_threads()
  %team = sext i32 %team32 to i64
  %a = mul i64 %blocks, %me
  %begin = udiv i64 %a, %team
  %me1 = add i64 %me, 1
  %b = mul i64 %blocks, %me1
  %end = udiv i64 %b, %team
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
{inside}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


_Loop = functools.partial(MadeLater, _NAME, source, _BEFORE)
_LOOP = _Loop()
