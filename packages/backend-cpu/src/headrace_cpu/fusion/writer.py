"""What the loop nests of a kernel share while its source is written: names, memory, constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.extend.scalars import SCALAR_FUNCTIONS
from headrace_cpu.fusion.constants import ELEMENTARY, REPORT_WORD
from headrace_cpu.fusion.layout import Layout
from headrace_cpu.fusion.nodes import BYTES, FLOATS
from headrace_cpu.fusion.schedule import Root, Schedule
from headrace_cpu.fusion.space import Store, Value
from headrace_cpu.native.source import MAX_BUFFERS

# Innermost loops of so few steps have their number in the source, so that they are unrolled.
_BAKED = 64
# Steps of up to so many elements stand in the source, too: LLVM then reads what lies between them
# at once, such as the colours of pixels, and takes it apart in registers.
_STEP = 8
_IDENTITY = {"total": "0", "product": "1", "both": "True", "either": "False"}
_NUMPY = {
    "b8": "bool_", "u8": "uint8", "i32": "int32", "i64": "int64", "f32": "float32",
    "f64": "float64",
}  # fmt: skip
_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip

# What takes one more element to what is in memory, where that is quicker than what LLVM makes
# vectors of.
_FURTHER = {"largest": "larger", "smallest": "smaller"}


@dataclass(slots=True, eq=False)
class Memory:
    """Where a value is, or goes to.

    Attributes:
        base: The variable of its address.
        scope: The number of its buffer.
        code: Its dtype.
        dims: The dimensions along which it has elements.
        strides: Elements per step, as expressions; "" for 1.
    """

    base: str
    scope: int
    code: str
    dims: tuple[int, ...]
    strides: dict[int, str]


def _wide_code(reduction: Value) -> str:
    """Return the dtype in which a reduction is accumulated beyond a chunk."""
    return "f64" if reduction.name == "total" and reduction.code in FLOATS else reduction.code


class Writer:
    """What the nests of one kernel share.

    Attributes:
        schedule: What is computed, in which nests.
        sizes: Of the dimensions.
        layout: The words of the kernel's block, so far.
        header: The name of each constant and function, by its expression.
        lines: What comes before all nests.
        scopes: The number of each buffer.
        memories: Where each load reads.
        homes: Where reductions and kept values are, which have a place in scratch memory.
        loads: What was loaded, and in which nest and phase.
        baked: Dimensions whose sizes stand in the source as numbers.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.sizes = schedule.space.sizes
        self.layout = Layout()
        self.header: dict[str, str] = {}
        self.lines: list[str] = []
        self.scopes: dict[object, int] = {}
        self.memories: dict[tuple[object, ...], Memory] = {}
        self.homes: dict[Value, Memory] = {}
        self.loads: list[tuple[int, int, Value]] = []
        last = {nest.dims[-1] for nest in schedule.nests if nest.dims}
        self.baked = {d for d in last if self.sizes[d] <= _BAKED}
        for dim in range(len(self.sizes)):
            self.size(dim)
        for value, root in schedule.roots.items():
            self._home(value, root)

    # -- numbers

    def size(self, dim: int) -> str:
        """Return the expression of a dimension's size."""
        if dim in self.baked:
            return str(self.sizes[dim])
        return self.layout.number(f"n{dim}", self.sizes[dim])

    def product(self, dims: tuple[int, ...]) -> str:
        """Return the expression of the product of sizes."""
        return " * ".join(self.size(dim) for dim in dims) or "1"

    def constant(self, code: str, text: str) -> str:
        """Return the name of a constant."""
        return self._head(f"np.{_NUMPY[code]}({text})", f"C{len(self.header)}")

    def function(self, name: str, code: str) -> str:
        """Return the name of an elementary function."""
        value = f'FUNCTIONS["{SCALAR_FUNCTIONS[name].op}", "{_NUMPY[code]}"]'
        return self._head(value, f"{name}_{code}")

    def _head(self, value: str, name: str) -> str:
        return self.header.setdefault(value, name)

    def literal(self, value: Value) -> str:
        """Return the name of a constant value."""
        number = value.constant.item()
        if value.code in FLOATS and (number != number or number in (float("inf"), -float("inf"))):
            return self.constant(value.code, f"'{number}'")
        return self.constant(value.code, repr(number))

    # -- memory

    def scope(self, key: object) -> int:
        """Return the number of a buffer."""
        return self.scopes.setdefault(key, min(len(self.scopes), MAX_BUFFERS - 1))

    def memory_of_load(self, value: Value) -> Memory:
        """Return where a load reads."""
        assert value.tensor is not None
        key = ("load", value.tensor, value.offset, value.dims, tuple(value.strides.values()))
        found = self.memories.get(key)
        if found is None:
            step = value.strides[value.dims[-1]] if value.dims else 0
            base = self._base(value.tensor, value.offset, value.code, step)
            if value.period:
                found = self._repeated(value, base)
            else:
                strides = self._strides(value.dims, value.strides)
                found = Memory(base, self.scope(value.tensor), value.code, value.dims, strides)
            self.memories[key] = found
        return found

    def _repeated(self, value: Value, base: str) -> Memory:
        """Return a thread's copy of what repeats along a dimension, made before all nests."""
        (dim,), code = value.dims, value.code
        memory = self._piece(value, value.dims, code, per_thread=True)
        stride, scope = value.strides[dim], self.scope(value.tensor)
        self.lines += [
            f"for k in range({self.size(dim)}):",
            f"    again = remaining(k, {value.period}) * {stride}",
            f"    one = load_{code}({base}, again, {scope})",
            f"    store_{code}({memory.base}, k, one, {memory.scope})",
        ]
        return memory

    def memory_of_store(self, store: Store) -> Memory:
        """Return where a store writes."""
        assert store.tensor is not None
        code = store.value.code
        step = store.strides[store.dims[-1]] if store.dims else 0
        base = self._base(store.tensor, store.offset, code, step)
        strides = self._strides(store.dims, store.strides)
        return Memory(base, self.scope(store.tensor), code, store.dims, strides)

    def _base(self, tensor: Any, offset: int, code: str, step: int) -> str:
        """Return the name of an address, by which it shows what lies within one step of another."""
        within = offset % step if 1 < step <= _STEP else 0
        whole, name = (offset - within) * BYTES[code], f"p{len(self.layout.names)}"
        base = self.layout.address(tensor, whole, name)
        if not within:
            return base
        name = f"{base}_{within}"
        line = f"{name} = {base} + {within * BYTES[code]}"
        if line not in self.lines:
            self.lines.append(line)
        return name

    def _strides(self, dims: tuple[int, ...], strides: dict[int, int]) -> dict[int, str]:
        found, step = {}, 1
        for place in range(len(dims) - 1, -1, -1):
            dim = dims[place]
            if strides[dim] == 1:
                found[dim] = ""
            elif dim == dims[-1] and 1 < strides[dim] <= _STEP:
                found[dim] = str(strides[dim])
            elif strides[dim] == step:
                found[dim] = self.product(dims[place + 1 :])
            else:
                name = f"s{len(self.layout.names)}"
                found[dim] = self.layout.number(name, strides[dim])
            step *= self.sizes[dim]
        return found

    def _dense(self, dims: tuple[int, ...]) -> dict[int, str]:
        strides, step = {}, 1
        for dim in reversed(dims):
            strides[dim] = step
            step *= self.sizes[dim]
        return self._strides(dims, strides)

    def _home(self, value: Value, root: Root) -> None:
        """Give a reduction or a kept value its place in scratch memory, if it needs one."""
        schedule, distant = self.schedule, value in self.schedule.distant
        nest = schedule.nests[root.nest]
        if root.reduces and not schedule.by_row(value):
            inner = not root.in_row and nest.dims[-1] not in value.over
            code = value.code if inner else _wide_code(value)
            self._piece(value, value.dims, code, per_thread=root.nest not in schedule.bands)
        elif distant:
            self._piece(value, value.dims, value.code, per_thread=False)
        elif not root.reduces and not root.in_row and nest.phases > root.phase + 1:
            self._piece(value, nest.dims[-1:], value.code, per_thread=True)

    def _piece(self, value: Value, dims: tuple[int, ...], code: str, *, per_thread: bool) -> Memory:
        count = 1
        for dim in dims:
            count *= self.sizes[dim]
        name = f"k{value.number}"
        base = self.layout.piece(f"{name}_all" if per_thread else name, count, code, per_thread)
        if per_thread:
            index = len(self.layout.names) - 1
            size = self.layout.number(f"{name}_size", self.layout.pieces[index].size)
            self.lines.append(f"{name} = {base} + thread * {size}")
        memory = Memory(name, self.scope(value), code, dims, self._dense(dims))
        self.homes[value] = memory
        return memory

    def report(self, store: Store, condition: str) -> list[str]:
        """Return what reports a check."""
        return [f"if {condition}:", f"    set_word(block, {REPORT_WORD}, {store.report})"]

    def further(self, reduction: Value, so_far: str, name: str) -> str:
        """Return what a reduction is with one more element than what is in memory."""
        return f"{_FURTHER.get(reduction.name, reduction.name)}({so_far}, {name})"

    def identity(self, reduction: Value, code: str) -> str:
        """Return where a reduction starts."""
        if reduction.name in _IDENTITY:
            return self.constant(code, _IDENTITY[reduction.name])
        sign = "-" if reduction.name == "largest" else ""
        if code in FLOATS:
            return self.constant(code, f"'{sign}inf'")
        bits = 8 * BYTES[code] - 1
        return self.constant(code, str(-(1 << bits) if sign else (1 << bits) - 1))

    def mapped(self, value: Value, args: list[str]) -> str:
        """Return the expression of a map."""
        name = value.name
        if name in _INFIX:
            text = f"{args[0]} {_INFIX[name]} {args[1]}"
            return f"to_{value.code}({text})" if value.code in ("i32", "u8") else text
        if name in ELEMENTARY:
            name = self.function(name, value.code)
        return f"{name}({', '.join(args)})"
