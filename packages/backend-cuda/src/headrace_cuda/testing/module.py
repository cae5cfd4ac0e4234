"""A stand-in for the module ``cupy``: NumPy underneath, and as strict as the real one.

It has the functions, methods and parameters that CuPy has (``cupy_api.txt``), keeps device arrays
apart from host arrays, holds the dtypes that CuPy holds, and does what CuPy does where that is
not what NumPy does: an index out of range wraps around, an integer divided by zero raises
nothing, and a reduction yields an array where NumPy yields a scalar. A kernel that gives right
results on it neither mixes the two kinds of arrays nor relies on NumPy's checks.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from headrace_cuda.testing.record import Record, read_record

_KINDS = "biufc"
# What CuPy's scattered additions can do (atomicAdd), and which of its ufuncs scatter and reduce.
_SCATTER_DTYPES = ("int32", "uint32", "uint64", "float16", "float32", "float64")
_SCATTERING = ("add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")
_REDUCING = ("add", "multiply")
# Functions that take host arrays: they are how data gets to the device.
_UPLOADS = ("array", "asarray", "ascontiguousarray", "asanyarray")
# Functions and methods for which the host waits, because shapes depend on data.
_WAITS = ("nonzero", "argwhere", "flatnonzero", "unique", "tolist", "item", "get", "asnumpy")
_WRAPPING = ("take", "take_along_axis", "put_along_axis")


class MixedArraysError(TypeError):
    """A host array where CuPy takes device arrays, or the other way round."""


# Arrays by what has their memory.
_OWNERS: WeakValueDictionary[int, FakeArray] = WeakValueDictionary()


class FakeArray:
    """An array that pretends to be on a GPU.

    Attributes:
        host: Its contents.
    """

    __slots__ = ("__weakref__", "base", "host")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray[Any, Any]) -> None:
        if host.dtype.kind not in _KINDS:
            raise TypeError(f"Unsupported dtype {host.dtype}")
        self.host = host
        # A view keeps the array that owns its memory, as those of CuPy do.
        memory: Any = host
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        self.base = _OWNERS.get(id(memory))
        if self.base is None and memory is host:
            _OWNERS[id(memory)] = self

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise MixedArraysError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()`"
        )

    def __array_function__(self, function: Any, *rest: Any) -> Any:
        raise MixedArraysError(f"numpy.{function.__name__} of a device array; use xp")

    def __getattr__(self, name: str) -> Any:
        kind, parameters = _RECORD.get(f"ndarray.{name}", ("", ()))
        if not kind:
            raise AttributeError(f"cupy.ndarray has no attribute {name!r}")
        if name == "get":
            return self._get
        value = getattr(self.host, name)
        if kind == "attribute":
            return _wrapped(value)
        return _checked(f"ndarray.{name}", value, parameters)

    @property
    def flags(self) -> _Flags:
        """The flags that CuPy has; none can be set."""
        return _Flags(self.host.flags)

    def _get(self) -> np.ndarray[Any, Any]:
        CALLS["wait"] += 1
        return np.array(self.host)

    def __getitem__(self, key: Any) -> Any:
        return FakeArray(np.asarray(self.host[_index(self.host, key)]))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[_index(self.host, key)] = _host_of(value)

    def __iter__(self) -> Iterator[FakeArray]:
        return (self[i] for i in range(len(self.host)))

    def __len__(self) -> int:
        return len(self.host)

    def __repr__(self) -> str:
        return f"FakeArray({self.host!r})"

    def __pow__(self, other: Any) -> Any:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return _power(other, self)


class _Flags(dict[str, bool]):
    """The flags of a CuPy array, by attribute and by name."""

    def __init__(self, flags: Any) -> None:
        names = ("c_contiguous", "f_contiguous", "owndata")
        super().__init__({name.upper(): bool(getattr(flags, name)) for name in names})

    def __getattr__(self, name: str) -> bool:
        try:
            return self[name.upper()]
        except KeyError:
            raise AttributeError(f"cupy's flags have no {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cupy's flags cannot be set: {name!r}")


# How often each function was called since the last clear(); "wait" counts what a GPU would make
# the host wait for, "upload" what it would copy from the host.
CALLS: Counter[str] = Counter()
_RECORD: Record = read_record()


def _host_of(value: Any) -> Any:
    if isinstance(value, FakeArray):
        return value.host
    if isinstance(value, np.ndarray):
        raise MixedArraysError(f"Unsupported type {type(value)}: a host array among device arrays")
    if isinstance(value, list | tuple):
        return type(value)(map(_host_of, value))
    return value


def _wrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return FakeArray(np.asarray(value))
    if isinstance(value, list | tuple):
        # NumPy's linear algebra returns tuples with names, CuPy's plain ones.
        return (list if isinstance(value, list) else tuple)(map(_wrapped, value))
    return value


def _checked(
    name: str,
    function: Callable[..., Any],
    parameters: tuple[str, ...],
) -> Callable[..., Any]:
    """Return NumPy's function for device arrays, with the parameters that CuPy's has."""
    short = name.removeprefix("ndarray.")

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS[name] += 1
        CALLS["wait"] += short in _WAITS
        unknown = [k for k in kwargs if k not in parameters and "**" not in parameters]
        if unknown:
            raise TypeError(f"cupy.{name} has no parameter {', '.join(unknown)}")
        fixed = "*" not in parameters and parameters and "(" not in name
        if fixed and name not in _UFUNCS and len(args) > len(parameters):
            raise TypeError(f"cupy.{name} takes {len(parameters)} arguments, not {len(args)}")
        if short in _UPLOADS and any(isinstance(a, np.ndarray | list) for a in args):
            CALLS["upload"] += 1
            hosts = [a.host if isinstance(a, FakeArray) else _plain(a) for a in args]
        else:
            hosts = [_host_of(a) for a in args]
        named = {k: _host_of(v) for k, v in kwargs.items()}
        if short in _WRAPPING:
            hosts, named = _wrap_around(name, function, hosts, named)
        with np.errstate(all="ignore"):
            result = function(*hosts, **named)
        if short in ("tolist", "item"):
            return result
        return kwargs["out"] if kwargs.get("out") is not None else _wrapped(result)

    return call


_UFUNCS = frozenset(name for name, (kind, _) in _RECORD.items() if kind == "ufunc")


def _plain(value: Any) -> Any:
    """Return a list of device arrays as one of host arrays; CuPy stacks them."""
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value.host if isinstance(value, FakeArray) else value


def _wrap_around(
    name: str, function: Callable[..., Any], hosts: list[Any], named: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Let indices wrap around, as they do on a GPU."""
    array: Any = getattr(function, "__self__", None) if name.startswith("ndarray.") else hosts[0]
    at = 0 if name.startswith("ndarray.") else 1
    axis = named.get("axis", hosts[at + 1] if len(hosts) > at + 1 else None)
    size = array.size if axis is None else array.shape[axis]
    indices = named.pop("indices") if "indices" in named else hosts[at]
    given = indices % size if size else indices
    return [*hosts[:at], given, *hosts[at + 1 :]], named


