"""Attribution of errors: those of a plugin's functions name the plugin, the function and the line.

Everything that Headrace calls in a plugin outside the registration is called so that an error says
whose it is, and reaches only those who use the plugin.
"""

from __future__ import annotations

from types import TracebackType

from headrace.errors import HeadraceError, PluginError
from headrace.plugins.ownership import Provider, line_of_function, package_of


def line_of_error(error: BaseException, function: object) -> str:
    """Return where in a plugin an error arose.

    Args:
        error: What was raised, with its traceback.
        function: The plugin's function that was called.

    Returns:
        Module and line: of the innermost frame in the function's package, or of the function
        itself where no frame is.
    """
    package = package_of(getattr(function, "__module__", None) or "?")
    found = ""
    step: TracebackType | None = error.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if package_of(module) == package:
            found = f"{module}:{step.tb_lineno}"
        step = step.tb_next
    return found or line_of_function(function)


def described(error: BaseException) -> str:
    """Return kind and text of an error, as in ``"OSError: libfast.so.3"``."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def blamed(error: BaseException, function: object, provider: Provider, what: str) -> PluginError:
    """Return the error that says whose function failed.

    Args:
        error: What it raised.
        function: The function.
        provider: Whose it is.
        what: What it does, as in ``"the count of device kind 'toy'"``.
    """
    return PluginError(f"{what} failed: {described(error)}\n  {origin(error, function, provider)}")


def origin(error: BaseException, function: object, provider: Provider) -> str:
    """Return whose a function is that raised an error, and the line."""
    package = f" ({provider.distribution})" if provider.distribution and provider.name else ""
    return f"in {provider}{package}, at {line_of_error(error, function)}"


def noted(error: HeadraceError, function: object, provider: Provider) -> None:
    """Let an error that a plugin's function raises on purpose say whose it is."""
    error.add_note(f"  {origin(error, function, provider)}")
