"""Modules below ``tensorflow.python`` and ``tensorflow.core``, with the public names in them."""

from __future__ import annotations

import importlib
import re
from functools import cache
from types import ModuleType
from typing import Any, final

from headrace_tensorflow import names

PACKAGES = ("core", "python")
# Modules of ours with what libraries use of modules that are not public, by TensorFlow's names.
_OURS = {
    "client.device_lib": "device_lib",
    "client.timeline": "timeline",
    "eager.context": "context",
    "framework.constant_op": "constants",
    "framework.device": "devices",
    "framework.errors": "errors",
    "framework.errors_impl": "errors",
    "framework.function": "functions",
    "framework.ops": "conversions",
    "framework.smart_cond": "conditions",
    "framework.tensor_shape": "dimensions",
    "framework.tensor_util": "conversions",
    "framework.test_util": "testing",
    "keras.engine.input_spec": "layers",
    "layers.convolutional": "layers",
    "layers.utils": "conditions",
    "ops.array_ops": "shapes",
    "ops.confusion_matrix": "metrics",
    "ops.control_flow_ops": "conditions",
    "ops.control_flow_util": "conditions",
    "ops.functional_ops": "functionals",
    "ops.gradient_checker_v2": "gradients",
    "ops.linalg.linear_operator_util": "matrices",
    "ops.metrics_impl": "metrics",
    "ops.parsing_ops": "parsing",
    **{
        f"ops.ragged.ragged_{name}": "ragged"
        for name in (
            *("array_ops", "batch_gather_ops", "concat_ops", "conversion_ops", "gather_ops"),
            *("math_ops", "squeeze_op", "tensor", "where_op"),
        )
    },
    "ops.ragged.ragged_string_ops": "strings",
    "ops.resource_variable_ops": "variables",
    "ops.rnn_cell_impl": "cells",
    "ops.string_ops": "splits",
    "ops.variables": "variables",
    "tf2": "context",
    "ops.weights_broadcast_ops": "metrics",
    "training.evaluation": "evaluation",
    "training.moving_averages": "averages",
    "util.all_util": "decorators",
    "util.compat": "compat",
    "util.deprecation": "decorators",
    "util.nest": "structures",
    "util.tf_contextlib": "decorators",
    "util.tf_decorator": "decorators",
    "util.tf_export": "decorators",
    "util.tf_inspect": "inspection",
}
# Modules that are, in whole, what Headrace has under a public name.
_PUBLIC = {
    "framework.errors": "errors",
    "framework.errors_impl": "errors",
    "ops.lookup_ops": "lookup",
    "ops.losses.losses": "losses",
    "ops.metrics": "metrics",
    "ops.nn": "nn",
    "ops.rnn_cell": "nn.rnn_cell",
    "ops.rnn_cell_impl": "nn.rnn_cell",
    "ops.sets": "sets",
    "ops.signal.signal": "signal",
    "platform.gfile": "gfile",
    "platform.googletest": "test",
    "platform.test": "test",
    "platform.tf_logging": "logging",
    "saved_model.saved_model": "saved_model",
    "saved_model.signature_constants": "saved_model.signature_constants",
    "saved_model.tag_constants": "saved_model.tag_constants",
    "summary.summary": "summary",
    "training.queue_runner": "train.queue_runner",
    "training.training": "train",
    "util.compat": "compat",
    "util.nest": "nest",
}
_PROGRAMS = ("platform.app", "platform.flags")
# Modules with a function for each op, which TensorFlow generates.
_GENERATED = re.compile(r"ops\.gen_\w+")
# Modules that take all of them from one of those.
_WITH_GENERATED = frozenset(
    f"ops.{name}_ops"
    for name in (
        *("array", "bitwise", "control_flow", "data_flow", "image", "io", "linalg", "list"),
        *("logging", "lookup", "math", "nn", "parsing", "random", "resource_variable", "sparse"),
        *("state", "string"),
    )
)


@cache
def _known() -> set[str]:
    named = {*_OURS, *_PUBLIC, *_PROGRAMS}
    inside = {name[: place.start()] for name in named for place in re.finditer(r"\.", name)}
    return {*names.modules(), *named, *inside}


def module(full: str) -> ModuleType | None:
    """Return the module of a whole name, as ``tensorflow.python.ops``; None if there is none."""
    package, _, inside = full.partition(".")[2].partition(".")
    # Messages are in "core": in which modules and packages of it, no table tells.
    there = package == "core" or not inside or inside in _known() or _GENERATED.fullmatch(inside)
    return Private(full, package, inside) if there else None


@final
class Private(ModuleType):
    """What Headrace has of a private module, looked up when a program asks for it."""

    def __init__(self, name: str, package: str, inside: str) -> None:
        """Take the whole name, and its parts, as ``python`` and ``ops.array_ops``."""
        super().__init__(name)
        self.__path__: list[str] = []
        self._package = package
        self._inside = inside

    def __getattr__(self, name: str) -> Any:
        """Return the public name of something, a helper of ours, or a module inside.

        Raises:
            AttributeError: if there is nothing of that name.
        """
        if name == "__all__":
            # For "from tensorflow.python.ops.standard_ops import *".
            return [word for word in names.table().get(self._inside, ()) if hasattr(self, word)]
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._find(name)
        setattr(self, name, found)
        return found

    def _find(self, name: str) -> Any:
        inside = self._inside
        if inside in _OURS:
            ours = importlib.import_module(f"headrace_tensorflow.helpers.{_OURS[inside]}")
            if hasattr(ours, name):
                return getattr(ours, name)
        if _GENERATED.fullmatch(inside):
            return importlib.import_module("headrace_tensorflow.helpers.generated").function(name)
        if inside in _PROGRAMS:
            own = getattr(importlib.import_module("headrace_tensorflow.programs"), inside[9:])
            return getattr(own, name)
        path = names.table().get(inside, {}).get(name)
        if path is not None:
            return names.public(path)
        if inside in _PUBLIC:
            whole = names.public(_PUBLIC[inside])
            if hasattr(whole, name):
                return getattr(whole, name)
        if inside in _WITH_GENERATED:
            generated = importlib.import_module("headrace_tensorflow.helpers.generated")
            if generated.is_known(name):
                return generated.function(name)
        if self._package == "core" and not name.islower():
            return names.message(name)
        return self._module(name)

    def _module(self, name: str) -> ModuleType:
        # A module inside, or one that the private module imports from elsewhere.
        for full in (f"{self.__name__}.{name}", _elsewhere(name)):
            if full is not None:
                try:
                    return importlib.import_module(full)
                except ModuleNotFoundError:
                    pass
        raise AttributeError(
            f"{self.__name__} has no {name!r} here: Headrace stands in for TensorFlow, and has of "
            "its private modules what is public in TensorFlow 1.15",
            name=name,
            obj=self,
        )


@cache
def _elsewhere(name: str) -> str | None:
    found = [path for path in names.modules() if path.rpartition(".")[2] == name]
    return f"tensorflow.python.{min(found, key=len)}" if found else None
