"""Checks of kernels of other packages: what they get, and what they may return.

A kernel that is not Headrace's own gets its inputs read-only, so that it cannot change what was
fed, constants, variables, or what other operations read. What it returns is compared with the op's
declaration the first time it runs for a node, whatever executor runs it, and copied where it keeps
hold of it, so that it cannot change what was fetched. Our own kernels, which the tests of this
repository hold to the same, are called without any of that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import HeadraceError, PluginError, shown
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec
from headrace.plugins.error_attribution import line_of_error
from headrace.plugins.ownership import OWN_PACKAGES, Provider, package_of
from headrace.plugins.tables import Kernel
from headrace.runtime.state.tensor_list import ListValue, Swapped
from headrace.shapes import Shape

_SEQUENCES = (list, tuple)


def is_foreign(kernel: Kernel) -> bool:
    """Whether a kernel is the code of a package that is not Headrace's."""
    return package_of(getattr(kernel.function, "__module__", None) or "?") not in OWN_PACKAGES


class Guard:
    """The call of a node with a kernel of another package.

    Attributes:
        op: The node.
        kernel: The kernel.
        provider: Whose it is.
    """

    __slots__ = ("_call", "_checked", "_to_host", "kernel", "op", "provider")

    def __init__(
        self,
        op: Operation,
        kernel: Kernel,
        provider: Provider,
        call: Callable[..., Any],
        to_host: Callable[[Any], Any] | None = None,
    ) -> None:
        """Guard a call.

        Args:
            op: The node.
            kernel: The kernel that it calls.
            provider: Whose kernel it is.
            call: Takes the values of the node's flat inputs, returns its outputs.
            to_host: Copies arrays of its device, where these are not NumPy's, to the host.
        """
        self.op = op
        self.kernel = kernel
        self.provider = provider
        self._call = call
        self._to_host = to_host
        self._checked = False

    def __call__(self, *values: Any) -> Any:
        """Run the kernel."""
        given = [read_only(value) for value in values]
        before = [] if self._checked else self._copies(given)
        try:
            found = self.listed(self._call(*given))
        except Exception as error:
            self.blame(error)
            raise
        return self.accept(given, found, before)

    def accept(self, given: Sequence[Any], found: list[Any], before: Sequence[Any] = ()) -> Any:
        """Return what the kernel returned, checked the first time, and held by nobody else.

        Raises:
            PluginError: if it is not what the op declares, or the kernel changed an input.
        """
        if not self._checked:
            self._check_unchanged(given, before)
            self._check(given, found)
            self._checked = True
        for i in range(len(found)):
            if isinstance(found[i], np.ndarray) and not _held_here_only(found, i):
                found[i] = found[i].copy()
        return found[0] if len(found) == 1 else found

    def listed(self, result: Any) -> list[Any]:
        """Return what the kernel returned as a list of outputs."""
        if type(result) in _SEQUENCES:
            return list(result)
        return [] if result is None and not self.op.outputs else [result]

    def blame(self, error: BaseException) -> None:
        """Let an error say whose kernel raised it."""
        where = line_of_error(error, self.kernel.function)
        error.add_note(f"  raised by {self.name}, in {where}; its inputs are read-only")

    @property
    def name(self) -> str:
        """What messages call the kernel."""
        return f"the kernel of {self.provider} at {self.kernel.where}"

    # -- what it returned

    def _check(self, given: Sequence[Any], found: list[Any]) -> None:
        outputs = self.op.outputs
        if len(found) != len(outputs):
            raise self._wrong(f"{len(found)} outputs", f"{len(outputs)}")
        wanted = zip(outputs, _expected(self.op, given), found, strict=True)
        for tensor, shape, value in wanted:
            if tensor.dtype.kind == "resource":
                continue
            if tensor.dtype.kind == "list":
                if not isinstance(value, ListValue):
                    raise self._wrong(_shown(value), "a list of tensors (ListValue)")
                continue
            stated = (shape, tensor.spec.shape)
            misfits = [s for s in stated if not s.is_compatible_with(_shape(value))]
            if _dtype(value) != tensor.dtype.numpy or misfits:
                raise self._wrong(_shown(value), f"{tensor.dtype}{(*misfits, shape)[0]}")

    def _wrong(self, returned: str, declared: str) -> PluginError:
        return PluginError(
            f"{self.name} returned {returned}, and {self.op.type} declares {declared}; "
            f"fix {self.provider}"
        )

    # -- what it must leave as it is

    def _copies(self, given: Sequence[Any]) -> list[Any]:
        """Return copies of the inputs that cannot be made read-only."""
        to_host = self._to_host
        if to_host is None:
            return []
        # What the op wants on the host is an array that cannot be written to, or a scalar.
        return [
            np.array(to_host(value))
            if _is_array(value) and not isinstance(value, np.ndarray | np.generic)
            else None
            for value in given
        ]

    def _check_unchanged(self, given: Sequence[Any], before: Sequence[Any]) -> None:
        to_host = self._to_host
        if to_host is None:
            return
        for i, (value, copy) in enumerate(zip(given, before, strict=False)):
            if copy is not None and np.asarray(to_host(value)).tobytes() != copy.tobytes():
                raise PluginError(
                    f"{self.name} changed its input {i}; kernels leave their inputs as they are, "
                    f"and return new arrays; fix {self.provider}"
                )


def read_only(value: Any) -> Any:
    """Return an input as a kernel may see it: an array that cannot be written to."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.setflags(write=False)
        return view
    if isinstance(value, ListValue):
        items = (i if isinstance(i, Swapped) else read_only(i) for i in value.items)
        return ListValue(items)
    return value


def _expected(op: Operation, given: Sequence[Any]) -> list[Shape]:
    """Return the shapes that the op's rule gives for inputs of these shapes."""
    specs = [
        TensorSpec(t.dtype, Shape(value.shape), content=t.spec.content)
        if t.spec.value is None and _is_array(value)
        else t.spec
        for t, value in zip(op.inputs, given, strict=True)
    ]
    try:
        found, _ = op.schema.output_specs(specs, op.arity, op.attrs)
    except HeadraceError:
        return [t.spec.shape for t in op.outputs]
    return [spec.shape for spec in found]


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and isinstance(getattr(value, "shape", None), tuple)


def _dtype(value: Any) -> Any:
    return np.dtype(value.dtype) if _is_array(value) else None


def _shape(value: Any) -> Shape:
    return Shape(value.shape if _is_array(value) else None)


def _shown(value: Any) -> str:
    if _is_array(value):
        return f"{value.dtype}{list(value.shape)}"
    return f"{type(value).__name__} {shown(value, 60)}"


# -- who holds an array


def _held_here_only(found: list[Any], i: int) -> bool:
    """Whether nobody but a list holds an array, and nobody else the memory under it."""
    if sys.getrefcount(found[i]) > _ALONE:
        return False
    base = found[i].base
    if base is None:
        return True
    return type(base) is np.ndarray and base.base is None and sys.getrefcount(base) <= _ALONE_BASE


def _calibrated() -> tuple[int, int]:
    """Return what ``getrefcount`` answers, as it is called above, where nobody else holds one."""
    found = [np.empty(2)[:1]]
    alone = sys.getrefcount(found[0])
    base = found[0].base
    return alone, sys.getrefcount(base)


_ALONE, _ALONE_BASE = _calibrated()
