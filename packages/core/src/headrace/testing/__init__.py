"""The conformance kit, under this name where the package headrace-testing is installed.

``headrace.testing`` has the public names of ``headrace_testing``, and ``headrace.testing.samples``
and ``headrace.testing.fuzz`` those of its modules. The stubs beside these modules name what they
bring to type checkers and editors.
"""

from headrace.plugins.package_alias import provided

_kit = provided("headrace_testing", "headrace.testing", "headrace-testing")
__doc__ = _kit.__doc__
__all__ = list(_kit.__all__)
globals().update({name: getattr(_kit, name) for name in __all__})
