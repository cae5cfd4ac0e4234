"""``hr.config.optimizer``: how far sessions rewrite and compile steps."""

from typing import Any as _Any

from headrace.arguments import mapping as _mapping
from headrace.config.state import STATE as _STATE

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

# What TensorFlow's sessions know; it passes over others, and so do we.
_KNOWN = (
    *("layout_optimizer", "constant_folding", "shape_optimization", "remapping"),
    *("arithmetic_optimization", "dependency_optimization", "loop_optimization"),
    *("function_optimization", "debug_stripper", "disable_model_pruning"),
    *("scoped_allocator_optimization", "pin_to_host_optimization", "implementation_selector"),
    *("disable_meta_optimizer", "min_graph_nodes"),
)


def get_jit() -> bool:
    """Return what ``set_jit`` said."""
    return _STATE.jit


def set_jit(enabled: bool) -> None:
    """Say whether TensorFlow would compile steps by XLA; here all steps are compiled.

    Args:
        enabled: Is only kept for ``get_jit``.
    """
    _STATE.change(jit=bool(enabled))


def get_experimental_options() -> dict[str, _Any]:
    """Return the switches of TensorFlow's passes that were set, and two that it always tells."""
    return {"disable_model_pruning": False, "disable_meta_optimizer": False, **_STATE.passes}


def set_experimental_options(options: dict[str, _Any]) -> None:
    """Set switches of TensorFlow's rewriting passes.

    The passes here are others: ``disable_meta_optimizer`` leaves all of them out, the rest changes
    nothing.

    Args:
        options: Values by the names of passes; unknown names are passed over.

    Raises:
        ArgumentTypeError: if it is no dict.
    """
    given = _mapping(options, "options")
    known = {name: given[name] for name in _KNOWN if given.get(name) is not None}
    _STATE.change(passes={**_STATE.passes, **known})