def _index(array: np.ndarray[Any, Any], key: Any) -> Any:
    """Return the index for NumPy; integer arrays in it wrap around, as they do on a GPU."""
    parts = key if isinstance(key, tuple) else (key,)
    taken = sum(_axes_of(part) for part in parts)
    axis = 0
    made: list[Any] = []
    for part in parts:
        if part is Ellipsis:
            made.append(part)
            axis += array.ndim - taken
            continue
        host = _host_of(part)
        if isinstance(host, np.ndarray) and host.dtype.kind == "b":
            CALLS["wait"] += 1
        elif isinstance(host, np.ndarray) and array.shape[axis]:
            host = host % array.shape[axis]
        made.append(host)
        axis += _axes_of(part)
    return tuple(made) if isinstance(key, tuple) else made[0]


def _axes_of(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    masks = isinstance(part, FakeArray) and part.host.dtype.kind == "b"
    return part.host.ndim if masks else 1


def _power(x: Any, y: Any) -> Any:
    base, exponent = np.asarray(_host_of(x)), np.asarray(_host_of(y))
    with np.errstate(all="ignore"):
        if base.dtype.kind in "iu" and exponent.dtype.kind == "i":
            # CuPy computes some number where NumPy refuses a negative exponent.
            return FakeArray(np.asarray(np.power(_host_of(x), np.maximum(_host_of(y), 0))))
        return FakeArray(np.asarray(_host_of(x) ** _host_of(y)))


class _Ufunc:
    """One of CuPy's ufuncs."""

    def __init__(self, name: str, parameters: tuple[str, ...]) -> None:
        self.__name__ = name
        self._function: Any = getattr(np, name)
        self._call = _checked(name, self._function, parameters)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.__name__ == "power" and not kwargs:
            CALLS["power"] += 1
            return _power(*args)
        return self._call(*args, **kwargs)

    def at(self, array: FakeArray, indices: Any, values: Any = None) -> None:
        """Change elements in place, each as often as it is named."""
        if self.__name__ not in _SCATTERING:
            raise NotImplementedError(f"`cupy_{self.__name__}.at` is not supported yet")
        if array.host.dtype not in _SCATTER_DTYPES:
            raise TypeError(f"scatter_add only supports {', '.join(_SCATTER_DTYPES)}")
        CALLS[f"{self.__name__}.at"] += 1
        self._function.at(array.host, _index(array.host, indices), _host_of(values))

    def reduce(self, array: FakeArray, axis: Any = 0, keepdims: bool = False) -> Any:
        """Fold an axis."""
        if self.__name__ not in _REDUCING:
            raise NotImplementedError(f"`cupy_{self.__name__}.reduce` is not supported yet")
        return _wrapped(self._function.reduce(array.host, axis=axis, keepdims=keepdims))


class FakeCupy:
    """The module; ``fake_cupy`` is the one that there is."""

    ndarray = FakeArray
    ufunc = _Ufunc

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        # Kernels find what CuPy has of SciPy in the package that is called so, with an x.
        beside = "headrace_cuda.testing.fake_cupy"
        self.__name__ = f"cupy.{prefix}".rstrip(".") if prefix else beside

    def __getattr__(self, name: str) -> Any:
        full = f"{self._prefix}{name}"
        kind, parameters = _RECORD.get(full, ("", ()))
        value: Any
        if not kind:
            raise AttributeError(f"cupy has no attribute {full!r}")
        if kind == "module":
            value = FakeCupy(f"{full}.")
        elif full == "asnumpy":
            value = _asnumpy
        elif kind == "ufunc":
            value = _Ufunc(full, parameters)
        elif kind == "function":
            value = _checked(full, operator.attrgetter(full)(np), parameters)
        else:
            value = operator.attrgetter(full)(np)
        setattr(self, name, value)
        return value


def scipy_function(module: str, name: str) -> Any:
    """Return SciPy's function for device arrays, if CuPy has one.

    Args:
        module: As in ``"special"``.
        name: The function.

    Raises:
        AttributeError: if CuPy has none.
    """
    full = f"cupyx.scipy.{module}.{name}"
    kind, parameters = _RECORD.get(full, ("", ()))
    if kind not in ("ufunc", "function"):
        raise AttributeError(f"{full} does not exist")
    function = getattr(importlib.import_module(f"scipy.{module}"), name)
    return _checked(full, function, parameters)


def _asnumpy(array: Any) -> Any:
    return array.get() if isinstance(array, FakeArray) else np.asarray(array)


def _add_operators() -> None:
    binary = ["add", "sub", "mul", "truediv", "floordiv", "mod", "matmul"]
    binary += ["and", "or", "xor", "lshift", "rshift"]
    for name in binary:
        for form in (f"__{name}__", f"__r{name}__", f"__i{name}__"):
            setattr(FakeArray, form, _binary(form))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(FakeArray, f"__{name}__", _binary(f"__{name}__"))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(FakeArray, f"__{name}__", _unary(f"__{name}__"))
    for name in ("bool", "int", "float", "complex", "index"):
        setattr(FakeArray, f"__{name}__", _to_scalar(f"__{name}__"))


def _binary(form: str) -> Callable[..., Any]:
    def method(self: FakeArray, other: Any) -> Any:
        with np.errstate(all="ignore"):
            result = getattr(self.host, form)(_host_of(other))
        if result is NotImplemented:
            return result
        return self if form.startswith("__i") else FakeArray(np.asarray(result))

    return method


def _unary(form: str) -> Callable[..., Any]:
    return lambda self: FakeArray(np.asarray(getattr(self.host, form)()))


def _to_scalar(form: str) -> Callable[..., Any]:
    def method(self: FakeArray) -> Any:
        CALLS["wait"] += 1
        return getattr(self.host, form)()

    return method


_add_operators()
fake_cupy = FakeCupy()
