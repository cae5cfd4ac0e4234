"""The fuzzer: ``headrace_testing.fuzz`` of the package headrace-testing."""

from headrace.plugins.package_alias import provided

_fuzz = provided("headrace_testing.fuzz", "headrace.testing.fuzz", "headrace-testing")
__doc__ = _fuzz.__doc__
__all__ = list(_fuzz.__all__)
globals().update({name: getattr(_fuzz, name) for name in __all__})
