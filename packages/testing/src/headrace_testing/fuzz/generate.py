"""Random calls: mutations of calls that are right, and calls made up from signatures."""

from __future__ import annotations

import typing
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

import headrace as hr
from headrace import DType
from headrace.extend.graphs import is_python_literal
from headrace.extend.ops import REQUIRED
from headrace_testing.fuzz.arguments import Given, Sparse, Stored, described, mapped
from headrace_testing.fuzz.arrays import (
    DENSE,
    HUGE,
    Rng,
    any_array,
    any_dtype,
    any_float,
    any_int,
    any_shape,
    changed_shape,
    pick,
    similar_shape,
    spoiled,
)
from headrace_testing.fuzz.roles import role_of, texts_of
from headrace_testing.fuzz.targets import Slot, Target
from headrace_testing.inputs import Input, NDArray

_PLAIN = bool | int | float | str


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One random call, the same for the same target, seed and number.

    Attributes:
        target: What is called.
        seed: The seed of the run.
        number: Which call of this target it is.
        arguments: By parameter.
    """

    target: Target
    seed: int
    number: int
    arguments: dict[str, Any]

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={described(v)}" for name, v in self.arguments.items())
        return f"{self.target.name}({listed})  [--seed {self.seed} --at {self.number}]"


def make_call(target: Target, seed: int, number: int) -> Call:
    """Return call ``number`` of a target."""
    rng = np.random.default_rng([seed, zlib.crc32(target.name.encode()), number])
    maker = _Maker(target, rng)
    if target.seeds and rng.random() < 0.8:
        arguments = maker.mutated(dict(pick(rng, target.seeds)))
    else:
        arguments = maker.made_up()
    return Call(target, seed, number, arguments)


class _Maker:
    """Makes the arguments of one call."""

    def __init__(self, target: Target, rng: Rng) -> None:
        self.slots = {slot.name: slot for slot in target.slots}
        self.rng = rng
        self.shape = any_shape(rng)
        self.dtype = any_dtype(rng)
        # Half of the calls leave the entries to chance, the others enter all in one way.
        way = rng.random()
        self.entry = None if way < 0.5 else "constant" if way < 0.75 else "fed"
        self.kinds = [slot.kind for slot in target.slots if slot.kind is not None]

    # -- mutations of calls that are right

    def mutated(self, seed: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a seed, some of them changed."""
        dtype = self._swept_dtype()
        count = 0

        def enter(leaf: Any) -> Any:
            nonlocal count
            count += 1
            if isinstance(leaf, Input):
                return self.given(
                    _small_sizes(leaf.make(dtype, (int(self.rng.integers(2**31)), count)))
                )
            return self.given(leaf) if isinstance(leaf, np.ndarray) else leaf

        arguments = {name: mapped(enter, self._listed(value)) for name, value in seed.items()}
        for name, slot in self.slots.items():
            if name in ("seed", "seeds"):
                arguments[name] = self.value(slot)
        for _ in range(int(self.rng.choice(4, p=[0.12, 0.4, 0.3, 0.18]))):
            name = pick(self.rng, list(self.slots))
            slot = self.slots[name]
            if name not in arguments:
                if self.rng.random() < 0.4:
                    arguments[name] = self.value(slot)
            elif self.rng.random() < 0.12 and not slot.spread:
                arguments[name] = self.value(slot)
            else:
                arguments[name] = self.changed(arguments[name], slot)
        return arguments

    def _listed(self, value: Any) -> Any:
        """Return an array for a list of numbers, at times."""
        if not isinstance(value, list) or not value or self.rng.random() < 0.6:
            return value
        if not is_python_literal(value):
            return value
        try:
            array = np.array(value)
        except ValueError:
            return value
        narrow = {"float64": np.float32, "int64": np.int32}.get(str(array.dtype), array.dtype)
        return array.astype(narrow)

    def changed(self, value: Any, slot: Slot) -> Any:
        """Return an argument changed a little."""
        rng = self.rng
        if isinstance(value, Given):
            return self._changed_array(value, slot)
        if isinstance(value, Stored):
            return Stored(self.changed(value.value, slot))
        if isinstance(value, Sparse):
            parts = [value.indices, value.values, value.dense_shape]
            place = int(rng.integers(3))
            parts[place] = self.changed(parts[place], slot)
            return Sparse(*parts)
        if isinstance(value, list | tuple):
            return self._changed_list(value, slot)
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return any_int(rng)
        if isinstance(value, float):
            return any_float(rng)
        if isinstance(value, DType):
            return any_dtype(rng)
        if isinstance(value, str):
            return pick(rng, texts_of(slot, value))
        return self.value(slot) if value is None and rng.random() < 0.5 else value

    def _changed_array(self, given: Given, slot: Slot) -> Given:
        rng, array = self.rng, given.array
        way = rng.random()
        own = hr.string if array.dtype == object else hr.as_dtype(array.dtype)
        if own.is_quantized:
            levels = self._changed_array(self.given(array.view(own.numpy)), slot)
            as_before = levels.array.dtype == own.numpy
            return self.given(levels.array.view(own.as_numpy_dtype)) if as_before else levels
        if way < 0.35:
            return self.given(spoiled(rng, array))
        if way < 0.65:
            return self.given(_resized(rng, array, own, changed_shape(rng, array.shape)))
        if way < 0.75:
            return self.given(any_array(rng, own, array.shape))
        if way < 0.85 and own.is_integer and array.size:
            changed = array.astype(np.int64)
            changed.reshape(-1)[int(rng.integers(array.size))] = pick(rng, HUGE)
            return self.given(changed)
        if way < 0.93 and array.dtype != object and not own.is_bool:
            other = pick(rng, [d for d in DENSE if d.kind == own.kind])
            with np.errstate(all="ignore"):
                return self.given(array.astype(other.numpy))
        return self.given(any_array(rng, self._dtype_for(slot), any_shape(rng)))

    def _changed_list(self, value: Any, slot: Slot) -> Any:
        rng, items = self.rng, list(value)
        way = rng.random()
        if items and way < 0.6:
            place = int(rng.integers(len(items)))
            items[place] = self.changed(items[place], slot)
        elif items and way < 0.75:
            items.pop(int(rng.integers(len(items))))
        elif items and way < 0.9:
            items.append(items[int(rng.integers(len(items)))])
        else:
            items = []
        return items if isinstance(value, list) else tuple(items)

    # -- calls made up from signatures

    def made_up(self) -> dict[str, Any]:
        """Return arguments for all parameters without defaults, and for some with them."""
        chosen = {}
        for slot in self.slots.values():
            drawn = slot.name in ("seed", "seeds")
            wanted = drawn or slot.default is REQUIRED or slot.kind is not None
            if wanted or self.rng.random() < 0.25:
                chosen[slot.name] = self.value(slot)
        return chosen

    def value(self, slot: Slot) -> Any:
        """Return an argument made up for a parameter."""
        if slot.kind is not None:
            return self._input(slot)
        hint = slot.hint
        if slot.name == "seeds":
            return (7, int(self.rng.integers(0, 100)))
        if slot.spread:
            return tuple(self.tensor(slot) for _ in range(int(self.rng.integers(0, 4))))
        if isinstance(hint, str):
            return self._by_role(slot)
        return self._by_hint(hint, slot)

    def _input(self, slot: Slot) -> Any:
        assert slot.kind is not None
        if slot.kind.accepts(hr.resource) and not slot.kind.accepts(hr.float32):
            return Stored(Given(any_array(self.rng, self.dtype, self.shape)))
        if slot.variadic:
            return [self.tensor(slot) for _ in range(int(self.rng.integers(0, 4)))]
        if slot.default is None and self.rng.random() < 0.3:
            return None
        return self.tensor(slot)

    def _by_hint(self, hint: Any, slot: Slot) -> Any:
        """Return a value of the type that an op's attribute has."""
        rng = self.rng
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Literal:
            return pick(rng, inner)
        if hint is bool:
            return bool(rng.random() < 0.5)
        if hint is int:
            return any_int(rng)
        if hint is float:
            return any_float(rng)
        if hint is str and role_of(slot) == "dtype":
            return any_dtype(rng).name
        if hint is str:
            return pick(rng, texts_of(slot, "" if slot.default is REQUIRED else slot.default))
        if hint is DType:
            return any_dtype(rng)
        if hint is np.ndarray:
            return any_array(rng, any_dtype(rng), any_shape(rng))
        if hint is None or hint is type(None):
            return None
        if origin is tuple and inner[-1:] != (...,):
            return tuple(self._by_hint(item, slot) for item in inner)
        if (
            origin is not None
            and inner
            and isinstance(origin, type)
            and issubclass(origin, typing.Sequence)
        ):
            return tuple(self._by_hint(inner[0], slot) for _ in range(int(rng.integers(0, 5))))
        if inner:
            return self._by_hint(pick(rng, inner), slot)
        return self._by_role(slot)

    def _by_role(self, slot: Slot) -> Any:
        """Return a value for a parameter of which the name tells what it is."""
        rng, role = self.rng, role_of(slot)
        if role == "seed" and slot.default is REQUIRED:
            return self.given(rng.integers(0, 100, 2).astype(np.int32))
        if role == "seed":
            return int(rng.integers(0, 100))
        if slot.default is not REQUIRED and rng.random() < 0.15:
            return slot.default
        if role == "bool":
            return bool(rng.random() < 0.5)
        if role == "int":
            return any_int(rng)
        if role == "float":
            return any_float(rng)
        if role == "text":
            return pick(rng, texts_of(slot, slot.default if isinstance(slot.default, str) else ""))
        if role == "dtype":
            return any_dtype(rng)
        if role == "axis":
            return pick(rng, (None, any_int(rng), [any_int(rng)], [any_int(rng), any_int(rng)]))
        if role == "shape":
            count = int(rng.integers(0, 5))
            sizes = [
                any_int(rng) if rng.random() < 0.3 else int(rng.integers(0, 5))
                for _ in range(count)
            ]
            wide = any(abs(size) >= 2**31 for size in sizes)
            return self.given(np.array(sizes, np.int64 if wide else np.int32))
        if role == "list":
            return [self.tensor(slot) for _ in range(int(rng.integers(0, 4)))]
        if role == "sparse":
            return self._sparse()
        if role == "variable":
            return Stored(Given(any_array(rng, self.dtype, self.shape)))
        return slot.default if role == "default" else self.tensor(slot)

    def tensor(self, slot: Slot) -> Given:
        """Return an array for a tensor."""
        shape = similar_shape(self.rng, self.shape)
        return self.given(any_array(self.rng, self._dtype_for(slot), shape))

    def _sparse(self) -> Sparse:
        rng = self.rng
        rank, count = int(rng.integers(0, 4)), int(rng.integers(0, 5))
        size = any_array(rng, hr.int64, (rank,)) if rng.random() < 0.5 else np.full(rank, 4)
        indices = any_array(rng, hr.int64, (count, rank))
        if rng.random() < 0.6:
            indices = np.sort(rng.integers(0, 4, (count, rank)), axis=0)
        values = any_array(rng, self.dtype, (count,) if rng.random() < 0.9 else any_shape(rng))
        parts = (indices.astype(np.int64), values, size.astype(np.int64))
        return Sparse(*(self.given(part, plain=False) for part in parts))

    # -- dtypes and entries

    def given(self, array: NDArray, *, plain: bool = True) -> Given:
        """Return an array with a way to enter the graph."""
        rng = self.rng
        if plain and array.size <= 6 and array.ndim <= 2 and rng.random() < 0.2:
            return Given(array, "plain")
        if self.entry is not None:
            return Given(array, self.entry)
        entry = rng.choice(("constant", "fed", "partly", "unknown"), p=[0.5, 0.2, 0.15, 0.15])
        return Given(array, str(entry))

    def _dtype_for(self, slot: Slot) -> DType:
        """Return a dtype that a parameter takes, one for all where possible; at times another."""
        kind = slot.kind
        if kind is None or kind.accepts(self.dtype) or self.rng.random() < 0.04:
            return self.dtype
        fitting = [d for d in DENSE if kind.accepts(d)]
        return pick(self.rng, fitting) if fitting else self.dtype

    def _swept_dtype(self) -> DType:
        """Return a dtype that the makers of a seed can be asked for."""
        if not self.kinds:
            return self.dtype if self.rng.random() < 0.3 else hr.float32
        fitting = [d for d in DENSE if any(kind.accepts(d) for kind in self.kinds)]
        if self.dtype in fitting or not fitting:
            return self.dtype
        chosen: DType = pick(self.rng, fitting)
        return chosen


def _small_sizes(array: NDArray) -> NDArray:
    """Return an array in which no number is a size that takes long, but fits into memory."""
    if array.dtype not in (np.int32, np.int64):
        return array
    return np.where((array > 100) & (array < 2**27), 100, array).astype(array.dtype)


def _resized(rng: Rng, array: NDArray, dtype: DType, shape: tuple[int, ...]) -> NDArray:
    """Return an array of another shape with the values of one, repeated."""
    if not array.size:
        return any_array(rng, dtype, shape)
    return np.resize(array, shape) if array.dtype != object else _resized_texts(array, shape)


def _resized_texts(array: NDArray, shape: tuple[int, ...]) -> NDArray:
    made = np.empty(shape, object)
    texts = array.reshape(-1).tolist()
    for i, place in enumerate(np.ndindex(*shape)):
        made[place] = texts[i % len(texts)]
    return made
