"""``framework.function``: functions of typed tensors, with gradients of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import headrace as hr


class Defun:
    """Let a function of tensors take tensors of given dtypes, and have a gradient of its own.

    What a call computes is added to the graph of the call: there is no function in the graph, and
    what TensorFlow takes to name and compile one changes nothing here.
    """

    def __init__(self, *input_types: Any, **options: Any) -> None:
        """Take the dtypes of the arguments, or none, and options by name.

        Args:
            *input_types: The dtypes.
            **options: ``func_name`` is the prefix of what is computed; ``python_grad_func`` takes
                what has the ``inputs`` and ``outputs`` of a call, and the gradients of its outputs;
                ``grad_func`` takes the inputs and these gradients. Each returns the gradients of
                the inputs.
        """
        self._dtypes = input_types
        self._name: str | None = options.get("func_name")
        self._rule: Callable[..., Any] | None = options.get("python_grad_func")
        inner: Callable[..., Any] | None = options.get("grad_func")
        if self._rule is None and inner is not None:
            self._rule = lambda op, *gradients: inner(*op.inputs, *gradients)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that programs call."""
        rule = self._rule
        label = str(self._name or getattr(function, "__name__", ""))
        if not label.isidentifier():
            label = "Defun"

        @hr.custom_gradient  # type: ignore[untyped-decorator]
        def with_rule(*inputs: Any) -> Any:
            outputs = function(*inputs)
            listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
            op = SimpleNamespace(inputs=list(inputs), outputs=listed)

            def grad(*gradients: Any) -> Any:
                assert rule is not None
                return rule(op, *gradients)

            return outputs, grad

        @functools.wraps(function)
        def called(*args: Any, name: str | None = None) -> Any:
            with hr.name_scope(name, label):
                inputs = self._converted(args)
                return function(*inputs) if rule is None else with_rule(*inputs)

        return called

    def _converted(self, args: tuple[Any, ...]) -> list[hr.Tensor]:
        if not self._dtypes:
            return [hr.convert_to_tensor(arg) for arg in args]
        if len(args) != len(self._dtypes):
            raise ValueError(f"expected {len(self._dtypes)} arguments, got {len(args)}")
        pairs = zip(args, self._dtypes, strict=True)
        return [hr.convert_to_tensor(arg, dtype) for arg, dtype in pairs]
